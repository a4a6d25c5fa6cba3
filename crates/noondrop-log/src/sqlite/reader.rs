//! Reading beside the owner: from other threads of its process, or from another process.
//!
//! Each read is one statement in a transaction of its own, over before it returns. A transaction
//! that stays open keeps the write-ahead log from starting over.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, Weak};

use rusqlite::Connection;

use super::error::{failed, is_harmless};
use super::options::Files;
use super::{OpenError, connection, rows, scrubbed};
use crate::page::Page;
use crate::snapshot::FileSnapshots;
use crate::{LogError, LogOpener, LogReader, Position, Row, Snapshots, Throttle};

/// A reader's connection. None: to be opened at the next read.
type Slot = Mutex<Option<Connection>>;

/// Opens readers of one SQLite log. Clones are the same opener.
#[derive(Clone, Debug)]
pub struct SqliteOpener {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    files: Files,
    snapshots: Arc<FileSnapshots>,
    throttle: Arc<Throttle>,
    slots: Mutex<Vec<Weak<Slot>>>,
    /// Held for reading by each read, and for writing by a recovery, which lets none in.
    gate: RwLock<()>,
}

impl SqliteOpener {
    /// Reads a log that this process does not own, for audits and backups. It must exist.
    pub fn at(path: impl AsRef<Path>, throttle: Arc<Throttle>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let files = Files::resolve(path)
            .map_err(|e| LogError::io(format!("could not find {}", path.display()), e))?;
        connection::open_reader(&files.database)?;
        Ok(Self::new(files, throttle))
    }

    pub(super) fn new(files: Files, throttle: Arc<Throttle>) -> Self {
        let snapshots = Arc::new(FileSnapshots::new(files.snapshots(), Arc::clone(&throttle)));
        let (slots, gate) = (Mutex::default(), RwLock::default());
        Self { shared: Arc::new(Shared { files, snapshots, throttle, slots, gate }) }
    }

    /// Waits for running reads, closes the connections of all readers, and keeps them closed for
    /// as long as the guard lives.
    pub(super) fn close_readers(&self) -> RwLockWriteGuard<'_, ()> {
        let gate = self.shared.gate.write().unwrap_or_else(PoisonError::into_inner);
        for slot in lock(&self.shared.slots).iter().filter_map(Weak::upgrade) {
            *lock(&slot) = None;
        }
        gate
    }
}

impl LogOpener for SqliteOpener {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        let slot = Arc::new(Slot::default());
        let mut slots = lock(&self.shared.slots);
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        drop(slots);
        let mut reader = SqliteReader { slot, shared: Arc::clone(&self.shared) };
        // So that a log that can not be read is noticed here and not at the first read.
        reader.head()?;
        Ok(Box::new(reader))
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        Arc::clone(&self.shared.snapshots) as Arc<dyn Snapshots>
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        scrubbed::read(&self.shared.files.scrubbed())
    }

    fn throttle(&self) -> Arc<Throttle> {
        Arc::clone(&self.shared.throttle)
    }
}

struct SqliteReader {
    slot: Arc<Slot>,
    shared: Arc<Shared>,
}

impl SqliteReader {
    fn read<T>(
        &mut self,
        tried: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LogError> {
        let _gate = self.shared.gate.read().unwrap_or_else(PoisonError::into_inner);
        let mut slot = lock(&self.slot);
        let connection = match slot.take() {
            Some(connection) => connection,
            None => connection::open_reader(&self.shared.files.database)
                .map_err(|error| error.during(tried))?,
        };
        let outcome = read(&connection);
        // After a failure the next read opens anew: this connection may hold on to what is gone.
        if outcome.as_ref().err().is_none_or(is_harmless) {
            *slot = Some(connection);
        }
        outcome.map_err(|error| failed(tried, error))
    }
}

impl LogReader for SqliteReader {
    fn head(&mut self) -> Result<Position, LogError> {
        self.read("could not read the last row", rows::head)
    }

    fn page(
        &mut self,
        after_seq: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, LogError> {
        let page = Page::new(max_rows, max_bytes);
        self.read("could not read rows", |connection| rows::page_after(connection, after_seq, page))
    }

    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError> {
        self.read("could not read a row", |connection| rows::row(connection, seq))
    }
}

/// What these locks guard is a connection or none, whole at any moment, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
