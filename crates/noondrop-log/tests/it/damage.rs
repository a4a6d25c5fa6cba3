//! Damage that SQLite keeps silent about, and the file beside the database that does not.

use std::path::PathBuf;

use noondrop_log::sqlite::{Loss, OpenError, SqliteLog, SqliteOptions};
use noondrop_log::{GENESIS, Log, Position, Row};

use crate::support::{SqliteSubject, append, flip, options, positions, row_after};

/// The files of a log with rows in its write-ahead log, as a crash leaves them.
struct Crashed {
    directory: tempfile::TempDir,
    answered: Vec<Position>,
}

impl Crashed {
    /// Copies the files while the log is open: nothing of a clean end is in them.
    fn with_rows(count: u64) -> Self {
        let subject = SqliteSubject::new();
        let mut log = SqliteLog::open(options(&subject.path())).unwrap();
        append(&mut log, count);
        let answered = positions(&mut *log.opener().reader().unwrap());
        let directory = tempfile::tempdir().unwrap();
        for name in ["log.db", "log.db-wal", "log.db.acknowledged"] {
            let from = subject.path().with_file_name(name);
            std::fs::copy(from, directory.path().join(name)).unwrap();
        }
        Self { directory, answered }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> SqliteOptions {
        options(&self.file("log.db"))
    }

    fn accepting(&self) -> SqliteOptions {
        SqliteOptions { accept_loss: true, ..self.options() }
    }

    fn flip_middle_of_the_wal(&self) {
        let bytes = std::fs::metadata(self.file("log.db-wal")).unwrap().len();
        flip(&self.file("log.db-wal"), usize::try_from(bytes / 2).unwrap());
    }
}

#[test]
fn an_undamaged_crash_loses_nothing() {
    let crashed = Crashed::with_rows(100);
    let log = SqliteLog::open(crashed.options()).unwrap();
    assert_eq!(positions(&mut *log.opener().reader().unwrap()), crashed.answered);
    assert_eq!(log.loss(), None);
}

/// One flipped bit in the write-ahead log: SQLite ends there and calls the rest whole.
#[test]
fn a_flipped_bit_in_the_write_ahead_log_is_refused_with_both_positions() {
    let crashed = Crashed::with_rows(100);
    crashed.flip_middle_of_the_wal();
    let error = SqliteLog::open(crashed.options()).unwrap_err();
    let OpenError::AcknowledgedLost { acknowledged, found, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(Some(&acknowledged), crashed.answered.last());
    assert!(found.seq > 0 && crashed.answered.contains(&found), "{found:?}");
    let text = error.to_string();
    assert!(text.contains(&acknowledged.to_string()), "{text}");
    assert!(text.contains(&found.to_string()), "{text}");
}

/// A refusal must leave what can still be salvaged: the damaged tail itself.
#[test]
fn a_refused_log_is_left_as_it_was_found() {
    let crashed = Crashed::with_rows(100);
    crashed.flip_middle_of_the_wal();
    let read = || ["log.db", "log.db-wal"].map(|name| std::fs::read(crashed.file(name)).unwrap());
    let before = read();
    SqliteLog::open(crashed.options()).unwrap_err();
    assert!(read() == before, "a refused log was changed");
    SqliteLog::open(crashed.options()).unwrap_err();
}

#[test]
fn an_accepted_loss_is_told_until_a_row_records_it() {
    let crashed = Crashed::with_rows(100);
    crashed.flip_middle_of_the_wal();
    let mut log = SqliteLog::open(crashed.accepting()).unwrap();
    let loss = log.loss().unwrap();
    let Loss { acknowledged, found } = loss;
    assert_eq!((Some(&acknowledged), found), (crashed.answered.last(), log.head().unwrap()));
    // A start that appended nothing has not recorded it.
    drop(log);
    let error = SqliteLog::open(crashed.options()).unwrap_err();
    assert!(matches!(error, OpenError::AcknowledgedLost { .. }), "{error:?}");

    let mut log = SqliteLog::open(crashed.accepting()).unwrap();
    assert_eq!(log.loss(), Some(loss));
    log.recover().unwrap();
    let last = append(&mut log, 1);
    drop(log);
    let mut log = SqliteLog::open(crashed.options()).unwrap();
    assert_eq!((log.loss(), log.head().unwrap()), (None, last));
}

/// As after a restore of an old copy that has gone on since: the number is there, the row is not.
#[test]
fn another_row_in_the_answered_place_is_refused() {
    let crashed = Crashed::with_rows(5);
    let connection = rusqlite::Connection::open(crashed.file("log.db")).unwrap();
    connection.execute("UPDATE log SET digest = zeroblob(32) WHERE seq = 5", []).unwrap();
    drop(connection);
    let error = SqliteLog::open(crashed.options()).unwrap_err();
    let OpenError::AcknowledgedLost { acknowledged, found, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((acknowledged.seq, found.seq), (5, 5));
}

#[test]
fn a_database_that_vanished_is_refused_and_not_begun_anew() {
    let crashed = Crashed::with_rows(5);
    std::fs::remove_file(crashed.file("log.db")).unwrap();
    std::fs::remove_file(crashed.file("log.db-wal")).unwrap();
    let error = SqliteLog::open(crashed.options()).unwrap_err();
    assert!(matches!(error, OpenError::AcknowledgedLost { found: GENESIS, .. }), "{error:?}");
}

#[test]
fn a_damaged_file_of_the_answered_position_is_refused() {
    let crashed = Crashed::with_rows(5);
    let file = crashed.file("log.db.acknowledged");
    flip(&file, 20);
    SqliteLog::open(crashed.options()).map(drop).unwrap();
    flip(&file, 20);
    flip(&file, 20);
    std::fs::write(&file, [0x55; 5000]).unwrap();
    let error = SqliteLog::open(crashed.options()).unwrap_err();
    assert!(matches!(error, OpenError::AcknowledgedUnreadable { .. }), "{error:?}");
    drop(SqliteLog::open(crashed.accepting()).unwrap());
    SqliteLog::open(crashed.options()).unwrap();
}

/// A copy that came without the side file is a log like any other.
#[test]
fn a_log_without_the_file_of_the_answered_position_is_opened() {
    let crashed = Crashed::with_rows(5);
    std::fs::remove_file(crashed.file("log.db.acknowledged")).unwrap();
    let mut log = SqliteLog::open(crashed.options()).unwrap();
    assert_eq!(Some(&log.head().unwrap()), crashed.answered.last());
}

/// A row whose blob was cut to another length by a stranger is damage, not a panic.
#[test]
fn a_row_of_the_wrong_shape_is_named_as_damage() {
    let crashed = Crashed::with_rows(5);
    let log = SqliteLog::open(crashed.options()).unwrap();
    let connection = rusqlite::Connection::open(crashed.file("log.db")).unwrap();
    connection.execute("UPDATE log SET nonce = x'00' WHERE seq = 3", []).unwrap();
    connection.execute("UPDATE log SET at = -1 WHERE seq = 4", []).unwrap();
    let mut reader = log.opener().reader().unwrap();
    assert!(reader.row(3).unwrap_err().is_damaged());
    assert!(reader.row(4).unwrap_err().is_damaged());
    assert_eq!(reader.row(2).unwrap().as_ref().map(Row::position), Some(crashed.answered[1]));
}

#[test]
fn a_row_that_sqlite_can_not_hold_is_refused_and_harms_nothing() {
    let crashed = Crashed::with_rows(5);
    let mut log = SqliteLog::open(crashed.options()).unwrap();
    let last = log.head().unwrap();
    let mut row = row_after(&last, 10);
    row.at = u64::MAX;
    log.append(&row).unwrap_err();
    append(&mut log, 1);
}
