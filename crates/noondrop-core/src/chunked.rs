//! A vector in chunks: growing it never copies what is there, and never allocates more than one chunk.
//!
//! A big plain vector that doubles stops a turn as long as a big map does (measured: 0.2 to 1.3 s at tens of millions of
//! entries). Whole chunks can be dropped from the front, while the numbers of the others stay what they are. Nothing
//! here knows what an entry is.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Room for entries that the first chunk starts with.
const FIRST_ROOM: usize = 4;

/// See the module. `CHUNK` is the number of entries in one chunk.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T, const CHUNK: usize = 4_096> {
    /// All full but the last, which is never empty.
    chunks: VecDeque<Vec<T>>,
    /// Number of the first entry that is kept; a multiple of `CHUNK`.
    base: usize,
    end: usize,
}

impl<T, const CHUNK: usize> Default for Chunked<T, CHUNK> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const CHUNK: usize> Chunked<T, CHUNK> {
    pub(crate) const fn new() -> Self {
        const { assert!(CHUNK.is_power_of_two() && CHUNK >= FIRST_ROOM, "places are shifts") };
        Self { chunks: VecDeque::new(), base: 0, end: 0 }
    }

    /// Number of the entry that the next push gets: counts those that were dropped from the front, too.
    pub(crate) const fn len(&self) -> usize {
        self.end
    }

    /// Number of the first entry that is kept.
    pub(crate) const fn base(&self) -> usize {
        self.base
    }

    fn place(&self, number: usize) -> Option<(usize, usize)> {
        let at = number.checked_sub(self.base).filter(|_| number < self.end)?;
        Some((at / CHUNK, at % CHUNK))
    }

    /// Adds an entry, and tells its number.
    pub(crate) fn push(&mut self, entry: T) -> usize {
        if (self.end - self.base).is_multiple_of(CHUNK) {
            // Small states stay small: only the first chunk grows by and by.
            let room = if self.end == 0 { FIRST_ROOM } else { CHUNK };
            self.chunks.push_back(Vec::with_capacity(room));
        }
        let chunk = self.chunks.back_mut().expect("a chunk with room");
        if chunk.len() == chunk.capacity() {
            // The first chunk, or the last one of a clone; left to itself, it might grow past a whole chunk.
            let room = (2 * chunk.len()).min(CHUNK);
            chunk.reserve_exact(room - chunk.len());
        }
        chunk.push(entry);
        self.end += 1;
        self.end - 1
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let entry = self.chunks.back_mut()?.pop()?;
        self.end -= 1;
        if (self.end - self.base).is_multiple_of(CHUNK) {
            self.chunks.pop_back();
        }
        Some(entry)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        let (chunk, at) = self.place(number)?;
        self.chunks[chunk].get(at)
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.chunks.back()?.last()
    }

    /// Drops the oldest chunk, which must be full.
    pub(crate) fn drop_front_chunk(&mut self) {
        assert!(self.end - self.base >= CHUNK, "only a full chunk is dropped");
        self.chunks.pop_front();
        self.base += CHUNK;
    }

    /// What is kept, in slices of a chunk each.
    pub(crate) fn chunks(&self) -> impl DoubleEndedIterator<Item = &[T]> {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// What is kept, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Number of the first entry for which `before` does not hold; entries must be parted by it.
    pub(crate) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(&before));
        let within = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(before));
        (self.base + chunk * CHUNK + within).min(self.end)
    }

    /// Bytes that were asked of the allocator; takes the same short time at any size.
    pub(crate) fn memory_bytes(&self) -> usize {
        let room = match (self.chunks.front(), self.chunks.back()) {
            (Some(only), _) if self.chunks.len() == 1 => only.capacity(),
            (Some(first), Some(last)) => {
                first.capacity() + (self.chunks.len() - 2) * CHUNK + last.capacity()
            }
            _ => 0,
        };
        room * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

#[cfg_attr(not(test), expect(dead_code, reason = "part of what a vector offers; not needed yet"))]
impl<T, const CHUNK: usize> Chunked<T, CHUNK> {
    /// Nothing is kept; entries may have been dropped.
    pub(crate) const fn is_empty(&self) -> bool {
        self.base == self.end
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let (chunk, at) = self.place(number)?;
        self.chunks[chunk].get_mut(at)
    }

    /// Drops the entries from this number on; those that are gone from the front stay gone.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.end {
            return;
        }
        self.end = len.max(self.base);
        let kept = self.end - self.base;
        self.chunks.truncate(kept.div_ceil(CHUNK));
        if let (Some(last), false) = (self.chunks.back_mut(), kept.is_multiple_of(CHUNK)) {
            last.truncate(kept % CHUNK);
        }
    }
}

