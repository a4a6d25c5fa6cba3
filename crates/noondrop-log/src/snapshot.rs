//! Snapshots: the state at a position, so that a start need not replay the whole history.
//!
//! A snapshot is never the truth. It counts only if it is whole and the log has its position; one
//! that is torn or damaged is passed over, and the log is replayed from an older one. What the
//! bytes mean is not known here.

mod file;
mod format;

use std::io::{self, Read, Write};

use tracing::warn;

pub use file::FileSnapshots;
pub(crate) use file::sync_parent;
pub(crate) use format::{read_header, verified_payload, write_whole};

use crate::{LogError, Position};

/// What a snapshot says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The row up to which the state is contained.
    pub position: Position,
    /// The format level at which the payload is written.
    pub level: u16,
    /// The sum over the state, to be compared with the row's.
    pub state_sum: [u8; 16],
    /// The size of the payload. Not looked at by [`Snapshots::write`].
    pub bytes: u64,
}

/// A snapshot that is whole, and its payload.
pub type OpenedSnapshot = (SnapshotMeta, Box<dyn Read + Send>);

/// The snapshots that belong to one log.
pub trait Snapshots: Send + Sync {
    /// All snapshots whose outside looks whole, newest first. Others are passed over with a
    /// warning. The payloads are not read here.
    fn list(&self) -> Result<Vec<SnapshotMeta>, LogError>;

    /// The payload of a snapshot, every byte of it checked before the first is handed out.
    /// Fails with [`LogErrorKind::Damaged`](crate::LogErrorKind::Damaged) if it is not whole.
    fn open(&self, meta: &SnapshotMeta) -> Result<Box<dyn Read + Send>, LogError>;

    /// Stores what `fill` writes. It becomes visible whole or not at all, and replaces a snapshot
    /// of the same position.
    fn write(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError>;

    /// Deletes all but the newest `keep` of those that `wanted` accepts, and what interrupted writes
    /// have left behind. The snapshots of a history that the log lost are not wanted: their numbers
    /// are the highest, and they would push out every new one.
    fn prune(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<(), LogError>;

    /// The newest snapshot that is whole and that `wanted` accepts, opened. Damaged ones are
    /// passed over with a warning.
    fn open_newest(
        &self,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<Option<OpenedSnapshot>, LogError> {
        for meta in self.list()? {
            if !wanted(&meta) {
                continue;
            }
            match self.open(&meta) {
                Ok(payload) => return Ok(Some((meta, payload))),
                Err(error) if error.is_damaged() => warn_damaged(&meta.position, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

pub(crate) fn warn_damaged(name: &dyn std::fmt::Display, error: &dyn std::error::Error) {
    let cause = error.source().map(ToString::to_string);
    warn!(snapshot = %name, error = %error, cause, "passing over a damaged snapshot");
}
