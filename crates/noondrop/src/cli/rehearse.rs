//! `noondrop rehearse`: the dress rehearsal of a sale.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::rehearse::report::Report;
use crate::rehearse::{Plan, run as rehearse, run_target};

/// Options of `rehearse`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Tickets on sale
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub tickets: u32,
    /// Buyers who want one each
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub buyers: u32,
    /// Connections that they share
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    pub connections: u16,
    /// Share of buyers who double-click: the same key at once on two connections
    #[arg(long, default_value_t = 0.25, value_parser = share)]
    pub duplicates: f64,
    /// Share of buyers who take a ticket and never pay
    #[arg(long, default_value_t = 0.1, value_parser = share)]
    pub abandon: f64,
    /// How long a hold lives, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub hold_ttl: u32,
    /// How often the server is killed with -9 during the rush [default: 2; 0 with --target]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub kill: Option<u32>,
    /// Makes the same crowd again
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the figures as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Rehearse on a staging system instead, such as staging:7878; refused if its shop is live
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub target: Option<String>,
    /// File with an admin's secret for the target
    #[arg(long, value_name = "FILE", requires = "target")]
    pub token_file: Option<PathBuf>,
    /// The shop of that admin
    #[arg(long, requires = "target", default_value = crate::config::DEFAULT_SHOP)]
    pub shop: String,
    /// Directory for the throw-away store, kept afterwards [default: a temporary one, kept if the rehearsal fails]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "target")]
    pub data: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("a number from 0 to 1".into()) }
}

/// Rehearses; fails if anything that was promised does not hold.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let kills = options.kill.unwrap_or(if options.target.is_some() { 0 } else { 2 });
    let plan = Plan {
        tickets: options.tickets,
        buyers: options.buyers,
        connections: options.connections.into(),
        duplicates: options.duplicates,
        abandon: options.abandon,
        hold_ttl_seconds: options.hold_ttl,
        kills,
        seed: options.seed,
        audit_each_kill: false,
    };
    let report = match (&options.target, &options.token_file) {
        (Some(_), _) if kills > 0 => {
            return Err("--kill is for the rehearsal's own server, never for a target".into());
        }
        (Some(url), Some(file)) => {
            let address = super::store::address(url)?;
            let token = super::store::read_token(file)?;
            run_target(&plan, address, &token, &options.shop)?
        }
        (Some(_), None) => return Err("--target needs --token-file".into()),
        (None, _) => here(options, &plan, out)?,
    };
    report.print(out)?;
    if let Some(file) = &options.json {
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        std::fs::write(file, text)?;
    }
    if report.is_good() { Ok(()) } else { Err("the rehearsal failed: see ✗ above".into()) }
}

/// With a server of its own. A store that something went wrong with is kept.
fn here(options: &Options, plan: &Plan, out: &mut dyn Write) -> Result<Report, Failure> {
    let program = std::env::current_exe()?;
    writeln!(
        out,
        "{} tickets, {} buyers on {} connections, {} kills, seed {}",
        plan.tickets, plan.buyers, plan.connections, plan.kills, plan.seed
    )?;
    if let Some(data) = &options.data {
        std::fs::create_dir_all(data)?;
        return rehearse(plan, &program, &data.canonicalize()?);
    }
    let data = tempfile::Builder::new().prefix("noondrop-rehearsal-").tempdir()?;
    let report = rehearse(plan, &program, data.path());
    if !report.as_ref().is_ok_and(Report::is_good) {
        writeln!(out, "the store is kept in {}", data.keep().display())?;
    }
    report
}
