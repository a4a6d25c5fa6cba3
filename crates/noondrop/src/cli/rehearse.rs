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
    /// Rehearse on a staging system at this address instead, for example 127.0.0.1:7878; refused if its shop is live
    #[arg(long, value_name = "ADDRESS")]
    pub target: Option<std::net::SocketAddr>,
    /// File with an admin's secret for the target
    #[arg(long, value_name = "FILE", requires = "target")]
    pub token_file: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("a number from 0 to 1".into()) }
}

/// Rehearses; fails if anything that was promised does not hold.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let plan = Plan {
        tickets: options.tickets,
        buyers: options.buyers,
        connections: options.connections.into(),
        duplicates: options.duplicates,
        abandon: options.abandon,
        hold_ttl_seconds: options.hold_ttl,
        kills: options.kill.unwrap_or(if options.target.is_some() { 0 } else { 2 }),
        seed: options.seed,
    };
    let report = match options.target {
        None => here(&plan, out)?,
        Some(_) if plan.kills > 0 => {
            return Err("--kill is for the rehearsal's own server, not for a target".into());
        }
        Some(target) => {
            let file = options.token_file.as_ref().ok_or("--target needs --token-file")?;
            let token = std::fs::read_to_string(file)?;
            run_target(&plan, target, token.trim(), out)?
        }
    };
    report.print(out)?;
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report)?)?;
    }
    if report.audit_ok { Ok(()) } else { Err("the rehearsal failed: see ✗ above".into()) }
}

fn here(plan: &Plan, out: &mut dyn Write) -> Result<Report, Failure> {
    let data = tempfile::Builder::new().prefix("noondrop-rehearsal-").tempdir()?;
    writeln!(
        out,
        "{} tickets, {} buyers, {} connections, {} kills; a throw-away server in {}",
        plan.tickets,
        plan.buyers,
        plan.connections,
        plan.kills,
        data.path().display()
    )?;
    rehearse(plan, data.path(), out)
}
