//! What may be told to everyone about an item: a level and no numbers.
//!
//! The level is what a line of 1 would meet at that time: the narrowest of its pools says it, by the same rules as
//! refusals (RULES R10), and holds that are past their end claim nothing. Since when a pool has been sold out is kept
//! here, too: it follows from the facts, row by row, and is in snapshots, but not in `state_sum`.

use alloc::vec::Vec;

use super::State;
use super::turn::Touched;
use crate::limits::{FEW_MAX, FEW_SHARE, MAY_FREE_SCAN_MAX};
use crate::outcome::Counts;
use crate::units::{HoldNo, ItemIx, Timestamp};

/// How much of an item there is, for everyone. In order: a line meets the last of its pools' levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// More than a few.
    Available,
    /// At most [`few`] of the narrowest pool's units.
    Few,
    /// None is free, but units that are held may come back.
    AllHeld,
    /// Every unit is sold or set aside; no lapse brings one back.
    SoldOut,
}

impl Level {
    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Few => "few",
            Self::AllHeld => "all_held",
            Self::SoldOut => "sold_out",
        }
    }
}

/// What everyone may know of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How much there is.
    pub level: Level,
    /// The time of the row since which it is sold out; none where it is not.
    pub sold_out_at: Option<Timestamp>,
}

/// So many free units of a pool, or fewer, are few.
#[must_use]
pub fn few(total: u32) -> u64 {
    u64::from(FEW_MAX.max(total / FEW_SHARE))
}

impl Counts {
    /// Whether no unit can be had, now or when holds lapse: S + B ≥ T + U + L.
    #[must_use]
    pub const fn is_sold_out(&self) -> bool {
        self.sold as u64 + self.blocked as u64 >= self.cap()
    }
}

impl State {
    /// What everyone may know of an item, at a time that is not before the newest turn's.
    #[must_use]
    pub fn offer(&self, item: ItemIx, now: Timestamp) -> Offer {
        let pools = &self.books.items[item.0 as usize].draws;
        let level = pools.iter().map(|&pool| self.level_of(pool, now)).max();
        let level = level.unwrap_or(Level::SoldOut);
        let since = |pool: &ItemIx| self.books.sold_out_since[pool.0 as usize];
        // Only what the log says: no lapse makes a pool sold out, or brings anything to one that is.
        Offer { level, sold_out_at: pools.iter().filter_map(since).min() }
    }

    fn level_of(&self, pool: ItemIx, now: Timestamp) -> Level {
        let counts = self.books.counts[pool.0 as usize];
        if counts.is_sold_out() {
            return Level::SoldOut;
        }
        let few = few(counts.total);
        let mut free = counts.free();
        if free <= few {
            let taken = counts.taken().saturating_sub(self.lapsed(pool, now));
            free = counts.cap().saturating_sub(taken);
        }
        match free {
            0 => Level::AllHeld,
            free if free <= few => Level::Few,
            _ => Level::Available,
        }
    }

    /// Units of a pool in holds that are past their end, where no turn has said so yet. Of very many, some.
    fn lapsed(&self, pool: ItemIx, now: Timestamp) -> u64 {
        let due = self.lapses.upcoming(pool).take_while(|(at, _)| *at <= now);
        let due = due.take(MAY_FREE_SCAN_MAX);
        let live = due.filter(|&(at, no)| self.holds.is_live_until(no) == Some(at));
        // The queue holds hints: what was undone may have left a hold in it twice.
        let mut lapsed: Vec<HoldNo> = live.map(|(_, no)| no).collect();
        lapsed.sort_unstable();
        lapsed.dedup();
        lapsed.into_iter().map(|no| u64::from(self.frees(no, pool))).sum()
    }

    /// Notes which of the accounts that a turn changed are sold out from now on, and which are not any more.
    pub(super) fn note_sold_out(&mut self) {
        let at = self.turn.moment.at;
        for Touched { item, .. } in &self.turn.accounts {
            let place = item.0 as usize;
            // An item that was made and undone within the turn has no account any more.
            let Some(counts) = self.books.counts.get(place) else { continue };
            let since = &mut self.books.sold_out_since[place];
            if !counts.is_sold_out() {
                *since = None;
            } else if since.is_none() {
                *since = Some(at);
            }
        }
    }
}
