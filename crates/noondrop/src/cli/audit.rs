//! `noondrop audit`: is the log whole, does it lead to the state that it says, was anything sold twice?

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use noondrop_log::PositionRef;
use serde_json::{Value, json};

use super::Failure;
use super::store::{StoreArguments, address, block_on, read_token};
use crate::audit::remote::RemoteVerdict;
use crate::audit::{AuditError, Progress, Verdict, audit, remote};
use crate::bench::figures::rounded;
use crate::client::Desk;
use crate::time::steady;

/// Options of `audit`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// A position that you kept, such as 48112.9f3c2ab1: the log must have it
    #[arg(long, value_name = "POSITION")]
    pub expect: Option<PositionRef>,
    /// Ask a running server instead, such as 127.0.0.1:7878: its head and accounts, not its rows
    #[arg(long, value_name = "URL", requires = "token_file", conflicts_with = "data")]
    pub url: Option<String>,
    /// File with a secret of the role auditor or admin, for --url
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,
    /// Print the verdict as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Audits and prints the verdict; anything that is not as it must be is a failure.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    if let (Some(url), Some(token_file)) = (&options.url, &options.token_file) {
        return ask(options, url, &read_token(token_file)?, out);
    }
    let mut reader = options.store.reader()?;
    let begun = steady();
    let per_second = |rows: u64| (rows as f64 / begun.elapsed().as_secs_f64().max(1e-9)).round();
    let mut shown = Shown::new();
    let audited = audit(&mut *reader, options.expect, &mut |progress| {
        shown.show(progress, per_second(progress.rows));
    });
    match audited {
        Ok((verdict, _)) => {
            let seconds = rounded(begun.elapsed().as_secs_f64());
            let rate = per_second(verdict.rows);
            if options.json {
                writeln!(out, "{}", verdict_value(&verdict, seconds, rate))?;
            } else {
                write_verdict(&verdict, seconds, rate, out)?;
            }
            Ok(())
        }
        Err(error) => {
            if options.json {
                writeln!(out, "{}", error_value(&error))?;
            }
            Err(error.into())
        }
    }
}

/// Redraws one line of standard error, if somebody looks at it.
struct Shown {
    looked_at: bool,
}

impl Shown {
    fn new() -> Self {
        Self { looked_at: io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: Progress, per_second: f64) {
        if !self.looked_at {
            return;
        }
        let Progress { rows, of } = progress;
        let end = if rows == of { "\r\x1b[K" } else { "\x1b[K" };
        eprint!("\r{rows} of {of} rows, {per_second} rows/s{end}");
    }
}

fn verdict_value(verdict: &Verdict, seconds: f64, rows_per_second: f64) -> Value {
    let totals = verdict.totals;
    json!({
        "audit_ok": true,
        "position": verdict.head.to_string(),
        "digest": data_encoding::HEXLOWER.encode(&verdict.head.digest),
        "rows": verdict.rows,
        "facts": verdict.facts,
        "items": totals.items,
        "holds": totals.holds,
        "live_holds": totals.live_holds,
        "held": totals.held,
        "sold": totals.sold,
        "oversold": totals.oversold,
        "seconds": seconds,
        "rows_per_second": rows_per_second,
    })
}

fn error_value(error: &AuditError) -> Value {
    json!({
        "audit_ok": false,
        "row": error.row,
        "good": error.good.to_string(),
        "error": super::chain(error),
    })
}

fn write_verdict(
    verdict: &Verdict,
    seconds: f64,
    rows_per_second: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Verdict { head, rows, facts, totals } = verdict;
    writeln!(out, "✓ {rows} rows are one chain, and each was understood to the last byte")?;
    writeln!(out, "✓ {facts} facts lead, row by row, to the state that their writer had")?;
    writeln!(
        out,
        "✓ at every row, by two sets of books, all items balance ({}): {} units held, {} sold, {} oversold",
        totals.items, totals.held, totals.sold, totals.oversold
    )?;
    writeln!(
        out,
        "✓ counted again from {} holds, {} of them live",
        totals.holds, totals.live_holds
    )?;
    writeln!(out, "{seconds} s, {rows_per_second} rows/s")?;
    writeln!(out, "position {head}; keep it, and `audit --expect {head}` later")
}

fn ask(options: &Options, url: &str, token: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let mut desk = Desk::new(address(url)?, token);
    let verdict = block_on(remote::audit(&mut desk, options.expect))??;
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&verdict)?)?;
    } else {
        write_remote(&verdict, out)?;
    }
    if verdict.ok { Ok(()) } else { Err("the server's accounts are not as they must be".into()) }
}

fn write_remote(verdict: &RemoteVerdict, out: &mut dyn Write) -> io::Result<()> {
    for finding in &verdict.findings {
        writeln!(out, "✗ {finding}")?;
    }
    let RemoteVerdict { items, held, sold, oversold, .. } = verdict;
    if verdict.ok {
        writeln!(
            out,
            "✓ all items balance ({items}): {held} units held, {sold} sold, {oversold} oversold"
        )?;
    }
    writeln!(out, "the server stands at {} (digest {})", verdict.position, verdict.digest)?;
    writeln!(out, "its rows were not read: `noondrop audit --data` does, where its store is")
}
