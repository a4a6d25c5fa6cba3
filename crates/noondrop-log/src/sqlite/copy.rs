//! A copy of a log: the same rows in the same table, under a mark that no owner opens.
//!
//! A backup writes it piece by piece beside the log's owner. It has a rollback journal and no
//! write-ahead log, so that between two pieces the copy is one file, which may be carried away. The
//! mark lies in the file itself: it can not get lost when somebody moves the file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::error::failed;
use super::options::Files;
use super::owner::Owner;
use super::{OpenError, connection, rows};
use crate::snapshot::sync_parent;
use crate::{GENESIS, LogError, LogErrorKind, Position, Row, verify_chain};

/// What the name of a copy ends in until it has its mark and its table.
const SUFFIX_UNFINISHED: &str = ".new";

/// A copy that this process writes. It has one writer at a time, by the same lock as a log.
#[derive(Debug)]
pub struct SqliteCopy {
    connection: Connection,
    path: PathBuf,
    head: Position,
    // The last field, so that it is released when all else is closed.
    owner: Owner,
}

impl SqliteCopy {
    /// Opens the copy at `path`, or begins an empty one. What an interrupted run left half written
    /// is taken back.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let files = Files::resolve(path)
            .map_err(|e| LogError::io(format!("could not find {}", path.display()), e))?;
        let path = files.database.clone();
        let owner = Owner::take(&files)?;
        if !path.exists() {
            create(&path)?;
        }
        let connection = connection::open_copy(&path)?;
        let head = rows::head(&connection).map_err(|e| failed("could not read the last row", e))?;
        Ok(Self { connection, path, head, owner })
    }

    /// Takes back what an interrupted run left half written, if anything, and says where the copy
    /// ends. It must exist; a medium that can not be written is no obstacle if there is nothing to
    /// take back.
    pub fn mend(path: impl AsRef<Path>) -> Result<Position, OpenError> {
        let connection = connection::open_copy(path.as_ref())?;
        Ok(rows::head(&connection).map_err(|e| failed("could not read the last row", e))?)
    }

    /// The last row of the copy, or [`GENESIS`](crate::GENESIS).
    pub fn head(&self) -> Position {
        self.head
    }

    /// Where it lies, by its one true name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends rows that follow, all or none, and returns once they are durable.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), LogError> {
        let tried = || format!("could not append to the copy after {}", self.head);
        let head = verify_chain(&self.head, rows)
            .map_err(|e| LogError::new(LogErrorKind::Damaged, tried()).because(e))?;
        insert_all(&self.connection, rows).map_err(|e| failed(tried(), e))?;
        self.head = head;
        Ok(())
    }

    /// Moves the copy to another name on the same file system, and begins an empty one in its
    /// place. The lock is held all the time.
    pub fn begin_another(self, aside: &Path) -> Result<Self, OpenError> {
        let Self { connection, path, owner, .. } = self;
        drop(connection);
        fs::rename(&path, aside)
            .and_then(|()| sync_parent(aside))
            .and_then(|()| sync_parent(&path))
            .map_err(|e| LogError::io(format!("could not move {}", path.display()), e))?;
        create(&path)?;
        let connection = connection::open_copy(&path)?;
        Ok(Self { connection, path, head: GENESIS, owner })
    }

    /// Turns the copy into a log, which an owner opens from then on.
    pub fn into_log(self) -> Result<(), LogError> {
        connection::mark_as_log(&self.connection)
            .map_err(|e| failed("could not make a log of the copy", e))
    }
}

fn insert_all(connection: &Connection, new: &[Row]) -> rusqlite::Result<()> {
    let behavior = TransactionBehavior::Immediate;
    let transaction = rusqlite::Transaction::new_unchecked(connection, behavior)?;
    for row in new {
        rows::insert(&transaction, row)?;
    }
    transaction.commit()
}

/// Makes an empty copy under another name first: a file of its name is a copy from the start.
fn create(path: &Path) -> Result<(), OpenError> {
    let unfinished = with_suffix(path, SUFFIX_UNFINISHED);
    remove_if_there(&unfinished)
        .and_then(|()| remove_if_there(&with_suffix(&unfinished, "-journal")))
        .map_err(|e| could_not_create(path, e))?;
    connection::create_copy(&unfinished)?;
    let named = fs::rename(&unfinished, path).and_then(|()| sync_parent(path));
    named.map_err(|e| could_not_create(path, e).into())
}

fn could_not_create(path: &Path, error: io::Error) -> LogError {
    LogError::io(format!("could not create {}", path.display()), error)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
