//! Appends that fail, appends of unknown end, a log that goes back: everyone is told the truth, and
//! all converges.

use noondrop_core::Outcome;
use noondrop_engine::{EngineOptions, Fault};
use noondrop_log::memory::{AppendFault, ReadFault, SharedMemory};

use crate::support::{NOON_MS, TestClock, World, counts, hold_of, is_hold, only, reply, sum};

#[test]
fn a_row_that_was_not_written_is_undone_and_decided_again() {
    let mut world = World::new(10);
    let before = sum(world.state());
    world.faults.next_append(AppendFault::NotWritten);
    let hold = world.shop.hold("k1", "ann");
    assert!(world.turn(vec![hold.clone()]).is_empty(), "nobody is answered before it is durable");
    assert_eq!(sum(world.state()), before, "undone");
    let answers = world.settle();
    assert!(is_hold(&reply(answers).outcome));
    assert!(reply(world.turn(vec![hold])).replayed);
    assert_eq!(counts(world.state()).held, 1);
    assert_eq!(world.sequencer.tally().appends_not_written, 1);
    world.check();
}

#[test]
fn a_row_of_unknown_end_that_was_written_stands() {
    for fault in [AppendFault::UnknownWritten, AppendFault::UnknownUntilRecovery] {
        let mut world = World::new(10);
        let rows = world.memory.rows().len();
        world.faults.next_append(fault);
        let hold = world.shop.hold("k1", "ann");
        assert!(world.turn(vec![hold.clone()]).is_empty(), "{fault:?}: frozen");
        assert_eq!(counts(world.state()).held, 0, "{fault:?}: reads show the durable state");
        let answered = reply(world.settle());
        assert!(!answered.replayed, "{fault:?}: the turn itself stands");
        assert_eq!(world.memory.rows().len(), rows + 1, "{fault:?}: one row, not two");
        assert_eq!(answered.position, world.sequencer.position());
        let again = reply(world.turn(vec![hold]));
        assert_eq!(again.outcome, answered.outcome, "{fault:?}");
        assert_eq!(counts(world.state()).held, 1);
        world.check();
    }
}

#[test]
fn a_row_of_unknown_end_that_was_lost_is_decided_again() {
    let mut world = World::new(10);
    world.faults.next_append(AppendFault::UnknownNotWritten);
    assert!(world.turn(vec![world.shop.hold("k1", "ann")]).is_empty());
    assert!(is_hold(&reply(world.settle()).outcome));
    assert_eq!(counts(world.state()).held, 1);
    assert_eq!(world.sequencer.tally().appends_unknown, 1);
    world.check();
}

#[test]
fn who_can_not_wait_for_an_unknown_end_hears_so_and_the_key_tells_later() {
    let mut world = World::new(10);
    world.faults.next_append(AppendFault::UnknownWritten);
    for _ in 0..20 {
        world.faults.next_recovery(ReadFault::Fails);
    }
    world.memory.set_full(false);
    let hold = world.shop.hold("k1", "ann");
    let deadline = 1_000 + 3;
    assert!(world.turn_until(vec![hold.clone()], Some(deadline)).is_empty());
    world.clock.advance(4);
    assert_eq!(only(world.turn(Vec::new())), Err(Fault::OutcomeUnknown));
    world.settle();
    assert!(reply(world.turn(vec![hold])).replayed, "it was done, and the key says so");
    world.check();
}

#[test]
fn who_can_not_wait_for_a_failing_store_was_surely_not_served() {
    let mut world = World::new(10);
    world.memory.set_full(true);
    let hold = world.shop.hold("k1", "ann");
    assert!(world.turn_until(vec![hold.clone()], Some(1_000 + 100)).is_empty());
    let mut answers = Vec::new();
    while answers.is_empty() {
        world.clock.advance(10);
        answers = world.turn(Vec::new());
    }
    // A full disk leaves the end unknown until the log is opened anew, which a full disk prevents.
    assert_eq!(only(answers), Err(Fault::OutcomeUnknown));
    let late = world.turn_until(vec![world.shop.hold("k2", "bob")], Some(1_000 + 500));
    assert!(late.is_empty());
    world.clock.advance(1_000);
    assert_eq!(only(world.turn(Vec::new())), Err(Fault::StoreFailing));
    world.memory.set_full(false);
    world.settle();
    assert_eq!(counts(world.state()).held, 0, "neither was done");
    assert!(!reply(world.turn(vec![hold])).replayed);
    world.check();
}

