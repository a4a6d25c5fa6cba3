//! Prints a difference, and a sale as a server has it.

use std::io::{self, Write};

use serde_json::Value;

use super::plan::{Plan, counted};

/// The lines of a difference.
pub fn plan(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let width = plan.differences.iter().map(|one| one.of.len()).max().unwrap_or(0);
    for one in &plan.differences {
        writeln!(out, "  {} {:width$}  {}", one.kind.sign(), one.of, one.says)?;
    }
    for refusal in &plan.refusals {
        writeln!(out, "  ! {refusal}")?;
    }
    for note in &plan.notes {
        writeln!(out, "    note: {note}")?;
    }
    if plan.is_empty() {
        Ok(())
    } else {
        writeln!(out, "{}", counted(plan.differences.len() as u64, "difference"))
    }
}

/// A sale and its items.
pub fn sale(sale: &Value, items: &[Value], out: &mut dyn Write) -> io::Result<()> {
    let text = |name: &str| sale[name].as_str().map(str::to_owned);
    let (name, state) = (text("sale").unwrap_or_default(), text("state").unwrap_or_default());
    let live = if sale["live"] == true { "" } else { ", of a shop that is not live" };
    writeln!(out, "sale {name} is {state} (version {}{live})", sale["version"])?;
    let seconds = |name: &str| sale[name].as_u64().map(|seconds| format!("{seconds} s"));
    let lines = [
        ("title", text("title").filter(|title| !title.is_empty())),
        ("opens at", text("opens_at")),
        ("closes at", text("closes_at")),
        ("holds last", seconds("hold_seconds")),
        ("at most", seconds("hold_seconds_max")),
        ("returns to", sale["returns_to"]["label"].as_str().map(str::to_owned)),
    ];
    for (what, value) in lines {
        if let Some(value) = value {
            writeln!(out, "  {what:<10}  {value}")?;
        }
    }
    for limit in sale["limits"].as_array().into_iter().flatten() {
        let name = limit["name"].as_str().unwrap_or_default();
        let items = limit["items"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let items: Vec<&str> = items.collect();
        let of = if items.is_empty() { "all items".into() } else { items.join(", ") };
        writeln!(out, "  {:<10}  {name}: {} of {of}", "limit", limit["per_buyer"])?;
    }
    self::items(items, out)
}

fn items(items: &[Value], out: &mut dyn Write) -> io::Result<()> {
    const COUNTS: [&str; 6] = ["total", "available", "held", "sold", "blocked", "oversold"];
    let name = |item: &Value| item["item"].as_str().unwrap_or_default().to_owned();
    let width = items.iter().map(|item| name(item).len()).max().unwrap_or(0).max("item".len());
    if items.is_empty() {
        return writeln!(out, "\n  no items");
    }
    write!(out, "\n  {:width$}", "item")?;
    for count in COUNTS {
        write!(out, "  {count:>9}")?;
    }
    writeln!(out)?;
    for item in items {
        write!(out, "  {:width$}", name(item))?;
        for count in COUNTS {
            let is_view = item["view"] == true;
            let number = item[count].as_u64().filter(|_| !is_view);
            let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            write!(out, "  {number:>9}")?;
        }
        let against = item["counts_against"].as_array().into_iter().flatten();
        let against: Vec<&str> = against.filter_map(Value::as_str).collect();
        let mut more = Vec::new();
        if item["seated"] == true {
            more.push("seats".to_owned());
        }
        if !against.is_empty() {
            more.push(format!("counts against {}", against.join(", ")));
        }
        for block in item["blocks"].as_array().into_iter().flatten() {
            let label = block["label"].as_str().unwrap_or_default();
            more.push(format!("{} for {label}", block["quantity"]));
        }
        if more.is_empty() { writeln!(out)? } else { writeln!(out, "  {}", more.join("; "))? }
    }
    Ok(())
}
