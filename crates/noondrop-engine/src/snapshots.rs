//! Snapshots: a recovery run in the background, stored if it comes to the same state (RULES R14).
//!
//! So recovery is exercised all the time, and a snapshot never stops a turn. A snapshot that fails
//! is a warning: it costs time at the next start, nothing else.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use noondrop_log::{LogError, LogOpener, Position, SnapshotMeta};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::error::Causes;
use crate::oneshot::{self, Receiver, Sender};
use crate::queue::lock;
use crate::replay::{ReplayError, from_snapshot, is_of};

/// The gentlest a thread can be without special rights.
const NICENESS: i32 = 19;

/// Why there is no snapshot.
#[derive(Debug)]
pub enum SnapshotFailed {
    /// The log does not lead to a state here.
    Replay(ReplayError),
    /// It could not be stored.
    Store(LogError),
    /// The log ended before the position that was asked for.
    LogTooShort,
    /// The engine is stopping.
    Stopping,
}

impl fmt::Display for SnapshotFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replay(_) => "could not replay the log for a snapshot",
            Self::Store(_) => "could not store a snapshot",
            Self::LogTooShort => "the log ended before the snapshot's position",
            Self::Stopping => "the engine is stopping",
        })
    }
}

impl Error for SnapshotFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Replay(cause) => Some(cause),
            Self::Store(cause) => Some(cause),
            Self::LogTooShort | Self::Stopping => None,
        }
    }
}

/// A snapshot's position. Several may have asked for one and the same.
pub(crate) type Made = Result<Position, Arc<SnapshotFailed>>;

/// How snapshots are doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The newest one.
    pub position: Option<Position>,
    /// How long ago it was made by this process; none: an earlier one made it.
    pub age_ms: Option<u64>,
    /// How long it took.
    pub took_ms: u64,
    /// How many were made.
    pub made: u64,
    /// How many failed.
    pub failed: u64,
}

/// When snapshots are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) every_rows: u64,
    pub(crate) every_seconds: u64,
    pub(crate) keep: usize,
}

struct Plan {
    head_seq: u64,
    snapshot_seq: u64,
    /// When the newest was made or last tried, in elapsed time.
    last_ms: u64,
    made_at_ms: Option<u64>,
    requests: Vec<Sender<Made>>,
    stopping: bool,
    status: SnapshotStatus,
}

/// What the builder's thread is told.
pub(crate) struct SnapshotControl {
    schedule: Schedule,
    plan: Mutex<Plan>,
    changed: Condvar,
}

impl SnapshotControl {
    pub(crate) fn new(
        schedule: Schedule,
        newest: Option<Position>,
        head: Position,
        now_ms: u64,
    ) -> Self {
        let plan = Plan {
            head_seq: head.seq,
            snapshot_seq: newest.map_or(0, |position| position.seq),
            last_ms: now_ms,
            made_at_ms: None,
            requests: Vec::new(),
            stopping: false,
            status: SnapshotStatus { position: newest, ..SnapshotStatus::default() },
        };
        Self { schedule, plan: Mutex::new(plan), changed: Condvar::new() }
    }

    /// The log has a new head.
    pub(crate) fn log_is_at(&self, seq: u64) {
        let mut plan = lock(&self.plan);
        let was_due = plan.rows() >= self.schedule.every_rows;
        plan.head_seq = seq;
        // After a change of history the log may be behind the newest snapshot, which then does not
        // count.
        plan.snapshot_seq = plan.snapshot_seq.min(seq);
        if !was_due && plan.rows() >= self.schedule.every_rows {
            self.changed.notify_one();
        }
    }

    pub(crate) fn request(&self) -> Receiver<Made> {
        let (sender, receiver) = oneshot::oneshot();
        let mut plan = lock(&self.plan);
        if plan.stopping {
            sender.send(Err(Arc::new(SnapshotFailed::Stopping)));
        } else {
            plan.requests.push(sender);
            self.changed.notify_one();
        }
        receiver
    }

    pub(crate) fn stop(&self) {
        let mut plan = lock(&self.plan);
        plan.stopping = true;
        let requests = std::mem::take(&mut plan.requests);
        drop(plan);
        self.changed.notify_all();
        for sender in requests {
            sender.send(Err(Arc::new(SnapshotFailed::Stopping)));
        }
    }

    pub(crate) fn status(&self, now_ms: u64) -> SnapshotStatus {
        let plan = lock(&self.plan);
        let age_ms = plan.made_at_ms.map(|made| now_ms.saturating_sub(made));
        SnapshotStatus { age_ms, ..plan.status.clone() }
    }

