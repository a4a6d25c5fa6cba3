//! One owner per log: a lock on a file beside the database, held for as long as the log is open.
//!
//! The lock belongs to the open file, so the operating system drops it when the process dies, and
//! no stale one can keep the next owner out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::thread;
use std::time::Duration;

use super::OpenError;
use super::options::Files;
use crate::LogError;

/// How often to look before somebody counts as the owner. A process that is just being started has
/// a copy of all open files of its parent, and so of a lock that the parent has given up, until it
/// runs its own program.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Proof that this log is ours until it is dropped.
#[derive(Debug)]
pub(super) struct Owner {
    _locked: File,
}

impl Owner {
    /// Takes the lock, or says who is in the way.
    pub(super) fn take(files: &Files) -> Result<Self, OpenError> {
        let file = open(files)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _locked: file }),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(could_not_lock(files, error).into()),
            }
        }
        Err(OpenError::Owned { path: files.database.clone(), owner_file: files.owner() })
    }
}

fn open(files: &Files) -> Result<File, LogError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(files.owner()).map_err(|error| could_not_lock(files, error))
}

fn could_not_lock(files: &Files, error: io::Error) -> LogError {
    LogError::io(format!("could not lock {}", files.owner().display()), error)
}
