//! `noondrop ledger`: the facts of a log, one line each, as an auditor reads them.

use std::io::Write;

use clap::Args;
use noondrop_core::HoldId;

use super::Failure;
use super::store::StoreArguments;
use crate::audit::explain::{Bounds, Question, explain};

/// Options of `ledger`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Only rows after this one
    #[arg(long, value_name = "ROW", default_value_t = 0)]
    pub after: u64,
    /// At most so many facts
    #[arg(long, value_name = "FACTS", default_value_t = 1_000)]
    pub limit: usize,
    /// Only facts about this hold
    #[arg(long, value_name = "HOLD")]
    pub hold: Option<HoldId>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Prints facts, oldest first. Names stand in earlier facts, so the rows before are read too.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut reader = options.store.reader()?;
    let question = options.hold.map_or(Question::All, Question::Hold);
    let bounds = Bounds { after: options.after, limit: options.limit };
    let story = explain(&mut *reader, &question, bounds)?;
    for fact in &story.facts {
        if options.json {
            writeln!(out, "{}", fact.to_json())?;
        } else {
            writeln!(out, "{}", fact.to_line())?;
        }
    }
    Ok(())
}
