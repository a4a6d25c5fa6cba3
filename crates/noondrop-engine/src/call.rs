//! What goes into the engine and what comes out of it. A refusal is an outcome; a fault says
//! nothing about one.

use std::error::Error;
use std::fmt;

use noondrop_core::{Command, Outcome, Timestamp};
use noondrop_log::Position;

/// A command with what its caller is ready to wait.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked. Boxed, as it goes through several queues and comes back with the answer.
    pub command: Box<Command>,
    /// On the scale of [`Clock::elapsed_ms`](crate::Clock::elapsed_ms). A command whose deadline
    /// has passed is dropped before it is decided, never after.
    pub deadline_ms: Option<u64>,
}

impl From<Command> for Call {
    fn from(command: Command) -> Self {
        Self { command: Box::new(command), deadline_ms: None }
    }
}

/// What was decided, durably.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The command, given back: the caller renders the answer with its texts, and frees it.
    pub command: Box<Command>,
    /// The decision.
    pub outcome: Outcome,
    /// The decision is an earlier one, of the same key.
    pub replayed: bool,
    /// The state that the answer shows.
    pub position: Position,
    /// The answer's time, in log time.
    pub at: Timestamp,
}

/// Why there is no decision. Never recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The queue is full, or the deadline passed before the command's turn came. Surely not done.
    Overloaded,
    /// The store failed for longer than the caller waits. Surely not done.
    StoreFailing,
    /// The store did not say whether the row was written before the caller's time was over. The
    /// same key tells.
    OutcomeUnknown,
    /// There is no room for a new key. Surely not done.
    KeysFull,
    /// The engine is shutting down. Surely not done.
    Stopping,
    /// A bug, contained: this command was not done, and others were not touched. The text is for
    /// the log.
    Internal(String),
}

impl Fault {
    /// The stable name, for metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::StoreFailing => "store_failing",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::KeysFull => "keys_full",
            Self::Stopping => "stopping",
            Self::Internal(_) => "internal",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded => "too much is waiting; nothing was done",
            Self::StoreFailing => "the log can not be written; nothing was done",
            Self::OutcomeUnknown => "it is not known yet whether this was done; the same key tells",
            Self::KeysFull => "there is no room for another idempotency key; nothing was done",
            Self::Stopping => "the engine is stopping; nothing was done",
            Self::Internal(what) => {
                return write!(f, "this command met a bug, and was not done: {what}");
            }
        })
    }
}

impl Error for Fault {}

/// The answer to a query, with the position that it reflects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// What was asked for.
    pub value: T,
    /// The durable state that it shows.
    pub position: Position,
}

/// Why waiting for a position ended without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The log has another row at that number.
    HistoryChanged,
    /// The log is not there yet.
    TimedOut,
    /// The engine stopped, or could not read the log to tell.
    Unavailable,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HistoryChanged => "the log's history changed: it does not have this position",
            Self::TimedOut => "the log has not reached this position yet",
            Self::Unavailable => "the log can not be read now",
        })
    }
}

impl Error for WaitError {}

/// Names one waiting caller between the queue and the sequencer, and means nothing to the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// A call that waits for its turn.
#[derive(Debug)]
pub struct Pending {
    /// Whose.
    pub ticket: Ticket,
    /// What.
    pub call: Call,
}

/// A call with its answer.
#[derive(Debug)]
pub struct Answered {
    /// Whose.
    pub ticket: Ticket,
    /// As it was called with.
    pub deadline_ms: Option<u64>,
    /// What to say.
    pub answer: Result<Reply, Fault>,
}

impl Answered {
    pub(crate) fn fault(pending: &Pending, fault: Fault) -> Self {
        Self { ticket: pending.ticket, deadline_ms: pending.call.deadline_ms, answer: Err(fault) }
    }
}
