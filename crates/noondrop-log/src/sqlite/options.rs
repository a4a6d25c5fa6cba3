//! How a SQLite log is opened, and where its files lie.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Throttle;

/// The write-ahead log is copied to the main file when it has grown by about this many pages
/// (1 MiB): small enough to be a matter of a few milliseconds between two turns.
const CHECKPOINT_PAGES_DEFAULT: u64 = 256;

/// How to open a [`SqliteLog`](super::SqliteLog).
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file. It is created if it does not exist; its directory must exist.
    pub path: PathBuf,
    /// Go on although rows that were answered are gone. To be set by a person, for one start.
    pub accept_loss: bool,
    /// After how many new pages (4 KiB) in the write-ahead log to start a checkpoint.
    pub checkpoint_pages: u64,
    /// Holds back the writing of snapshots, and the reading of the whole log for an erasure.
    pub throttle: Arc<Throttle>,
}

impl SqliteOptions {
    /// The log at `path`, everything else as usual.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            accept_loss: false,
            checkpoint_pages: CHECKPOINT_PAGES_DEFAULT,
            throttle: Arc::new(Throttle::default()),
        }
    }
}

/// The database file and the files beside it, by their one true name.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) database: PathBuf,
}

impl Files {
    /// Follows links, so that two names of one database lead to one owner file.
    pub(super) fn resolve(path: &Path) -> io::Result<Self> {
        match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::not_yet_there(path),
            database => Ok(Self { database: database? }),
        }
    }

    fn not_yet_there(path: &Path) -> io::Result<Self> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if path.is_symlink() {
            // SQLite would create what it points to, whose true name is not known before.
            return Err(invalid("it is a link to a file that does not exist"));
        }
        let name = path.file_name().ok_or_else(|| invalid("it does not name a file"))?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.canonicalize()?,
            _ => Path::new(".").canonicalize()?,
        };
        Ok(Self { database: parent.join(name) })
    }

    pub(super) fn owner(&self) -> PathBuf {
        self.beside(".owner")
    }

    pub(super) fn acknowledged(&self) -> PathBuf {
        self.beside(".acknowledged")
    }

    pub(super) fn scrubbed(&self) -> PathBuf {
        self.beside(".erased")
    }

    pub(super) fn snapshots(&self) -> PathBuf {
        self.beside(".snapshots")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(&self.database);
        name.push(suffix);
        PathBuf::from(name)
    }
}
