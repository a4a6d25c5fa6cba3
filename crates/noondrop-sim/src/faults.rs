//! What goes wrong in a world, how often, and the doing of it.

use std::collections::VecDeque;
use std::fmt;

use noondrop_core::Settings;
use noondrop_engine::{Pending, Sequencer, Ticket, build_snapshot};
use noondrop_log::memory::{AppendFault, FaultPlan, ReadFault, SharedMemory};
use noondrop_log::{Position, Row};

use crate::checker::Finding;
use crate::clock::{HostClock, SeededEntropy};
use crate::dice::Dice;
use crate::disk::CrashPoint;
use crate::plant::Plant;
use crate::process::{FailsAt, locked};
use crate::world::{World, event};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A kind of trouble.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text),* })
            }
        }
    };
}

faults! {
    /// An append fails before anything could be written.
    NotWritten = "append fails before",
    /// There is no room, once.
    DiskFullOnce = "append without room",
    /// The row is there; the log does not know.
    UnknownWritten = "append unknown, row there",
    /// The row is not there; the log does not know.
    UnknownNotWritten = "append unknown, row not there",
    /// The row comes to light later.
    HalfSync = "half-failed sync",
    /// The log says that it is durable, and it is not.
    LyingSync = "lying sync",
    /// The disk stays full for a while.
    DiskFull = "disk full for a while",
    /// A turn cannot begin.
    BeginFails = "begin fails",
    /// A turn begins on an old view.
    BeginStale = "begin stale",
    /// The store does not come back yet.
    RecoveryFails = "store recovery fails",
    /// A read beside the sequencer fails.
    ReadFails = "read fails",
    /// A process dies.
    Crash = "process dies",
    /// A process dies while it starts.
    CrashInStart = "dies in start",
    /// A machine loses power.
    PowerLoss = "power loss",
    /// Power was lost, and part of what was never synced is there.
    TornTail = "torn tail",
    /// The log goes back.
    GoesBack = "log goes back",
    /// The log goes back and takes another branch.
    Branches = "log branches",
    /// A start is refused, because answered rows are gone.
    StartRefused = "start refused",
    /// The clock jumps ahead.
    ClockForward = "clock steps forward",
    /// The clock jumps back.
    ClockBack = "clock steps back",
    /// An operator accepts a step of the clock.
    ClockAccepted = "clock step accepted",
    /// The clock is slow.
    SlowClock = "slow clock",
    /// A process stands still for a while.
    Pause = "process paused",
    /// A process is restarted in order, perhaps with other settings.
    Restart = "restart",
    /// A snapshot is made.
    Snapshot = "snapshot",
    /// A snapshot rots.
    SnapshotRots = "snapshot rots",
    /// Many hours go by at once.
    DaysPass = "days pass",
}

/// Snapshots that processes keep.
const SNAPSHOTS_KEPT: usize = 2;

/// What kind of world it is.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Hosts that share the log.
    pub processes: usize,
    /// Of a thousand steps, so many bring a fault.
    pub faults: u64,
    /// Of a thousand answers, so many are lost.
    pub lost_answers: u64,
    /// The log may go back.
    pub goes_back: bool,
    /// Syncs may lie.
    pub lies: bool,
    /// Steps may take days.
    pub horizon_of_days: bool,
    /// Host clocks may step.
    pub clock_steps: bool,
    /// A host clock is slow.
    pub slow_clock: bool,
    /// Room for few keys.
    pub keys_max: Option<u32>,
}

impl Profile {
    /// The profile of a seed.
    pub fn of(dice: &mut Dice) -> Self {
        let processes = if dice.chance(250) { 2 } else { 1 };
        Self {
            processes,
            faults: *dice.pick(&[0, 60, 150, 300]),
            lost_answers: *dice.pick(&[0, 50, 200]),
            goes_back: dice.chance(300),
            lies: processes == 1 && dice.chance(300),
            horizon_of_days: dice.chance(250),
            clock_steps: processes == 1 && dice.chance(400),
            slow_clock: processes == 1 && dice.chance(100),
            keys_max: dice.chance(80).then_some(60),
        }
    }

