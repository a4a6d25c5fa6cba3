//! What every store of a log offers: to the one sequencer thread, and to the readers beside it.
//!
//! All of it blocks. The sequencer owns its thread and has nothing better to do than to wait for
//! its row to be durable; readers live on threads of their own.

use std::sync::Arc;
use std::time::Duration;

use crate::{AppendError, BeginError, LogError, LogErrorKind, Position, Row, Snapshots, Throttle};

/// What a turn starts from.
#[derive(Clone, Debug, Default)]
pub struct Begun {
    /// The clock of the store, in ms since the Unix epoch. None: the host's own clock counts.
    pub clock: Option<u64>,
    /// The rows that others appended after the given position, chained to it and to each other.
    /// A bounded page: while it is not empty, there may be more.
    pub rows: Vec<Row>,
}

/// A log as its one sequencer thread sees it.
pub trait Log: Send {
    /// The position of the last durable row, or [`GENESIS`](crate::GENESIS).
    fn head(&mut self) -> Result<Position, LogError>;

    /// Starts a turn that stands at `after`: hands over what others wrote since, and notices if
    /// the log no longer has that position.
    fn begin(&mut self, after: Position) -> Result<Begun, BeginError>;

    /// Appends one row and returns once it is durable.
    ///
    /// The row must follow the position that this log last told of (by `head`, `begin`, `append`
    /// or `recover`). A row further on, or one that does not chain, is refused as not written.
    fn append(&mut self, row: &Row) -> Result<(), AppendError>;

    /// Finds out what is durable, after an unknown append or any other error of the store.
    ///
    /// Everything is opened anew; only what can be read after that counts. Until it succeeds,
    /// the other operations refuse. Returns the durable head. Harmless when nothing is wrong.
    fn recover(&mut self) -> Result<Position, LogError>;

    /// A short piece of maintenance (a part of a checkpoint), for when no caller waits. To be
    /// called after each turn; most calls do nothing.
    fn between_turns(&mut self) -> Result<(), LogError>;

    /// Overwrites the private blobs of rows, all of them or none, and returns once that is durable.
    ///
    /// A row that the log does not have at that position, or whose blob has another length, is
    /// refused: what is overwritten in its place leaves nothing behind.
    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError>;

    /// Makes what was overwritten unreadable wherever the store kept it (a write-ahead log), and
    /// durably notes that all is erased that the rows up to `through` say is to be. False, and
    /// nothing noted: a reader is in the way; try again a little later.
    fn scrub(&mut self, through: Position) -> Result<bool, LogError>;

    /// A way for other threads to read this log. It stays valid through [`Log::recover`].
    fn opener(&self) -> Arc<dyn LogOpener>;
}

/// Opens readers of one log, from any thread.
pub trait LogOpener: Send + Sync {
    /// A new reader, independent of the sequencer and of other readers.
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError>;

    /// The snapshots that belong to this log.
    fn snapshots(&self) -> Arc<dyn Snapshots>;

    /// What [`Log::scrub`] noted last, or [`GENESIS`](crate::GENESIS). The log may have gone back
    /// since: whoever relies on it looks whether the position is there.
    fn scrubbed(&self) -> Result<Position, LogError>;

    /// Holds back whoever reads the whole log.
    fn throttle(&self) -> Arc<Throttle> {
        Arc::new(Throttle::with_pause(Duration::ZERO))
    }
}

/// Reads a log beside its writer. It sees durable rows only, and no read holds the writer up.
pub trait LogReader: Send {
    /// The position of the last durable row, or [`GENESIS`](crate::GENESIS).
    fn head(&mut self) -> Result<Position, LogError>;

    /// The rows after `after_seq`, at most `max_rows` and about `max_bytes` of them, in order.
    ///
    /// Always at least one row if there is one, however large it is. A store may return fewer
    /// than asked for, to keep its read short. The caller checks the chain.
    fn page(
        &mut self,
        after_seq: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, LogError>;

    /// The row with this number, if the log has it.
    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError>;
}

impl<L: Log + ?Sized> Log for Box<L> {
    fn head(&mut self) -> Result<Position, LogError> {
        (**self).head()
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        (**self).begin(after)
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        (**self).append(row)
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        (**self).recover()
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        (**self).between_turns()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        (**self).rewrite_private(rows)
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        (**self).scrub(through)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        (**self).opener()
    }
}

/// Rows to be overwritten are not those that the log has.
pub(crate) fn could_not_rewrite() -> LogError {
    LogError::new(
        LogErrorKind::Refused,
        "could not overwrite private texts: the log has other rows there",
    )
}
