//! Readers, strangers and recoveries that meet.

use noondrop_log::sqlite::SqliteLog;
use noondrop_log::{AppendError, Log, LogErrorKind};
use rusqlite::Connection;

use crate::support::{SqliteSubject, append, options, positions, row_after};

#[test]
fn recovery_goes_through_while_many_readers_read() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    append(&mut log, 200);
    let opener = log.opener();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut reader = opener.reader().unwrap();
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    assert!(positions(&mut *reader).len() >= 200);
                }
            });
        }
        for _ in 0..20 {
            log.recover().unwrap();
            append(&mut log, 3);
        }
        done.store(true, std::sync::atomic::Ordering::Release);
    });
    assert_eq!(log.head().unwrap().seq, 260);
}

/// A stranger's open transaction means that a complete checkpoint is not possible, so nothing can
/// be promised; when it ends, all is well again.
#[test]
fn recovery_fails_while_a_stranger_reads_and_succeeds_after() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    append(&mut log, 3);
    let stranger = Connection::open(subject.path()).unwrap();
    stranger.execute_batch("BEGIN; SELECT count(*) FROM log").unwrap();
    let last = append(&mut log, 3);
    log.recover().unwrap_err();
    assert_eq!(log.head().unwrap_err().kind(), LogErrorKind::NeedsRecovery);
    let error = log.append(&row_after(&last, 1)).unwrap_err();
    assert!(matches!(error, AppendError::NotWritten(_)), "{error:?}");
    stranger.execute_batch("COMMIT").unwrap();
    assert_eq!(log.recover().unwrap(), last);
    append(&mut log, 1);
}

/// The row of a stranger who held the lock is found at the next begin.
#[test]
fn a_lock_held_by_a_stranger_is_not_written_and_passes() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    let last = append(&mut log, 3);
    let stranger = Connection::open(subject.path()).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let row = row_after(&last, 10);
    let error = log.append(&row).unwrap_err();
    assert!(matches!(error, AppendError::NotWritten(_)), "{error:?}");
    stranger.execute_batch("ROLLBACK").unwrap();
    log.append(&row).unwrap();
}

/// Rows that were answered and vanish while the log is open must not be passed over by a recovery.
#[test]
fn recovery_refuses_when_answered_rows_are_gone() {
    let subject = SqliteSubject::new();
    let mut log = SqliteLog::open(options(&subject.path())).unwrap();
    append(&mut log, 5);
    let stranger = Connection::open(subject.path()).unwrap();
    stranger.execute("DELETE FROM log WHERE seq > 3", []).unwrap();
    drop(stranger);
    let error = log.recover().unwrap_err();
    assert_eq!(error.kind(), LogErrorKind::AcknowledgedLost);
}
