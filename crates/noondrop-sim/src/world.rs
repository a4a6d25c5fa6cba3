//! A world: hosts, a disk, callers and their luck, all from one seed; step by step, each step checked.

use std::collections::BTreeMap;
use std::fmt;

use noondrop_core::{Digester, LossAccepted, Settings};
use noondrop_engine::{Answered, Reply};
use noondrop_log::{Log, LogReader, Position};

use crate::callers::{Callers, Manners};
use crate::checker::{Checker, Finding};
use crate::clock::{HostClock, VirtualTime};
use crate::dice::Dice;
use crate::disk::Disk;
use crate::faults::{Fault, Profile};
use crate::plant::Plant;
use crate::process::{Process, Setup, Started, locked};
use crate::trace::Trace;
use crate::workload::Workload;

/// Turns that a process takes in one step at most, while calls wait.
const TURNS_MAX: usize = 8;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Everything follows from it.
    pub seed: u64,
    /// Steps before the faults stop.
    pub steps: u64,
    /// A bug to run with.
    pub plant: Option<Plant>,
    /// Print each event.
    pub aloud: bool,
}

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// Hash of all that happened: the same for the same options.
    pub trace: [u8; 32],
    /// Steps, those after the faults stopped included.
    pub steps: u64,
    /// Rows in the log at the end.
    pub rows: u64,
    /// Answers that were judged.
    pub judged: u64,
    /// Which faults came how often.
    pub faults: BTreeMap<Fault, u64>,
    /// What was wrong.
    pub failure: Option<Failure>,
}

/// Something that must not be.
#[derive(Debug)]
pub struct Failure {
    /// The run.
    pub options: RunOptions,
    /// When.
    pub step: u64,
    /// What.
    pub finding: Finding,
    /// What was done to the world.
    pub faults: BTreeMap<Fault, u64>,
    /// What happened last.
    pub events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunOptions { seed, steps, plant, .. } = self.options;
        writeln!(f, "seed {seed}, step {}: {}", self.step, self.finding)?;
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, times)| format!("{fault} {times}")).collect();
        writeln!(f, "  faults: {}", faults.join(", "))?;
        for event in &self.events {
            writeln!(f, "  {event}")?;
        }
        write!(f, "  again: noondrop-sim --seed {seed} --steps {steps} --verbose")?;
        match plant {
            Some(plant) => write!(f, " --plant {}", plant.name()),
            None => Ok(()),
        }
    }
}

/// Everything there is.
pub struct World {
    pub(crate) options: RunOptions,
    pub(crate) profile: Profile,
    pub(crate) dice: Dice,
    pub(crate) time: VirtualTime,
    pub(crate) disk: Disk,
    /// The checker's own, undisturbed way to the log.
    pub(crate) reader: Box<dyn LogReader>,
    pub(crate) processes: Vec<Process>,
    pub(crate) callers: Callers,
    pub(crate) workload: Workload,
    pub(crate) checker: Checker,
    pub(crate) digester: Option<Digester>,
    pub(crate) settings: Settings,
    pub(crate) trace: Trace,
    pub(crate) step: u64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    /// Rows that the log lost and nobody noticed yet: the next start has to.
    pub(crate) must_refuse: bool,
    pub(crate) lost: Vec<Position>,
    pub(crate) losses_accepted: u64,
    pub(crate) evidence: Option<tempfile::TempDir>,
    /// Faults are over.
    pub(crate) healed: bool,
}

/// One line of the trace.
macro_rules! event {
    ($world:expr, $($what:tt)*) => {{
        let (step, elapsed) = ($world.step, $world.time.elapsed_ms());
        $world.trace.event(step, elapsed, format_args!($($what)*));
    }};
}
pub(crate) use event;

