//! `noondrop bench`: how fast this machine is with it. Each figure counts only if the audit after it passes.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use noondrop_log::LogOpener;
use noondrop_log::sqlite::SqliteOpener;
use serde::Serialize;
use serde_json::Value;

use super::Failure;
use crate::bench;
use crate::serve::LOG_FILE;

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// What to measure.
    #[command(subcommand)]
    pub what: What,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub json: bool,
    /// Directory in which a throw-away store is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub dir: Option<PathBuf>,
}

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// The engine alone on a durable log, in turns of a given size. Works on a throw-away store.
    Engine {
        /// Commands in one turn
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
        batch: u32,
        /// Holds to make
        #[arg(long, default_value_t = 1_000_000)]
        holds: u64,
        /// Pools that each line takes from: its own, and those that the item counts against
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
        draws: u8,
    },
    /// The best seats, so many together, until the hall is sold out. Works on a throw-away store.
    Seats {
        /// Seats of the hall
        #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
        seats: u32,
        /// Seats of one hold, next to each other
        #[arg(long, default_value_t = 2)]
        together: u32,
        /// Commands in one turn
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
        batch: u32,
    },
    /// Holds over HTTP beside a route that only parses and answers. Works on a throw-away server.
    Http {
        /// Connections
        #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_096))]
        connections: u32,
        /// Seconds for each of the two
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// Storms of duplicates of one key. Works on a throw-away server.
    Storm {
        /// Requests in one storm
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=1_000))]
        duplicates: u32,
        /// Storms
        #[arg(long, default_value_t = 200)]
        storms: u32,
    },
    /// A start with many live holds: snapshot and tail. Works on a throw-away store.
    Recovery {
        /// Holds
        #[arg(long, default_value_t = 1_000_000)]
        holds: u64,
    },
}

/// Measures, audits, prints.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("noondrop-bench-");
    let data = match &options.dir {
        Some(dir) => builder.tempdir_in(dir)?,
        None => builder.tempdir()?,
    };
    let path = data.path();
    let store = path.join(LOG_FILE);
    match options.what {
        What::Engine { batch, holds, draws } => {
            let plan = bench::engine::Plan { batch: usize::try_from(batch)?, holds, draws };
            let report = bench::engine::run(&store, plan, &mut |made| progress(made))?;
            finish(&report, path, options.json, out)
        }
        What::Seats { seats, together, batch } => {
            let plan = bench::seats::Plan { seats, together, batch: usize::try_from(batch)? };
            let report = bench::seats::run(&store, plan, &mut |made| progress(made))?;
            finish(&report, path, options.json, out)
        }
        What::Http { connections, seconds } => {
            let report = bench::http::run(path, usize::try_from(connections)?, seconds)?;
            finish(&report, path, options.json, out)
        }
        What::Storm { duplicates, storms } => {
            let report = bench::storm::run(path, usize::try_from(duplicates)?, storms)?;
            finish(&report, path, options.json, out)
        }
        What::Recovery { holds } => {
            let report = bench::recovery::run(&store, holds, &mut |made| progress(made))?;
            finish(&report, path, options.json, out)
        }
    }
}

fn progress(made: u64) {
    eprint!("\r{made} holds ");
}

fn finish<T: Serialize>(
    report: &T,
    data: &Path,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let opener = SqliteOpener::at(data.join(LOG_FILE), std::sync::Arc::default())?;
    let audited = crate::audit::audit(&mut *opener.reader()?, None, &mut |_| {});
    let mut value = serde_json::to_value(report)?;
    value["audit_ok"] = Value::Bool(audited.is_ok());
    if as_json {
        writeln!(out, "{value}")?;
    } else {
        eprintln!();
        for (name, value) in value.as_object().cloned().unwrap_or_default() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "{name:<18} {text}")?;
        }
    }
    audited.map(drop).map_err(Failure::from)
}
