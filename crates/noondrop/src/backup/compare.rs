//! A list of orders against the log: who paid and has no units, and which units nobody paid for.
//!
//! After a restore this is how a shop finds the sales of the lost rows; at any other time, charges that came too late.
//! Payments are compared as the log's own digests, so that texts which were erased make no difference.

pub mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use noondrop_core::{
    Catalog, Digest16, Digester, Fact, HoldId, HoldNo, HoldState, HoldView, Refusal, State,
    Timestamp,
};
use noondrop_log::{LogReader, Position};
use serde::Serialize;

use crate::audit::{Replay, Scan};
use crate::http::render::time_text;
use orders::Order;

/// What a confirm carries where there is no payment.
pub const GIFT: &str = "none";

/// An order that was paid and has no units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaidWithoutUnits {
    /// Its line in the file.
    pub line: u64,
    /// Its payment.
    pub payment_ref: String,
    /// What became of it: `lapsed`, `released`, `cancelled`, `active`, `other_payment`, `other_hold`, `hold_not_found`,
    /// `refused`, `never_seen`.
    pub code: &'static str,
    /// The hold that the log knows of, or that the order names.
    pub hold: Option<String>,
    /// The same for people.
    pub why: String,
}

/// A confirmed hold whose payment is not in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnitsWithoutPayment {
    /// Which.
    pub hold: String,
    /// Its sale.
    pub sale: String,
    /// Units sold.
    pub units: u64,
    /// The payment's text; none once it is erased.
    pub payment_ref: Option<String>,
    /// The shop's cart or order number.
    pub reference: Option<String>,
    /// When it was confirmed, in log time.
    pub confirmed_at: String,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The last row that was compared.
    #[serde(serialize_with = "as_text")]
    pub position: Position,
    /// Paid orders in the file.
    pub orders: u64,
    /// Orders whose payment confirmed a hold.
    pub matched: u64,
    /// Lines of the file without a payment, which were passed over.
    pub unpaid: u64,
    /// Confirmed holds with the payment `none`, which no file of payments can have.
    pub gifts: u64,
    /// Money without units.
    pub paid_without_units: Vec<PaidWithoutUnits>,
    /// Units without money.
    pub units_without_payment: Vec<UnitsWithoutPayment>,
}

fn as_text<S: serde::Serializer>(position: &Position, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(position)
}

impl Comparison {
    fn at(position: Position) -> Self {
        Self {
            position,
            orders: 0,
            matched: 0,
            unpaid: 0,
            gifts: 0,
            paid_without_units: Vec::new(),
            units_without_payment: Vec::new(),
        }
    }

    /// Whether both sides say the same.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.paid_without_units.is_empty() && self.units_without_payment.is_empty()
    }
}

/// Reads the log and compares it with the orders of one shop.
pub fn compare(
    reader: &mut dyn LogReader,
    shop: &str,
    orders: &[Order],
) -> Result<Comparison, Box<dyn Error + Send + Sync>> {
    let mut replay = Replay::default();
    let mut seen = Seen::default();
    for scanned in Scan::all(reader)? {
        let scanned = scanned?;
        let at = Timestamp(scanned.row.at);
        scanned.entries.iter().for_each(|entry| seen.learn(&entry.fact, at));
        replay.apply(&scanned)?;
    }
    let catalog = replay.catalog();
    let state = replay.state();
    let digester = state.digester().ok_or("the log is empty")?;
    let desk = Desk { state, seen: &seen, catalog: &catalog, digester, shop };
    let mut found = Comparison::at(replay.position());
    let paid = desk.look_for_units(orders, &mut found);
    desk.look_for_payments(&paid, &mut found);
    Ok(found)
}

#[derive(Clone, Copy)]
struct Confirmed {
    payment: Digest16,
    at: Timestamp,
}

