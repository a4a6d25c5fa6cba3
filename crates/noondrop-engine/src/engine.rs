//! The engine: the sequencer on its thread, the snapshot builder on another, and their end.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noondrop_core::Digest16;
use noondrop_log::{Log, Position};
use tracing::{error, info, warn};

use crate::call::{Answered, Fault, Pending};
use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::desk::Post;
use crate::error::{Causes, StartError, StopError};
use crate::handle::Handle;
use crate::options::EngineOptions;
use crate::queue::{Taken, View};
use crate::sequencer::Sequencer;
use crate::shared::{Published, Shared, Start};
use crate::snapshots::{Schedule, SnapshotControl};
use crate::status::Phase;

/// The sequencer of an engine: its parts are chosen at run time, and called once a turn.
type Boxed = Sequencer<Box<dyn Log>, Arc<dyn Clock>, Box<dyn Entropy>>;

/// A running engine. Ends when it is dropped; [`Engine::stop`] does the same and tells how it went.
pub struct Engine {
    shared: Arc<Shared>,
    sequencer: Option<JoinHandle<usize>>,
    snapshots: Option<JoinHandle<()>>,
    erasures: Option<JoinHandle<()>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl Engine {
    /// Recovers the state from the log and starts to take calls. Returns when it is ready.
    pub fn start(log: Box<dyn Log>, options: EngineOptions) -> Result<Self, StartError> {
        let entropy = Box::new(SystemEntropy::default());
        Self::start_with(log, options, Arc::new(SystemClock), entropy)
    }

    /// As [`Engine::start`], with a clock and random bits of the caller's own.
    pub fn start_with(
        log: Box<dyn Log>,
        options: EngineOptions,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, StartError> {
        let mut sequencer = Sequencer::recover(log, Arc::clone(&clock), entropy, options)?;
        let shared = Arc::new(share(&mut sequencer, clock));
        let its = Arc::clone(&shared);
        let builder = thread::Builder::new().name("snapshots".into());
        let snapshots = builder
            .spawn(move || its.snapshots.run(&*its.opener, &its.clock))
            .map_err(StartError::Thread)?;
        shared.erasures.erased(sequencer.state.newest_erasure());
        let handle = Handle::new(Arc::clone(&shared));
        let its = Arc::clone(&shared);
        let builder = thread::Builder::new().name("erasures".into());
        let spawned = builder.spawn(move || crate::erasures::run(&its, &handle));
        let erasures = spawned.map_err(|error| {
            shared.snapshots.stop();
            StartError::Thread(error)
        })?;
        let its = Arc::clone(&shared);
        let builder = thread::Builder::new().name("sequencer".into());
        let spawned = builder.spawn(move || SequencerThread::new(sequencer, its).run());
        let sequencer = spawned.map_err(|error| {
            shared.stopped();
            StartError::Thread(error)
        })?;
        Ok(Self {
            shared,
            sequencer: Some(sequencer),
            snapshots: Some(snapshots),
            erasures: Some(erasures),
        })
    }

    /// A way to this engine, for as many callers as there are.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Takes no new calls, decides and answers what waits, within [`EngineOptions::stop_ms_max`],
    /// closes the log.
    pub fn stop(mut self) -> Result<(), StopError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StopError> {
        self.shared.queue.stop();
        let unfinished = self.sequencer.take().map_or(Ok(0), JoinHandle::join);
        // Also where the sequencer's thread ended by a panic: nobody is left waiting.
        self.shared.stopped();
        let snapshots = self.snapshots.take().map_or(Ok(()), JoinHandle::join);
        let erasures = self.erasures.take().map_or(Ok(()), JoinHandle::join);
        match (unfinished, snapshots.and(erasures)) {
            (Ok(0), Ok(())) => Ok(()),
            (Ok(calls), Ok(())) => Err(StopError::Unfinished { calls }),
            _ => Err(StopError::Panicked),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.sequencer.is_some()
            && let Err(error) = self.end()
        {
            warn!(%error, "the engine did not end well");
        }
    }
}

fn share(sequencer: &mut Boxed, clock: Arc<dyn Clock>) -> Shared {
    let opener = sequencer.log.opener();
    let options = &sequencer.options;
    let schedule = Schedule {
        every_rows: options.snapshot_every_rows,
        every_seconds: options.snapshot_every_seconds,
        keep: options.snapshots_keep,
    };
    let newest = match opener.snapshots().list() {
        Ok(metas) => metas.first().map(|meta| meta.position),
        Err(error) => {
            warn!(error = %Causes(&error), "snapshots can not be listed");
            None
        }
    };
    // A snapshot beyond the log's end is of another history, and none for us.
    let head = sequencer.position;
    let newest = newest.filter(|position| position.seq <= head.seq);
    let catalog = sequencer.state.catalog();
    let state = &sequencer.state;
    Shared::new(Start {
        queue_max: options.queue_max,
        snapshots: SnapshotControl::new(schedule, newest, head, clock.elapsed_ms()),
        published: Published {
            phase: Phase::Ready,
            last_at: state.last_at(),
            now: sequencer.now(),
            due_at: state.next_deadline(),
            at_ms: clock.elapsed_ms(),
            counters: state.counters(),
            tally: sequencer.tally().clone(),
        },
        position: head,
        catalog,
        digester: state.digester().expect("a recovered log has its first row"),
        opener,
        clock,
    })
}

/// The loop of the one thread that owns the state.
struct SequencerThread {
    sequencer: Boxed,
    shared: Arc<Shared>,
    calls: VecDeque<Pending>,
    answers: Vec<Answered>,
    taken: Taken,
    post: Post,
    log_id: Option<Digest16>,
    shown: Position,
    reloads_seen: u64,
    /// When a stop is given up, in elapsed time.
    stop_by_ms: Option<u64>,
}

impl SequencerThread {
    fn new(sequencer: Boxed, shared: Arc<Shared>) -> Self {
        Self {
            log_id: sequencer.state.log_id(),
            shown: sequencer.position,
            reloads_seen: 0,
            sequencer,
            shared,
            calls: VecDeque::new(),
            answers: Vec::new(),
            taken: Taken::default(),
            post: Post::default(),
            stop_by_ms: None,
        }
    }

    /// Runs until the engine stops. How many calls were left without an outcome.
    fn run(mut self) -> usize {
        self.shared.queue.bell().belongs_to_this_thread();
        let commands_max = self.sequencer.options.turn_commands();
        let spin_us = u64::from(self.sequencer.options.spin_us);
        loop {
            let held = self.sequencer.waiting();
            self.shared.queue.take(&mut self.calls, commands_max, held, &mut self.taken);
            if std::mem::take(&mut self.taken.accept_clock_step) {
                self.sequencer.accept_clock_step();
            }
            if !self.calls.is_empty() || self.is_due() {
                self.turn();
            }
            self.answer_queries();
            let waiter_ms = self.shared.serve_waiters(self.shared.clock.elapsed_ms());
            if self.taken.stopping && self.is_finished() {
                return self.finish();
            }
            self.sequencer.between_turns();
            self.shared.upkeep.work(|job| self.sequencer.upkeep(|log| job(&mut **log)));
            if self.calls.is_empty() && !self.taken.more {
                let timeout = self.until_next(waiter_ms);
                self.shared.queue.bell().wait(&*self.shared.clock, spin_us, timeout);
            }
        }
    }

    fn is_due(&self) -> bool {
        let now = self.shared.clock.elapsed_ms();
        self.sequencer.next_deadline_ms().is_some_and(|due| due <= now)
    }

    fn turn(&mut self) {
        let turn = || self.sequencer.turn(&mut self.calls, &mut self.answers);
        if catch_unwind(AssertUnwindSafe(turn)).is_err() {
            self.survive();
            return;
        }
        self.publish();
        self.shared.desks.deliver(&mut self.answers, &mut self.post);
    }

    /// A bug that no guard caught. Nothing in memory is trusted: everyone is told that his outcome
    /// is unknown, and the state is read again from the log.
    fn survive(&mut self) {
        error!("a turn ended by a bug; all waiting calls are given up, the state is read again");
        self.sequencer.distrust();
        self.calls.clear();
        self.answers.clear();
        self.shared.queue.clear();
        self.shared.desks.lose_all();
        self.publish();
    }

    /// Shows the new position and counts, before anyone is answered: who has an answer finds at
    /// least its state.
    fn publish(&mut self) {
        let position = self.sequencer.position();
        if position != self.shown {
            self.show_position(position);
        }
        let sequencer = &self.sequencer;
        let at_ms = self.shared.clock.elapsed_ms();
        self.shared.publish(|published| {
            published.phase = phase(sequencer);
            if let Some(state) = sequencer.state() {
                published.last_at = state.last_at();
                published.due_at = state.next_deadline();
                published.counters = state.counters();
            }
            published.now = sequencer.now();
            published.at_ms = at_ms;
            published.tally.clone_from(sequencer.tally());
        });
    }

    fn show_position(&mut self, position: Position) {
        let reloads = self.sequencer.tally().reloads;
        let reloaded = std::mem::replace(&mut self.reloads_seen, reloads) != reloads;
        self.shown = position;
        self.shared.moved_to(position, reloaded);
        self.shared.erasures.erased(self.sequencer.state.newest_erasure());
        self.shared.set_catalog(&self.sequencer.state.catalog());
        if self.sequencer.state.log_id() != self.log_id
            && let Some(digester) = self.sequencer.state.digester()
        {
            self.log_id = self.sequencer.state.log_id();
            self.shared.set_digester(digester);
        }
    }

    fn answer_queries(&mut self) {
        for ask in self.taken.asks.drain(..) {
            let view = self.sequencer.state().ok_or(Fault::StoreFailing).map(|state| View {
                state,
                now: self.sequencer.now(),
                position: self.sequencer.position(),
            });
            ask(view);
        }
    }

    fn until_next(&self, waiter_ms: Option<u64>) -> Option<Duration> {
        let now = self.shared.clock.elapsed_ms();
        let due = self.sequencer.next_deadline_ms();
        let next = [due, waiter_ms, self.stop_by_ms].into_iter().flatten().min()?;
        Some(Duration::from_millis(next.saturating_sub(now)))
    }

    /// Whether a stop has nothing left to wait for, or waited long enough.
    fn is_finished(&mut self) -> bool {
        let now = self.shared.clock.elapsed_ms();
        let stop_ms_max = self.sequencer.options.stop_ms_max;
        let stop_by_ms = *self.stop_by_ms.get_or_insert(now.saturating_add(stop_ms_max));
        let depth = self.shared.queue.depth();
        let waiting = depth.creates + depth.settles + self.calls.len() + self.sequencer.waiting();
        waiting == 0 || now >= stop_by_ms
    }

    fn finish(mut self) -> usize {
        self.sequencer.give_up(&mut self.answers);
        let (left, asks) = self.shared.queue.close();
        let left = self.calls.drain(..).chain(left);
        self.answers.extend(left.map(|pending| Answered::fault(&pending, Fault::Stopping)));
        let unfinished = self.answers.len();
        self.publish();
        self.shared.desks.deliver(&mut self.answers, &mut self.post);
        for ask in asks {
            ask(Err(Fault::Stopping));
        }
        let position = self.sequencer.position();
        // The log closes here, before anyone hears that the engine stopped: the next one may open
        // it at once.
        drop(self.sequencer);
        self.shared.stopped();
        info!(%position, unfinished, "the engine stopped");
        unfinished
    }
}

fn phase(sequencer: &Boxed) -> Phase {
    let why = || sequencer.trouble().map(|trouble| Causes(&trouble.cause).to_string());
    if sequencer.state().is_none() {
        Phase::Recovering { why: why().unwrap_or_default() }
    } else if let Some(trouble) = sequencer.trouble() {
        Phase::Failing { since_ms: trouble.since_ms, why: why().unwrap_or_default() }
    } else {
        Phase::Ready
    }
}
