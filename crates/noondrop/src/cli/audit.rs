//! `noondrop audit`: whether everything in a log holds.

use std::io::{IsTerminal, Write};

use clap::Args;
use noondrop_log::PositionRef;
use serde_json::json;

use super::Failure;
use super::store::StoreArguments;
use crate::audit::audit;
use crate::time::steady;

/// Options of `audit`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// A position that you kept, such as 48112.9f3c2ab1: the log must have it
    #[arg(long, value_name = "POSITION")]
    pub expect: Option<String>,
    /// Print the verdict as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Audits; fails if anything does not hold.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let expected = options.expect.as_deref().map(str::parse::<PositionRef>);
    let expected =
        expected.transpose().map_err(|_| "--expect takes a position such as 48112.9f3c2ab1")?;
    let mut reader = options.store.reader()?;
    let begun = steady();
    let terminal = std::io::stderr().is_terminal();
    let mut told = 0;
    let audited = audit(&mut *reader, expected, &mut |rows| {
        if rows - told >= 10_000 {
            told = rows;
            let end = if terminal { "\r" } else { "\n" };
            eprint!("{rows} rows{end}");
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    match audited {
        Ok((verdict, _)) if options.json => {
            let totals = verdict.totals;
            let value = json!({
                "audit_ok": true, "position": verdict.head.to_string(), "rows": verdict.rows,
                "facts": verdict.facts, "items": totals.items, "holds": totals.holds,
                "live_holds": totals.live_holds, "held": totals.held, "sold": totals.sold,
                "oversold": totals.oversold, "seconds": seconds,
            });
            writeln!(out, "{value}")?;
            Ok(())
        }
        Ok((verdict, _)) => {
            let totals = verdict.totals;
            writeln!(out, "✓ {} rows and {} facts, one chain", verdict.rows, verdict.facts)?;
            writeln!(out, "✓ every row leads to the state that its writer had")?;
            writeln!(
                out,
                "✓ conserved: {} items, {} holds ({} live), {} units held, {} sold, {} oversold",
                totals.items,
                totals.holds,
                totals.live_holds,
                totals.held,
                totals.sold,
                totals.oversold
            )?;
            writeln!(
                out,
                "position {} in {seconds:.1} s; keep it, and audit --expect it later",
                verdict.head
            )?;
            Ok(())
        }
        Err(error) => {
            if options.json {
                writeln!(out, "{}", json!({"audit_ok": false, "error": super::chain(&error)}))?;
            }
            Err(error.into())
        }
    }
}
