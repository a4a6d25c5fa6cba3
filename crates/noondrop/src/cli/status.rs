//! `noondrop status`: how a running server is doing.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{ConfigArguments, Failure};
use crate::client::{Connection, Request};
use crate::config::load;

/// Options of `status`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The configuration, for the address.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Where the server listens [default: the configuration's server.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub server: Option<SocketAddr>,
    /// Print the answer as it is
    #[arg(long)]
    pub json: bool,
}

/// Asks, and prints; fails where the server is not ready.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let server = match options.server {
        Some(server) => server,
        None => load::load(&options.config.sources(Vec::new()))?.settings.server.listen,
    };
    let path = "/readyz?verbose=1";
    let request = Request { method: "GET", path, token: "", key: None, body: "" }.bytes();
    let answer = super::store::block_on(async {
        Connection::new(server, Duration::from_secs(5)).request(&request).await
    })?;
    let answer = answer.map_err(|error| format!("no answer from {server}: {error}"))?;
    let value: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| format!("{server} does not answer as a Noondrop server does"))?;
    if options.json {
        writeln!(out, "{value}")?;
    } else {
        write_summary(server, &value, out)?;
    }
    if answer.status == 200 { Ok(()) } else { Err("the server is not ready".into()) }
}

fn write_summary(server: SocketAddr, value: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    let text = |name: &str| value[name].as_str().unwrap_or("?").to_owned();
    let number = |name: &str| value[name].as_u64().unwrap_or_default();
    let waiting = |lane: &str| value["queue"][lane].as_u64().unwrap_or_default();
    let why = value["why"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
    writeln!(out, "{server} is {}{why}", text("phase"))?;
    let lines = [
        ("position", format!("{} of {}", text("position"), text("last_at"))),
        ("up", format!("{} s, {} turns", number("uptime_ms") / 1_000, number("turns"))),
        ("waiting", format!("{} new holds, {} others", waiting("creating"), waiting("settling"))),
        ("holds", format!("{} live, {} ever", number("live_holds"), number("holds"))),
        ("keys", format!("{}, used again {} times", number("keys"), number("replays"))),
        ("memory", format!("{:.1} MB", number("memory_bytes") as f64 / 1e6)),
        ("late", format!("{} ms, of what is due", number("expiry_lag_ms"))),
    ];
    for (name, line) in lines {
        writeln!(out, "  {name:<10} {line}")?;
    }
    if number("violations") > 0 {
        writeln!(
            out,
            "  {} violations were contained: see the server's log",
            number("violations")
        )?;
    }
    Ok(())
}
