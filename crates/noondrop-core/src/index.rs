//! A hash index from 64-bit hashes to 32-bit ids of records that lie elsewhere; grows one bucket at a time.
//!
//! Linear hashing (Litwin 1980): the table has as many buckets as its load asks for, and each insertion may split one
//! of them. There is never a moment at which everything moves, which is what stops a turn in a plain map. Records are
//! never looked at here, but by the caller's own closures.
//!
//! # Layout
//!
//! A key takes seven bytes: its id and 24 bits of its hash. Six more bits are known from the bucket it is in, as the
//! table never has fewer than 2^6 of them; 30 bits are enough to split buckets for as long as there are ids. So
//! splitting needs no record. A bucket is two cache lines of 18 keys: the first line has all hash bits and the fill, the
//! second most of the ids. When it needs more, its last slot becomes the link to a list of spills, half a cache line of
//! four keys each; only the first spill of a list may have room, so that adding a key never walks it. Freed spills are
//! listed through their links, and used again.
//!
//! Keys whose 30 high hash bits are equal cannot be parted: thousands of them make one long list, and its split one long
//! insertion. Hashes must be such that nobody outside can choose them.
//!
//! # Measured
//!
//! Release build, sequential ids under mixed hashes, two shared cores of an AMD EPYC, best of three runs each:
//!
//! | keys | bytes a key | insert | find, 10,000 hot keys | find, any key | find, absent | remove and insert |
//! |-----:|------------:|-------:|----------------------:|--------------:|-------------:|------------------:|
//! |  3 M |        8.87 |  68 ns |                 21 ns |        110 ns |       140 ns |            216 ns |
//! |  5 M |        8.29 |  86 ns |                 25 ns |        105 ns |       121 ns |            232 ns |
//!
//! From 1 M to 6 M keys the mean is 8.64 bytes a key and the most 9.05; small tables have the slack of a chunk (10.5 at
//! 100,000). Of 5 M insertions, each the least of seven equal runs with fresh pages, the worst took 86 µs (the copy when
//! the first chunk reaches its full size), the next 40 µs; the worst of a single run, with whatever else the machine did,
//! was 91 to 275 µs. A search asks about 0.003 other ids on average.

use crate::chunked::Chunked;

/// Keys in a bucket itself.
const HOME_KEYS: usize = 18;
/// The slot whose id is the link, once there is one.
const LINK: usize = HOME_KEYS - 1;
const SPILL_KEYS: usize = 4;
/// Keys per bucket that the table aims at, spilled ones included. More makes it smaller, and its lists of spills longer.
const KEYS_PER_BUCKET: usize = 19;
/// The table's first size, as a power of two: so many bits of a hash are known from the bucket.
const FIRST_BITS: u32 = 6;
const FIRST_BUCKETS: usize = 1 << FIRST_BITS;
/// Makes a chunk of 256 KiB.
const BUCKETS_PER_CHUNK: usize = 2_048;
/// No spill.
const NONE: u32 = u32::MAX;
/// In [`Bucket::fill`]: there are spills.
const LINKED: u8 = 0x80;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Bucket {
    tags: [u16; HOME_KEYS],
    lows: [u8; HOME_KEYS],
    /// Keys here; or, [`LINKED`], keys in the first spill, and here all slots but [`LINK`] are taken.
    fill: u8,
    ids: [u32; HOME_KEYS],
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Spill {
    ids: [u32; SPILL_KEYS],
    /// The next spill of the list, or of the free ones; or [`NONE`].
    next: u32,
    tags: [u16; SPILL_KEYS],
    lows: [u8; SPILL_KEYS],
}

const EMPTY: Bucket =
    Bucket { ids: [0; HOME_KEYS], tags: [0; HOME_KEYS], lows: [0; HOME_KEYS], fill: 0 };
const NEW_SPILL: Spill =
    Spill { ids: [0; SPILL_KEYS], next: NONE, tags: [0; SPILL_KEYS], lows: [0; SPILL_KEYS] };

const _: () = assert!(size_of::<Bucket>() == 128 && size_of::<Spill>() == 32, "cache lines");

/// The part of a hash that the index works with: its 30 highest bits, so that a caller may use the lower ones elsewhere.
/// Buckets are numbered by the low ones of these.
#[derive(Clone, Copy)]
struct Kept(u32);

impl Kept {
    const fn of(hash: u64) -> Self {
        Self((hash >> 34) as u32)
    }

    /// The bits that the table's size uses last.
    #[expect(clippy::cast_possible_truncation, reason = "of 30 bits, 16 are left")]
    const fn tag(self) -> u16 {
        (self.0 >> 14) as u16
    }

    /// The bits between the tag and those that every table size uses.
    #[expect(clippy::cast_possible_truncation, reason = "eight bits are meant")]
    const fn low(self) -> u8 {
        (self.0 >> FIRST_BITS) as u8
    }
}

#[derive(Clone, Copy)]
struct Key {
    id: u32,
    tag: u16,
    low: u8,
}

impl Key {
    const fn new(id: u32, kept: Kept) -> Self {
        Self { id, tag: kept.tag(), low: kept.low() }
    }

    /// What is known of the hash of a key in this bucket.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    const fn kept(self, bucket: usize) -> Kept {
        let known = (bucket % FIRST_BUCKETS) as u32;
        Kept((self.tag as u32) << 14 | (self.low as u32) << FIRST_BITS | known)
    }
}

