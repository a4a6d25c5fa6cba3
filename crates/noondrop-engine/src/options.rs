//! What can be set about an engine. What decides outcomes is a fact in the log; here it is only
//! proposed.

use std::path::PathBuf;

use noondrop_core::{Command, Digest16, LogRestored, LossAccepted, Settings, limits};

/// Bounds and habits of one engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Commands that one turn decides.
    pub turn_commands_max: usize,
    /// Encoded bytes after which a turn takes no further command.
    pub turn_bytes_max: usize,
    /// Commands that may wait; beyond it a call is [`Fault::Overloaded`](crate::Fault::Overloaded)
    /// at once. Each of the two lanes has half of it for itself at most.
    pub queue_max: usize,
    /// How long the sequencer looks for work before it parks, in microseconds.
    pub spin_us: u32,
    /// How long a command without a deadline waits for a store that fails, in milliseconds.
    pub wait_ms_max: u64,
    /// How long [`Engine::stop`](crate::Engine::stop) works on what waits, in milliseconds.
    pub stop_ms_max: u64,
    /// Settings that can change outcomes; where the log has others, a fact at the start changes
    /// them.
    pub settings: Settings,
    /// Answered rows that the store found gone, and that an operator decided to go on without: told
    /// by a fact.
    pub accepted_loss: Option<LossAccepted>,
    /// The log was just made from a backup's copy: told by a fact, right after the copy's last row.
    pub restored: Option<LogRestored>,
    /// Buyers who were erased in rows that the restored log may not have: erased again by facts.
    pub erased: Vec<Digest16>,
    /// A snapshot is made once this many rows came since the last one.
    pub snapshot_every_rows: u64,
    /// A snapshot is made once it is this many seconds since the last one, if any row came.
    pub snapshot_every_seconds: u64,
    /// Snapshots that are kept.
    pub snapshots_keep: usize,
    /// Where rows are put that the log turns out to have lost; none: they are only counted and
    /// named.
    pub evidence_dir: Option<PathBuf>,
    /// For tests of the engine itself.
    #[doc(hidden)]
    pub probe: Probe,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            turn_commands_max: 4_096,
            turn_bytes_max: 1 << 20,
            queue_max: 65_536,
            spin_us: 75,
            wait_ms_max: 10_000,
            stop_ms_max: 5_000,
            settings: Settings::default(),
            accepted_loss: None,
            restored: None,
            erased: Vec::new(),
            snapshot_every_rows: 100_000,
            snapshot_every_seconds: 600,
            snapshots_keep: 2,
            evidence_dir: None,
            probe: Probe::default(),
        }
    }
}

impl EngineOptions {
    pub(crate) fn turn_commands(&self) -> usize {
        self.turn_commands_max.clamp(1, limits::TURN_HOLDS_MAX)
    }
}

/// Makes bugs happen that the rules do not have, to prove that the engine contains them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe {
    /// Called before a command is decided; may panic.
    pub before_decide: Option<fn(&Command)>,
    /// Called between a command's decision and its facts; may panic.
    pub before_apply: Option<fn(&Command)>,
    /// Whether the invariants count as violated once this command was applied.
    pub violates: Option<fn(&Command) -> bool>,
    /// A step of the turn that is done wrong, for the simulator to find.
    #[cfg(feature = "planted")]
    pub planted: Option<Planted>,
}

/// Steps of the turn that can be done wrong on purpose: one line each. Never in a release.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Callers are answered although the row could not be appended.
    AnswerBeforeAppend,
    /// An append of unknown end is taken for written.
    UnknownIsWritten,
    /// Who waits for a row of unknown end is told that it was surely not done.
    UnknownSaidNotDone,
    /// A turn that could not be made durable stays in memory.
    UndoSkipped,
    /// A log that took another branch is followed with the old state.
    HistoryIgnored,
    /// Log time follows the clock wherever it steps.
    ClockStepTaken,
    /// Behind the last row, log time stands still.
    ClockFrozen,
}

impl Probe {
    /// Whether a step is to be done wrong.
    #[cfg(feature = "planted")]
    pub(crate) fn plants(&self, step: Planted) -> bool {
        self.planted == Some(step)
    }

    /// Whether a step is to be done wrong: never.
    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "the same call as with planted bugs")]
    pub(crate) const fn plants(&self, _: Planted) -> bool {
        false
    }
}
