//! The seats of an item: what they are, who has them, and the best that are free.
//!
//! # Layout
//!
//! * [`SeatMap`]: seats by number, name and place, and running [`SeatTotals`]; decides nothing about holds
//! * [`Wish`] → [`SeatMap::best`] → [`Found`] or [`NotFound`]
//! * `scan` answers any wish by looking at each seat; `search` answers those that were prepared, without a walk
//! * `layout`, `finder`: how a prepared search does that
//!
//! # Which seats are best
//!
//! *Adjacent* seats are next to each other in their row's order of numbers; a *run* is all adjacent seats that are free
//! and match the wish, as far as it goes. A seat that does not match ends a run, just as a taken one does.
//!
//! Together: of all blocks of that many adjacent free matching seats, the one with the lowest sum of ranks; then with the
//! lowest worst rank; then in the first row, sections coming first in the order in which they first came up, then rows
//! likewise; then with the lowest number. If exactly one seat of the run is left before or behind that block, and if the
//! block moved by one seat within the run leaves a single one on neither side, then it is moved: where both ways do, to
//! the one that is better by the same rule. Answered in the order of numbers.
//!
//! Not together: the free matching seats of the lowest ranks; of one rank, in the order of rows and numbers. Answered
//! best first.
//!
//! # What is cached
//!
//! A prepared search is a pure cache. No answer depends on whether there is one; adding or taking back a seat drops all
//! of them, as each seat's position may move.
//!
//! # Measured
//!
//! 200,000 seats in 2,000 rows, release build, two shared cores of an AMD EPYC, `examples/seats_speed.rs`:
//!
//! | what | time |
//! |---|---:|
//! | adding a seat | 0.4 µs |
//! | the best pair, and setting both, until sold out | 0.4 µs |
//! | the same with 32 searches prepared | 1.7 µs |
//! | the best pair of three sections, and setting both | 0.9 µs |
//! | the best hundred together, and setting them | 8 µs |
//! | refusing a pair | 16 ns |
//! | the best pair while another one is freed | 0.2 µs |
//! | the best pair of a search that is not prepared | 2 ms |
//! | preparing: the first of all, another quantity, another filter | 16 ms, 13 ms, 1 ms |
//!
//! A seat takes 89 bytes with its name and place; once something is prepared 9 more, another 8 for each quantity that
//! is, and 0.6 for each search.

mod finder;
mod interned;
mod layout;
mod scan;
mod search;
mod seat;
mod wish;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use self::finder::Key;
use self::interned::Interned;
use self::layout::Layout;
use self::search::{Change, Search};
use self::seat::{Place, Seat};
use crate::chunked::Chunked;
use crate::ids::Name;
use crate::index::Index;

pub use self::seat::{
    AddError, SEAT_NAME_BYTES_MAX, SEAT_TAGS_MAX, SEAT_ZONES_MAX, SEATS_MAX, SeatDef, SeatNo,
    SeatState, SeatTotals, SeatView, SectionIx, TagSet, WHEELCHAIR, ZoneIx,
};
pub use self::wish::{Found, NotFound, Wish};

/// See the module.
#[derive(Clone, Debug)]
pub struct SeatMap {
    seats: Chunked<Seat>,
    /// All names, one after the other.
    names: String,
    by_name: Index,
    /// In the order of rows and numbers.
    places: BTreeMap<Place, SeatNo>,
    sections: Interned,
    /// By section.
    rows: Vec<Interned>,
    tags: Interned,
    zones: Interned,
    totals: SeatTotals,
    search: Option<Search>,
}

/// A number of seats, positions or names; all are few enough.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("bounded by a small multiple of the most seats")
}

/// The names of a map's seats, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeatNames {
    names: String,
    ends: Vec<u32>,
}

impl SeatNames {
    /// The next seat's name.
    pub fn push(&mut self, name: &str) {
        self.names.push_str(name);
        self.ends.push(count(self.names.len()));
    }