/// The first slot among the first `used` whose hash bits are these and whose id `is` the one.
fn hit<const KEYS: usize>(
    (ids, tags, lows): (&[u32; KEYS], &[u16; KEYS], &[u8; KEYS]),
    used: usize,
    kept: Kept,
    is: &mut impl FnMut(u32) -> bool,
) -> Option<usize> {
    let mut hits = 0u32;
    for (slot, &tag) in tags.iter().enumerate() {
        hits |= u32::from(tag == kept.tag()) << slot;
    }
    hits &= (1 << used) - 1;
    while hits != 0 {
        let slot = hits.trailing_zeros() as usize;
        if lows[slot] == kept.low() && is(ids[slot]) {
            return Some(slot);
        }
        hits &= hits - 1;
    }
    None
}

impl Bucket {
    const fn is_linked(&self) -> bool {
        self.fill & LINKED != 0
    }

    /// Keys in the bucket itself.
    const fn used(&self) -> usize {
        if self.is_linked() { LINK } else { self.fill as usize }
    }

    /// Keys in the first spill.
    const fn first_used(&self) -> usize {
        (self.fill & !LINKED) as usize
    }

    const fn key(&self, slot: usize) -> Key {
        Key { id: self.ids[slot], tag: self.tags[slot], low: self.lows[slot] }
    }

    const fn set(&mut self, slot: usize, key: Key) {
        (self.ids[slot], self.tags[slot], self.lows[slot]) = (key.id, key.tag, key.low);
    }
}

impl Spill {
    const fn key(&self, slot: usize) -> Key {
        Key { id: self.ids[slot], tag: self.tags[slot], low: self.lows[slot] }
    }

    const fn set(&mut self, slot: usize, key: Key) {
        (self.ids[slot], self.tags[slot], self.lows[slot]) = (key.id, key.tag, key.low);
    }
}

/// Where a key is.
#[derive(Clone, Copy)]
struct Place {
    bucket: usize,
    /// The spill it is in, or [`NONE`].
    spill: u32,
    slot: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// None before the first insertion, then at least [`FIRST_BUCKETS`].
    buckets: Chunked<Bucket, BUCKETS_PER_CHUNK>,
    spills: Chunked<Spill>,
    /// The first free spill, or [`NONE`].
    free: u32,
    len: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self { buckets: Chunked::new(), spills: Chunked::new(), free: NONE, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The bucket of a hash; the table must have buckets.
    const fn home(&self, kept: Kept) -> usize {
        // Buckets behind the last whole power of two are those that this round has split off already.
        let count = self.buckets.len();
        let mask = usize::MAX >> (count - 1).leading_zeros();
        let home = kept.0 as usize & mask;
        if home < count { home } else { home & (mask >> 1) }
    }

    /// The spills behind a bucket, each with the number of its keys.
    fn list(&self, bucket: &Bucket) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = bucket.is_linked().then(|| (bucket.ids[LINK], bucket.first_used()));
        core::iter::successors(first, |&(at, _)| {
            let next = self.spills[at as usize].next;
            (next != NONE).then_some((next, SPILL_KEYS))
        })
    }

    fn position(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        let kept = Kept::of(hash);
        let bucket = self.home(kept);
        let line = &self.buckets[bucket];
        let slots = (&line.ids, &line.tags, &line.lows);
        if let Some(slot) = hit(slots, line.used(), kept, &mut is) {
            return Some(Place { bucket, spill: NONE, slot });
        }
        self.list(line).find_map(|(at, used)| {
            let spill = &self.spills[at as usize];
            let slot = hit((&spill.ids, &spill.tags, &spill.lows), used, kept, &mut is)?;
            Some(Place { bucket, spill: at, slot })
        })
    }

    fn key(&self, place: Place) -> Key {
        match place.spill {
            NONE => self.buckets[place.bucket].key(place.slot),
            at => self.spills[at as usize].key(place.slot),
        }
    }

