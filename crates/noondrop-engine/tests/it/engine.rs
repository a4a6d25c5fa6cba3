//! Whole engines: threads that race, callers that go away, storms, stops.

use std::collections::HashSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;

use noondrop_core::Outcome;
use noondrop_engine::{Call, EngineOptions, Fault, Handle, Phase, Reply};
use noondrop_log::memory::SharedMemory;
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};

use crate::support::{
    HookedLog, Hooks, Paused, counts, engine, eventually, hold_of, is_hold, name, run_together,
};

fn sqlite(directory: &tempfile::TempDir) -> SqliteLog {
    SqliteLog::open(SqliteOptions::new(directory.path().join("log.db"))).expect("a fresh log")
}

fn options() -> EngineOptions {
    EngineOptions { stop_ms_max: 2_000, ..EngineOptions::default() }
}

/// Starts all calls behind a barrier, each on a thread of its own.
fn race(handle: &Handle, calls: Vec<Call>) -> Vec<Result<Reply, Fault>> {
    let barrier = Arc::new(Barrier::new(calls.len()));
    let racers: Vec<_> = calls
        .into_iter()
        .map(|call| {
            let (handle, barrier) = (handle.clone(), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                handle.execute_blocking(call)
            })
        })
        .collect();
    racers.into_iter().map(|racer| racer.join().expect("no racer panics")).collect()
}

#[test]
fn the_last_unit_goes_to_exactly_one_of_many() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, shop) = engine(sqlite(&directory), options(), 1);
    let calls = (0..32).map(|n| shop.hold(&format!("k{n}"), &format!("b{n}")).into()).collect();
    let replies = race(&engine.handle(), calls);
    let winners = replies
        .iter()
        .filter(|reply| is_hold(&reply.as_ref().expect("everyone is answered").outcome));
    assert_eq!(winners.count(), 1);
    let counts = engine.handle().query_blocking(|state, _| counts(state)).expect("an answer");
    assert_eq!((counts.value.held, counts.value.available()), (1, 0));
    engine.stop().expect("stopped");
}

#[test]
fn fifty_duplicates_of_one_key_are_one_hold_and_forty_nine_replays() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, shop) = engine(sqlite(&directory), options(), 100);
    let calls = (0..50).map(|_| shop.hold("one key", "ann").into()).collect();
    let replies: Vec<Reply> =
        race(&engine.handle(), calls).into_iter().map(|reply| reply.expect("a reply")).collect();
    assert_eq!(replies.iter().filter(|reply| reply.replayed).count(), 49);
    let mut bytes: HashSet<Vec<u8>> = HashSet::new();
    for reply in &replies {
        bytes.insert(minicbor::to_vec(hold_of(reply)).expect("to memory"));
    }
    assert_eq!(bytes.len(), 1, "equal to the last byte");
    let held = engine.handle().query_blocking(|state, _| counts(state).held).expect("an answer");
    assert_eq!(held.value, 1);
    engine.stop().expect("stopped");
}

#[test]
fn a_caller_that_goes_away_does_not_take_its_command_back() {
    let (engine, shop) = engine(SharedMemory::new().log(), options(), 10);
    let handle = engine.handle();
    let hold = shop.hold("k1", "ann");
    {
        let mut call = pin!(handle.execute(hold.clone().into()));
        let paused = Paused::engine(&handle);
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        drop(paused);
        // Here the caller hangs up.
    }
    eventually("the command is decided", || {
        handle.query_blocking(|state, _| counts(state).held).expect("an answer").value == 1
    });
    assert!(handle.execute_blocking(hold.into()).expect("a reply").replayed);
    engine.stop().expect("stopped");
}

