//! Log time: what the clock may do to it, and what it may not.

use std::collections::VecDeque;

use noondrop_core::{LogRestored, LossAccepted, Outcome, SaleState, Seq, Timestamp, codec};
use noondrop_engine::{Call, EngineOptions, Pending, Ticket};

use crate::support::{NOON_MS, TestClock, World, counts, hold_of, reply};

#[test]
fn a_stepped_clock_neither_makes_holds_lapse_nor_live_on() {
    let mut world = World::new(10);
    let held = reply(world.turn(vec![world.shop.hold("k1", "ann")]));
    world.clock.set_wall(NOON_MS + 3_600_000);
    world.clock.advance(1_000);
    let next = reply(world.turn(vec![world.shop.hold("k2", "bob")]));
    assert_eq!(next.at.0, held.at.0 + 1_000, "an hour ahead by a step, a second by itself");
    assert_eq!(counts(world.state()).held, 2);
    assert_eq!(world.sequencer.tally().clock_steps, 1);

    world.clock.set_wall(NOON_MS - 3_600_000);
    world.clock.advance(60_000);
    world.turn(Vec::new());
    assert_eq!(counts(world.state()).held, 0, "its minute is over, whatever the clock says");
    world.check();
}

#[test]
fn an_operator_accepts_a_step_and_time_still_never_goes_back() {
    let mut world = World::new(10);
    world.clock.set_wall(NOON_MS + 3_600_000);
    world.sequencer.accept_clock_step();
    let ahead = reply(world.turn(vec![world.shop.hold("k1", "ann")]));
    assert_eq!(ahead.at.0, NOON_MS + 3_600_000);
    world.clock.set_wall(NOON_MS);
    world.sequencer.accept_clock_step();
    world.clock.advance(100);
    let slowed = reply(world.turn(vec![world.shop.hold("k2", "ann")]));
    assert_eq!(slowed.at, ahead.at, "behind the last row it starts from there");
    world.clock.advance(100);
    let slowed = reply(world.turn(vec![world.shop.hold("k3", "ann")]));
    assert_eq!(slowed.at.0, ahead.at.0 + 50, "and goes at half speed");
}

#[test]
fn a_restart_with_an_earlier_clock_does_not_freeze_time() {
    let mut world = World::new(10);
    let last = reply(world.turn(vec![world.shop.hold("k1", "ann")]));
    let clock = TestClock::at(NOON_MS - 10_000);
    let options = EngineOptions::default();
    let mut world = World::on(world.memory.clone(), options, clock.clone(), 2);
    let mut before = last.at.0;
    for n in 0..10 {
        world.clock.advance(4_000);
        let next = reply(world.turn(vec![world.shop.hold(&format!("r{n}"), "ann")]));
        assert!(next.at.0 > before, "it moves, and forwards");
        before = next.at.0;
    }
    assert_eq!(before, noondrop_engine::Clock::wall_ms(&*clock), "until they meet");
    world.check();
}

#[test]
fn holds_lapse_by_themselves_at_the_next_deadline() {
    let mut world = World::new(1);
    let held = reply(world.turn(vec![world.shop.hold("k1", "ann")]));
    let now = noondrop_engine::Clock::elapsed_ms(&*world.clock);
    assert_eq!(world.sequencer.next_deadline_ms(), Some(now + 60_000));
    world.clock.advance(59_999);
    world.turn(Vec::new());
    assert_eq!(counts(world.state()).held, 1);
    world.clock.advance(1);
    let rows = world.memory.rows().len();
    let (_, end) = world.turn_of(&mut VecDeque::new());
    assert!(end.moved);
    assert_eq!(world.memory.rows().len(), rows + 1, "an idle turn is a row");
    assert_eq!(counts(world.state()).held, 0);
    assert_eq!(world.sequencer.next_deadline_ms(), None);
    let late = reply(world.turn(vec![world.shop.confirm(hold_of(&held))]));
    let Outcome::Refused(refusal) = late.outcome else { panic!("confirmed after its end") };
    assert_eq!(refusal.code(), "hold_expired");
    world.check();
}

