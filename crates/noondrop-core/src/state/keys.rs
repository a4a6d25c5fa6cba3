//! Idempotency keys: what each one was used for and what came of it (RULES R7).
//!
//! Two stores, because the two kinds are kept differently: successes for days and never evicted, refusals for minutes
//! and first to go. Each store is a time-ordered list of entries in chunks behind one hash index; retention sweeps from
//! the front, a few entries a turn, so that neither growth nor retention ever stops a turn.
//!
//! Sweeping late is harmless (a key may replay longer than promised), so it leaves no fact; what the keys add to
//! `state_sum` is therefore a sum over every key ever used, which sweeping does not change.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::chunked::Chunked;
use crate::command::KeyUse;
use crate::ids::Digest16;
use crate::index::Index;
use crate::outcome::{HoldView, ItemView};
use crate::refusal::Refusal;
use crate::state::sum;
use crate::units::{HoldNo, Timestamp};

/// What came of a key, where the hold in memory does not tell it.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) enum Recorded {
    /// A hold, as it was then.
    #[n(0)]
    Hold(#[n(0)] HoldView),
    /// An item, as it was then.
    #[n(1)]
    Item(#[n(0)] ItemView),
    /// No.
    #[n(2)]
    Refused(#[n(0)] Refusal),
}

/// What came of a key.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made and used up at once")]
pub(super) enum KeyOutcome {
    /// It made this hold.
    Created(HoldNo),
    /// It confirmed this hold.
    Confirmed(HoldNo),
    /// Anything else, word for word.
    Recorded(Recorded),
}

const CREATED: u8 = 0;
const CONFIRMED: u8 = 1;
const RECORDED: u8 = 2;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct KeyEntry {
    hash: [u8; 16],
    fingerprint: U64,
    /// Low half of a hold number, or place in the chunk's blobs.
    target: U32,
    /// How often it was answered from the record; stops at its largest value.
    repeats: U16,
    kind: u8,
}

/// A key that is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) fingerprint: u64,
    pub(super) outcome: KeyOutcome,
    /// It was used in an earlier turn, which is durable.
    pub(super) durable: bool,
}

/// Entries that share one buffer of recorded outcomes and one time.
const CHUNK: u64 = 4_096;

/// One kind of keys.
#[derive(Clone, Default)]
pub(super) struct KeyStore {
    index: Index,
    pub(super) entries: Chunked<KeyEntry>,
    /// Per chunk of entries: when its newest entry was made, and the recorded outcomes.
    pub(super) chunks: VecDeque<KeyChunk>,
    /// Entries before this one are swept out of the index, or were never in.
    swept: u64,
    /// Where the open turn began.
    turn_start: u64,
}

#[derive(Clone, Default)]
pub(super) struct KeyChunk {
    pub(super) newest: Timestamp,
    pub(super) blobs: Vec<u8>,
}

#[expect(clippy::cast_possible_truncation, reason = "the index holds low halves")]
const fn low(number: u64) -> u32 {
    number as u32
}

impl KeyStore {
    fn end(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    fn widen(&self, low_half: u32) -> u64 {
        self.end() - u64::from(low(self.end()).wrapping_sub(low_half))
    }

    fn entry(&self, number: u64) -> &KeyEntry {
        &self.entries[usize::try_from(number).expect("entries in memory are counted in a word")]
    }

    fn position(&self, hash: &Digest16) -> Option<u64> {
        let found = self.index.find(hash.hash64(), |id| self.entry(self.widen(id)).hash == hash.0);
        found.map(|id| self.widen(id))
    }

    fn chunk(&self, number: u64) -> &KeyChunk {
        &self.chunks[self.chunk_place(number)]
    }

    fn chunk_place(&self, number: u64) -> usize {
        let first = self.entries.base() as u64 / CHUNK;
        usize::try_from(number / CHUNK - first).expect("chunks in memory are counted in a word")
    }

    fn insert(&mut self, entry: KeyEntry, blob: Option<&Recorded>, at: Timestamp) {
        let number = self.end();
        if number.is_multiple_of(CHUNK) {
            self.chunks.push_back(KeyChunk::default());
        }
        let chunk = self.chunks.back_mut().expect("the chunk of the newest entry");
        chunk.newest = chunk.newest.max(at);
        let mut entry = entry;
        if let Some(recorded) = blob {
            entry.target =
                u32::try_from(chunk.blobs.len()).expect("a chunk's blobs fit 4 GiB").into();
            minicbor::encode(recorded, &mut chunk.blobs).expect("writing to a vector cannot fail");
        }
        self.entries.push(entry);
        self.index.insert(Digest16(entry.hash).hash64(), low(number));
    }

    /// Lets go of a key, if it is known: a newer use of it counts.
    fn forget(&mut self, hash: &Digest16) {
        let end = self.end();
        let entries = &self.entries;
        self.index.remove(hash.hash64(), |low_half| {
            let number = end - u64::from(low(end).wrapping_sub(low_half));
            entries[usize::try_from(number).expect("entries in memory are counted in a word")].hash
                == hash.0
        });
    }

    /// Takes the newest entry out again.
    fn pop(&mut self) {
        let number = self.end() - 1;
        let entry = *self.entry(number);
        self.index.remove(Digest16(entry.hash).hash64(), |id| id == low(number));
        self.entries.pop();
        if entry.kind == RECORDED {
            let chunk = self.chunks.back_mut().expect("the chunk of the newest entry");
            chunk.blobs.truncate(entry.target.get() as usize);
        }
        if number.is_multiple_of(CHUNK) {
            self.chunks.pop_back();
        }
    }

    fn recorded(&self, number: u64, place: u32) -> Recorded {
        let blobs = &self.chunk(number).blobs;
        minicbor::decode(&blobs[place as usize..]).expect("written by this program, in memory")
    }

    /// Lets go of up to `most` entries made before `keep_from`; `keep` says which of them are needed still.
    fn sweep(
        &mut self,
        keep_from: Timestamp,
        now: Timestamp,
        most: usize,
        mut keep: impl FnMut(&KeyEntry, Option<&Recorded>) -> bool,
    ) {
        for _ in 0..most {
            let number = self.swept.max(self.entries.base() as u64);
            self.swept = number;
            let over = number >= self.end() || self.chunk(number).newest >= keep_from;
            if over {
                return;
            }
            let entry = *self.entry(number);
            let was_in = self.index.remove(Digest16(entry.hash).hash64(), |id| id == low(number));
            let blob = (entry.kind == RECORDED).then(|| self.recorded(number, entry.target.get()));
            if was_in.is_some() && keep(&entry, blob.as_ref()) {
                self.insert(entry, blob.as_ref(), now);
            }
            self.swept += 1;
            // The newest chunk stays: entries are still added to it.
            if self.swept.is_multiple_of(CHUNK) && self.chunks.len() > 1 {
                self.entries.drop_front_chunk();
                self.chunks.pop_front();
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
            + self.index.memory_bytes()
            + self.chunks.iter().map(|chunk| chunk.blobs.capacity()).sum::<usize>()
    }

    /// The entries that still answer their key, with their recorded outcomes and times, oldest first.
    pub(super) fn known(&self) -> impl Iterator<Item = (&KeyEntry, &KeyChunk)> + '_ {
        let from = self.swept.max(self.entries.base() as u64);
        let numbers = (from..self.end()).map(|number| (number, self.entry(number)));
        let used_last =
            numbers.filter(|(number, entry)| self.position(&Digest16(entry.hash)) == Some(*number));
        used_last.map(|(number, entry)| (entry, self.chunk(number)))
    }
}

/// All keys.
#[derive(Clone, Default)]
pub(super) struct Keys {
    pub(super) successes: KeyStore,
    pub(super) refusals: KeyStore,
    /// A sum over every key ever used.
    pub(super) sum: u128,
}

/// Which store a key went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inserted {
    refusal: bool,
    sum: u128,
}

/// Which keys to let go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retention {
    pub(super) successes_from: Timestamp,
    pub(super) refusals_from: Timestamp,
    pub(super) now: Timestamp,
}

impl Keys {
    pub(super) fn find(&self, hash: &Digest16, holds_end: impl Fn(u32) -> HoldNo) -> Option<Found> {
        [&self.successes, &self.refusals].into_iter().find_map(|store| {
            let number = store.position(hash)?;
            let entry = store.entry(number);
            let target = entry.target.get();
            let outcome = match entry.kind {
                CREATED => KeyOutcome::Created(holds_end(target)),
                CONFIRMED => KeyOutcome::Confirmed(holds_end(target)),
                _ => KeyOutcome::Recorded(store.recorded(number, target)),
            };
            let durable = number < store.turn_start;
            Some(Found { fingerprint: entry.fingerprint.get(), outcome, durable })
        })
    }

    pub(super) fn warm(&self, hash: &Digest16, step: impl Fn(&Index, u64) -> u32) -> u32 {
        let hash = hash.hash64();
        step(&self.successes.index, hash) ^ step(&self.refusals.index, hash)
    }

    pub(super) fn has(&self, hash: &Digest16) -> bool {
        self.successes.position(hash).is_some() || self.refusals.position(hash).is_some()
    }

    pub(super) fn insert(&mut self, key: KeyUse, outcome: &KeyOutcome, at: Timestamp) -> Inserted {
        let (kind, target, blob) = match outcome {
            KeyOutcome::Created(no) => (CREATED, low(no.0), None),
            KeyOutcome::Confirmed(no) => (CONFIRMED, low(no.0), None),
            KeyOutcome::Recorded(recorded) => (RECORDED, 0, Some(recorded)),
        };
        let refusal = matches!(blob, Some(Recorded::Refused(_)));
        let entry = KeyEntry {
            hash: key.hash.0,
            fingerprint: key.fingerprint.into(),
            target: target.into(),
            repeats: 0.into(),
            kind,
        };
        // Where this was decided, retention had let go of an earlier use; where it is replayed, sweeping may not have
        // come to that yet.
        self.successes.forget(&key.hash);
        self.refusals.forget(&key.hash);
        let store = if refusal { &mut self.refusals } else { &mut self.successes };
        store.insert(entry, blob, at);
        let sum = sum::entry(sum::KEY, u64::from(kind), entry.as_bytes());
        self.sum = self.sum.wrapping_add(sum);
        Inserted { refusal, sum }
    }

    pub(super) fn undo(&mut self, inserted: Inserted) {
        let store = if inserted.refusal { &mut self.refusals } else { &mut self.successes };
        store.pop();
        self.sum = self.sum.wrapping_sub(inserted.sum);
    }

    pub(super) fn start_turn(&mut self) {
        self.successes.turn_start = self.successes.end();
        self.refusals.turn_start = self.refusals.end();
    }

    /// Counts a replay; the new count.
    pub(super) fn count_repeat(&mut self, hash: &Digest16) -> Option<u32> {
        let store = [&mut self.successes, &mut self.refusals]
            .into_iter()
            .find(|store| store.position(hash).is_some())?;
        let number = usize::try_from(store.position(hash)?).ok()?;
        let entry = &mut store.entries[number];
        let count = entry.repeats.get().saturating_add(1);
        entry.repeats = count.into();
        Some(u32::from(count))
    }

    /// Raises a count to what the log knows.
    pub(super) fn set_repeats(&mut self, hash: &Digest16, count: u32) {
        for store in [&mut self.successes, &mut self.refusals] {
            if let Some(number) = store.position(hash) {
                let entry = &mut store.entries[usize::try_from(number).expect("fits a word")];
                let count = u16::try_from(count).unwrap_or(u16::MAX);
                entry.repeats = entry.repeats.get().max(count).into();
            }
        }
    }

    /// Lets go of what retention no longer asks for: refusals by age; successes once their hold is settled too.
    pub(super) fn sweep(
        &mut self,
        retention: Retention,
        most: usize,
        settled_by: impl Fn(u32) -> Timestamp,
    ) {
        self.refusals.sweep(retention.refusals_from, retention.now, most, |_, _| false);
        self.successes.sweep(retention.successes_from, retention.now, most, |entry, recorded| {
            let hold = match recorded {
                None => entry.target.get(),
                Some(Recorded::Hold(view)) => low(view.no.0),
                Some(Recorded::Item(_) | Recorded::Refused(_)) => return false,
            };
            settled_by(hold) >= retention.successes_from
        });
    }

    pub(super) fn len(&self) -> usize {
        self.successes.len() + self.refusals.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.successes.memory_bytes() + self.refusals.memory_bytes()
    }
}

impl KeyStore {
    /// Puts an entry of a snapshot back.
    pub(super) fn restore(
        &mut self,
        entry: KeyEntry,
        blob: &[u8],
        newest: Timestamp,
    ) -> Option<()> {
        let recorded = match entry.kind {
            RECORDED => Some(minicbor::decode::<Recorded>(blob).ok()?),
            CREATED | CONFIRMED => None,
            _ => return None,
        };
        self.insert(entry, recorded.as_ref(), newest);
        Some(())
    }
}

impl KeyEntry {
    /// The recorded outcome's bytes within its chunk; empty where there is none.
    pub(super) fn blob<'a>(&self, chunk: &'a KeyChunk) -> &'a [u8] {
        if self.kind != RECORDED {
            return &[];
        }
        let from = &chunk.blobs[self.target.get() as usize..];
        let mut decoder = minicbor::Decoder::new(from);
        decoder.skip().expect("written by this program, in memory");
        &from[..decoder.position()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> KeyUse {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        hash[8..].copy_from_slice(&n.to_le_bytes());
        KeyUse { hash: Digest16(hash), fingerprint: n }
    }

    fn widen(target: u32) -> HoldNo {
        HoldNo(u64::from(target))
    }

    #[test]
    fn a_popped_key_is_gone_and_the_sum_comes_back() {
        let mut keys = Keys::default();
        keys.insert(key(1), &KeyOutcome::Created(HoldNo(7)), Timestamp(1));
        let before = keys.sum;
        let refused = KeyOutcome::Recorded(Recorded::Refused(Refusal::HoldExpired));
        let inserted = keys.insert(key(2), &refused, Timestamp(1));
        assert_eq!(keys.find(&key(2).hash, widen).map(|f| f.outcome), Some(refused));
        keys.undo(inserted);
        assert_eq!(keys.sum, before);
        assert!(!keys.has(&key(2).hash));
        assert!(keys.has(&key(1).hash));
    }

    /// A log is replayed with other turns between its rows than it was written with, and so sweeps later: an earlier
    /// use of a key, of either kind, may still be there when the row comes that used it again.
    #[test]
    fn a_newer_use_of_a_key_counts_though_the_older_is_not_swept_yet() {
        let refused = |refusal: Refusal| KeyOutcome::Recorded(Recorded::Refused(refusal));
        let uses = [
            refused(Refusal::HoldConfirmed),
            refused(Refusal::HoldExpired),
            KeyOutcome::Created(HoldNo(7)),
            refused(Refusal::StaleFence),
        ];
        let mut keys = Keys::default();
        for (n, outcome) in (0..).zip(&uses) {
            keys.insert(key(1), outcome, Timestamp(n));
            let found = keys.find(&key(1).hash, widen).map(|found| found.outcome);
            assert_eq!(found.as_ref(), Some(outcome));
            assert_eq!(keys.len(), 1);
            let known = keys.successes.known().count() + keys.refusals.known().count();
            assert_eq!(known, 1, "a snapshot has the newest use only");
        }
    }

    #[test]
    fn retention_drops_the_old_and_carries_what_its_hold_still_needs() {
        let mut keys = Keys::default();
        for n in 0..3 * CHUNK {
            let at = Timestamp(n);
            keys.insert(key(n), &KeyOutcome::Created(HoldNo(n)), at);
        }
        keys.start_turn();
        let from = Timestamp(3 * CHUNK);
        let retention = Retention { successes_from: from, refusals_from: from, now: from };
        // Every thousandth hold settles far in the future.
        let settled = |target: u32| {
            if target.is_multiple_of(1_000) { Timestamp(u64::MAX) } else { Timestamp(0) }
        };
        for _ in 0..100 {
            keys.sweep(retention, 512, settled);
        }
        let known: Vec<u64> = (0..3 * CHUNK).filter(|&n| keys.has(&key(n).hash)).collect();
        assert_eq!(known, (0..3 * CHUNK).filter(|n| n % 1_000 == 0).collect::<Vec<_>>());
        assert!(keys.successes.entries.base() > 0, "whole chunks are given back");
        let found = keys.find(&key(5_000).hash, widen).map(|found| found.outcome);
        assert_eq!(found, Some(KeyOutcome::Created(HoldNo(5_000))));
    }
}