    /// The settings that its processes propose.
    pub fn settings(&self, dice: &mut Dice) -> Settings {
        Settings {
            success_key_hours: *dice.pick(&[1, 24, 72]),
            refusal_key_seconds: *dice.pick(&[60, 600]),
            keys_max: self.keys_max.unwrap_or(1_000_000),
        }
    }
}

impl World {
    /// Perhaps something goes wrong in this step.
    pub(crate) fn make_mischief(&mut self) -> Result<(), Finding> {
        self.disk_recovers();
        if !self.dice.chance(self.profile.faults) {
            return Ok(());
        }
        let process = self.dice.index(self.processes.len());
        match self.dice.below(100) {
            0..34 => self.fail_append(process),
            34..46 => self.fail_read(process),
            46..62 => self.plan_crash(process),
            62..67 => self.lose_power(process)?,
            67..75 if self.profile.goes_back => self.go_back()?,
            75..83 if self.profile.clock_steps => self.step_clock(process),
            83..87 => self.pause(process),
            87..91 => self.restart(process),
            91..98 => self.snapshot(process)?,
            98..100 => self.rot_snapshot(),
            _ => {}
        }
        Ok(())
    }

    /// What goes wrong with the next start.
    pub(crate) fn start_fault(&mut self) -> Option<FailsAt> {
        if !self.dice.chance(self.profile.faults) {
            return None;
        }
        self.happened(Fault::CrashInStart);
        Some(match self.dice.below(3) {
            0 => FailsAt::Read,
            1 => FailsAt::Crash(CrashPoint::WhileReading),
            _ => FailsAt::Crash(*self.dice.pick(&CrashPoint::ALL)),
        })
    }

    fn fail_append(&mut self, process: usize) {
        let kinds = [
            (Fault::NotWritten, AppendFault::NotWritten),
            (Fault::DiskFullOnce, AppendFault::DiskFull),
            (Fault::UnknownWritten, AppendFault::UnknownWritten),
            (Fault::UnknownNotWritten, AppendFault::UnknownNotWritten),
            (Fault::HalfSync, AppendFault::UnknownUntilRecovery),
            (Fault::LyingSync, AppendFault::LyingSync),
        ];
        let mut kind = kinds[self.dice.index(if self.profile.lies { 6 } else { 5 })];
        if self.dice.chance(60) {
            self.happened(Fault::DiskFull);
            event!(self, "the disk is full");
            self.disk.memory.set_full(true);
            return;
        }
        if self.options.plant == Some(Plant::AppendSwallowed) {
            kind.1 = AppendFault::Swallowed;
        }
        let Some(running) = &self.processes[process].running else { return };
        running.faults.next_append(kind.1);
        self.happened(kind.0);
        event!(self, "host {process}: next append: {}", kind.0);
    }

    fn disk_recovers(&mut self) {
        if self.dice.chance(200) {
            self.disk.memory.set_full(false);
        }
    }

    fn fail_read(&mut self, process: usize) {
        let Some(running) = &self.processes[process].running else { return };
        let fault = match self.dice.below(4) {
            0 => {
                running.faults.next_begin(ReadFault::Fails);
                Fault::BeginFails
            }
            1 if running.unnoticed.is_empty() => {
                running.faults.next_begin(ReadFault::Stale);
                Fault::BeginStale
            }
            2 => {
                running.faults.next_recovery(ReadFault::Fails);
                Fault::RecoveryFails
            }
            _ => {
                running.faults.next_read(ReadFault::Fails);
                Fault::ReadFails
            }
        };
        self.happened(fault);
        event!(self, "host {process}: next: {fault}");
    }

    fn plan_crash(&mut self, process: usize) {
        let Some(running) = &self.processes[process].running else { return };
        let point = *self.dice.pick(&CrashPoint::ALL);
        locked(&running.wires).crash = Some(point);
        event!(self, "host {process}: will die {point:?}");
    }

