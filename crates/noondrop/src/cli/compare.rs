//! `noondrop compare`: a shop's orders against the log, both ways.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::store::StoreArguments;
use crate::backup::compare::orders::read;
use crate::backup::compare::{Comparison, compare};
use crate::config::DEFAULT_SHOP;

/// Options of `compare`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// The file of paid orders.
    #[arg(
        long,
        value_name = "FILE",
        help = "Paid orders as CSV, with a header: payment_ref, and if you have them hold and reference"
    )]
    pub orders: PathBuf,
    /// The shop of the orders
    #[arg(long, default_value = DEFAULT_SHOP)]
    pub shop: String,
    /// Print what was found as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Compares and prints; fails where one side has what the other has not.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let file = File::open(&options.orders)
        .map_err(|error| format!("could not read {}: {error}", options.orders.display()))?;
    let orders = read(io::BufReader::new(file))?;
    let mut reader = options.store.reader()?;
    let found = compare(&mut *reader, &options.shop, &orders)?;
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&found)?)?;
    } else {
        print(&found, out)?;
    }
    if found.is_good() { Ok(()) } else { Err("the orders and the log differ".into()) }
}

fn print(found: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    if !found.paid_without_units.is_empty() {
        writeln!(out, "✗ paid without units ({})", found.paid_without_units.len())?;
    }
    for order in &found.paid_without_units {
        writeln!(out, "    line {}, payment {}: {}", order.line, order.payment_ref, order.why)?;
    }
    if !found.units_without_payment.is_empty() {
        writeln!(out, "✗ units without payment ({})", found.units_without_payment.len())?;
    }
    for hold in &found.units_without_payment {
        let payment = hold.payment_ref.as_deref().unwrap_or("(erased)");
        let reference = hold.reference.as_ref().map(|text| format!(", reference {text}"));
        writeln!(
            out,
            "    {}: {} of sale {}, confirmed {} with payment {payment}{}",
            hold.hold,
            hold.units,
            hold.sale,
            hold.confirmed_at,
            reference.unwrap_or_default()
        )?;
    }
    writeln!(out, "✓ {} of {} paid orders have their units", found.matched, found.orders)?;
    if found.unpaid > 0 {
        writeln!(out, "  {} lines without a payment were passed over", found.unpaid)?;
    }
    if found.gifts > 0 {
        writeln!(out, "  {} holds were confirmed as gifts, without a payment", found.gifts)?;
    }
    writeln!(out, "compared with the log up to {}", found.position)
}
