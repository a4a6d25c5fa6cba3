//! The prepared searches of a map, and how they answer. A cache: without it, [`scan`](super::scan) says the same, slower.

use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

use super::finder::{Finder, Key};
use super::layout::{Layout, NEVER, Preference};
use super::seat::{Seat, SeatNo, SeatState};
use super::wish::{Beside, Filter, Found, NotFound, Wish};
use crate::chunked::Chunked;

/// Searches that are kept prepared; the one whose preparation is longest ago goes first.
pub(super) const FINDERS_MAX: usize = 32;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Search {
    layout: Layout,
    /// One for each quantity among the finders' keys.
    preferences: Vec<Preference>,
    finders: Vec<Finder>,
    /// Preparations so far.
    prepared: u64,
}

impl Key {
    pub(super) fn of(wish: &Wish, quantity: u32) -> Self {
        Self { quantity: if wish.together { quantity } else { 1 }, filter: Filter::of(wish) }
    }
}

/// A seat's change, as the finders see it.
pub(super) struct Change {
    pub(super) seat: SeatNo,
    pub(super) old: SeatState,
    pub(super) new: SeatState,
}

impl Search {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, preferences: Vec::new(), finders: Vec::new(), prepared: 0 }
    }

    pub(super) fn knows(&self, key: Key) -> bool {
        self.finders.iter().any(|finder| finder.key == key)
    }

    pub(super) fn prepare(&mut self, key: Key, seats: &Chunked<Seat>) {
        self.prepared += 1;
        if let Some(finder) = self.finders.iter_mut().find(|finder| finder.key == key) {
            finder.used = self.prepared;
            return;
        }
        if self.finders.len() == FINDERS_MAX {
            self.drop_oldest();
        }
        if !self.preferences.iter().any(|one| one.quantity == key.quantity) {
            self.preferences.push(Preference::new(&self.layout, seats, key.quantity));
        }
        let preference = preference(&self.preferences, key.quantity);
        let mut finder = Finder::new(key, &self.layout, seats, preference);
        finder.used = self.prepared;
        self.finders.push(finder);
    }

    fn drop_oldest(&mut self) {
        let oldest = self.finders.iter().enumerate().min_by_key(|(_, finder)| finder.used);
        let oldest = oldest.expect("there are some").0;
        let quantity = self.finders.swap_remove(oldest).key.quantity;
        if !self.finders.iter().any(|finder| finder.key.quantity == quantity) {
            self.preferences.retain(|preference| preference.quantity != quantity);
        }
    }

    /// Must be told of each change of a seat, after it.
    pub(super) fn follow(&mut self, change: &Change, seat: &Seat) {
        for finder in &mut self.finders {
            let filter = finder.key.filter;
            let differs = filter.is_free(change.old) != filter.is_free(change.new);
            if differs && filter.matches(seat) {
                let preference = preference(&self.preferences, finder.key.quantity);
                finder.flip(self.layout.position(change.seat), preference);
            }
        }
    }

    /// The best seats, if this search is prepared.
    pub(super) fn best(
        &self,
        wish: &Wish,
        quantity: u32,
        freed: &[SeatNo],
        seats: &Chunked<Seat>,
    ) -> Option<Result<Found, NotFound>> {
        let key = Key::of(wish, quantity);
        let finder = self.finders.iter().find(|finder| finder.key == key)?;
        let mut freed: SmallVec<[usize; 8]> = freed
            .iter()
            .filter(|no| seats.get(no.at()).is_some_and(|seat| key.filter.takes_once_freed(seat)))
            .map(|&no| self.layout.position(no))
            .filter(|&position| !finder.is_free(position))
            .collect();
        freed.sort_unstable();
        freed.dedup();
        let sections = sections(wish, &self.layout);
        if let Some(sections) = &sections {
            freed.retain(|position| sections.iter().any(|section| section.contains(position)));
        }
        let preference = preference(&self.preferences, key.quantity);
        let view = View { layout: &self.layout, preference, finder, freed, sections };
        let free = view.free();
        let found = if free < quantity {
            None
        } else if wish.together {
            view.block()
        } else {
            Some(view.singles(quantity as usize))
        };
        Some(found.ok_or_else(|| NotFound::of(wish, quantity, free)))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let preferences: usize = self.preferences.iter().map(Preference::memory_bytes).sum();
        let finders: usize = self.finders.iter().map(Finder::memory_bytes).sum();
        self.layout.memory_bytes() + preferences + finders
    }
}

