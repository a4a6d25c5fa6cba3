//! What the sequencer's thread shows to all others: published after each turn, before anyone is
//! answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use noondrop_core::{Catalog, Counters, Digester, Timestamp};
use noondrop_log::{GENESIS, LogOpener, Position, PositionRef};

use crate::call::WaitError;
use crate::clock::Clock;
use crate::desk::{Desk, Desks};
use crate::erasures::{Erasures, Upkeep};
use crate::follower::Followers;
use crate::oneshot::{self, Receiver, Sender};
use crate::queue::{Queue, lock};
use crate::snapshots::SnapshotControl;
use crate::status::{Phase, Status};
use crate::tally::Tally;

/// Positions that are remembered, to answer "is this one of yours?" without a read.
const POSITIONS_MAX: usize = 8_192;

/// What one turn changes for those who look.
pub(crate) struct Published {
    pub(crate) phase: Phase,
    pub(crate) last_at: Timestamp,
    pub(crate) now: Timestamp,
    /// When something is due next.
    pub(crate) due_at: Option<Timestamp>,
    /// When this was written, in elapsed time.
    pub(crate) at_ms: u64,
    pub(crate) counters: Counters,
    pub(crate) tally: Tally,
}

/// The positions of the log that this process saw, newest last.
struct Head {
    position: Position,
    recent: VecDeque<Position>,
    waiters: Vec<Waiter>,
    /// Whom to wake when the log moves.
    watchers: Vec<Waker>,
}

struct Waiter {
    at_least: PositionRef,
    deadline_ms: u64,
    sender: Sender<Result<(), WaitError>>,
}

/// What a position is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Ours,
    AnotherBranch,
    NotYet,
    /// So long ago that only the log can tell.
    Old,
}

/// One engine, as all its threads see it.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) queue: Queue,
    pub(crate) desks: Desks,
    /// The desk of all callers whose thread has none that is attended.
    pub(crate) common_desk: Arc<Desk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) opener: Arc<dyn LogOpener>,
    pub(crate) followers: Followers,
    pub(crate) snapshots: SnapshotControl,
    pub(crate) erasures: Erasures,
    /// What the owner of the log is asked to do with it between turns.
    pub(crate) upkeep: Upkeep,
    published: Mutex<Published>,
    head: Mutex<Head>,
    waiters: AtomicUsize,
    catalog: Mutex<Arc<Catalog>>,
    digester: Mutex<Digester>,
    started_ms: u64,
    /// How often the history changed: a follower looks twice when it moved.
    history_changes: AtomicU64,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What an engine starts with.
pub(crate) struct Start {
    pub(crate) queue_max: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) opener: Arc<dyn LogOpener>,
    pub(crate) snapshots: SnapshotControl,
    pub(crate) published: Published,
    pub(crate) position: Position,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) digester: Digester,
}

