//! What facts say of names, counts and times, without a state: quick enough to go through millions of them for one answer.
//!
//! It believes what it reads; who does not, audits. Nothing here is a sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    ActorSeen, BlockMoved, CancelTo, Catalog, Counts, Draw, Fact, Fence, HoldCancelled,
    HoldCreated, HoldId, HoldNo, ItemDefined, ItemIx, ItemName, Name, SaleDefined, SaleIx,
    SaleName, SeatOut, SeatsChanged, Seq, ShopDefined, ShopName, Timestamp, hold_id,
};
use noondrop_log::{GENESIS, Position, Row};

/// One pool at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its account.
    pub counts: Counts,
    /// Since when nothing of it is free; none while something is.
    pub gone_at: Option<Timestamp>,
    /// Since when all of it is sold or set aside; none while something is not.
    pub sold_at: Option<Timestamp>,
}

/// The holds that one row made.
#[derive(Clone, Copy, Debug)]
struct Made {
    first: HoldNo,
    seq: Seq,
    nonce: [u8; 16],
}

/// See the module.
#[derive(Default)]
pub struct Glance {
    catalog: Catalog,
    pools: Vec<Pool>,
    made: Vec<Made>,
    holds: u64,
    fence: u64,
    at: Timestamp,
    row: (u64, [u8; 16]),
    position: Option<Position>,
    /// By item of seats: when each was last held or set aside.
    seat_times: BTreeMap<ItemIx, Vec<Timestamp>>,
}

/// Where the units of a fact go: added to held, sold, blocked (of what is drawn from a block) and the total.
#[derive(Clone, Copy, Default)]
struct Signs {
    held: i64,
    sold: i64,
    blocked: i64,
    total: i64,
}

fn add(count: &mut u32, units: i64) {
    *count = u32::try_from((i64::from(*count) + units).max(0)).unwrap_or(u32::MAX);
}

/// Puts an entry in its place, which is one that is there or the next.
fn put<T>(list: &mut Vec<T>, place: usize, entry: T) {
    match list.get_mut(place) {
        Some(known) => *known = entry,
        None => list.push(entry),
    }
}

