//! Disks without room: the log says no, loses nothing it has said yes to, and goes on once there
//! is room again.
//!
//! Three ways of running out, because SQLite tells them apart: a limit on the file size (a failed
//! write, anywhere), a full file system (needs the right to mount one) and a limit on pages.

use std::path::Path;
use std::process::{Command, Stdio};

use noondrop_log::sqlite::SqliteLog;
use noondrop_log::{AppendError, Log, Position};

use crate::support::{SqliteSubject, options, positions, row_after};

const CHILD_DATABASE: &str = "NOONDROP_TEST_LIMITED_DATABASE";

/// Appends until it fails. Returns what was answered and the error.
fn append_until_full(log: &mut dyn Log) -> (Vec<Position>, AppendError) {
    let mut answered = positions(&mut *log.opener().reader().unwrap());
    let mut last = log.head().unwrap();
    for _ in 0..5_000 {
        let row = row_after(&last, 20_000);
        if let Err(error) = log.append(&row) {
            return (answered, error);
        }
        last = row.position();
        answered.push(last);
        // A failed checkpoint is also for want of room, and also leaves the rows to recovery.
        if log.between_turns().is_err() {
            let error = log.append(&row_after(&last, 1)).unwrap_err();
            return (answered, error);
        }
    }
    panic!("the disk was never full")
}

/// The rows that are there: all that was answered, and at most the one that was left open.
fn assert_nothing_lost(log: &mut dyn Log, answered: &[Position]) {
    let stored = positions(&mut *log.opener().reader().unwrap());
    assert!(stored.starts_with(answered), "answered rows are lost");
    assert!(stored.len() <= answered.len() + 1, "rows came from nowhere");
}

/// Not a test: appends under a limit on file sizes that its parent has set, until it fails.
#[test]
fn child_appends_until_no_file_may_grow() {
    #[expect(clippy::disallowed_methods, reason = "how this test tells its child what to do")]
    let Ok(path) = std::env::var(CHILD_DATABASE) else { return };
    let mut log = SqliteLog::open(options(path.as_ref())).unwrap();
    let (answered, error) = append_until_full(&mut log);
    assert!(!matches!(error, AppendError::Conflict), "{error:?}");
    println!("\nanswered {}", answered.len());
    // Not even a recovery may pretend: if it succeeds, all answered rows are there.
    if log.recover().is_ok() {
        assert_nothing_lost(&mut log, &answered);
    }
}

fn run_limited(database: &Path, kilobytes: u32) -> usize {
    let script = format!("ulimit -f {kilobytes}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "disk_full::child_appends_until_no_file_may_grow", "--nocapture"])
        .env(CHILD_DATABASE, database)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let answered = text.lines().find_map(|line| line.strip_prefix("answered "));
    answered.unwrap().parse().unwrap()
}

#[test]
fn a_file_that_may_not_grow_loses_nothing_and_goes_on_without_the_limit() {
    for kilobytes in [600, 1_200, 2_001] {
        let subject = SqliteSubject::new();
        let answered = run_limited(&subject.path(), kilobytes);
        assert!(answered > 5, "only {answered} rows under a limit of {kilobytes} kB");
        let mut log = SqliteLog::open(options(&subject.path())).unwrap();
        let stored = positions(&mut *log.opener().reader().unwrap());
        assert!(stored.len() == answered || stored.len() == answered + 1);
        let row = row_after(&log.head().unwrap(), 20_000);
        log.append(&row).unwrap();
    }
}

/// A small file system in memory, gone when dropped. None if we may not mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=3m", "noondrop-test"]).arg(directory.path());
        let mounted = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_loses_nothing_and_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: no right to mount a file system");
        return;
    };
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let path = disk.0.path().join("log.db");
    let mut log = SqliteLog::open(options(&path)).unwrap();
    let mut reader = log.opener().reader().unwrap();
    let (answered, error) = append_until_full(&mut log);
    assert!(error.is_disk_full() || matches!(error, AppendError::NotWritten(_)), "{error:?}");
    // Reads go on, from what is durable, however the writer fares.
    assert!(positions(&mut *reader).starts_with(&answered));

    let recovered_while_full = log.recover();
    if let Err(error) = &recovered_while_full {
        assert!(error.is_disk_full(), "{error:?}");
    }
    std::fs::remove_file(&ballast).unwrap();
    log.recover().unwrap();
    assert_nothing_lost(&mut log, &answered);
    let row = row_after(&log.head().unwrap(), 20_000);
    log.append(&row).unwrap();
    assert_eq!(reader.head().unwrap(), row.position());
}
