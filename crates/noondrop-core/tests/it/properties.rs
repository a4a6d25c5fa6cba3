//! What must hold in every world, tried on random ones; and a few worlds made for one property each.

use proptest::prelude::*;

use crate::checks::{
    doors_are_not_recorded, keys_live_as_long_as_promised, replays_are_the_first_answer,
    sums_tell_apart, time_lags_where_too_much_is_due,
};
use crate::worlds::{can_be_undone, plays, survives_a_restart, turns, undoing_never_shows};

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
