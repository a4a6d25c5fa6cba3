//! What must hold in every world, tried on random ones; and a few worlds made for one property each.

use noondrop_core::{HoldNo, State};
use proptest::prelude::*;

use crate::checks::{
    block, confirm, create, create_from, creates, doors_are_not_recorded,
    keys_live_as_long_as_promised, release, replays_are_the_first_answer, strict_terms,
    sums_tell_apart, time_lags_where_too_much_is_due,
};
use crate::world::{Create, Which, World, item, plain_items};
use crate::worlds::{ITEMS, can_be_undone, plays, survives_a_restart, turns, undoing_never_shows};

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_what_the_rules_say(turns in turns()) {
        plays(&turns);
    }

    #[test]
    fn a_restart_changes_nothing(turns in turns()) {
        survives_a_restart(&turns);
    }

    #[test]
    fn an_undone_turn_leaves_nothing_behind(turns in turns()) {
        can_be_undone(&turns);
    }

    #[test]
    fn what_was_undone_never_shows_later(turns in turns()) {
        undoing_never_shows(&turns);
    }
}

#[test]
fn log_time_lags_where_more_is_due_than_one_turn_takes() {
    time_lags_where_too_much_is_due();
}

#[test]
fn keys_replay_as_long_as_was_promised_and_are_then_let_go() {
    keys_live_as_long_as_promised();
}

#[test]
fn a_refusal_at_the_door_is_decided_anew() {
    doors_are_not_recorded();
}

#[test]
fn a_replay_is_the_first_answer_whatever_became_of_the_hold() {
    replays_are_the_first_answer();
}

#[test]
fn different_states_have_different_sums() {
    sums_tell_apart();
}

/// A snapshot is a cache: what cannot be told from a whole one is refused, and never brings the process down.
#[test]
fn a_damaged_snapshot_is_refused_without_a_panic() {
    let mut items = plain_items(&ITEMS);
    items.push(item("v", None, &["a"]));
    let mut world = World::offering(strict_terms(), &items);
    world.step(&block("a", 2, "x").key("x"));
    world.step(&creates(create_from("x", "dan", &[("v", 1)])));
    world.step(&creates(create("ann", &[("a", 1), ("b", 1)])).key("k"));
    world.step(&creates(Create { reference: Some("r".into()), ..create("bob", &[("a", 1)]) }));
    world.step(&release(Which::No(1), Some(vec![(1, None)])).key("r"));
    world.step(&confirm(Which::No(2), "p").key("c"));
    world.step(&creates(create("cyd", &[("a", 9)])).key("l"));
    let bytes = world.snapshot();
    let read = |bytes: &[u8]| {
        let mut rest = bytes;
        let mut source = |part: &mut [u8]| {
            let Some((now, after)) = rest.split_at_checked(part.len()) else {
                return false;
            };
            part.copy_from_slice(now);
            rest = after;
            true
        };
        State::read_snapshot(&mut source)
    };
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "a snapshot that ends at {end}");
    }
    for at in 0..bytes.len() {
        for change in [1, 0x10, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            // Texts and keys are outside the sum: what is read must be usable all the same.
            if let Ok(state) = read(&damaged) {
                let _ = state.recount();
                for no in (0..state.next_hold_no().0).map(HoldNo) {
                    let _ = state.hold_by_no(no);
                }
            }
        }
    }
}
