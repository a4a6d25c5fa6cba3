//! Starting again: from the log alone, from a snapshot and the tail, from a log that this program
//! must not read.

use noondrop_core::{LossAccepted, Seq, Settings, codec};
use noondrop_engine::{Engine, EngineOptions, StartError};
use noondrop_log::memory::SharedMemory;
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use noondrop_log::{Row, Unsealed};

use crate::support::{Shop, TestClock, World, counts, engine, hold_of, sum};

fn sell(engine: &Engine, shop: &Shop, keys: std::ops::Range<u32>) {
    let handle = engine.handle();
    for n in keys {
        let held = handle.execute_blocking(shop.hold(&format!("k{n}"), "ann").into());
        let held = held.expect("a reply");
        if n % 3 == 0 {
            handle.execute_blocking(shop.confirm(hold_of(&held)).into()).expect("a reply");
        }
    }
}

fn state_sum(engine: &Engine) -> [u8; 16] {
    engine.handle().query_blocking(|state, _| sum(state)).expect("an answer").value
}

#[test]
fn a_restart_comes_to_the_same_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || SqliteLog::open(SqliteOptions::new(directory.path().join("log.db")));
    let (first, shop) = engine(open().expect("fresh"), EngineOptions::default(), 100);
    sell(&first, &shop, 0..30);
    let (before, position) = (state_sum(&first), first.handle().position());
    first.stop().expect("stopped");

    let again = Engine::start(Box::new(open().expect("free again")), EngineOptions::default())
        .expect("starts");
    assert_eq!(again.handle().position(), position, "nothing to tell, so no row");
    assert_eq!(state_sum(&again), before);
    let replay = again.handle().execute_blocking(shop.hold("k7", "ann").into()).expect("a reply");
    assert!(replay.replayed);
    again.stop().expect("stopped");
}

#[test]
fn a_snapshot_and_the_tail_equal_a_full_replay() {
    let memory = SharedMemory::new();
    let (first, shop) = engine(memory.log(), EngineOptions::default(), 1_000);
    sell(&first, &shop, 0..50);
    let at = first.handle().snapshot_now_blocking().expect("a snapshot");
    assert_eq!(at, first.handle().position());
    sell(&first, &shop, 50..80);
    let later = first.handle().snapshot_now_blocking().expect("from the snapshot before");
    sell(&first, &shop, 80..100);
    let before = state_sum(&first);
    assert_eq!(first.handle().status().snapshots.position, Some(later));
    first.stop().expect("stopped");
    assert_eq!(memory.snapshots().list().expect("listed").len(), 2);

    let from_snapshot = Engine::start(Box::new(memory.log()), EngineOptions::default());
    let from_snapshot = from_snapshot.expect("starts");
    assert_eq!(state_sum(&from_snapshot), before);
    from_snapshot.stop().expect("stopped");

    let bare = SharedMemory::new();
    bare.branch(0, memory.rows());
    let from_rows = Engine::start(Box::new(bare.log()), EngineOptions::default());
    let from_rows = from_rows.expect("starts");
    assert_eq!(state_sum(&from_rows), before);
    let recount = from_rows.handle().query_blocking(|state, _| state.recount());
    recount.expect("an answer").value.expect("every invariant holds");
    from_rows.stop().expect("stopped");
}

#[test]
fn a_damaged_snapshot_or_one_of_another_history_only_costs_time() {
    let memory = SharedMemory::new();
    let (first, shop) = engine(memory.log(), EngineOptions::default(), 100);
    sell(&first, &shop, 0..10);
    let old = first.handle().snapshot_now_blocking().expect("a snapshot");
    sell(&first, &shop, 10..20);
    let new = first.handle().snapshot_now_blocking().expect("a snapshot");
    let before = state_sum(&first);
    first.stop().expect("stopped");
    for (position, at) in [(new, 3), (new, 4_000), (old, 200)] {
        memory.damage_snapshot(position, at);
        let again = Engine::start(Box::new(memory.log()), EngineOptions::default());
        let again = again.expect("starts all the same");
        assert_eq!(state_sum(&again), before);
        again.stop().expect("stopped");
        memory.damage_snapshot(position, at);
    }
    memory.go_back_to(old.seq - 1);
    let again = Engine::start(Box::new(memory.log()), EngineOptions::default());
    again.expect("starts without either").stop().expect("stopped");
}

