//! The audit finds what it must find: damage in the file, and lies that are chained as they should be.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::path::Path;

use noondrop::audit::{AuditError, Verdict, audit};
use noondrop::bench::workload;
use noondrop::cli::chain;
use noondrop::serve::LOG_FILE;
use noondrop_core::codec::{decode_row, encode_fact, encode_private};
use noondrop_core::{Entry, Fact};
use noondrop_engine::{Engine, EngineOptions};
use noondrop_log::memory::SharedMemory;
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use noondrop_log::{GENESIS, Log, LogOpener, Row, Unsealed};

use crate::program::noondrop;

/// A log with a sale and twenty holds in rows of their own.
fn sold(log: Box<dyn Log>) {
    let engine = Engine::start(log, EngineOptions::default()).unwrap();
    let handle = engine.handle();
    for command in workload::opening(3_600) {
        handle.execute_blocking(command.into()).unwrap();
    }
    let digester = handle.digester();
    for number in 0..20 {
        handle.execute_blocking(workload::hold(&digester, number).into()).unwrap();
    }
    engine.stop().unwrap();
}

fn rows() -> Vec<Row> {
    let memory = SharedMemory::new();
    sold(Box::new(memory.log()));
    let mut reader = memory.log().opener().reader().unwrap();
    reader.page(0, 10_000, 64 << 20).unwrap()
}

fn audited(rows: &[Row]) -> Result<Verdict, AuditError> {
    let mut log = SharedMemory::new().log();
    for row in rows {
        log.append(row).unwrap();
    }
    let mut reader = log.opener().reader().unwrap();
    audit(&mut *reader, None, &mut |_| {}).map(|(verdict, _)| verdict)
}

/// The log with one row changed, and the chain made good from there on: what a forger would do.
fn forged(rows: &[Row], seq: u64, change: impl Fn(&mut Row)) -> Vec<Row> {
    let mut previous = GENESIS.digest;
    rows.iter()
        .map(|row| {
            let mut row = row.clone();
            if row.seq == seq {
                change(&mut row);
            }
            let Row { seq, at, writer, attempt, nonce, level, state_sum, facts, private, .. } = row;
            let unsealed =
                Unsealed { seq, at, writer, attempt, nonce, level, state_sum, facts, private };
            let row = Row::seal(&previous, unsealed);
            previous = row.digest;
            row
        })
        .collect()
}

fn with_facts(row: &mut Row, change: impl Fn(&mut Vec<Entry>)) {
    let mut entries = decode_row(row.level, &row.facts, &row.private).unwrap();
    change(&mut entries);
    row.facts.clear();
    row.private.clear();
    for (index, entry) in (0..).zip(&entries) {
        encode_fact(&entry.fact, &mut row.facts);
        if let Some(private) = &entry.private {
            encode_private(index, private, &mut row.private);
        }
    }
}

/// What a forger does to a row.
type Lie<'a> = &'a dyn Fn(&mut Row);

/// The row of the tenth hold.
fn row_of_a_hold(rows: &[Row]) -> u64 {
    let has_hold = |row: &&Row| {
        let entries = decode_row(row.level, &row.facts, &row.private).unwrap();
        entries.iter().any(|entry| matches!(entry.fact, Fact::HoldCreated(_)))
    };
    rows.iter().filter(has_hold).nth(9).unwrap().seq
}

#[test]
fn a_good_log_passes_and_is_counted() {
    let rows = rows();
    let verdict = audited(&rows).unwrap();
    assert_eq!(verdict.rows, rows.len() as u64);
    assert_eq!(verdict.head, rows.last().unwrap().position());
    let totals = verdict.totals;
    assert_eq!((totals.holds, totals.held, totals.sold, totals.oversold), (20, 20, 0, 0));
    // The forger's tool alone changes nothing.
    assert_eq!(audited(&forged(&rows, 0, |_| ())).unwrap(), verdict);
}

