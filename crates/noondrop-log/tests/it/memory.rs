//! The memory store against the suite, and each of its faults doing what it says.

use noondrop_log::conformance::{self, Subject};
use noondrop_log::memory::{AppendFault, FaultPlan, MemoryLog, ReadFault, SharedMemory};
use noondrop_log::{AppendError, BeginError, GENESIS, Log, LogErrorKind, Row, SnapshotMeta};

use crate::support::{append, assert_none, positions, row_after};

struct MemorySubject(SharedMemory);

impl Subject for MemorySubject {
    fn open(&self) -> Box<dyn Log> {
        Box::new(self.0.log())
    }

    fn branch(&self, seq: u64, rows: &[Row]) {
        self.0.branch(seq, rows.to_vec());
    }

    fn damage_snapshot(&self, meta: &SnapshotMeta, at: usize) {
        self.0.damage_snapshot(meta.position, at);
    }
}

#[test]
fn memory_passes_the_suite() {
    assert_none(&conformance::run(&|| Box::new(MemorySubject(SharedMemory::new()))));
}

/// A log with two rows whose next append fails like this, and what it said.
fn failing(fault: AppendFault) -> (SharedMemory, MemoryLog, Row, Result<(), AppendError>) {
    let memory = SharedMemory::new();
    let mut log = memory.log();
    let last = append(&mut log, 2);
    log.faults().next_append(fault);
    let row = row_after(&last, 10);
    let said = log.append(&row);
    (memory, log, row, said)
}

fn assert_needs_recovery(log: &mut MemoryLog) {
    let error = log.head().unwrap_err();
    assert_eq!(error.kind(), LogErrorKind::NeedsRecovery);
    let error = log.append(&row_after(&GENESIS, 1)).unwrap_err();
    assert!(matches!(error, AppendError::NotWritten(_)), "{error:?}");
}

#[test]
fn not_written_leaves_nothing_and_the_log_usable() {
    let (_, mut log, row, said) = failing(AppendFault::NotWritten);
    assert!(matches!(said, Err(AppendError::NotWritten(_))), "{said:?}");
    assert_eq!(log.head().unwrap().seq, 2);
    log.append(&row).unwrap();
}

#[test]
fn an_unknown_append_is_found_out_by_recovery() {
    let outcomes = [
        (AppendFault::UnknownWritten, 3, 3),
        (AppendFault::UnknownNotWritten, 2, 2),
        (AppendFault::DiskFull, 2, 2),
        (AppendFault::UnknownUntilRecovery, 2, 3),
    ];
    for (fault, seen_before, seen_after) in outcomes {
        let (memory, mut log, _, said) = failing(fault);
        assert!(matches!(said, Err(AppendError::Unknown(_))), "{fault:?}: {said:?}");
        assert_eq!(memory.head().seq, seen_before, "{fault:?}");
        assert_needs_recovery(&mut log);
        assert_eq!(log.recover().unwrap().seq, seen_after, "{fault:?}");
        assert_eq!(append(&mut log, 1).seq, seen_after + 1, "{fault:?}");
    }
}

#[test]
fn a_half_synced_row_does_not_come_back_over_the_row_of_another() {
    let (memory, mut log, _, _) = failing(AppendFault::UnknownUntilRecovery);
    let mut other = memory.log();
    // Opening the other log was a start, and starts bring to light what is there.
    assert_eq!(other.head().unwrap().seq, 3);
    assert_eq!(log.recover().unwrap().seq, 3);

    let memory = SharedMemory::new();
    let (mut log, mut other) = (memory.log(), memory.log());
    log.faults().next_append(AppendFault::UnknownUntilRecovery);
    log.append(&row_after(&GENESIS, 10)).unwrap_err();
    let winner = append(&mut other, 1);
    assert_eq!(log.recover().unwrap(), winner);
}

#[test]
fn a_lying_sync_is_lost_with_all_that_follows_at_the_next_crash() {
    let (memory, mut log, _, said) = failing(AppendFault::LyingSync);
    said.unwrap();
    append(&mut log, 2);
    assert_eq!(memory.head().seq, 5);
    assert_eq!(memory.crash(), 3);
    assert_needs_recovery(&mut log);
    assert_eq!(log.recover().unwrap().seq, 2);
    assert_eq!(memory.crash(), 0, "what recovery has seen is durable");
}

#[test]
fn a_torn_tail_keeps_as_much_as_it_is_told() {
    let (memory, mut log, row, _) = failing(AppendFault::LyingSync);
    append(&mut log, 2);
    assert_eq!(memory.crash_keeping(1), 2);
    assert_eq!(log.recover().unwrap(), row.position());
}

#[test]
fn a_full_disk_stays_full_until_it_is_not() {
    let memory = SharedMemory::new();
    let mut log = memory.log();
    append(&mut log, 2);
    memory.set_full(true);
    let row = row_after(&memory.head(), 10);
    assert!(log.append(&row).unwrap_err().is_disk_full());
    assert!(log.recover().unwrap_err().is_disk_full());
    memory.set_full(false);
    assert_eq!(log.recover().unwrap().seq, 2);
    log.append(&row).unwrap();
}

#[test]
fn a_stale_begin_ends_in_a_conflict() {
    let memory = SharedMemory::new();
    let (mut log, mut other) = (memory.log(), memory.log());
    append(&mut other, 1);
    log.faults().next_begin(ReadFault::Stale);
    assert!(log.begin(GENESIS).unwrap().rows.is_empty());
    let outcome = log.append(&row_after(&GENESIS, 10));
    assert!(matches!(outcome, Err(AppendError::Conflict)), "{outcome:?}");
    assert_eq!(log.begin(GENESIS).unwrap().rows.len(), 1);
}

#[test]
fn a_log_that_went_back_between_begin_and_append_takes_no_orphan() {
    let memory = SharedMemory::new();
    let mut log = memory.log();
    let last = append(&mut log, 3);
    log.begin(last).unwrap();
    assert_eq!(memory.go_back_to(1).len(), 2);
    log.append(&row_after(&last, 10)).unwrap_err();
    let error = log.begin(last).unwrap_err();
    assert!(matches!(error, BeginError::HistoryChanged { .. }), "{error:?}");
}

#[test]
fn a_plan_fails_the_calls_it_names() {
    let memory = SharedMemory::new();
    memory.set_clock(Some(77));
    let mut log = memory.log();
    log.faults().follow(FaultPlan {
        appends: [(1, AppendFault::NotWritten)].into(),
        begins: [(1, ReadFault::Fails)].into(),
        heads: [(0, ReadFault::Fails)].into(),
        recoveries: [(0, ReadFault::Fails)].into(),
        reads: [(1, ReadFault::Fails)].into(),
    });
    log.head().unwrap_err();
    assert_eq!(append(&mut log, 1).seq, 1);
    log.append(&row_after(&memory.head(), 1)).unwrap_err();
    assert_eq!(append(&mut log, 1).seq, 2);
    assert_eq!(log.begin(GENESIS).unwrap().clock, Some(77));
    log.begin(GENESIS).unwrap_err();
    log.recover().unwrap_err();
    let mut reader = log.opener().reader().unwrap();
    reader.head().unwrap();
    reader.head().unwrap_err();
    assert_eq!(positions(&mut *reader).len(), 2);
}