    /// A seat's name.
    #[must_use]
    pub fn get(&self, no: SeatNo) -> Option<&str> {
        let end = *self.ends.get(no.at())? as usize;
        let begin = no.at().checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.names.get(begin..end)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl Default for SeatMap {
    fn default() -> Self {
        Self::new()
    }
}

impl SeatMap {
    /// Without a seat.
    #[must_use]
    pub fn new() -> Self {
        let mut tags = Interned::default();
        tags.intern(&Name::parse(WHEELCHAIR).expect("a name"), None);
        Self {
            seats: Chunked::new(),
            names: String::new(),
            by_name: Index::new(),
            places: BTreeMap::new(),
            sections: Interned::default(),
            rows: Vec::new(),
            tags,
            zones: Interned::default(),
            totals: SeatTotals::default(),
            search: None,
        }
    }

    /// Seats that were added, those that are not planned any more included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether no seat was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a seat could be added now.
    pub fn check(&self, def: &SeatDef) -> Result<(), AddError> {
        if self.len() >= SEATS_MAX {
            return Err(AddError::Full);
        }
        if def.name.as_str().len() > SEAT_NAME_BYTES_MAX {
            return Err(AddError::NameTooLong);
        }
        if let Some(seat) = self.find(def.name.as_str()) {
            return Err(AddError::NameTaken(seat));
        }
        if let Some(seat) = self.find_place(def.section.as_str(), def.row.as_str(), def.number) {
            return Err(AddError::PlaceTaken(seat));
        }
        let is_new = |at: usize, tag: &Name| {
            self.tags.find(tag.as_str()).is_none() && !def.tags[..at].contains(tag)
        };
        let new_tags = def.tags.iter().enumerate().filter(|(at, tag)| is_new(*at, tag)).count();
        if self.tags.len() + new_tags > SEAT_TAGS_MAX {
            return Err(AddError::TooManyTags);
        }
        let new_zone = def.zone.as_ref().is_some_and(|zone| self.zone(zone.as_str()).is_none());
        if new_zone && self.zones.len() >= SEAT_ZONES_MAX {
            return Err(AddError::TooManyZones);
        }
        Ok(())
    }

    /// Adds a seat, planned and free. Drops what was prepared.
    pub fn add(&mut self, def: &SeatDef) -> Result<SeatNo, AddError> {
        self.check(def)?;
        let no = SeatNo(count(self.seats.len()));
        let section = self.sections.intern(&def.section, Some(no));
        self.rows.resize_with(self.sections.len(), Interned::default);
        let row = self.rows[section as usize].intern(&def.row, Some(no));
        let place = Place { section, row, number: def.number };
        let tags = def.tags.iter().fold(TagSet::NONE, |tags, tag| {
            tags.with(TagSet(1 << self.tags.intern(tag, Some(no))))
        });
        let zone = def.zone.as_ref().map(|zone| {
            let zone = self.zones.intern(zone, Some(no));
            ZoneIx(u16::try_from(zone).expect("as many zones as allowed"))
        });
        self.names.push_str(def.name.as_str());
        self.seats.push(Seat::new(count(self.names.len()), place, def.rank, tags, zone));
        self.by_name.insert(xxh3_64(def.name.as_str().as_bytes()), no.0);
        self.places.insert(place, no);
        self.totals.put(SeatState::FREE);
        self.search = None;
        Ok(no)
    }

    /// Takes the newest seat back, whatever its state, as if it had never been added. Drops what was prepared.
    pub fn pop(&mut self) -> Option<SeatNo> {
        let no = SeatNo(count(self.seats.len().checked_sub(1)?));
        let hash = xxh3_64(self.name(no).as_bytes());
        self.by_name.remove(hash, |id| id == no.0).expect("each seat is found by its name");
        let begin = self.name_begin(no);
        self.names.truncate(begin);
        let seat = self.seats.pop().expect("it is the newest");
        self.places.remove(&seat.place).expect("each seat has a place");
        self.totals.take(seat.state());
        self.rows[seat.place.section as usize].take_back(no);
        self.sections.take_back(no);
        self.rows.truncate(self.sections.len());
        self.tags.take_back(no);
        self.zones.take_back(no);
        self.search = None;
        Some(no)
    }

    /// Changes a seat's state, and returns what it was: setting that again undoes it.
    ///
    /// # Panics
    ///
    /// There must be such a seat.
    pub fn set(&mut self, no: SeatNo, state: SeatState) -> SeatState {
        let seat = &mut self.seats[no.at()];
        let old = seat.set(state);
        self.totals.take(old);
        self.totals.put(state);
        if let Some(search) = &mut self.search {
            search.follow(&Change { seat: no, old, new: state }, seat);
        }
        old
    }

    /// A seat's state.
    #[must_use]
    pub fn state(&self, no: SeatNo) -> Option<SeatState> {
        self.seats.get(no.at()).map(Seat::state)
    }

    /// A seat as it is now.
    #[must_use]
    pub fn seat(&self, no: SeatNo) -> Option<SeatView<'_>> {
        let seat = self.seats.get(no.at())?;
        Some(SeatView {
            name: self.name(no),
            section: SectionIx(seat.place.section),
            row: self.rows[seat.place.section as usize].name(seat.place.row),
            number: seat.place.number,
            rank: seat.rank,
            tags: seat.tags,
            zone: seat.zone(),
            state: seat.state(),
        })
    }

    /// A seat's name.
    ///
    /// # Panics
    ///
    /// There must be such a seat.
    #[must_use]
    pub fn name_of(&self, no: SeatNo) -> Name {
        Name::parse(self.name(no)).expect("it was a name when the seat was added")
    }

    /// All names, by number, for whoever renders answers.
    #[must_use]
    pub fn names(&self) -> SeatNames {
        let ends = self.seats.iter().map(|seat| seat.name_end).collect();
        SeatNames { names: self.names.clone(), ends }
    }

    /// A seat as it was added.
    #[must_use]
    pub fn def(&self, no: SeatNo) -> Option<SeatDef> {
        let seat = self.seat(no)?;
        Some(SeatDef {
            name: self.name_of(no),
            section: self.section_name(seat.section).clone(),
            row: seat.row.clone(),
            number: seat.number,
            rank: seat.rank,
            tags: self.tag_names(seat.tags).cloned().collect(),
            zone: seat.zone.map(|zone| self.zone_name(zone).clone()),
        })
    }

    /// All seats, in the order of adding.
    pub fn iter(&self) -> impl Iterator<Item = (SeatNo, SeatView<'_>)> {
        (0..count(self.len())).map(SeatNo).filter_map(|no| Some((no, self.seat(no)?)))
    }

    /// The seat that has this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<SeatNo> {
        let found = self.by_name.find(xxh3_64(name.as_bytes()), |id| self.name(SeatNo(id)) == name);
        found.map(SeatNo)
    }