    fn set(&mut self, place: Place, key: Key) {
        match place.spill {
            NONE => self.buckets[place.bucket].set(place.slot, key),
            at => self.spills[at as usize].set(place.slot, key),
        }
    }

    /// The first id under this hash that `is` the one. Of other ids it asks about those with the same 30 high bits.
    pub(crate) fn find(&self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.position(hash, is).map(|place| self.key(place).id)
    }

    /// Adds an id under a hash. The same pair may be there twice; nothing is replaced.
    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        while self.buckets.len() < FIRST_BUCKETS {
            self.buckets.push(EMPTY);
        }
        let kept = Kept::of(hash);
        self.put(self.home(kept), Key::new(id, kept));
        self.len += 1;
        if self.len > self.buckets.len() * KEYS_PER_BUCKET {
            self.split_one();
        }
    }

    fn put(&mut self, bucket: usize, key: Key) {
        let line = &mut self.buckets[bucket];
        if !line.is_linked() && line.used() < HOME_KEYS {
            line.set(line.used(), key);
            line.fill += 1;
        } else if line.is_linked() && line.first_used() < SPILL_KEYS {
            self.spills[line.ids[LINK] as usize].set(line.first_used(), key);
            line.fill += 1;
        } else {
            self.put_in_new_spill(bucket, key);
        }
    }

    fn put_in_new_spill(&mut self, bucket: usize, key: Key) {
        let line = self.buckets[bucket];
        let mut spill = NEW_SPILL;
        let used = if line.is_linked() {
            spill.next = line.ids[LINK];
            spill.set(0, key);
            1
        } else {
            // The link takes the last key's slot.
            spill.set(0, line.key(LINK));
            spill.set(1, key);
            2
        };
        let at = self.add_spill(spill);
        let line = &mut self.buckets[bucket];
        line.ids[LINK] = at;
        line.fill = LINKED | used;
    }

    fn add_spill(&mut self, spill: Spill) -> u32 {
        let at = self.free;
        if at == NONE {
            let at = self.spills.push(spill);
            return u32::try_from(at).ok().filter(|&at| at != NONE).expect("fewer than ids");
        }
        self.free = self.spills[at as usize].next;
        self.spills[at as usize] = spill;
        at
    }

    fn free_spill(&mut self, at: u32) {
        self.spills[at as usize].next = self.free;
        self.free = at;
    }

    /// Parts the keys of one bucket, the next in turn, between it and a new one at the table's end.
    fn split_one(&mut self) {
        let count = self.buckets.len();
        // How far this round has come: the table's size without its highest bit.
        let old = count & !(1 << count.ilog2());
        self.buckets.push(EMPTY);
        let line = core::mem::replace(&mut self.buckets[old], EMPTY);
        for slot in 0..line.used() {
            self.put_again(old, line.key(slot));
        }
        if !line.is_linked() {
            return;
        }
        let (mut at, mut used) = (line.ids[LINK], line.first_used());
        while at != NONE {
            let spill = self.spills[at as usize];
            self.free_spill(at);
            for slot in 0..used {
                self.put_again(old, spill.key(slot));
            }
            (at, used) = (spill.next, SPILL_KEYS);
        }
    }

    fn put_again(&mut self, old: usize, key: Key) {
        self.put(self.home(key.kept(old)), key);
    }

    /// Takes the first id under this hash that `is` the one out. The table stays as big as it is, for the next ones.
    pub(crate) fn remove(&mut self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        let place = self.position(hash, is)?;
        let id = self.key(place).id;
        let last = self.last(place.bucket);
        self.set(place, self.key(last));
        self.buckets[place.bucket].fill -= 1;
        if last.spill != NONE && last.slot == 0 {
            self.unlink_first(place.bucket);
        }
        self.len -= 1;
        Some(id)
    }

    /// The key of a bucket that no other has to follow.
    fn last(&self, bucket: usize) -> Place {
        let line = &self.buckets[bucket];
        if line.is_linked() {
            Place { bucket, spill: line.ids[LINK], slot: line.first_used() - 1 }
        } else {
            Place { bucket, spill: NONE, slot: line.used() - 1 }
        }
    }

    /// Frees the first spill of a bucket, which is empty.
    #[expect(clippy::cast_possible_truncation, reason = "numbers of slots")]
    fn unlink_first(&mut self, bucket: usize) {
        let line = &mut self.buckets[bucket];
        let emptied = line.ids[LINK];
        let next = self.spills[emptied as usize].next;
        line.ids[LINK] = next;
        line.fill = if next == NONE { LINK as u8 } else { LINKED | SPILL_KEYS as u8 };
        self.free_spill(emptied);
    }

    /// Loads both lines of a hash's bucket into the cache; what it returns only keeps the loads from being dropped.
    pub(crate) fn warm(&self, hash: u64) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let line = &self.buckets[self.home(Kept::of(hash))];
        u32::from(line.fill) ^ line.ids[LINK]
    }

    /// The second step, for the first spill: once the first has brought the link.
    pub(crate) fn warm_overflow(&self, hash: u64) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let line = &self.buckets[self.home(Kept::of(hash))];
        if line.is_linked() { self.spills[line.ids[LINK] as usize].next } else { 0 }
    }

    /// Bytes that were asked of the allocator; takes the same short time at any size.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.spills.memory_bytes()
    }
}

