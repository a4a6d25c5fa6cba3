//! Definitions: shops, sales, items, and the units that items have.

use alloc::format;
use alloc::vec::Vec;

use super::block::check_label;
use super::plan::check_new;
use super::share::Shared;
use super::{By, Decided, Entries, invalid};
use crate::command::{
    ItemAdjust, ItemPut, KeyUse, SaleMove, SalePut, SaleStep, SaleTerms, ShopPut,
};
use crate::fact::{
    Entry, Fact, ItemAdjusted, ItemDefined, Private, SaleDefined, SaleMoved, SeatsChanged,
    ShopDefined,
};
use crate::limits::{
    LIMIT_ITEMS_MAX, SALE_ITEMS_MAX, SALE_LIMITS_MAX, TEXT_BYTES_MAX, TOTAL_MAX, TTL_SECONDS_MAX,
};
use crate::outcome::{Counts, ItemView, Outcome, SaleState, SaleView, ShopView};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::seats::{SeatDef, SeatMap};
use crate::state::State;
use crate::state::books::Sale;
use crate::units::{ActorIx, ItemIx, SaleIx, Timestamp};

impl State {
    pub(super) fn decide_shop(&self, by: ActorIx, put: &ShopPut, out: &mut Entries) -> Outcome {
        let known = self.books.shop(put.name.as_str());
        let shop = known.unwrap_or_else(|| self.books.next_shop());
        let view =
            ShopView { shop, name: put.name.clone(), live: put.live, created: known.is_none() };
        if known.is_some_and(|shop| self.books.shops[shop.0 as usize].live == put.live) {
            return Outcome::Shop(view);
        }
        let fact = ShopDefined { shop, name: put.name.clone(), live: put.live, by };
        out.push(Fact::ShopDefined(fact).into());
        Outcome::Shop(view)
    }

    pub(super) fn decide_sale(&self, by: &By, put: &SalePut, out: &mut Entries) -> Decided {
        check_terms(&put.terms)?;
        let known = self.books.sale(by.shop, put.sale.as_str());
        let old = known.map(|sale| &self.books.sales[sale.0 as usize]);
        if old.is_some_and(|old| old.state == SaleState::Archived) {
            return Err(Refusal::SaleArchived);
        }
        let version_now = old.map_or(0, |old| old.version);
        check_version(put.if_version, version_now)?;
        let sale = known.unwrap_or_else(|| self.books.next_sale());
        let entry = Sale {
            shop: by.shop,
            name: put.sale.clone(),
            terms: put.terms.clone(),
            version: version_now + 1,
            state: old.map_or(SaleState::Draft, |old| old.state),
            labels: old.and_then(|old| old.labels.clone()),
        };
        if let Some(returns) = &put.terms.returns_to {
            check_label("returns_to.label", &entry, &returns.label)?;
        }
        if let Some(old) = old.filter(|old| old.terms == put.terms) {
            return Ok(self.sale_outcome(sale, old, false));
        }
        let fact = SaleDefined {
            sale,
            shop: by.shop,
            name: put.sale.clone(),
            terms: put.terms.clone(),
            version: entry.version,
            by: by.actor,
        };
        out.push(Fact::SaleDefined(fact).into());
        Ok(self.sale_outcome(sale, &entry, known.is_none()))
    }

