//! Which searches for the best seats are worth preparing: those that come again. Decides nothing.

use super::State;
use crate::command::{Act, Command, LineAsked, SeatsAsked};
use crate::seats::{SeatMap, Wish};
use crate::units::{LabelIx, SaleIx};

/// Wishes that are remembered, to see which recur.
const WISHES_SEEN: usize = 64;
/// Larger blocks are looked for by a walk: their search costs milliseconds to prepare.
const PREPARED_QUANTITY_MAX: u32 = 10;

impl State {
    /// Makes the search for the best seats quick, if this command asks for some as others did before. Decides nothing:
    /// without it every outcome is the same, later.
    pub fn prepare(&mut self, command: &Command) {
        let Act::HoldCreate(create) = &command.act else { return };
        if self.seating.maps.is_empty() {
            return;
        }
        let Some(shop) = self.books.shop(command.shop.as_str()) else { return };
        let Some(sale) = self.books.sale(shop, create.sale.as_str()) else { return };
        for line in &create.lines {
            self.prepare_line(sale, line);
        }
    }

    fn prepare_line(&mut self, sale: SaleIx, line: &LineAsked) {
        let Some(item) = self.books.item(sale, line.item.as_str()) else { return };
        let Some(map) = self.seating.map(item) else { return };
        let asked = line.seats.as_deref();
        if asked.is_some_and(|asked| asked.named.is_some()) || line.quantity > PREPARED_QUANTITY_MAX
        {
            return;
        }
        let from = line.from.as_deref();
        let label = from.map(|label| self.books.sales[sale.0 as usize].label(label));
        let Some(mut wish) = wish_of(map, asked, label.flatten()) else { return };
        let prepared = map.is_prepared(&wish, line.quantity);
        // Whatever the sections, the search is the same.
        wish.sections.clear();
        let wishes = &mut self.seating.wishes;
        let mut seen = wishes.iter();
        let recurs = !prepared
            && seen.any(|(of, many, seen)| *of == item && *many == line.quantity && *seen == wish);
        // One that is prepared is prepared again: so those that are in use stay, whatever else is asked.
        if prepared || recurs {
            let seated = self.seating.maps.get_mut(&item).expect("it was just there");
            seated.map.prepare(&wish, line.quantity);
            return;
        }
        if wishes.len() == WISHES_SEEN {
            wishes.pop_front();
        }
        wishes.push_back((item, line.quantity, wish));
    }
}

/// What a line asks of a map; none where no seat can match, as a name is unknown.
pub(super) fn wish_of(
    map: &SeatMap,
    asked: Option<&SeatsAsked>,
    from_block: Option<LabelIx>,
) -> Option<Wish> {
    let Some(asked) = asked else { return Some(Wish { from_block, ..Wish::default() }) };
    let mut wish = Wish { together: asked.together, from_block, ..Wish::default() };
    if let Some(sections) = &asked.sections {
        let known = sections.iter().filter_map(|section| map.section(section.as_str()));
        wish.sections = known.collect();
        if wish.sections.is_empty() {
            return None;
        }
    }
    if let Some(tags) = &asked.tags {
        wish.tags = map.tags(tags.iter().map(crate::ids::Name::as_str))?;
    }
    if let Some(zone) = &asked.zone {
        wish.zone = Some(map.zone(zone.as_str())?);
    }
    Some(wish)
}
