//! The real thing: a process that appends and is killed with -9, again and again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use noondrop_log::sqlite::SqliteLog;
use noondrop_log::{Log, Position, PositionRef};

use crate::support::{SqliteSubject, options, positions, row_after};

const CHILD_DATABASE: &str = "NOONDROP_TEST_CRASH_DATABASE";

/// Not a test: what the child does when it is started with the variable set.
#[test]
fn child_appends_until_it_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "how this test tells its child what to do")]
    let Ok(path) = std::env::var(CHILD_DATABASE) else { return };
    let mut log = SqliteLog::open(options(path.as_ref())).unwrap();
    let mut last = log.head().unwrap();
    loop {
        let facts_bytes = usize::try_from(last.seq % 7).unwrap() * 3_000;
        let row = row_after(&last, facts_bytes);
        log.append(&row).unwrap();
        last = row.position();
        println!("\nanswered {last}");
        log.between_turns().unwrap();
    }
}

fn start(database: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_appends_until_it_is_killed", "--nocapture"])
        .env(CHILD_DATABASE, database)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets the child answer `count` rows, kills it, and returns all it has said that it answered.
fn run_and_kill(database: &Path, count: usize) -> Vec<PositionRef> {
    let mut child = start(database);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answered = |line: String| line.strip_prefix("answered ")?.parse().ok();
    let mut said: Vec<PositionRef> = lines.by_ref().filter_map(answered).take(count).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What was still in the pipe had been answered too.
    said.extend(lines.filter_map(answered));
    assert!(said.len() >= count, "the child ended early");
    said
}

fn missing(said: &[PositionRef], stored: &[Position]) -> Vec<PositionRef> {
    let is_stored = |position: &PositionRef| {
        let index = usize::try_from(position.seq).unwrap() - 1;
        stored.get(index).is_some_and(|stored| position.matches(stored))
    };
    said.iter().filter(|position| !is_stored(position)).copied().collect()
}

#[test]
fn nothing_answered_is_lost_when_the_process_is_killed() {
    let subject = SqliteSubject::new();
    let mut said = Vec::new();
    for round in 0..8 {
        said.extend(run_and_kill(&subject.path(), 20 + 37 * round));
        let log = SqliteLog::open(options(&subject.path())).unwrap();
        let stored = positions(&mut *log.opener().reader().unwrap());
        assert_eq!(missing(&said, &stored), []);
    }
    // The control: with one row less the comparison must fail.
    let log = SqliteLog::open(options(&subject.path())).unwrap();
    let mut stored = positions(&mut *log.opener().reader().unwrap());
    stored.truncate(usize::try_from(said.last().unwrap().seq).unwrap() - 1);
    assert!(!missing(&said, &stored).is_empty());
}
