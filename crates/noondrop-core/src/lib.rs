//! The pure rules of Noondrop: who gets the last unit, and what follows from it.
//!
//! # Layout
//!
//! * [`ids`], [`units`], [`limits`]: names, numbers with a meaning, bounds
//! * [`command`] → [`State::decide`] → [`outcome`] / [`refusal`] + [`fact`]s → [`State::apply`]
//! * [`codec`]: facts to bytes and back, strictly · [`digester`]: from private texts to digests
//! * [`seats`]: the seats of an item, and the best that are free
//! * [`state`]: everything that the log says, in memory
//!
//! No IO, no clock, no chance, no async: time, ids and random bits are arguments. Deciding changes nothing; applying
//! decides nothing. So replaying a log gives the same state to the last bit, whatever the rules are by then.

#![no_std]

extern crate alloc;

pub mod codec;
pub mod command;
pub mod digester;
pub mod eraser;
pub mod fact;
pub mod ids;
pub mod limits;
pub mod outcome;
pub mod refusal;
pub mod seats;
pub mod state;
pub mod units;

mod chunked;
mod index;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;

pub use command::*;
pub use digester::{Digester, KeyScope};
pub use eraser::Eraser;
pub use fact::*;
pub use ids::*;
pub use outcome::*;
pub use refusal::*;
pub use state::{
    Catalog, Counters, Decision, ItemName, Level, Misfit, Moment, Offer, SaleName, Savepoint,
    SeatInfo, ShopName, SnapshotError, State, TimePlan, Totals, Violation, few, hold_id,
};
pub use units::*;