#[test]
fn calls_of_one_runtime_thread_go_in_together_and_come_back_together() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), options(), 1_000);
    let rows = memory.rows().len();
    let handle = engine.handle();
    let mut tasks: Vec<Pin<Box<dyn Future<Output = Option<Reply>>>>> = Vec::new();
    // The attendant is polled first, as a runtime does that spawns it before it accepts.
    let attendant = handle.runtime_task();
    let (all_done, done) = (Arc::new(()), ());
    let alive = Arc::downgrade(&all_done);
    tasks.push(Box::pin(async move {
        let mut attendant = pin!(attendant);
        std::future::poll_fn(move |context| {
            let _ = attendant.as_mut().poll(context);
            if alive.strong_count() == 0 {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        let () = done;
        None
    }));
    for n in 0..200 {
        let (handle, all_done) = (handle.clone(), Arc::clone(&all_done));
        let call = shop.hold(&format!("k{n}"), "ann").into();
        tasks.push(Box::pin(async move {
            let reply = handle.execute(call).await.expect("a reply");
            drop(all_done);
            Some(reply)
        }));
    }
    drop(all_done);
    // The last one calls twice: the second call wakes the attendant, who then sees that all are
    // done and leaves.
    let last = handle.clone();
    let call = shop.hold("k0", "ann");
    tasks.push(Box::pin(async move {
        let first = last.execute(call.clone().into()).await.expect("a reply");
        let second = last.execute(call.into()).await.expect("a reply, without an attendant");
        assert!(first.replayed && second.replayed);
        Some(second)
    }));
    let replies: Vec<Reply> = run_together(tasks).into_iter().flatten().collect();
    assert_eq!(replies.len(), 201);
    assert_eq!(memory.rows().len(), rows + 1, "one turn for all of them");
    engine.stop().expect("stopped");
}

#[test]
fn what_settles_gets_its_share_of_the_turn_in_a_storm_of_new_holds() {
    let options = EngineOptions { turn_commands_max: 100, ..options() };
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), options, 10_000);
    let handle = engine.handle();
    let held = handle.execute_blocking(shop.hold("k", "ann").into()).expect("a reply");
    let paused = Paused::engine(&handle);
    let storm = {
        let (handle, shop) = (handle.clone(), shop.clone());
        let calls = (0..5_000).map(|n| shop.hold(&format!("s{n}"), "bob").into()).collect();
        thread::spawn(move || handle.execute_many_blocking(calls))
    };
    eventually("the storm waits", || handle.status().queue.creates == 5_000);
    let confirm = {
        let (handle, call) = (handle.clone(), shop.confirm(hold_of(&held)).into());
        thread::spawn(move || handle.execute_blocking(call))
    };
    eventually("the confirm waits", || handle.status().queue.settles == 1);
    let next = handle.position().seq + 1;
    paused.release();
    let confirmed = confirm.join().expect("no panic").expect("a reply");
    assert_eq!(confirmed.position.seq, next, "in the very next turn");
    let storm = storm.join().expect("no panic");
    assert!(storm.into_iter().all(|reply| is_hold(&reply.expect("a reply").outcome)));
    engine.stop().expect("stopped");
}

#[test]
fn a_full_queue_says_so_at_once_and_keeps_room_for_what_settles() {
    let options = EngineOptions { queue_max: 16, ..options() };
    let (engine, shop) = engine(SharedMemory::new().log(), options, 100);
    let handle = engine.handle();
    let held = handle.execute_blocking(shop.hold("k", "ann").into()).expect("a reply");
    let paused = Paused::engine(&handle);
    let storm = {
        let (handle, shop) = (handle.clone(), shop.clone());
        let calls = (0..20).map(|n| shop.hold(&format!("s{n}"), "bob").into()).collect();
        thread::spawn(move || handle.execute_many_blocking(calls))
    };
    eventually("the queue is full", || handle.status().queue.creates == 12);
    let turned_away = handle.execute_blocking(shop.hold("late", "eve").into());
    assert_eq!(turned_away, Err(Fault::Overloaded));
    let confirm = {
        let (handle, call) = (handle.clone(), shop.confirm(hold_of(&held)).into());
        thread::spawn(move || handle.execute_blocking(call))
    };
    eventually("the confirm got in", || handle.status().queue.settles == 1);
    paused.release();
    let storm = storm.join().expect("no panic");
    assert_eq!(storm.iter().filter(|reply| reply.is_ok()).count(), 12);
    assert_eq!(storm.iter().filter(|reply| **reply == Err(Fault::Overloaded)).count(), 8);
    assert!(is_hold(&confirm.join().expect("no panic").expect("a reply").outcome));
    engine.stop().expect("stopped");
}

