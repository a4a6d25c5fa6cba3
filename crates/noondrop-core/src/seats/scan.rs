//! The slow way to find the best seats: looks at each seat once. For searches that nobody prepared.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use smallvec::SmallVec;

use super::SeatMap;
use super::seat::{Place, SeatNo};
use super::wish::{Beside, Filter, Found, NotFound, Wish};

pub(super) fn best(
    map: &SeatMap,
    wish: &Wish,
    quantity: u32,
    freed: &[SeatNo],
    taken: &[SeatNo],
) -> Result<Found, NotFound> {
    let runs = Runs::of(map, wish, freed, taken);
    let free = super::count(runs.seats.len());
    let found = if free < quantity {
        None
    } else if wish.together {
        runs.block(quantity as usize)
    } else {
        Some(runs.singles(quantity as usize))
    };
    found.ok_or_else(|| NotFound::of(wish, quantity, free))
}

/// Seats, each with its rank.
type Seats = [(u32, SeatNo)];

/// Free seats that match, in the order of rows and numbers.
struct Runs {
    seats: Vec<(u32, SeatNo)>,
    /// Where each run of adjacent ones ends in that list.
    ends: Vec<usize>,
}

/// How good a block is; lower is better.
type Score = (u64, u32);

fn score(block: &Seats) -> Score {
    let sum = block.iter().map(|&(rank, _)| u64::from(rank)).sum();
    (sum, block.iter().map(|&(rank, _)| rank).max().unwrap_or(0))
}

fn numbers(block: &Seats) -> Found {
    block.iter().map(|&(_, seat)| seat).collect()
}

fn sorted(seats: &[SeatNo]) -> SmallVec<[SeatNo; 8]> {
    let mut seats: SmallVec<[SeatNo; 8]> = seats.iter().copied().collect();
    seats.sort_unstable();
    seats
}

/// The places of the wish's sections, in order.
fn sections(wish: &Wish) -> SmallVec<[RangeInclusive<Place>; 4]> {
    let between = |first: u32, last: u32| {
        let first = Place { section: first, row: 0, number: 0 };
        first..=Place { section: last, row: u32::MAX, number: u32::MAX }
    };
    if wish.sections.is_empty() {
        return SmallVec::from_iter([between(0, u32::MAX)]);
    }
    let mut sections: SmallVec<[u32; 4]> = wish.sections.iter().map(|ix| ix.0).collect();
    sections.sort_unstable();
    sections.dedup();
    sections.into_iter().map(|section| between(section, section)).collect()
}

impl Runs {
    fn of(map: &SeatMap, wish: &Wish, freed: &[SeatNo], taken: &[SeatNo]) -> Self {
        let filter = Filter::of(wish);
        let (freed, taken) = (sorted(freed), sorted(taken));
        let (mut seats, mut ends) = (Vec::new(), Vec::new());
        let mut row = None;
        for (place, &no) in sections(wish).into_iter().flat_map(|range| map.places.range(range)) {
            let seat = &map.seats[no.at()];
            let is_freed = freed.binary_search(&no).is_ok();
            let is_free = if is_freed { filter.takes_once_freed(seat) } else { filter.takes(seat) };
            let is_free = is_free && taken.binary_search(&no).is_err();
            let is_next =
                row.replace((place.section, place.row)) == Some((place.section, place.row));
            if !(is_next && is_free) && ends.last() != Some(&seats.len()) {
                ends.push(seats.len());
            }
            if is_free {
                seats.push((seat.rank, no));
            }
        }
        ends.push(seats.len());
        Self { seats, ends }
    }

    fn iter(&self) -> impl Iterator<Item = &Seats> {
        let begins = core::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.seats[begin..end])
    }

    fn block(&self, quantity: usize) -> Option<Found> {
        let mut best: Option<(Score, &Seats, usize)> = None;
        for run in self.iter().filter(|run| run.len() >= quantity) {
            let mut sum: u64 = run[..quantity - 1].iter().map(|&(rank, _)| u64::from(rank)).sum();
            for (at, block) in run.windows(quantity).enumerate() {
                sum += u64::from(block[quantity - 1].0);
                if best.is_none_or(|((least, _), ..)| sum <= least) {
                    let score = score(block);
                    if best.is_none_or(|(least, ..)| score < least) {
                        best = Some((score, run, at));
                    }
                }
                sum -= u64::from(block[0].0);
            }
        }
        let (_, run, at) = best?;
        let beside = Beside { before: at, after: run.len() - quantity - at };
        let others = beside.remedies().into_iter().filter_map(|by| at.checked_add_signed(by));
        let at = others.min_by_key(|&at| score(&run[at..at + quantity])).unwrap_or(at);
        Some(numbers(&run[at..at + quantity]))
    }

    fn singles(mut self, quantity: usize) -> Found {
        // A stable sort: seats of one rank stay in the order of rows and numbers.
        self.seats.sort_by_key(|&(rank, _)| rank);
        numbers(&self.seats[..quantity])
    }
}
