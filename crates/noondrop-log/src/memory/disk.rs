//! The "disk" that memory logs share: the rows, which of them a crash would take, and histories
//! that change under everyone's feet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryLog;
use super::snapshots::MemorySnapshots;
use crate::{GENESIS, Position, Row, Snapshots};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SharedMemory {
    disk: Arc<Mutex<Disk>>,
    snapshots: Arc<MemorySnapshots>,
}

/// What the disk holds.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// What everyone sees; row `n` stands at index `n - 1`.
    pub(super) rows: Vec<Row>,
    /// How many of the rows a crash leaves for certain. None: all.
    synced: Option<usize>,
    /// A row that a half-failed sync left behind, not yet seen by anyone.
    hidden: Option<Row>,
    /// Rises with each crash. Logs from before must recover.
    pub(super) generation: u64,
    pub(super) clock: Option<u64>,
    pub(super) full: bool,
    /// What the last scrub noted.
    pub(super) scrubbed: Option<Position>,
}

impl SharedMemory {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a log on this disk. As at any start, what is left behind comes to light first.
    pub fn log(&self) -> MemoryLog {
        self.lock().reveal();
        MemoryLog::new(self.clone())
    }

    /// The position of the last row that everyone sees.
    pub fn head(&self) -> Position {
        self.lock().head()
    }

    /// All rows that everyone sees, for a checker.
    pub fn rows(&self) -> Vec<Row> {
        self.lock().rows.clone()
    }

    /// The clock that each `begin` reports, in ms since the Unix epoch. None: no clock of its own.
    pub fn set_clock(&self, clock: Option<u64>) {
        self.lock().clock = clock;
    }

    /// Whether there is no room: appends fail, not knowing, and so do recoveries, until it passes.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// The machine crashes: rows that were never truly synced are lost. Returns how many were.
    pub fn crash(&self) -> usize {
        self.crash_keeping(0)
    }

    /// As [`SharedMemory::crash`], but the first `kept` rows that were never synced happened to
    /// reach the disk: a torn tail.
    pub fn crash_keeping(&self, kept: usize) -> usize {
        let mut disk = self.lock();
        let before = disk.rows.len();
        let left = disk.synced.unwrap_or(before).saturating_add(kept);
        disk.rows.truncate(left);
        disk.synced = None;
        disk.generation += 1;
        disk.reveal();
        before.saturating_sub(left)
    }

    /// The history goes back to row `seq` (a restore, a fail-over): the rows after it are gone,
    /// synced or not. They are returned.
    pub fn go_back_to(&self, seq: u64) -> Vec<Row> {
        let mut disk = self.lock();
        let left = index_after(seq).min(disk.rows.len());
        disk.hidden = None;
        disk.synced = disk.synced.filter(|synced| *synced < left);
        disk.rows.split_off(left)
    }

    /// The history goes back to row `seq` and takes another branch, `rows`.
    pub fn branch(&self, seq: u64, rows: Vec<Row>) -> Vec<Row> {
        let lost = self.go_back_to(seq);
        self.lock().rows.extend(rows);
        lost
    }

    /// The snapshots on this disk.
    pub fn snapshots(&self) -> Arc<dyn Snapshots> {
        Arc::clone(&self.snapshots) as Arc<dyn Snapshots>
    }

    /// Flips one bit of the snapshot at `position`: byte `at`, counted round and round.
    pub fn damage_snapshot(&self, position: Position, at: usize) {
        self.snapshots.damage(position, at);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    pub(super) fn head(&self) -> Position {
        self.rows.last().map_or(GENESIS, Row::position)
    }

    /// What stands at this number, or the last position if the log ends before.
    pub(super) fn position_at(&self, seq: u64) -> Position {
        if seq == GENESIS.seq {
            return GENESIS;
        }
        self.row(seq).map_or_else(|| self.head(), Row::position)
    }

    pub(super) fn row(&self, seq: u64) -> Option<&Row> {
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.rows.get(index)
    }

    pub(super) fn rows_after(&self, seq: u64) -> &[Row] {
        self.rows.get(index_after(seq)..).unwrap_or_default()
    }

    /// Overwrites private blobs, all or none. False: a row is not there, or its blob is of another length.
    pub(super) fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> bool {
        let fits = |(position, private): &(Position, Vec<u8>)| {
            let row = self.row(position.seq).filter(|row| row.position() == *position);
            row.is_some_and(|row| row.private.len() == private.len())
        };
        if !rows.iter().all(fits) {
            return false;
        }
        for (position, private) in rows {
            self.rows[index_after(position.seq - 1)].private.clone_from(private);
        }
        true
    }

    pub(super) fn push(&mut self, row: &Row) {
        self.rows.push(row.clone());
    }

    /// Adds a row that the next crash takes, together with all that come after it.
    pub(super) fn push_unsynced(&mut self, row: &Row) {
        self.synced.get_or_insert(self.rows.len());
        self.push(row);
    }

    pub(super) fn hide(&mut self, row: &Row) {
        self.hidden = Some(row.clone());
    }

    /// Shows what a half-failed sync left behind, if it still follows what is there.
    pub(super) fn reveal(&mut self) {
        let Some(row) = self.hidden.take() else { return };
        if self.head().seq + 1 == row.seq && row.verify(&self.head().digest) {
            self.rows.push(row);
        }
    }
}

fn index_after(seq: u64) -> usize {
    usize::try_from(seq).unwrap_or(usize::MAX)
}