#[test]
fn callers_without_a_deadline_do_not_wait_for_ever() {
    let options = EngineOptions { wait_ms_max: 50, ..EngineOptions::default() };
    let mut world = World::with(10, options);
    world.memory.set_full(true);
    world.turn(vec![world.shop.hold("k1", "ann"), world.shop.hold("k2", "bob")]);
    world.turn(vec![world.shop.hold("k3", "eve")]);
    world.clock.advance(51);
    let mut faults: Vec<_> = world.turn(Vec::new()).into_iter().map(|(_, a)| a).collect();
    assert_eq!(faults.pop(), Some(Err(Fault::OutcomeUnknown)));
    assert_eq!(faults.pop(), Some(Err(Fault::OutcomeUnknown)));
    assert_eq!(faults.pop(), Some(Err(Fault::StoreFailing)));
    assert_eq!(world.sequencer.waiting(), 0);
}

#[test]
fn replays_are_answered_while_nothing_can_be_written() {
    let mut world = World::new(10);
    let hold = world.shop.hold("k1", "ann");
    let first = reply(world.turn(vec![hold.clone()]));
    world.memory.set_full(true);
    assert!(world.turn(vec![world.shop.hold("k2", "bob")]).is_empty(), "the store fails");

    let again = reply(world.turn(vec![hold]));
    assert!(again.replayed);
    assert_eq!(again.outcome, first.outcome);
    let reused = reply(world.turn(vec![world.shop.hold("k1", "another body")]));
    let Outcome::Refused(refusal) = reused.outcome else { panic!("the key was used for another") };
    assert_eq!(refusal.code(), "key_reused");
    assert!(world.turn(vec![world.shop.hold("k3", "new")]).is_empty(), "new work waits");

    world.memory.set_full(false);
    assert_eq!(world.settle().len(), 2);
    assert_eq!(counts(world.state()).held, 3);
    world.check();
}

#[test]
fn a_turn_of_replays_and_refusals_writes_no_row() {
    let mut world = World::new(10);
    let hold = world.shop.hold("k1", "ann");
    world.turn(vec![hold.clone()]);
    let rows = world.memory.rows().len();
    let mut nowhere = world.shop.hold("k2", "ann");
    nowhere.shop = crate::support::name("elsewhere");
    let answers = world.turn(vec![hold.clone(), nowhere, hold]);
    assert_eq!(answers.len(), 3);
    assert_eq!(world.memory.rows().len(), rows);
    assert_eq!(world.sequencer.tally().replays, 2);
    // What there is to tell about the repeats goes with the next row.
    world.turn(vec![world.shop.hold("k3", "bob")]);
    let row = world.memory.rows().pop().expect("a row");
    let entries = noondrop_core::codec::decode_row(row.level, &row.facts, &row.private);
    let kinds: Vec<_> = entries.expect("readable").iter().map(|e| e.fact.kind()).collect();
    assert_eq!(kinds, ["hold.created", "key.repeated", "key.repeated"]);
    world.check();
}

#[test]
fn a_deadline_that_has_passed_drops_the_command_before_it_is_decided() {
    let mut world = World::new(10);
    let late = world.turn_until(vec![world.shop.hold("k1", "ann")], Some(1_000));
    assert_eq!(only(late), Err(Fault::Overloaded));
    assert_eq!(counts(world.state()).held, 0);
}

#[test]
fn a_log_that_went_back_is_noticed_with_evidence_and_selling_goes_on() {
    let evidence = tempfile::tempdir().expect("a directory");
    let options =
        EngineOptions { evidence_dir: Some(evidence.path().into()), ..EngineOptions::default() };
    let mut world = World::with(10, options);
    let kept = reply(world.turn(vec![world.shop.hold("k1", "ann.private@example.com")]));
    let lost = reply(world.turn(vec![world.shop.hold("k2", "bob.private@example.com")]));
    assert_eq!(world.memory.go_back_to(kept.position.seq).len(), 1);

    let again = reply(world.turn(vec![world.shop.hold("k2", "bob.private@example.com")]));
    assert!(!again.replayed, "the log does not know of it any more");
    assert_eq!(world.sequencer.tally().history_changes, 1);
    assert_eq!(counts(world.state()).held, 2);
    world.check();

    let files: Vec<_> = std::fs::read_dir(evidence.path()).expect("readable").collect();
    let path = files.into_iter().next().expect("one file").expect("readable").path();
    let text = std::fs::read_to_string(path).expect("a text");
    assert!(text.contains(&format!("\"position\":\"{}\"", lost.position)), "{text}");
    assert!(!text.contains(&format!("\"position\":\"{}\"", kept.position)), "{text}");
    let in_hex = "70726976617465406578616d706c65";
    assert!(!text.contains("private@example") && !text.contains(in_hex), "no private text");
}

