//! What callers hold: cheap to clone, usable from any thread, any executor or none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use noondrop_core::{Catalog, Digester, State, Timestamp};
use noondrop_log::{LogOpener, Position, PositionRef};

use crate::call::{Answer, Answered, Call, Fault, Pending, Reply, WaitError};
use crate::desk::{RuntimeTask, Seat, desk_of_this_thread};
use crate::follower::Follower;
use crate::oneshot::{block_on, oneshot, waker_of_this_thread};
use crate::queue::{Ask, View};
use crate::shared::Shared;
use crate::snapshots::SnapshotFailed;
use crate::status::Status;

/// A way to an engine.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("engine", &self.shared.id).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Has a command decided, and answers once that is durable.
    ///
    /// A refusal is an answer, not an error. Dropping the future does not take the command back: it
    /// is decided all the same, and its key will tell.
    pub async fn execute(&self, call: Call) -> Result<Reply, Fault> {
        let desk = desk_of_this_thread(self.shared.id, &self.shared.common_desk);
        desk.sit(&self.shared.queue, call)?.await
    }

    /// As [`Handle::execute`], for a thread that has nothing else to do.
    pub fn execute_blocking(&self, call: Call) -> Result<Reply, Fault> {
        let mut replies = self.execute_many_blocking(vec![call]);
        replies.pop().expect("one answer for one call")
    }

    /// Has many commands decided, submitted together; the answers are in the order of the calls.
    pub fn execute_many_blocking(&self, calls: Vec<Call>) -> Vec<Result<Reply, Fault>> {
        let desk = self.shared.desks.open();
        desk.attend(&waker_of_this_thread());
        let count = calls.len();
        let seats = (0..).map(|slot| desk.seat(slot, 0).ticket());
        let mut pending: Vec<Pending> =
            calls.into_iter().zip(seats).map(|(call, ticket)| Pending { ticket, call }).collect();
        let mut arrived: Vec<Answered> = Vec::new();
        self.shared.queue.submit(&mut pending, &mut arrived);

        let mut replies: Vec<Option<Result<Reply, Fault>>> = Vec::with_capacity(count);
        replies.resize_with(count, || None);
        let mut missing = count;
        loop {
            for answered in arrived.drain(..) {
                let slot = Seat::of(answered.ticket).slot as usize;
                missing -= usize::from(replies[slot].is_none());
                replies[slot] = Some(answered.answer);
            }
            if missing == 0 {
                break;
            }
            let lost = desk.collect(&mut arrived);
            if arrived.is_empty() && lost {
                break;
            }
            if arrived.is_empty() {
                std::thread::park();
            }
        }
        self.shared.desks.close(&desk);
        replies.into_iter().map(|reply| reply.unwrap_or(Err(Fault::OutcomeUnknown))).collect()
    }

    /// Asks the durable state, at a time that no answer so far is later than. Goes on while the
    /// store can not be written, and never shows what is not durable.
    ///
    /// The question runs on the sequencer's thread between two turns: keep it short.
    pub async fn query<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&State, Timestamp) -> T + Send + 'static,
    ) -> Result<Answer<T>, Fault> {
        let (sender, receiver) = oneshot();
        let ask: Ask = Box::new(move |view: Result<View<'_>, Fault>| {
            let answer = view.and_then(|view| {
                let value = guarded(|| ask(view.state, view.now))?;
                Ok(Answer { value, position: view.position })
            });
            sender.send(answer);
        });
        if let Err((ask, fault)) = self.shared.queue.ask(ask) {
            ask(Err(fault));
        }
        receiver.await
    }

    /// As [`Handle::query`], for a thread that has nothing else to do.
    pub fn query_blocking<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&State, Timestamp) -> T + Send + 'static,
    ) -> Result<Answer<T>, Fault> {
        block_on(self.query(ask))
    }

    /// Waits until the durable state has reached a position, and says so if the log has another row
    /// there.
    pub async fn wait_for(
        &self,
        at_least: PositionRef,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        match self.shared.wait_for(at_least, timeout_ms) {
            Ok(known) => known,
            Err(receiver) => receiver.await,
        }
    }

    /// As [`Handle::wait_for`], for a thread that has nothing else to do.
    pub fn wait_for_blocking(
        &self,
        at_least: PositionRef,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        block_on(self.wait_for(at_least, timeout))
    }

    /// The future that gathers the calls of one runtime thread and brings its answers: spawn it
    /// once on each thread that runs callers. Optional; see [`RuntimeTask`].
    #[must_use]
    pub fn runtime_task(&self) -> RuntimeTask {
        RuntimeTask::new(Arc::clone(&self.shared))
    }

    /// Milliseconds on the scale of [`Call::deadline_ms`].
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        self.shared.clock.elapsed_ms()
    }

    /// The deadline of a caller who waits this long from now.
    #[must_use]
    pub fn deadline_in(&self, wait: Duration) -> u64 {
        self.elapsed_ms().saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    /// Makes the digests that this log understands.
    #[must_use]
    pub fn digester(&self) -> Digester {
        self.shared.digester()
    }

    /// The names of shops, sales, items and principals by index.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalog()
    }

    /// A way to read the log itself. It may show a row that is not answered yet;
    /// [`Handle::position`] is the bound.
    #[must_use]
    pub fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::clone(&self.shared.opener)
    }

    /// The durable position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.shared.position()
    }

    /// How the engine is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Follows the log from a position that was seen before, or from
    /// [`GENESIS`](noondrop_log::GENESIS). The name is for the status.
    #[must_use]
    pub fn follow(&self, name: &'static str, from: Position) -> Follower {
        Follower::new(Arc::clone(&self.shared), name, from)
    }

    /// Has a snapshot made, and says of which position it is.
    pub async fn snapshot_now(&self) -> Result<Position, Arc<SnapshotFailed>> {
        self.shared.snapshots.request().await
    }

    /// As [`Handle::snapshot_now`], for a thread that has nothing else to do.
    pub fn snapshot_now_blocking(&self) -> Result<Position, Arc<SnapshotFailed>> {
        block_on(self.snapshot_now())
    }

    /// An operator says that the clock is right after it stepped. Log time still never goes back.
    pub fn accept_clock_step(&self) {
        self.shared.queue.accept_clock_step();
    }
}

/// A question must not end the sequencer.
fn guarded<T>(ask: impl FnOnce() -> T) -> Result<T, Fault> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask))
        .map_err(|_| Fault::Internal("a query panicked".into()))
}
