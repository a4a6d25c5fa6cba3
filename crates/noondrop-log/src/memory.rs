//! The log in memory, on a "disk" that fails on command. For simulation and for tests.
//!
//! A [`SharedMemory`] is the disk, or the database server: it outlives the logs that are opened on
//! it, so a crash can be played by dropping a log and opening another. Any number of logs may
//! share it, as replicas do. Nothing here is random and nothing reads a clock: who fails, and
//! when, is decided by the caller, so a run can be repeated.
//!
//! - `disk`: the rows, which of them a crash would take, and histories that change.
//! - `fault`: what can be made to fail, and the plan of when.
//! - `log`: the store itself.
//! - `snapshots`: snapshots in the same format as in files.

mod disk;
mod fault;
mod log;
mod snapshots;

pub use disk::SharedMemory;
pub use fault::{AppendFault, FaultPlan, Faults, ReadFault};
pub use log::MemoryLog;