impl<T, const CHUNK: usize> Index<usize> for Chunked<T, CHUNK> {
    type Output = T;
    fn index(&self, number: usize) -> &T {
        let (chunk, at) = self.place(number).expect("an entry that is kept");
        &self.chunks[chunk][at]
    }
}

impl<T, const CHUNK: usize> IndexMut<usize> for Chunked<T, CHUNK> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        let (chunk, at) = self.place(number).expect("an entry that is kept");
        &mut self.chunks[chunk][at]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    const CHUNK: usize = 4_096;

    #[derive(Clone, Debug)]
    enum Act {
        Push(u16),
        Pop,
        Set(usize),
        Truncate(usize),
        DropFront,
        Clone,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            8 => any::<u16>().prop_map(Act::Push),
            2 => Just(Act::Pop),
            1 => (0usize..100).prop_map(Act::Set),
            1 => (0usize..100).prop_map(Act::Truncate),
            1 => Just(Act::DropFront),
            1 => Just(Act::Clone),
        ];
        prop::collection::vec(act, 1..400)
    }

    proptest! {
        #[test]
        fn behaves_like_a_vector_that_forgets_its_front(acts in acts()) {
            let mut list: Chunked<u16, 8> = Chunked::new();
            let mut oracle: Vec<u16> = Vec::new();
            let mut base = 0;
            for act in acts {
                match act {
                    Act::Push(entry) => {
                        prop_assert_eq!(list.push(entry), oracle.len());
                        oracle.push(entry);
                    }
                    Act::Pop => {
                        let expected = if oracle.len() > base { oracle.pop() } else { None };
                        prop_assert_eq!(list.pop(), expected);
                    }
                    Act::Set(number) => {
                        let found = list.get_mut(number).map(|entry| core::mem::replace(entry, 7));
                        let expected = oracle.get_mut(number).filter(|_| number >= base);
                        prop_assert_eq!(found, expected.map(|entry| core::mem::replace(entry, 7)));
                    }
                    Act::Truncate(len) => {
                        list.truncate(len);
                        oracle.truncate(len.max(base));
                    }
                    Act::DropFront if oracle.len() - base >= 8 => {
                        list.drop_front_chunk();
                        base += 8;
                    }
                    Act::DropFront => {}
                    Act::Clone => list = list.clone(),
                }
                prop_assert_eq!((list.base(), list.len()), (base, oracle.len()));
                prop_assert_eq!(list.is_empty(), oracle.len() == base);
                prop_assert!(list.iter().eq(&oracle[base..]));
                prop_assert!(list.iter().rev().eq(oracle[base..].iter().rev()));
                prop_assert!(list.chunks().flatten().eq(&oracle[base..]));
                prop_assert_eq!(list.last(), oracle[base..].last());
                for number in 0..oracle.len() + 2 {
                    let expected = oracle.get(number).filter(|_| number >= base);
                    prop_assert_eq!(list.get(number), expected);
                }
                let room: usize = list.chunks.iter().map(Vec::capacity).sum();
                let lists = list.chunks.capacity() * size_of::<Vec<u16>>();
                prop_assert_eq!(list.memory_bytes(), room * 2 + lists);
                prop_assert!(list.chunks.iter().all(|chunk| chunk.capacity() <= 8));
            }
        }
    }

    #[test]
    fn numbers_stay_when_the_front_is_dropped() {
        let mut list: Chunked<usize> = Chunked::new();
        for n in 0..3 * CHUNK + 10 {
            assert_eq!(list.push(n), n);
        }
        list.drop_front_chunk();
        assert_eq!((list.base(), list.len()), (CHUNK, 3 * CHUNK + 10));
        assert_eq!(list.get(CHUNK - 1), None);
        assert_eq!(list[CHUNK], CHUNK);
        assert_eq!(list.get(3 * CHUNK + 10), None);
        assert_eq!(list.partition_point(|&n| n < 2 * CHUNK + 7), 2 * CHUNK + 7);
        assert_eq!(list.partition_point(|&n| n < 10 * CHUNK), list.len());
        assert_eq!(list.partition_point(|_| false), CHUNK);
        while list.pop().is_some() {}
        assert_eq!(list.len(), CHUNK);
        assert_eq!(list.push(7), CHUNK);
    }

    #[test]
    fn a_short_list_takes_little_memory_and_a_clone_never_more_than_whole_chunks() {
        let mut list: Chunked<u64> = Chunked::new();
        list.push(1);
        assert!(list.memory_bytes() < 200);
        for n in 0..CHUNK as u64 + 3_000 {
            list.push(n);
        }
        let mut twin = list.clone();
        twin.push(1);
        assert!(twin.memory_bytes() <= 2 * CHUNK * 8 + 200);
    }
}
