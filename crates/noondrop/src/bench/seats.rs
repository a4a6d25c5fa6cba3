//! `noondrop bench seats`: the best seats, so many together, until the hall is sold out; durable, in the engine.

use std::path::Path;

use noondrop_core::limits::HOLD_SEATS_MAX;
use noondrop_core::{Command, Digester, LineAsked, SeatsAsked};
use serde::Serialize;

use super::engine::{make, open};
use super::workload;
use crate::cli::Failure;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seats of the hall.
    pub seats: u32,
    /// Seats of one hold, next to each other.
    pub together: u32,
    /// Commands in one turn.
    pub batch: usize,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `seats`
    pub bench: &'static str,
    /// Seats of the hall.
    pub seats: u32,
    /// Seats of one hold.
    pub together: u32,
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
    /// The longest turn.
    pub turn_max_us: f64,
    /// Holds that were not made.
    pub errors: u64,
}

/// Sells the hall out and measures.
pub fn run(store: &Path, plan: Plan, progress: &mut dyn FnMut(u64)) -> Result<Report, Failure> {
    let most = u32::try_from(HOLD_SEATS_MAX)?.min(workload::ROW_SEATS);
    if !(1..=most).contains(&plan.together) {
        return Err(format!("--together: 1 to {most}").into());
    }
    let mut engine = open(store, plan.batch, workload::hall(3_600, plan.seats))?;
    // Each row sells to its end; what is left of it is less than a hold.
    let rows = plan.seats / workload::ROW_SEATS;
    let rest = plan.seats % workload::ROW_SEATS / plan.together;
    let holds = u64::from(rows * (workload::ROW_SEATS / plan.together) + rest);
    let asked = SeatsAsked { together: plan.together > 1, ..SeatsAsked::default() };
    let hold = |digester: &Digester, number: u64| -> Command {
        let line = LineAsked::units(workload::name(workload::ITEM), plan.together);
        let line = LineAsked { seats: Some(Box::new(asked.clone())), ..line };
        workload::hold_of(digester, number, line)
    };
    let mut measured = make(&mut engine, plan.batch, holds, &hold, progress)?;
    Ok(Report {
        bench: "seats",
        seats: plan.seats,
        together: plan.together,
        batch: plan.batch,
        holds,
        ops_per_second: (holds as f64 / measured.busy.as_secs_f64()).round(),
        turn_p50_us: measured.turns.per_mille_us(500),
        turn_p99_us: measured.turns.per_mille_us(990),
        turn_max_us: measured.turns.per_mille_us(1_000),
        errors: measured.errors,
    })
}
