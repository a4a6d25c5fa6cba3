//! What the box office may pass over for a new hold (`override`): the sale's door, a quarantine, limits per buyer. And
//! which of them it did pass over.

use alloc::vec::Vec;

use super::create::WantedLines;
use super::invalid;
use crate::command::{Actor, HoldCreate, Override};
use crate::limits::MAY_FREE_HOLDS_MAX;
use crate::outcome::{HoldState, SaleState};
use crate::refusal::Refusal;
use crate::state::hold::Hold;
use crate::state::{LIVE_HOLDS, NO_HOLD, State};
use crate::units::{HoldNo, SaleIx};

/// What may be passed over, and what was.
pub(super) struct Passing<'a> {
    may: &'a [Override],
    passed: Vec<Override>,
}

impl<'a> Passing<'a> {
    pub(super) fn of(actor: &Actor, create: &'a HoldCreate) -> Result<Self, Refusal> {
        let Some(overriding) = &create.overriding else {
            return Ok(Self { may: &[], passed: Vec::new() });
        };
        if !actor.may_override() {
            return Err(invalid("override", "admins only"));
        }
        if overriding.codes.is_empty() {
            return Err(invalid("override", "at least one code, or absent"));
        }
        Ok(Self { may: &overriding.codes, passed: Vec::new() })
    }

    /// Notes a refusal that may be passed over, and gives back one that may not.
    pub(super) fn over(&mut self, checked: Result<(), Refusal>) -> Result<(), Refusal> {
        let Err(refusal) = checked else { return Ok(()) };
        match Override::of(&refusal).filter(|one| self.may.contains(one)) {
            Some(one) => {
                if !self.passed.contains(&one) {
                    self.passed.push(one);
                }
                Ok(())
            }
            None => Err(refusal),
        }
    }

    /// For the fact.
    pub(super) fn into_passed(self) -> Option<Vec<Override>> {
        (!self.passed.is_empty()).then_some(self.passed)
    }
}

impl State {
    /// The sale's door.
    pub(super) fn admits(&self, sale: SaleIx, create: &HoldCreate) -> Result<(), Refusal> {
        let sale = &self.books.sales[sale.0 as usize];
        match sale.state {
            SaleState::Open => Ok(()),
            SaleState::Archived => Err(Refusal::SaleArchived),
            // Money that came late for a lapsed hold is no new customer.
            SaleState::Paused | SaleState::Closed if create.retake.is_some() => Ok(()),
            SaleState::Paused => Err(Refusal::SalePaused),
            SaleState::Closed => Err(Refusal::SaleClosed),
            SaleState::Draft => Err(Refusal::SaleNotOpen { opens_at: None }),
            SaleState::Scheduled => Err(Refusal::SaleNotOpen { opens_at: sale.terms.opens_at }),
        }
    }

    pub(super) fn check_quarantine(
        &self,
        wanted: &WantedLines,
        passing: &mut Passing<'_>,
    ) -> Result<(), Refusal> {
        for (line, number) in wanted.iter().zip(1u8..) {
            let pools = &self.books.items[line.item.0 as usize].draws;
            if pools.iter().any(|pool| self.books.items[pool.0 as usize].quarantined) {
                let quarantined = Refusal::ItemQuarantined { line: number, item: line.item };
                passing.over(Err(quarantined))?;
            }
        }
        Ok(())
    }

    pub(super) fn check_buyer(
        &self,
        sale: SaleIx,
        create: &HoldCreate,
        wanted: &WantedLines,
        old: Option<&Hold>,
        passing: &mut Passing<'_>,
    ) -> Result<(), Refusal> {
        let terms = &self.books.sales[sale.0 as usize].terms;
        if terms.limits.is_empty() && terms.live_holds_per_buyer.is_none() {
            return Ok(());
        }
        let buyer = self.buyer(create.buyer.digest);
        let freed = old.map(|old| self.usage_of(old)).unwrap_or_default();
        let used = |limit: u16| {
            let buyer = buyer.and_then(|buyer| self.usage.get(&(sale, limit, buyer)));
            let freed: u32 =
                freed.iter().filter(|((_, of, _), _)| *of == limit).map(|(_, units)| units).sum();
            u64::from(buyer.map_or(0, |units| units.saturating_sub(freed)))
        };
        if let Some(most) = terms.live_holds_per_buyer
            && used(LIVE_HOLDS) >= u64::from(most)
        {
            let hold = buyer.and_then(|buyer| self.live_hold_of(buyer, sale, old));
            let hold = hold.map(|no| self.holds.id(no));
            passing.over(Err(Refusal::BuyerHasHold { hold }))?;
        }
        for (limit, place) in terms.limits.iter().zip(0u16..) {
            let counted =
                wanted.iter().filter(|line| self.books.limits_of(line.item).contains(&place));
            let asked: u64 = counted.map(|line| u64::from(line.quantity)).sum();
            let used = used(place);
            if asked > 0 && used + asked > u64::from(limit.per_buyer) {
                passing.over(Err(Refusal::LimitPerBuyer {
                    limit: limit.name.clone(),
                    limit_max: limit.per_buyer,
                    used: u32::try_from(used).unwrap_or(u32::MAX),
                }))?;
            }
        }
        Ok(())
    }

    /// One of a buyer's live holds in a sale; looked for among his newest 64.
    fn live_hold_of(&self, buyer: u32, sale: SaleIx, except: Option<&Hold>) -> Option<HoldNo> {
        let newest = self.buyers[buyer as usize].newest.get();
        let newest = (newest != NO_HOLD).then_some(HoldNo(newest));
        core::iter::successors(newest, |&no| self.holds.buyer_before(no))
            .take(MAY_FREE_HOLDS_MAX)
            .filter(|&no| except.is_none_or(|old| old.no != no))
            .filter_map(|no| self.holds.load(no))
            .find(|hold| hold.sale == sale && hold.state == HoldState::Active)
            .map(|hold| hold.no)
    }
}