    /// Builds snapshots as they come due, until the engine stops. The body of the builder's thread.
    pub(crate) fn run(&self, opener: &dyn LogOpener, clock: &Arc<dyn Clock>) {
        // On Linux this is about the calling thread alone. It is a courtesy: without it all works
        // as well.
        if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
            warn!(%error, "snapshots are built at the priority of everything else");
        }
        while let Some(requests) = self.wait_until_due(clock) {
            let started_ms = clock.elapsed_ms();
            // Not within the call: the lock would be held while the snapshot is built, and stop the
            // turn.
            let until = lock(&self.plan).head_seq;
            let built = build(opener, self.schedule.keep, until);
            let took_ms = clock.elapsed_ms().saturating_sub(started_ms);
            self.note(&built, clock.elapsed_ms(), took_ms);
            let made = built.map_err(Arc::new);
            for sender in requests {
                sender.send(made.clone());
            }
        }
    }

    fn wait_until_due(&self, clock: &Arc<dyn Clock>) -> Option<Vec<Sender<Made>>> {
        let mut plan = lock(&self.plan);
        loop {
            if plan.stopping {
                return None;
            }
            let since_ms = clock.elapsed_ms().saturating_sub(plan.last_ms);
            let every_ms = self.schedule.every_seconds.saturating_mul(1_000);
            let by_rows = plan.rows() >= self.schedule.every_rows.max(1);
            let by_time = plan.rows() > 0 && since_ms >= every_ms;
            if by_rows || by_time || !plan.requests.is_empty() {
                return Some(std::mem::take(&mut plan.requests));
            }
            let timeout =
                Duration::from_millis(every_ms.saturating_sub(since_ms).clamp(1_000, 60_000));
            let waited = self.changed.wait_timeout(plan, timeout);
            plan = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn note(&self, built: &Result<Position, SnapshotFailed>, now_ms: u64, took_ms: u64) {
        let mut plan = lock(&self.plan);
        plan.last_ms = now_ms;
        match built {
            Ok(position) => {
                info!(%position, took_ms, "a snapshot is stored");
                plan.snapshot_seq = position.seq;
                plan.made_at_ms = Some(now_ms);
                plan.status.position = Some(*position);
                plan.status.made += 1;
                plan.status.took_ms = took_ms;
            }
            Err(error) => {
                warn!(error = %Causes(error), "no snapshot; the next start will take longer");
                plan.status.failed += 1;
                // Not again at once: wait for as many rows as for any snapshot.
                plan.snapshot_seq = plan.head_seq;
            }
        }
    }
}

impl Plan {
    fn rows(&self) -> u64 {
        self.head_seq.saturating_sub(self.snapshot_seq)
    }
}

/// Makes a snapshot of the state at row `until` and keeps the newest `keep`; blocks until it is
/// stored.
pub fn build(opener: &dyn LogOpener, keep: usize, until: u64) -> Result<Position, SnapshotFailed> {
    let mut reader = opener.reader().map_err(SnapshotFailed::Store)?;
    let mut replayed =
        from_snapshot(opener, &mut *reader, until).map_err(SnapshotFailed::Replay)?;
    replayed.catch_up(&mut *reader, Some(until)).map_err(SnapshotFailed::Replay)?;
    if replayed.position.seq != until || until == 0 {
        return Err(SnapshotFailed::LogTooShort);
    }
    let meta = SnapshotMeta {
        position: replayed.position,
        level: replayed.state.level(),
        state_sum: replayed.state.sum(),
        bytes: 0,
    };
    let state = &replayed.state;
    let snapshots = opener.snapshots();
    let mut fill = |into: &mut dyn io::Write| {
        let mut written = Ok(());
        state.write_snapshot(&mut |bytes| {
            if written.is_ok() {
                written = into.write_all(bytes);
            }
        });
        written
    };
    snapshots.write(&meta, &mut fill).map_err(SnapshotFailed::Store)?;
    // Snapshots of a history that the log lost have the highest numbers, and must not push out this one.
    let mut is_wanted = |meta: &SnapshotMeta| match reader.row(meta.position.seq) {
        Ok(row) => row.is_some_and(|row| is_of(meta, &row)),
        Err(_unreadable_now) => true,
    };
    if let Err(error) = snapshots.prune(keep.max(1), &mut is_wanted) {
        warn!(error = %Causes(&error), "old snapshots could not be deleted");
    }
    Ok(meta.position)
}