    /// The machine with the disk loses power. With one host, the process was on it.
    fn lose_power(&mut self, process: usize) -> Result<(), Finding> {
        let before = self.disk.memory.rows();
        let kept = if self.dice.chance(500) { self.dice.below(3) } else { 0 };
        let kept = usize::try_from(kept).expect("small");
        let lost = self.disk.memory.crash_keeping(kept);
        self.happened(Fault::PowerLoss);
        if lost > 0 && kept > 0 {
            self.happened(Fault::TornTail);
        }
        event!(self, "power loss: {lost} rows were never durable");
        if self.processes.len() == 1 {
            self.die(process);
        }
        let left = before.len() - lost;
        self.note_loss(&before[left..])
    }

    /// Rows are gone. Who stood on them must notice; if nobody is alive, the next start must.
    fn note_loss(&mut self, lost: &[Row]) -> Result<(), Finding> {
        let Some(first) = lost.first() else { return Ok(()) };
        let cut = first.seq - 1;
        self.lost.extend(lost.iter().map(Row::position));
        let mut somebody = false;
        for process in &mut self.processes {
            if let Some(running) = &mut process.running {
                let stands_at = running.sequencer.position().seq;
                if stands_at > cut {
                    // Of a branch that it has not noticed, it never saw anything.
                    let first_lost = running.unnoticed.iter().map(|row| row.seq).min();
                    let saw_to = first_lost.map_or(stands_at, |first| first - 1);
                    let under = lost.iter().filter(|row| row.seq <= saw_to);
                    running.unnoticed.extend(under.cloned());
                    // It is to look at the log as it is now, and not at an old view.
                    running.faults.follow(FaultPlan::default());
                    somebody = true;
                }
            }
        }
        let answered = self.checker.position().seq > cut;
        self.must_refuse |= answered && !somebody && self.processes.len() == 1;
        if answered {
            let forgotten = self.checker.rewind(&mut *self.reader)?;
            event!(self, "the log ends at row {cut}; {forgotten} answers are lost with it");
        }
        Ok(())
    }

    /// The log goes back under a process that stands on it, and perhaps takes another branch.
    fn go_back(&mut self) -> Result<(), Finding> {
        let head = self.disk.memory.head().seq;
        let stands_at = self.processes.iter().filter_map(|process| {
            process.running.as_ref().map(|running| running.sequencer.position().seq)
        });
        // Without a side slot only somebody who is alive can know.
        let newest = stands_at.max().unwrap_or(0);
        let known = if self.processes.len() == 1 { head } else { newest };
        if known < 16 || head < 16 {
            return Ok(());
        }
        let back = self.dice.between(1, 10).min(known - 12);
        let to = known.min(head) - back;
        let before = self.disk.memory.rows();
        let branch = if self.dice.chance(500) { self.branch_of(&before, to) } else { Vec::new() };
        let fault = if branch.is_empty() { Fault::GoesBack } else { Fault::Branches };
        self.happened(fault);
        event!(self, "{fault} to row {to}, {} rows follow", branch.len());
        let lost = self.disk.memory.branch(to, branch);
        self.note_loss(&lost)
    }

    /// Other rows after row `to`, as another process would have written them.
    fn branch_of(&mut self, rows: &[Row], to: u64) -> Vec<Row> {
        let digester = self.digester.clone().expect("the log has rows");
        let memory = SharedMemory::new();
        let kept = usize::try_from(to).expect("short");
        memory.branch(0, rows[..kept].to_vec());
        let clock = HostClock::new(self.time.clone());
        let entropy = SeededEntropy(self.dice.fork());
        let options = noondrop_engine::EngineOptions {
            settings: self.settings,
            ..noondrop_engine::EngineOptions::default()
        };
        let Ok(mut other) = Sequencer::recover(memory.log(), clock, entropy, options) else {
            return Vec::new();
        };
        for _ in 0..self.dice.between(1, 6) {
            let command = self.workload.next(&digester, self.time.wall_ms());
            // Somebody wants it there, and will ask here too.
            let intent = self.want(command);
            self.callers.doubt(intent);
            let call = self.callers.command(intent).clone().into();
            let mut calls = VecDeque::from([Pending { ticket: Ticket(0), call }]);
            other.turn(&mut calls, &mut Vec::new());
        }
        drop(other);
        memory.rows().split_off(kept)
    }

