//! The log as its owner sees it: begin, append, recover.

use std::sync::Arc;

use rusqlite::Connection;
use tracing::warn;

use super::acknowledged::Acknowledged;
use super::checkpoint::{self, Checkpoints};
use super::error::{failed, is_conflict, is_harmless};
use super::open::{self, Expected, Opened};
use super::options::Files;
use super::owner::Owner;
use super::reader::SqliteOpener;
use super::{OpenError, SqliteOptions, rows, scrubbed};
use crate::page::Page;
use crate::row::verify_next;
use crate::store::could_not_rewrite;
use crate::{
    AppendError, BeginError, Begun, Log, LogError, LogErrorKind, LogOpener, Position, Row,
    verify_chain,
};

/// Answered rows that were given up by a person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The last position that was answered.
    pub acknowledged: Position,
    /// What the log has at that number, or its last position if it ends before.
    pub found: Position,
}

/// A log in a SQLite file, owned by this process.
#[derive(Debug)]
pub struct SqliteLog {
    /// None after an error that leaves an outcome open, until `recover` has succeeded.
    connection: Option<Connection>,
    /// What the caller was last told; the next row must follow it.
    head: Position,
    /// The last position of which the caller may have told others.
    answered: Position,
    acknowledged: Acknowledged,
    checkpoints: Checkpoints,
    loss: Option<Loss>,
    opener: SqliteOpener,
    files: Files,
    // The last field, so that it is released when all else is closed.
    _owner: Owner,
}

