//! What a caller wants of a seat map, and the answers. Whether a seat fits a wish is said here, and nowhere else.

use core::fmt;

use smallvec::SmallVec;

use super::seat::{Seat, SeatNo, SeatState, SectionIx, TagSet, ZoneIx};
use crate::units::LabelIx;

/// Seats that were found.
pub type Found = SmallVec<[SeatNo; 8]>;

/// Which seats are wanted; how many is said beside it.
///
/// A seat **matches** when it has all `tags`, is in the `zone` if one is given, and has the tag `wheelchair` only if
/// `tags` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Adjacent seats of one row, rather than the best ones wherever they are.
    pub together: bool,
    /// Only in these sections; none means in all of them. Unknown ones and repetitions do no harm.
    pub sections: SmallVec<[SectionIx; 4]>,
    /// Tags that each seat must have.
    pub tags: TagSet,
    /// The zone that each seat must be in.
    pub zone: Option<ZoneIx>,
    /// Seats that are free in this block, instead of free ones.
    pub from_block: Option<LabelIx>,
}

/// Why nothing was found. `free` counts the free seats that match, those that are regarded as free included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// Fewer match than are wanted.
    NotEnough {
        /// Free seats that match.
        free: u32,
    },
    /// Enough match, but nowhere so many together.
    NotTogether {
        /// Free seats that match.
        free: u32,
    },
}

impl NotFound {
    pub(super) fn of(wish: &Wish, quantity: u32, free: u32) -> Self {
        if wish.together && free >= quantity {
            Self::NotTogether { free }
        } else {
            Self::NotEnough { free }
        }
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnough { free } => write!(f, "only {free} such seats are free"),
            Self::NotTogether { free } => write!(f, "{free} such seats are free, but not together"),
        }
    }
}

impl core::error::Error for NotFound {}

/// Which seats count, sections aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    tags: TagSet,
    zone: Option<ZoneIx>,
    block: Option<LabelIx>,
}

impl Filter {
    pub(super) const fn of(wish: &Wish) -> Self {
        Self { tags: wish.tags, zone: wish.zone, block: wish.from_block }
    }

    /// What never changes about a seat.
    pub(super) fn matches(&self, seat: &Seat) -> bool {
        seat.tags.has_all(self.tags)
            && (self.tags.has_all(TagSet::WHEELCHAIR) || !seat.tags.has_all(TagSet::WHEELCHAIR))
            && (self.zone.is_none() || self.zone == seat.zone())
    }

    /// What changes about it.
    pub(super) fn is_free(&self, state: SeatState) -> bool {
        state.planned && state.owner.is_none() && state.block == self.block
    }

    pub(super) fn takes(&self, seat: &Seat) -> bool {
        self.is_free(seat.state()) && self.matches(seat)
    }

    /// Whether it would be taken if it had no owner.
    pub(super) fn takes_once_freed(&self, seat: &Seat) -> bool {
        self.is_free(SeatState { owner: None, ..seat.state() }) && self.matches(seat)
    }
}

/// Up to three seats of a run beside a block of it; more than three make no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Beside {
    pub(super) const SEEN: usize = 3;

    /// One free seat alone: hard to sell.
    pub(super) const fn orphans(self) -> bool {
        self.before == 1 || self.after == 1
    }

    /// What is beside the block once it is one seat further down, if it can be.
    pub(super) fn down(self) -> Option<Self> {
        Some(Self { before: self.before.checked_sub(1)?, after: self.after + 1 })
    }

    /// The same, one seat further up.
    pub(super) fn up(self) -> Option<Self> {
        Some(Self { before: self.before + 1, after: self.after.checked_sub(1)? })
    }

    /// The places, relative to the block's, that it should move to if it orphans a seat.
    pub(super) fn remedies(self) -> SmallVec<[isize; 2]> {
        if !self.orphans() {
            return SmallVec::new();
        }
        let moves = [(-1, self.down()), (1, self.up())];
        let good = moves.into_iter().filter(|(_, then)| then.is_some_and(|then| !then.orphans()));
        good.map(|(by, _)| by).collect()
    }
}
