//! A process: the real sequencer on the world's disk, which can die at any moment and start again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use noondrop_core::{LossAccepted, Settings};
use noondrop_engine::{EngineOptions, Pending, Sequencer};
use noondrop_log::memory::{Faults, ReadFault};
use noondrop_log::{Log, LogOpener, Position, Row};

use crate::clock::{HostClock, SeededEntropy};
use crate::dice::Dice;
use crate::disk::{Disk, RefusedStart, SimLog, Wires};
use crate::plant::Plant;

/// One host with its process, if that is alive.
pub struct Process {
    /// Its clocks.
    pub clock: HostClock,
    /// What runs there.
    pub running: Option<Running>,
    /// Calls that reached it and were not heard yet.
    pub calls: VecDeque<Pending>,
    /// The loss that an operator accepts at the next start.
    pub accepted_loss: Option<LossAccepted>,
    /// It takes no turns before this time.
    pub paused_until: u64,
}

/// A process that is alive.
pub struct Running {
    /// The pure step.
    pub sequencer: Sequencer<SimLog, HostClock, SeededEntropy>,
    /// Makes it die.
    pub wires: Arc<Mutex<Wires>>,
    /// Makes its log fail.
    pub faults: Faults,
    /// Its way to the log beside the sequencer.
    pub opener: Arc<dyn LogOpener>,
    /// Changes of history that it has noticed.
    pub history_changes: u64,
    /// Rows after this one it has seen itself, since its start or its last reload.
    pub knows_after: u64,
    /// The rows that the log lost under it, as long as it has not noticed.
    pub unnoticed: Vec<Row>,
    /// Rows of its own that the checker knows of.
    pub rows_written: u64,
    /// What bounds the time of its turns.
    pub anchor: Anchor,
    /// Its store failed at the end of its last turn: the next row may be one that it had decided before.
    pub was_in_trouble: bool,
}

/// Where a process's log time started from.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// Its clock then.
    pub source_ms: u64,
    /// Elapsed time then.
    pub elapsed_ms: u64,
    /// The first row of its own: elapsed time and log time.
    pub first_row: Option<(u64, u64)>,
    /// Elapsed time at its last row.
    pub last_row_ms: u64,
    /// The latest row that it ever saw, in log time; also where the log lost that.
    pub newest_at: u64,
}

/// How a start went.
pub enum Started {
    /// It is alive.
    Alive,
    /// The store would not open: answered rows are gone.
    Refused(RefusedStart),
    /// It failed, for this reason.
    Failed(String),
}

/// What a process is started with.
pub struct Setup<'a> {
    /// The disk.
    pub disk: &'a Disk,
    /// What it proposes.
    pub settings: Settings,
    /// Where it keeps evidence.
    pub evidence_dir: Option<PathBuf>,
    /// Its bugs.
    pub plant: Option<Plant>,
    /// The n-th read fails; or it dies there.
    pub fails_at: Option<FailsAt>,
    /// The store's clock, where that counts.
    pub store_clock: Option<u64>,
}

/// What goes wrong during a start.
#[derive(Clone, Copy, Debug)]
pub enum FailsAt {
    /// A read fails.
    Read,
    /// The process dies while it reads.
    Crash(crate::disk::CrashPoint),
}

impl Process {
    /// A host on which nothing runs yet.
    #[must_use]
    pub fn new(clock: HostClock) -> Self {
        Self { clock, running: None, calls: VecDeque::new(), accepted_loss: None, paused_until: 0 }
    }

    /// Starts the process: the real recovery.
    pub fn start(&mut self, setup: Setup<'_>, dice: &mut Dice) -> Started {
        use noondrop_engine::Clock;
        let log = match setup.disk.open() {
            Ok(log) => log,
            Err(refused) => return Started::Refused(refused),
        };
        let (wires, faults, opener) = (log.wires(), log.faults(), log.opener());
        match setup.fails_at {
            Some(FailsAt::Read) => faults.next_read(ReadFault::Fails),
            Some(FailsAt::Crash(point)) => locked(&wires).crash = Some(point),
            None => {}
        }
        let mut options = EngineOptions {
            settings: setup.settings,
            accepted_loss: self.accepted_loss,
            evidence_dir: setup.evidence_dir,
            wait_ms_max: dice.between(500, 10_000),
            turn_commands_max: usize::try_from(dice.between(2, 20)).expect("small"),
            ..EngineOptions::default()
        };
        options.probe.planted = setup.plant.and_then(Plant::turn);
        let entropy = SeededEntropy(dice.fork());
        let anchor = Anchor {
            source_ms: setup.store_clock.unwrap_or_else(|| self.clock.wall_ms()),
            elapsed_ms: self.clock.elapsed_ms(),
            first_row: None,
            last_row_ms: self.clock.elapsed_ms(),
            newest_at: 0,
        };
        let recovered = Sequencer::recover(log, self.clock.clone(), entropy, options);
        let crashed = locked(&wires).crashed;
        match recovered {
            Ok(sequencer) if !crashed => {
                self.accepted_loss = None;
                let knows_after = sequencer.position().seq;
                let history_changes = sequencer.tally().history_changes;
                let unnoticed = Vec::new();
                let last_at = sequencer.state().map_or(0, |state| state.last_at().0);
                let anchor = Anchor { newest_at: last_at, ..anchor };
                self.running = Some(Running {
                    sequencer,
                    wires,
                    faults,
                    opener,
                    history_changes,
                    knows_after,
                    unnoticed,
                    rows_written: 0,
                    anchor,
                    was_in_trouble: false,
                });
                Started::Alive
            }
            Ok(_) => Started::Failed("it died".into()),
            Err(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
                Started::Failed(format!("{error}{cause}"))
            }
        }
    }

    /// Where it stands, if it is alive.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.running.as_ref().map(|running| running.sequencer.position())
    }

    /// Whether it has anything to do now.
    #[must_use]
    pub fn is_due(&self, now: u64, idle_turns: bool) -> bool {
        let deadline = || self.running.as_ref().and_then(|run| run.sequencer.next_deadline_ms());
        let waits = self.running.as_ref().is_some_and(|run| run.sequencer.waiting() > 0);
        now >= self.paused_until
            && (!self.calls.is_empty()
                || ((idle_turns || waits) && deadline().is_some_and(|at| at <= now)))
    }
}

/// A lock that only one thread ever takes.
pub fn locked(wires: &Mutex<Wires>) -> std::sync::MutexGuard<'_, Wires> {
    wires.lock().unwrap_or_else(PoisonError::into_inner)
}
