//! The disk of a world: the memory log with its faults, a process that can die at any of its calls, and the side slot
//! that remembers the last row that was answered for (RULES R3).

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noondrop_log::memory::{Faults, MemoryLog, SharedMemory};
use noondrop_log::{
    AppendError, BeginError, Begun, GENESIS, Log, LogError, LogErrorKind, LogOpener, LogReader,
    Position, Row, SnapshotMeta, Snapshots,
};

use crate::plant::Plant;

/// Where a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashPoint {
    /// Before a turn began.
    BeforeBegin,
    /// After it was decided, before the row reached the disk.
    BeforeAppend,
    /// The row is durable, and nobody was answered.
    AfterAppend,
    /// While rows are read: at a start, at a reload, under a snapshot.
    WhileReading,
    /// With half a snapshot written.
    WhileWritingSnapshot,
}

impl CrashPoint {
    /// Every point.
    pub const ALL: [Self; 5] = [
        Self::BeforeBegin,
        Self::BeforeAppend,
        Self::AfterAppend,
        Self::WhileReading,
        Self::WhileWritingSnapshot,
    ];
}

/// The disk, which outlives every process.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The rows and snapshots.
    pub memory: SharedMemory,
    acknowledged: Arc<Mutex<Position>>,
    has_slot: bool,
    plant: Option<Plant>,
}

/// A start that was refused: rows that were answered for are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedStart {
    /// The last row that was answered for.
    pub acknowledged: Position,
    /// Where the log ends, or what it has there.
    pub found: Position,
}

impl Disk {
    /// An empty disk. The side slot belongs to a log with one owner.
    #[must_use]
    pub fn new(has_slot: bool, plant: Option<Plant>) -> Self {
        let acknowledged = Arc::new(Mutex::new(GENESIS));
        Self { memory: SharedMemory::new(), acknowledged, has_slot, plant }
    }

    /// Opens the log for a new process.
    pub fn open(&self) -> Result<SimLog, RefusedStart> {
        let inner = self.memory.log();
        if self.plant == Some(Plant::TailCut) {
            self.cut_tail();
        }
        let head = self.memory.head();
        let acknowledged = *self.slot();
        let rows = self.memory.rows();
        let kept = acknowledged == GENESIS || rows.iter().any(|row| row.position() == acknowledged);
        if self.has_slot && !kept && self.plant != Some(Plant::SlotUnchecked) {
            let at_number = rows.iter().find(|row| row.seq == acknowledged.seq);
            let found = at_number.map_or(head, Row::position);
            return Err(RefusedStart { acknowledged, found });
        }
        // What is read at a start is durable, and may be answered for.
        self.vouch_for(head);
        let wires = Arc::new(Mutex::new(Wires::default()));
        let inner = if self.plant == Some(Plant::TailCut) { self.memory.log() } else { inner };
        Ok(SimLog { inner, disk: self.clone(), wires })
    }

    /// An operator decides to go on without the rows that are gone.
    pub fn accept_loss(&self) {
        *self.slot() = self.memory.head();
    }

    /// What can be read after a recovery is durable, and may be answered for. A log that went back is not taken for
    /// one that never had more.
    fn vouch_for(&self, head: Position) {
        let rows = self.memory.rows();
        let mut slot = self.slot();
        if *slot == GENESIS || rows.iter().any(|row| row.position() == *slot) {
            *slot = head;
        }
    }

