//! What several tests share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use noondrop_log::conformance::{Failure, Subject};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use noondrop_log::{GENESIS, Log, LogReader, Position, Row, SnapshotMeta, Throttle, Unsealed};
use rusqlite::{Connection, params};

/// A SQLite log in a directory of its own.
pub struct SqliteSubject {
    directory: tempfile::TempDir,
}

impl SqliteSubject {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("log.db")
    }
}

impl Subject for SqliteSubject {
    fn open(&self) -> Box<dyn Log> {
        Box::new(SqliteLog::open(options(&self.path())).unwrap())
    }

    fn branch(&self, seq: u64, rows: &[Row]) {
        let mut connection = Connection::open(self.path()).unwrap();
        let transaction = connection.transaction().unwrap();
        transaction.execute("DELETE FROM log WHERE seq > ?1", [sql(seq)]).unwrap();
        for row in rows {
            insert(&transaction, row);
        }
        transaction.commit().unwrap();
    }

    fn damage_snapshot(&self, meta: &SnapshotMeta, at: usize) {
        let digest = blake3::Hash::from_bytes(meta.position.digest).to_hex();
        let name = format!("log.db.snapshots/{}-{}.snap", meta.position.seq, &digest[..8]);
        flip(&self.directory.path().join(name), at);
    }
}

fn insert(connection: &Connection, row: &Row) {
    let sql_text = "INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let values = params![
        sql(row.seq),
        sql(row.at),
        row.writer,
        row.attempt,
        row.nonce,
        row.level,
        row.state_sum,
        row.digest,
        row.facts,
        row.private
    ];
    connection.execute(sql_text, values).unwrap();
}

fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}

/// Options that do not hold snapshots back.
pub fn options(path: &Path) -> SqliteOptions {
    let throttle = std::sync::Arc::new(Throttle::with_pause(Duration::ZERO));
    SqliteOptions { throttle, ..SqliteOptions::new(path) }
}

/// Flips a bit of byte `at` of a file, counted round and round.
pub fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// The next row after `previous`, with facts of this size.
pub fn row_after(previous: &Position, facts_bytes: usize) -> Row {
    let seq = previous.seq + 1;
    let facts = (0..facts_bytes).map(|i| (i as u64 ^ seq).to_le_bytes()[0]).collect();
    let unsealed = Unsealed { seq, at: 1_000 + seq, facts, ..Unsealed::default() };
    Row::seal(&previous.digest, unsealed)
}

/// Appends `count` rows to the log and returns the last position.
pub fn append(log: &mut dyn Log, count: u64) -> Position {
    let mut last = log.head().unwrap();
    for _ in 0..count {
        let row = row_after(&last, 100);
        log.append(&row).unwrap();
        last = row.position();
    }
    last
}

/// The position of every row, in order, checked to be one chain.
pub fn positions(reader: &mut dyn LogReader) -> Vec<Position> {
    let mut last = GENESIS;
    let mut positions = Vec::new();
    loop {
        let page = reader.page(last.seq, 1000, usize::MAX).unwrap();
        if page.is_empty() {
            return positions;
        }
        last = noondrop_log::verify_chain(&last, &page).unwrap();
        positions.extend(page.iter().map(Row::position));
    }
}

pub fn assert_none(failures: &[Failure]) {
    assert!(failures.is_empty(), "{failures:#?}");
}
