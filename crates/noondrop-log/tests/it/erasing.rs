//! Overwritten texts in the bytes of a SQLite log: gone from the file and from its write-ahead log.

use std::fs;

use noondrop_log::conformance::Subject;
use noondrop_log::{GENESIS, Log, Position, Row, Unsealed};
use rusqlite::Connection;

use crate::support::SqliteSubject;

const HIS: &[u8] = b"ann-of-green-gables";
const ANOTHERS: &[u8] = b"bob-the-builder-too";

/// Rows of two persons by turns; every tenth so long that it fills pages of its own.
fn fill(log: &mut dyn Log, count: u64) -> Vec<Row> {
    let mut last = GENESIS;
    log.begin(GENESIS).unwrap();
    let rows = (1..=count).map(|seq| {
        let text = if seq % 2 == 0 { HIS } else { ANOTHERS };
        let private = text.repeat(if seq % 10 < 2 { 700 } else { 3 });
        let unsealed = Unsealed { seq, facts: vec![7; 90], private, ..Unsealed::default() };
        let row = Row::seal(&last.digest, unsealed);
        last = row.position();
        log.append(&row).unwrap();
        log.between_turns().unwrap();
        row
    });
    rows.collect()
}

fn his(rows: &[Row]) -> Vec<(Position, Vec<u8>)> {
    let his = rows.iter().filter(|row| row.private.starts_with(HIS));
    his.map(|row| (row.position(), vec![0; row.private.len()])).collect()
}

/// How often a text is in the files of a log.
fn count(subject: &SqliteSubject, text: &[u8]) -> usize {
    let files = ["", "-wal"].map(|tail| {
        let mut name = subject.path().into_os_string();
        name.push(tail);
        fs::read(name).unwrap_or_default()
    });
    files.iter().flat_map(|bytes| bytes.windows(text.len())).filter(|part| *part == text).count()
}

#[test]
fn nothing_of_an_overwritten_text_is_left_in_the_files() {
    for count_of_rows in [3, 12, 400] {
        let subject = SqliteSubject::new();
        let mut log = subject.open();
        let rows = fill(&mut *log, count_of_rows);
        assert!(count(&subject, HIS) > 0, "it is there before");
        let anothers = count(&subject, ANOTHERS);
        for some in his(&rows).chunks(64) {
            log.rewrite_private(some).unwrap();
            log.between_turns().unwrap();
        }
        assert!(log.scrub(rows[1].position()).unwrap());
        assert_eq!(count(&subject, HIS), 0, "of {count_of_rows} rows");
        assert!((1..=anothers).contains(&count(&subject, ANOTHERS)), "another's stays");
    }
}

/// The write-ahead log cannot be emptied while somebody reads from it; the turns do not wait for him.
#[test]
fn a_reader_puts_the_end_of_an_erasure_off_and_does_not_stop_the_log() {
    let subject = SqliteSubject::new();
    let mut log = subject.open();
    let rows = fill(&mut *log, 30);
    let reader = Connection::open(subject.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM log").unwrap();
    log.rewrite_private(&his(&rows)).unwrap();
    assert!(!log.scrub(rows[29].position()).unwrap(), "it is read");
    assert_eq!(log.opener().scrubbed().unwrap(), GENESIS, "nothing is noted");
    let next = Unsealed { seq: 31, ..Unsealed::default() };
    log.append(&Row::seal(&rows[29].digest, next)).unwrap();
    reader.execute_batch("COMMIT").unwrap();
    assert!(log.scrub(rows[29].position()).unwrap());
    assert_eq!(count(&subject, HIS), 0);
    assert_eq!(log.opener().scrubbed().unwrap(), rows[29].position());
}