    fn step_clock(&mut self, process: usize) {
        let by = i64::from(*self.dice.pick(&[1_000, 5_000, 600_000, 7_200_000]));
        let forward = self.dice.chance(500);
        let clock = &self.processes[process].clock;
        clock.step(if forward { by } else { -by });
        let off = clock.off_ms();
        self.happened(if forward { Fault::ClockForward } else { Fault::ClockBack });
        event!(self, "host {process}: its clock is {off} ms off");
        let now = self.time.elapsed_ms();
        let source_ms = noondrop_engine::Clock::wall_ms(&self.processes[process].clock);
        let accepts = self.dice.chance(300);
        if let Some(running) = self.processes[process].running.as_mut().filter(|_| accepts) {
            running.sequencer.accept_clock_step();
            let went_on = running.anchor.source_ms + (now - running.anchor.elapsed_ms);
            running.anchor.source_ms = went_on.max(source_ms);
            running.anchor.elapsed_ms = now;
            running.anchor.first_row = None;
            self.happened(Fault::ClockAccepted);
        }
    }

    fn pause(&mut self, process: usize) {
        let until = self.time.elapsed_ms() + self.dice.between(100, 20_000);
        self.processes[process].paused_until = until;
        self.happened(Fault::Pause);
    }

    /// A process ends in order, and its next start may have other settings.
    fn restart(&mut self, process: usize) {
        let Some(running) = &mut self.processes[process].running else { return };
        let mut answers = Vec::new();
        running.sequencer.give_up(&mut answers);
        self.happened(Fault::Restart);
        event!(self, "host {process}: stops");
        self.die(process);
        if self.dice.chance(300) {
            self.settings = self.profile.settings(&mut self.dice);
        }
    }

    fn snapshot(&mut self, process: usize) -> Result<(), Finding> {
        let Some(running) = &self.processes[process].running else { return Ok(()) };
        let until = running.sequencer.position().seq;
        let stands = running.unnoticed.is_empty();
        let built = build_snapshot(&*running.opener, SNAPSHOTS_KEPT, until);
        let crashed = locked(&running.wires).crashed;
        self.happened(Fault::Snapshot);
        event!(self, "host {process}: snapshot at row {until}: {}", built.is_ok());
        if crashed {
            event!(self, "host {process}: died");
            self.happened(Fault::Crash);
            self.die(process);
        }
        match built {
            Ok(position) if stands => self.check_snapshot(position),
            _ => Ok(()),
        }
    }

    /// A snapshot that was stored can be loaded, and is the state of its row.
    fn check_snapshot(&mut self, position: Position) -> Result<(), Finding> {
        let snapshots = self.disk.memory.snapshots();
        let metas = snapshots.list().map_err(|error| error.to_string())?;
        let meta = metas.iter().find(|meta| meta.position == position);
        let newer = metas.iter().filter(|meta| {
            meta.position.seq > position.seq && self.lost.iter().all(|lost| *lost != meta.position)
        });
        if meta.is_none() && newer.count() >= SNAPSHOTS_KEPT {
            // Another process, further on, made enough of them.
            return Ok(());
        }
        let meta = meta.ok_or("a snapshot was made and is not there")?;
        let mut payload = snapshots.open(meta).map_err(|error| error.to_string())?;
        let loaded = noondrop_core::State::read_snapshot(&mut |into| {
            std::io::Read::read_exact(&mut payload, into).is_ok()
        });
        let mut state =
            loaded.map_err(|error| format!("the snapshot at {position} is unfit: {error}"))?;
        let row = self.reader.row(position.seq).map_err(|error| error.to_string())?;
        let row = row.filter(|row| row.position() == position);
        let row = row.ok_or_else(|| format!("the log does not have {position}"))?;
        if state.sum() != row.state_sum {
            return Err(format!("the snapshot at {position} is of another state"));
        }
        state.recount().map(|_| ()).map_err(|found| format!("the snapshot: {found:?}"))
    }

    fn rot_snapshot(&mut self) {
        let metas = self.disk.memory.snapshots().list().unwrap_or_default();
        if let Some(meta) = metas.first() {
            let at = self.dice.index(1 << 16);
            self.disk.memory.damage_snapshot(meta.position, at);
            self.happened(Fault::SnapshotRots);
            event!(self, "the snapshot at {} rots", meta.position);
        }
    }
}
