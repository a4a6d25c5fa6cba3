//! A hash index from 64-bit hashes to 32-bit ids of records that lie elsewhere; grows one bucket at a time.
//!
//! Linear hashing (Litwin 1980): the table has as many buckets as its load asks for, and each insertion may split one
//! of them. There is never a moment at which everything moves, which is what stops a turn in a plain map. A bucket is one
//! cache line: seven slots of 32 hash bits and an id, and a link to an overflow bucket.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::chunked::Chunked;

const SLOTS: usize = 7;
/// Keys per bucket that the table aims at, in tenths.
const LOAD_TENTHS: usize = 52;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    hashes: [u32; SLOTS],
    ids: [u32; SLOTS],
    /// An overflow bucket, or [`NONE`].
    next: u32,
    used: u32,
}

const EMPTY: Bucket = Bucket { hashes: [0; SLOTS], ids: [0; SLOTS], next: NONE, used: 0 };

const _: () = assert!(size_of::<Bucket>() == 64, "one cache line");

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    buckets: Chunked<Bucket>,
    overflow: Chunked<Bucket>,
    free: Vec<u32>,
    /// The table has `2^level + split` buckets.
    level: u32,
    split: usize,
    len: usize,
}

impl Default for Index {
    fn default() -> Self {
        let mut buckets = Chunked::new();
        buckets.push(EMPTY);
        Self { buckets, overflow: Chunked::new(), free: Vec::new(), level: 0, split: 0, len: 0 }
    }
}

