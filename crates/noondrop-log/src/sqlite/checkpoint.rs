//! Moving rows from the write-ahead log to the main file: whole at a start, in small steps between
//! turns.
//!
//! SQLite would do the small steps by itself, inside of the append that happens to be due, and
//! keep their errors to itself. Here they run after the answers have left, and an error is seen.

use std::time::Duration;

use rusqlite::Connection;
use tracing::warn;

use super::connection::BUSY_TIMEOUT;
use super::error::failed;
use crate::{LogError, LogErrorKind, Row};

/// The page size of every database that we create.
const PAGE_BYTES: u64 = 4096;

/// Pages that one append changes beside those that its blobs fill: the leaf and its parents.
const PAGES_PER_ROW: u64 = 2;

/// A write-ahead log of this size (64 MB) means that something keeps it from starting over: a
/// reader that never ends its transaction, in most cases one of another program.
const ALARM_PAGES: u64 = (64 << 20) / PAGE_BYTES;

/// When the next step is due.
#[derive(Debug)]
pub(super) struct Checkpoints {
    step_pages: u64,
    new_pages: u64,
    alarmed: bool,
}

impl Checkpoints {
    pub(super) fn every(step_pages: u64) -> Self {
        Self { step_pages, new_pages: 0, alarmed: false }
    }

    /// Counts what an append has added. An estimate, so that it costs no call to SQLite.
    pub(super) fn appended(&mut self, row: &Row) {
        let blob_bytes = (row.facts.len() + row.private.len()) as u64;
        self.new_pages += PAGES_PER_ROW + blob_bytes / PAGE_BYTES;
    }

    /// Counts what an erasure has changed: a page for each row, or less.
    pub(super) fn rewrote(&mut self, rows: usize) {
        self.new_pages += rows as u64;
    }

    /// Copies what is new to the main file, if it has become enough.
    pub(super) fn step(&mut self, connection: &Connection) -> Result<(), LogError> {
        if self.new_pages < self.step_pages {
            return Ok(());
        }
        // Also when a reader holds back a part of it: the next try waits for new pages, or each
        // turn would pay for a sync that achieves nothing.
        self.new_pages = 0;
        let progress = run(connection, "PASSIVE").map_err(|e| failed("could not checkpoint", e))?;
        self.watch(&progress);
        Ok(())
    }

    fn watch(&mut self, progress: &Progress) {
        let over = progress.pages > ALARM_PAGES;
        if over && !self.alarmed {
            let (pages, copied) = (progress.pages, progress.copied);
            warn!(pages, copied, "the write-ahead log has outgrown 64 MB; who reads for so long?");
        }
        self.alarmed = over;
    }
}

/// Copies everything, syncs it and empties the write-ahead log. After this, and only after this,
/// what can be read is known to be durable.
pub(super) fn complete(connection: &Connection) -> Result<(), LogError> {
    let tried = "could not complete a checkpoint";
    let progress = run(connection, "TRUNCATE").map_err(|e| failed(tried, e))?;
    if progress.busy {
        let who = "another program keeps a transaction open on the database";
        return Err(LogError::new(LogErrorKind::Failed, tried).because(who));
    }
    Ok(())
}

/// As [`complete`], but does not wait for readers: false if one is in the way.
pub(super) fn complete_unless_read(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let progress = run(connection, "TRUNCATE");
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(!progress?.busy)
}

struct Progress {
    busy: bool,
    pages: u64,
    copied: u64,
}

fn run(connection: &Connection, mode: &str) -> rusqlite::Result<Progress> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    statement.query_row([], |row| {
        let [busy, pages, copied]: [i64; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        // Minus one stands for "no write-ahead log yet".
        let count = |pages: i64| u64::try_from(pages).unwrap_or(0);
        Ok(Progress { busy: busy != 0, pages: count(pages), copied: count(copied) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unsealed;

    fn progress(pages: u64) -> Progress {
        Progress { busy: false, pages, copied: 0 }
    }

    #[test]
    fn the_alarm_is_raised_once_and_again_after_it_has_passed() {
        let mut checkpoints = Checkpoints::every(256);
        checkpoints.watch(&progress(ALARM_PAGES));
        assert!(!checkpoints.alarmed);
        checkpoints.watch(&progress(ALARM_PAGES + 1));
        assert!(checkpoints.alarmed);
        checkpoints.watch(&progress(10));
        assert!(!checkpoints.alarmed);
    }

    #[test]
    fn a_step_is_due_after_enough_pages_and_then_starts_counting_anew() {
        let connection = Connection::open_in_memory().unwrap();
        let mut checkpoints = Checkpoints::every(10);
        let unsealed = Unsealed { facts: vec![0; 12_000], ..Unsealed::default() };
        let row = Row::seal(&[0; 32], unsealed);
        for new_pages in [4, 8, 12] {
            checkpoints.appended(&row);
            assert_eq!(checkpoints.new_pages, new_pages);
        }
        checkpoints.step(&connection).unwrap();
        assert_eq!(checkpoints.new_pages, 0);
    }
}
