//! How long a turn's append takes, and how long the worst one: rows of one size without a pause,
//! with readers that follow.
//!
//! ```sh
//! cargo run --profile quick -p noondrop-log --example append_stall -- DIRECTORY [ROWS [FACTS_BYTES [READERS]]]
//! ```

#![expect(clippy::disallowed_methods, reason = "this example measures, on its own")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use noondrop_log::{Log, LogOpener, Row, Unsealed};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("the directory for the log is missing")?;
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<usize>());
    let (rows, facts_bytes, readers) = (number(10_000)?, number(70_000)?, number(1)?);

    let path = std::path::Path::new(&directory).join("append-stall.db");
    let mut log = SqliteLog::open(SqliteOptions::new(&path))?;
    let opener = log.opener();
    let done = AtomicBool::new(false);
    let [turns, appends, steps] = thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| follow(&*opener, &done));
        }
        let times = append(&mut log, rows, facts_bytes);
        done.store(true, Ordering::Release);
        times
    })?;
    let wal = std::fs::metadata(path.with_file_name("append-stall.db-wal"))?.len();
    println!("{rows} rows of {facts_bytes} bytes, {readers} readers, write-ahead log {wal} bytes");
    report("turn", turns);
    report("append", appends);
    report("between turns", steps);
    Ok(())
}

type Times = [Vec<Duration>; 3];

fn append(log: &mut SqliteLog, rows: usize, facts_bytes: usize) -> Result<Times, Box<dyn Error>> {
    let mut times = Times::default();
    let mut last = log.head()?;
    for _ in 0..rows {
        let facts = vec![last.digest[0]; facts_bytes];
        let row =
            Row::seal(&last.digest, Unsealed { seq: last.seq + 1, facts, ..Unsealed::default() });
        let begin = Instant::now();
        log.begin(last)?;
        let append = Instant::now();
        log.append(&row)?;
        let appended = append.elapsed();
        let step = Instant::now();
        log.between_turns()?;
        let stepped = step.elapsed();
        last = row.position();
        for (times, time) in times.iter_mut().zip([begin.elapsed(), appended, stepped]) {
            times.push(time);
        }
    }
    Ok(times)
}

/// Reads the tail again and again, as hungry followers do.
fn follow(opener: &dyn LogOpener, done: &AtomicBool) {
    let Ok(mut reader) = opener.reader() else { return };
    let mut seq = 0;
    while !done.load(Ordering::Acquire) {
        let Ok(page) = reader.page(seq, 100, 8 << 20) else { return };
        match page.last() {
            Some(row) => seq = row.seq,
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    let at =
        |permille: usize| times.get(times.len() * permille / 1000).copied().unwrap_or_default();
    let max = times.last().copied().unwrap_or_default();
    let (p50, p99, p999) = (at(500), at(990), at(999));
    println!(
        "{what:14} total {total:8.2?} p50 {p50:9.1?} p99 {p99:9.1?} p99.9 {p999:9.1?} max {max:9.1?}"
    );
}
