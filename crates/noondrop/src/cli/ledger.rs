//! `noondrop ledger`: the facts of a log, as an auditor reads them.

use std::io::Write;

use clap::Args;
use noondrop_core::codec::decode_row;
use noondrop_core::{Moment, Seq, State, Timestamp};
use serde_json::{Value, json};

use super::Failure;
use super::store::StoreArguments;
use crate::http::render::time_text;
use crate::ledger::{Names, fact_value};

/// Options of `ledger`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Only rows after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
    /// At most so many rows
    #[arg(long, default_value_t = 1_000)]
    pub limit: u64,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Prints facts, oldest first.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut reader = options.store.reader()?;
    let (mut at, mut printed) = (0, 0);
    // Names stand in earlier facts, so the rows before are read too.
    let mut state = State::new();
    loop {
        let rows = reader.page(at, 1_024, 8 << 20)?;
        let Some(last) = rows.last() else { return Ok(()) };
        at = last.seq;
        for row in &rows {
            let entries = decode_row(row.level, &row.facts, &row.private)?;
            state.open_turn(Moment { seq: Seq(row.seq), at: Timestamp(row.at), nonce: row.nonce });
            for entry in &entries {
                state.apply(entry)?;
            }
            state.commit_turn();
            if row.seq <= options.after {
                continue;
            }
            let catalog = state.catalog();
            for entry in &entries {
                let value = fact_value(entry, Names(&catalog));
                print(out, options.json, row.seq, row.at, value)?;
            }
            printed += 1;
            if printed >= options.limit {
                return Ok(());
            }
        }
    }
}

fn print(
    out: &mut dyn Write,
    as_json: bool,
    seq: u64,
    at: u64,
    mut fact: Value,
) -> std::io::Result<()> {
    let at = time_text(Timestamp(at));
    if as_json {
        return writeln!(out, "{}", json!({"seq": seq, "at": at, "fact": fact}));
    }
    let kind = fact["kind"].as_str().unwrap_or("?").to_owned();
    if let Value::Object(members) = &mut fact {
        members.remove("kind");
        members.retain(|_, value| !value.is_null());
    }
    writeln!(out, "{seq:>8}  {at}  {kind:<18} {fact}")
}
