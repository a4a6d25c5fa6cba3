//! `noondrop bench engine`: the engine alone, on a durable `SQLite` log, one hot item, turns of a given size.
//!
//! Every command brings a key of its own, so each turn looks keys up, takes units, notes keys and ends with one durable
//! row. Commands are made before the clock runs; what is timed is what the sequencer does.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use noondrop_core::{Digester, Outcome};
use noondrop_engine::{
    Answered, Call, EngineOptions, Pending, Sequencer, SystemClock, SystemEntropy, Ticket,
};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use serde::Serialize;

use super::figures::{Durations, rounded};
use super::workload;
use crate::cli::Failure;
use crate::time::steady;

/// Holds made between two looks at the clock: bounds memory.
const ROUND: u64 = 200_000;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Commands in one turn.
    pub batch: usize,
    /// How many holds to make.
    pub holds: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `engine`
    pub bench: &'static str,
    /// Commands in one turn.
    pub batch: usize,
    /// Holds made.
    pub holds: u64,
    /// Holds a second, everything durable.
    pub ops_per_second: f64,
    /// Turns, median.
    pub turn_p50_us: f64,
    /// Turns, 99 of 100.
    pub turn_p99_us: f64,
    /// Turns, 999 of 1,000.
    pub turn_p999_us: f64,
    /// The longest turn.
    pub turn_max_us: f64,
    /// Bytes of log per hold.
    pub bytes_per_op: f64,
    /// Holds that were not made.
    pub errors: u64,
}

type Bare = Sequencer<SqliteLog, SystemClock, SystemEntropy>;

/// Makes the holds and measures.
pub fn run(store: &Path, plan: Plan, progress: &mut dyn FnMut(u64)) -> Result<Report, Failure> {
    let log = SqliteLog::open(SqliteOptions::new(store))?;
    let options = EngineOptions { turn_commands_max: plan.batch, ..EngineOptions::default() };
    let mut engine = Sequencer::recover(log, SystemClock, SystemEntropy::default(), options)?;
    let mut measured = Measured::default();
    let mut opening = pending(workload::opening(3_600));
    measured.turn(&mut engine, &mut opening);
    measured = Measured::default();
    let digester =
        engine.state().and_then(noondrop_core::State::digester).ok_or("the log has no start")?;
    let bytes_before = engine.tally().row_bytes;
    let mut made = 0;
    while made < plan.holds {
        let round = ROUND.min(plan.holds - made);
        let mut batches = batches(&digester, made, round, plan.batch);
        for batch in &mut batches {
            measured.turn(&mut engine, batch);
        }
        made += round;
        progress(made);
    }
    let bytes = engine.tally().row_bytes - bytes_before;
    Ok(measured.report(plan, made, bytes))
}

fn pending(commands: Vec<noondrop_core::Command>) -> VecDeque<Pending> {
    let calls = commands.into_iter().map(Call::from);
    calls.zip(0..).map(|(call, ticket)| Pending { ticket: Ticket(ticket), call }).collect()
}

fn batches(digester: &Digester, from: u64, count: u64, size: usize) -> Vec<VecDeque<Pending>> {
    let mut left: Vec<u64> = (from..from + count).collect();
    let mut batches = Vec::new();
    while !left.is_empty() {
        let rest = left.split_off(size.min(left.len()));
        let commands = left.iter().map(|&number| workload::hold(digester, number)).collect();
        batches.push(pending(commands));
        left = rest;
    }
    batches
}

#[derive(Default)]
struct Measured {
    turns: Durations,
    busy: Duration,
    errors: u64,
}

impl Measured {
    fn turn(&mut self, engine: &mut Bare, calls: &mut VecDeque<Pending>) {
        let mut answers: Vec<Answered> = Vec::with_capacity(calls.len());
        let started = steady();
        while !calls.is_empty() || engine.waiting() > 0 {
            engine.turn(calls, &mut answers);
            engine.between_turns();
        }
        let took = started.elapsed();
        self.busy += took;
        self.turns.push(took);
        let made = |answered: &&Answered| matches!(&answered.answer, Ok(reply) if matches!(reply.outcome, Outcome::Hold(_)) && !reply.replayed);
        self.errors += (answers.len() - answers.iter().filter(made).count()) as u64;
    }

    fn report(mut self, plan: Plan, holds: u64, bytes: u64) -> Report {
        Report {
            bench: "engine",
            batch: plan.batch,
            holds,
            ops_per_second: (holds as f64 / self.busy.as_secs_f64()).round(),
            turn_p50_us: self.turns.per_mille_us(500),
            turn_p99_us: self.turns.per_mille_us(990),
            turn_p999_us: self.turns.per_mille_us(999),
            turn_max_us: self.turns.per_mille_us(1_000),
            bytes_per_op: rounded(bytes as f64 / holds.max(1) as f64),
            errors: self.errors,
        }
    }
}
