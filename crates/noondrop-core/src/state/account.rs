//! What follows from a change: shares of `state_sum`, usage per buyer, references, names. Used to apply and to undo.

use smallvec::{SmallVec, smallvec};

use super::books::{Books, Item, Sale, Shop};
use super::hold::Hold;
use super::{Buyer, LIVE_HOLDS, LogIdentity, State, sum};
use crate::fact::Settings;
use crate::ids::Digest16;
use crate::outcome::{Counts, HoldState};
use crate::planted::{self, Bug};
use crate::units::{HoldNo, ItemIx, SaleIx, ShopIx};

impl State {
    pub(super) fn buyer(&self, digest: Digest16) -> Option<u32> {
        self.buyer_index
            .find(digest.hash64(), |buyer| self.buyers[buyer as usize].digest == digest.0)
    }

    pub(super) fn intern_buyer(&mut self, digest: Digest16) -> (u32, bool) {
        if let Some(buyer) = self.buyer(digest) {
            return (buyer, false);
        }
        let entry = Buyer { digest: digest.0, newest: super::NO_HOLD.into() };
        let buyer = u32::try_from(self.buyers.push(entry)).expect("buyers are counted in 32 bits");
        self.buyer_index.insert(digest.hash64(), buyer);
        self.add(sum::entry(sum::BUYER, u64::from(buyer), &digest.0));
        (buyer, true)
    }

    pub(super) fn remove_newest_buyer(&mut self) {
        let entry = self.buyers.pop().expect("the buyer that is undone was added");
        let digest = Digest16(entry.digest);
        let buyer = u32::try_from(self.buyers.len()).expect("buyers are counted in 32 bits");
        self.buyer_index.remove(digest.hash64(), |id| id == buyer);
        self.subtract(sum::entry(sum::BUYER, u64::from(buyer), &digest.0));
    }

    /// Adds what follows from a hold: its share of the sum, usage per buyer, its reference.
    pub(super) fn account(&mut self, hold: &Hold) {
        self.add(self.holds.sum(hold.no));
        if hold.state == HoldState::Active {
            self.books.live[hold.sale.0 as usize] += 1;
        }
        if self.books.sales[hold.sale.0 as usize].counts_buyers() {
            self.count_usage(hold, 1);
        }
        for line in &hold.lines {
            self.books.claimed[line.item.0 as usize] += u64::from(line.held) + u64::from(line.sold);
        }
        if let Some(reference) = hold.reference().filter(|_| hold.keeps_reference()) {
            self.references.insert(reference, hold.no);
        }
    }

    /// The opposite of [`Self::account`].
    pub(super) fn unaccount(&mut self, hold: &Hold) {
        self.subtract(self.holds.sum(hold.no));
        if hold.state == HoldState::Active {
            self.books.live[hold.sale.0 as usize] -= 1;
        }
        if self.books.sales[hold.sale.0 as usize].counts_buyers() {
            self.count_usage(hold, -1);
        }
        for line in &hold.lines {
            self.books.claimed[line.item.0 as usize] -= u64::from(line.held) + u64::from(line.sold);
        }
        if let Some(reference) = hold.reference().filter(|_| hold.keeps_reference())
            && self.references.get(&reference) == Some(&hold.no)
        {
            self.references.remove(&reference);
        }
    }

    fn count_usage(&mut self, hold: &Hold, sign: i64) {
        for ((sale, limit, buyer), units) in self.usage_of(hold) {
            let count = self.usage.entry((sale, limit, buyer)).or_default();
            let now = i64::from(*count) + sign * i64::from(units);
            *count = u32::try_from(now).expect("usage is taken back only where it was added");
            if *count == 0 {
                self.usage.remove(&(sale, limit, buyer));
            }
        }
    }

    /// What a hold adds to its buyer's usage, limit by limit.
    pub(super) fn usage_of(&self, hold: &Hold) -> SmallVec<[(super::UsageKey, u32); 4]> {
        let live = u32::from(hold.state == HoldState::Active);
        let mut usage: SmallVec<[(super::UsageKey, u32); 4]> =
            smallvec![((hold.sale, LIVE_HOLDS, hold.buyer), live)];
        for line in &hold.lines {
            let claimed = if planted::is(Bug::LimitsForgetHeld) { 0 } else { line.held };
            let units = claimed + line.sold;
            for &limit in self.books.limits_of(line.item) {
                usage.push(((hold.sale, limit, hold.buyer), units));
            }
        }
        usage.retain(|(_, units)| *units > 0);
        usage
    }

