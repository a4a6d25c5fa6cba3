//! Short lists of names that seats share: sections, rows, tags, zones. A name is kept once, and its place stands for it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::seat::SeatNo;
use crate::ids::Name;

/// Names in the order in which they first came up, each with the seat that brought it.
///
/// `None` instead of a seat: the name was there before any. Taking the newest seat back takes the names back that it
/// brought, so that a list is always what the seats alone would make of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Interned {
    names: Vec<(Name, Option<SeatNo>)>,
    places: BTreeMap<Name, u32>,
}

impl Interned {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.places.get(name).copied()
    }

    pub(super) fn name(&self, place: u32) -> &Name {
        &self.names[place as usize].0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.names.iter().map(|(name, _)| name)
    }

    /// The name's place; a new one goes to the end.
    pub(super) fn intern(&mut self, name: &Name, brought_by: Option<SeatNo>) -> u32 {
        if let Some(place) = self.find(name.as_str()) {
            return place;
        }
        let place = super::count(self.names.len());
        self.names.push((name.clone(), brought_by));
        self.places.insert(name.clone(), place);
        place
    }

    /// Forgets what this seat brought; it must be the newest one.
    pub(super) fn take_back(&mut self, seat: SeatNo) {
        while let Some((name, _)) = self.names.pop_if(|(_, by)| *by == Some(seat)) {
            self.places.remove(&name);
        }
    }
}