#[test]
fn reads_go_on_and_show_the_durable_state_while_the_store_fails() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), options(), 10);
    let handle = engine.handle();
    let first = handle.execute_blocking(shop.hold("k1", "ann").into()).expect("a reply");
    memory.set_full(true);
    let waiting = {
        let (handle, call) = (handle.clone(), shop.hold("k2", "bob").into());
        thread::spawn(move || handle.execute_blocking(call))
    };
    eventually("the engine noticed", || matches!(handle.status().phase, Phase::Failing { .. }));
    let read = handle.query_blocking(|state, _| counts(state).held).expect("reads go on");
    assert_eq!((read.value, read.position), (1, first.position));
    let replay = handle.execute_blocking(shop.hold("k1", "ann").into()).expect("replays go on");
    assert!(replay.replayed);
    memory.set_full(false);
    let second = waiting.join().expect("no panic").expect("answered once it is durable");
    assert!(is_hold(&second.outcome) && second.position.seq > first.position.seq);
    eventually("the engine is well", || handle.status().phase == Phase::Ready);
    engine.stop().expect("stopped");
}

#[test]
fn a_stop_answers_everyone_and_takes_no_one_new() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), options(), 10_000);
    let handle = engine.handle();
    let paused = Paused::engine(&handle);
    let waiting = {
        let (handle, shop) = (handle.clone(), shop.clone());
        let calls = (0..1_000).map(|n| shop.hold(&format!("s{n}"), "bob").into()).collect();
        thread::spawn(move || handle.execute_many_blocking(calls))
    };
    eventually("all wait", || handle.status().queue.creates == 1_000);
    let stopped = thread::spawn(move || engine.stop());
    eventually("the door is closed", || handle.status().phase == Phase::Stopping);
    let late = handle.execute_blocking(shop.hold("late", "eve").into());
    assert_eq!(late, Err(Fault::Stopping));
    paused.release();
    stopped.join().expect("no panic").expect("in time");
    let replies = waiting.join().expect("no panic");
    assert!(replies.into_iter().all(|reply| is_hold(&reply.expect("decided").outcome)));
    assert_eq!(handle.status().phase, Phase::Stopped);
    assert_eq!(handle.query_blocking(|_, _| ()), Err(Fault::Stopping));
    assert_eq!(handle.execute_blocking(shop.hold("later", "eve").into()), Err(Fault::Stopping));
}

#[test]
fn a_stop_does_not_wait_for_ever_for_a_store_that_fails() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), EngineOptions { stop_ms_max: 10, ..options() }, 10);
    let handle = engine.handle();
    memory.set_full(true);
    let waiting = {
        let (handle, call) = (handle.clone(), shop.hold("k", "ann").into());
        thread::spawn(move || handle.execute_blocking(call))
    };
    eventually("the engine noticed", || matches!(handle.status().phase, Phase::Failing { .. }));
    engine.stop().expect_err("one call was left");
    let fault = waiting.join().expect("no panic").expect_err("not decided");
    assert_eq!(fault, Fault::OutcomeUnknown);
}

