//! One prepared search: which blocks of one size are free for one filter, and the best of them.
//!
//! A bit per position says whether its seat is free and matches, another whether a free block begins there. Above each
//! cell of 64 positions is the place of its best block, and above those a tree of minima. Changing a seat changes a few
//! cells and the way up from them; the best block is the root.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use smallvec::SmallVec;

use super::layout::{CELL, Layout, NEVER, Preference};
use super::seat::Seat;
use super::wish::Filter;
use crate::chunked::Chunked;

/// Which searches a finder can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Seats in a block; 1 if they need not be together.
    pub(super) quantity: u32,
    pub(super) filter: Filter,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Finder {
    pub(super) key: Key,
    /// When it was last prepared, in preparations.
    pub(super) used: u64,
    /// By cell: where the seat is free and matches.
    free: Vec<u64>,
    free_total: u32,
    /// By cell: where a free block begins.
    begins: Vec<u64>,
    /// Lowest places: node 1 is the root, node n has 2n and 2n + 1 below it, cell c is node `leaves` + c.
    tree: Vec<u32>,
    leaves: usize,
}

/// Positions as whole cells and parts of cells.
struct Parts {
    whole: Range<usize>,
    parts: SmallVec<[(usize, u64); 2]>,
}

impl Parts {
    fn of(positions: &Range<usize>) -> Self {
        let (first, last) = (positions.start / CELL, positions.end / CELL);
        let from = u64::MAX << (positions.start % CELL);
        let upto = !(u64::MAX << (positions.end % CELL));
        let mut parts = SmallVec::new();
        if positions.is_empty() {
            return Self { whole: 0..0, parts };
        }
        if first == last {
            parts.push((first, from & upto));
            return Self { whole: 0..0, parts };
        }
        if from != u64::MAX {
            parts.push((first, from));
        }
        if upto != 0 {
            parts.push((last, upto));
        }
        Self { whole: first + usize::from(from != u64::MAX)..last, parts }
    }
}

impl Finder {
    pub(super) fn new(
        key: Key,
        layout: &Layout,
        seats: &Chunked<Seat>,
        preference: &Preference,
    ) -> Self {
        let cells = layout.len() / CELL;
        let leaves = cells.next_power_of_two();
        let (free, begins) = (vec![0; cells], vec![0; cells]);
        let tree = vec![NEVER; 2 * leaves];
        let mut finder = Self { key, used: 0, free, free_total: 0, begins, tree, leaves };
        for position in 0..layout.len() {
            if layout.seat(position).is_some_and(|seat| key.filter.takes(&seats[seat.at()])) {
                finder.free[position / CELL] |= 1 << (position % CELL);
                finder.free_total += 1;
            }
        }
        for cell in 0..cells {
            let begins = finder.begins_in(cell);
            finder.begins[cell] = begins;
            finder.tree[leaves + cell] = preference.least(cell, begins);
        }
        for node in (1..leaves).rev() {
            finder.tree[node] = finder.below(node);
        }
        finder
    }

    pub(super) fn is_free(&self, position: usize) -> bool {
        self.free[position / CELL] >> (position % CELL) & 1 == 1
    }

    /// Free seats that match.
    pub(super) const fn free_total(&self) -> u32 {
        self.free_total
    }

    /// Of these positions, how many seats are free and match. Looks at each cell.
    pub(super) fn free_in(&self, positions: &Range<usize>) -> u32 {
        let Parts { whole, parts } = Parts::of(positions);
        let inside: u32 = self.free[whole].iter().map(|bits| bits.count_ones()).sum();
        parts.iter().map(|&(cell, bits)| (self.free[cell] & bits).count_ones()).sum::<u32>()
            + inside
    }

    /// Turns a seat from taken to free, or back.
    pub(super) fn flip(&mut self, position: usize, preference: &Preference) {
        let bit = 1 << (position % CELL);
        let cell = position / CELL;
        self.free[cell] ^= bit;
        if self.free[cell] & bit == 0 {
            self.free_total -= 1;
        } else {
            self.free_total += 1;
        }
        let first = position.saturating_sub(self.key.quantity as usize - 1);
        for cell in first / CELL..=cell {
            self.refresh(cell, preference);
        }
    }

    fn refresh(&mut self, cell: usize, preference: &Preference) {
        let now = self.begins_in(cell);
        let before = core::mem::replace(&mut self.begins[cell], now);
        if now == before {
            return;
        }
        let mut node = self.leaves + cell;
        let best = self.tree[node];
        let lost = preference.least(cell, before & !now) == best;
        let better = if lost && best != NEVER {
            preference.least(cell, now)
        } else {
            best.min(preference.least(cell, now & !before))
        };
        self.tree[node] = better;
        while node > 1 {
            node /= 2;
            let least = self.below(node);
            if self.tree[node] == least {
                break;
            }
            self.tree[node] = least;
        }
    }

