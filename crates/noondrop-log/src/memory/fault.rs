//! What can be made to fail in a [`MemoryLog`](super::MemoryLog), and the plan of when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens to one append instead of what should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFault {
    /// Nothing is written, and the log says so.
    NotWritten,
    /// There is no room. Nothing is written, but the log can not be sure. While the disk stays
    /// full, see [`SharedMemory::set_full`](super::SharedMemory::set_full).
    DiskFull,
    /// The row is written, everyone sees it, and the log says that it does not know.
    UnknownWritten,
    /// Nothing is written, and the log says that it does not know.
    UnknownNotWritten,
    /// A half-failed sync: the log says that it does not know, nobody sees the row, and it is
    /// there after the next recovery or crash all the same, unless another took the position.
    UnknownUntilRecovery,
    /// The log says that all is well, everyone sees the row, and the next crash takes it and
    /// every row after it.
    LyingSync,
    /// Nothing is written, and the log says that all is well. For negative controls only: no
    /// engine can notice this before it looks.
    Swallowed,
}

/// What happens to one read (head, begin, recover, or a reader's) instead of what should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// It fails.
    Fails,
    /// It answers from the past: it sees nothing beyond the position that it was asked from. As a
    /// `begin` on a stale snapshot does, which an append then has to notice. Elsewhere it fails.
    Stale,
}

/// When each operation of one log fails: by the number of the call, counted from 0.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// The faults of `append`.
    pub appends: BTreeMap<u64, AppendFault>,
    /// The faults of `begin`.
    pub begins: BTreeMap<u64, ReadFault>,
    /// The faults of `head`.
    pub heads: BTreeMap<u64, ReadFault>,
    /// The faults of `recover`.
    pub recoveries: BTreeMap<u64, ReadFault>,
    /// The faults of all reads by the readers of this log together.
    pub reads: BTreeMap<u64, ReadFault>,
}

/// The handle by which a caller makes one log fail. Clones are the same handle, so it can be kept
/// while the log itself is moved into an engine.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Mutex<Schedules>>,
}

#[derive(Debug, Default)]
pub(super) struct Schedules {
    pub(super) appends: Schedule<AppendFault>,
    pub(super) begins: Schedule<ReadFault>,
    pub(super) heads: Schedule<ReadFault>,
    pub(super) recoveries: Schedule<ReadFault>,
    pub(super) reads: Schedule<ReadFault>,
}

impl Faults {
    /// Follows this plan from now on: its numbers count from the next call of each operation.
    pub fn follow(&self, plan: FaultPlan) {
        let mut state = self.lock();
        state.appends.follow(plan.appends);
        state.begins.follow(plan.begins);
        state.heads.follow(plan.heads);
        state.recoveries.follow(plan.recoveries);
        state.reads.follow(plan.reads);
    }

    /// Makes the next append fail.
    pub fn next_append(&self, fault: AppendFault) {
        self.lock().appends.next(fault);
    }

    /// Makes the next `begin` fail.
    pub fn next_begin(&self, fault: ReadFault) {
        self.lock().begins.next(fault);
    }

    /// Makes the next `head` fail.
    pub fn next_head(&self, fault: ReadFault) {
        self.lock().heads.next(fault);
    }

    /// Makes the next `recover` fail.
    pub fn next_recovery(&self, fault: ReadFault) {
        self.lock().recoveries.next(fault);
    }

    /// Makes the next read by a reader fail.
    pub fn next_read(&self, fault: ReadFault) {
        self.lock().reads.next(fault);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Schedules> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The faults of one operation.
#[derive(Debug)]
pub(super) struct Schedule<Fault> {
    calls: u64,
    faults: BTreeMap<u64, Fault>,
}

impl<Fault> Default for Schedule<Fault> {
    fn default() -> Self {
        Self { calls: 0, faults: BTreeMap::new() }
    }
}

impl<Fault> Schedule<Fault> {
    fn follow(&mut self, faults: BTreeMap<u64, Fault>) {
        *self = Self { calls: 0, faults };
    }

    fn next(&mut self, fault: Fault) {
        self.faults.insert(self.calls, fault);
    }

    /// Counts a call and says what is to go wrong with it.
    pub(super) fn call(&mut self) -> Option<Fault> {
        let fault = self.faults.remove(&self.calls);
        self.calls += 1;
        fault
    }
}
