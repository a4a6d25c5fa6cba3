//! A copy of a log: never owned by mistake, never with a row that does not follow, and a log once it is made one.

use std::fs;
use std::path::{Path, PathBuf};

use noondrop_log::sqlite::{OpenError, SqliteCopy, SqliteLog, SqliteOpener, SqliteOptions};
use noondrop_log::{GENESIS, Log, LogErrorKind, LogOpener, Row, Unsealed};

fn rows(count: u64) -> Vec<Row> {
    let mut previous = GENESIS;
    (1..=count)
        .map(|seq| {
            let private = b"a text".to_vec();
            let unsealed = Unsealed { seq, at: seq, private, ..Unsealed::default() };
            let row = Row::seal(&previous.digest, unsealed);
            previous = row.position();
            row
        })
        .collect()
}

fn read(path: &Path) -> Vec<Row> {
    let opener = SqliteOpener::at(path, std::sync::Arc::default()).unwrap();
    opener.reader().unwrap().page(0, 1_000, 1 << 20).unwrap()
}

fn copy_of(directory: &Path, rows: &[Row]) -> (PathBuf, SqliteCopy) {
    let path = directory.join("copy.sqlite");
    let mut copy = SqliteCopy::open(&path).unwrap();
    copy.append(rows).unwrap();
    (path, copy)
}

#[test]
fn a_copy_is_read_like_a_log_and_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(7);
    let (path, copy) = copy_of(home.path(), &rows[..4]);
    assert_eq!(copy.head(), rows[3].position());
    drop(copy);
    let mut copy = SqliteCopy::open(&path).unwrap();
    assert_eq!(copy.head(), rows[3].position());
    copy.append(&rows[4..]).unwrap();
    assert_eq!(read(&path), rows, "also while it is open");
    let others = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(others, 2, "the copy is one file, and a lock beside it");
}

#[test]
fn a_row_that_does_not_follow_is_refused_with_all_that_came_with_it() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(7);
    let (path, mut copy) = copy_of(home.path(), &rows[..3]);
    let mut changed = rows[3..6].to_vec();
    changed[2].at += 1;
    let holes = [rows[3].clone(), rows[5].clone()];
    for wrong in [&rows[4..], &rows[2..], &holes[..], &changed[..]] {
        let error = copy.append(wrong).unwrap_err();
        assert_eq!(error.kind(), LogErrorKind::Damaged, "{error}");
    }
    assert_eq!((copy.head(), read(&path)), (rows[2].position(), rows[..3].to_vec()));
}

#[test]
fn an_owner_refuses_a_copy_and_a_backup_refuses_a_log() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(3);
    let (path, copy) = copy_of(home.path(), &rows);
    let owned = SqliteLog::open(SqliteOptions::new(&path)).unwrap_err();
    assert!(matches!(owned, OpenError::Owned { .. }), "it is being written: {owned}");
    drop(copy);
    let refused = SqliteLog::open(SqliteOptions::new(&path)).unwrap_err();
    assert!(matches!(refused, OpenError::IsCopy { .. }), "{refused}");
    assert_eq!(read(&path), rows, "and nothing was changed");

    let log = home.path().join("log.sqlite");
    drop(SqliteLog::open(SqliteOptions::new(&log)).unwrap());
    for refused in [SqliteCopy::open(&log).map(drop), SqliteCopy::mend(&log).map(drop)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, OpenError::IsLog { .. }), "{refused}");
    }
}

#[test]
fn a_copy_that_is_made_a_log_goes_on_as_one() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(5);
    let (path, copy) = copy_of(home.path(), &rows[..4]);
    copy.into_log().unwrap();
    let mut log = SqliteLog::open(SqliteOptions::new(&path)).unwrap();
    assert_eq!(log.head().unwrap(), rows[3].position());
    log.append(&rows[4]).unwrap();
    drop(log);
    assert_eq!(read(&path), rows);
    let refused = SqliteCopy::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::IsLog { .. }), "{refused}");
}

#[test]
fn a_copy_that_was_never_begun_to_its_end_is_begun_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("copy.sqlite");
    fs::write(home.path().join("copy.sqlite.new"), "half a header").unwrap();
    fs::write(home.path().join("copy.sqlite.new-journal"), "and its journal").unwrap();
    assert!(SqliteCopy::mend(&path).is_err(), "there is none yet");
    assert_eq!(SqliteCopy::open(&path).unwrap().head(), GENESIS);
    assert_eq!(SqliteCopy::mend(&path).unwrap(), GENESIS);
    assert!(!home.path().join("copy.sqlite.new").exists());
}