impl Shared {
    pub(crate) fn new(start: Start) -> Self {
        let desks = Desks::default();
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            queue: Queue::new(start.queue_max),
            common_desk: desks.open(),
            desks,
            started_ms: start.clock.elapsed_ms(),
            clock: start.clock,
            opener: start.opener,
            followers: Followers::default(),
            snapshots: start.snapshots,
            erasures: Erasures::default(),
            upkeep: Upkeep::default(),
            published: Mutex::new(start.published),
            head: Mutex::new(Head {
                position: start.position,
                recent: VecDeque::from([start.position]),
                waiters: Vec::new(),
                watchers: Vec::new(),
            }),
            waiters: AtomicUsize::new(0),
            catalog: Mutex::new(start.catalog),
            digester: Mutex::new(start.digester),
            history_changes: AtomicU64::new(0),
        }
    }

    // ---- the sequencer's side

    pub(crate) fn publish(&self, change: impl FnOnce(&mut Published)) {
        change(&mut lock(&self.published));
    }

    /// The log moved: `changed` to another branch, or simply on. Wakes whoever watches it.
    pub(crate) fn moved_to(&self, position: Position, changed: bool) {
        let mut head = lock(&self.head);
        if changed {
            head.recent.clear();
            self.history_changes.fetch_add(1, Ordering::Release);
        }
        head.position = position;
        head.recent.push_back(position);
        if head.recent.len() > POSITIONS_MAX {
            head.recent.pop_front();
        }
        let watchers = std::mem::take(&mut head.watchers);
        drop(head);
        watchers.into_iter().for_each(Waker::wake);
        self.snapshots.log_is_at(position.seq);
    }

    pub(crate) fn set_catalog(&self, catalog: &Arc<Catalog>) {
        let mut known = lock(&self.catalog);
        if known.version != catalog.version {
            *known = Arc::clone(catalog);
        }
    }

    pub(crate) fn set_digester(&self, digester: Digester) {
        *lock(&self.digester) = digester;
    }

    /// Answers those who wait for a position, as far as there is an answer. The next deadline of
    /// the others.
    pub(crate) fn serve_waiters(&self, now_ms: u64) -> Option<u64> {
        if self.waiters.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut head = lock(&self.head);
        let waiters = std::mem::take(&mut head.waiters);
        let mut served = Vec::new();
        for waiter in waiters {
            match head.know(&waiter.at_least) {
                Known::NotYet if waiter.deadline_ms > now_ms => head.waiters.push(waiter),
                Known::NotYet => served.push((waiter.sender, Err(WaitError::TimedOut))),
                // It was not there when the wait began, so it is recent, or of a branch that is
                // gone.
                Known::AnotherBranch | Known::Old => {
                    served.push((waiter.sender, Err(WaitError::HistoryChanged)));
                }
                Known::Ours => served.push((waiter.sender, Ok(()))),
            }
        }
        let next = head.waiters.iter().map(|waiter| waiter.deadline_ms).min();
        self.waiters.store(head.waiters.len(), Ordering::Release);
        drop(head);
        for (sender, result) in served {
            sender.send(result);
        }
        next
    }

    /// Nothing moves any more.
    pub(crate) fn stopped(&self) {
        self.publish(|published| published.phase = Phase::Stopped);
        self.end_waiting();
        self.desks.wake_all();
        self.snapshots.stop();
        self.upkeep.close();
        self.erasures.stop();
    }

    fn end_waiting(&self) {
        let mut head = lock(&self.head);
        let waiters = std::mem::take(&mut head.waiters);
        let watchers = std::mem::take(&mut head.watchers);
        drop(head);
        for waiter in waiters {
            waiter.sender.send(Err(WaitError::Unavailable));
        }
        watchers.into_iter().for_each(Waker::wake);
    }

    // ---- everyone else's

    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.published).phase == Phase::Stopped
    }

    pub(crate) fn position(&self) -> Position {
        lock(&self.head).position
    }

    pub(crate) fn history_changes(&self) -> u64 {
        self.history_changes.load(Ordering::Acquire)
    }

    /// Wakes `waker` at the next row, unless the log is not at `seen` any more: then the answer is
    /// no.
    pub(crate) fn watch(&self, seen: Position, waker: &Waker) -> bool {
        let mut head = lock(&self.head);
        if head.position != seen {
            return false;
        }
        if !head.watchers.iter().any(|known| known.will_wake(waker)) {
            head.watchers.push(waker.clone());
        }
        true
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    pub(crate) fn digester(&self) -> Digester {
        lock(&self.digester).clone()
    }

    /// Whether the log has a position, or a wait for it.
    pub(crate) fn wait_for(
        &self,
        at_least: PositionRef,
        timeout_ms: u64,
    ) -> Result<Result<(), WaitError>, Receiver<Result<(), WaitError>>> {
        let deadline_ms = self.clock.elapsed_ms().saturating_add(timeout_ms);
        let mut head = lock(&self.head);
        match head.know(&at_least) {
            Known::Ours => Ok(Ok(())),
            Known::AnotherBranch => Ok(Err(WaitError::HistoryChanged)),
            Known::Old => {
                drop(head);
                Ok(self.look_up(at_least))
            }
            Known::NotYet => {
                let (sender, receiver) = oneshot::oneshot();
                head.waiters.push(Waiter { at_least, deadline_ms, sender });
                self.waiters.store(head.waiters.len(), Ordering::Release);
                drop(head);
                // The sequencer must learn of the deadline, or of the end that came in between.
                if self.is_stopped() {
                    self.end_waiting();
                }
                self.queue.bell().ring();
                Err(receiver)
            }
        }
    }

    fn look_up(&self, position: PositionRef) -> Result<(), WaitError> {
        let row = self.opener.reader().and_then(|mut reader| reader.row(position.seq));
        match row {
            Ok(Some(row)) if position.matches(&row.position()) => Ok(()),
            Ok(_) => Err(WaitError::HistoryChanged),
            Err(_) => Err(WaitError::Unavailable),
        }
    }

    pub(crate) fn status(&self) -> Status {
        let position = self.position();
        let queue = self.queue.depth();
        let now_ms = self.clock.elapsed_ms();
        let followers = self.followers.status(position);
        let snapshots = self.snapshots.status(now_ms);
        let erasures = self.erasures.status();
        let stopping = self.queue.is_stopping();
        let published = lock(&self.published);
        let phase = match &published.phase {
            Phase::Stopped => Phase::Stopped,
            _ if stopping => Phase::Stopping,
            phase => phase.clone(),
        };
        let now = Timestamp(published.now.0 + now_ms.saturating_sub(published.at_ms));
        Status {
            phase,
            position,
            last_at: published.last_at,
            now,
            expiry_lag_ms: published.due_at.map_or(0, |due| now.0.saturating_sub(due.0)),
            queue,
            counters: published.counters,
            tally: published.tally.clone(),
            snapshots,
            erasures,
            followers,
            uptime_ms: now_ms.saturating_sub(self.started_ms),
        }
    }
}

impl Head {
    fn know(&self, wanted: &PositionRef) -> Known {
        if wanted.seq == GENESIS.seq {
            return if wanted.matches(&GENESIS) { Known::Ours } else { Known::AnotherBranch };
        }
        if wanted.seq > self.position.seq {
            return Known::NotYet;
        }
        // A process that learns several rows at once publishes only the last: look for the number.
        let at = self.recent.partition_point(|position| position.seq < wanted.seq);
        match self.recent.get(at) {
            Some(position) if position.seq == wanted.seq && wanted.matches(position) => Known::Ours,
            Some(position) if position.seq == wanted.seq => Known::AnotherBranch,
            _ => Known::Old,
        }
    }
}
