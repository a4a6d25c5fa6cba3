//! Which seats an item has: added and taken away.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{By, Decided, Entries, invalid};
use crate::command::{ItemSeats, KeyUse};
use crate::fact::{Draw, Entry, Fact, Private, SeatsChanged};
use crate::ids::Name;
use crate::outcome::{ItemView, Outcome, SaleState};
use crate::refusal::Refusal;
use crate::seats::{
    AddError, SEAT_NAME_BYTES_MAX, SEAT_TAGS_MAX, SEAT_ZONES_MAX, SEATS_MAX, SeatDef, SeatMap,
    SeatNo,
};
use crate::state::State;
use crate::units::LabelIx;

impl State {
    pub(super) fn decide_seats(
        &self,
        by: &By,
        key: Option<KeyUse>,
        change: &ItemSeats,
        out: &mut Entries,
    ) -> Decided {
        let sale = self.books.sale(by.shop, change.sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        if self.books.sales[sale.0 as usize].state == SaleState::Archived {
            return Err(Refusal::SaleArchived);
        }
        let item = self.books.item(sale, change.item.as_str());
        let item =
            item.ok_or_else(|| Refusal::ItemNotFound { line: 0, item: change.item.clone() })?;
        let map = self.seating.map(item);
        let map =
            map.ok_or_else(|| invalid("item", "an item of seats; this one has only a total"))?;
        let removed = removed(map, &change.remove)?;
        let (added, planned) = added(map, &change.add)?;
        let mut view = self.books.item_view(item);
        let total = view.counts.total as usize + added.len() + planned.len() - removed.len();
        let owned = |seats: &[SeatNo]| {
            let owned =
                seats.iter().filter(|seat| map.state(**seat).is_some_and(|s| s.owner.is_some()));
            u32::try_from(owned.count()).expect("few enough")
        };
        let blocked = removed.iter().filter(|seat| {
            map.state(**seat).is_some_and(|state| state.owner.is_none() && state.block.is_some())
        });
        view.counts.total = u32::try_from(total).expect("few enough seats");
        view.counts.unplanned = view.counts.unplanned + owned(&removed) - owned(&planned);
        let mut unblocked: BTreeMap<LabelIx, u32> = BTreeMap::new();
        for seat in blocked {
            view.counts.blocked -= 1;
            let label = map.state(*seat).and_then(|state| state.block).expect("it is blocked");
            self.unblock_in(&mut view, label);
            *unblocked.entry(label).or_default() += 1;
        }
        let draw = |(label, quantity)| Draw { pool: item, quantity, label: Some(label) };
        let unblocked: Vec<Draw> = unblocked.into_iter().map(draw).collect();
        // With a key even a change of nothing is told: its retry must not do something later.
        let changes = added.len() + planned.len() + removed.len();
        if changes == 0 && key.is_none() {
            return Ok(Outcome::Item(view));
        }
        let total = view.counts.total;
        let fact = SeatsChanged {
            item,
            added,
            planned,
            removed,
            total,
            by: by.actor,
            key,
            unplanned: view.counts.unplanned,
            unblocked: (!unblocked.is_empty()).then_some(unblocked),
        };
        let private = Private { reason: Some(change.reason.clone()), ..Private::default() };
        out.push(Entry { fact: Fact::SeatsChanged(fact), private: Some(private) });
        Ok(Outcome::Item(view))
    }

    /// One unit less under a label, in an item that is told of.
    fn unblock_in(&self, view: &mut ItemView, label: LabelIx) {
        let name = &self.books.sales[view.sale.0 as usize].labels()[usize::from(label.0)];
        for block in view.blocks.iter_mut().filter(|block| block.label == *name) {
            block.quantity -= 1;
        }
        view.blocks.retain(|block| block.quantity > 0);
    }
}

/// The seats that go; those that went before are left out.
fn removed(map: &SeatMap, names: &[Name]) -> Result<Vec<SeatNo>, Refusal> {
    let mut removed = Vec::with_capacity(names.len());
    for name in names {
        let seat = map.find(name.as_str());
        let seat = seat.ok_or_else(|| Refusal::SeatNotFound { line: 0, seat: name.clone() })?;
        if map.state(seat).is_some_and(|state| state.planned) {
            removed.push(seat);
        }
    }
    let mut sorted = removed.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("remove", "each seat once"));
    }
    Ok(removed)
}

/// The seats that come: new ones, and those that come back. Those that are there already are left out.
fn added(map: &SeatMap, defs: &[SeatDef]) -> Result<(Vec<SeatDef>, Vec<SeatNo>), Refusal> {
    let (mut added, mut planned) = (Vec::new(), Vec::new());
    for (place, def) in defs.iter().enumerate() {
        let refused = |why: AddError| invalid(format!("add[{place}]"), bound_of(why));
        match map.check(def) {
            Ok(()) => added.push(def.clone()),
            Err(AddError::NameTaken(seat)) => {
                let same = map.def(seat).is_some_and(|known| is_same(&known, def));
                if !same {
                    return Err(refused(AddError::NameTaken(seat)));
                }
                if map.state(seat).is_some_and(|state| !state.planned) {
                    planned.push(seat);
                }
            }
            Err(why) => return Err(refused(why)),
        }
    }
    if added.len() > 1 {
        check_new(map, "add", &added)?;
    }
    planned.sort_unstable();
    planned.dedup();
    Ok((added, planned))
}

/// Whether two descriptions are of one seat, whatever the order of the tags.
fn is_same(known: &SeatDef, def: &SeatDef) -> bool {
    let sorted = |tags: &[Name]| {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        tags.dedup();
        tags
    };
    let same_tags = sorted(&known.tags) == sorted(&def.tags);
    same_tags
        && SeatDef { tags: Vec::new(), ..known.clone() }
            == SeatDef { tags: Vec::new(), ..def.clone() }
}

/// New seats must also go together with each other: tried out on a copy of what they are checked against.
pub(super) fn check_new(map: &SeatMap, list: &str, added: &[SeatDef]) -> Result<(), Refusal> {
    let mut trial = if map.is_empty() { SeatMap::new() } else { map.clone() };
    for (place, def) in added.iter().enumerate() {
        trial.add(def).map_err(|why| invalid(format!("{list}[{place}]"), bound_of(why)))?;
    }
    Ok(())
}

fn bound_of(why: AddError) -> String {
    match why {
        AddError::Full => format!("one of at most {SEATS_MAX} seats that the item ever has"),
        AddError::NameTooLong => {
            format!("a seat whose name has at most {SEAT_NAME_BYTES_MAX} bytes")
        }
        AddError::NameTaken(_) => "a seat whose name no other has".into(),
        AddError::PlaceTaken(_) => "a seat whose number no other has in its row".into(),
        AddError::TooManyTags => {
            format!(
                "a seat with which the item has at most {SEAT_TAGS_MAX} tags, wheelchair included"
            )
        }
        AddError::TooManyZones => {
            format!("a seat with which the item has at most {SEAT_ZONES_MAX} zones")
        }
    }
}
