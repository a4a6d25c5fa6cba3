//! The log, read for callers off the sequencer: one scan at a time, no further than what was answered, and each shop
//! sees its own. Which rows and facts are wanted is not decided here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    Catalog, Digest16, Entry, Fact, HoldId, HoldNo, ItemIx, Name, SaleIx, ShopIx, Timestamp,
};
use noondrop_engine::Handle;
use noondrop_log::{GENESIS, LogReader, Position, PositionRef, Row};
use serde_json::Value;

use super::app::App;
use super::error::fault_problem;
use super::problem::Problem;
use super::render::time_text;
use crate::audit::naming::{Naming, Sees};
use crate::audit::sentence::sentence;
use crate::ledger::{Names, Sight, fact_value, holds_of, key_of, touched};

/// Holds that are looked up between two turns.
const LOOK_UP_MAX: usize = 1_024;

/// The log cannot be read, or not understood.
pub fn unreadable(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "the log could not be read");
    Problem::new("not_ready", "The log cannot be read at the moment.").after(1)
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// The row with this number, whatever its history.
    Number(u64),
    /// This row and no other.
    Place(PositionRef),
}

impl After {
    /// From a query. A position that another history has in its place is refused.
    pub async fn read(app: &App, text: Option<&str>) -> Result<Self, Problem> {
        let Some(text) = text else { return Ok(Self::Number(0)) };
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        app.has_reached("after", text).await.map(Self::Place)
    }
}

/// A scan that has its turn.
pub struct Reading {
    /// The log itself. It may have rows that nobody was told of yet.
    pub reader: Box<dyn LogReader>,
    /// The newest row that may be shown.
    pub until: Position,
    /// What of it a shop may see.
    pub eyes: Eyes,
}

impl Reading {
    /// Reads on a thread that may wait. The turn is the thread's: who hangs up does not let the next scan in beside it.
    pub async fn of<T: Send + 'static>(
        app: &App,
        shop: &Name,
        work: impl FnOnce(&mut Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = app.scans.clone().acquire_owned().await.map_err(|error| unreadable(&error))?;
        let (handle, shop) = (app.handle.clone(), shop.clone());
        let scan = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let until = handle.position();
            let reader = handle.opener().reader().map_err(|error| unreadable(&error))?;
            work(&mut Self { reader, until, eyes: Eyes::new(handle, shop) })
        });
        scan.await.map_err(|error| unreadable(&error))?
    }

    /// The row to begin after; none if it lies beyond what may be shown.
    pub fn find(&mut self, after: After) -> Result<Option<Position>, Problem> {
        let seq = match after {
            After::Number(seq) => seq,
            After::Place(place) => place.seq,
        };
        if seq == GENESIS.seq {
            return Ok(Some(GENESIS));
        }
        if seq > self.until.seq {
            return Ok(None);
        }
        let row = self.reader.row(seq).map_err(|error| unreadable(&error))?;
        let found = row.map(|row| row.position());
        match (after, found) {
            (After::Place(place), found) if !found.is_some_and(|it| place.matches(&it)) => {
                Err(Problem::history_changed(&place.to_string(), self.until))
            }
            (_, found) => Ok(found),
        }
    }
}

/// Where a hold belongs.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: HoldId,
    sale: SaleIx,
}

/// What one shop sees of the facts.
pub struct Eyes {
    handle: Handle,
    catalog: Arc<Catalog>,
    shop: Name,
    holds: HashMap<HoldNo, Known>,
    /// Keys of facts that were shown: a repeat names nothing else.
    keys: HashSet<Digest16>,
    /// The seat that is asked about: of facts about many, sentences name it.
    pub seat: Option<(ItemIx, SeatNo)>,
}

impl Eyes {
    fn new(handle: Handle, shop: Name) -> Self {
        let catalog = handle.catalog();
        Self { handle, catalog, shop, holds: HashMap::new(), keys: HashSet::new(), seat: None }
    }

