//! What buyers were told, against what there is: once as the server tells it, once as its log does.

use std::collections::{BTreeMap, HashMap};

use noondrop_core::{HoldId, HoldNo, HoldState, State};
use noondrop_log::LogReader;
use serde_json::Value;

use super::record::Record;
use super::rush::{buyer_name, payment_ref};
use super::stage::ITEM;
use crate::audit::{Verdict, audit};
use crate::cli::{Failure, chain};

/// How a hold stands at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose it is.
    pub buyer: String,
    /// It is sold.
    pub sold: bool,
    /// The payment that confirmed it, where that can be seen.
    pub payment: Option<String>,
}

/// How many units there are at the end, of which kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// There were.
    pub total: u64,
    /// Free.
    pub available: u64,
    /// In live holds.
    pub held: u64,
    /// Owned.
    pub sold: u64,
    /// Set aside.
    pub blocked: u64,
    /// Beyond the total.
    pub oversold: u64,
}

impl Units {
    /// From an item as the server tells it.
    #[must_use]
    pub fn of(item: &Value) -> Self {
        let units = |name: &str| item[name].as_u64().unwrap_or_default();
        Self {
            total: units("total"),
            available: units("available"),
            held: units("held"),
            sold: units("sold"),
            blocked: units("blocked"),
            oversold: units("oversold"),
        }
    }

    /// `available + held + sold + blocked == total + oversold`
    #[must_use]
    pub fn are_conserved(&self) -> bool {
        self.available + self.held + self.sold + self.blocked == self.total + self.oversold
    }
}

/// All that is there at the end.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Every hold of the sale.
    pub holds: HashMap<HoldId, Standing>,
    /// The item.
    pub units: Units,
}

/// What does not agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disagreements {
    /// Acknowledged holds that are not there, or are somebody else's.
    pub lost_holds: u64,
    /// Acknowledged confirms whose hold is not sold, or to another payment.
    pub lost_confirms: u64,
    /// Holds and sales that nobody was told of.
    pub unheard_of: u64,
    /// Buyers with more than the one ticket that they may have.
    pub too_many: u64,
    /// Units that are not accounted for by confirmed holds.
    pub miscounted: u64,
}

impl Disagreements {
    /// Acknowledged answers that are gone.
    #[must_use]
    pub fn lost_acknowledged(&self) -> u64 {
        self.lost_holds + self.lost_confirms
    }