    fn below(&self, node: usize) -> u32 {
        self.tree[2 * node].min(self.tree[2 * node + 1])
    }

    /// Where in this cell a block begins all of whose seats are free.
    fn begins_in(&self, cell: usize) -> u64 {
        let bits = self.free[cell];
        let quantity = self.key.quantity as usize;
        if bits == 0 || quantity == 1 {
            return bits;
        }
        if quantity > CELL {
            return self.long_begins_in(cell);
        }
        let next = self.free.get(cell + 1).copied().unwrap_or(0);
        let mut begins = u128::from(bits) | u128::from(next) << CELL;
        let mut seats = 1;
        while seats < quantity {
            // What begins here and what begins as many seats further make a block twice as long, or less.
            let step = seats.min(quantity - seats);
            begins &= begins >> step;
            seats += step;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is this cell")]
        let begins = begins as u64;
        begins
    }

    /// The same for blocks longer than a cell: only a run up to the cell's end can be long enough.
    fn long_begins_in(&self, cell: usize) -> u64 {
        let quantity = self.key.quantity as usize;
        let tail = self.free[cell].leading_ones() as usize;
        if tail == 0 {
            return 0;
        }
        let mut end = CELL;
        for bits in &self.free[cell + 1..] {
            let ones = bits.trailing_ones() as usize;
            end += ones;
            if ones < CELL || end >= CELL + quantity {
                break;
            }
        }
        let Some(last) = end.checked_sub(quantity) else { return 0 };
        let upto = u64::MAX >> (CELL - 1 - last.min(CELL - 1));
        upto & u64::MAX << (CELL - tail)
    }

    /// The place of the best free block.
    pub(super) fn best(&self) -> u32 {
        self.tree[1]
    }

    /// The place of the best free block that begins at one of these positions.
    pub(super) fn best_in(&self, positions: &Range<usize>, preference: &Preference) -> u32 {
        let Parts { whole, parts } = Parts::of(positions);
        let mut best = NEVER;
        for (cell, bits) in parts {
            best = best.min(preference.least(cell, self.begins[cell] & bits));
        }
        self.nodes(&whole).into_iter().fold(best, |best, node| best.min(self.tree[node]))
    }

    /// The fewest nodes that have all these cells below them, and no others.
    fn nodes(&self, cells: &Range<usize>) -> SmallVec<[usize; 32]> {
        let mut nodes = SmallVec::new();
        let (mut low, mut high) = (self.leaves + cells.start, self.leaves + cells.end);
        while low < high {
            if low % 2 == 1 {
                nodes.push(low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                nodes.push(high);
            }
            low /= 2;
            high /= 2;
        }
        nodes
    }

    /// Places of the best free blocks that begin at these positions, best first, at most `most`; blocks may overlap.
    pub(super) fn some_best_in(
        &self,
        positions: &[Range<usize>],
        most: usize,
        preference: &Preference,
    ) -> Vec<u32> {
        let mut found = Vec::new();
        // The best place below a node; and for a cell, which of its blocks are not found yet.
        let mut open: BinaryHeap<Reverse<(u32, usize, u64)>> = BinaryHeap::new();
        let offer = |open: &mut BinaryHeap<_>, place, node, bits| {
            if place != NEVER {
                open.push(Reverse((place, node, bits)));
            }
        };
        for positions in positions {
            let Parts { whole, parts } = Parts::of(positions);
            for (cell, bits) in parts {
                let bits = self.begins[cell] & bits;
                offer(&mut open, preference.least(cell, bits), self.leaves + cell, bits);
            }
            for node in self.nodes(&whole) {
                offer(&mut open, self.tree[node], node, self.bits_of(node));
            }
        }
        while found.len() < most {
            let Some(Reverse((place, node, bits))) = open.pop() else { break };
            if node < self.leaves {
                for node in [2 * node, 2 * node + 1] {
                    offer(&mut open, self.tree[node], node, self.bits_of(node));
                }
                continue;
            }
            found.push(place);
            let rest = bits & !(1 << (preference.first(place) % CELL));
            offer(&mut open, preference.least(node - self.leaves, rest), node, rest);
        }
        found
    }

    /// A cell's blocks; nothing for what is above cells.
    fn bits_of(&self, node: usize) -> u64 {
        node.checked_sub(self.leaves).and_then(|cell| self.begins.get(cell)).copied().unwrap_or(0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.free.capacity() + self.begins.capacity()) * size_of::<u64>()
            + self.tree.capacity() * size_of::<u32>()
    }
}
