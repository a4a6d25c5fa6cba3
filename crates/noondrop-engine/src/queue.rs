//! What waits for the sequencer: two bounded lanes of commands, the queries, and the bell that
//! wakes it.
//!
//! New holds come in storms; confirms, releases and payments settle what was promised before. So
//! the latter have a lane of their own, with room in the queue and in each turn that a storm can
//! not take (RULES R2).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use noondrop_core::{State, Timestamp};
use noondrop_log::Position;

use crate::call::{Answered, Fault, Pending};
use crate::clock::Clock;

/// The durable state as a query sees it.
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) now: Timestamp,
    pub(crate) position: Position,
}

/// A query, with its way back to whoever asked.
pub(crate) type Ask = Box<dyn FnOnce(Result<View<'_>, Fault>) + Send>;

/// Takes a lock. What it guards is changed by single steps that do not panic, so a poisoned one is
/// still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Open,
    Stopping,
}

struct Waiting {
    creates: VecDeque<Pending>,
    settles: VecDeque<Pending>,
    asks: Vec<Ask>,
    /// Calls that the sequencer took and has not answered.
    held: usize,
    door: Door,
    accept_clock_step: bool,
}

/// What the sequencer takes out.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) asks: Vec<Ask>,
    /// There was more than one turn takes.
    pub(crate) more: bool,
    pub(crate) stopping: bool,
    pub(crate) accept_clock_step: bool,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// New holds.
    pub creates: usize,
    /// What settles earlier promises.
    pub settles: usize,
    /// Taken up by the sequencer, and not answered yet.
    pub held: usize,
    /// Queries.
    pub queries: usize,
}

/// The queue of one engine.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    bell: Bell,
    total_max: usize,
}

impl Queue {
    pub(crate) fn new(total_max: usize) -> Self {
        let waiting = Waiting {
            creates: VecDeque::new(),
            settles: VecDeque::new(),
            asks: Vec::new(),
            held: 0,
            door: Door::Open,
            accept_clock_step: false,
        };
        Self { waiting: Mutex::new(waiting), bell: Bell::default(), total_max: total_max.max(4) }
    }

    /// Puts calls in, in order, with one lock and one ring. Those that do not fit come back with a
    /// fault.
    pub(crate) fn submit(&self, calls: &mut Vec<Pending>, turned_away: &mut Vec<Answered>) {
        let mut waiting = lock(&self.waiting);
        let stopping = waiting.door == Door::Stopping;
        for pending in calls.drain(..) {
            let fault = if stopping {
                Fault::Stopping
            } else if waiting.has_room(&pending, self.total_max) {
                waiting.lane(&pending).push_back(pending);
                continue;
            } else {
                Fault::Overloaded
            };
            turned_away.push(Answered::fault(&pending, fault));
        }
        drop(waiting);
        self.bell.ring();
    }

    /// Puts a query in, or gives it back with the reason.
    pub(crate) fn ask(&self, ask: Ask) -> Result<(), (Ask, Fault)> {
        let mut waiting = lock(&self.waiting);
        if waiting.door == Door::Stopping {
            return Err((ask, Fault::Stopping));
        }
        if waiting.asks.len() >= self.total_max {
            return Err((ask, Fault::Overloaded));
        }
        waiting.asks.push(ask);
        drop(waiting);
        self.bell.ring();
        Ok(())
    }

    /// Takes what one turn may decide, a quarter of it at least for what settles; and everything
    /// else that waits. `calls` may have some left from the turn before; `held` are those that the
    /// sequencer keeps itself.
    pub(crate) fn take(
        &self,
        calls: &mut VecDeque<Pending>,
        commands_max: usize,
        held: usize,
        taken: &mut Taken,
    ) {
        let mut waiting = lock(&self.waiting);
        let waiting = &mut *waiting;
        let room = commands_max.saturating_sub(calls.len());
        let settles = waiting.settles.len();
        let for_creates = room - settles.min(room.div_ceil(4));
        let creates = waiting.creates.len().min(for_creates);
        let settles = settles.min(room - creates);
        move_front(&mut waiting.settles, calls, settles);
        move_front(&mut waiting.creates, calls, creates);
        waiting.held = calls.len() + held;
        std::mem::swap(&mut waiting.asks, &mut taken.asks);
        taken.more = !waiting.settles.is_empty() || !waiting.creates.is_empty();
        taken.stopping = waiting.door == Door::Stopping;
        taken.accept_clock_step = std::mem::take(&mut waiting.accept_clock_step);
    }