    /// The seat that has this number in this row of this section.
    #[must_use]
    pub fn find_place(&self, section: &str, row: &str, number: u32) -> Option<SeatNo> {
        let section = self.sections.find(section)?;
        let row = self.rows[section as usize].find(row)?;
        self.places.get(&Place { section, row, number }).copied()
    }

    fn name_begin(&self, no: SeatNo) -> usize {
        no.at().checked_sub(1).map_or(0, |before| self.seats[before].name_end as usize)
    }

    fn name(&self, no: SeatNo) -> &str {
        &self.names[self.name_begin(no)..self.seats[no.at()].name_end as usize]
    }

    /// The section that has this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<SectionIx> {
        self.sections.find(name).map(SectionIx)
    }

    /// A section's name. There must be such a section.
    #[must_use]
    pub fn section_name(&self, section: SectionIx) -> &Name {
        self.sections.name(section.0)
    }

    /// The zone that has this name.
    #[must_use]
    pub fn zone(&self, name: &str) -> Option<ZoneIx> {
        self.zones.find(name).and_then(|zone| u16::try_from(zone).ok()).map(ZoneIx)
    }

    /// A zone's name. There must be such a zone.
    #[must_use]
    pub fn zone_name(&self, zone: ZoneIx) -> &Name {
        self.zones.name(zone.0.into())
    }

    /// These tags as a set; `None` if no seat of the map ever had one of them, so that nothing can match.
    #[must_use]
    pub fn tags<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<TagSet> {
        let mut tags = TagSet::NONE;
        for name in names {
            tags = tags.with(TagSet(1 << self.tags.find(name)?));
        }
        Some(tags)
    }

    /// The names of a set's tags, in the order in which they first came up.
    pub fn tag_names(&self, tags: TagSet) -> impl Iterator<Item = &Name> {
        let all = self.tags.iter().enumerate();
        all.filter(move |(at, _)| tags.has_all(TagSet(1 << at))).map(|(_, name)| name)
    }

    /// Sums over all seats, kept with each change.
    #[must_use]
    pub const fn totals(&self) -> &SeatTotals {
        &self.totals
    }

    /// The same sums, counted anew: must equal [`totals`](Self::totals).
    #[must_use]
    pub fn recount(&self) -> SeatTotals {
        let mut totals = SeatTotals::default();
        for seat in self.seats.iter() {
            totals.put(seat.state());
        }
        totals
    }

    /// Makes [`best`](Self::best) quick for this wish and quantity, in whatever sections: no walk of the map, until seats
    /// are added or 32 others were prepared later.
    ///
    /// The first time it takes some milliseconds at 200,000 seats, and each prepared search makes [`set`](Self::set) a
    /// little slower. Quantities do not matter to wishes that are not `together`.
    pub fn prepare(&mut self, wish: &Wish, quantity: u32) {
        if quantity == 0 {
            return;
        }
        let layout = || Search::new(Layout::new(&self.places, self.sections.len()));
        self.search.get_or_insert_with(layout).prepare(Key::of(wish, quantity), &self.seats);
    }

    /// The best free seats for a wish; see the module for what is best. None are the best none.
    ///
    /// Seats that are `freed` are regarded as having no owner: those of a hold that is about to end. Whether they are
    /// planned and in a block is still looked at. Unknown ones and repetitions do no harm.
    pub fn best(&self, wish: &Wish, quantity: u32, freed: &[SeatNo]) -> Result<Found, NotFound> {
        if quantity == 0 {
            return Ok(Found::new());
        }
        let prepared = self.search.as_ref();
        prepared
            .and_then(|search| search.best(wish, quantity, freed, &self.seats))
            .unwrap_or_else(|| scan::best(self, wish, quantity, freed, &[]))
    }

    /// Like [`best`](Self::best), with some seats regarded as not free: those that the same hold takes on another line.
    /// Always looks at each seat once.
    pub fn best_beside(
        &self,
        wish: &Wish,
        quantity: u32,
        freed: &[SeatNo],
        taken: &[SeatNo],
    ) -> Result<Found, NotFound> {
        if quantity == 0 {
            return Ok(Found::new());
        }
        scan::best(self, wish, quantity, freed, taken)
    }

    /// Whether [`best`](Self::best) is quick for this wish and quantity.
    #[must_use]
    pub fn is_prepared(&self, wish: &Wish, quantity: u32) -> bool {
        self.search.as_ref().is_some_and(|search| search.knows(Key::of(wish, quantity)))
    }

    /// Bytes that were asked of the allocator; the names of sections, rows, tags and zones are not counted.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        // A B-tree's leaf is two thirds full on average, and has room for eleven entries and its own four words.
        let places = self.places.len() * (size_of::<(Place, SeatNo)>() * 3 / 2 + 4);
        self.seats.memory_bytes()
            + self.names.capacity()
            + self.by_name.memory_bytes()
            + places
            + self.search.as_ref().map_or(0, Search::memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    mod oracle;
    mod tables;
}
