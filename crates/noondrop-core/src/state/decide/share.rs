//! What an item counts against, and so from which pools a unit of it takes (RULES R8, "draws").

use alloc::format;
use alloc::vec::Vec;

use super::{Entries, invalid};
use crate::command::ItemPut;
use crate::fact::{Fact, ItemDefined};
use crate::limits::DRAWS_MAX;
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::state::State;
use crate::units::{ActorIx, ItemIx, SaleIx};

/// An item's place among the others.
pub(super) struct Shared {
    /// The items that it counts against directly.
    pub(super) direct: Vec<ItemIx>,
    /// The pools that a unit of it takes from, each once.
    pub(super) draws: Vec<ItemIx>,
}

impl State {
    /// What a definition says, checked.
    pub(super) fn shared_by(
        &self,
        item: ItemIx,
        sale: SaleIx,
        put: &ItemPut,
    ) -> Result<Shared, Refusal> {
        let named = put.counts_against.as_deref().unwrap_or_default();
        if named.len() > DRAWS_MAX {
            return Err(invalid("counts_against", format!("at most {DRAWS_MAX} items")));
        }
        if named.is_empty() && !put.has_own() {
            return Err(invalid("total", "present, where counts_against names no item"));
        }
        let mut direct: Vec<ItemIx> = Vec::new();
        for (name, place) in named.iter().zip(0..) {
            let field = || format!("counts_against[{place}]");
            let other = self.books.item(sale, name.as_str());
            let other = other.filter(|other| *other != item && !direct.contains(other));
            direct.push(
                other.ok_or_else(|| invalid(field(), "another item of this sale, each once"))?,
            );
            let newest = direct[direct.len() - 1];
            if self.books.items[newest.0 as usize].seated {
                return Err(invalid(
                    field(),
                    "an item with a total; a seat is only held by itself",
                ));
            }
            if self.reaches(newest, item) {
                return Err(invalid(field(), format!("not one that counts against {}", put.item)));
            }
        }
        let draws = self.resolve(item, put.has_own(), &|other| {
            if other == item { &direct } else { self.counts_against(other) }
        })?;
        Ok(Shared { direct, draws })
    }

    fn counts_against(&self, item: ItemIx) -> &[ItemIx] {
        // A new item counts against nothing yet, and nothing against it.
        self.books.items.get(item.0 as usize).map_or(&[], |item| item.counts_against())
    }

    fn reaches(&self, from: ItemIx, to: ItemIx) -> bool {
        from == to || self.counts_against(from).iter().any(|&next| self.reaches(next, to))
    }

    /// The pools of an item: its own first, then those that it counts against, depth first, each once.
    fn resolve<'a>(
        &self,
        item: ItemIx,
        has_total: bool,
        edges: &dyn Fn(ItemIx) -> &'a [ItemIx],
    ) -> Result<Vec<ItemIx>, Refusal> {
        let mut seen = Vec::new();
        follow(item, edges, &mut seen);
        if seen.len() > 1 + DRAWS_MAX {
            let bound =
                format!("at most {DRAWS_MAX} items, those that they count against included");
            return Err(invalid("counts_against", bound));
        }
        let is_pool = |other: ItemIx| !self.books.items[other.0 as usize].is_view(other);
        let has_units = |other: &ItemIx| if *other == item { has_total } else { is_pool(*other) };
        seen.retain(has_units);
        Ok(seen)
    }

    /// What an item counts against stays as it is while units that draw through it are held or sold.
    pub(super) fn check_unclaimed(&self, item: ItemIx) -> Result<(), Refusal> {
        let sale = self.books.items[item.0 as usize].sale;
        for other in self.books.items_of(sale).filter(|&other| self.reaches(other, item)) {
            let units = self.books.claimed[other.0 as usize];
            if units > 0 && !planted::is(Bug::SharesChange) {
                let name = &self.books.items[other.0 as usize].name;
                let bound = format!("as it is while {units} units of {name} are held or sold");
                return Err(invalid("counts_against", bound));
            }
        }
        Ok(())
    }

    /// The other items whose draws change with this one's, each with a fact of its own: a fact of a hold says what was
    /// taken, and what may be taken is said by facts, too.
    pub(super) fn redrawn(
        &self,
        by: ActorIx,
        item: ItemIx,
        shared: &Shared,
    ) -> Result<Entries, Refusal> {
        let sale = self.books.items[item.0 as usize].sale;
        let mut facts = Entries::new();
        for other in self.books.items_of(sale) {
            if other == item || !self.reaches(other, item) {
                continue;
            }
            let entry = &self.books.items[other.0 as usize];
            let draws = self.resolve(other, !entry.is_view(other), &|of| {
                if of == item { &shared.direct } else { self.counts_against(of) }
            })?;
            if draws == entry.draws {
                continue;
            }
            let counts = self.books.counts[other.0 as usize];
            let fact = ItemDefined {
                item: other,
                sale,
                name: entry.name.clone(),
                total: counts.total,
                oversell_limit: counts.oversell_limit,
                draws,
                version: entry.version,
                by,
                counts_against: entry.counts_against.clone(),
                seated: entry.seated.then_some(true),
            };
            facts.push(Fact::ItemDefined(fact).into());
        }
        Ok(facts)
    }
}

fn follow<'a>(item: ItemIx, edges: &dyn Fn(ItemIx) -> &'a [ItemIx], seen: &mut Vec<ItemIx>) {
    if seen.contains(&item) || seen.len() > 1 + DRAWS_MAX {
        return;
    }
    seen.push(item);
    for &next in edges(item) {
        follow(next, edges, seen);
    }
}