    fn slot(&self) -> MutexGuard<'_, Position> {
        lock(&self.acknowledged)
    }

    fn cut_tail(&self) {
        let head = self.memory.head();
        if head.seq > 8 && head.seq.is_multiple_of(3) {
            self.memory.go_back_to(head.seq - 1);
            *self.slot() = self.memory.head();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to happen to one process.
#[derive(Debug, Default)]
pub struct Wires {
    /// Where it dies next.
    pub crash: Option<CrashPoint>,
    /// It is dead: nothing that it does from here on happened.
    pub crashed: bool,
    /// What it was told by the log, in order: for the trace.
    pub notes: Vec<&'static str>,
}

impl Wires {
    fn reaches(&mut self, point: CrashPoint) -> bool {
        if self.crash == Some(point) {
            self.crash = None;
            self.crashed = true;
        }
        self.crashed
    }
}

/// A log as one process sees it.
pub struct SimLog {
    inner: MemoryLog,
    disk: Disk,
    wires: Arc<Mutex<Wires>>,
}

fn dead() -> LogError {
    LogError::new(LogErrorKind::Failed, "could not do anything: the process is dead")
}

impl SimLog {
    /// The handle that makes the log fail.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.inner.faults()
    }

    /// The handle that makes the process die.
    #[must_use]
    pub fn wires(&self) -> Arc<Mutex<Wires>> {
        Arc::clone(&self.wires)
    }

    fn reaches(&self, point: CrashPoint) -> bool {
        lock(&self.wires).reaches(point)
    }

    fn note(&self, what: &'static str) {
        lock(&self.wires).notes.push(what);
    }
}

impl Log for SimLog {
    fn head(&mut self) -> Result<Position, LogError> {
        if lock(&self.wires).crashed {
            return Err(dead());
        }
        self.inner.head()
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        if self.reaches(CrashPoint::BeforeBegin) {
            return Err(dead().into());
        }
        let begun = self.inner.begin(after);
        match &begun {
            Ok(_) => {}
            Err(BeginError::HistoryChanged { .. }) => self.note("history changed"),
            Err(BeginError::Failed(_)) => self.note("begin failed"),
        }
        begun
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        if self.reaches(CrashPoint::BeforeAppend) {
            return Err(AppendError::NotWritten(dead()));
        }
        let appended = self.inner.append(row);
        match &appended {
            Ok(()) => *self.disk.slot() = row.position(),
            Err(AppendError::NotWritten(_)) => self.note("append not written"),
            Err(AppendError::Unknown(_)) => self.note("append unknown"),
            Err(AppendError::Conflict) => self.note("append conflict"),
        }
        self.reaches(CrashPoint::AfterAppend);
        appended
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        if lock(&self.wires).crashed {
            return Err(dead());
        }
        let head = self.inner.recover();
        if let Ok(head) = head {
            self.disk.vouch_for(head);
        }
        self.note(if head.is_ok() { "log recovered" } else { "log not recovered" });
        head
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        if lock(&self.wires).crashed {
            return Err(dead());
        }
        self.inner.between_turns()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        if lock(&self.wires).crashed {
            return Err(dead());
        }
        self.inner.rewrite_private(rows)
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        if lock(&self.wires).crashed {
            return Err(dead());
        }
        self.inner.scrub(through)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::new(SimOpener {
            inner: self.inner.opener(),
            wires: self.wires(),
            plant: self.disk.plant,
        })
    }
}

struct SimOpener {
    inner: Arc<dyn LogOpener>,
    wires: Arc<Mutex<Wires>>,
    plant: Option<Plant>,
}

impl LogOpener for SimOpener {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        let inner = self.inner.reader()?;
        Ok(Box::new(SimReader { inner, wires: Arc::clone(&self.wires) }))
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        Arc::new(SimSnapshots {
            inner: self.inner.snapshots(),
            wires: Arc::clone(&self.wires),
            plant: self.plant,
        })
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        self.inner.scrubbed()
    }
}

struct SimReader {
    inner: Box<dyn LogReader>,
    wires: Arc<Mutex<Wires>>,
}

impl SimReader {
    fn alive(&self) -> Result<(), LogError> {
        if lock(&self.wires).reaches(CrashPoint::WhileReading) { Err(dead()) } else { Ok(()) }
    }
}

impl LogReader for SimReader {
    fn head(&mut self) -> Result<Position, LogError> {
        self.alive()?;
        self.inner.head()
    }

    fn page(
        &mut self,
        after_seq: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, LogError> {
        self.alive()?;
        self.inner.page(after_seq, max_rows, max_bytes)
    }

    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError> {
        self.alive()?;
        self.inner.row(seq)
    }
}

struct SimSnapshots {
    inner: Arc<dyn Snapshots>,
    wires: Arc<Mutex<Wires>>,
    plant: Option<Plant>,
}

/// Lets only so many bytes through.
struct Short<'a> {
    into: &'a mut dyn Write,
    left: usize,
}

impl Write for Short<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            return Err(io::Error::other("the process is dead"));
        }
        self.left -= bytes.len();
        self.into.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

impl Snapshots for SimSnapshots {
    fn list(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        self.inner.list()
    }

    fn open(&self, meta: &SnapshotMeta) -> Result<Box<dyn io::Read + Send>, LogError> {
        self.inner.open(meta)
    }

    fn write(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        if lock(&self.wires).reaches(CrashPoint::WhileWritingSnapshot) {
            return self.inner.write(meta, &mut |into| fill(&mut Short { into, left: 100 }));
        }
        if self.plant == Some(Plant::SnapshotDamaged) {
            // Whole on the outside, with a part of the state missing.
            return self.inner.write(meta, &mut |into| {
                let mut all = Vec::new();
                fill(&mut all)?;
                let left = all.len() - all.len() / 3;
                into.write_all(&all[..left])
            });
        }
        self.inner.write(meta, fill)
    }

    fn prune(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<(), LogError> {
        self.inner.prune(keep, wanted)
    }
}