impl World {
    /// The world of a seed, before anything happens.
    pub fn new(options: RunOptions) -> Self {
        let mut dice = Dice::new(options.seed);
        let profile = Profile::of(&mut dice);
        let time = VirtualTime::default();
        let disk = Disk::new(profile.processes == 1, options.plant);
        let reader = disk.memory.log().opener().reader().expect("an empty disk can be read");
        let host = |_| Process::new(HostClock::new(time.clone()));
        let processes = (0..profile.processes).map(host).collect();
        let manners = Manners {
            lost: profile.lost_answers,
            doubled: 60,
            hurried: 250,
            gives_up_when_full: false,
        };
        let mut checker = Checker::default();
        checker.keys_scarce = profile.keys_max.is_some();
        let evidence = profile.goes_back.then(|| {
            tempfile::tempdir().expect("a simulation may write into the temporary directory")
        });
        Self {
            options,
            time,
            disk,
            reader,
            processes,
            callers: Callers::new(dice.fork(), manners),
            workload: Workload::new(dice.fork()),
            checker,
            digester: None,
            settings: profile.settings(&mut dice),
            trace: Trace::new(options.aloud),
            step: 0,
            faults: BTreeMap::new(),
            must_refuse: false,
            lost: Vec::new(),
            losses_accepted: 0,
            evidence,
            healed: false,
            profile,
            dice,
        }
    }

