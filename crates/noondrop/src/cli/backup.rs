//! `noondrop backup`: a copy of the log, beside a running server; run again, it goes on where it was.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use noondrop_log::{PIECE_BYTES, Throttle};
use serde_json::json;

use super::Failure;
use super::store::StoreArguments;
use crate::backup::copy::Progress;
use crate::backup::place::{self, Present};
use crate::backup::{Copied, copy};
use crate::bench::figures::rounded;
use crate::time::steady;

/// Options of `backup`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Directory of the copy, best on another disk; made if it is not there, gone on with if it has a copy
    #[arg(long, value_name = "DIRECTORY")]
    pub to: PathBuf,
    /// Set a copy that is there aside, and begin another
    #[arg(long)]
    pub fresh: bool,
    /// Megabytes a second at most, so that the server's own writes are not held up
    #[arg(long, value_name = "MB", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub mb_per_second: u32,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Copies and prints how much.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let store = options.store.log()?;
    let mut reader = options.store.reader()?;
    let present = if options.fresh { Present::SetAside } else { Present::GoOn };
    let mut opened = place::open(&options.to, &store, present)?;
    if let Some(aside) = &opened.set_aside {
        eprintln!("the copy that was there is now in {}", aside.display());
    }
    let begun = steady();
    let looked_at = io::stderr().is_terminal();
    let copied = copy(&mut *reader, &mut opened.copy, &throttle(options), &mut |progress| {
        if looked_at {
            show(progress, begun.elapsed());
        }
    })?;
    let seconds = rounded(begun.elapsed().as_secs_f64());
    let Copied { rows, bytes, from, to } = copied;
    if options.json {
        let (from, to) = (from.to_string(), to.to_string());
        let result =
            json!({"rows": rows, "bytes": bytes, "from": from, "to": to, "seconds": seconds});
        writeln!(out, "{result}")?;
    } else {
        writeln!(out, "{rows} rows, {bytes} bytes in {seconds} s: from {from} to {to}")?;
        let place = options.to.display();
        writeln!(out, "`noondrop audit --data {place} --expect {to}` checks the copy")?;
    }
    Ok(())
}

/// Pauses that make up for the bytes; the work itself comes on top, so it is never faster.
fn throttle(options: &Options) -> Throttle {
    let bytes_per_second = u64::from(options.mb_per_second) * 1_000_000;
    let micros = PIECE_BYTES as u64 * 1_000_000 / bytes_per_second;
    Throttle::with_pause(Duration::from_micros(micros))
}

/// Redraws one line of standard error.
fn show(progress: Progress, elapsed: Duration) {
    let Progress { at, of, bytes } = progress;
    let mb_per_second = bytes as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    let end = if at == of { "\r\x1b[K" } else { "\x1b[K" };
    eprint!("\r{at} of {of} rows, {mb_per_second:.1} MB/s{end}");
}
