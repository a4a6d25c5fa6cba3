//! The suite's own test: stores that are broken on purpose, each of which it must catch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use noondrop_log::conformance::{self, Subject};
use noondrop_log::memory::{AppendFault, SharedMemory};
use noondrop_log::{
    AppendError, BeginError, Begun, Log, LogError, LogOpener, LogReader, Position, Row,
    SnapshotMeta, Snapshots,
};

/// In what way a store is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Every seventh append is answered and not stored.
    SwallowsRows,
    /// `begin` believes whatever it is told.
    TrustsThePosition,
    /// `begin` compares numbers only.
    ComparesNumbersOnly,
    /// Readers skip the row after each page.
    SkipsRows,
    /// Readers return no row that is larger than what was asked for.
    StarvesOnLargeRows,
    /// Readers forget the private bytes.
    ForgetsPrivate,
    /// A taken position is reported as success, as `INSERT OR IGNORE` would.
    IgnoresConflicts,
    /// A gap is reported as a conflict, so that the engine would try for ever.
    CallsGapsConflicts,
    /// `recover` answers with the head that it remembers from the start.
    RecoversThePast,
    /// Reopening finds one row less.
    LosesTheLastRow,
    /// Snapshots are not checked before they are handed out.
    ServesDamagedSnapshots,
    /// Texts that are to be overwritten stay.
    KeepsErasedTexts,
    /// It is not remembered up to where texts are erased.
    ForgetsScrubs,
}

const FLAWS: [Flaw; 13] = [
    Flaw::SwallowsRows,
    Flaw::TrustsThePosition,
    Flaw::ComparesNumbersOnly,
    Flaw::SkipsRows,
    Flaw::StarvesOnLargeRows,
    Flaw::ForgetsPrivate,
    Flaw::IgnoresConflicts,
    Flaw::CallsGapsConflicts,
    Flaw::RecoversThePast,
    Flaw::LosesTheLastRow,
    Flaw::ServesDamagedSnapshots,
    Flaw::KeepsErasedTexts,
    Flaw::ForgetsScrubs,
];

#[test]
fn every_broken_store_fails_the_suite() {
    for flaw in FLAWS {
        let failures = conformance::run(&|| Box::new(BrokenSubject::new(flaw)));
        assert!(!failures.is_empty(), "{flaw:?} was not noticed");
    }
}

struct BrokenSubject {
    flaw: Flaw,
    memory: SharedMemory,
}

impl BrokenSubject {
    fn new(flaw: Flaw) -> Self {
        Self { flaw, memory: SharedMemory::new() }
    }
}

impl Subject for BrokenSubject {
    fn open(&self) -> Box<dyn Log> {
        let flaw = self.flaw;
        if flaw == Flaw::LosesTheLastRow {
            self.memory.go_back_to(self.memory.head().seq.saturating_sub(1));
        }
        let at_start = self.memory.head();
        let memory = self.memory.clone();
        Box::new(BrokenLog { flaw, log: Box::new(memory.log()), memory, at_start, appends: 0 })
    }

    fn branch(&self, seq: u64, rows: &[Row]) {
        self.memory.branch(seq, rows.to_vec());
    }

    fn damage_snapshot(&self, meta: &SnapshotMeta, at: usize) {
        if self.flaw != Flaw::ServesDamagedSnapshots {
            self.memory.damage_snapshot(meta.position, at);
        }
    }
}

struct BrokenLog {
    flaw: Flaw,
    memory: SharedMemory,
    log: Box<noondrop_log::memory::MemoryLog>,
    at_start: Position,
    appends: u64,
}

impl Log for BrokenLog {
    fn head(&mut self) -> Result<Position, LogError> {
        self.log.head()
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        let known = after.seq <= self.memory.head().seq;
        match self.log.begin(after) {
            Err(BeginError::HistoryChanged { .. }) if self.flaw == Flaw::TrustsThePosition => {
                Ok(Begun::default())
            }
            Err(BeginError::HistoryChanged { .. })
                if self.flaw == Flaw::ComparesNumbersOnly && known =>
            {
                Ok(Begun::default())
            }
            other => other,
        }
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        self.appends += 1;
        if self.flaw == Flaw::SwallowsRows && self.appends.is_multiple_of(7) {
            self.log.faults().next_append(AppendFault::Swallowed);
        }
        match self.log.append(row) {
            Err(AppendError::Conflict) if self.flaw == Flaw::IgnoresConflicts => Ok(()),
            Err(AppendError::NotWritten(_)) if self.flaw == Flaw::CallsGapsConflicts => {
                Err(AppendError::Conflict)
            }
            other => other,
        }
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        let head = self.log.recover()?;
        Ok(if self.flaw == Flaw::RecoversThePast { self.at_start } else { head })
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        self.log.between_turns()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        if self.flaw == Flaw::KeepsErasedTexts { Ok(()) } else { self.log.rewrite_private(rows) }
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        if self.flaw == Flaw::ForgetsScrubs { Ok(true) } else { self.log.scrub(through) }
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::new(BrokenOpener { flaw: self.flaw, opener: self.log.opener() })
    }
}

struct BrokenOpener {
    flaw: Flaw,
    opener: Arc<dyn LogOpener>,
}

impl LogOpener for BrokenOpener {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        let reader = self.opener.reader()?;
        Ok(Box::new(BrokenReader { flaw: self.flaw, reader, pages: AtomicU64::new(0) }))
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        self.opener.snapshots()
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        self.opener.scrubbed()
    }
}

struct BrokenReader {
    flaw: Flaw,
    reader: Box<dyn LogReader>,
    pages: AtomicU64,
}

impl LogReader for BrokenReader {
    fn head(&mut self) -> Result<Position, LogError> {
        self.reader.head()
    }

    fn page(
        &mut self,
        after_seq: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, LogError> {
        let number = self.pages.fetch_add(1, Ordering::Relaxed);
        let skipped = u64::from(self.flaw == Flaw::SkipsRows && number > 0);
        let mut rows = self.reader.page(after_seq.saturating_add(skipped), max_rows, max_bytes)?;
        match self.flaw {
            Flaw::StarvesOnLargeRows => rows.retain(|row| row.facts.len() <= max_bytes),
            Flaw::ForgetsPrivate => rows.iter_mut().for_each(|row| row.private.clear()),
            _ => {}
        }
        Ok(rows)
    }

    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError> {
        self.reader.row(seq)
    }
}