    pub(super) fn decide_move(&self, by: &By, step: &SaleMove, out: &mut Entries) -> Decided {
        let sale = self.books.sale(by.shop, step.sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        let mut entry = self.books.sales[sale.0 as usize].clone();
        let to = self.step(sale, &entry, step.to)?;
        if to == entry.state {
            return Ok(self.sale_outcome(sale, &entry, false));
        }
        entry.state = to;
        let fact = SaleMoved { sale, state: to, by: by.actor };
        out.push(Fact::SaleMoved(fact).into());
        Ok(self.sale_outcome(sale, &entry, false))
    }

    /// Where a step leads from where the sale is; being there already is fine.
    fn step(&self, sale: SaleIx, entry: &Sale, step: SaleStep) -> Result<SaleState, Refusal> {
        use SaleState::{Archived, Closed, Draft, Open, Paused, Scheduled};
        let at = self.turn.moment.at;
        let is_due = |time: Option<Timestamp>| time.is_some_and(|time| time <= at);
        match (step, entry.state) {
            (SaleStep::Publish, Draft) | (SaleStep::Reopen, Closed) => {
                if is_due(entry.terms.closes_at) {
                    return Err(invalid("closes_at", "in the future; move it before this step"));
                }
                let waits = entry.terms.opens_at.is_some_and(|opens_at| opens_at > at);
                Ok(if waits { Scheduled } else { Open })
            }
            (SaleStep::Pause, Open | Paused) => Ok(Paused),
            (SaleStep::Resume, Paused | Open) => Ok(Open),
            (SaleStep::Close, Scheduled | Open | Paused | Closed) => Ok(Closed),
            (SaleStep::Archive, Closed) if self.books.live[sale.0 as usize] > 0 => {
                let live = self.books.live[sale.0 as usize];
                Err(invalid("sale", format!("without live holds; {live} are left")))
            }
            (SaleStep::Archive, Closed | Archived) => Ok(Archived),
            (SaleStep::Publish | SaleStep::Reopen, there @ (Scheduled | Open)) => Ok(there),
            (_, Archived) => Err(Refusal::SaleArchived),
            (_, Closed) => Err(Refusal::SaleClosed),
            (_, Paused) => Err(Refusal::SalePaused),
            (SaleStep::Archive, Open) => Err(invalid("sale", "closed first, then archived")),
            (_, Draft | Scheduled) => Err(Refusal::SaleNotOpen { opens_at: entry.terms.opens_at }),
        }
    }

    fn sale_outcome(&self, sale: SaleIx, entry: &Sale, created: bool) -> Outcome {
        let shop = &self.books.shops[entry.shop.0 as usize];
        Outcome::Sale(SaleView {
            sale,
            name: entry.name.clone(),
            shop: shop.name.clone(),
            live: shop.live,
            state: entry.state,
            terms: entry.terms.clone(),
            version: entry.version,
            created,
        })
    }

    pub(super) fn decide_item(&self, by: &By, put: &ItemPut, out: &mut Entries) -> Decided {
        let sale = self.books.sale(by.shop, put.sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        if self.books.sales[sale.0 as usize].state == SaleState::Archived {
            return Err(Refusal::SaleArchived);
        }
        check_at_most("total", put.total.unwrap_or(0))?;
        check_at_most("oversell_limit", put.oversell_limit)?;
        if put.seats.is_some() && put.oversell_limit > 0 {
            return Err(invalid("oversell_limit", "0 on an item of seats"));
        }
        if !put.has_own() && put.oversell_limit > 0 {
            return Err(invalid("oversell_limit", "0 for an item without a total of its own"));
        }
        match self.books.item(sale, put.item.as_str()) {
            Some(item) => self.redefine(by, put, item, out),
            None => self.define(by, put, sale, out),
        }
    }

    fn define(&self, by: &By, put: &ItemPut, sale: SaleIx, out: &mut Entries) -> Decided {
        check_version(put.if_version, 0)?;
        if self.books.item_count(sale) >= SALE_ITEMS_MAX {
            return Err(invalid("item", format!("at most {SALE_ITEMS_MAX} items in a sale")));
        }
        let item = self.books.next_item();
        let shared = self.shared_by(item, sale, put)?;
        let seats = put.seats.as_deref();
        if let Some(defs) = seats {
            check_new(&SeatMap::new(), "seats", defs)?;
        }
        let number = |defs: &[SeatDef]| u32::try_from(defs.len()).expect("as many as were checked");
        let total = seats.map_or(put.total.unwrap_or(0), number);
        let counts = Counts { total, oversell_limit: put.oversell_limit, ..Counts::default() };
        let view = ItemView {
            item,
            sale,
            counts,
            version: 1,
            quarantined: false,
            created: true,
            is_view: !put.has_own(),
            counts_against: shared.direct.clone(),
            blocks: Vec::new(),
            seated: seats.is_some(),
        };
        let mut fact = item_defined(by, put, &view, shared);
        if seats.is_some() {
            fact.total = 0;
        }
        let seats = seats.filter(|defs| !defs.is_empty()).map(|defs| SeatsChanged {
            item,
            added: defs.to_vec(),
            planned: Vec::new(),
            removed: Vec::new(),
            total,
            by: by.actor,
            key: None,
            unplanned: 0,
            unblocked: None,
        });
        out.push(Fact::ItemDefined(fact).into());
        out.extend(seats.map(|seats| Fact::SeatsChanged(seats).into()));
        Ok(Outcome::Item(view))
    }

    fn redefine(&self, by: &By, put: &ItemPut, item: ItemIx, out: &mut Entries) -> Decided {
        let mut view = self.books.item_view(item);
        check_version(put.if_version, view.version)?;
        match (put.total, &put.seats) {
            (_, Some(_)) if !view.seated => {
                return Err(invalid("seats", "absent: this item has only a total"));
            }
            (None, Some(seats)) if seats.len() != view.counts.total as usize => {
                return Err(Refusal::UseAdjust { total: view.counts.total });
            }
            (None, None) if !view.is_view => {
                let now = view.counts.total;
                return Err(invalid(
                    "total",
                    format!("present; the item has {now} units of its own"),
                ));
            }
            (Some(_), _) if view.is_view => {
                return Err(invalid("total", "absent; the item has no units of its own"));
            }
            (Some(total), _) if total != view.counts.total => {
                return Err(Refusal::UseAdjust { total: view.counts.total });
            }
            _ => {}
        }
        if view.seated && put.oversell_limit > 0 {
            return Err(invalid("oversell_limit", "0 on an item of seats"));
        }
        let shared = self.shared_by(item, view.sale, put)?;
        let redraws = shared.direct != view.counts_against;
        if redraws {
            self.check_unclaimed(item)?;
        }
        if !redraws && put.oversell_limit == view.counts.oversell_limit {
            return Ok(Outcome::Item(view));
        }
        view.counts.oversell_limit = put.oversell_limit;
        view.version += 1;
        view.counts_against.clone_from(&shared.direct);
        let others = if redraws { self.redrawn(by.actor, item, &shared)? } else { Entries::new() };
        out.push(Fact::ItemDefined(item_defined(by, put, &view, shared)).into());
        out.extend(others);
        Ok(Outcome::Item(view))
    }

    pub(super) fn decide_adjust(
        &self,
        by: &By,
        key: Option<KeyUse>,
        adjust: &ItemAdjust,
        out: &mut Entries,
    ) -> Decided {
        let sale = self.books.sale(by.shop, adjust.sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        if self.books.sales[sale.0 as usize].state == SaleState::Archived {
            return Err(Refusal::SaleArchived);
        }
        let item = self.books.item(sale, adjust.item.as_str());
        let item =
            item.ok_or_else(|| Refusal::ItemNotFound { line: 0, item: adjust.item.clone() })?;
        let mut view = self.books.item_view(item);
        if view.seated {
            return Err(invalid(
                "item",
                "an item without seats; seats are added and removed by name",
            ));
        }
        if view.is_view {
            return Err(invalid("item", "one with a total of its own"));
        }
        check_version(adjust.if_total, view.counts.total)?;
        let now = i64::from(view.counts.total);
        let adds = if planted::is(Bug::AdjustSets) { adjust.by - now } else { adjust.by };
        let total = now.checked_add(adds);
        let total = total.and_then(|total| u32::try_from(total).ok());
        let total = total.filter(|&total| total <= TOTAL_MAX && adjust.by != 0);
        let total = total.ok_or_else(|| {
            let now = view.counts.total;
            invalid("by", format!("not 0, with a total of 0 to {TOTAL_MAX} after; it is {now} now"))
        })?;
        view.counts.total = total;
        let fact = ItemAdjusted { item, total, by_units: adds, by: by.actor, key };
        let private = Private { reason: Some(adjust.reason.clone()), ..Private::default() };
        let entry = Entry { fact: Fact::ItemAdjusted(fact), private: Some(private) };
        out.push(entry);
        Ok(Outcome::Item(view))
    }
}

fn item_defined(by: &By, put: &ItemPut, view: &ItemView, shared: Shared) -> ItemDefined {
    ItemDefined {
        item: view.item,
        sale: view.sale,
        name: put.item.clone(),
        total: view.counts.total,
        oversell_limit: put.oversell_limit,
        draws: shared.draws,
        version: view.version,
        by: by.actor,
        counts_against: (!shared.direct.is_empty()).then_some(shared.direct),
        seated: view.seated.then_some(true),
    }
}

fn check_version(seen: Option<u32>, now: u32) -> Result<(), Refusal> {
    match seen {
        Some(seen) if seen != now => Err(Refusal::VersionMismatch { now }),
        _ => Ok(()),
    }
}

fn check_at_most(field: &str, value: u32) -> Result<(), Refusal> {
    if value <= TOTAL_MAX { Ok(()) } else { Err(invalid(field, format!("0 to {TOTAL_MAX}"))) }
}

/// A sale's rules must be able to hold together.
fn check_terms(terms: &SaleTerms) -> Result<(), Refusal> {
    if terms.title.len() > TEXT_BYTES_MAX {
        return Err(invalid("title", format!("at most {TEXT_BYTES_MAX} bytes")));
    }
    if terms.closes_at.is_some_and(|closes| terms.opens_at.is_some_and(|opens| closes <= opens)) {
        return Err(invalid("closes_at", "after opens_at"));
    }
    let most = [
        ("hold_seconds", terms.hold_seconds, terms.hold_seconds_max),
        ("hold_seconds_max", terms.hold_seconds_max, terms.hold_chain_seconds_max),
        ("hold_chain_seconds_max", terms.hold_chain_seconds_max, TTL_SECONDS_MAX),
    ];
    for (field, value, most) in most {
        if !(1..=most).contains(&value) {
            return Err(invalid(field, format!("1 to {most}")));
        }
    }
    if terms.live_holds_per_buyer == Some(0) {
        return Err(invalid("live_holds_per_buyer", "at least 1, or absent"));
    }
    check_limits(terms)
}

fn check_limits(terms: &SaleTerms) -> Result<(), Refusal> {
    if terms.limits.len() > SALE_LIMITS_MAX {
        return Err(invalid("limits", format!("at most {SALE_LIMITS_MAX}")));
    }
    for (place, limit) in terms.limits.iter().enumerate() {
        if terms.limits[..place].iter().any(|other| other.name == limit.name) {
            return Err(invalid(format!("limits[{place}].name"), "each name once"));
        }
        if !(1..=TOTAL_MAX).contains(&limit.per_buyer) {
            return Err(invalid(format!("limits[{place}].per_buyer"), format!("1 to {TOTAL_MAX}")));
        }
        if limit.items.len() > LIMIT_ITEMS_MAX {
            let bound = format!("at most {LIMIT_ITEMS_MAX}");
            return Err(invalid(format!("limits[{place}].items"), bound));
        }
    }
    Ok(())
}