#[test]
fn lies_that_are_chained_as_they_should_be_are_found() {
    let rows = rows();
    let seq = row_of_a_hold(&rows);
    let lies: [(&str, Lie<'_>); 5] = [
        ("a hold of more units", &|row| {
            with_facts(row, |entries| {
                if let Some(Fact::HoldCreated(hold)) = entries.last_mut().map(|last| &mut last.fact)
                {
                    hold.lines.0[0].quantity = 9;
                    hold.lines.0[0].draws.0[0].quantity = 9;
                }
            });
        }),
        ("units from nowhere", &|row| {
            with_facts(row, |entries| {
                if let Some(Fact::HoldCreated(hold)) = entries.last_mut().map(|last| &mut last.fact)
                {
                    hold.lines.0[0].draws.0[0].quantity = 0;
                }
            });
        }),
        ("a hold that never was", &|row| with_facts(row, |entries| drop(entries.pop()))),
        ("another state", &|row| row.state_sum[0] ^= 1),
        ("a fact that nobody knows", &|row| row.facts.push(0xff)),
    ];
    for (what, lie) in lies {
        let error = audited(&forged(&rows, seq, lie)).expect_err(what);
        assert_eq!((error.row, error.good.seq), (Some(seq), seq - 1), "{what}: {}", chain(&error));
    }
}

/// Every place of some bytes in a file: pages that were split keep what they had.
fn find_all(file: &[u8], wanted: &[u8]) -> Vec<usize> {
    let places = file.windows(wanted.len()).enumerate();
    places.filter(|(_, window)| *window == wanted).map(|(place, _)| place).collect()
}

fn stopped_store(data: &Path) {
    sold(Box::new(SqliteLog::open(SqliteOptions::new(data.join(LOG_FILE))).unwrap()));
    // A start moves every row into the main file.
    drop(SqliteLog::open(SqliteOptions::new(data.join(LOG_FILE))).unwrap());
}

#[test]
fn one_flipped_byte_in_a_fact_is_found_with_its_position() {
    let home = tempfile::tempdir().unwrap();
    stopped_store(home.path());
    let data = home.path().to_str().unwrap();
    let good = noondrop(["audit", "--data", data]);
    assert!(good.success, "{good:?}");

    let (seq, facts) = {
        let opener = noondrop_log::sqlite::SqliteOpener::at(
            home.path().join(LOG_FILE),
            std::sync::Arc::default(),
        );
        let rows = opener.unwrap().reader().unwrap().page(0, 10_000, 64 << 20).unwrap();
        let seq = row_of_a_hold(&rows);
        (seq, rows.into_iter().find(|row| row.seq == seq).unwrap().facts)
    };
    let copy = tempfile::tempdir().unwrap();
    let mut file = fs::read(home.path().join(LOG_FILE)).unwrap();
    let places = find_all(&file, &facts);
    assert!(!places.is_empty(), "the row is in the main file");
    for place in places {
        file[place + facts.len() / 2] ^= 1;
    }
    fs::write(copy.path().join(LOG_FILE), file).unwrap();

    let damaged = noondrop(["audit", "--json", "--data", copy.path().to_str().unwrap()]);
    assert!(!damaged.success, "{damaged:?}");
    let verdict: serde_json::Value = serde_json::from_str(&damaged.out).unwrap();
    assert_eq!((&verdict["audit_ok"], &verdict["row"]), (&false.into(), &seq.into()));
    assert!(damaged.err.contains(&format!("row {seq} ")), "{damaged:?}");
    assert!(noondrop(["audit", "--data", data]).success, "the original is as it was");
}

#[test]
fn a_log_is_audited_while_its_server_runs() {
    let home = tempfile::tempdir().unwrap();
    stopped_store(home.path());
    let mut server = crate::program::server(home.path());
    let ran = noondrop(["audit", "--data", home.path().to_str().unwrap()]);
    assert!(ran.success, "{ran:?}");
    server.stop().unwrap();
}

#[test]
fn where_there_is_no_log_the_audit_says_so() {
    let home = tempfile::tempdir().unwrap();
    let ran = noondrop(["audit", "--data", home.path().to_str().unwrap()]);
    assert!(!ran.success && ran.err.contains("no log"), "{ran:?}");
}
