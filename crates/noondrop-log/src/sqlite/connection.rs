//! How every connection to the database is set up, and how the file is told from a stranger's.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::OpenError;
use super::error::{failed, is_half_written};

/// Marks a database as a log of ours: "Noon".
const APPLICATION_ID: i64 = 0x4e6f_6f6e;

/// Marks a copy of a log, which is read like one and never owned: "NooC".
const APPLICATION_ID_COPY: i64 = 0x4e6f_6f43;

/// The version of the tables below. A newer one is refused, never guessed at.
const VERSION: i64 = 1;

/// `facts` and `private` stand last, so that reading the other columns touches no further page.
const TABLES: &str = "
    CREATE TABLE log (
        seq       INTEGER PRIMARY KEY,
        at        INTEGER NOT NULL,
        writer    BLOB    NOT NULL,
        attempt   INTEGER NOT NULL,
        nonce     BLOB    NOT NULL,
        level     INTEGER NOT NULL,
        state_sum BLOB    NOT NULL,
        digest    BLOB    NOT NULL,
        facts     BLOB    NOT NULL,
        private   BLOB    NOT NULL
    ) STRICT;
";

/// How long to wait for a stranger's lock (a person with the `sqlite3` shell, a backup tool).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens the database for its owner: creates it if it is new, and refuses what is not ours
/// before anything in it is changed.
pub(super) fn open_owner(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags)?;
    let known = identify(&connection, path)?;
    if known == Identity::Copy {
        return Err(OpenError::IsCopy { path: path.to_owned() });
    }
    set_durable(&connection).map_err(|e| failed("could not set the database up", e))?;
    if known == Identity::Empty {
        create_tables(&connection, APPLICATION_ID)
            .map_err(|e| failed("could not create the log", e))?;
    }
    Ok(connection)
}

/// Opens the database for reading beside its owner. It must exist and be a log, or a copy of one.
pub(super) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match identify(&connection, path)? {
        Identity::Log | Identity::Copy => Ok(connection),
        Identity::Empty => Err(OpenError::NotALog { path: path.to_owned() }),
    }
}

/// Opens a copy for writing. It must exist and be one.
pub(super) fn open_copy(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    match identify(&connection, path)? {
        Identity::Copy => {}
        Identity::Log => return Err(OpenError::IsLog { path: path.to_owned() }),
        Identity::Empty => return Err(OpenError::NotALog { path: path.to_owned() }),
    }
    set_durable_copy(&connection).map_err(|e| failed("could not set the copy up", e))?;
    Ok(connection)
}

/// Creates a file with the mark and the table of a copy, durably.
pub(super) fn create_copy(path: &Path) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags)?;
    set_durable_copy(&connection)
        .and_then(|()| create_tables(&connection, APPLICATION_ID_COPY))
        .map_err(|e| failed(format!("could not create {}", path.display()), e))?;
    Ok(())
}

/// From now on the file is a log, and no copy any more.
pub(super) fn mark_as_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)
        .and_then(|connection| prepare(&connection).map(|()| connection));
    Ok(connection.map_err(|e| failed(format!("could not open {}", path.display()), e))?)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Closing must not write: it happens while a disk fails, and before a loss is looked at.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    Empty,
    Log,
    Copy,
}

fn identify(connection: &Connection, path: &Path) -> Result<Identity, OpenError> {
    let could_not = |e| {
        if is_half_written(&e) {
            return OpenError::CopyInterrupted { path: path.to_owned() };
        }
        failed(format!("could not read {}", path.display()), e).into()
    };
    let (application, version, tables) = read_identity(connection).map_err(could_not)?;
    match (application, tables) {
        (0, 0) if version == 0 => Ok(Identity::Empty),
        (APPLICATION_ID | APPLICATION_ID_COPY, _) if version > VERSION => {
            Err(OpenError::NewerVersion {
                path: path.to_owned(),
                found: version,
                supported: VERSION,
            })
        }
        (APPLICATION_ID, _) if version == VERSION => Ok(Identity::Log),
        (APPLICATION_ID_COPY, _) if version == VERSION => Ok(Identity::Copy),
        _ => Err(OpenError::NotALog { path: path.to_owned() }),
    }
}

fn read_identity(connection: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let application = pragma(connection, "application_id")?;
    let version = pragma(connection, "user_version")?;
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables = connection.query_row(count, [], |row| row.get(0))?;
    Ok((application, version, tables))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Every commit waits for the disk. Not `locking_mode=EXCLUSIVE`: readers and backups must get in.
fn set_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| {
        let mode: String = row.get(0)?;
        if mode == "wal" { Ok(()) } else { Err(rusqlite::Error::InvalidQuery) }
    })?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync does not reach the medium. Without effect elsewhere.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    leave_no_remnants(connection)?;
    // Checkpoints are ours to time: between turns, not inside of one.
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}

/// A copy is one file between two transactions, each of which waits for the disk.
fn set_durable_copy(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    // Syncs the directory too, once the journal is gone from it.
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.pragma_update(None, "fullfsync", true)?;
    leave_no_remnants(connection)
}

/// Private texts are overwritten in their place. But where a table grows by a level, its first page keeps what it had in bytes
/// that nothing points to any more, unless this is on from the first row.
fn leave_no_remnants(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))
}

fn create_tables(connection: &Connection, application_id: i64) -> rusqlite::Result<()> {
    let marks =
        format!("PRAGMA application_id = {application_id}; PRAGMA user_version = {VERSION};");
    connection.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} {marks} COMMIT;"))
}