/// The half of the hash that the index keeps: its upper one, so that a caller may use the lower one elsewhere.
const fn kept(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A bucket: in the table, or behind one.
#[derive(Clone, Copy)]
enum At {
    Table(usize),
    Overflow(u32),
}

impl Index {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    fn home(&self, hash: u32) -> usize {
        let low = hash as usize & ((1 << self.level) - 1);
        if low < self.split { hash as usize & ((2 << self.level) - 1) } else { low }
    }

    fn bucket(&self, at: At) -> &Bucket {
        match at {
            At::Table(at) => &self.buckets[at],
            At::Overflow(at) => &self.overflow[at as usize],
        }
    }

    fn bucket_mut(&mut self, at: At) -> &mut Bucket {
        match at {
            At::Table(at) => &mut self.buckets[at],
            At::Overflow(at) => &mut self.overflow[at as usize],
        }
    }

    fn next(&self, at: At) -> Option<At> {
        let next = self.bucket(at).next;
        (next != NONE).then_some(At::Overflow(next))
    }

    fn chain(&self, home: usize) -> impl Iterator<Item = At> + '_ {
        core::iter::successors(Some(At::Table(home)), |&at| self.next(at))
    }

    /// Loads the bucket of a hash into the cache; what it returns only keeps the load from being dropped.
    pub(crate) fn warm(&self, hash: u64) -> u32 {
        self.buckets[self.home(kept(hash))].used
    }

    /// The second step, for the overflow bucket: once the first has brought the link.
    pub(crate) fn warm_overflow(&self, hash: u64) -> u32 {
        let next = self.buckets[self.home(kept(hash))].next;
        if next == NONE { 0 } else { self.overflow[next as usize].used }
    }

    /// Adds an id under a hash. The same pair may be there twice; nothing is replaced.
    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        let hash = kept(hash);
        self.put(self.home(hash), hash, id);
        self.len += 1;
        if self.len * 10 > self.buckets.len() * LOAD_TENTHS {
            self.split_one();
        }
    }

    fn put(&mut self, home: usize, hash: u32, id: u32) {
        let mut at = At::Table(home);
        while self.bucket(at).used as usize == SLOTS {
            at = match self.next(at) {
                Some(next) => next,
                None => self.add_overflow(at),
            };
        }
        let bucket = self.bucket_mut(at);
        let slot = bucket.used as usize;
        bucket.hashes[slot] = hash;
        bucket.ids[slot] = id;
        bucket.used += 1;
    }

    fn add_overflow(&mut self, behind: At) -> At {
        let fresh = self.free.pop().unwrap_or_else(|| {
            let at = self.overflow.push(EMPTY);
            u32::try_from(at).expect("fewer overflow buckets than ids")
        });
        self.overflow[fresh as usize] = EMPTY;
        self.bucket_mut(behind).next = fresh;
        At::Overflow(fresh)
    }

    fn split_one(&mut self) {
        let old = self.split;
        self.buckets.push(EMPTY);
        self.split += 1;
        if self.split == 1 << self.level {
            self.level += 1;
            self.split = 0;
        }
        let mut slots: SmallVec<[(u32, u32); 3 * SLOTS]> = SmallVec::new();
        let chain: SmallVec<[At; 4]> = self.chain(old).collect();
        for at in chain {
            let bucket = self.bucket_mut(at);
            let used = bucket.used as usize;
            slots.extend(
                bucket.hashes[..used].iter().copied().zip(bucket.ids[..used].iter().copied()),
            );
            *bucket = EMPTY;
            if let At::Overflow(freed) = at {
                self.free.push(freed);
            }
        }
        for (hash, id) in slots {
            self.put(self.home(hash), hash, id);
        }
    }

    fn position(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<(At, usize)> {
        let hash = kept(hash);
        self.chain(self.home(hash)).find_map(|at| {
            let bucket = self.bucket(at);
            let slots = 0..bucket.used as usize;
            let mut hits = slots.filter(|&slot| bucket.hashes[slot] == hash);
            hits.find(|&slot| is(bucket.ids[slot])).map(|slot| (at, slot))
        })
    }

    /// The first id under this hash that `is` the one.
    pub(crate) fn find(&self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.position(hash, is).map(|(at, slot)| self.bucket(at).ids[slot])
    }

    /// Takes the first id under this hash that `is` the one out.
    pub(crate) fn remove(&mut self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        let (at, slot) = self.position(hash, is)?;
        let id = self.bucket(at).ids[slot];
        // The chain's last entry fills the gap, so that only the last bucket of a chain is not full.
        let (mut before, mut last) = (None, At::Table(self.home(kept(hash))));
        while let Some(next) = self.next(last) {
            (before, last) = (Some(last), next);
        }
        let bucket = self.bucket_mut(last);
        bucket.used -= 1;
        let end = bucket.used as usize;
        let moved = (bucket.hashes[end], bucket.ids[end]);
        let emptied = end == 0;
        let filled = self.bucket_mut(at);
        (filled.hashes[slot], filled.ids[slot]) = moved;
        if let (true, Some(before), At::Overflow(freed)) = (emptied, before, last) {
            self.bucket_mut(before).next = NONE;
            self.free.push(freed);
        }
        self.len -= 1;
        Some(id)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.overflow.memory_bytes() + self.free.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn mixed(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(acts in prop::collection::vec((any::<bool>(), 0u32..200, 0u64..6), 1..600)) {
            let mut index = Index::default();
            let mut oracle: HashMap<u32, u64> = HashMap::new();
            for (insert, id, crowd) in acts {
                // Few distinct hashes: chains, overflow and equal hashes all the time.
                let hash = mixed(crowd);
                if insert {
                    if let std::collections::hash_map::Entry::Vacant(entry) = oracle.entry(id) {
                        entry.insert(hash);
                        index.insert(hash, id);
                    }
                } else {
                    let at = oracle.remove(&id);
                    let removed = at.and_then(|hash| index.remove(hash, |known| known == id));
                    prop_assert_eq!(removed.is_some(), at.is_some());
                }
                prop_assert_eq!(index.len(), oracle.len());
            }
            for (id, hash) in &oracle {
                prop_assert_eq!(index.find(*hash, |known| known == *id), Some(*id));
            }
        }
    }

    #[test]
    fn grows_far_and_churns_in_place() {
        let mut index = Index::default();
        let many = 300_000u32;
        for id in 0..many {
            index.insert(mixed(u64::from(id)), id);
        }
        assert!((0..many).all(|id| index.find(mixed(u64::from(id)), |k| k == id) == Some(id)));
        let full = index.memory_bytes();
        assert!(full < many as usize * 18, "{} bytes a key", full / many as usize);
        for id in many..4 * many {
            let gone = id - many;
            assert_eq!(index.remove(mixed(u64::from(gone)), |k| k == gone), Some(gone));
            index.insert(mixed(u64::from(id)), id);
        }
        assert!(index.memory_bytes() < full * 11 / 10, "churn needs no more memory");
    }
}
