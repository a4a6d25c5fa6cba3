//! What a seat is: its place, what is known of it for ever, and its state. No rule about holds lives here.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use minicbor::{Decode, Encode};

use crate::ids::Name;
use crate::units::{HoldNo, LabelIx};

/// Longest name of a seat, in bytes.
pub const SEAT_NAME_BYTES_MAX: usize = 32;
/// Most seats that one map may ever have had, those that are not planned any more included.
pub const SEATS_MAX: usize = 200_000;
/// Most different tags in one map, [`WHEELCHAIR`] included.
pub const SEAT_TAGS_MAX: usize = 32;
/// Most different zones in one map.
pub const SEAT_ZONES_MAX: usize = 10_000;
/// The tag of seats that are given only to those who ask for it.
pub const WHEELCHAIR: &str = "wheelchair";

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A seat's number in its map: 0, 1, 2 … in the order of adding, never reused.
    SeatNo(u32)
);
number!(
    /// Place of a section in its map's list, in the order in which they first came up.
    SectionIx(u32)
);
number!(
    /// Place of a price zone in its map's list, in the order in which they first came up.
    ZoneIx(u16)
);
impl SeatNo {
    pub(super) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Tags of one map, as a set. Made by [`SeatMap::tags`](super::SeatMap::tags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagSet(pub(super) u32);

impl TagSet {
    /// No tag.
    pub const NONE: Self = Self(0);
    /// [`WHEELCHAIR`] alone: the first tag of every map.
    pub const WHEELCHAIR: Self = Self(1);

    /// Whether each tag of `other` is here, too.
    #[must_use]
    pub const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The tags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A seat to be added: all that is known of it for ever.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SeatDef {
    /// Unlike any other in the map; at most [`SEAT_NAME_BYTES_MAX`] bytes.
    #[n(0)]
    pub name: Name,
    /// Its section; a new name makes a new section, after all others.
    #[n(1)]
    pub section: Name,
    /// Its row within the section; a new name makes a new row, after the section's others.
    #[n(2)]
    pub row: Name,
    /// Its place in the row, by number: 2 is before 10. Seats with 5 and 7 and nothing between them are adjacent.
    #[n(3)]
    pub number: u32,
    /// How good it is; 0 is best.
    #[n(4)]
    pub rank: u32,
    /// What is special about it; [`WHEELCHAIR`] has a meaning here, others only for callers.
    #[n(5)]
    pub tags: Vec<Name>,
    /// Its price zone.
    #[n(6)]
    pub zone: Option<Name>,
}

/// What changes about a seat.
///
/// A seat is **free** when it is planned and has neither owner nor block; it is **free in a block** when it is planned,
/// has no owner, and has that block's label. An owned seat keeps its label, so that it returns to its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatState {
    /// Whether it counts towards the total: a removed seat is not planned any more, even while somebody owns it.
    pub planned: bool,
    /// The hold that has it, live or confirmed. `u64::MAX` cannot be stored.
    pub owner: Option<HoldNo>,
    /// The label of the block that it is in, or that it returns to.
    pub block: Option<LabelIx>,
}

impl SeatState {
    /// As a seat is when it is added.
    pub const FREE: Self = Self { planned: true, owner: None, block: None };
}

/// Why a seat cannot be added. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// There have been [`SEATS_MAX`] already.
    Full,
    /// Longer than [`SEAT_NAME_BYTES_MAX`].
    NameTooLong,
    /// This seat has the name.
    NameTaken(SeatNo),
    /// This seat has the number in the row.
    PlaceTaken(SeatNo),
    /// It would bring more than [`SEAT_TAGS_MAX`] different tags.
    TooManyTags,
    /// It would bring more than [`SEAT_ZONES_MAX`] different zones.
    TooManyZones,
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "an item has at most {SEATS_MAX} seats"),
            Self::NameTooLong => write!(f, "a seat's name has at most {SEAT_NAME_BYTES_MAX} bytes"),
            Self::NameTaken(_) => f.write_str("another seat has this name"),
            Self::PlaceTaken(_) => f.write_str("another seat has this number in the row"),
            Self::TooManyTags => write!(f, "an item has at most {SEAT_TAGS_MAX} tags of seats"),
            Self::TooManyZones => write!(f, "an item has at most {SEAT_ZONES_MAX} zones"),
        }
    }
}