/// A world in which more holds are due than one turn lets lapse: four turns of them, a millisecond each.
fn with_many_holds() -> World {
    const A_TURN: u64 = 3_000;
    let mut world = World::new(20_000);
    for turn in 0..4 {
        world.clock.advance(1);
        let mut calls: VecDeque<Pending> = (0..A_TURN)
            .map(|n| {
                let command = world.shop.hold(&format!("k{turn}-{n}"), &format!("b{n}"));
                Pending { ticket: Ticket(n), call: Call::from(command) }
            })
            .collect();
        let (answers, _) = world.turn_of(&mut calls);
        assert_eq!(answers.len(), 3_000);
    }
    assert_eq!(counts(world.state()).held, 12_000);
    world
}

#[test]
fn more_due_holds_than_a_turn_takes_make_log_time_lag_and_never_lie() {
    let mut world = with_many_holds();
    world.clock.advance(100_000);
    let now = NOON_MS + 100_004;
    // 9,000 lapse in the first turn; the last 3,000 are due a millisecond later than it may be.
    let first = reply(world.turn(vec![world.shop.hold("new", "ann")]));
    assert_eq!(first.at.0, NOON_MS + 4 + 60_000 - 1);
    assert_eq!(counts(world.state()).held, 3_000 + 1);
    let elapsed = noondrop_engine::Clock::elapsed_ms(&*world.clock);
    assert_eq!(world.sequencer.next_deadline_ms(), Some(elapsed), "more is due at once");
    world.turn(Vec::new());
    assert_eq!(counts(world.state()).held, 1, "a hold made in lagging time has its whole minute");
    let then = reply(world.turn(vec![world.shop.hold("newer", "ann")]));
    assert_eq!(then.at.0, now);
    world.check();
}

/// Fences come from log time. Lost rows gave some out at times up to now, so where rows are lost, time lags for nobody.
#[test]
fn a_start_after_a_loss_or_a_restore_lets_lapse_all_that_is_due_before_it_decides() {
    let after = |world: &World| Seq(world.sequencer.position().seq);
    let lost: fn(Seq) -> EngineOptions = |found| EngineOptions {
        accepted_loss: Some(LossAccepted { acknowledged: Seq(found.0 + 1), found }),
        ..EngineOptions::default()
    };
    let restored: fn(Seq) -> EngineOptions =
        |after| EngineOptions { restored: Some(LogRestored { after }), ..EngineOptions::default() };
    for (options, kind) in [(lost, "loss.accepted"), (restored, "log.restored")] {
        let world = with_many_holds();
        let options = options(after(&world));
        let clock = TestClock::at(NOON_MS + 100_004);
        let started = World::on(world.memory.clone(), options, clock, 2);
        assert_eq!(counts(started.state()).held, 0);
        assert_eq!(started.state().last_at(), Timestamp(NOON_MS + 100_004));
        let row = &started.memory.rows()[usize::try_from(after(&world).0).expect("few rows")];
        let entries = codec::decode_row(row.level, &row.facts, &row.private).expect("readable");
        assert!(entries.iter().any(|entry| entry.fact.kind() == kind), "{kind}: {entries:?}");
        started.check();
    }
    // Where nothing is lost, a start does not wait for it.
    let world = with_many_holds();
    let clock = TestClock::at(NOON_MS + 100_004);
    let started = World::on(world.memory.clone(), EngineOptions::default(), clock, 2);
    assert_eq!(counts(started.state()).held, 12_000);
}

#[test]
fn a_sale_opens_on_time_without_anyone_asking() {
    let mut world = World::new(1);
    let opens_at = Timestamp(NOON_MS + 5_000);
    let commands = world.shop.published_sale("later", Some(opens_at));
    world.turn(commands);
    let state = |world: &World| world.state().sale("main", "later").expect("the sale").state;
    assert_eq!(state(&world), SaleState::Scheduled);
    world.clock.advance(4_999);
    world.turn(Vec::new());
    assert_eq!(state(&world), SaleState::Scheduled);
    world.clock.advance(1);
    world.turn(Vec::new());
    assert_eq!(state(&world), SaleState::Open);
    assert_eq!(world.state().last_at(), opens_at);
    world.check();
}