    fn recount_usage(&mut self, sale: SaleIx) {
        self.usage.retain(|(of, _, _), _| *of != sale);
        if !self.books.sales[sale.0 as usize].counts_buyers() {
            return;
        }
        for no in 0..self.holds.next_no().0 {
            let hold = self.holds.load(HoldNo(no)).expect("holds in memory are dense");
            if hold.sale == sale {
                self.count_usage(&hold, 1);
            }
        }
    }

    pub(super) fn add(&mut self, sum: u128) {
        self.sum = self.sum.wrapping_add(sum);
    }

    pub(super) fn subtract(&mut self, sum: u128) {
        self.sum = self.sum.wrapping_sub(sum);
    }

    pub(super) fn log_sum(log: &LogIdentity) -> u128 {
        sum::encoded(sum::LOG, u64::from(log.level), &log.log_id)
    }

    pub(super) fn settings_sum(settings: &Settings) -> u128 {
        sum::encoded(sum::LOG, u64::MAX, settings)
    }

    pub(super) fn unstart(&mut self) {
        if let Some(log) = self.log.take() {
            self.subtract(Self::log_sum(&log));
        }
    }

    pub(super) fn set_settings(&mut self, settings: Settings) {
        self.subtract(Self::settings_sum(&self.settings));
        self.add(Self::settings_sum(&settings));
        self.settings = settings;
    }

    pub(super) fn write_shop(&mut self, shop: ShopIx, new: Option<Shop>) {
        let id = u64::from(shop.0);
        self.add(new.as_ref().map_or(0, |new| sum::encoded(sum::SHOP, id, new)));
        let old = self.books.set_shop(shop, new);
        self.subtract(old.map_or(0, |old| sum::encoded(sum::SHOP, id, &old)));
    }

    pub(super) fn write_sale(&mut self, sale: SaleIx, new: Option<Sale>) {
        let id = u64::from(sale.0);
        self.add(new.as_ref().map_or(0, |new| sum::encoded(sum::SALE, id, new)));
        let limits =
            new.as_ref().map(|new| (new.terms.limits.clone(), new.terms.live_holds_per_buyer));
        let old = self.books.set_sale(sale, new);
        let before =
            old.as_ref().map(|old| (old.terms.limits.clone(), old.terms.live_holds_per_buyer));
        self.subtract(old.map_or(0, |old| sum::encoded(sum::SALE, id, &old)));
        if limits.is_some() && before.is_some() && limits != before {
            self.recount_usage(sale);
        }
    }

    pub(super) fn write_item(&mut self, item: ItemIx, new: Option<Item>) {
        let id = u64::from(item.0);
        self.add(new.as_ref().map_or(0, |new| sum::encoded(sum::ITEM, id, new)));
        let is_new = item == self.books.next_item();
        let is_gone = new.is_none();
        let old = self.books.set_item(item, new);
        self.subtract(old.map_or(0, |old| sum::encoded(sum::ITEM, id, &old)));
        let empty_account = Books::counts_sum(item, &Counts::default());
        if is_new {
            self.lapses.add_pool();
            self.add(empty_account);
        }
        if is_gone {
            self.lapses.remove_last_pool();
            self.seating.maps.remove(&item);
            self.subtract(empty_account);
        }
    }

    pub(super) fn remove_actor(&mut self) {
        let actor = self.books.actors.last().cloned().expect("the actor that is undone was added");
        self.books.pop_actor();
        self.subtract(sum::encoded(sum::ACTOR, self.books.actors.len() as u64, &actor));
    }

    pub(super) fn remove_payment(&mut self, no: HoldNo) {
        let payment =
            self.holds.payments.remove(&no).expect("the payment that is undone was noted");
        self.subtract(sum::entry(sum::PAYMENT, no.0, &payment.digest.0));
    }
}
