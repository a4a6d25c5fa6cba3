//! Reading along: from the start in pages, then row by row; back where the log went back; waiting
//! for a position.

use std::thread;
use std::time::Duration;

use noondrop_engine::{EngineOptions, Followed, WaitError};
use noondrop_log::memory::SharedMemory;
use noondrop_log::{GENESIS, Position};

use crate::support::{engine, eventually};

#[test]
fn a_follower_catches_up_and_is_then_woken_for_each_row() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), EngineOptions::default(), 10_000);
    let handle = engine.handle();
    for n in 0..1_500 {
        handle.execute_blocking(shop.hold(&format!("k{n}"), "ann").into()).expect("a reply");
    }
    let mut follower = handle.follow("test", GENESIS);
    let follows = thread::spawn(move || {
        let mut rows = Vec::new();
        while let Some(followed) = follower.next_blocking().expect("the log is read") {
            match followed {
                Followed::Rows(page) => {
                    assert!(page.len() <= 1_024, "in bounded pages");
                    rows.extend(page);
                }
                Followed::Rewound { to } => panic!("rewound to {to}"),
            }
        }
        rows
    });
    let caught_up = || handle.status().followers.iter().all(|f| f.rows_behind == 0);
    eventually("it caught up", caught_up);
    for n in 0..10 {
        handle.execute_blocking(shop.hold(&format!("l{n}"), "ann").into()).expect("a reply");
        eventually("it was woken", caught_up);
    }
    engine.stop().expect("stopped");
    assert!(follows.join().expect("no panic") == memory.rows(), "all rows, in order, once");
}

#[test]
fn a_follower_goes_back_to_what_both_histories_have() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), EngineOptions::default(), 100);
    let handle = engine.handle();
    let mut follower = handle.follow("test", GENESIS);
    let mut common: Option<Position> = None;
    for n in 0..6 {
        let reply = handle.execute_blocking(shop.hold(&format!("k{n}"), "ann").into());
        let reply = reply.expect("a reply");
        if n == 2 {
            common = Some(reply.position);
        }
        assert!(matches!(follower.try_next(), Ok(Some(Followed::Rows(_)))));
    }
    let common = common.expect("set in the loop");
    memory.go_back_to(common.seq);
    handle.execute_blocking(shop.hold("another", "bob").into()).expect("a reply");
    let rewound = follower.try_next().expect("the log is read");
    assert_eq!(rewound, Some(Followed::Rewound { to: common }));
    let Ok(Some(Followed::Rows(rows))) = follower.try_next() else { panic!("rows follow") };
    assert_eq!(rows.len(), 1);
    assert_eq!(follower.position(), handle.position());
    assert!(matches!(follower.try_next(), Ok(None)));
    engine.stop().expect("stopped");
}

#[test]
fn waiting_for_a_position_ends_when_it_is_there_or_can_not_come() {
    let memory = SharedMemory::new();
    let (engine, shop) = engine(memory.log(), EngineOptions::default(), 100);
    let handle = engine.handle();
    let now = handle.position();
    let long = Duration::from_secs(60);
    assert_eq!(handle.wait_for_blocking(now.short(), long), Ok(()));
    assert_eq!(handle.wait_for_blocking(GENESIS.short(), long), Ok(()));
    let first = memory.rows()[0].position();
    assert_eq!(handle.wait_for_blocking(first.short(), long), Ok(()));
    let other = Position { seq: now.seq, digest: [9; 32] };
    assert_eq!(handle.wait_for_blocking(other.short(), long), Err(WaitError::HistoryChanged));
    let never = Position { seq: now.seq + 1_000, digest: [9; 32] };
    let soon = Duration::from_millis(1);
    assert_eq!(handle.wait_for_blocking(never.short(), soon), Err(WaitError::TimedOut));

    // A position that is not known here yet: another replica's answer, read through us.
    let next = Position { seq: now.seq + 1, digest: [9; 32] };
    let waits = {
        let handle = handle.clone();
        thread::spawn(move || handle.wait_for_blocking(next.short(), long))
    };
    handle.execute_blocking(shop.hold("k", "ann").into()).expect("a reply");
    let known = waits.join().expect("no panic");
    assert_eq!(known, Err(WaitError::HistoryChanged), "the row there is another one");
    engine.stop().expect("stopped");
}
