//! Where seats lie in the order of rows, and in which order blocks of them are preferred. Neither depends on what is free.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::seat::{Place, Seat, SeatNo, SectionIx};
use crate::chunked::Chunked;

/// Positions in a cell: one bit each.
pub(super) const CELL: usize = 64;
/// No seat, or no block.
pub(super) const NEVER: u32 = u32::MAX;

/// All seats in one line: section by section, row by row, by number, and one position without a seat after each row.
///
/// So adjacent positions are adjacent seats, and no block reaches from one row into the next.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// By seat.
    positions: Vec<u32>,
    /// By position; [`NEVER`] between rows, and up to the end of the last cell.
    seats: Vec<u32>,
    sections: Vec<Range<usize>>,
}

impl Layout {
    pub(super) fn new(places: &BTreeMap<Place, SeatNo>, sections: usize) -> Self {
        let mut layout = Self {
            positions: vec![NEVER; places.len()],
            seats: Vec::with_capacity(places.len() + places.len() / 8),
            sections: vec![0..0; sections],
        };
        let mut last: Option<Place> = None;
        for (&place, &seat) in places {
            if last.is_some_and(|last| (last.section, last.row) != (place.section, place.row)) {
                layout.seats.push(NEVER);
            }
            let position = layout.seats.len();
            let section = &mut layout.sections[place.section as usize];
            if section.start == section.end {
                section.start = position;
            }
            section.end = position + 1;
            layout.positions[seat.at()] = super::count(position);
            layout.seats.push(seat.0);
            last = Some(place);
        }
        let whole = (layout.seats.len() + 1).next_multiple_of(CELL);
        layout.seats.resize(whole, NEVER);
        layout
    }

    /// Positions, those without a seat included: a whole number of cells, and none behind the last row is a seat's.
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    pub(super) fn position(&self, seat: SeatNo) -> usize {
        self.positions[seat.at()] as usize
    }

    pub(super) fn seat(&self, position: usize) -> Option<SeatNo> {
        let seat = self.seats[position];
        (seat != NEVER).then_some(SeatNo(seat))
    }

    /// A section's positions; none for an unknown one.
    pub(super) fn section(&self, section: SectionIx) -> Range<usize> {
        self.sections.get(section.0 as usize).cloned().unwrap_or(0..0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.positions.capacity() + self.seats.capacity()) * size_of::<u32>()
            + self.sections.capacity() * size_of::<Range<usize>>()
    }
}

/// All blocks of one size, as if every seat were free, from the best to the worst.
///
/// Best is the lowest sum of ranks, then the lowest worst rank, then the order of positions. Ranks never change, so
/// sorting once makes each later comparison one of two small numbers.
#[derive(Clone, Debug)]
pub(super) struct Preference {
    pub(super) quantity: u32,
    /// By position of a block's first seat: how many blocks are better; [`NEVER`] where no block begins.
    places: Vec<u32>,
    /// The inverse: a block's first position by its place.
    firsts: Vec<u32>,
}

impl Preference {
    pub(super) fn new(layout: &Layout, seats: &Chunked<Seat>, quantity: u32) -> Self {
        let mut blocks = blocks(layout, seats, quantity as usize);
        blocks.sort_unstable();
        let mut places = vec![NEVER; layout.len()];
        let mut firsts = Vec::with_capacity(blocks.len());
        for (place, block) in blocks.into_iter().enumerate() {
            places[block.first as usize] = super::count(place);
            firsts.push(block.first);
        }
        Self { quantity, places, firsts }
    }

    /// The place of the block that begins here.
    pub(super) fn place(&self, position: usize) -> u32 {
        self.places[position]
    }

    /// The first position of the block that has this place.
    pub(super) fn first(&self, place: u32) -> usize {
        self.firsts[place as usize] as usize
    }

    /// The lowest place of the blocks that begin in a cell at these bits.
    pub(super) fn least(&self, cell: usize, bits: u64) -> u32 {
        let places = &self.places[cell * CELL..][..CELL];
        let (mut least, mut bits) = (NEVER, bits);
        while bits != 0 {
            least = least.min(places[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        least
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.places.capacity() + self.firsts.capacity()) * size_of::<u32>()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    sum: u64,
    worst: u32,
    first: u32,
}

fn blocks(layout: &Layout, seats: &Chunked<Seat>, quantity: usize) -> Vec<Block> {
    let mut blocks = Vec::with_capacity(layout.positions.len());
    // The row's ranks of the last `quantity` positions; and of these, those that no later one outranks.
    let mut ranks: VecDeque<u32> = VecDeque::new();
    let mut worst: VecDeque<u32> = VecDeque::new();
    let mut sum = 0u64;
    for position in 0..layout.len() {
        let Some(seat) = layout.seat(position) else {
            ranks.clear();
            worst.clear();
            sum = 0;
            continue;
        };
        let rank = seats[seat.at()].rank;
        ranks.push_back(rank);
        sum += u64::from(rank);
        while worst.back().is_some_and(|&before| before < rank) {
            worst.pop_back();
        }
        worst.push_back(rank);
        if ranks.len() == quantity {
            let first = super::count(position + 1 - quantity);
            blocks.push(Block { sum, worst: worst[0], first });
            let gone = ranks.pop_front().expect("as many as wanted");
            sum -= u64::from(gone);
            if worst[0] == gone {
                worst.pop_front();
            }
        }
    }
    blocks
}