    /// Looks up the holds that facts name, to be done before they are shown. With `only`, the others of a fact about
    /// many do not matter.
    pub fn learn<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a Entry>,
        only: Option<HoldNo>,
    ) -> Result<(), Problem> {
        let named = entries.flat_map(|entry| match (&entry.fact, only) {
            (Fact::HoldsExpired(_), Some(only)) => vec![only],
            (fact, _) => holds_of(fact),
        });
        let unknown: BTreeSet<HoldNo> = named.filter(|no| !self.holds.contains_key(no)).collect();
        let unknown: Vec<HoldNo> = unknown.into_iter().collect();
        for some in unknown.chunks(LOOK_UP_MAX) {
            let some = some.to_vec();
            let found = self.handle.query_blocking(move |state, _| {
                let known = some.into_iter().filter_map(|no| {
                    state.hold_place(no).map(|(id, sale)| (no, Known { id, sale }))
                });
                known.collect::<Vec<_>>()
            });
            self.holds.extend(found.map_err(|fault| fault_problem(&fault))?.value);
        }
        Ok(())
    }

    fn is_alone(&self) -> bool {
        self.catalog.shops.len() == 1
    }

    fn is_own(&self, shop: ShopIx) -> bool {
        self.catalog.shops.get(shop.0 as usize).is_some_and(|known| known.name == self.shop)
    }

    fn has_hold(&self, hold: HoldNo) -> bool {
        self.holds.get(&hold).is_some_and(|known| self.has_sale(known.sale))
    }

    fn has_pool(&self, item: ItemIx) -> bool {
        self.sale_of_item(item).is_some_and(|sale| self.has_sale(sale))
    }

    fn has_sale(&self, sale: SaleIx) -> bool {
        let sale = self.catalog.sales.get(sale.0 as usize);
        sale.is_some_and(|sale| self.is_own(sale.shop))
    }

    /// The sale that a fact is about.
    fn sale_of(&self, fact: &Fact) -> Option<SaleIx> {
        match fact {
            Fact::SaleMoved(fact) => Some(fact.sale),
            Fact::ItemDefined(fact) => Some(fact.sale),
            Fact::ItemAdjusted(fact) => self.sale_of_item(fact.item),
            Fact::ItemBlocked(fact) | Fact::ItemUnblocked(fact) => self.sale_of_item(fact.item),
            Fact::BlockRefused(fact) => self.sale_of_item(fact.item),
            Fact::SeatsChanged(fact) => self.sale_of_item(fact.item),
            Fact::HoldCreated(fact) => Some(fact.sale),
            Fact::HoldRefused(fact) => Some(fact.sale),
            other => touched(other)
                .and_then(|touched| self.holds.get(&touched.hold))
                .map(|known| known.sale),
        }
    }

    fn sale_of_item(&self, item: ItemIx) -> Option<SaleIx> {
        self.catalog.items.get(item.0 as usize).map(|item| item.sale)
    }

    /// Whether a fact is about a sale of this name.
    pub fn is_of_sale(&self, fact: &Fact, name: &str) -> bool {
        let sale = self.sale_of(fact).and_then(|sale| self.catalog.sales.get(sale.0 as usize));
        sale.is_some_and(|sale| sale.name.as_str() == name)
    }

    /// Whether the shop may see a fact: its own, and those of the log itself. To be asked in the order of the log.
    pub fn see(&mut self, fact: &Fact) -> bool {
        let seen = match fact {
            Fact::LogStarted(_)
            | Fact::SettingsChanged(_)
            | Fact::LossAccepted(_)
            | Fact::LogRestored(_) => true,
            // What does not say whose it is belongs to the only shop there is.
            _ if self.is_alone() => true,
            Fact::ShopDefined(fact) => self.is_own(fact.shop),
            Fact::SaleDefined(fact) => self.is_own(fact.shop),
            Fact::BuyerErased(fact) => self.is_own(fact.shop),
            Fact::ActorSeen(fact) => fact.shop == self.shop,
            Fact::KeyRepeated(fact) => self.keys.contains(&fact.key),
            Fact::HoldsExpired(fact) => fact.holds().any(|(no, _)| self.has_hold(no)),
            other => self.sale_of(other).is_some_and(|sale| self.has_sale(sale)),
        };
        if let (true, Some(key)) = (seen, key_of(fact)) {
            self.keys.insert(key.hash);
        }
        seen
    }

    /// A fact as it is shown, with a sentence about it and its place; with `only`, what it says of this hold.
    #[must_use]
    pub fn told(&self, entry: &Entry, only: Option<HoldNo>, row: &Row) -> Value {
        let at = Timestamp(row.at);
        let sight = Shown { eyes: self, only };
        let naming = Naming { catalog: &self.catalog, sees: &sight };
        let mut value = self.value(entry, only);
        value["at"] = time_text(at).into();
        value["position"] = row.position().to_string().into();
        value["sentence"] = sentence(entry, at, naming).into();
        value
    }

    /// A fact as it is shown; with `only`, what it says of this hold.
    #[must_use]
    pub fn value(&self, entry: &Entry, only: Option<HoldNo>) -> Value {
        let sight = Shown { eyes: self, only };
        fact_value(entry, Names { catalog: &self.catalog, sight: &sight })
    }
}

struct Shown<'a> {
    eyes: &'a Eyes,
    only: Option<HoldNo>,
}

impl Sight for Shown<'_> {
    fn hold(&self, hold: HoldNo) -> Value {
        self.eyes.holds.get(&hold).map_or(Value::Null, |known| known.id.to_string().into())
    }

    fn lapse(&self, hold: HoldNo) -> bool {
        let own = || self.eyes.is_alone() || self.eyes.has_hold(hold);
        self.only.map_or_else(own, |only| only == hold)
    }

    fn pool(&self, item: ItemIx) -> bool {
        self.only.is_none() && self.eyes.has_pool(item)
    }
}

/// Sentences tell no more than members do.
impl Sees for Shown<'_> {
    fn hold(&self, hold: HoldNo) -> Option<HoldId> {
        self.eyes.holds.get(&hold).map(|known| known.id)
    }

    fn lapse(&self, hold: HoldNo) -> bool {
        Sight::lapse(self, hold)
    }

    fn seat(&self, item: ItemIx, seat: SeatNo) -> bool {
        self.eyes.seat == Some((item, seat)) || Sight::pool(self, item)
    }
}
