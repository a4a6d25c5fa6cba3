//! The log, page by page: each row chained to the one before and decoded strictly, up to where the log ended at first look.
//!
//! Reads are short, so that a server beside it is not held up.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;

use noondrop_core::Entry;
use noondrop_core::codec::{CodecError, decode_row};
use noondrop_log::{ChainError, GENESIS, LogError, LogReader, Position, Row, verify_chain};

const PAGE_ROWS: usize = 2_048;
const PAGE_BYTES: usize = 4 << 20;

/// One row, and what it says.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// As it was stored.
    pub row: Row,
    /// Its facts with their private texts.
    pub entries: Vec<Entry>,
}

/// Why a scan could not go on.
#[derive(Debug)]
pub enum ScanError {
    /// The store could not be read.
    Log(LogError),
    /// The rows are not one chain.
    Chain(ChainError),
    /// A row says something that this program does not know.
    Unreadable {
        /// Which row.
        row: Position,
        /// Why.
        cause: CodecError,
    },
}

impl ScanError {
    /// The row at fault, where it is known.
    #[must_use]
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Log(_) => None,
            Self::Chain(ChainError::Gap { after, .. } | ChainError::Unchained { after }) => {
                Some(after.seq + 1)
            }
            Self::Unreadable { row, .. } => Some(row.seq),
        }
    }
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(_) => f.write_str("the log could not be read"),
            Self::Chain(_) => f.write_str("the rows are not one chain"),
            Self::Unreadable { row, .. } => write!(f, "row {row} cannot be understood"),
        }
    }
}

impl Error for ScanError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Log(cause) => Some(cause),
            Self::Chain(cause) => Some(cause),
            Self::Unreadable { cause, .. } => Some(cause),
        }
    }
}

/// See the module. An iterator over rows; after an error it ends.
pub struct Scan<'a> {
    reader: &'a mut dyn LogReader,
    ready: VecDeque<Row>,
    position: Position,
    head: Position,
    last: u64,
    over: bool,
}

impl<'a> Scan<'a> {
    /// From the first row to the newest.
    pub fn all(reader: &'a mut dyn LogReader) -> Result<Self, ScanError> {
        Self::after(reader, GENESIS)
    }

    /// The rows after one that is known.
    pub fn after(reader: &'a mut dyn LogReader, position: Position) -> Result<Self, ScanError> {
        let head = reader.head().map_err(ScanError::Log)?;
        let last = head.seq;
        Ok(Self { reader, ready: VecDeque::new(), position, head, last, over: false })
    }

    /// Ends at this row, where the log goes further.
    #[must_use]
    pub fn until(mut self, seq: u64) -> Self {
        self.last = self.last.min(seq);
        self
    }

    /// The newest row when the scan began: where it will end, unless told otherwise.
    #[must_use]
    pub fn head(&self) -> Position {
        self.head
    }

    /// The last row that was handed out.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    fn fill(&mut self) -> Result<(), ScanError> {
        let left = self.last.saturating_sub(self.position.seq);
        let rows = PAGE_ROWS.min(usize::try_from(left).unwrap_or(PAGE_ROWS));
        if rows > 0 {
            let page = self.reader.page(self.position.seq, rows, PAGE_BYTES);
            self.ready = page.map_err(ScanError::Log)?.into();
        }
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<Row>, ScanError> {
        if self.ready.is_empty() {
            self.fill()?;
        }
        let Some(row) = self.ready.pop_front() else { return Ok(None) };
        let next = verify_chain(&self.position, std::slice::from_ref(&row));
        self.position = next.map_err(ScanError::Chain)?;
        Ok(Some(row))
    }

    fn step(&mut self) -> Result<Option<Scanned>, ScanError> {
        let Some(row) = self.next_row()? else { return Ok(None) };
        let entries = decode_row(row.level, &row.facts, &row.private)
            .map_err(|cause| ScanError::Unreadable { row: row.position(), cause })?;
        Ok(Some(Scanned { row, entries }))
    }
}

/// The same rows, in their chain, for who decodes what he needs of them himself.
pub struct Skim<'a>(Scan<'a>);

impl<'a> Skim<'a> {
    /// From the first row to the newest.
    pub fn all(reader: &'a mut dyn LogReader) -> Result<Self, ScanError> {
        Scan::all(reader).map(Self)
    }

    /// The rows after one that is known, up to another.
    pub fn between(
        reader: &'a mut dyn LogReader,
        after: Position,
        last: u64,
    ) -> Result<Self, ScanError> {
        Scan::after(reader, after).map(|scan| Self(scan.until(last)))
    }

    /// The last row that was handed out.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position()
    }
}

impl Iterator for Skim<'_> {
    type Item = Result<Row, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.over {
            return None;
        }
        let row = self.0.next_row();
        self.0.over = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Scanned, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let step = self.step();
        self.over = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}
