//! The engine: one sequencer thread that turns waiting commands into durable rows of the log, and
//! answers them.
//!
//! The rules are `noondrop-core`'s, the rows are `noondrop-log`'s. Here is what lies between: time,
//! turns, recovery, what to do when a store fails, and how a thousand callers share one flush of
//! the disk. No rule about stock lives here.
//!
//! # Layout
//!
//! * [`Engine`], [`Handle`]: start, call, ask, stop · [`EngineOptions`] · [`Status`]
//! * [`Sequencer`]: the pure step, one turn after another; `decide` has a turn's commands and
//!   append, `settle` what happens after a failure, `draft` the row in the making, `replay` the way
//!   from rows to a state
//! * `queue`, `desk`, `oneshot`, `shared`: between the callers' threads and the sequencer's
//! * [`Follower`]: reading along · `snapshots`: recovery in the background · `erasures`: texts of
//!   erased persons leave the rows · `recent`: evidence of
//!   lost rows
//! * [`Clock`], [`Entropy`]: the one source of time and of chance
//!
//! # Invariants
//!
//! * Nobody is answered before the row that makes the answer true is durable (`decide::append`).
//! * Between turns the state in memory is the one at [`Sequencer::position`]; a query never sees
//!   another.
//! * Log time never goes back and never stands still (`clock`).
//!
//! # Example
//!
//! ```
//! use noondrop_engine::{Engine, EngineOptions};
//! use noondrop_log::memory::SharedMemory;
//!
//! let log = Box::new(SharedMemory::new().log());
//! let engine = Engine::start(log, EngineOptions::default())?;
//! let shops = engine.handle().query_blocking(|state, _now| state.shops().len())?;
//! assert_eq!(shops.value, 1);
//! engine.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/embedded.rs` sells something.

mod call;
mod clock;
mod decide;
mod desk;
mod draft;
mod engine;
mod erasures;
mod error;
mod follower;
mod handle;
mod oneshot;
mod options;
mod queue;
mod recent;
mod replay;
mod sequencer;
mod settle;
mod shared;
mod snapshots;
mod status;
mod tally;

pub use call::{Answer, Answered, Call, Fault, Pending, Reply, Ticket, WaitError};
pub use clock::{Clock, Entropy, SystemClock, SystemEntropy};
pub use desk::RuntimeTask;
pub use engine::Engine;
pub use erasures::ErasureStatus;
pub use error::{StartError, StopError};
pub use follower::{Followed, Follower, FollowerStatus};
pub use handle::Handle;
pub use options::EngineOptions;
#[doc(hidden)]
pub use options::{Planted, Probe};
pub use queue::QueueDepth;
pub use replay::ReplayError;
pub use sequencer::{Sequencer, TurnEnd};
pub use settle::{Trouble, TroubleCause};
pub use snapshots::{SnapshotFailed, SnapshotStatus, build as build_snapshot};
pub use status::{Phase, Status};
pub use tally::{Histogram, OutcomeCount, Tally};