fn preference(preferences: &[Preference], quantity: u32) -> &Preference {
    let found = preferences.iter().find(|preference| preference.quantity == quantity);
    found.expect("each finder's quantity has its preference")
}

/// The sections' positions, each once; `None` for all.
fn sections(wish: &Wish, layout: &Layout) -> Option<SmallVec<[Range<usize>; 4]>> {
    if wish.sections.is_empty() {
        return None;
    }
    let mut sections = wish.sections.clone();
    sections.sort_unstable();
    sections.dedup();
    let sections = sections.into_iter().map(|section| layout.section(section));
    Some(sections.filter(|positions| !positions.is_empty()).collect())
}

/// A prepared search, as one wish sees it.
struct View<'a> {
    layout: &'a Layout,
    preference: &'a Preference,
    finder: &'a Finder,
    /// Positions that are regarded as free, beyond those that are: sorted, matching, in the sections.
    freed: SmallVec<[usize; 8]>,
    sections: Option<SmallVec<[Range<usize>; 4]>>,
}

impl View<'_> {
    fn free(&self) -> u32 {
        let free = match &self.sections {
            None => self.finder.free_total(),
            Some(sections) => sections.iter().map(|section| self.finder.free_in(section)).sum(),
        };
        free + super::count(self.freed.len())
    }

    fn is_free(&self, position: usize) -> bool {
        position < self.layout.len()
            && (self.finder.is_free(position) || self.freed.binary_search(&position).is_ok())
    }

    fn seats(&self, positions: Range<usize>) -> Found {
        let seat = |position| self.layout.seat(position).expect("a free position has a seat");
        positions.map(seat).collect()
    }

    /// The best block, moved if it orphans a seat and need not.
    fn block(&self) -> Option<Found> {
        let best = match &self.sections {
            None => self.finder.best(),
            Some(sections) => sections
                .iter()
                .map(|section| self.finder.best_in(section, self.preference))
                .fold(NEVER, u32::min),
        };
        let best = best.min(self.best_with_freed());
        if best == NEVER {
            return None;
        }
        let first = self.preference.first(best);
        let end = first + self.preference.quantity as usize;
        let after = (end..).take(Beside::SEEN).take_while(|&at| self.is_free(at)).count();
        let before = (0..first).rev().take(Beside::SEEN).take_while(|&at| self.is_free(at)).count();
        let moves = Beside { before, after }.remedies();
        let others = moves.into_iter().filter_map(|by| first.checked_add_signed(by));
        let first = others.min_by_key(|&at| self.preference.place(at)).unwrap_or(first);
        Some(self.seats(first..first + self.preference.quantity as usize))
    }

    /// The place of the best block that has at least one seat which is only regarded as free.
    fn best_with_freed(&self) -> u32 {
        let reach = self.preference.quantity as usize - 1;
        let mut best = NEVER;
        let mut freed = self.freed.iter().copied().peekable();
        while let Some(position) = freed.next() {
            // Blocks that begin between these two; those of the next freed seats too, where they meet.
            let (from, mut upto) = (position.saturating_sub(reach), position);
            while let Some(next) = freed.next_if(|next| next.saturating_sub(reach) <= upto + 1) {
                upto = next;
            }
            let mut run = 0;
            for at in from..=upto.saturating_add(reach).min(self.layout.len() - 1) {
                run = if self.is_free(at) { run + 1 } else { 0 };
                if run > reach {
                    best = best.min(self.preference.place(at - reach));
                }
            }
        }
        best
    }

    /// The best seats one by one. There must be as many.
    fn singles(&self, quantity: usize) -> Found {
        let all = 0..self.layout.len();
        let sections = self.sections.as_deref().unwrap_or(core::slice::from_ref(&all));
        let mut places = self.finder.some_best_in(sections, quantity, self.preference);
        places.extend(self.freed.iter().map(|&position| self.preference.place(position)));
        places.sort_unstable();
        let firsts = places.into_iter().take(quantity).map(|place| self.preference.first(place));
        firsts.flat_map(|first| self.seats(first..first + 1)).collect()
    }
}
