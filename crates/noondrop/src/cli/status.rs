//! `noondrop status`: how a running server is doing.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Failure;
use crate::client::{Connection, Request};

/// Options of `status`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where the server listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    pub server: SocketAddr,
    /// Print the answer as it is
    #[arg(long)]
    pub json: bool,
}

/// Asks, and prints; fails where the server is not ready.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = "/readyz?verbose";
    let request = Request { method: "GET", path, token: "", key: None, body: "" }.bytes();
    let answer = runtime.block_on(async {
        Connection::new(options.server, Duration::from_secs(5)).request(&request).await
    });
    let answer = answer.map_err(|error| format!("no answer from {}: {error}", options.server))?;
    let value: Value = serde_json::from_slice(&answer.body)?;
    if options.json {
        writeln!(out, "{value}")?;
    } else {
        let members = value.as_object().cloned().unwrap_or_default();
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "{name:<16} {text}")?;
        }
    }
    if answer.status == 200 { Ok(()) } else { Err("the server is not ready".into()) }
}