    /// Whether all agrees.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Compares. Every buyer asked until he was answered, so the record must name every hold, and every hold a promise.
#[must_use]
pub fn compare(record: &Record, ledger: &Ledger) -> Disagreements {
    let mut found = Disagreements::default();
    for (place, promise) in record.promises().iter().enumerate() {
        let buyer = buyer_name(promise.buyer);
        let Some(standing) = ledger.holds.get(&promise.id).filter(|held| held.buyer == buyer)
        else {
            found.lost_holds += 1;
            found.lost_confirms += u64::from(promise.confirmed);
            continue;
        };
        let paid = payment_ref(promise.buyer, place);
        let paid_by_other = standing.payment.as_ref().is_some_and(|payment| *payment != paid);
        found.lost_confirms += u64::from(promise.confirmed && (!standing.sold || paid_by_other));
        found.unheard_of += u64::from(standing.sold && !promise.confirmed);
    }
    let told: std::collections::HashSet<HoldId> =
        record.promises().iter().map(|promise| promise.id).collect();
    found.unheard_of += ledger.holds.keys().filter(|id| !told.contains(id)).count() as u64;
    let mut owned: BTreeMap<&str, u64> = BTreeMap::new();
    for standing in ledger.holds.values().filter(|standing| standing.sold) {
        *owned.entry(&standing.buyer).or_default() += 1;
    }
    found.too_many = owned.values().filter(|count| **count > 1).count() as u64;
    found.miscounted = owned.values().sum::<u64>().abs_diff(ledger.units.sold);
    found
}

/// An audited log and what it says of the sale.
pub struct Audited {
    /// The audit's verdict.
    pub verdict: Verdict,
    /// The sale at the end.
    pub ledger: Ledger,
}

/// Audits the log and reads the sale out of it.
pub fn read_log(reader: &mut dyn LogReader, sale: &str) -> Result<Audited, String> {
    let (verdict, state) = audit(reader, None, &mut |_| {}).map_err(|error| chain(&error))?;
    let ledger = ledger_of(&state, sale).map_err(|error| error.to_string())?;
    Ok(Audited { verdict, ledger })
}

/// A sale of the shop `main`, as a state has it.
pub fn ledger_of(state: &State, sale: &str) -> Result<Ledger, Failure> {
    let item = state.item("main", sale, ITEM).ok_or("the log does not have the sale")?;
    let counts = item.counts;
    let units = Units {
        total: counts.total.into(),
        available: counts.available(),
        held: counts.held.into(),
        sold: counts.sold.into(),
        blocked: counts.blocked.into(),
        oversold: counts.oversold(),
    };
    let mut holds = HashMap::new();
    for no in (0..state.next_hold_no().0).map(HoldNo) {
        let Some(hold) = state.hold_by_no(no).filter(|hold| hold.sale == item.sale) else {
            continue;
        };
        let sold = hold.state == HoldState::Confirmed;
        let payment = state.payment_ref(no).map(str::to_owned);
        let buyer = hold.texts.map(|texts| texts.buyer).unwrap_or_default();
        holds.insert(hold.id, Standing { buyer, sold, payment });
    }
    Ok(Ledger { holds, units })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u16) -> HoldId {
        HoldId { seq: noondrop_core::Seq(7), index: number, tag: [1; 10] }
    }

    fn standing(buyer: u32, place: usize) -> Standing {
        let payment = Some(payment_ref(buyer, place));
        Standing { buyer: buyer_name(buyer), sold: true, payment }
    }

    /// Two buyers who were told that they have a ticket, and a ledger that has both.
    fn two_sold() -> (Record, Ledger) {
        let mut record = Record::default();
        let mut ledger = Ledger::default();
        for (buyer, number) in [(1, 0), (2, 1)] {
            let place = record.hold(buyer, id(number), 5);
            record.confirm(place);
            ledger.holds.insert(id(number), standing(buyer, place));
        }
        ledger.units = Units { total: 3, available: 1, sold: 2, ..Units::default() };
        (record, ledger)
    }

    #[test]
    fn what_was_told_and_is_there_agrees() {
        let (record, ledger) = two_sold();
        assert!(compare(&record, &ledger).is_none());
        assert!(ledger.units.are_conserved());
    }

    #[test]
    fn a_forged_acknowledgement_is_found() {
        let (mut record, ledger) = two_sold();
        record.hold(3, id(9), 5);
        assert_eq!(compare(&record, &ledger).lost_acknowledged(), 1);
    }

    #[test]
    fn a_lost_hold_is_found() {
        let (record, mut ledger) = two_sold();
        ledger.holds.remove(&id(0));
        let found = compare(&record, &ledger);
        assert_eq!((found.lost_holds, found.lost_confirms, found.miscounted), (1, 1, 1));
    }

    #[test]
    fn a_confirm_that_did_not_last_or_was_for_another_payment_is_found() {
        let (record, mut ledger) = two_sold();
        ledger.holds.insert(id(0), Standing { sold: false, payment: None, ..standing(1, 0) });
        ledger.holds.insert(id(1), Standing { payment: Some("pi-9-9".into()), ..standing(2, 1) });
        assert_eq!(compare(&record, &ledger).lost_confirms, 2);
    }

    #[test]
    fn a_hold_that_nobody_was_told_of_and_a_second_ticket_are_found() {
        let (record, mut ledger) = two_sold();
        ledger.holds.insert(id(5), standing(1, 9));
        let found = compare(&record, &ledger);
        assert_eq!((found.unheard_of, found.too_many, found.miscounted), (1, 1, 1));
    }
}
