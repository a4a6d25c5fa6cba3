//! What an erasure relies on: private blobs are overwritten, all or none, and nothing else of a row is.

use super::{
    Subject, Verdict, ensure, ensure_equal, fill, last_of, list_checks, next_row, read_all,
};
use crate::{GENESIS, Log, Position, Row, verify_chain};

list_checks!(
    overwritten_texts_are_gone_for_every_reader,
    overwriting_changes_nothing_else,
    overwriting_is_all_or_nothing,
    a_blob_of_another_length_is_refused,
    a_row_of_another_branch_is_refused,
    appending_goes_on_after_an_erasure,
    a_scrub_is_remembered,
);

const ERASED: &[u8] = b"\0\0\0\0\0\0\0";

fn erase(log: &mut dyn Log, rows: &[&Row]) -> Verdict {
    let rows: Vec<_> = rows.iter().map(|row| (row.position(), ERASED.to_vec())).collect();
    Ok(log.rewrite_private(&rows)?)
}

fn overwritten_texts_are_gone_for_every_reader(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 6)?;
    let mut early = log.opener().reader()?;
    ensure_equal("row 3 before", &early.row(3)?, &Some(rows[2].clone()))?;
    erase(&mut *log, &[&rows[0], &rows[2]])?;
    for reader in [&mut early, &mut log.opener().reader()?] {
        let found = read_all(&mut **reader)?;
        ensure_equal("row 1", &found[0].private.as_slice(), &ERASED)?;
        ensure_equal("row 3", &found[2].private.as_slice(), &ERASED)?;
    }
    ensure(log.scrub(last_of(&rows))?, "nobody reads, and still it could not scrub")?;
    drop(log);
    let row = subject.open().opener().reader()?.row(3)?;
    ensure_equal("row 3 later", &row.map(|row| row.private), &Some(ERASED.to_vec()))
}

fn overwriting_changes_nothing_else(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let mut rows = fill(&mut *log, 6)?;
    erase(&mut *log, &[&rows[1]])?;
    rows[1].private = ERASED.to_vec();
    let found = read_all(&mut *log.opener().reader()?)?;
    ensure_equal("rows", &found, &rows)?;
    ensure_equal("the chain", &verify_chain(&GENESIS, &found)?, &last_of(&rows))
}

fn ensure_refused(log: &mut dyn Log, rows: &[(Position, Vec<u8>)]) -> Verdict {
    ensure(log.rewrite_private(rows).is_err(), "what does not fit was not refused")
}

fn overwriting_is_all_or_nothing(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    let missing = Position { seq: 9, digest: [9; 32] };
    let erased = [(rows[0].position(), ERASED.to_vec()), (missing, ERASED.to_vec())];
    ensure_refused(&mut *log, &erased)?;
    log.recover()?;
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)
}

fn a_blob_of_another_length_is_refused(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    for length in [0, 6, 8] {
        ensure_refused(&mut *log, &[(rows[1].position(), vec![0; length])])?;
        log.recover()?;
    }
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)
}

fn a_row_of_another_branch_is_refused(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    let elsewhere = Position { seq: 2, digest: [0xee; 32] };
    ensure_refused(&mut *log, &[(elsewhere, ERASED.to_vec())])?;
    log.recover()?;
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)
}

fn appending_goes_on_after_an_erasure(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    let mut last = last_of(&rows);
    for row in &rows {
        erase(&mut *log, &[row])?;
        ensure_equal("head", &log.head()?, &last)?;
        let next = next_row(&last);
        log.append(&next)?;
        last = next.position();
    }
    drop(log);
    ensure_equal("head", &subject.open().head()?, &last)
}

fn a_scrub_is_remembered(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    ensure_equal("at first", &log.opener().scrubbed()?, &GENESIS)?;
    let rows = fill(&mut *log, 4)?;
    for row in [&rows[1], &rows[3]] {
        ensure(log.scrub(row.position())?, "nobody reads, and still it could not scrub")?;
        ensure_equal("noted", &log.opener().scrubbed()?, &row.position())?;
    }
    drop(log);
    ensure_equal("later", &subject.open().opener().scrubbed()?, &rows[3].position())
}
