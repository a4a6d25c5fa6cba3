//! The store on a [`SharedMemory`]: what each operation does, and what it does when it is to fail.

use std::sync::Arc;

use super::fault::{AppendFault, Faults, ReadFault};
use super::{SharedMemory, disk::Disk};
use crate::page::Page;
use crate::row::verify_next;
use crate::store::could_not_rewrite;
use crate::{
    AppendError, BeginError, Begun, GENESIS, Log, LogError, LogErrorKind, LogOpener, LogReader,
    Position, Row, Snapshots, verify_chain,
};

/// A log in memory. Several may share one [`SharedMemory`], as replicas share a database.
#[derive(Debug)]
pub struct MemoryLog {
    memory: SharedMemory,
    faults: Faults,
    /// What the caller was last told; the next row must follow it.
    head: Position,
    /// The generation of the disk that this log knows. Another one: there was a crash.
    generation: u64,
    must_recover: bool,
}

impl MemoryLog {
    pub(super) fn new(memory: SharedMemory) -> Self {
        let (head, generation) = {
            let disk = memory.lock();
            (disk.head(), disk.generation)
        };
        Self { memory, faults: Faults::default(), head, generation, must_recover: false }
    }

    /// The handle that makes this log fail.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn check_usable(&mut self) -> Result<(), LogError> {
        self.must_recover |= self.generation != self.memory.lock().generation;
        if self.must_recover {
            let tried = "could not use the log before it has recovered";
            return Err(LogError::new(LogErrorKind::NeedsRecovery, tried));
        }
        Ok(())
    }

    fn check_follows(&self, row: &Row) -> Result<(), AppendError> {
        if row.seq <= self.head.seq {
            return Err(AppendError::Conflict);
        }
        verify_next(&self.head, row).map(|_| ()).map_err(|error| {
            AppendError::NotWritten(could_not_append(row, LogErrorKind::Refused).because(error))
        })
    }

    fn append_failing(&mut self, row: &Row, fault: AppendFault) -> Result<(), AppendError> {
        let kind = match fault {
            AppendFault::DiskFull => LogErrorKind::DiskFull,
            _ => LogErrorKind::Failed,
        };
        let error = could_not_append(row, kind);
        let mut disk = self.memory.lock();
        match fault {
            AppendFault::NotWritten => return Err(AppendError::NotWritten(error)),
            AppendFault::DiskFull | AppendFault::UnknownNotWritten => {}
            AppendFault::UnknownWritten => disk.push(row),
            AppendFault::UnknownUntilRecovery => disk.hide(row),
            AppendFault::LyingSync => {
                disk.push_unsynced(row);
                self.head = row.position();
                return Ok(());
            }
            AppendFault::Swallowed => {
                self.head = row.position();
                return Ok(());
            }
        }
        self.must_recover = true;
        Err(AppendError::Unknown(error))
    }

    fn append_fault(&self, disk: &Disk) -> Option<AppendFault> {
        let planned = self.faults.lock().appends.call();
        planned.or_else(|| disk.full.then_some(AppendFault::DiskFull))
    }
}

impl Log for MemoryLog {
    fn head(&mut self) -> Result<Position, LogError> {
        self.check_usable()?;
        fail_if(self.faults.lock().heads.call(), "could not read the last row")?;
        self.head = self.memory.head();
        Ok(self.head)
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        self.check_usable()?;
        let fault = self.faults.lock().begins.call();
        let disk = self.memory.lock();
        let clock = disk.clock;
        if fault == Some(ReadFault::Stale) {
            self.head = after;
            return Ok(Begun { clock, rows: Vec::new() });
        }
        fail_if(fault, "could not read the log")?;
        let found = disk.position_at(after.seq);
        if found != after {
            return Err(BeginError::HistoryChanged { ours: after, found });
        }
        let rows = fill(disk.rows_after(after.seq), Page::for_begin());
        let tried = "could not learn the rows of others";
        self.head = verify_chain(&after, &rows)
            .map_err(|e| LogError::new(LogErrorKind::Damaged, tried).because(e))?;
        Ok(Begun { clock, rows })
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        self.check_usable().map_err(AppendError::NotWritten)?;
        self.check_follows(row)?;
        let mut disk = self.memory.lock();
        let fault = self.append_fault(&disk);
        if disk.row(row.seq).is_some() {
            return Err(AppendError::Conflict);
        }
        if disk.head() != self.head {
            // It went back since `begin`. The primary key of a database would not notice; a row
            // without its predecessor must not be written all the same.
            let error = could_not_append(row, LogErrorKind::Refused);
            return Err(AppendError::NotWritten(error));
        }
        if let Some(fault) = fault {
            drop(disk);
            return self.append_failing(row, fault);
        }
        disk.push(row);
        self.head = row.position();
        Ok(())
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        let tried = "could not recover the log";
        fail_if(self.faults.lock().recoveries.call(), tried)?;
        let mut disk = self.memory.lock();
        if disk.full {
            return Err(LogError::new(LogErrorKind::DiskFull, tried));
        }
        disk.reveal();
        self.generation = disk.generation;
        self.must_recover = false;
        self.head = disk.head();
        Ok(self.head)
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        self.check_usable()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        self.check_usable()?;
        if self.memory.lock().rewrite_private(rows) { Ok(()) } else { Err(could_not_rewrite()) }
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        self.check_usable()?;
        self.memory.lock().scrubbed = Some(through);
        Ok(true)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::new(MemoryOpener { memory: self.memory.clone(), faults: self.faults() })
    }
}

struct MemoryOpener {
    memory: SharedMemory,
    faults: Faults,
}

impl LogOpener for MemoryOpener {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        let (memory, faults) = (self.memory.clone(), self.faults.clone());
        Ok(Box::new(MemoryReader { memory, faults }))
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        self.memory.snapshots()
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        Ok(self.memory.lock().scrubbed.unwrap_or(GENESIS))
    }
}

struct MemoryReader {
    memory: SharedMemory,
    faults: Faults,
}

impl MemoryReader {
    fn read<T>(&self, read: impl FnOnce(&Disk) -> T) -> Result<T, LogError> {
        fail_if(self.faults.lock().reads.call(), "could not read rows")?;
        Ok(read(&self.memory.lock()))
    }
}

impl LogReader for MemoryReader {
    fn head(&mut self) -> Result<Position, LogError> {
        self.read(Disk::head)
    }

    fn page(
        &mut self,
        after_seq: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, LogError> {
        let page = Page::new(max_rows, max_bytes);
        self.read(|disk| fill(disk.rows_after(after_seq), page))
    }

    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError> {
        self.read(|disk| disk.row(seq).cloned())
    }
}

fn fill(rows: &[Row], mut page: Page) -> Vec<Row> {
    for row in rows {
        if !page.has_room(row.facts.len() + row.private.len()) {
            break;
        }
        page.push(row.clone());
    }
    page.into_rows()
}

fn fail_if(fault: Option<ReadFault>, tried: &'static str) -> Result<(), LogError> {
    match fault {
        None => Ok(()),
        Some(_) => Err(LogError::new(LogErrorKind::Failed, tried)),
    }
}

fn could_not_append(row: &Row, kind: LogErrorKind) -> LogError {
    LogError::new(kind, format!("could not append row {}", row.seq))
}
