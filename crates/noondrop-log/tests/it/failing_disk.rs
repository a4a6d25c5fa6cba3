//! A disk that fails now and then under the real SQLite: a child process whose system calls on one
//! file are made to fail by `strace`. Skipped where that is not installed or not allowed.

use std::path::Path;
use std::process::{Command, Stdio};

use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use noondrop_log::{AppendError, Log, Position, Row};

use crate::support::{SqliteSubject, append, options, positions, row_after};

const CHILD_DATABASE: &str = "NOONDROP_TEST_FAILING_DATABASE";
const ROWS: u64 = 150;

/// A file beside the database by its ending, a system call on it, and how it fails.
struct Fault {
    file: &'static str,
    call: &'static str,
    error: &'static str,
    /// The number of the first call that fails, and after how many each further one.
    when: &'static str,
}

const FAULTS: [Fault; 8] = [
    // A half-failed sync: the row is in the file, and nobody can say whether on the disk.
    Fault { file: "-wal", call: "fdatasync", error: "EIO", when: "4+7" },
    Fault { file: "-wal", call: "fdatasync", error: "ENOSPC", when: "5+11" },
    Fault { file: "-wal", call: "pwrite64", error: "EIO", when: "10+23" },
    Fault { file: "-wal", call: "pwrite64", error: "ENOSPC", when: "11+22" },
    Fault { file: "", call: "fdatasync", error: "EIO", when: "3+4" },
    Fault { file: "", call: "pwrite64", error: "ENOSPC", when: "8+30" },
    Fault { file: "-wal", call: "pread64", error: "EIO", when: "30+40" },
    Fault { file: ".acknowledged", call: "pwrite64", error: "EIO", when: "6+9" },
];

/// What the child has seen.
#[derive(Default)]
struct Child {
    answered: Vec<Position>,
    errors: u64,
    /// Rows that were there although their append had failed.
    found: u64,
}

impl Child {
    fn open(&mut self, path: &Path) -> SqliteLog {
        for _ in 0..20 {
            // Small steps, so that there are many checkpoints to fail.
            match SqliteLog::open(SqliteOptions { checkpoint_pages: 20, ..options(path) }) {
                Ok(log) => return log,
                Err(_) => self.errors += 1,
            }
        }
        panic!("the log could not be opened at all")
    }

    fn recover(&mut self, log: &mut SqliteLog) -> Position {
        for _ in 0..20 {
            match log.recover() {
                Ok(head) => return head,
                Err(_) => self.errors += 1,
            }
        }
        panic!("the log could not be recovered at all")
    }

    /// Appends the row, and finds out if that is needed. Whether it is durable in the end.
    fn append(&mut self, log: &mut SqliteLog, row: &Row) -> bool {
        let Err(error) = log.append(row) else { return true };
        self.errors += 1;
        let head = self.recover(log);
        if Some(&head) == self.answered.last() {
            return false;
        }
        assert_eq!(head, row.position(), "a head of neither kind");
        assert!(matches!(error, AppendError::Unknown(_)), "there, and called {error:?}");
        self.found += 1;
        true
    }

    fn run(&mut self, path: &Path) {
        let mut log = self.open(path);
        self.answered = vec![self.recover(&mut log)];
        // Its connection would keep SQLite's view of the write-ahead log alive over a recovery.
        let mut reader = log.opener().reader().unwrap();
        while (self.answered.len() as u64) < ROWS {
            let row = row_after(self.answered.last().unwrap(), 5_000);
            if self.append(&mut log, &row) {
                self.answered.push(row.position());
            }
            // It may fail too, but not lag behind what has been answered.
            match reader.head() {
                Ok(head) => assert_eq!(Some(&head), self.answered.last()),
                Err(_) => self.errors += 1,
            }
            if log.between_turns().is_err() {
                self.errors += 1;
                let head = self.recover(&mut log);
                assert_eq!(Some(&head), self.answered.last());
            }
        }
    }
}

/// Not a test: appends through all faults, and says what it has answered.
#[test]
fn child_appends_through_faults() {
    #[expect(clippy::disallowed_methods, reason = "how this test tells its child what to do")]
    let Ok(path) = std::env::var(CHILD_DATABASE) else { return };
    let mut child = Child::default();
    child.run(path.as_ref());
    println!("\nerrors {}\nfound {}", child.errors, child.found);
    for position in child.answered {
        println!("answered {position}");
    }
}

fn strace(fault: &Fault, file: &Path) -> Command {
    let mut command = Command::new("strace");
    let inject = format!("inject={}:error={}:when={}", fault.call, fault.error, fault.when);
    command.args(["-f", "-o", "/dev/null", "-P"]).arg(file).args(["-e", &inject]);
    command
}

fn can_inject() -> bool {
    let mut command = strace(&FAULTS[0], Path::new("/none"));
    command.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn run_child(fault: &Fault, database: &Path) -> String {
    let mut file = database.as_os_str().to_owned();
    file.push(fault.file);
    let output = strace(fault, file.as_ref())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "failing_disk::child_appends_through_faults", "--nocapture"])
        .env(CHILD_DATABASE, database)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{} {}: {text}{errors}", fault.file, fault.call);
    text
}

fn number(said: &str, name: &str) -> u64 {
    said.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

#[test]
fn nothing_answered_is_lost_on_a_failing_disk() {
    if !can_inject() {
        eprintln!("skipped: strace is not installed or not allowed");
        return;
    }
    for fault in &FAULTS {
        let subject = SqliteSubject::new();
        append(&mut SqliteLog::open(options(&subject.path())).unwrap(), 5);
        let said = run_child(fault, &subject.path());
        let name = format!("{} of log.db{}: {}", fault.call, fault.file, fault.error);
        assert!(number(&said, "errors ") > 2, "{name} hardly happened");
        if fault.file == "-wal" && fault.call == "fdatasync" {
            // The old connections do not show such a row: it was looked for with new ones.
            assert!(number(&said, "found ") > 2, "{name}: no half-synced row was found");
        }

        let log = SqliteLog::open(options(&subject.path())).unwrap();
        let stored = positions(&mut *log.opener().reader().unwrap());
        let stored: Vec<String> = stored[4..].iter().map(Position::to_string).collect();
        let answered: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix("answered ")).collect();
        assert_eq!(stored, answered, "{name}");
    }
}