    /// Runs a world to its end.
    #[must_use]
    pub fn run(options: RunOptions) -> Report {
        Plant::switch(options.plant);
        let mut world = Self::new(options);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live()));
        let finding = match ended {
            Ok(Ok(())) => None,
            Ok(Err(finding)) => Some(finding),
            Err(panic) => Some(format!("a panic: {}", panic_text(&*panic))),
        };
        let failure = finding.map(|finding| Failure {
            options,
            step: world.step,
            finding,
            faults: world.faults.clone(),
            events: world.trace.newest().map(str::to_owned).collect(),
        });
        Report {
            trace: world.trace.hash(),
            steps: world.step,
            rows: world.checker.position().seq,
            judged: world.checker.judged,
            faults: world.faults,
            failure,
        }
    }

    fn live(&mut self) -> Result<(), Finding> {
        event!(self, "{:?}", self.profile);
        self.start_all()?;
        for _ in 0..self.options.steps {
            self.step += 1;
            self.pass_time();
            self.make_mischief()?;
            self.start_some()?;
            self.want_things();
            self.send_calls();
            self.take_turns()?;
        }
        self.finish()
    }

    /// Counts a fault that came.
    pub(crate) fn happened(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.time.pass(ms);
        if self.processes.len() > 1 {
            self.disk.memory.set_clock(Some(self.time.wall_ms()));
        }
    }

    fn pass_time(&mut self) {
        let ms = match self.dice.below(1_000) {
            0..500 => self.dice.below(50),
            500..900 => self.dice.below(2_000),
            900..980 => self.dice.below(30_000),
            _ if self.profile.horizon_of_days => self.dice.below(40 * 3_600_000),
            _ => self.dice.below(180_000),
        };
        if ms > 12 * 3_600_000 {
            self.happened(Fault::DaysPass);
        }
        self.pass(ms);
        if self.profile.slow_clock && ms > 1_000 {
            let late = i64::try_from(ms / 1_500).expect("days are few");
            self.processes[0].clock.step(-late);
            self.happened(Fault::SlowClock);
        }
    }

    fn start_all(&mut self) -> Result<(), Finding> {
        self.pass(1);
        for process in 0..self.processes.len() {
            while self.processes[process].running.is_none() {
                self.start(process, None)?;
            }
        }
        let digester = self.checker.state().digester().expect("the first row is written");
        let opening = self.workload.opening(&digester, self.time.wall_ms());
        self.digester = Some(digester);
        for command in opening {
            self.want(command);
        }
        Ok(())
    }

    fn start_some(&mut self) -> Result<(), Finding> {
        for process in 0..self.processes.len() {
            if self.processes[process].running.is_none() && self.dice.chance(400) {
                let fails_at = self.start_fault();
                self.start(process, fails_at)?;
            }
        }
        Ok(())
    }

    /// Starts a process, or tries to.
    pub(crate) fn start(
        &mut self,
        process: usize,
        fails_at: Option<crate::process::FailsAt>,
    ) -> Result<(), Finding> {
        let drops = self.options.plant == Some(Plant::EvidenceDropped);
        let evidence = self.evidence.as_ref().filter(|_| !drops);
        let setup = Setup {
            disk: &self.disk,
            settings: self.settings,
            evidence_dir: evidence.map(|dir| dir.path().to_owned()),
            plant: self.options.plant,
            fails_at,
            store_clock: (self.processes.len() > 1).then(|| self.time.wall_ms()),
        };
        match self.processes[process].start(setup, &mut self.dice) {
            Started::Refused(refused) => {
                event!(self, "host {process}: start refused, {:?}", refused);
                if !self.lost.contains(&refused.acknowledged) {
                    return Err(format!("a start was refused, and nothing was lost: {refused:?}"));
                }
                self.happened(Fault::StartRefused);
                self.must_refuse = false;
                self.disk.accept_loss();
                self.processes[process].accepted_loss = Some(LossAccepted {
                    acknowledged: noondrop_core::Seq(refused.acknowledged.seq),
                    found: noondrop_core::Seq(refused.found.seq),
                });
                self.losses_accepted += 1;
                Ok(())
            }
            Started::Failed(why) => {
                event!(self, "host {process}: start failed, {why}");
                let told = |loss: &LossAccepted| self.disk.memory.head().seq > loss.found.0;
                if self.processes[process].accepted_loss.as_ref().is_some_and(told) {
                    // It died after the row that tells of the loss.
                    self.processes[process].accepted_loss = None;
                }
                if self.healed { Err(format!("a start failed: {why}")) } else { Ok(()) }
            }
            Started::Alive if self.must_refuse => {
                Err("a start did not notice that answered rows are gone".into())
            }
            Started::Alive => {
                let at = self.processes[process].position().expect("it is alive");
                event!(self, "host {process}: started at {at}");
                self.follow(process, &[])
            }
        }
    }

    fn want_things(&mut self) {
        let Some(digester) = self.digester.clone() else { return };
        for _ in 0..self.dice.below(4) {
            let now = self.time.wall_ms();
            let command = self.workload.next(&digester, now);
            let thief = self.dice.chance(20).then(|| self.workload.with_other_body(&command));
            self.want(command);
            if let Some(thief) = thief.flatten() {
                self.want(thief);
            }
        }
        if self.dice.chance(150) {
            self.callers.ask_again(self.time.elapsed_ms());
        }
    }

    pub(crate) fn want(&mut self, command: noondrop_core::Command) -> usize {
        let now = self.time.elapsed_ms();
        let intent = self.callers.want(command, now);
        self.checker.register(self.callers.command(intent), intent);
        intent
    }

    pub(crate) fn send_calls(&mut self) {
        let now = self.time.elapsed_ms();
        for intent in self.callers.due(now) {
            let process = self.dice.index(self.processes.len());
            if self.processes[process].running.is_none() {
                continue;
            }
            if self.options.plant == Some(Plant::RetryWithoutKey) && self.callers.is_retry(intent) {
                let digester = self.digester.as_ref().expect("somebody wants something");
                let old = self.callers.command(intent).clone();
                let new = self.workload.with_new_key(digester, &old);
                self.checker.register(&new, intent);
                self.callers.change_command(intent, new);
            }
            let calls = self.callers.send(intent, process, now);
            self.processes[process].calls.extend(calls);
        }
    }

    pub(crate) fn take_turns(&mut self) -> Result<(), Finding> {
        let idle_turns = self.options.plant != Some(Plant::NoIdleTurn);
        for process in 0..self.processes.len() {
            let now = self.time.elapsed_ms();
            for _ in 0..TURNS_MAX {
                if !self.processes[process].is_due(now, idle_turns) {
                    break;
                }
                self.turn(process)?;
            }
        }
        Ok(())
    }

    /// One turn of a process, and everything that follows from it.
    pub(crate) fn turn(&mut self, process: usize) -> Result<(), Finding> {
        let host = &mut self.processes[process];
        let Some(running) = &mut host.running else { return Ok(()) };
        let mut answers = Vec::new();
        self.checker.latest = self.checker.latest.max(running.sequencer.now().0);
        let end = running.sequencer.turn(&mut host.calls, &mut answers);
        running.sequencer.between_turns();
        let (notes, crashed) = {
            let mut wires = locked(&running.wires);
            (std::mem::take(&mut wires.notes), wires.crashed)
        };
        if !notes.is_empty() {
            event!(self, "host {process}: {}", notes.join(", "));
        }
        if crashed {
            event!(self, "host {process}: died");
            self.happened(Fault::Crash);
            let running = self.processes[process].running.as_mut().expect("it just died");
            if running.sequencer.tally().history_changes > running.history_changes {
                // It noticed with its last breath, and the slot may have moved on with it.
                running.unnoticed.clear();
            }
            self.die(process);
            return Ok(());
        }
        if end.moved || !answers.is_empty() {
            event!(self, "host {process}: at {}, {} answers", end.position, answers.len());
        }
        self.check_notice(process)?;
        self.hear_all(process, answers)
    }

    fn hear_all(&mut self, process: usize, mut answers: Vec<Answered>) -> Result<(), Finding> {
        if self.options.plant == Some(Plant::AnswersSwapped) && answers.len() > 2 {
            let (first, second) = (answers[0].ticket, answers[1].ticket);
            answers[0].ticket = second;
            answers[1].ticket = first;
        }
        self.hear(process, answers)?;
        if let Some(running) = &mut self.processes[process].running {
            running.was_in_trouble = running.sequencer.trouble().is_some();
        }
        Ok(())
    }

    /// A process is no more; what it answered in its last turn was not heard.
    pub(crate) fn die(&mut self, process: usize) {
        let alone = self.processes.len() == 1;
        let host = &mut self.processes[process];
        let running = host.running.take();
        host.calls.clear();
        // What it would have noticed, the next start has to.
        self.must_refuse |= alone && running.is_some_and(|running| !running.unnoticed.is_empty());
        self.callers.hung_up(process, self.time.elapsed_ms());
    }

    fn hear(&mut self, process: usize, answers: Vec<Answered>) -> Result<(), Finding> {
        let replies: Vec<Reply> =
            answers.iter().filter_map(|answered| answered.answer.as_ref().ok().cloned()).collect();
        for answered in &answers {
            let what = match &answered.answer {
                Ok(reply) => format!(
                    "{} {}{}",
                    reply.command.act.operation(),
                    outcome_text(&reply.outcome),
                    if reply.replayed { " (replay)" } else { "" }
                ),
                Err(fault) => format!("fault: {}", fault.code()),
            };
            let intent = self.callers.intent(answered.ticket).unwrap_or(usize::MAX);
            event!(self, "  call {} of intention {intent}: {what}", answered.ticket.0);
            if let Ok(reply) = &answered.answer {
                self.trace.bytes(&crate::oracle::canonical(&reply.outcome));
            }
        }
        self.follow(process, &replies.iter().collect::<Vec<_>>())?;
        for answered in answers {
            let heard = self.callers.hear(answered, self.time.elapsed_ms())?;
            if let Some((command, outcome)) = heard.news {
                self.workload.heard(&command, &outcome);
            }
        }
        self.callers.check_not_done(&self.checker)
    }
}

fn outcome_text(outcome: &noondrop_core::Outcome) -> String {
    use noondrop_core::Outcome;
    match outcome {
        Outcome::Hold(view) => format!("hold #{} {}", view.no, view.state.as_str()),
        Outcome::Item(view) => format!("item #{}", view.item),
        Outcome::Sale(view) => format!("sale {} {}", view.name, view.state.as_str()),
        Outcome::Shop(view) => format!("shop {}", view.name),
        Outcome::Erased(view) => format!("buyer {}", view.buyer),
        Outcome::Refused(refusal) => refusal.code().into(),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "?".into())
}