#[test]
fn a_log_that_took_another_branch_is_followed() {
    let mut world = World::new(10);
    let common = world.memory.rows();
    let last = common.last().expect("rows").seq;
    let other = SharedMemory::new();
    other.branch(0, common);
    let mut fork = World::on(other.clone(), EngineOptions::default(), TestClock::at(NOON_MS), 2);
    fork.turn(vec![fork.shop.hold("f1", "eve"), fork.shop.hold("f2", "eve")]);

    world.turn(vec![world.shop.hold("k1", "ann")]);
    let tail = other.rows().split_off(usize::try_from(last).expect("small"));
    world.memory.branch(last, tail);
    let replies = world.turn(vec![world.shop.hold("k2", "bob"), world.shop.hold("f1", "eve")]);
    assert_eq!(replies.len(), 2);
    assert!(replies.into_iter().any(|(_, answer)| answer.expect("a reply").replayed));
    assert_eq!(counts(world.state()).held, 3);
    world.check();
}

#[test]
fn a_row_of_unknown_end_on_a_branch_that_is_gone_stays_unknown_to_its_caller() {
    let mut world = World::new(10);
    let common = reply(world.turn(vec![world.shop.hold("k0", "ann")])).position.seq - 1;
    world.faults.next_append(AppendFault::UnknownWritten);
    world.turn(vec![world.shop.hold("k1", "ann")]);
    world.memory.go_back_to(common);
    assert_eq!(only(world.settle()), Err(Fault::OutcomeUnknown));
    world.check();
}

#[test]
fn two_writers_on_one_log_converge() {
    let mut one = World::new(1);
    let options = EngineOptions::default();
    let mut two = World::on(one.memory.clone(), options, TestClock::at(NOON_MS), 2);
    // Both stand at the same row; the second does not see the first one's.
    let first = reply(one.turn(vec![one.shop.hold("k1", "ann")]));
    two.faults.next_begin(ReadFault::Stale);
    assert!(two.turn(vec![two.shop.hold("k2", "bob")]).is_empty(), "the position was taken");
    let second = reply(two.settle());
    assert!(is_hold(&first.outcome) && !is_hold(&second.outcome), "one unit, one buyer");
    assert!(reply(one.turn(vec![one.shop.hold("k2", "bob")])).replayed, "learned from the other");
    one.check();
    two.check();
}

#[test]
fn a_store_that_keeps_failing_is_tried_less_and_less_often() {
    let mut world = World::new(10);
    world.memory.set_full(true);
    world.turn(vec![world.shop.hold("k1", "ann")]);
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let trouble = world.sequencer.trouble().expect("it fails");
        let pause = trouble.retry_at_ms - noondrop_engine::Clock::elapsed_ms(&*world.clock);
        assert_eq!(world.sequencer.next_deadline_ms(), Some(trouble.retry_at_ms));
        pauses.push(pause);
        world.clock.advance(pause);
        world.turn(Vec::new());
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
}

#[test]
fn a_confirm_after_trouble_settles_the_hold_it_names() {
    let mut world = World::new(1);
    let held = reply(world.turn(vec![world.shop.hold("k1", "ann")]));
    let confirm = world.shop.confirm(hold_of(&held));
    world.faults.next_append(AppendFault::UnknownWritten);
    assert!(world.turn(vec![confirm.clone()]).is_empty());
    assert!(is_hold(&reply(world.settle()).outcome));
    let again = reply(world.turn(vec![confirm]));
    assert!(hold_of(&again).already);
    assert_eq!(counts(world.state()).sold, 1);
    world.check();
}