/// What the facts say that the state does not keep, or not in this order.
#[derive(Default)]
struct Seen {
    confirmed: BTreeMap<HoldNo, Confirmed>,
    by_payment: BTreeMap<Digest16, Vec<HoldNo>>,
    /// The newest hold with a reference.
    by_reference: BTreeMap<Digest16, HoldNo>,
    /// The newest attempt with a reference that lost.
    refused: BTreeMap<Digest16, (Refusal, Timestamp)>,
}

impl Seen {
    fn learn(&mut self, fact: &Fact, at: Timestamp) {
        match fact {
            Fact::HoldCreated(created) => {
                if let Some(reference) = created.reference {
                    self.by_reference.insert(reference, created.hold);
                }
            }
            Fact::HoldRefused(lost) => {
                if let Some(reference) = lost.reference {
                    self.refused.insert(reference, (lost.refusal.clone(), at));
                }
            }
            Fact::HoldConfirmed(sold) => {
                let (no, payment) = (sold.touched.hold, sold.payment);
                self.confirmed.insert(no, Confirmed { payment, at });
                self.by_payment.entry(payment).or_default().push(no);
            }
            _ => {}
        }
    }
}

/// Who looks things up.
struct Desk<'a> {
    state: &'a State,
    seen: &'a Seen,
    catalog: &'a Catalog,
    digester: Digester,
    shop: &'a str,
}

