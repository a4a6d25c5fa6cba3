//! From the log's numbers to names that people know: what a sentence needs to see of the world around its fact.

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    ActorIx, Catalog, Counts, Draw, HoldId, HoldNo, ItemIx, LabelIx, SaleIx, SeatOut,
};

use super::glance::Glance;
use crate::http::render::label_text;

/// What is known, and may be told, around a fact.
pub trait Sees {
    /// The public id of a hold.
    fn hold(&self, hold: HoldNo) -> Option<HoldId>;

    /// The account of a pool right before the fact.
    fn counts(&self, _: ItemIx) -> Option<Counts> {
        None
    }

    /// Whether a lapsed hold is told of among the others of its fact.
    fn lapse(&self, _: HoldNo) -> bool {
        true
    }

    /// Whether a seat that lapsed holds gave back is told of.
    fn seat(&self, _: ItemIx, _: SeatNo) -> bool {
        true
    }
}

impl Sees for Glance {
    fn hold(&self, hold: HoldNo) -> Option<HoldId> {
        let (next, id, _) = self.next_hold();
        if hold == next { Some(id) } else { self.hold_id(hold) }
    }

    fn counts(&self, item: ItemIx) -> Option<Counts> {
        self.pool(item).map(|pool| pool.counts)
    }
}

/// Numbers to names, for sentences.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// Names by index.
    pub catalog: &'a Catalog,
    /// All else.
    pub sees: &'a dyn Sees,
}

impl Naming<'_> {
    /// The public id of a hold.
    #[must_use]
    pub fn hold(&self, no: HoldNo) -> String {
        self.sees.hold(no).map_or_else(|| format!("hold #{no}"), |id| id.to_string())
    }

    /// The name of an item.
    #[must_use]
    pub fn item(&self, item: ItemIx) -> String {
        let known = self.catalog.items.get(item.0 as usize);
        known.map_or_else(|| format!("item #{item}"), |item| item.name.to_string())
    }

    /// The block that units of a pool come out of; nothing where it is none.
    #[must_use]
    pub fn out_of(&self, pool: ItemIx, label: Option<LabelIx>) -> String {
        self.block(" out of", pool, label)
    }

    fn block(&self, how: &str, pool: ItemIx, label: Option<LabelIx>) -> String {
        let text = |label| label_text(self.catalog, pool, label);
        label.map(|label| format!("{how} the block {}", text(label))).unwrap_or_default()
    }

    /// Units of a pool that come back, and into which block.
    #[must_use]
    pub fn units_back(&self, draw: &Draw) -> String {
        let block = self.block(" into", draw.pool, draw.label);
        format!("{} of {}{block}", draw.quantity, self.item(draw.pool))
    }

    /// The name of a seat.
    #[must_use]
    pub fn seat(&self, item: ItemIx, seat: SeatNo) -> String {
        let names = self.catalog.seats.get(&item);
        let name = names.and_then(|names| names.get(seat));
        name.map_or_else(|| format!("seat #{seat}"), str::to_owned)
    }

    /// Seats with their item: "A-1-7 and A-1-8 of hall".
    #[must_use]
    pub fn seats(&self, item: ItemIx, seats: &[SeatNo]) -> String {
        let names = seats.iter().map(|seat| self.seat(item, *seat));
        format!("{} of {}", joined(names), self.item(item))
    }

    /// Seats that left their holds, each with the block that it went into.
    #[must_use]
    pub fn seats_out<'s>(&self, seats: impl Iterator<Item = &'s SeatOut>) -> Option<String> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for out in seats {
            let how = if out.gone.unwrap_or(false) { " (removed)" } else { "" };
            let block = self.block(" into", out.item, out.to);
            let place = format!(" of {}{how}{block}", self.item(out.item));
            let name = self.seat(out.item, out.seat);
            match groups.iter_mut().find(|(known, _)| *known == place) {
                Some((_, names)) => names.push(name),
                None => groups.push((place, vec![name])),
            }
        }
        let told = groups.into_iter().map(|(place, names)| joined(names.into_iter()) + &place);
        Some(joined(told)).filter(|told| !told.is_empty())
    }

    /// The name of a sale.
    #[must_use]
    pub fn sale(&self, sale: SaleIx) -> String {
        let known = self.catalog.sales.get(sale.0 as usize);
        known.map_or_else(|| format!("sale #{sale}"), |sale| sale.name.to_string())
    }

    /// Who acted.
    #[must_use]
    pub fn actor(&self, actor: ActorIx) -> String {
        match actor {
            ActorIx::SYSTEM => "the clock".into(),
            ActorIx::BUYER => "the buyer".into(),
            ActorIx(number) => {
                let known = self.catalog.actors.get((number - ActorIx::FIRST) as usize);
                known.map_or_else(
                    || format!("principal #{number}"),
                    |(name, role)| format!("{name} ({})", role.as_str()),
                )
            }
        }
    }
}

/// The verb for so many units that there were.
#[must_use]
pub const fn were(units: u32) -> &'static str {
    if units == 1 { "was" } else { "were" }
}

/// Seats that a list names one by one.
const LISTED_MAX: usize = 12;

/// A list as people write it: "a, b and c".
#[must_use]
pub fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    if parts.len() > LISTED_MAX {
        let more = parts.len() - LISTED_MAX;
        parts.truncate(LISTED_MAX);
        parts.push(format!("{more} more"));
    }
    match parts.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