#[test]
fn a_query_that_panics_is_its_askers_trouble_alone() {
    let (engine, shop) = engine(SharedMemory::new().log(), options(), 10);
    let handle = engine.handle();
    let broken = handle.query_blocking(|_, _| panic!("a planted bug"));
    assert!(matches!(broken, Err(Fault::Internal(_))));
    let reply = handle.execute_blocking(shop.hold("k", "ann").into()).expect("a reply");
    assert!(is_hold(&reply.outcome));
    engine.stop().expect("stopped");
}

#[test]
fn the_status_counts_what_happened() {
    let (engine, shop) = engine(SharedMemory::new().log(), options(), 1);
    let handle = engine.handle();
    for (key, buyer) in [("k1", "ann"), ("k2", "bob"), ("k1", "ann")] {
        handle.execute_blocking(shop.hold(key, buyer).into()).expect("a reply");
    }
    let mut nowhere = shop.hold("k3", "eve");
    nowhere.shop = name("elsewhere");
    let refused = handle.execute_blocking(nowhere.into()).expect("a reply");
    assert!(matches!(refused.outcome, Outcome::Refused(_)));
    let status = handle.status();
    assert_eq!(status.phase, Phase::Ready);
    assert_eq!(status.tally.replays, 1);
    assert_eq!(status.counters.live_holds, 1);
    let count = |code| {
        let creates = status.tally.outcomes.iter().filter(|o| o.operation == "holds.create");
        creates.filter(|o| o.code == code).map(|o| o.count).sum::<u64>()
    };
    assert_eq!((count("done"), count("all_held"), count("shop_not_found")), (1, 1, 1));
    assert_eq!(status.position, handle.position());
    assert!(status.tally.turn_us.total() >= 4);
    engine.stop().expect("stopped");
}

#[test]
fn a_snapshot_being_written_stops_no_turn() {
    let hooks = Arc::new(Hooks::default());
    let log = HookedLog { inner: SharedMemory::new().log(), hooks: Arc::clone(&hooks) };
    let (engine, shop) = engine(log, options(), 100);
    let handle = engine.handle();
    let gate = hooks.snapshot_gate.lock().expect("no panic behind the gate");
    let snapshot = {
        let handle = handle.clone();
        thread::spawn(move || handle.snapshot_now_blocking())
    };
    eventually("the snapshot is on its way", || hooks.writing_snapshot.load(Ordering::SeqCst));
    let reply = handle.execute_blocking(shop.hold("k", "ann").into()).expect("a reply");
    assert!(is_hold(&reply.outcome));
    drop(gate);
    let at = snapshot.join().expect("no panic").expect("a snapshot");
    assert!(at.seq < reply.position.seq, "of the state before");
    engine.stop().expect("stopped");
}

#[test]
fn a_bug_beyond_all_guards_leaves_no_one_waiting_and_the_engine_running() {
    let hooks = Arc::new(Hooks::default());
    let log = HookedLog { inner: SharedMemory::new().log(), hooks: Arc::clone(&hooks) };
    let (engine, shop) = engine(log, options(), 100);
    let handle = engine.handle();
    hooks.append_panics.store(true, Ordering::SeqCst);
    let lost = handle.execute_blocking(shop.hold("k1", "ann").into());
    assert_eq!(lost, Err(Fault::OutcomeUnknown));
    let again = handle.execute_blocking(shop.hold("k1", "ann").into()).expect("a reply");
    assert!(!again.replayed, "its row was never written");

    // The same for a caller that is a future.
    hooks.append_panics.store(true, Ordering::SeqCst);
    let call = shop.hold("k2", "bob");
    let (handle_of_future, call_again) = (handle.clone(), call.clone());
    let future: Pin<Box<dyn Future<Output = _>>> =
        Box::pin(async move { handle_of_future.execute(call_again.into()).await });
    assert_eq!(run_together(vec![future]), [Err(Fault::OutcomeUnknown)]);
    assert!(is_hold(&handle.execute_blocking(call.into()).expect("a reply").outcome));
    assert_eq!(handle.status().tally.reloads, 2);
    engine.stop().expect("stopped");
}
