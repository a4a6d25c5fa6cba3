//! The audit: the whole log read, replayed and counted again, with a verdict that says up to where.

use std::error::Error;
use std::fmt;

use noondrop_core::{ItemView, State, Totals};
use noondrop_log::{GENESIS, LogReader, Position, PositionRef};

use super::accounts::Accounts;
use super::replay::Replay;
use super::scan::{Scan, ScanError, Scanned};

/// Rows between two calls of the progress.
const TELL_EVERY_ROWS: u64 = 512;
/// Rows between two recounts from scratch: each walks over every hold there is.
const RECOUNT_EVERY_ROWS: u64 = 100_000;

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows checked.
    pub rows: u64,
    /// Rows to check.
    pub of: u64,
}

/// What an audit found good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The last row: everything up to it was checked.
    pub head: Position,
    /// Rows checked.
    pub rows: u64,
    /// Facts checked.
    pub facts: u64,
    /// What the last recount counted.
    pub totals: Totals,
}

/// What is not as it must be.
#[derive(Debug)]
pub struct AuditError {
    /// The row at fault; none: the log as a whole.
    pub row: Option<u64>,
    /// The last position that is good.
    pub good: Position,
    cause: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "row {row} is not as it must be (good up to {})", self.good),
            None => write!(f, "the log is not as it must be (good up to {})", self.good),
        }
    }
}

impl Error for AuditError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// Audits everything that a reader sees: the chain, each row's digest, strict decoding, the state that each row leads to,
/// every invariant of what it touched, a second set of books, and recounts from scratch. Ends at the first row that is
/// not as it must be; what comes after it cannot be trusted.
///
/// A server may run beside it: the audit ends where the log ended when it began. `progress` is called now and then.
pub fn audit(
    reader: &mut dyn LogReader,
    expect: Option<PositionRef>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Verdict, State), AuditError> {
    let mut scan = Scan::all(reader).map_err(|error| AuditError::of(&error, GENESIS))?;
    let head = scan.head();
    let mut auditor = Auditor { expect, ..Auditor::default() };
    for scanned in &mut scan {
        let scanned = scanned.map_err(|error| AuditError::of(&error, auditor.replay.position()))?;
        auditor.row(&scanned)?;
        if auditor.rows.is_multiple_of(TELL_EVERY_ROWS) || auditor.rows == head.seq {
            progress(Progress { rows: auditor.rows, of: head.seq });
        }
    }
    auditor.finish(head)
}

impl AuditError {
    fn of(error: &ScanError, good: Position) -> Self {
        Self { row: error.seq(), good, cause: crate::cli::chain(error).into() }
    }
}

#[derive(Default)]
struct Auditor {
    expect: Option<PositionRef>,
    expected_seen: bool,
    replay: Replay,
    accounts: Accounts,
    rows: u64,
    facts: u64,
}

impl Auditor {
    fn row(&mut self, scanned: &Scanned) -> Result<(), AuditError> {
        let good = self.replay.position();
        let row = Some(scanned.row.seq);
        let booked = scanned.entries.iter().try_for_each(|entry| self.accounts.book(&entry.fact));
        booked.and_then(|()| self.accounts.close_row()).map_err(|cause| AuditError {
            row,
            good,
            cause: cause.into(),
        })?;
        self.replay.apply(scanned).map_err(|cause| AuditError {
            row,
            good,
            cause: cause.into(),
        })?;
        self.rows += 1;
        self.facts += scanned.entries.len() as u64;
        let position = self.replay.position();
        self.expected_seen |= self.expect.is_some_and(|expect| expect.matches(&position));
        if self.rows.is_multiple_of(RECOUNT_EVERY_ROWS) {
            self.recount()?;
        }
        Ok(())
    }

    fn recount(&self) -> Result<Totals, AuditError> {
        let good = self.replay.position();
        let wrong = |cause| AuditError { row: Some(good.seq), good, cause };
        let items: Vec<ItemView> = self.replay.state().all_items().collect();
        for item in &items {
            self.accounts
                .compare(item.item, &item.counts)
                .map_err(|imbalance| wrong(imbalance.into()))?;
        }
        self.replay.recount().map_err(|violations| {
            let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
            wrong(texts.join("; ").into())
        })
    }

    fn finish(self, head: Position) -> Result<(Verdict, State), AuditError> {
        let position = self.replay.position();
        let wrong = |cause: String| AuditError { row: None, good: position, cause: cause.into() };
        if position != head {
            return Err(wrong(format!(
                "it says that it ends at {head}, and these rows are not there"
            )));
        }
        if let Some(expect) = self.expect.filter(|_| !self.expected_seen) {
            return Err(wrong(format!(
                "it does not have position {expect}: it is shorter than it was, or another history stands in its place"
            )));
        }
        let totals = self.recount()?;
        let verdict = Verdict { head, rows: self.rows, facts: self.facts, totals };
        Ok((verdict, self.replay.into_state()))
    }
}
