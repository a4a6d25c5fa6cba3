//! The last position that was answered, in a small file beside the database.
//!
//! SQLite ends a damaged write-ahead log at the damage and calls the rest whole, so rows that were
//! answered can vanish in silence. This file knows better. It has two slots, each with a checksum,
//! in blocks of their own: a slot that is torn by a crash leaves the other one standing.
//!
//! It is written before each answer and synced once a second by a thread of its own. A crash of
//! the process loses nothing of it; a power failure at most the last second, and then it merely
//! notices a little less.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::warn;

use crate::Position;
use crate::snapshot::sync_parent;

const MAGIC: [u8; 8] = *b"NOONACK1";
const SLOT_BYTES: usize = 72;
const SLOT_CHECKED_BYTES: usize = 56;
/// The slots lie in different blocks, so that no single torn block takes both.
const SLOT_DISTANCE_BYTES: u64 = 4096;
const SLOTS: u64 = 2;

const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// What the file said when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remembered {
    /// There was no file.
    Nothing,
    /// There was one, and neither slot is whole.
    Unreadable,
    /// The last position that was answered.
    Position(Position),
}

/// The open file, ready to record positions.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: Arc<File>,
    /// Rises with each record; the higher of two whole slots is the newer one. The position can
    /// not tell, because it falls when a loss is accepted.
    generation: u64,
    syncer: Syncer,
}

impl Acknowledged {
    pub(super) fn open(path: &Path) -> io::Result<(Self, Remembered)> {
        let existed = path.try_exists()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Arc::new(options.open(path)?);
        let newest = newest_slot(&file)?;
        if !existed {
            sync_parent(path)?;
        }
        let remembered = match newest {
            Some(slot) => Remembered::Position(slot.position),
            None if existed && file.metadata()?.len() > 0 => Remembered::Unreadable,
            None => Remembered::Nothing,
        };
        let generation = newest.map_or(0, |slot| slot.generation);
        let syncer = Syncer::start(Arc::clone(&file))?;
        Ok((Self { file, generation, syncer }, remembered))
    }

    /// Records that `position` may be answered from now on. Survives a crash of the process at
    /// once, and one of the machine within a second.
    pub(super) fn record(&mut self, position: Position) -> io::Result<()> {
        self.generation += 1;
        let slot = Slot { generation: self.generation, position };
        self.file.write_all_at(&slot.encode(), offset_of(self.generation))?;
        self.syncer.shared.unsynced.store(true, Ordering::Release);
        Ok(())
    }
}

fn offset_of(generation: u64) -> u64 {
    (generation % SLOTS) * SLOT_DISTANCE_BYTES
}

fn newest_slot(file: &File) -> io::Result<Option<Slot>> {
    let mut newest: Option<Slot> = None;
    for number in 0..SLOTS {
        let Some(slot) = read_slot(file, offset_of(number))? else { continue };
        if newest.is_none_or(|newest| slot.generation > newest.generation) {
            newest = Some(slot);
        }
    }
    Ok(newest)
}

fn read_slot(file: &File, offset: u64) -> io::Result<Option<Slot>> {
    let mut bytes = [0; SLOT_BYTES];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(Slot::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// One of the two records: magic 8 · generation 8 · seq 8 · digest 32 · checksum 16.
#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u64,
    position: Position,
}

impl Slot {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.seq.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.position.digest);
        let checksum = checksum(&bytes[..SLOT_CHECKED_BYTES]);
        bytes[56..].copy_from_slice(&checksum);
        bytes
    }

    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Self> {
        let (checked, found) = bytes.split_at(SLOT_CHECKED_BYTES);
        if checked[..8] != MAGIC || checksum(checked) != found {
            return None;
        }
        let generation = u64::from_le_bytes(checked[8..16].try_into().ok()?);
        let seq = u64::from_le_bytes(checked[16..24].try_into().ok()?);
        let digest = checked[24..56].try_into().ok()?;
        Some(Self { generation, position: Position { seq, digest } })
    }
}

fn checksum(checked: &[u8]) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(checked).as_bytes()[..16]);
    first
}

/// Syncs the file once a second if there is something to sync, so that no turn waits for it.
#[derive(Debug)]
struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    unsynced: AtomicBool,
    stop: Mutex<bool>,
    stopped: Condvar,
}

impl Syncer {
    fn start(file: Arc<File>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let builder = thread::Builder::new().name("acknowledged".into());
        let thread = builder.spawn(move || its.sync_until_stopped(&file))?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Shared {
    fn sync_until_stopped(&self, file: &File) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stop {
            let waited = self.stopped.wait_timeout(stop, SYNC_INTERVAL);
            stop = waited.unwrap_or_else(PoisonError::into_inner).0;
            self.sync(file);
        }
    }

    fn sync(&self, file: &File) {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return;
        }
        // Not an error of any turn: the rows are durable without it. Only a loss of rows that
        // comes together with a power failure would now go unnoticed.
        if let Err(error) = file.sync_data() {
            warn!(%error, "could not sync the last answered position");
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // It can not have panicked in a way that matters here; the log is going away.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(seq: u64) -> Position {
        Position { seq, digest: [seq.to_le_bytes()[0]; 32] }
    }

    fn remembered(path: &Path) -> Remembered {
        Acknowledged::open(path).unwrap().1
    }

    fn damage(path: &Path, at: u64) {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0xff; 4], at).unwrap();
    }

    #[test]
    fn the_last_record_is_remembered_also_when_it_goes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acknowledged");
        let (mut file, first) = Acknowledged::open(&path).unwrap();
        assert_eq!(first, Remembered::Nothing);
        for seq in [1, 2, 3, 2] {
            file.record(position(seq)).unwrap();
            assert_eq!(remembered(&path), Remembered::Position(position(seq)));
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_other_and_two_torn_ones_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acknowledged");
        let (mut file, _) = Acknowledged::open(&path).unwrap();
        file.record(position(1)).unwrap();
        file.record(position(2)).unwrap();
        damage(&path, offset_of(2) + 30);
        assert_eq!(remembered(&path), Remembered::Position(position(1)));
        damage(&path, offset_of(1) + 30);
        assert_eq!(remembered(&path), Remembered::Unreadable);
    }
}
