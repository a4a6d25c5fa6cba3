//! Why a SQLite log can not be opened, and what SQLite's errors mean for a log.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::{LogError, LogErrorKind, Position};

/// Why a SQLite log was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another part of this one, owns the log.
    Owned {
        /// The database.
        path: PathBuf,
        /// The locked file beside it.
        owner_file: PathBuf,
    },
    /// The file is a database, but not a log of ours.
    NotALog {
        /// The database.
        path: PathBuf,
    },
    /// The file is a backup's copy: to be read, and never to be gone on with as it is.
    IsCopy {
        /// The copy.
        path: PathBuf,
    },
    /// The file is a log of its own, where a backup's copy was wanted.
    IsLog {
        /// The database.
        path: PathBuf,
    },
    /// The file is a backup's copy whose last piece was not written to its end. Whoever may write
    /// it takes that piece back.
    CopyInterrupted {
        /// The copy.
        path: PathBuf,
    },
    /// The log was written by a newer version of this program.
    NewerVersion {
        /// The database.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
        /// The newest version that this program knows.
        supported: i64,
    },
    /// Rows that were answered are gone, or others stand in their place. Nothing was changed.
    AcknowledgedLost {
        /// The database.
        path: PathBuf,
        /// The last position that was answered.
        acknowledged: Position,
        /// What the log has at that number, or its last position if it ends before.
        found: Position,
    },
    /// The file that holds the last answered position is damaged, so a loss could go unnoticed.
    AcknowledgedUnreadable {
        /// That file.
        path: PathBuf,
    },
    /// The store failed.
    Failed(LogError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned { path, owner_file } => write!(
                f,
                "the log {} already has an owner, who has locked {}",
                path.display(),
                owner_file.display()
            ),
            Self::NotALog { path } => {
                write!(f, "{} is a database, but not a Noondrop log", path.display())
            }
            Self::IsCopy { path } => write!(
                f,
                "{} is a backup's copy and not a live log; `noondrop restore` makes a log of it",
                path.display()
            ),
            Self::IsLog { path } => {
                write!(f, "{} is a live log and not a backup's copy", path.display())
            }
            Self::CopyInterrupted { path } => write!(
                f,
                "{} is a copy whose backup was interrupted; `noondrop backup` goes on with it, \
                 `noondrop restore` takes what is whole",
                path.display()
            ),
            Self::NewerVersion { path, found, supported } => write!(
                f,
                "the log {} has version {found}, and this program knows none newer than {supported}",
                path.display()
            ),
            Self::AcknowledgedLost { path, acknowledged, found } => write!(
                f,
                "the log {} has lost answered rows: {acknowledged} was answered, and it has {found}",
                path.display()
            ),
            Self::AcknowledgedUnreadable { path } => write!(
                f,
                "{} is damaged, so it can not be told whether answered rows are lost",
                path.display()
            ),
            Self::Failed(_) => f.write_str("could not open the log"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        Self::Failed(error)
    }
}

impl OpenError {
    /// As the failure of an operation on a log that was open before.
    pub(super) fn during(self, tried: &'static str) -> LogError {
        let kind = match &self {
            Self::Failed(error) => error.kind(),
            Self::AcknowledgedLost { .. } => LogErrorKind::AcknowledgedLost,
            Self::AcknowledgedUnreadable { .. } => LogErrorKind::Damaged,
            Self::Owned { .. }
            | Self::NotALog { .. }
            | Self::IsCopy { .. }
            | Self::IsLog { .. }
            | Self::CopyInterrupted { .. }
            | Self::NewerVersion { .. } => LogErrorKind::Refused,
        };
        match self {
            Self::Failed(error) => LogError::new(kind, tried).because(error),
            refused => LogError::new(kind, tried).because(refused),
        }
    }
}

/// A failed statement as a failed operation.
pub(super) fn failed(
    tried: impl Into<std::borrow::Cow<'static, str>>,
    cause: rusqlite::Error,
) -> LogError {
    let kind = match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => LogErrorKind::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => LogErrorKind::Damaged,
        None if is_wrong_value(&cause) => LogErrorKind::Damaged,
        _ => LogErrorKind::Failed,
    };
    LogError::new(kind, tried).because(cause)
}

/// A stored value that can not be a row's: someone else wrote it, or it rotted.
fn is_wrong_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..)
    )
}

/// Whether SQLite gave up before it touched anything, and its connection is as good as before.
///
/// Not among them is a full disk: the last frame may have been written whole before the error.
pub(super) fn is_harmless(error: &rusqlite::Error) -> bool {
    let never_reached_sqlite = matches!(error, rusqlite::Error::ToSqlConversionFailure(_));
    never_reached_sqlite
        || matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::ReadOnly
                    | ErrorCode::TooBig
                    | ErrorCode::ConstraintViolation
            )
        )
}

/// Whether a writer left a transaction half written, which a reader may not take back.
pub(super) fn is_half_written(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

/// Whether the position is taken already.
pub(super) fn is_conflict(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        matches!(
            error.extended_code,
            rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID
        )
    })
}
