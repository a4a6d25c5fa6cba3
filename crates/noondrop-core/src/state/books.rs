//! What is on offer: shops, sales, items and their accounts, and who ever acted.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use smallvec::SmallVec;

use crate::command::{Actor, BuyerLimit, SaleTerms};
use crate::fact::Draw;
use crate::ids::{Name, Role};
use crate::outcome::{Counts, ItemView, SaleState, SaleView, ShopView};
use crate::planted::{self, Bug};
use crate::seats::SeatNames;
use crate::state::seating::Seating;
use crate::state::sum;
use crate::units::{ActorIx, ItemIx, LabelIx, SaleIx, ShopIx, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Shop {
    #[n(0)]
    pub(super) name: Name,
    #[n(1)]
    pub(super) live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Sale {
    #[n(0)]
    pub(super) shop: ShopIx,
    #[n(1)]
    pub(super) name: Name,
    #[n(2)]
    pub(super) terms: SaleTerms,
    #[n(3)]
    pub(super) version: u32,
    #[n(4)]
    pub(super) state: SaleState,
    /// Labels under which units of its items were ever set aside; only ever added to, so that a place in it stays.
    #[n(5)]
    pub(super) labels: Option<Vec<Name>>,
}

impl Sale {
    /// When the clock moves this sale next, and where.
    pub(super) fn next_move(&self) -> Option<(Timestamp, SaleState)> {
        let closing = self.terms.closes_at.map(|at| (at, SaleState::Closed));
        match self.state {
            SaleState::Scheduled => {
                // Its opening time was taken away after it was published: it opens now.
                let opening = (self.terms.opens_at.unwrap_or_default(), SaleState::Open);
                [Some(opening), closing].into_iter().flatten().min_by_key(|(at, _)| *at)
            }
            SaleState::Open | SaleState::Paused => closing,
            SaleState::Draft | SaleState::Closed | SaleState::Archived => None,
        }
    }

    /// Whether usage per buyer has to be counted at all.
    pub(super) fn counts_buyers(&self) -> bool {
        !self.terms.limits.is_empty() || self.terms.live_holds_per_buyer.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Item {
    #[n(0)]
    pub(super) sale: SaleIx,
    #[n(1)]
    pub(super) name: Name,
    #[n(2)]
    pub(super) version: u32,
    #[n(3)]
    pub(super) draws: Vec<ItemIx>,
    #[n(4)]
    pub(super) quarantined: bool,
    /// The items that it counts against directly; absent where it counts against none.
    #[n(5)]
    pub(super) counts_against: Option<Vec<ItemIx>>,
    #[n(6)]
    pub(super) seated: bool,
}

impl Item {
    pub(super) fn counts_against(&self) -> &[ItemIx] {
        self.counts_against.as_deref().unwrap_or_default()
    }

    /// Whether it has no units of its own.
    pub(super) fn is_view(&self, own: ItemIx) -> bool {
        self.draws.first() != Some(&own)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct ActorEntry {
    #[n(0)]
    pub(super) name: Name,
    #[n(1)]
    pub(super) role: Role,
    #[n(2)]
    pub(super) shop: Name,
}

/// Names by index, for whoever renders answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Rises with every change.
    pub version: u64,
    /// By [`ShopIx`].
    pub shops: Vec<ShopName>,
    /// By [`SaleIx`].
    pub sales: Vec<SaleName>,
    /// By [`ItemIx`].
    pub items: Vec<ItemName>,
    /// Of items of seats: their seats' names.
    pub seats: BTreeMap<ItemIx, Arc<SeatNames>>,
    /// By [`ActorIx`], from [`ActorIx::FIRST`] on.
    pub actors: Vec<(Name, Role)>,
}

/// A shop's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopName {
    /// Its id.
    pub name: Name,
    /// Whether it sells for real.
    pub live: bool,
}

/// A sale's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaleName {
    /// Its shop.
    pub shop: ShopIx,
    /// Its id.
    pub name: Name,
    /// Labels under which units are, or were, set aside; by [`LabelIx`].
    pub labels: Vec<Name>,
}

/// An item's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemName {
    /// Its sale.
    pub sale: SaleIx,
    /// Its id.
    pub name: Name,
}

/// Everything on offer.
#[derive(Clone, Default)]
pub(super) struct Books {
    pub(super) shops: Vec<Shop>,
    pub(super) sales: Vec<Sale>,
    pub(super) items: Vec<Item>,
    pub(super) counts: Vec<Counts>,
    pub(super) actors: Vec<ActorEntry>,
    /// Live holds per sale; follows from the holds.
    pub(super) live: Vec<u64>,
    /// Units held or sold per item that lines name; follows from the holds.
    pub(super) claimed: Vec<u64>,
    /// Units set aside, where there are any.
    pub(super) blocks: BTreeMap<(ItemIx, LabelIx), u32>,
    /// Per item, since when its own units are sold out; follows from the facts, turn by turn.
    pub(super) sold_out_since: Vec<Option<Timestamp>>,
    shop_names: BTreeMap<Name, ShopIx>,
    sale_names: Vec<BTreeMap<Name, SaleIx>>,
    item_names: Vec<BTreeMap<Name, ItemIx>>,
    /// Per item, which of its sale's limits count it.
    limits: Vec<SmallVec<[u16; 2]>>,
    /// When the clock moves a sale.
    moves: BTreeSet<(Timestamp, SaleIx)>,
    version: u64,
    catalog: Arc<Catalog>,
}

fn ix(len: usize) -> u32 {
    u32::try_from(len).expect("definitions are counted in 32 bits")
}

impl Books {
    pub(super) fn next_shop(&self) -> ShopIx {
        ShopIx(ix(self.shops.len()))
    }

    pub(super) fn next_sale(&self) -> SaleIx {
        SaleIx(ix(self.sales.len()))
    }

    pub(super) fn next_item(&self) -> ItemIx {
        ItemIx(ix(self.items.len()))
    }

    pub(super) fn next_actor(&self) -> ActorIx {
        ActorIx(ix(self.actors.len()) + ActorIx::FIRST)
    }

    pub(super) fn shop(&self, name: &str) -> Option<ShopIx> {
        self.shop_names.get(name).copied()
    }

    pub(super) fn sale(&self, shop: ShopIx, name: &str) -> Option<SaleIx> {
        self.sale_names[shop.0 as usize].get(name).copied()
    }

    pub(super) fn item(&self, sale: SaleIx, name: &str) -> Option<ItemIx> {
        self.item_names[sale.0 as usize].get(name).copied()
    }

    pub(super) fn sales_of(&self, shop: ShopIx) -> impl Iterator<Item = SaleIx> + '_ {
        self.sale_names[shop.0 as usize].values().copied()
    }

    pub(super) fn items_of(&self, sale: SaleIx) -> impl Iterator<Item = ItemIx> + '_ {
        self.item_names[sale.0 as usize].values().copied()
    }

    pub(super) fn item_count(&self, sale: SaleIx) -> usize {
        self.item_names[sale.0 as usize].len()
    }

    pub(super) fn actor(&self, shop: &Name, actor: &Actor) -> Option<ActorIx> {
        match actor {
            Actor::Buyer { .. } => Some(ActorIx::BUYER),
            Actor::Principal { name, role } => {
                // Principals are few, and configured.
                let place = self.actors.iter().position(|seen| {
                    seen.name == *name && seen.role == *role && seen.shop == *shop
                })?;
                Some(ActorIx(ix(place) + ActorIx::FIRST))
            }
        }
    }

    /// The limits of its sale that count this item.
    pub(super) fn limits_of(&self, item: ItemIx) -> &[u16] {
        &self.limits[item.0 as usize]
    }

    /// What a number of units of an item takes from which pools.
    pub(super) fn draws(&self, item: ItemIx, quantity: u32) -> impl Iterator<Item = Draw> + '_ {
        self.draws_from(item, quantity, None)
    }

    /// The same where they come out of a block, or go to one: it lies in the first of the pools.
    pub(super) fn draws_from(
        &self,
        item: ItemIx,
        quantity: u32,
        label: Option<LabelIx>,
    ) -> impl Iterator<Item = Draw> + '_ {
        let mut label = label;
        let pools = self.items[item.0 as usize].draws.iter();
        let most = if planted::is(Bug::OwnPoolOnly) { 1 } else { usize::MAX };
        pools.take(most).map(move |&pool| Draw { pool, quantity, label: label.take() })
    }

    /// The next time at which the clock moves a sale.
    pub(super) fn next_move(&self) -> Option<(Timestamp, SaleIx)> {
        self.moves.first().copied()
    }

    /// The sales that the clock moves up to `at`.
    pub(super) fn moves_until(&self, at: Timestamp) -> impl Iterator<Item = SaleIx> + '_ {
        self.moves.range(..=(at, SaleIx(u32::MAX))).map(|&(_, sale)| sale)
    }

    /// Writes a shop, new or old; none takes the newest out again. What was there before.
    pub(super) fn set_shop(&mut self, shop: ShopIx, new: Option<Shop>) -> Option<Shop> {
        self.changed();
        let at = shop.0 as usize;
        match new {
            Some(new) if at < self.shops.len() => {
                Some(core::mem::replace(&mut self.shops[at], new))
            }
            Some(new) => {
                self.shop_names.insert(new.name.clone(), shop);
                self.shops.push(new);
                self.sale_names.push(BTreeMap::new());
                None
            }
            None => {
                self.sale_names.pop();
                let old = self.shops.pop();
                self.shop_names.remove(old.as_ref()?.name.as_str());
                old
            }
        }
    }

    /// Writes a sale, new or old; none takes the newest out again. What was there before.
    pub(super) fn set_sale(&mut self, sale: SaleIx, new: Option<Sale>) -> Option<Sale> {
        self.changed();
        let at = sale.0 as usize;
        if let Some((time, _)) = self.sales.get(at).and_then(Sale::next_move) {
            self.moves.remove(&(time, sale));
        }
        if let Some((time, _)) = new.as_ref().and_then(Sale::next_move) {
            self.moves.insert((time, sale));
        }
        let old = match new {
            Some(new) if at < self.sales.len() => {
                Some(core::mem::replace(&mut self.sales[at], new))
            }
            Some(new) => {
                self.sale_names[new.shop.0 as usize].insert(new.name.clone(), sale);
                self.sales.push(new);
                self.item_names.push(BTreeMap::new());
                self.live.push(0);
                None
            }
            None => {
                self.item_names.pop();
                self.live.pop();
                let old = self.sales.pop();
                let gone = old.as_ref()?;
                self.sale_names[gone.shop.0 as usize].remove(gone.name.as_str());
                old
            }
        };
        if at < self.sales.len() {
            self.count_limits(sale);
        }
        old
    }

    /// Finds again which limits of a sale count which of its items.
    pub(super) fn count_limits(&mut self, sale: SaleIx) {
        for item in self.items_of(sale).collect::<Vec<_>>() {
            self.limits[item.0 as usize] = self.limits_counting(item);
        }
    }

    /// Writes an item, new or old; none takes the newest out again. What was there before.
    pub(super) fn set_item(&mut self, item: ItemIx, new: Option<Item>) -> Option<Item> {
        self.changed();
        let at = item.0 as usize;
        match new {
            Some(new) if at < self.items.len() => {
                let old = core::mem::replace(&mut self.items[at], new);
                self.limits[at] = self.limits_counting(item);
                Some(old)
            }
            Some(new) => {
                self.item_names[new.sale.0 as usize].insert(new.name.clone(), item);
                self.items.push(new);
                self.counts.push(Counts::default());
                self.claimed.push(0);
                self.sold_out_since.push(None);
                let limits = self.limits_counting(item);
                self.limits.push(limits);
                None
            }
            None => {
                self.counts.pop();
                self.claimed.pop();
                self.sold_out_since.pop();
                self.limits.pop();
                let old = self.items.pop();
                let gone = old.as_ref()?;
                self.item_names[gone.sale.0 as usize].remove(gone.name.as_str());
                old
            }
        }
    }

    fn limits_counting(&self, item: ItemIx) -> SmallVec<[u16; 2]> {
        let item = &self.items[item.0 as usize];
        let limits = self.sales[item.sale.0 as usize].terms.limits.iter().zip(0..);
        let shares = !planted::is(Bug::LimitsCountLines);
        // A pool may not be there yet while a snapshot is read; all are counted again at its end.
        let pools = || item.draws.iter().filter_map(|pool| self.items.get(pool.0 as usize));
        let named = |limit: &BuyerLimit| {
            limit.items.contains(&item.name)
                || shares && pools().any(|pool| limit.items.contains(&pool.name))
        };
        limits
            .filter(|(limit, _)| limit.items.is_empty() || named(limit))
            .map(|(_, place)| place)
            .collect()
    }

    pub(super) fn add_actor(&mut self, actor: ActorEntry) {
        self.changed();
        self.actors.push(actor);
    }

    pub(super) fn pop_actor(&mut self) {
        self.changed();
        self.actors.pop();
    }

    pub(super) fn changed(&mut self) {
        self.version += 1;
    }

    /// Names by index. Made anew only after a change.
    pub(super) fn catalog(&mut self, seating: &Seating) -> Arc<Catalog> {
        if self.catalog.version != self.version {
            self.catalog = Arc::new(Catalog {
                version: self.version,
                shops: self
                    .shops
                    .iter()
                    .map(|shop| ShopName { name: shop.name.clone(), live: shop.live })
                    .collect(),
                sales: self
                    .sales
                    .iter()
                    .map(|sale| SaleName {
                        shop: sale.shop,
                        name: sale.name.clone(),
                        labels: sale.labels().to_vec(),
                    })
                    .collect(),
                items: self
                    .items
                    .iter()
                    .map(|item| ItemName { sale: item.sale, name: item.name.clone() })
                    .collect(),
                seats: seating.names(&self.catalog.seats),
                actors: self.actors.iter().map(|a| (a.name.clone(), a.role)).collect(),
            });
        }
        self.catalog.clone()
    }

    pub(super) fn shop_view(&self, shop: ShopIx, created: bool) -> ShopView {
        let entry = &self.shops[shop.0 as usize];
        ShopView { shop, name: entry.name.clone(), live: entry.live, created }
    }

    pub(super) fn sale_view(&self, sale: SaleIx, entry: &Sale, created: bool) -> SaleView {
        let shop = &self.shops[entry.shop.0 as usize];
        SaleView {
            sale,
            name: entry.name.clone(),
            shop: shop.name.clone(),
            live: shop.live,
            state: entry.state,
            terms: entry.terms.clone(),
            version: entry.version,
            created,
        }
    }

    pub(super) fn item_view(&self, item: ItemIx) -> ItemView {
        let entry = &self.items[item.0 as usize];
        ItemView {
            item,
            sale: entry.sale,
            counts: self.counts[item.0 as usize],
            version: entry.version,
            quarantined: entry.quarantined,
            created: false,
            seated: entry.seated,
            is_view: entry.is_view(item),
            counts_against: entry.counts_against().to_vec(),
            blocks: self.block_views(item, entry.sale),
        }
    }

    pub(super) fn counts_sum(item: ItemIx, counts: &Counts) -> u128 {
        let mut bytes = [0; 24];
        let fields = [
            counts.total,
            counts.held,
            counts.sold,
            counts.blocked,
            counts.oversell_limit,
            counts.unplanned,
        ];
        for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        sum::entry(sum::COUNTS, u64::from(item.0), &bytes)
    }

    /// What every definition and account adds to `state_sum`.
    pub(super) fn sum(&self) -> u128 {
        let shops = self.shops.iter().zip(0..).map(|(e, id)| sum::encoded(sum::SHOP, id, e));
        let sales = self.sales.iter().zip(0..).map(|(e, id)| sum::encoded(sum::SALE, id, e));
        let items = self.items.iter().zip(0..).map(|(e, id)| sum::encoded(sum::ITEM, id, e));
        let actors = self.actors.iter().zip(0..).map(|(e, id)| sum::encoded(sum::ACTOR, id, e));
        let counts = self.counts.iter().zip(0..).map(|(e, id)| Self::counts_sum(ItemIx(id), e));
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|(&(item, label), &units)| Self::block_sum(item, label, units));
        let sums = shops.chain(sales).chain(items).chain(actors).chain(counts).chain(blocks);
        sums.fold(0, u128::wrapping_add)
    }
}
