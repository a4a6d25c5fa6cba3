//! One suite that every store must pass, wherever it lives.
//!
//! A store's tests give a way to make an empty [`Subject`] and call [`run`]. Each check gets a
//! subject of its own. The suite is worth what it catches: this crate's tests also run it on
//! stores that are broken on purpose, and each of those must fail.
//!
//! - `appending`: the chain, conflicts, reopening, recovery, changed histories.
//! - `erasing`: private blobs are overwritten, and nothing else is.
//! - `reading`: pages, byte identity, a reader beside the writer.
//! - `snapshots`: whole or not at all.
//! - `golden`: digests that were computed once and may never change.

mod appending;
mod erasing;
mod golden;
mod reading;
mod snapshots;

use std::error::Error;
use std::fmt;

use crate::{GENESIS, Log, LogReader, Position, Row, SnapshotMeta, Unsealed};

/// A store under test: one log that can be opened again and again, and things that are done to it
/// from outside.
pub trait Subject {
    /// Opens the log, or opens it again after the last one was dropped.
    fn open(&self) -> Box<dyn Log>;

    /// Makes the history go back to row `seq` and continue with `rows`, behind the log's back.
    fn branch(&self, seq: u64, rows: &[Row]);

    /// Damages the stored snapshot: flips a bit of byte `at`, counted round and round.
    fn damage_snapshot(&self, meta: &SnapshotMeta, at: usize);
}

/// What a check says: nothing, or what is wrong.
pub type Verdict = Result<(), Box<dyn Error>>;

/// One thing that a store must do.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it must do, as a name.
    pub name: &'static str,
    /// Tries it on an empty subject.
    pub run: fn(&dyn Subject) -> Verdict,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A check that a store did not pass.
#[derive(Debug)]
pub struct Failure {
    /// Which one.
    pub check: &'static str,
    /// What was wrong.
    pub why: String,
}

/// All checks.
pub fn checks() -> Vec<Check> {
    [appending::CHECKS, erasing::CHECKS, reading::CHECKS, snapshots::CHECKS, golden::CHECKS]
        .concat()
}

/// Runs all checks, each on a subject of its own, and returns those that failed.
pub fn run(make: &dyn Fn() -> Box<dyn Subject>) -> Vec<Failure> {
    checks().iter().filter_map(|check| run_one(check, &*make())).collect()
}

fn run_one(check: &Check, subject: &dyn Subject) -> Option<Failure> {
    let why = (check.run)(subject).err()?;
    let mut text = why.to_string();
    let mut cause = why.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Some(Failure { check: check.name, why: text })
}

/// A list of checks from the functions of those names.
macro_rules! list_checks {
    ($($name:ident),* $(,)?) => {
        pub(super) const CHECKS: &[super::Check] =
            &[$(super::Check { name: stringify!($name), run: $name }),*];
    };
}
pub(crate) use list_checks;

fn ensure(holds: bool, otherwise: impl Into<String>) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise.into().into()) }
}

fn ensure_equal<T: PartialEq + fmt::Debug>(what: &str, found: &T, expected: &T) -> Verdict {
    ensure(found == expected, format!("{what}: expected {expected:?}, found {found:?}"))
}

/// The next row after `previous`, with facts that tell rows apart.
fn next_row(previous: &Position) -> Row {
    let facts = format!("facts of row {}", previous.seq + 1).into_bytes();
    next_row_with(previous, facts, b"private".to_vec())
}

fn next_row_with(previous: &Position, facts: Vec<u8>, private: Vec<u8>) -> Row {
    let seq = previous.seq + 1;
    let [first, ..] = seq.to_le_bytes();
    let unsealed = Unsealed {
        seq,
        at: 1_700_000_000_000 + seq,
        writer: [0xa0 ^ first; 16],
        attempt: u32::MAX - u32::from(first),
        nonce: [0x0b ^ first; 16],
        level: u16::MAX - u16::from(first),
        state_sum: [0xc0 ^ first; 16],
        facts,
        private,
    };
    Row::seal(&previous.digest, unsealed)
}

/// `count` rows after `previous`, not appended anywhere.
fn chain_after(previous: &Position, count: u64) -> Vec<Row> {
    let mut last = *previous;
    (0..count)
        .map(|_| {
            let row = next_row(&last);
            last = row.position();
            row
        })
        .collect()
}

/// Appends `count` rows to an empty log and returns them.
fn fill(log: &mut dyn Log, count: u64) -> Result<Vec<Row>, Box<dyn Error>> {
    let rows = chain_after(&GENESIS, count);
    log.begin(GENESIS)?;
    for row in &rows {
        log.append(row)?;
        log.between_turns()?;
    }
    Ok(rows)
}

/// All rows of a log, read in small pages.
fn read_all(reader: &mut dyn LogReader) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let page = reader.page(rows.last().map_or(0, |row| row.seq), 3, usize::MAX)?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

fn last_of(rows: &[Row]) -> Position {
    rows.last().map_or(GENESIS, Row::position)
}
