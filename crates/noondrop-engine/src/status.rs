//! How an engine is doing: everything that the metrics and the readiness page need, in one cheap
//! copy.

use noondrop_core::{Counters, Timestamp};
use noondrop_log::Position;

use crate::erasures::ErasureStatus;
use crate::follower::FollowerStatus;
use crate::queue::QueueDepth;
use crate::snapshots::SnapshotStatus;
use crate::tally::Tally;

/// What an engine can do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Decides and answers.
    Ready,
    /// The state is being read again from the log: its history changed, or memory is not trusted.
    Recovering {
        /// Why it is not there yet.
        why: String,
    },
    /// The store can not be written; reads go on. Commands wait for it as long as their callers do.
    Failing {
        /// Since when, on the scale of [`Clock::elapsed_ms`](crate::Clock::elapsed_ms).
        since_ms: u64,
        /// The newest failure.
        why: String,
    },
    /// Finishes what waits, takes nothing new.
    Stopping,
    /// Over.
    Stopped,
}

impl Phase {
    /// The stable name.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Recovering { .. } => "recovering",
            Self::Failing { .. } => "failing",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// One look at an engine.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it can do.
    pub phase: Phase,
    /// The durable position.
    pub position: Position,
    /// The time of the last row.
    pub last_at: Timestamp,
    /// Now, in log time.
    pub now: Timestamp,
    /// By how much something that is due is late, in milliseconds.
    pub expiry_lag_ms: u64,
    /// What waits.
    pub queue: QueueDepth,
    /// Sizes of the state.
    pub counters: Counters,
    /// Counts since the start.
    pub tally: Tally,
    /// The snapshots.
    pub snapshots: SnapshotStatus,
    /// Erased buyers whose texts leave the log.
    pub erasures: ErasureStatus,
    /// Those who follow the log.
    pub followers: Vec<FollowerStatus>,
    /// Since the engine started.
    pub uptime_ms: u64,
}
