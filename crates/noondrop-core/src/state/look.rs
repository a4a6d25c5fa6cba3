//! What can be asked of the state. Nothing here changes it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::decide::hold_now;
use super::{Catalog, NO_HOLD, State};
use crate::ids::{Digest16, HoldId, Name};
use crate::outcome::{HoldView, ItemView, SaleView, ShopView};
use crate::refusal::SeatStanding;
use crate::seats::{SeatDef, SeatNo};
use crate::units::{HoldNo, ItemIx, SaleIx, Seq};

/// A seat as anyone may see it, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatInfo {
    /// Its number in its map.
    pub no: SeatNo,
    /// As it was added.
    pub def: SeatDef,
    /// Where it stands.
    pub standing: SeatStanding,
    /// Whether it counts towards the total: not one that was removed while somebody has it.
    pub planned: bool,
    /// The label under which it is set aside, or to which it goes back.
    pub block: Option<Name>,
    /// The hold that has it.
    pub hold: Option<HoldNo>,
}

/// Sizes, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Holds that claim units.
    pub live_holds: u64,
    /// Holds in memory, of any state.
    pub holds: u64,
    /// Keys of successes.
    pub success_keys: u64,
    /// Keys of refusals.
    pub refusal_keys: u64,
    /// Buyers that ever had a hold.
    pub buyers: u64,
    /// What all of it takes, about.
    pub memory_bytes: u64,
}

impl State {
    /// A hold, with its private texts.
    #[must_use]
    pub fn hold(&self, id: HoldId) -> Option<HoldView> {
        self.hold_by_no(self.holds.find(id)?)
    }

    /// A hold by its running number.
    #[must_use]
    pub fn hold_by_no(&self, no: HoldNo) -> Option<HoldView> {
        let hold = self.holds.load(no)?;
        let view = HoldView { now: hold_now(&hold), ..self.view(&hold) };
        Some(self.with_texts(view))
    }

    /// The running number of a hold.
    #[must_use]
    pub fn hold_no(&self, id: HoldId) -> Option<HoldNo> {
        self.holds.find(id)
    }

    /// The id of a hold and its sale, and nothing else: for who names thousands of them.
    #[must_use]
    pub fn hold_place(&self, no: HoldNo) -> Option<(HoldId, SaleIx)> {
        (no < self.holds.next_no()).then(|| (self.holds.id(no), self.holds.sale_of(no)))
    }

    /// The number that the next hold gets.
    #[must_use]
    pub fn next_hold_no(&self) -> HoldNo {
        self.holds.next_no()
    }

    /// The row of a hold's newest fact: where its story, walked backwards, begins.
    #[must_use]
    pub fn hold_last_seq(&self, no: HoldNo) -> Option<crate::units::Seq> {
        (no < self.holds.next_no()).then(|| self.holds.last_seq(no))
    }

    /// The digest of a hold's buyer.
    #[must_use]
    pub fn hold_buyer(&self, no: HoldNo) -> Option<Digest16> {
        let known = no < self.holds.next_no();
        known.then(|| Digest16(self.buyers[self.holds.buyer_of(no) as usize].digest))
    }

    /// The digest of a hold's reference.
    #[must_use]
    pub fn hold_reference(&self, no: HoldNo) -> Option<Digest16> {
        self.holds.load(no)?.reference()
    }

    /// The id of the payment that confirmed a hold.
    #[must_use]
    pub fn payment_ref(&self, no: HoldNo) -> Option<&str> {
        self.holds.payments.get(&no).map(|payment| payment.text.as_str())
    }

    /// A buyer's holds, newest first.
    #[must_use]
    pub fn holds_of_buyer(
        &self,
        buyer: Digest16,
        before: Option<HoldNo>,
        limit: usize,
    ) -> Vec<HoldNo> {
        let buyer = self.buyer(buyer);
        let newest = buyer.map(|buyer| self.buyers[buyer as usize].newest.get());
        let newest = newest.filter(|&no| no != NO_HOLD).map(HoldNo);
        // A page goes on from the last hold of the one before, so that it never walks from the start.
        let own = before
            .filter(|&no| no < self.holds.next_no() && Some(self.holds.buyer_of(no)) == buyer);
        let first = match own {
            Some(no) => self.holds.buyer_before(no),
            None => newest,
        };
        core::iter::successors(first, |&no| self.holds.buyer_before(no)).take(limit).collect()
    }

    /// The hold that a reference belongs to now.
    #[must_use]
    pub fn hold_of_reference(&self, reference: Digest16) -> Option<HoldNo> {
        self.references.get(&reference).copied()
    }