#[cfg_attr(not(test), expect(dead_code, reason = "part of what an index offers; not needed yet"))]
impl Index {
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts another id in the place of the first one under this hash that is `matching`, and returns that.
    pub(crate) fn replace(
        &mut self,
        hash: u64,
        matching: impl FnMut(u32) -> bool,
        new_id: u32,
    ) -> Option<u32> {
        let place = self.position(hash, matching)?;
        let key = self.key(place);
        self.set(place, Key { id: new_id, ..key });
        Some(key.id)
    }

    /// All ids, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.buckets.iter().flat_map(|line| {
            let spilled = self
                .list(line)
                .flat_map(|(at, used)| self.spills[at as usize].ids[..used].iter().copied());
            line.ids[..line.used()].iter().copied().chain(spilled)
        })
    }

    /// Forgets everything, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn mixed(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    impl Index {
        /// What must hold between any two calls, from scratch.
        fn check(&self) {
            let mut ids = 0;
            let mut seen = HashSet::new();
            for (bucket, line) in self.buckets.iter().enumerate() {
                for slot in 0..line.used() {
                    assert_eq!(self.home(line.key(slot).kept(bucket)), bucket);
                }
                ids += line.used();
                for (at, used) in self.list(line) {
                    assert!(seen.insert(at), "a spill is in one list");
                    assert!((1..=SPILL_KEYS).contains(&used), "no spill is empty");
                    for slot in 0..used {
                        let key = self.spills[at as usize].key(slot);
                        assert_eq!(self.home(key.kept(bucket)), bucket);
                    }
                    ids += used;
                }
            }
            let mut free = self.free;
            while free != NONE {
                assert!(seen.insert(free), "a free spill is in no list");
                free = self.spills[free as usize].next;
            }
            assert_eq!(seen.len(), self.spills.len(), "no spill is lost");
            assert_eq!((ids, self.iter().count()), (self.len, self.len));
        }
    }

    /// How the hashes of a run are made: from well spread to all the same.
    #[derive(Clone, Copy, Debug)]
    enum Hashes {
        Spread,
        /// Few distinct ones: long lists, equal hashes all the time.
        Few,
        Same,
        /// Differ only where the index does not look.
        SameKept,
        /// One tag for all, and different buckets.
        SameTag,
        /// One bucket for all sizes of the table, and different tags.
        SameHome,
    }

    impl Hashes {
        fn of(self, n: u64) -> u64 {
            match self {
                Self::Spread => mixed(n),
                Self::Few => mixed(n % 5),
                Self::Same => 0x0123_4567_89ab_cdef,
                Self::SameKept => 0xffff_fffc_0000_0000 | mixed(n) >> 31,
                Self::SameTag => 0xabcd << 48 | mixed(n) >> 16,
                Self::SameHome => mixed(n) & !0 << 48 | 0x0123_4567_89ab,
            }
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Insert(u64),
        Remove(u64),
        Replace(u64),
        Find(u64),
    }

    fn hashes() -> impl Strategy<Value = Hashes> {
        use Hashes::{Few, Same, SameHome, SameKept, SameTag, Spread};
        prop::sample::select(&[Spread, Few, Same, SameKept, SameTag, SameHome][..])
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            6 => (0u64..3_000).prop_map(Act::Insert),
            3 => (0u64..3_000).prop_map(Act::Remove),
            1 => (0u64..3_000).prop_map(Act::Replace),
            2 => (0u64..3_000).prop_map(Act::Find),
        ];
        prop::collection::vec(act, 1..4_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn behaves_like_a_map(hashes in hashes(), acts in acts()) {
            let mut index = Index::new();
            // From a name to its id; an id tells its name, as a record would.
            let mut oracle: HashMap<u64, u32> = HashMap::new();
            let mut names: Vec<u64> = Vec::new();
            for act in acts {
                let (Act::Insert(name) | Act::Remove(name) | Act::Replace(name) | Act::Find(name)) = act;
                let hash = hashes.of(name);
                let fresh = u32::try_from(names.len()).unwrap();
                match act {
                    Act::Insert(_) if !oracle.contains_key(&name) => {
                        index.insert(hash, fresh);
                        oracle.insert(name, fresh);
                        names.push(name);
                    }
                    Act::Insert(_) | Act::Find(_) => {
                        let is = |id: u32| {
                            let known = hashes.of(names[id as usize]);
                            assert_eq!(known >> 34, hash >> 34, "asked about another hash");
                            names[id as usize] == name
                        };
                        prop_assert_eq!(index.find(hash, is), oracle.get(&name).copied());
                    }
                    Act::Remove(_) => {
                        let gone = index.remove(hash, |id| names[id as usize] == name);
                        prop_assert_eq!(gone, oracle.remove(&name));
                    }
                    Act::Replace(_) => {
                        let old = index.replace(hash, |id| names[id as usize] == name, fresh);
                        prop_assert_eq!(old, oracle.get(&name).copied());
                        if old.is_some() {
                            oracle.insert(name, fresh);
                            names.push(name);
                        }
                    }
                }
                prop_assert_eq!((index.len(), index.is_empty()), (oracle.len(), oracle.is_empty()));
            }
            index.check();
            let twin = index.clone();
            twin.check();
            let ids: HashSet<u32> = twin.iter().collect();
            prop_assert_eq!(ids, oracle.values().copied().collect::<HashSet<u32>>());
            for (&name, &id) in &oracle {
                prop_assert_eq!(twin.find(hashes.of(name), |known| known == id), Some(id));
                prop_assert_eq!(index.remove(hashes.of(name), |known| known == id), Some(id));
            }
            index.check();
            prop_assert!(index.is_empty());
        }
    }

    #[test]
    fn the_same_pair_may_be_there_twice_and_any_id_will_do() {
        let mut index = Index::new();
        for id in [u32::MAX, 0, u32::MAX] {
            index.insert(u64::MAX, id);
        }
        assert_eq!(index.remove(u64::MAX, |id| id == u32::MAX), Some(u32::MAX));
        assert_eq!(index.find(u64::MAX, |id| id == u32::MAX), Some(u32::MAX));
        assert_eq!(index.find(u64::MAX - (1 << 34), |_| true), None);
        index.clear();
        assert_eq!((index.len(), index.find(u64::MAX, |_| true)), (0, None));
        assert_eq!(index.memory_bytes(), 0);
    }

    #[test]
    fn an_empty_index_takes_no_memory_and_a_small_one_little() {
        let mut index = Index::new();
        assert_eq!((index.memory_bytes(), index.warm(7), index.warm_overflow(7)), (0, 0, 0));
        index.insert(7, 7);
        assert!(index.memory_bytes() <= 8_500, "{}", index.memory_bytes());
    }

    #[test]
    fn grows_far_in_little_memory() {
        let mut index = Index::new();
        let many = 1_000_000u32;
        for id in 0..many {
            index.insert(mixed(u64::from(id)), id);
            // A whole round, from one doubling to the next: its lists of spills grow and shrink.
            if id >= 500_000 && id % 50_000 == 0 {
                let bytes = index.memory_bytes();
                assert!(bytes * 10 < id as usize * 95, "{bytes} bytes at {id}");
            }
        }
        assert!((0..many).all(|id| index.find(mixed(u64::from(id)), |k| k == id) == Some(id)));
        assert_eq!(index.find(mixed(u64::from(many)), |_| true), None);
    }

    #[test]
    fn churns_in_place() {
        let mut index = Index::new();
        let many = 50_000u32;
        for id in 0..many {
            index.insert(mixed(u64::from(id)), id);
        }
        // The number of spills still wavers, by chance.
        let full = index.memory_bytes();
        for id in many..20 * many {
            let gone = id - many;
            assert_eq!(index.remove(mixed(u64::from(gone)), |k| k == gone), Some(gone));
            index.insert(mixed(u64::from(id)), id);
        }
        index.check();
        let churned = index.memory_bytes();
        assert!(churned <= full + 4_096 * size_of::<Spill>(), "{full} bytes became {churned}");
        for id in 19 * many..20 * many {
            index.remove(mixed(u64::from(id)), |k| k == id);
        }
        for id in 0..many {
            index.insert(mixed(u64::from(id)), id);
        }
        assert!(
            index.memory_bytes() <= churned + 4_096 * size_of::<Spill>(),
            "what was emptied is used again"
        );
    }
}