#[test]
fn snapshots_are_made_by_themselves_after_enough_rows() {
    let memory = SharedMemory::new();
    let options = EngineOptions { snapshot_every_rows: 10, ..EngineOptions::default() };
    let (engine, shop) = engine(memory.log(), options, 100);
    sell(&engine, &shop, 0..20);
    crate::support::eventually("a snapshot is made", || {
        engine.handle().status().snapshots.made > 0
    });
    engine.stop().expect("stopped");
}

#[test]
fn a_log_of_a_higher_level_stops_the_start_in_plain_words() {
    let world = World::new(1);
    let last = world.memory.rows().pop().expect("a row");
    let future = Unsealed { seq: last.seq + 1, at: last.at, level: 99, ..Unsealed::default() };
    world.memory.branch(last.seq, vec![Row::seal(&last.digest, future)]);
    let error = Engine::start(Box::new(world.memory.log()), EngineOptions::default());
    let error = error.expect_err("it must not be read");
    assert!(matches!(error, StartError::Replay(_)), "{error:?}");
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    assert!(text.contains("format level 99"), "{text}");
}

#[test]
fn a_row_that_leads_to_another_state_here_stops_the_start() {
    let world = World::new(1);
    let mut rows = world.memory.rows();
    let last = rows.pop().expect("a row");
    let wrong = Unsealed {
        seq: last.seq,
        at: last.at,
        level: last.level,
        facts: last.facts.clone(),
        private: last.private.clone(),
        nonce: last.nonce,
        state_sum: [7; 16],
        ..Unsealed::default()
    };
    let before = rows.pop().expect("a row");
    world.memory.branch(before.seq, vec![Row::seal(&before.digest, wrong)]);
    let error = Engine::start(Box::new(world.memory.log()), EngineOptions::default());
    let error = error.expect_err("the sums differ");
    assert!(error.to_string().contains("recover"), "{error}");
}

#[test]
fn changed_settings_and_an_accepted_loss_are_told_to_the_log_once() {
    let world = World::new(1);
    let settings = Settings { keys_max: 5_000, ..Settings::default() };
    let loss = LossAccepted { acknowledged: Seq(99), found: Seq(world.sequencer.position().seq) };
    let options = EngineOptions { settings, accepted_loss: Some(loss), ..EngineOptions::default() };
    let clock = TestClock::at(crate::support::NOON_MS);
    let told = World::on(world.memory.clone(), options, clock.clone(), 2);
    let row = told.memory.rows().pop().expect("a row");
    let entries = codec::decode_row(row.level, &row.facts, &row.private).expect("readable");
    let kinds: Vec<_> = entries.iter().map(|entry| entry.fact.kind()).collect();
    assert_eq!(kinds, ["loss.accepted", "settings.changed"]);
    assert_eq!(told.state().settings(), settings);

    let rows = told.memory.rows().len();
    let options = EngineOptions { settings, ..EngineOptions::default() };
    let again = World::on(world.memory.clone(), options, clock, 3);
    assert_eq!(again.memory.rows().len(), rows);
    assert_eq!(counts(again.state()).total, 1);
}

#[test]
fn a_store_that_fails_at_the_first_row_fails_the_start() {
    let memory = SharedMemory::new();
    memory.set_full(true);
    let error = Engine::start(Box::new(memory.log()), EngineOptions::default());
    let error = error.expect_err("there is no room");
    assert!(matches!(error, StartError::Append(_)), "{error:?}");
}
