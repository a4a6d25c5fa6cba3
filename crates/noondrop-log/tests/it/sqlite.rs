//! The SQLite store against the suite, and what it refuses to open.

use std::error::Error;

use noondrop_log::sqlite::{OpenError, SqliteLog, SqliteOpener};
use noondrop_log::{Log, LogOpener, Throttle, conformance};
use rusqlite::Connection;

use crate::support::{SqliteSubject, append, assert_none, options, positions};

#[test]
fn sqlite_passes_the_suite() {
    assert_none(&conformance::run(&|| Box::new(SqliteSubject::new())));
}

#[test]
fn a_second_owner_is_refused_and_told_where_the_first_is() {
    let subject = SqliteSubject::new();
    let first = SqliteLog::open(options(&subject.path())).unwrap();
    let error = SqliteLog::open(options(&subject.path())).unwrap_err();
    assert!(matches!(error, OpenError::Owned { .. }), "{error:?}");
    assert!(error.to_string().contains("log.db.owner"), "{error}");
    drop(first);
    SqliteLog::open(options(&subject.path())).unwrap();
}

/// Two names for one file must not make two owners.
#[test]
fn a_second_owner_by_another_name_is_refused() {
    let subject = SqliteSubject::new();
    let _first = SqliteLog::open(options(&subject.path())).unwrap();
    let link = subject.path().with_file_name("other.db");
    std::os::unix::fs::symlink(subject.path(), &link).unwrap();
    let error = SqliteLog::open(options(&link)).unwrap_err();
    assert!(matches!(error, OpenError::Owned { .. }), "{error:?}");
}

#[test]
fn a_strange_database_is_refused_and_left_alone() {
    let subject = SqliteSubject::new();
    let connection = Connection::open(subject.path()).unwrap();
    connection.execute_batch("CREATE TABLE guests (name TEXT)").unwrap();
    drop(connection);
    let before = std::fs::read(subject.path()).unwrap();
    let error = SqliteLog::open(options(&subject.path())).unwrap_err();
    assert!(matches!(error, OpenError::NotALog { .. }), "{error:?}");
    assert_eq!(std::fs::read(subject.path()).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let subject = SqliteSubject::new();
    let text = "not a database, but long enough to be looked at ".repeat(100);
    std::fs::write(subject.path(), &text).unwrap();
    let error = SqliteLog::open(options(&subject.path())).unwrap_err();
    assert!(error.source().is_some(), "{error:?}");
    assert_eq!(std::fs::read_to_string(subject.path()).unwrap(), text);
}

#[test]
fn a_log_of_a_newer_version_is_refused_by_number() {
    let subject = SqliteSubject::new();
    drop(SqliteLog::open(options(&subject.path())).unwrap());
    let connection = Connection::open(subject.path()).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let error = SqliteLog::open(options(&subject.path())).unwrap_err();
    assert!(matches!(error, OpenError::NewerVersion { found: 7, .. }), "{error:?}");
    assert!(error.to_string().contains("has version 7"), "{error}");
}

#[test]
fn a_log_in_a_directory_that_is_not_there_is_a_clear_error() {
    let error = SqliteLog::open(options("/nonexistent/log.db".as_ref())).unwrap_err();
    let OpenError::Failed(error) = error else { panic!("{error:?}") };
    assert!(error.to_string().contains("/nonexistent/log.db"), "{error}");
}

#[test]
fn a_log_is_read_beside_its_owner_without_owning_it() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    append(&mut log, 5);
    let opener = SqliteOpener::at(subject.path(), Throttle::default().into()).unwrap();
    let mut reader = opener.reader().unwrap();
    assert_eq!(positions(&mut *reader).len(), 5);
    append(&mut log, 5);
    assert_eq!(positions(&mut *reader).len(), 10);
    // Also when nobody owns it any more.
    drop(log);
    assert_eq!(positions(&mut *opener.reader().unwrap()).len(), 10);
}

#[test]
fn reading_a_log_that_is_not_there_does_not_create_it() {
    let subject = SqliteSubject::new();
    SqliteOpener::at(subject.path(), Throttle::default().into()).unwrap_err();
    assert!(!subject.path().exists());
}

#[test]
fn a_link_to_nowhere_is_refused() {
    let subject = SqliteSubject::new();
    let link = subject.path().with_file_name("link.db");
    std::os::unix::fs::symlink(subject.path(), &link).unwrap();
    SqliteLog::open(options(&link)).unwrap_err();
    assert!(!subject.path().exists());
}

#[test]
fn pruning_removes_what_an_interrupted_snapshot_left_behind() {
    let subject = SqliteSubject::new();
    let snapshots = SqliteLog::open(options(&subject.path())).unwrap().opener().snapshots();
    let directory = subject.path().with_file_name("log.db.snapshots");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("next.unfinished"), b"half of it").unwrap();
    assert_eq!(snapshots.list().unwrap(), []);
    snapshots.prune(3, &mut |_| true).unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

/// The write-ahead log must start over, also while readers come and go, or it fills the disk.
#[test]
fn the_write_ahead_log_stays_small() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    let mut reader = log.opener().reader().unwrap();
    let mut last = log.head().unwrap();
    for _ in 0..400 {
        let row = crate::support::row_after(&last, 70_000);
        log.append(&row).unwrap();
        last = row.position();
        assert_eq!(reader.head().unwrap(), last);
        log.between_turns().unwrap();
    }
    let wal = subject.path().with_file_name("log.db-wal");
    let bytes = std::fs::metadata(wal).unwrap().len();
    assert!(bytes < 4 << 20, "28 MB were appended, and the write-ahead log has {bytes} bytes");
}
