//! A vector in chunks: growing it never copies what is there, and never allocates more than one chunk.
//!
//! A big plain vector that doubles stops a turn as long as a big map does (measured: 0.2 to 1.3 s at tens of millions of
//! entries). Whole chunks can be dropped from the front, while the numbers of the others stay what they are.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Entries in one chunk.
const CHUNK: usize = 4_096;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    chunks: VecDeque<Vec<T>>,
    /// Number of the first entry that is kept; a multiple of [`CHUNK`].
    base: usize,
    end: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Chunked<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: VecDeque::new(), base: 0, end: 0 }
    }

    /// Number of the entry that the next push gets.
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

    pub(crate) fn push(&mut self, entry: T) -> usize {
        if (self.end - self.base).is_multiple_of(CHUNK) {
            // Small states stay small: only the first chunk grows by and by.
            let whole = if self.end == 0 { 0 } else { CHUNK };
            self.chunks.push_back(Vec::with_capacity(whole));
        }
        self.chunks.back_mut().expect("a chunk with room").push(entry);
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

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[T]> {
        self.chunks.iter().map(Vec::as_slice)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Number of the first entry for which `before` does not hold; entries must be parted by it.
    pub(crate) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(&before));
        let within = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(before));
        (self.base + chunk * CHUNK + within).min(self.end)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<T>()).sum()
    }
}

impl<T> Index<usize> for Chunked<T> {
    type Output = T;
    fn index(&self, number: usize) -> &T {
        let (chunk, at) = self.place(number).expect("an entry that is kept");
        &self.chunks[chunk][at]
    }
}

impl<T> IndexMut<usize> for Chunked<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        let (chunk, at) = self.place(number).expect("an entry that is kept");
        &mut self.chunks[chunk][at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_when_the_front_is_dropped() {
        let mut list = Chunked::new();
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
}