impl SqliteLog {
    /// Opens the log, or creates it. Whatever can be read afterwards is durable.
    pub fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let tried = || format!("could not find {}", options.path.display());
        let files = Files::resolve(&options.path).map_err(|e| LogError::io(tried(), e))?;
        let owner = Owner::take(&files)?;
        let (acknowledged, expected) = open::remember(&files, options.accept_loss)?;
        let Opened { connection, head, loss } = open::open_durable(&files, expected)?;
        let mut log = Self {
            connection: Some(connection),
            head,
            answered: head,
            acknowledged,
            checkpoints: Checkpoints::every(options.checkpoint_pages),
            loss,
            opener: SqliteOpener::new(files.clone(), options.throttle),
            files,
            _owner: owner,
        };
        log.remember_head()?;
        Ok(log)
    }

    /// The answered rows that this start gave up, if it was told to accept a loss and found one.
    /// It is told again at each start until a row has been appended, which should record it.
    pub fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// From here on the log must contain its present head. Not so after a loss: until the row
    /// that tells of it is durable, the next start must find out again.
    fn remember_head(&mut self) -> Result<(), LogError> {
        if let Some(loss) = self.loss {
            let (acknowledged, found) = (loss.acknowledged, loss.found);
            warn!(%acknowledged, %found, "going on without answered rows, as told");
            return Ok(());
        }
        self.acknowledge(self.head)
    }

    fn acknowledge(&mut self, position: Position) -> Result<(), LogError> {
        let tried = "could not record the last answered position";
        self.acknowledged.record(position).map_err(|e| LogError::io(tried, e))?;
        self.answered = position;
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, LogError> {
        self.connection.as_ref().ok_or_else(needs_recovery)
    }

    /// Runs a read on the owner's connection. An error other than a stranger's lock closes it.
    fn read<T>(
        &mut self,
        tried: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LogError> {
        let outcome = read(self.connection()?);
        outcome.map_err(|error| {
            self.distrust_after(&error);
            failed(tried, error)
        })
    }

    fn distrust_after(&mut self, error: &rusqlite::Error) {
        if !is_harmless(error) {
            self.connection = None;
        }
    }

    fn check_follows(&self, row: &Row) -> Result<(), AppendError> {
        if row.seq <= self.head.seq {
            return Err(AppendError::Conflict);
        }
        verify_next(&self.head, row).map(|_| ()).map_err(|error| {
            let tried = format!("could not append row {}", row.seq);
            AppendError::NotWritten(LogError::new(LogErrorKind::Refused, tried).because(error))
        })
    }

    fn append_failed(&mut self, row: &Row, error: rusqlite::Error) -> AppendError {
        self.distrust_after(&error);
        if is_conflict(&error) {
            return AppendError::Conflict;
        }
        let harmless = is_harmless(&error);
        let error = failed(format!("could not append row {}", row.seq), error);
        if harmless { AppendError::NotWritten(error) } else { AppendError::Unknown(error) }
    }

    fn changed(&mut self, ours: Position) -> BeginError {
        let found = self
            .read("could not read the log", |connection| rows::position_at(connection, ours.seq));
        match found {
            Ok(found) => BeginError::HistoryChanged { ours, found },
            Err(error) => BeginError::Failed(error),
        }
    }

    fn reopen(&mut self) -> Result<Position, LogError> {
        self.connection = None;
        // No reader may keep the shared index of the write-ahead log alive: SQLite builds it anew
        // from the file, and so finds out what is there, only when the first connection opens.
        let _readers_closed = self.opener.close_readers();
        let expected = Expected { acknowledged: self.answered, accept_loss: false };
        let opened = open::open_durable(&self.files, expected)
            .map_err(|error| error.during("could not recover the log"))?;
        self.connection = Some(opened.connection);
        self.head = opened.head;
        Ok(opened.head)
    }
}

impl Log for SqliteLog {
    fn head(&mut self) -> Result<Position, LogError> {
        self.head = self.read("could not read the last row", rows::head)?;
        Ok(self.head)
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        let tail = self.read("could not read the log", |connection| {
            rows::tail(connection, after.seq, Page::for_begin())
        })?;
        if tail.at != Some(after) {
            return Err(self.changed(after));
        }
        let tried = "could not learn the rows of others";
        self.head = verify_chain(&after, &tail.rows)
            .map_err(|e| LogError::new(LogErrorKind::Damaged, tried).because(e))?;
        Ok(Begun { clock: None, rows: tail.rows })
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        let connection = self.connection().map_err(AppendError::NotWritten)?;
        self.check_follows(row)?;
        if let Err(error) = rows::insert(connection, row) {
            return Err(self.append_failed(row, error));
        }
        self.head = row.position();
        self.checkpoints.appended(row);
        self.acknowledge(self.head).map_err(|error| {
            // The row is durable, but its loss would go unnoticed. Not to be answered like this.
            self.connection = None;
            AppendError::Unknown(error)
        })
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        let head = self.reopen()?;
        if let Err(error) = self.acknowledge(head) {
            self.connection = None;
            return Err(error);
        }
        Ok(head)
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        let connection = self.connection.as_ref().ok_or_else(needs_recovery)?;
        let outcome = self.checkpoints.step(connection);
        if outcome.is_err() {
            self.connection = None;
        }
        outcome
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        let tried = "could not overwrite private texts";
        let fits = self.read(tried, |connection| rows::rewrite_private(connection, rows))?;
        self.checkpoints.rewrote(rows.len());
        if fits { Ok(()) } else { Err(could_not_rewrite()) }
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        let tried = "could not complete a checkpoint";
        if !self.read(tried, checkpoint::complete_unless_read)? {
            return Ok(false);
        }
        scrubbed::write(&self.files.scrubbed(), through)?;
        Ok(true)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::new(self.opener.clone())
    }
}

/// Leaves the main file complete where that is easy, for people who copy files. The next start
/// does not depend on it.
impl Drop for SqliteLog {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.busy_timeout(std::time::Duration::ZERO).is_ok() {
            let _ = checkpoint::complete(&connection);
        }
    }
}

fn needs_recovery() -> LogError {
    LogError::new(LogErrorKind::NeedsRecovery, "could not use the log before it has recovered")
}
