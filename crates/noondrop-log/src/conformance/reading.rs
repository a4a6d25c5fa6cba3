//! What readers rely on: bounded pages, rows as they were written, and durable rows only.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{
    Subject, Verdict, ensure, ensure_equal, fill, last_of, list_checks, next_row, next_row_with,
    read_all,
};
use crate::{GENESIS, LogOpener, Position, Row, verify_chain};

list_checks!(
    a_page_has_at_most_the_rows_asked_for,
    a_page_has_about_the_bytes_asked_for,
    a_page_has_at_least_one_row,
    a_page_beyond_the_end_is_empty,
    a_row_is_found_by_its_number,
    rows_come_back_byte_for_byte,
    large_rows_come_back_byte_for_byte,
    readers_read_beside_the_writer,
);

fn numbers(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.seq).collect()
}

fn a_page_has_at_most_the_rows_asked_for(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    fill(&mut *log, 10)?;
    let mut reader = log.opener().reader()?;
    ensure_equal("4 after 0", &numbers(&reader.page(0, 4, usize::MAX)?), &vec![1, 2, 3, 4])?;
    ensure_equal("4 after 8", &numbers(&reader.page(8, 4, usize::MAX)?), &vec![9, 10])?;
    ensure_equal("1 after 5", &numbers(&reader.page(5, 1, usize::MAX)?), &vec![6])
}

fn a_page_has_about_the_bytes_asked_for(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let mut last = GENESIS;
    for _ in 0..10 {
        let row = next_row_with(&last, vec![1; 6_000], vec![2; 4_000]);
        log.append(&row)?;
        last = row.position();
    }
    let mut reader = log.opener().reader()?;
    // A row is counted with its two blobs and a little for the rest.
    ensure_equal("35 kB", &numbers(&reader.page(0, 100, 35_000)?), &vec![1, 2, 3])?;
    ensure_equal("29 kB", &numbers(&reader.page(3, 100, 29_000)?), &vec![4, 5])
}

fn a_page_has_at_least_one_row(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    fill(&mut *log, 3)?;
    let mut reader = log.opener().reader()?;
    ensure_equal("no bytes", &numbers(&reader.page(1, 10, 0)?), &vec![2])?;
    ensure_equal("no rows", &numbers(&reader.page(1, 0, 1000)?), &vec![2])
}

fn a_page_beyond_the_end_is_empty(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let mut reader = log.opener().reader()?;
    ensure_equal("page of an empty log", &reader.page(0, 10, 1000)?, &Vec::new())?;
    fill(&mut *log, 3)?;
    for after in [3, 4, u64::MAX] {
        ensure_equal("page beyond the end", &reader.page(after, 10, 1000)?, &Vec::new())?;
    }
    Ok(())
}

fn a_row_is_found_by_its_number(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    let mut reader = log.opener().reader()?;
    for row in &rows {
        ensure_equal("row", &reader.row(row.seq)?, &Some(row.clone()))?;
    }
    for seq in [0, 4, u64::MAX] {
        ensure_equal("row that is not there", &reader.row(seq)?, &None)?;
    }
    Ok(())
}

fn round_trip(subject: &dyn Subject, blobs: &[(Vec<u8>, Vec<u8>)]) -> Verdict {
    let mut log = subject.open();
    let mut written: Vec<Row> = Vec::new();
    for (facts, private) in blobs {
        let row = next_row_with(&last_of(&written), facts.clone(), private.clone());
        log.append(&row)?;
        log.between_turns()?;
        written.push(row);
    }
    // Compared with ==, and not printed: these rows may be large.
    ensure(read_all(&mut *log.opener().reader()?)? == written, "rows changed in the log")?;
    drop(log);
    let log = subject.open();
    ensure(read_all(&mut *log.opener().reader()?)? == written, "rows changed on reopening")
}

fn rows_come_back_byte_for_byte(subject: &dyn Subject) -> Verdict {
    let every_byte: Vec<u8> = (0..=255).collect();
    let blobs = [
        (Vec::new(), Vec::new()),
        (Vec::new(), b"private".to_vec()),
        (b"facts".to_vec(), Vec::new()),
        (vec![0], vec![0]),
        (every_byte.clone(), every_byte),
        (b"'; DROP TABLE log; --\0\xff".to_vec(), "\u{1f39f}".into()),
    ];
    round_trip(subject, &blobs)
}

fn large_rows_come_back_byte_for_byte(subject: &dyn Subject) -> Verdict {
    let large = |seed: u32| -> Vec<u8> {
        let words = (0..4_u32 << 20).map(|i| i.wrapping_mul(2_654_435_761) ^ seed);
        words.flat_map(u32::to_le_bytes).collect()
    };
    round_trip(subject, &[(large(1), Vec::new()), (b"small".to_vec(), large(2))])
}

/// A reader follows while rows are appended: what it sees is always one unbroken chain, never
/// goes back, and in the end is everything.
fn readers_read_beside_the_writer(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let opener = log.opener();
    let done = AtomicBool::new(false);
    let (written, followed) = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&*opener, &done).map_err(|error| error.to_string()));
        let written = append_many(&mut *log, 300);
        done.store(true, Ordering::Release);
        (written, follower.join())
    });
    let followed = followed.map_err(|_| "the follower panicked")??;
    ensure_equal("end of the follower", &followed, &written?)
}

fn append_many(log: &mut dyn crate::Log, count: u64) -> Result<Position, Box<dyn Error>> {
    let mut last = GENESIS;
    for _ in 0..count {
        let row = next_row(&last);
        log.append(&row)?;
        log.between_turns()?;
        last = row.position();
    }
    Ok(last)
}

fn follow(opener: &dyn LogOpener, done: &AtomicBool) -> Result<Position, Box<dyn Error>> {
    let mut reader = opener.reader()?;
    let mut last = GENESIS;
    loop {
        // Asked before reading, so that the last read comes after the last append.
        let finished = done.load(Ordering::Acquire);
        let page = reader.page(last.seq, 7, usize::MAX)?;
        last = verify_chain(&last, &page)?;
        if finished && page.is_empty() {
            return Ok(last);
        }
    }
}
