//! `noondrop bench recovery`: how long a start takes with many live holds, and what they take in memory.
//!
//! The store is made first and a snapshot of it; then a fresh process opens it, so that memory is that of a start.

use std::path::Path;

use noondrop_engine::{Engine, EngineOptions};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use serde::{Deserialize, Serialize};

use super::engine;
use super::figures::rounded;
use crate::cli::Failure;
use crate::time::steady;

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// `recovery`
    pub bench: String,
    /// Live holds.
    pub holds: u64,
    /// From opening the store to being ready.
    pub ready_ms: f64,
    /// Memory of the process then.
    pub rss_bytes: u64,
    /// What one hold with its key takes of it.
    pub bytes_per_hold: f64,
    /// Holds that the start did not find.
    pub errors: u64,
}

/// Makes the store, then measures a start in a process of its own.
pub fn run(store: &Path, holds: u64, progress: &mut dyn FnMut(u64)) -> Result<Report, Failure> {
    engine::run(store, engine::Plan { batch: 1_000, holds, draws: 1 }, progress)?;
    let log = SqliteLog::open(SqliteOptions::new(store))?;
    let running = Engine::start(Box::new(log), EngineOptions::default())?;
    running.handle().snapshot_now_blocking()?;
    running.stop()?;
    let program = std::env::current_exe()?;
    let output = std::process::Command::new(program)
        .args(["bench-start", "--store"])
        .arg(store)
        .args(["--holds", &holds.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The measured start.
pub fn start(store: &Path, holds: u64) -> Result<Report, Failure> {
    let before = resident_bytes()?;
    let begun = steady();
    let log = SqliteLog::open(SqliteOptions::new(store))?;
    let running = Engine::start(Box::new(log), EngineOptions::default())?;
    let ready_ms = begun.elapsed().as_secs_f64() * 1_000.0;
    let found = running.handle().query_blocking(|state, _| state.counters())?.value;
    let rss_bytes = resident_bytes()?;
    running.stop()?;
    Ok(Report {
        bench: "recovery".into(),
        holds,
        ready_ms: rounded(ready_ms),
        rss_bytes,
        bytes_per_hold: rounded(rss_bytes.saturating_sub(before) as f64 / holds.max(1) as f64),
        errors: found.live_holds.abs_diff(holds),
    })
}

/// Resident memory of this process.
fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib =
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok());
    Ok(kib.ok_or("the system does not tell")? * 1_024)
}