impl Desk<'_> {
    /// Each paid order must have units. Returns all payments of the file.
    fn look_for_units(&self, orders: &[Order], found: &mut Comparison) -> BTreeSet<Digest16> {
        let mut paid = BTreeSet::new();
        for order in orders {
            let Some(payment_ref) = &order.payment_ref else {
                found.unpaid += 1;
                continue;
            };
            let payment = self.digester.payment(self.shop, payment_ref);
            paid.insert(payment);
            found.orders += 1;
            match self.missing(order, payment_ref, payment) {
                Some(missing) => found.paid_without_units.push(missing),
                None => found.matched += 1,
            }
        }
        paid
    }

    /// Each confirmed hold must have a payment.
    fn look_for_payments(&self, paid: &BTreeSet<Digest16>, found: &mut Comparison) {
        let gift = self.digester.payment(self.shop, GIFT);
        for (&no, confirmed) in &self.seen.confirmed {
            let Some(hold) = self.state.hold_by_no(no) else { continue };
            let shop = self.catalog.shops.get(hold.shop.0 as usize);
            let is_ours = shop.is_some_and(|shop| shop.name.as_str() == self.shop);
            if !is_ours || hold.state != HoldState::Confirmed || paid.contains(&confirmed.payment) {
                continue;
            }
            if confirmed.payment == gift {
                found.gifts += 1;
            } else {
                found.units_without_payment.push(self.unpaid(&hold, confirmed.at));
            }
        }
    }

    fn missing(
        &self,
        order: &Order,
        payment_ref: &str,
        payment: Digest16,
    ) -> Option<PaidWithoutUnits> {
        let with_it = self.seen.by_payment.get(&payment).into_iter().flatten();
        let with_it: Vec<HoldView> = with_it.filter_map(|&no| self.state.hold_by_no(no)).collect();
        let named = order.hold.map(|id| (id, self.state.hold(id)));
        let sold = with_it.iter().find(|hold| hold.state == HoldState::Confirmed);
        if let Some(sold) = sold {
            return self.sold_to_another(order, payment_ref, sold, &with_it);
        }
        let (code, hold, why) = match (with_it.into_iter().next_back(), named) {
            (Some(hold), _) | (None, Some((_, Some(hold)))) => self.standing(&hold),
            (None, Some((id, None))) => not_found(id),
            (None, None) => self.by_reference(order),
        };
        let hold = hold.map(|id| id.to_string());
        Some(PaidWithoutUnits {
            line: order.line,
            payment_ref: payment_ref.to_owned(),
            code,
            hold,
            why,
        })
    }

    /// The payment has units. Where the order names a hold that the log knows, they must be that hold's or at least have
    /// its reference, or one payment could stand for two orders.
    fn sold_to_another(
        &self,
        order: &Order,
        payment_ref: &str,
        sold: &HoldView,
        with_it: &[HoldView],
    ) -> Option<PaidWithoutUnits> {
        let named = self.state.hold(order.hold?)?;
        let (_, hold, why) = self.standing(&named);
        let reference = self.state.hold_reference(named.no);
        let is_own = |with: &HoldView| {
            let same = reference.is_some() && self.state.hold_reference(with.no) == reference;
            with.state == HoldState::Confirmed && (Some(with.id) == hold || same)
        };
        if with_it.iter().any(is_own) {
            return None;
        }
        Some(PaidWithoutUnits {
            line: order.line,
            payment_ref: payment_ref.to_owned(),
            code: "other_hold",
            hold: hold.map(|id| id.to_string()),
            why: format!("it confirmed {}; the order's own {why}", sold.id),
        })
    }

    fn by_reference(&self, order: &Order) -> (&'static str, Option<HoldId>, String) {
        let nowhere = || {
            let why = "no hold was ever confirmed with it, and the order names no hold or reference that the log knows";
            ("never_seen", None, why.to_owned())
        };
        let Some(text) = &order.reference else { return nowhere() };
        let reference = self.digester.reference(self.shop, text);
        let hold = self.seen.by_reference.get(&reference);
        if let Some(hold) = hold.and_then(|&no| self.state.hold_by_no(no)) {
            return self.standing(&hold);
        }
        match self.seen.refused.get(&reference) {
            Some((refusal, at)) => {
                let (code, at) = (refusal.code(), time_text(*at));
                let why = format!(
                    "its newest attempt, with reference {text}, was refused at {at}: {code}"
                );
                ("refused", None, why)
            }
            None => nowhere(),
        }
    }

    /// How the hold of an order stands; where another took its place, that one.
    fn standing(&self, hold: &HoldView) -> (&'static str, Option<HoldId>, String) {
        let next = hold.superseded_by.and_then(|id| self.state.hold(id));
        if let Some(next) = next {
            return self.standing(&next);
        }
        let id = hold.id;
        let end = time_text(hold.expires_at);
        let (code, why) = match hold.state {
            HoldState::Active => {
                ("active", format!("{id} is not confirmed yet; it lapses at {end}"))
            }
            HoldState::Confirmed => {
                let other = self.state.payment_ref(hold.no).filter(|text| !text.is_empty());
                let other = other.map(|text| format!(", {text}")).unwrap_or_default();
                ("other_payment", format!("{id} was confirmed with another payment{other}"))
            }
            HoldState::Expired => ("lapsed", format!("{id} lapsed at {end}")),
            HoldState::Released => ("released", format!("{id} was released")),
            HoldState::Cancelled => ("cancelled", format!("{id} was sold and then cancelled")),
        };
        (code, Some(id), why)
    }

    fn unpaid(&self, hold: &HoldView, at: Timestamp) -> UnitsWithoutPayment {
        let text = self.state.payment_ref(hold.no).filter(|text| !text.is_empty());
        let sale = self.catalog.sales.get(hold.sale.0 as usize);
        UnitsWithoutPayment {
            hold: hold.id.to_string(),
            sale: sale.map(|sale| sale.name.to_string()).unwrap_or_default(),
            units: hold.lines.0.iter().map(|line| u64::from(line.sold)).sum(),
            payment_ref: text.map(str::to_owned),
            reference: hold.texts.as_deref().and_then(|texts| texts.reference.clone()),
            confirmed_at: time_text(at),
        }
    }
}

fn not_found(id: HoldId) -> (&'static str, Option<HoldId>, String) {
    let why = format!("the log has no {id}: it is of another log, or a restore lost it");
    ("hold_not_found", Some(id), why)
}
