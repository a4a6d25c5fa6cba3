//! What can go wrong with a log. Each error says what was tried; the cause is its `source`.
//!
//! The one question that matters after a failed append is whether the row may be durable all the
//! same. [`AppendError`] answers it, and a store that is not certain says [`AppendError::Unknown`].

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;

use crate::Position;

type Cause = Box<dyn Error + Send + Sync>;

/// What kind of trouble a log is in; what to do about it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogErrorKind {
    /// The store, the disk or the connection failed.
    Failed,
    /// There is no room. It can pass without anyone repairing anything.
    DiskFull,
    /// What is stored is not what was written. Not to be trusted, and retrying does not help.
    Damaged,
    /// The caller asked for something that the log must not do.
    Refused,
    /// An earlier error left the outcome open: [`Log::recover`](crate::Log::recover) comes first.
    NeedsRecovery,
    /// Rows that were answered are gone. Only a person may decide to go on.
    AcknowledgedLost,
}

/// A log operation that failed.
#[derive(Debug)]
pub struct LogError {
    tried: Cow<'static, str>,
    kind: LogErrorKind,
    cause: Option<Cause>,
}

impl LogError {
    /// An operation that failed without a further cause. `tried` reads "could not …".
    pub fn new(kind: LogErrorKind, tried: impl Into<Cow<'static, str>>) -> Self {
        Self { tried: tried.into(), kind, cause: None }
    }

    /// Names the cause. Its text must not be repeated in what was tried.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// A failed file operation, with its kind taken from the operating system's error.
    pub fn io(tried: impl Into<Cow<'static, str>>, cause: io::Error) -> Self {
        Self::new(io_kind(&cause), tried).because(cause)
    }

    /// What kind of trouble this is.
    pub fn kind(&self) -> LogErrorKind {
        self.kind
    }

    /// Whether it failed for want of room.
    pub fn is_disk_full(&self) -> bool {
        self.kind == LogErrorKind::DiskFull
    }

    /// Whether something stored turned out to be damaged.
    pub fn is_damaged(&self) -> bool {
        self.kind == LogErrorKind::Damaged
    }
}

fn io_kind(error: &io::Error) -> LogErrorKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogErrorKind::DiskFull,
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => LogErrorKind::Damaged,
        _ => LogErrorKind::Failed,
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tried)
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

/// Why a row was not appended, or may not have been.
#[derive(Debug)]
pub enum AppendError {
    /// The row is surely not durable and never will be.
    NotWritten(LogError),
    /// Another row has the position. Surely not durable; learn what is there and decide again.
    Conflict,
    /// The row may or may not be durable. [`Log::recover`](crate::Log::recover) finds out, and
    /// nothing that depends on it may be answered before.
    Unknown(LogError),
}

impl AppendError {
    /// Whether it failed for want of room.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::NotWritten(error) | Self::Unknown(error) => error.is_disk_full(),
            Self::Conflict => false,
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWritten(_) => "the row was not written",
            Self::Conflict => "another row has this position",
            Self::Unknown(_) => "it is not known whether the row was written",
        })
    }
}

impl Error for AppendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotWritten(error) | Self::Unknown(error) => Some(error),
            Self::Conflict => None,
        }
    }
}

/// Why a turn could not begin.
#[derive(Debug)]
pub enum BeginError {
    /// The log no longer has the position that the caller stands at: it went back, and perhaps
    /// took another branch. What the caller holds in memory is not the log's any more.
    HistoryChanged {
        /// Where the caller stands.
        ours: Position,
        /// What the log has at that number, or its last position if it ends before.
        found: Position,
    },
    /// The log could not be read.
    Failed(LogError),
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HistoryChanged { ours, found } => {
                write!(f, "the log no longer has {ours}; it has {found}")
            }
            Self::Failed(_) => f.write_str("the turn could not begin"),
        }
    }
}

impl Error for BeginError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::HistoryChanged { .. } => None,
            Self::Failed(error) => Some(error),
        }
    }
}

impl From<LogError> for BeginError {
    fn from(error: LogError) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_was_tried_and_leaves_the_cause_to_its_source() {
        let cause = io::Error::from(io::ErrorKind::StorageFull);
        let error = AppendError::Unknown(LogError::io("could not append row 42", cause));
        assert!(error.is_disk_full());
        let inner = error.source().unwrap();
        assert_eq!(inner.to_string(), "could not append row 42");
        let source = inner.source().unwrap().to_string();
        assert!(!error.to_string().contains(&source) && !inner.to_string().contains(&source));
    }
}
