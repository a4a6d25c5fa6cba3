//! `noondrop bench engine`: the engine alone, on a durable `SQLite` log, one hot item, turns of a given size.
//!
//! Every command brings a key of its own, so each turn looks keys up, takes units, notes keys and ends with one durable
//! row. Commands are made before the clock runs; what is timed is what the sequencer does.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use noondrop_core::{Command, Digester, Outcome};
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
    /// Pools that each line takes from: its own, and those that the item counts against.
    pub draws: u8,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `engine`
    pub bench: &'static str,
    /// Commands in one turn.
    pub batch: usize,
    /// Pools that each line took from.
    pub draws: u8,
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

pub(super) type Bare = Sequencer<SqliteLog, SystemClock, SystemEntropy>;

/// Makes the holds and measures.
pub fn run(store: &Path, plan: Plan, progress: &mut dyn FnMut(u64)) -> Result<Report, Failure> {
    let opening = workload::shared(3_600, plan.draws);
    let mut engine = open(store, plan.batch, opening)?;
    let bytes_before = engine.tally().row_bytes;
    let hold = &workload::hold;
    let measured = make(&mut engine, plan.batch, plan.holds, hold, progress)?;
    let bytes = engine.tally().row_bytes - bytes_before;
    Ok(measured.report(plan, plan.holds, bytes))
}

/// A new log with something on sale.
pub(super) fn open(store: &Path, batch: usize, opening: Vec<Command>) -> Result<Bare, Failure> {
    let log = SqliteLog::open(SqliteOptions::new(store))?;
    let options = EngineOptions { turn_commands_max: batch, ..EngineOptions::default() };
    let mut engine = Sequencer::recover(log, SystemClock, SystemEntropy::default(), options)?;
    Measured::default().turn(&mut engine, &mut pending(opening));
    Ok(engine)
}

/// Makes holds, in turns of a given size, and times the turns.
pub(super) fn make(
    engine: &mut Bare,
    batch: usize,
    holds: u64,
    hold: &dyn Fn(&Digester, u64) -> Command,
    progress: &mut dyn FnMut(u64),
) -> Result<Measured, Failure> {
    let digester =
        engine.state().and_then(noondrop_core::State::digester).ok_or("the log has no start")?;
    let mut measured = Measured::default();
    let mut made = 0;
    while made < holds {
        let round = ROUND.min(holds - made);
        let commands: Vec<Command> =
            (made..made + round).map(|number| hold(&digester, number)).collect();
        for batch in &mut batches(commands, batch) {
            measured.turn(engine, batch);
        }
        made += round;
        progress(made);
    }
    Ok(measured)
}

fn pending(commands: Vec<Command>) -> VecDeque<Pending> {
    let calls = commands.into_iter().map(Call::from);
    calls.zip(0..).map(|(call, ticket)| Pending { ticket: Ticket(ticket), call }).collect()
}

fn batches(commands: Vec<Command>, size: usize) -> Vec<VecDeque<Pending>> {
    let mut left = commands.into_iter().peekable();
    let mut batches = Vec::new();
    while left.peek().is_some() {
        batches.push(pending(left.by_ref().take(size).collect()));
    }
    batches
}

/// What turns took.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) turns: Durations,
    pub(super) busy: Duration,
    pub(super) errors: u64,
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
            draws: plan.draws,
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
