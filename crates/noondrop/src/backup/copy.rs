//! Brings a copy up to where its source ended when it began.
//!
//! Each page is a read of its own that is over before the copy is written, so no read holds up the server's
//! checkpoints. Each page is one durable transaction of the copy, so a backup that is killed goes on where it was.

use std::error::Error;
use std::fmt;

use noondrop_log::sqlite::SqliteCopy;
use noondrop_log::{
    ChainError, GENESIS, LogError, LogReader, PIECE_BYTES, Position, Row, Throttle, verify_chain,
};

/// Rows of one page at most: a read of so many small rows takes a few milliseconds.
const PAGE_ROWS: u64 = 8_192;

/// What a row takes beside its two blobs.
const ROW_BYTES_FIXED: usize = 102;

/// What a backup did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Rows copied by this run.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where the copy ended before.
    pub from: Position,
    /// Where it ends now.
    pub to: Position,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where the copy ends.
    pub at: u64,
    /// Where it will end.
    pub of: u64,
    /// Bytes copied by this run.
    pub bytes: u64,
}

/// Why a copy could not be brought up to date.
#[derive(Debug)]
pub enum BackupError {
    /// The source no longer has the copy's last row: it was restored, it lost rows, or it is another log.
    HistoryChanged {
        /// Where the copy ends.
        copy: Position,
        /// What the source has at that number, or its last row if it ends before.
        source: Position,
    },
    /// The source's rows do not follow each other.
    Damaged(ChainError),
    /// A store failed.
    Log(LogError),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HistoryChanged { copy, source } => write!(
                f,
                "the history changed: the copy ends at {copy}, and the store has {source} there. It was restored, it \
                 lost rows, or it is another log. The copy is left as it is; --fresh sets it aside and begins another"
            ),
            Self::Damaged(_) => {
                f.write_str("the store is damaged; the copy ends before the damage")
            }
            Self::Log(_) => f.write_str("the backup could not go on; run it again to go on"),
        }
    }
}

impl Error for BackupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::HistoryChanged { .. } => None,
            Self::Damaged(cause) => Some(cause),
            Self::Log(cause) => Some(cause),
        }
    }
}

impl From<LogError> for BackupError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// Appends to the copy what the source has after the copy's last row, up to where the source ends now.
pub fn copy(
    source: &mut dyn LogReader,
    copy: &mut SqliteCopy,
    throttle: &Throttle,
    progress: &mut dyn FnMut(Progress),
) -> Result<Copied, BackupError> {
    let from = copy.head();
    let end = source.head()?;
    check_common(source, from)?;
    let mut bytes = 0;
    while copy.head().seq < end.seq {
        let at = copy.head();
        let mut page = source.page(at.seq, rows_of_page(end.seq - at.seq), PIECE_BYTES)?;
        let damage = cut_where_it_ends(source, at, &mut page)?;
        copy.append(&page)?;
        if let Some(damage) = damage {
            return Err(BackupError::Damaged(damage));
        }
        let moved: usize = page.iter().map(bytes_of).sum();
        bytes += moved as u64;
        progress(Progress { at: copy.head().seq, of: end.seq, bytes });
        throttle.wait(moved);
    }
    let to = copy.head();
    Ok(Copied { rows: to.seq - from.seq, bytes, from, to })
}

fn rows_of_page(left: u64) -> usize {
    usize::try_from(left.min(PAGE_ROWS)).expect("a small number")
}

fn bytes_of(row: &Row) -> usize {
    row.facts.len() + row.private.len() + ROW_BYTES_FIXED
}

/// The source has the copy's last row, with the same digest and so with the same rows before it.
fn check_common(source: &mut dyn LogReader, copy: Position) -> Result<(), BackupError> {
    if copy == GENESIS {
        return Ok(());
    }
    let found = match source.row(copy.seq)? {
        Some(row) => row.position(),
        None => source.head()?,
    };
    if found == copy { Ok(()) } else { Err(BackupError::HistoryChanged { copy, source: found }) }
}

/// Leaves the rows of a page that follow. Others come after them where the history changed in the meantime, which is an
/// error, or where the source is damaged: then all that is good is still worth having.
fn cut_where_it_ends(
    source: &mut dyn LogReader,
    at: Position,
    page: &mut Vec<Row>,
) -> Result<Option<ChainError>, BackupError> {
    let damage = match verify_chain(&at, page) {
        Ok(_) if !page.is_empty() => return Ok(None),
        Ok(_) => ChainError::Unchained { after: at },
        Err(error) => error,
    };
    check_common(source, at)?;
    let (ChainError::Gap { after, .. } | ChainError::Unchained { after }) = damage;
    page.retain(|row| row.seq <= after.seq);
    Ok(Some(damage))
}