impl Glance {
    /// Names, as far as the log was read.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The time of the row.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The last row.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.unwrap_or(GENESIS)
    }

    /// A pool as it is now.
    #[must_use]
    pub fn pool(&self, item: ItemIx) -> Option<&Pool> {
        self.pools.get(item.0 as usize)
    }

    /// When a seat was last held or set aside.
    #[must_use]
    pub fn seat_taken_at(&self, item: ItemIx, seat: SeatNo) -> Option<Timestamp> {
        let times = self.seat_times.get(&item)?;
        times.get(seat.0 as usize).copied().filter(|at| at.0 > 0)
    }

    /// The number of a seat.
    #[must_use]
    pub fn seat_no(&self, item: ItemIx, name: &str) -> Option<SeatNo> {
        let names = self.catalog.seats.get(&item)?;
        let count = u32::try_from(names.len()).ok()?;
        (0..count).map(SeatNo).find(|no| names.get(*no) == Some(name))
    }

    /// The item of this name.
    #[must_use]
    pub fn item(&self, shop: &str, sale: &str, item: &str) -> Option<ItemIx> {
        let Catalog { shops, sales, items, .. } = &self.catalog;
        let place = items.iter().position(|known| {
            let known_sale = sales.get(known.sale.0 as usize);
            let known_shop = known_sale.and_then(|sale| shops.get(sale.shop.0 as usize));
            known.name.as_str() == item
                && known_sale.is_some_and(|known| known.name.as_str() == sale)
                && known_shop.is_some_and(|known| known.name.as_str() == shop)
        });
        place.and_then(|place| u32::try_from(place).ok()).map(ItemIx)
    }

    /// The public id of a hold.
    #[must_use]
    pub fn hold_id(&self, no: HoldNo) -> Option<HoldId> {
        if no.0 >= self.holds {
            return None;
        }
        let place = self.made.partition_point(|made| made.first <= no).checked_sub(1)?;
        let made = self.made.get(place)?;
        Some(hold_id(made.seq, made.nonce, u16::try_from(no.0 - made.first.0).ok()?))
    }

    /// The number and the fence that the next hold gets.
    #[must_use]
    pub fn next_hold(&self) -> (HoldNo, HoldId, Fence) {
        let no = HoldNo(self.holds);
        let (seq, nonce) = self.row;
        let last = self.made.last().filter(|made| made.seq.0 == seq);
        let index = last.map_or(0, |made| self.holds - made.first.0);
        let id = hold_id(Seq(seq), nonce, u16::try_from(index).unwrap_or(u16::MAX));
        (no, id, Fence(self.next_fence()))
    }

    fn next_fence(&self) -> u64 {
        (self.fence + 1).max(self.at.0 << 10)
    }

    /// The number of the row.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.row.0
    }

    /// Begins a row.
    pub fn begin(&mut self, row: &Row) {
        self.at = Timestamp(row.at);
        self.row = (row.seq, row.nonce);
        self.position = Some(row.position());
    }

    /// Notes what a fact says.
    pub fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::HoldCreated(created) => self.created(created),
            Fact::HoldConfirmed(fact) => {
                self.shift(&fact.moves, Signs { held: -1, sold: 1, ..Signs::default() });
            }
            Fact::HoldReleased(fact) => {
                self.shift(&fact.moves, Signs { held: -1, blocked: 1, ..Signs::default() });
                self.seats_out(fact.seats.as_deref(), Signs::default());
            }
            Fact::HoldsExpired(fact) => {
                self.shift(&fact.moves, Signs { held: -1, blocked: 1, ..Signs::default() });
                self.seats_out(fact.seats.as_deref(), Signs::default());
            }
            Fact::HoldCancelled(fact) => self.cancelled(fact),
            Fact::ItemBlocked(moved) => self.set_aside(moved, 1),
            Fact::ItemUnblocked(moved) => self.set_aside(moved, -1),
            Fact::ItemDefined(item) => self.item_defined(item),
            Fact::ItemAdjusted(item) => {
                let total = item.total;
                self.change(item.item, |counts| counts.total = total);
            }
            Fact::SeatsChanged(changed) => self.seats_changed(changed),
            Fact::ShopDefined(ShopDefined { shop, name, live, .. }) => {
                let entry = ShopName { name: name.clone(), live: *live };
                put(&mut self.catalog.shops, shop.0 as usize, entry);
            }
            Fact::ActorSeen(ActorSeen { name, role, .. }) => {
                self.catalog.actors.push((name.clone(), *role));
            }
            Fact::SaleDefined(sale) => self.sale_defined(sale),
            Fact::LogStarted(_)
            | Fact::SaleMoved(_)
            | Fact::HoldRefused(_)
            | Fact::BlockRefused(_)
            | Fact::HoldConfirmedAgain(_)
            | Fact::HoldExtended(_)
            | Fact::HoldActRefused(_)
            | Fact::KeyRepeated(_)
            | Fact::LossAccepted(_)
            | Fact::LogRestored(_)
            | Fact::BuyerErased(_)
            | Fact::SettingsChanged(_) => {}
        }
    }

    fn created(&mut self, created: &HoldCreated) {
        let (seq, nonce) = self.row;
        if self.made.last().is_none_or(|made| made.seq.0 != seq) {
            self.made.push(Made { first: HoldNo(self.holds), seq: Seq(seq), nonce });
        }
        self.fence = self.next_fence();
        self.holds += 1;
        for line in created.lines.iter() {
            self.shift(&line.draws, Signs { held: 1, blocked: -1, ..Signs::default() });
            if let Some(seats) = &line.seats {
                self.seats_taken(line.item, seats);
            }
        }
    }

    fn cancelled(&mut self, fact: &HoldCancelled) {
        let destroyed = fact.to == CancelTo::Destroyed;
        let by_seat = |pool| {
            let seats = fact.seats.iter().flatten();
            seats.clone().any(|out| out.item == pool)
        };
        for draw in fact.moves.iter() {
            // Of an item of seats the total goes with each seat.
            let total = if destroyed && !by_seat(draw.pool) { -1 } else { 0 };
            let signs = Signs { sold: -1, total, blocked: 1, held: 0 };
            self.shift(std::slice::from_ref(draw), signs);
        }
        let total = if destroyed { -1 } else { 0 };
        self.seats_out(fact.seats.as_deref(), Signs { total, ..Signs::default() });
        if let CancelTo::Block(label) = &fact.to {
            let pool = fact.moves.first().map(|draw| draw.pool);
            let item = pool.and_then(|pool| self.catalog.items.get(pool.0 as usize));
            if let Some(sale) = item.map(|item| item.sale) {
                self.label(sale, label);
            }
        }
    }

    fn item_defined(&mut self, item: &ItemDefined) {
        let place = item.item.0 as usize;
        put(&mut self.catalog.items, place, ItemName { sale: item.sale, name: item.name.clone() });
        if place >= self.pools.len() {
            self.pools.push(Pool::default());
        }
        let (total, oversell) = (item.total, item.oversell_limit);
        self.change(item.item, |counts| {
            (counts.total, counts.oversell_limit) = (total, oversell);
        });
    }

    fn sale_defined(&mut self, sale: &SaleDefined) {
        let place = sale.sale.0 as usize;
        let labels = self.catalog.sales.get(place).map(|known| known.labels.clone());
        let labels = labels.unwrap_or_default();
        let entry = SaleName { shop: sale.shop, name: sale.name.clone(), labels };
        put(&mut self.catalog.sales, place, entry);
        if let Some(returns) = &sale.terms.returns_to {
            self.label(sale.sale, &returns.label);
        }
    }

    fn seats_changed(&mut self, changed: &SeatsChanged) {
        let names = Arc::make_mut(self.catalog.seats.entry(changed.item).or_default());
        changed.added.iter().for_each(|seat| names.push(seat.name.as_str()));
        let unblocked = changed.unblocked.as_deref().unwrap_or_default();
        self.shift(unblocked, Signs { blocked: -1, ..Signs::default() });
        let (total, unplanned) = (changed.total, changed.unplanned);
        self.change(changed.item, |counts| {
            (counts.total, counts.unplanned) = (total, unplanned);
        });
    }

    fn set_aside(&mut self, moved: &BlockMoved, sign: i64) {
        let sale = self.catalog.items.get(moved.item.0 as usize).map(|item| item.sale);
        if let Some(sale) = sale {
            self.label(sale, &moved.label);
        }
        let units = sign * i64::from(moved.quantity);
        self.change(moved.item, |counts| add(&mut counts.blocked, units));
        if let (Some(seats), 1) = (&moved.seats, sign) {
            self.seats_taken(moved.item, seats);
        }
    }

    /// A label that its sale did not have is its next one.
    fn label(&mut self, sale: SaleIx, label: &Name) {
        let Some(sale) = self.catalog.sales.get_mut(sale.0 as usize) else { return };
        if !sale.labels.contains(label) {
            sale.labels.push(label.clone());
        }
    }

    fn seats_taken(&mut self, item: ItemIx, seats: &[SeatNo]) {
        let times = self.seat_times.entry(item).or_default();
        for seat in seats {
            let place = seat.0 as usize;
            if place >= times.len() {
                times.resize(place + 1, Timestamp(0));
            }
            times[place] = self.at;
        }
    }

    fn seats_out(&mut self, seats: Option<&[SeatOut]>, signs: Signs) {
        for out in seats.unwrap_or_default() {
            let gone = out.gone.unwrap_or(false);
            self.change(out.item, |counts| {
                if gone {
                    add(&mut counts.unplanned, -1);
                } else {
                    add(&mut counts.total, signs.total);
                }
            });
        }
    }

    fn shift(&mut self, draws: &[Draw], signs: Signs) {
        for draw in draws {
            let units = i64::from(draw.quantity);
            let blocked = if draw.label.is_some() { signs.blocked } else { 0 };
            self.change(draw.pool, |counts| {
                add(&mut counts.held, signs.held * units);
                add(&mut counts.sold, signs.sold * units);
                add(&mut counts.blocked, blocked * units);
                add(&mut counts.total, signs.total * units);
            });
        }
    }

    fn change(&mut self, item: ItemIx, change: impl FnOnce(&mut Counts)) {
        let Some(pool) = self.pools.get_mut(item.0 as usize) else { return };
        change(&mut pool.counts);
        let (counts, at) = (&pool.counts, self.at);
        let since = |known: Option<Timestamp>, is: bool| if is { known.or(Some(at)) } else { None };
        pool.gone_at = since(pool.gone_at, counts.free() == 0);
        let owned = u64::from(counts.sold) + u64::from(counts.blocked);
        pool.sold_at = since(pool.sold_at, owned >= counts.cap());
    }
}
