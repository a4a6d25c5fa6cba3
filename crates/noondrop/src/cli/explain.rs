//! `noondrop explain`: the story of a hold or a buyer, in sentences for support people.

use std::io::Write;

use clap::Args;
use noondrop_core::codec::decode_row;
use noondrop_core::{Digest16, Entry, Fact, HoldNo, Timestamp};
use noondrop_log::LogReader;
use serde_json::Value;

use super::Failure;
use super::store::StoreArguments;
use crate::audit::audit;
use crate::http::render::time_text;
use crate::ledger::{Names, about_hold, fact_value};

/// Options of `explain`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// What to explain.
    #[command(flatten)]
    pub what: What,
    /// The shop
    #[arg(long, default_value = "main")]
    pub shop: String,
}

/// By what.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct What {
    /// A hold id
    #[arg(long, value_name = "ID")]
    pub hold: Option<String>,
    /// A buyer
    #[arg(long, value_name = "ID")]
    pub buyer: Option<String>,
    /// A cart or order number
    #[arg(long)]
    pub reference: Option<String>,
    /// A key, as the ledger shows it
    #[arg(long, value_name = "HEX")]
    pub key: Option<String>,
}

/// What facts are looked for by.
enum Wanted {
    Hold(HoldNo),
    Buyer(Digest16),
    Reference(Digest16),
    Key(String),
}

/// Audits the log, then tells what it says.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut reader = options.store.reader()?;
    let (_, mut state) = audit(&mut *reader, None, &mut |_| {})?;
    let digester = state.digester().ok_or("the log is empty")?;
    let what = &options.what;
    let wanted = if let Some(hold) = &what.hold {
        let id = hold.parse().map_err(|_| format!("{hold} is no hold id"))?;
        Wanted::Hold(state.hold_no(id).ok_or("this log has no such hold")?)
    } else if let Some(buyer) = &what.buyer {
        Wanted::Buyer(digester.buyer(&options.shop, buyer))
    } else if let Some(reference) = &what.reference {
        Wanted::Reference(digester.reference(&options.shop, reference))
    } else {
        Wanted::Key(what.key.clone().unwrap_or_default().to_lowercase())
    };
    let catalog = state.catalog();
    let mut holds = Vec::new();
    let mut told = 0u64;
    each_row(&mut *reader, &mut |at, entries| {
        for entry in entries {
            if is_about(entry, &wanted, &mut holds) {
                let value = fact_value(entry, Names(&catalog));
                writeln!(out, "{}  {}", time_text(Timestamp(at)), sentence(&value))?;
                told += 1;
            }
        }
        Ok(())
    })?;
    if told == 0 {
        writeln!(out, "The log says nothing about this.")?;
    }
    Ok(())
}

/// Is told a row's time and facts.
type Tell<'a> = &'a mut dyn FnMut(u64, &[Entry]) -> Result<(), Failure>;

fn each_row(reader: &mut dyn LogReader, tell: Tell<'_>) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let rows = reader.page(after, 1_024, 8 << 20)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.seq;
        for row in &rows {
            tell(row.at, &decode_row(row.level, &row.facts, &row.private)?)?;
        }
    }
}

/// Whether a fact belongs to the story; holds that do are remembered, and so is what happens to them.
fn is_about(entry: &Entry, wanted: &Wanted, holds: &mut Vec<HoldNo>) -> bool {
    let created = match (&entry.fact, wanted) {
        (Fact::HoldCreated(fact), Wanted::Hold(no)) => fact.hold == *no,
        (Fact::HoldCreated(fact), Wanted::Buyer(buyer)) => fact.buyer == *buyer,
        (Fact::HoldCreated(fact), Wanted::Reference(text)) => fact.reference == Some(*text),
        (Fact::HoldCreated(fact), Wanted::Key(key)) => is_key(fact.key, key),
        (Fact::HoldRefused(fact), Wanted::Buyer(buyer)) => return fact.buyer == *buyer,
        (Fact::HoldRefused(fact), Wanted::Reference(text)) => return fact.reference == Some(*text),
        (Fact::HoldRefused(fact), Wanted::Key(key)) => return is_key(fact.key, key),
        (Fact::KeyRepeated(fact), Wanted::Key(key)) => return fact.key.to_string() == *key,
        _ => false,
    };
    if created && let Fact::HoldCreated(fact) = &entry.fact {
        holds.push(fact.hold);
    }
    let one = std::slice::from_ref(entry);
    created || holds.iter().any(|&hold| !about_hold(one, hold).0.is_empty())
}

fn is_key(key: Option<noondrop_core::KeyUse>, text: &str) -> bool {
    key.is_some_and(|key| key.hash.to_string() == text)
}

/// A fact in words.
fn sentence(fact: &Value) -> String {
    let text = |name: &str| match &fact[name] {
        Value::String(text) => text.clone(),
        Value::Null => "?".into(),
        other => other.to_string(),
    };
    let lines = || {
        let lines = fact["lines"].as_array().cloned().unwrap_or_default();
        let parts = lines.iter().map(|line| {
            let item = line["item"]
                .as_str()
                .map_or_else(|| format!("line {}", line["line"]), str::to_owned);
            format!("{} × {item}", line["quantity"])
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let by = text("by");
    match fact["kind"].as_str().unwrap_or("") {
        "hold.created" => format!(
            "{by} took {} of {} for {} for {} s (hold #{}).",
            lines(),
            text("sale"),
            text("buyer_text"),
            text("ttl_seconds"),
            text("hold")
        ),
        "hold.refused" => {
            let refusal = &fact["refusal"];
            let why: Vec<String> = refusal["lines"]
                .as_array()
                .map(|lines| lines.iter().map(line_reason).collect())
                .unwrap_or_default();
            format!(
                "{by} asked for {} of {} for {} and was told {}. {}",
                lines(),
                text("sale"),
                text("buyer_text"),
                refusal["code"].as_str().unwrap_or("?"),
                why.join(" ")
            )
        }
        "hold.confirmed" => {
            format!(
                "{by} confirmed hold #{} with payment {}: sold.",
                text("hold"),
                text("payment_ref")
            )
        }
        "hold.confirmed_again" => {
            format!(
                "{by} confirmed hold #{} again with the same payment: nothing changed.",
                text("hold")
            )
        }
        "hold.extended" => {
            format!("{by} extended hold #{} to {}.", text("hold"), text("expires_at"))
        }
        "hold.released" if !fact["superseded_by"].is_null() => {
            format!("Hold #{} was replaced by hold #{}.", text("hold"), text("superseded_by"))
        }
        "hold.released" => format!("{by} gave {} of hold #{} back.", lines(), text("hold")),
        "holds.expired" => "Its time ran out; the units went back on sale.".into(),
        "hold.cancelled" => format!(
            "{by} cancelled {} of hold #{} to {}: {}.",
            lines(),
            text("hold"),
            text("to"),
            text("reason")
        ),
        "hold.act_refused" => format!(
            "{by} asked to {} hold #{} and was told {}.",
            text("operation"),
            text("hold"),
            fact["refusal"]["code"].as_str().unwrap_or("?")
        ),
        "key.repeated" => format!(
            "The same request came again; {} repeats so far were answered from the record.",
            text("count")
        ),
        other => format!("{other}: {fact}"),
    }
}

fn line_reason(line: &Value) -> String {
    format!(
        "Of {} there were {} free and {} in other baskets; at most {} could have come free.",
        line["item"].as_str().unwrap_or("?"),
        line["available"],
        line["held"],
        line["most"]
    )
}
