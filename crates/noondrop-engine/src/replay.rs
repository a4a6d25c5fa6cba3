//! From rows to a state: the one way in which recovery, the snapshot builder and a replica that
//! learns apply facts.

use std::error::Error;
use std::fmt;
use std::io::Read;

use noondrop_core::codec::{self, CodecError};
use noondrop_core::{Misfit, Moment, Seq, State, Timestamp};
use noondrop_log::{
    ChainError, GENESIS, LogError, LogOpener, LogReader, Position, Row, SnapshotMeta, verify_chain,
};
use tracing::{info, warn};

use crate::error::Causes;

/// Rows read at once: enough to be quick, few enough that no read stays open for long.
const PAGE_ROWS: usize = 4_096;
const PAGE_BYTES: usize = 8 << 20;

/// Why a row of the log could not become part of the state.
#[derive(Debug)]
pub enum ReplayError {
    /// The log or a snapshot could not be read.
    Log(LogError),
    /// The rows are not one chain.
    Chain(ChainError),
    /// The row says something that this program does not know, or is damaged.
    Unreadable {
        /// Which row.
        row: Position,
        /// Why.
        cause: CodecError,
    },
    /// A fact does not fit the state before it.
    Misfit {
        /// Which row.
        row: Position,
        /// Why.
        cause: Misfit,
    },
    /// The state after the row is not the one that its writer had.
    StateSum {
        /// Which row.
        row: Position,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(_) => f.write_str("the log could not be read"),
            Self::Chain(_) => f.write_str("the log's rows do not follow each other"),
            Self::Unreadable { row, .. } => write!(f, "row {row} could not be read"),
            Self::Misfit { row, .. } => write!(f, "row {row} does not fit the rows before it"),
            Self::StateSum { row } => {
                write!(f, "row {row} leads to another state here than it did where it was written")
            }
        }
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Log(cause) => Some(cause),
            Self::Chain(cause) => Some(cause),
            Self::Unreadable { cause, .. } => Some(cause),
            Self::Misfit { cause, .. } => Some(cause),
            Self::StateSum { .. } => None,
        }
    }
}

impl From<LogError> for ReplayError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<ChainError> for ReplayError {
    fn from(error: ChainError) -> Self {
        Self::Chain(error)
    }
}

/// A state and where in the log it stands.
pub(crate) struct Replayed {
    pub(crate) state: State,
    pub(crate) position: Position,
}

impl Replayed {
    pub(crate) fn nothing() -> Self {
        Self { state: State::new(), position: GENESIS }
    }

    /// Applies the next row, whose place in the chain was checked. On an error the state is not to
    /// be used any more.
    pub(crate) fn apply(&mut self, row: &Row) -> Result<(), ReplayError> {
        apply_row(&mut self.state, row)?;
        self.position = row.position();
        Ok(())
    }

    /// Applies rows until the log ends, or until `until`.
    pub(crate) fn catch_up(
        &mut self,
        reader: &mut dyn LogReader,
        until: Option<u64>,
    ) -> Result<(), ReplayError> {
        let until = until.unwrap_or(u64::MAX);
        let mut told = self.position.seq;
        while self.position.seq < until {
            let room = usize::try_from(until - self.position.seq).unwrap_or(usize::MAX);
            let rows = reader.page(self.position.seq, PAGE_ROWS.min(room), PAGE_BYTES)?;
            if rows.is_empty() {
                break;
            }
            verify_chain(&self.position, &rows)?;
            rows.iter().try_for_each(|row| self.apply(row))?;
            if self.position.seq - told >= 100_000 {
                told = self.position.seq;
                info!(position = %self.position, "replaying the log");
            }
        }
        Ok(())
    }
}

/// Applies one row to the state before it, and compares the sums.
pub(crate) fn apply_row(state: &mut State, row: &Row) -> Result<(), ReplayError> {
    let position = row.position();
    let entries = codec::decode_row(row.level, &row.facts, &row.private)
        .map_err(|cause| ReplayError::Unreadable { row: position, cause })?;
    state.open_turn(Moment { seq: Seq(row.seq), at: Timestamp(row.at), nonce: row.nonce });
    for entry in &entries {
        state.apply(entry).map_err(|cause| ReplayError::Misfit { row: position, cause })?;
    }
    if state.sum() != row.state_sum {
        return Err(ReplayError::StateSum { row: position });
    }
    state.commit_turn();
    Ok(())
}

/// The state at the end of the log: from the newest snapshot that the log vouches for, and the rows
/// after it.
pub(crate) fn replay(opener: &dyn LogOpener) -> Result<Replayed, ReplayError> {
    let mut reader = opener.reader()?;
    let mut replayed = from_snapshot(opener, &mut *reader, u64::MAX)?;
    replayed.catch_up(&mut *reader, None)?;
    Ok(replayed)
}

/// The state of the newest snapshot at or before `until`, or nothing. A snapshot that is unfit only
/// costs time.
pub(crate) fn from_snapshot(
    opener: &dyn LogOpener,
    reader: &mut dyn LogReader,
    until: u64,
) -> Result<Replayed, ReplayError> {
    let snapshots = opener.snapshots();
    let metas = match snapshots.list() {
        Ok(metas) => metas,
        Err(error) => {
            warn!(error = %Causes(&error), "snapshots can not be listed; replaying the whole log");
            return Ok(Replayed::nothing());
        }
    };
    for meta in metas.iter().filter(|meta| meta.position.seq <= until) {
        let known = reader.row(meta.position.seq)?.is_some_and(|row| is_of(meta, &row));
        if !known {
            warn!(snapshot = %meta.position, "the log does not have this snapshot's position");
            continue;
        }
        match snapshots
            .open(meta)
            .map_err(|error| Causes(&error).to_string())
            .and_then(|payload| load(meta, payload))
        {
            Ok(state) => return Ok(Replayed { state, position: meta.position }),
            Err(why) => warn!(snapshot = %meta.position, why, "this snapshot can not be used"),
        }
    }
    Ok(Replayed::nothing())
}

pub(crate) fn is_of(meta: &SnapshotMeta, row: &Row) -> bool {
    row.position() == meta.position && row.state_sum == meta.state_sum
}

fn load(meta: &SnapshotMeta, mut payload: Box<dyn Read + Send>) -> Result<State, String> {
    let mut state = State::read_snapshot(&mut |into| payload.read_exact(into).is_ok())
        .map_err(|error| error.to_string())?;
    if state.sum() == meta.state_sum { Ok(state) } else { Err("its state has another sum".into()) }
}
