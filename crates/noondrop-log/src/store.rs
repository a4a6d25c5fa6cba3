//! What every store of a log offers: to the one sequencer thread, and to the readers beside it.
//!
//! All of it blocks. The sequencer owns its thread and has nothing better to do than to wait for
//! its row to be durable; readers live on threads of their own.

use std::sync::Arc;

use crate::{AppendError, BeginError, LogError, Position, Row, Snapshots};

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

    /// A way for other threads to read this log. It stays valid through [`Log::recover`].
    fn opener(&self) -> Arc<dyn LogOpener>;
}

/// Opens readers of one log, from any thread.
pub trait LogOpener: Send + Sync {
    /// A new reader, independent of the sequencer and of other readers.
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError>;

    /// The snapshots that belong to this log.
    fn snapshots(&self) -> Arc<dyn Snapshots>;
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

    fn opener(&self) -> Arc<dyn LogOpener> {
        (**self).opener()
    }
}