impl core::error::Error for AddError {}

/// A seat as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its section; [`SeatMap::section_name`](super::SeatMap::section_name) has the name.
    pub section: SectionIx,
    /// Its row's name.
    pub row: &'a Name,
    /// Its place in the row.
    pub number: u32,
    /// How good it is; 0 is best.
    pub rank: u32,
    /// Its tags; [`SeatMap::tag_names`](super::SeatMap::tag_names) has their names.
    pub tags: TagSet,
    /// Its zone; [`SeatMap::zone_name`](super::SeatMap::zone_name) has the name.
    pub zone: Option<ZoneIx>,
    /// What changes about it.
    pub state: SeatState,
}

/// Sums over all seats; each seat counts in one of them at most, besides `planned`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeatTotals {
    /// Planned seats: the item's total.
    pub planned: u32,
    /// Planned seats that have an owner.
    pub owned: u32,
    /// Seats that have an owner and are not planned any more: what is oversold.
    pub owned_unplanned: u32,
    /// Planned seats without an owner in a block, by label; a label without such a seat is not listed.
    pub blocked: BTreeMap<LabelIx, u32>,
}

impl SeatTotals {
    /// Planned seats with neither owner nor block.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.planned - self.owned - self.blocked.values().sum::<u32>()
    }

    pub(super) fn put(&mut self, state: SeatState) {
        self.planned += u32::from(state.planned);
        match (state.planned, state.owner, state.block) {
            (true, Some(_), _) => self.owned += 1,
            (false, Some(_), _) => self.owned_unplanned += 1,
            (true, None, Some(label)) => *self.blocked.entry(label).or_default() += 1,
            (_, None, _) => {}
        }
    }

    pub(super) fn take(&mut self, state: SeatState) {
        self.planned -= u32::from(state.planned);
        match (state.planned, state.owner, state.block) {
            (true, Some(_), _) => self.owned -= 1,
            (false, Some(_), _) => self.owned_unplanned -= 1,
            (true, None, Some(label)) => {
                let count = self.blocked.get_mut(&label).expect("it was counted");
                *count -= 1;
                if *count == 0 {
                    self.blocked.remove(&label);
                }
            }
            (_, None, _) => {}
        }
    }
}

const NO_OWNER: u64 = u64::MAX;
const NO_NUMBER: u16 = u16::MAX;

/// A seat as it is stored: 40 bytes, and its name elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    owner: u64,
    /// Where its name ends in the text of all names; it begins where the one before it ends.
    pub(super) name_end: u32,
    pub(super) place: Place,
    pub(super) rank: u32,
    pub(super) tags: TagSet,
    zone: u16,
    block: u16,
    planned: bool,
}

/// Where a seat is; ordered as rows are, and within a row by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) section: u32,
    /// Place of the row in its section's list.
    pub(super) row: u32,
    pub(super) number: u32,
}

const _: () = assert!(size_of::<Seat>() == 40, "cheap at 200,000 an item");

impl Seat {
    pub(super) fn new(
        name_end: u32,
        place: Place,
        rank: u32,
        tags: TagSet,
        zone: Option<ZoneIx>,
    ) -> Self {
        let zone = zone.map_or(NO_NUMBER, |zone| zone.0);
        let (owner, block) = (NO_OWNER, NO_NUMBER);
        Self { owner, name_end, place, rank, tags, zone, block, planned: true }
    }

    pub(super) fn zone(&self) -> Option<ZoneIx> {
        (self.zone != NO_NUMBER).then_some(ZoneIx(self.zone))
    }

    pub(super) fn state(&self) -> SeatState {
        SeatState {
            planned: self.planned,
            owner: (self.owner != NO_OWNER).then_some(HoldNo(self.owner)),
            block: (self.block != NO_NUMBER).then_some(LabelIx(self.block)),
        }
    }

    pub(super) fn set(&mut self, state: SeatState) -> SeatState {
        assert_ne!(state.owner, Some(HoldNo(NO_OWNER)), "no hold has the last number of all");
        assert_ne!(state.block, Some(LabelIx(NO_NUMBER)), "no label has the last number of all");
        let old = self.state();
        self.planned = state.planned;
        self.owner = state.owner.map_or(NO_OWNER, |hold| hold.0);
        self.block = state.block.map_or(NO_NUMBER, |label| label.0);
        old
    }
}
