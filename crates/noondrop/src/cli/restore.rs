//! `noondrop restore`: a log made of a backup's copy, in a data directory that has none.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use noondrop_core::Digest16;
use noondrop_log::PositionRef;
use serde_json::json;

use super::{ConfigArguments, Failure};
use crate::audit::Progress;
use crate::backup::restore;
use crate::bench::figures::rounded;
use crate::config::{Flag, load};
use crate::time::steady;

/// Options of `restore`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Directory of the copy
    #[arg(long, value_name = "DIRECTORY")]
    pub from: PathBuf,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Data directory to restore to, instead of store.path; it must have no log
    #[arg(long, value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,
    /// A position that you kept, such as 48112.9f3c2ab1: the copy must have it
    #[arg(long, value_name = "POSITION")]
    pub expect: Option<PositionRef>,
    /// A file of the digests of buyers whom you erased, one a line: they are erased again
    #[arg(long, value_name = "FILE")]
    pub erasures: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn data(&self) -> Result<PathBuf, Failure> {
        let flag = self.data.as_ref().map(|data| Flag {
            flag: "--data",
            setting: "store.path",
            value: data.to_string_lossy().into_owned(),
        });
        let loaded = load::load(&self.config.sources(flag.into_iter().collect()))?;
        Ok(loaded.settings.store.path)
    }
}

/// Digests, one a line; empty lines and those that begin with `#` are passed over.
fn read_erasures(path: &Path) -> Result<Vec<Digest16>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("could not read {}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim).zip(1..);
    let named = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let read = named.map(|(line, number)| {
        let wrong = |error| format!("line {number} of {} is {error}", path.display()).into();
        line.parse().map_err(wrong)
    });
    read.collect()
}

/// Restores, and says from where the log goes on.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let data = options.data()?;
    let erased = options.erasures.as_deref().map_or(Ok(Vec::new()), read_erasures)?;
    let erasures = erased.len();
    let begun = steady();
    let looked_at = io::stderr().is_terminal();
    let restored = restore(&options.from, &data, options.expect, erased, &mut |progress| {
        if looked_at {
            show(progress);
        }
    })?;
    let seconds = rounded(begun.elapsed().as_secs_f64());
    let verdict = restored.verdict;
    if options.json {
        let result = json!({
            "rows": verdict.rows,
            "facts": verdict.facts,
            "from": verdict.head.to_string(),
            "to": restored.to.to_string(),
            "erasures": erasures,
            "log": restored.path.display().to_string(),
            "seconds": seconds,
        });
        writeln!(out, "{result}")?;
        return Ok(());
    }
    writeln!(out, "✓ {} rows, {} facts were replayed and are good", verdict.rows, verdict.facts)?;
    writeln!(out, "restored to {} in {seconds} s", restored.path.display())?;
    writeln!(out, "the log goes on from {} and stands at {}", verdict.head, restored.to)?;
    if erasures > 0 {
        writeln!(out, "{erasures} buyers are erased again; the first start clears the files")?;
    }
    writeln!(out, "what was answered after {} is lost: `noondrop compare` finds it", verdict.head)?;
    Ok(())
}

fn show(progress: Progress) {
    let Progress { rows, of } = progress;
    let end = if rows == of { "\r\x1b[K" } else { "\x1b[K" };
    eprint!("\r{rows} of {of} rows checked{end}");
}