    /// Everything in the lanes, and nothing gets in any more.
    pub(crate) fn close(&self) -> (Vec<Pending>, Vec<Ask>) {
        let mut waiting = lock(&self.waiting);
        waiting.door = Door::Stopping;
        let waiting = &mut *waiting;
        let calls = waiting.settles.drain(..).chain(waiting.creates.drain(..)).collect();
        (calls, std::mem::take(&mut waiting.asks))
    }

    /// Lets go of everything that waits, unanswered.
    pub(crate) fn clear(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.settles.clear();
        waiting.creates.clear();
        waiting.held = 0;
    }

    pub(crate) fn stop(&self) {
        lock(&self.waiting).door = Door::Stopping;
        self.bell.ring();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.waiting).door == Door::Stopping
    }

    pub(crate) fn accept_clock_step(&self) {
        lock(&self.waiting).accept_clock_step = true;
        self.bell.ring();
    }

    pub(crate) fn depth(&self) -> QueueDepth {
        let waiting = lock(&self.waiting);
        QueueDepth {
            creates: waiting.creates.len(),
            settles: waiting.settles.len(),
            held: waiting.held,
            queries: waiting.asks.len(),
        }
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Waiting {
    /// New holds may fill three quarters of the queue; what settles, all of it.
    fn has_room(&self, pending: &Pending, total_max: usize) -> bool {
        let waiting = self.creates.len() + self.settles.len() + self.held;
        let room =
            if pending.call.command.act.settles() { total_max } else { total_max - total_max / 4 };
        waiting < room
    }

    fn lane(&mut self, pending: &Pending) -> &mut VecDeque<Pending> {
        if pending.call.command.act.settles() { &mut self.settles } else { &mut self.creates }
    }
}

fn move_front(from: &mut VecDeque<Pending>, to: &mut VecDeque<Pending>, count: usize) {
    if count == from.len() {
        if to.is_empty() {
            std::mem::swap(from, to);
        } else {
            to.append(from);
        }
    } else {
        to.extend(from.drain(..count));
    }
}

/// Wakes the sequencer, once however often it is rung.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    parked: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Bell {
    /// To be called by the thread that waits, before it does.
    pub(crate) fn belongs_to_this_thread(&self) {
        self.thread.get_or_init(thread::current);
    }

    // Both sides write one flag and then read the other, all sequentially consistent: at least one
    // of them sees the other's, so that no ring is slept through.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst)
            && self.parked.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Waits for a ring: spinning for a while, because the next call is often only microseconds
    /// away; then parked.
    pub(crate) fn wait(&self, clock: &dyn Clock, spin_us: u64, timeout: Option<Duration>) {
        if timeout.is_some_and(|timeout| timeout.is_zero())
            || self.heard_while_spinning(clock, spin_us)
        {
            return;
        }
        self.parked.store(true, Ordering::SeqCst);
        if !self.rung.load(Ordering::SeqCst) {
            match timeout {
                Some(timeout) => thread::park_timeout(timeout),
                None => thread::park(),
            }
        }
        self.parked.store(false, Ordering::SeqCst);
        self.rung.store(false, Ordering::SeqCst);
    }

    fn heard_while_spinning(&self, clock: &dyn Clock, spin_us: u64) -> bool {
        let until = clock.elapsed_us().saturating_add(spin_us);
        loop {
            if self.rung.swap(false, Ordering::SeqCst) {
                return true;
            }
            if clock.elapsed_us() >= until {
                return false;
            }
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
    }
}