    /// A sale's holds, newest first, and where to go on; looks at `scan_max` holds at most.
    #[must_use]
    pub fn holds_of_sale(
        &self,
        sale: SaleIx,
        before: Option<HoldNo>,
        limit: usize,
        scan_max: usize,
    ) -> (Vec<HoldNo>, Option<HoldNo>) {
        let end = before.unwrap_or(self.holds.next_no()).min(self.holds.next_no());
        let from = end.0.saturating_sub(scan_max as u64);
        let mut found = Vec::new();
        for no in (from..end.0).rev().map(HoldNo) {
            if self.holds.load(no).is_some_and(|hold| hold.sale == sale) {
                found.push(no);
                if found.len() == limit {
                    return (found, (no.0 > 0).then_some(no));
                }
            }
        }
        (found, (from > 0).then_some(HoldNo(from)))
    }

    /// A shop.
    #[must_use]
    pub fn shop(&self, name: &str) -> Option<ShopView> {
        self.books.shop(name).map(|shop| self.books.shop_view(shop, false))
    }

    /// All shops.
    #[must_use]
    pub fn shops(&self) -> Vec<ShopView> {
        let shops = 0..self.books.next_shop().0;
        shops.map(|shop| self.books.shop_view(crate::units::ShopIx(shop), false)).collect()
    }

    /// A sale of a shop.
    #[must_use]
    pub fn sale(&self, shop: &str, sale: &str) -> Option<SaleView> {
        let sale = self.books.sale(self.books.shop(shop)?, sale)?;
        Some(self.books.sale_view(sale, &self.books.sales[sale.0 as usize], false))
    }

    /// A shop's sales, by name.
    #[must_use]
    pub fn sales(&self, shop: &str) -> Vec<SaleView> {
        let Some(shop) = self.books.shop(shop) else {
            return Vec::new();
        };
        self.books
            .sales_of(shop)
            .map(|sale| self.books.sale_view(sale, &self.books.sales[sale.0 as usize], false))
            .collect()
    }

    /// An item of a sale.
    #[must_use]
    pub fn item(&self, shop: &str, sale: &str, item: &str) -> Option<ItemView> {
        let sale = self.books.sale(self.books.shop(shop)?, sale)?;
        self.books.item(sale, item).map(|item| self.books.item_view(item))
    }

    /// A sale's items, by name.
    #[must_use]
    pub fn items(&self, shop: &str, sale: &str) -> Option<Vec<ItemView>> {
        let sale = self.books.sale(self.books.shop(shop)?, sale)?;
        Some(self.books.items_of(sale).map(|item| self.books.item_view(item)).collect())
    }

    /// The seats of an item that changed after a row (all, where none is named or that is longer ago than is known), from
    /// a seat on, and the row of the newest change. None where it is no item of seats.
    #[must_use]
    pub fn seats(
        &self,
        item: ItemIx,
        since: Option<Seq>,
        from: SeatNo,
        limit: usize,
    ) -> Option<(Vec<SeatInfo>, Seq)> {
        let seated = self.seating.maps.get(&item)?;
        let changed = seated.changed_since(since, from);
        let seats = changed.filter_map(|seat| self.seat_info(item, seat)).take(limit).collect();
        Some((seats, seated.newest_change()))
    }

    /// One seat of an item.
    #[must_use]
    pub fn seat(&self, item: ItemIx, name: &str) -> Option<SeatInfo> {
        self.seat_info(item, self.seating.map(item)?.find(name)?)
    }

    fn seat_info(&self, item: ItemIx, seat: SeatNo) -> Option<SeatInfo> {
        let map = self.seating.map(item)?;
        let state = map.state(seat)?;
        let (def, standing) = (map.def(seat)?, self.standing(state));
        let sale = &self.books.sales[self.books.items[item.0 as usize].sale.0 as usize];
        let label = state.block.and_then(|label| sale.labels().get(usize::from(label.0)));
        let (planned, block) = (state.planned, label.cloned());
        Some(SeatInfo { no: seat, def, standing, planned, block, hold: state.owner })
    }

    /// Every item, for metrics and audits.
    pub fn all_items(&self) -> impl Iterator<Item = ItemView> + '_ {
        (0..self.books.next_item().0).map(|item| self.books.item_view(crate::units::ItemIx(item)))
    }

    /// Names by index; made anew only after definitions changed.
    pub fn catalog(&mut self) -> Arc<Catalog> {
        self.books.catalog(&self.seating)
    }

    /// Whether a key is known.
    #[must_use]
    pub fn has_key(&self, hash: &Digest16) -> bool {
        self.keys.has(hash)
    }

    /// Sizes, for metrics.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let memory = self.holds.memory_bytes()
            + self.buyers.memory_bytes()
            + self.buyer_index.memory_bytes()
            + self.keys.memory_bytes()
            + self.lapses.memory_bytes()
            + self.references.len() * 48
            + self.usage.len() * 32;
        Counters {
            live_holds: self.books.live.iter().sum(),
            holds: self.holds.next_no().0,
            success_keys: self.keys.successes.len() as u64,
            refusal_keys: self.keys.refusals.len() as u64,
            buyers: self.buyers.len() as u64,
            memory_bytes: memory as u64,
        }
    }
}
