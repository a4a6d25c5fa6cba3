//! Tables: one line per event, with what is expected of it, for every command and every refusal.

use noondrop_core::{Decision, Digest16, Entry, Fact, Settings};

use crate::checks::{create, creates};
use crate::script::run;
use crate::world::{Answer, World, plain_terms};

/// A sale `noon` that sells `a` (3 units) and `b` (2, one more may be oversold).
fn noon() -> World {
    World::selling(plain_terms(), &[("a", 3, 0), ("b", 2, 1)])
}

#[test]
fn the_last_unit_goes_to_exactly_one_buyer() {
    run(
        &mut noon(),
        "
        0  hold a:2 by ann     -> #0 active end=60 ext=2 1:a=held2
        0  hold a:1 by bob     -> #1 active
        &  hold a:1 by cyd     -> all_held 1:a=all_held,asked1,free0,held3,most3,at60
        0  see a               -> total=3 held=3 sold=0 available=0 oversold=0
        1  confirm #0 pay p    -> #0 confirmed 1:a=sold2
        1  hold a:2 by cyd     -> not_enough_free 1:a=not_enough_free,asked2,free0,held1,most1,at-
        2  confirm #1 pay q    -> #1 confirmed
        3  hold a:1 by cyd     -> sold_out 1:a=sold_out,asked1,free0,held0,most0,at-
        3  see a               -> total=3 held=0 sold=3
    ",
    );
}

#[test]
fn stock_falls_short_in_three_ways_and_every_failing_line_is_told() {
    run(&mut noon(), "
        0  hold a:1,b:3 by ann       -> #0 active 1:a=held1 2:b=held3
        1  hold a:3,b:1 by bob       -> all_held 1:a=not_enough_free,asked3,free2,held1,most3,at60 2:b=all_held,asked1,free0,held3,most3,at60
        1  hold a:4 by bob           -> not_enough_free 1:a=not_enough_free,asked4,free2,held1,most3,at-
        2  confirm #0 pay p          -> #0 confirmed
        3  hold b:1,a:3 by bob       -> sold_out 1:b=sold_out,asked1,free0,held0,most0,at- 2:a=not_enough_free,asked3,free2,held0,most2,at-
        3  hold a:2 by bob           -> #1 active
        3  see b                     -> total=2 held=0 sold=3 available=0 oversold=1
    ");
}

/// Each line alone would fit; together they do not (and the refusal says so of both).
#[test]
fn two_lines_on_one_item_are_one_demand() {
    run(&mut noon(), "
        0  hold a:2,a:2 by ann       -> not_enough_free 1:a=not_enough_free,asked2,free3,held0,most3,at- 2:a=not_enough_free,asked2,free3,held0,most3,at-
        0  hold a:2,a:1 by ann       -> #0 active 1:a=held2 2:a=held1
        1  release #0 lines 2        -> #0 active 1:a=held2 2:a=released1
        1  see a                     -> held=2
        2  confirm #0 pay p          -> #0 confirmed 1:a=sold2 2:a=released1
        2  see a                     -> held=0 sold=2 available=1
    ");
}

#[test]
fn a_hold_lapses_at_its_end_and_not_a_millisecond_earlier() {
    run(
        &mut noon(),
        "
        0       hold a:3 by ann ttl 10   -> #0 active end=10
        0       due                      -> due=10
        9.999   hold a:1 by bob          -> all_held 1:a=all_held,asked1,free0,held3,most3,at10
        9.999   see #0                   -> #0 active
        10      confirm #0 pay p         -> hold_expired
        &       hold a:3 by bob          -> #1 active
        10      see #0                   -> #0 expired 1:a=released3
        10      release #0               -> hold_expired
        10      extend #0 seconds 60     -> hold_expired
        10      cancel #0                -> hold_expired
        10      hold a:1 replaces #0     -> hold_expired
    ",
    );
    run(
        &mut noon(),
        "
        0       hold a:3 by ann ttl 10   -> #0 active end=10
        9.999   confirm #0 pay p         -> #0 confirmed
        10      see a                    -> held=0 sold=3
    ",
    );
}

#[test]
fn may_free_at_is_the_first_time_at_which_enough_has_lapsed() {
    run(&mut noon(), "
        0  hold a:1 ttl 30               -> #0
        0  hold a:1,b:1 ttl 20           -> #1
        0  hold a:1 ttl 40               -> #2
        0  hold a:1                      -> all_held 1:a=all_held,asked1,free0,held3,most3,at20
        0  hold a:2                      -> all_held 1:a=all_held,asked2,free0,held3,most3,at30
        0  hold a:3                      -> all_held 1:a=all_held,asked3,free0,held3,most3,at40
        1  extend #1 seconds 34          -> #1 active end=35
        1  hold a:1                      -> all_held 1:a=all_held,asked1,free0,held3,most3,at30
        1  release #0                    -> #0 released
        1  hold a:2                      -> not_enough_free 1:a=not_enough_free,asked2,free1,held2,most3,at35
        2  confirm #2 pay p              -> #2 confirmed
        2  hold a:3                      -> not_enough_free 1:a=not_enough_free,asked3,free1,held1,most2,at-
    ");
}

/// It was told as if one lapsing hold were enough, though the pool was short by itself after a shrink.
#[test]
fn may_free_at_of_a_shrunken_item_waits_for_what_it_is_short_of() {
    run(
        &mut noon(),
        "
        0  hold a:1 ttl 10               -> #0
        0  hold a:1 ttl 20               -> #1
        0  hold a:1 ttl 30               -> #2
        0  adjust a by -2                -> a total=1 held=3 sold=0 available=0 oversold=2
        0  hold a:1                      -> all_held 1:a=all_held,asked1,free0,held3,most1,at30
        30 hold a:1                      -> #3 active
    ",
    );
}

/// The replaced hold's units were counted as free, and counted again when it would have lapsed.
#[test]
fn may_free_at_of_a_replacement_counts_the_old_hold_once() {
    run(&mut noon(), "
        0  hold a:1 by ann ttl 10               -> #0
        0  hold a:1 by bob ttl 20               -> #1
        0  hold a:1 by bob ttl 30               -> #2
        0  hold a:3 by ann replaces #0          -> not_enough_free 1:a=not_enough_free,asked3,free1,held2,most3,at30
    ");
}

/// An undone release left the hold in the queue of lapses twice, and its units were counted twice.
#[test]
fn may_free_at_counts_a_hold_once_after_an_undone_turn() {
    let mut world = noon();
    run(
        &mut world,
        "
        0  hold a:1 by ann ttl 10               -> #0
        0  hold a:1 by bob ttl 10               -> #1
        0  hold a:1 by cyd ttl 30               -> #2
    ",
    );
    let release = crate::script::parse(&["release", "#0"]);
    let command = world.command(&release);
    let mut entries = world.open(&[]);
    world.decide(&command, &mut entries);
    world.state.undo_turn().unwrap();
    run(&mut world, "
        1  hold a:3 by dan                      -> all_held 1:a=all_held,asked3,free0,held3,most3,at30
    ");
}

#[test]
fn nobody_looks_beyond_64_holds_for_may_free_at() {
    let mut world = World::selling(plain_terms(), &[("a", 65, 0)]);
    for _ in 0..65 {
        world.step(&creates(create("ann", &[("a", 1)])));
    }
    run(
        &mut world,
        "
        0  hold a:64   -> all_held 1:a=all_held,asked64,free0,held65,most65,at60
        0  hold a:65   -> all_held 1:a=all_held,asked65,free0,held65,most65,at-
    ",
    );
}

/// Every refusal of a new hold is true at once; each time the first one is lifted, the next one is told.
#[test]
fn the_first_true_refusal_of_a_new_hold_is_told() {
    let mut world = World::new();
    run(&mut world, "
        0  hold x:9 by bob shop away             -> shop_not_found
        0  hold x:9 by bob in noon               -> sale_not_found
        0  sale noon holds 1 limit two:a=2       -> noon draft v1 created
        0  item a total 3                        -> a total=3 held=0 sold=0 available=3 oversold=0 v1 created
        0  hold a:1,x:9 by bob                   -> sale_not_open
        0  publish noon                          -> noon open
        0  hold a:1 by bob ref r                 -> #0 active
        0  hold a:2 by ann ref s                 -> #1 active
        0  hold a:9 by ann barekey k             -> buyer_has_hold
        0  pause noon                            -> noon paused
        0  hold x:9,a:9 by ann ref r             -> sale_paused
        0  hold x:9,a:9 by ann ref r barekey k   -> key_reused
        0  close noon                            -> noon closed
        0  hold x:9,a:9 by ann ref r             -> sale_closed
        0  reopen noon                           -> noon open
        0  hold a:9,x:9 by ann ref r             -> item_not_found 2:x
        0  hold a:9 by ann ref r                 -> reference_in_use #0
        0  hold a:9 by ann ref t                 -> buyer_has_hold
        0  sale noon limit two:a=2               -> noon open v2
        0  hold a:9 by ann ref t                 -> limit_per_buyer two=2/2
        0  sale noon                             -> noon open v3
        0  hold a:9 by ann ref t                 -> not_enough_free
        0  release #0                            -> #0 released
        0  release #1                            -> #1 released
        0  close noon                            -> noon closed
        0  archive noon                          -> noon archived
        0  hold x:9 by ann                       -> sale_archived
        0  sale noon                             -> sale_archived
        0  item a total 3                        -> sale_archived
        0  adjust x by 1                         -> sale_archived
        0  reopen noon                           -> sale_archived
        0  archive noon                          -> noon archived
    ");
}

#[test]
fn the_first_true_refusal_of_what_is_asked_of_a_hold_is_told() {
    run(
        &mut noon(),
        "
        0  confirm #7 pay p                  -> hold_not_found
        0  hold a:1 by ann                   -> #0
        0  hold b:1 by bob                   -> #1
        0  confirm #0 fence #1 pay p         -> stale_fence
        0  release #0 fence #1               -> stale_fence
        0  extend #0 fence #1 seconds 9      -> stale_fence
        0  release #0 as bob                 -> hold_not_found
        0  extend #0 as bob seconds 9        -> hold_not_found
        0  cancel #0                         -> invalid_field hold
        0  confirm #0 pay p                  -> #0 confirmed
        0  release #0 fence #1               -> stale_fence
        0  release #0                        -> hold_confirmed
        0  extend #0 seconds 9               -> hold_confirmed
        0  confirm #0 fence #1 pay q         -> stale_fence
        0  confirm #0 pay q                  -> confirmed_with_other_payment payment=p
        0  confirm #0 pay p                  -> #0 confirmed already
        0  hold a:1 by ann replaces #0       -> hold_confirmed
        0  cancel #0                         -> #0 cancelled 1:a=cancelled1
        0  cancel #0                         -> hold_cancelled
        0  confirm #0 pay p                  -> hold_cancelled
        0  confirm #0 pay q                  -> hold_cancelled
        0  release #1                        -> #1 released
        0  release #1                        -> hold_released
        0  confirm #1 pay p                  -> hold_released
        0  cancel #1                         -> hold_released
    ",
    );
}

#[test]
fn what_was_promised_is_kept_whatever_the_sale_does() {
    run(
        &mut noon(),
        "
        0  hold a:1 by ann        -> #0
        0  hold a:1 by bob        -> #1
        0  hold b:1 by cyd        -> #2
        0  hold b:1 by dan        -> #3
        0  pause noon             -> noon paused
        1  confirm #0 pay p       -> #0 confirmed
        1  release #1             -> #1 released
        1  extend #3 seconds 80   -> #3 active end=81
        1  close noon             -> noon closed
        1  archive noon           -> invalid_field sale
        1  confirm #2 pay p       -> #2 confirmed
        1  cancel #0              -> #0 cancelled
        1  release #3             -> #3 released
        1  archive noon           -> noon archived
    ",
    );
}

#[test]
fn parts_are_released_and_cancelled_line_by_line() {
    run(
        &mut noon(),
        "
        0  hold a:3,b:2 by ann                  -> #0 active 1:a=held3 2:b=held2
        0  release #0 lines 1:1,2:2             -> #0 active 1:a=held2,released1 2:b=released2
        0  see b                                -> held=0 available=2
        0  release #0 lines 2                   -> invalid_field lines[0].quantity
        0  release #0 lines 1:3                 -> invalid_field lines[0].quantity
        0  release #0 lines 1:0                 -> invalid_field lines[0].quantity
        0  release #0 lines 3                   -> invalid_field lines[0].line
        0  release #0 lines 0                   -> invalid_field lines[0].line
        0  release #0 lines 1:1,1:1             -> invalid_field lines[1].line
        0  see a                                -> held=2
        0  confirm #0 pay p                     -> #0 confirmed 1:a=sold2,released1 2:b=released2
        0  cancel #0 lines 1:1                  -> #0 confirmed 1:a=sold1,released1,cancelled1
        0  see a                                -> total=3 held=0 sold=1 available=2
        0  cancel #0 lines 2                    -> invalid_field lines[0].quantity
        0  cancel #0 destroyed                  -> #0 cancelled 1:a=released1,cancelled2
        0  see a                                -> total=2 held=0 sold=0 available=2
    ",
    );
}

#[test]
fn releasing_or_cancelling_twice_returns_the_units_once() {
    run(
        &mut noon(),
        "
        0  hold a:2 by ann     -> #0
        0  release #0          -> #0 released
        &  release #0          -> hold_released
        0  see a               -> held=0 available=3
        0  hold a:2 by ann     -> #1
        0  confirm #1 pay p    -> #1 confirmed
        0  cancel #1           -> #1 cancelled
        &  cancel #1           -> hold_cancelled
        0  see a               -> held=0 sold=0 available=3
    ",
    );
}

#[test]
fn a_fence_may_be_left_out_only_with_a_right_and_a_reason() {
    run(
        &mut noon(),
        "
        0  hold a:1 by ann                               -> #0
        0  release #0 fence none                         -> invalid_field fence
        0  extend #0 fence none seconds 90               -> invalid_field fence
        0  release #0 fence none reason as ann           -> invalid_field fence
        0  release #0 fence none reason as auditor       -> invalid_field fence
        0  extend #0 fence none seconds 90 reason x      -> #0 active end=90
        0  release #0 fence none reason                  -> #0 released
    ",
    );
}

#[test]
fn extending_never_shortens_and_only_a_success_extends() {
    run(
        &mut noon(),
        "
        0   hold a:1 by ann ttl 60               -> #0 active end=60 ext=2
        10  extend #0 seconds 5                  -> #0 active end=60 ext=2
        10  extend #0 seconds 5 as ann           -> #0 active end=60 ext=2
        10  extend #0 seconds 601 as ann         -> invalid_field seconds
        10  extend #0 seconds 0                  -> invalid_field seconds
        10  see #0                               -> #0 active end=60
        10  extend #0 seconds 60 as ann          -> #0 active end=70 ext=1
        20  extend #0 seconds 60 as ann          -> #0 active end=80 ext=0
        30  extend #0 seconds 60 as ann          -> invalid_field seconds
        30  see #0                               -> #0 active end=80 ext=0
        30  extend #0 seconds 5 as ann           -> #0 active end=80 ext=0
        30  extend #0 seconds 999                -> #0 active end=1029 ext=0
    ",
    );
}

#[test]
fn a_chain_of_holds_has_one_clock_for_its_buyer() {
    let mut world = World::new();
    run(&mut world, "
        0   sale noon ttl 60 ttlmax 100 chain 150 extensions 9   -> noon draft
        0   item a total 5                                       -> a
        0   publish noon                                         -> noon open
        0   hold a:1 by ann ttl 100 as ann                       -> #0 active end=100
        90  extend #0 seconds 50 as ann                          -> #0 active end=140 ext=8
        91  hold a:2 by ann ttl 100 replaces #0 as ann           -> #1 active end=150 ext=9 1:a=held2 supersedes=#0
        91  extend #1 seconds 100 as ann                         -> invalid_field seconds
        92  hold a:1 by ann ttl 10 replaces #1 as ann            -> #2 active end=102
        93  hold a:1 by ann ttl 101 as ann                       -> invalid_field ttl_seconds
        93  hold a:1 by bob as ann                               -> invalid_field buyer
        93  extend #2 seconds 100 as ann                         -> #2 active end=150
        94  hold a:1 by ann ttl 100 replaces #2                  -> #3 active end=194
    ");
}

#[test]
fn replacing_is_one_step_in_which_the_old_hold_is_free() {
    let mut world = World::new();
    run(&mut world, "
        0  sale noon holds 1 limit two:a=2          -> noon draft
        0  item a total 2                           -> a
        0  item b total 1                           -> b
        0  publish noon                             -> noon open
        0  hold a:2 by ann ref r                    -> #0 active
        0  hold a:2 by ann ref r                    -> reference_in_use #0
        0  hold b:1 by bob                          -> #1 active
        0  hold a:1,b:1 by ann ref r replaces #0    -> all_held 2:b=all_held,asked1,free0,held1,most1,at60
        0  hold a:3 by ann ref r replaces #0        -> limit_per_buyer two=0/2
        0  see #0                                   -> #0 active 1:a=held2
        0  hold a:1 by ann ref r replaces #1        -> hold_not_found
        0  hold a:1 by ann replaces #0 fence #1     -> stale_fence
        0  hold a:2 by ann ref r replaces #0        -> #2 active 1:a=held2 supersedes=#0
        0  see #0                                   -> #0 released 1:a=released2 superseded_by=#2
        0  see a                                    -> held=2
        0  confirm #0 pay p                         -> hold_released by=#2
        0  hold a:2 by ann replaces #0              -> hold_released by=#2
        0  confirm #2 fence #0 pay p                -> stale_fence
        0  confirm #2 pay p                         -> #2 confirmed
        0  see a                                    -> held=0 sold=2
    ");
}

#[test]
fn late_money_takes_again_what_lapsed_and_not_what_was_given_back_before() {
    run(
        &mut noon(),
        "
        0   hold a:2,b:1 by ann ttl 10               -> #0
        0   release #0 lines 1:1,2:1                 -> #0 active 1:a=held1,released1 2:b=released1
        10  hold - by ann retakes #0 pays p          -> #1 confirmed 1:a=sold1
        10  see #0                                   -> #0 expired superseded_by=#1
        10  see b                                    -> held=0 sold=0
    ",
    );
}

#[test]
fn late_money_takes_the_units_again_or_is_told_that_they_are_gone() {
    run(&mut noon(), "
        0   hold a:2,b:1 by ann ttl 10               -> #0
        0   hold - by ann retakes #0 pays p          -> invalid_field retake
        10  hold - by ann retakes #0 pays p as ann   -> invalid_field
        10  hold - by bob retakes #0 pays p          -> hold_not_found
        10  hold a:2 by bob ttl 10                   -> #1
        10  hold - by ann retakes #0 pays p key k    -> units_gone 1:a=not_enough_free,asked2,free1,held2,most3,at20
        20  hold - by ann retakes #0 pays p key k    -> replay units_gone
        20  pause noon                               -> noon paused
        20  hold - by ann retakes #0 pays p key m    -> #2 confirmed 1:a=sold2 2:b=sold1
        20  see #0                                   -> #0 expired superseded_by=#2
        20  hold - by ann retakes #0 pays p key n    -> hold_released by=#2
        20  hold - by ann retakes #0 pays p key n    -> replay hold_released by=#2
        20  hold - by ann retakes #0 pays p key m    -> replay #2 confirmed 1:a=sold2 2:b=sold1
        20  confirm #0 pay p                         -> hold_expired
        20  confirm #2 pay p                         -> #2 confirmed already
        20  confirm #2 pay q                         -> confirmed_with_other_payment payment=p
    ");
}

#[test]
fn limits_count_what_a_buyer_holds_and_owns() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0  sale noon limit seats:a,b=3 limit all:=4   -> noon draft
        0  item a total 20                            -> a
        0  item b total 20                            -> b
        0  item c total 20                            -> c
        0  publish noon                               -> noon open
        0  hold a:1,b:1 by ann                        -> #0
        0  hold a:1,b:1 by ann                        -> limit_per_buyer seats=2/3
        0  hold c:3 by ann                            -> limit_per_buyer all=2/4
        0  hold a:1,b:1 by bob                        -> #1
        0  hold c:2 by ann                            -> #2
        0  confirm #0 pay p                           -> #0 confirmed
        0  hold a:1 by ann                            -> limit_per_buyer all=4/4
        0  release #2                                 -> #2 released
        0  hold b:2 by ann                            -> limit_per_buyer seats=2/3
        0  hold b:1 by ann                            -> #3
        0  cancel #0 lines 1                          -> #0 confirmed
        0  hold b:1 by ann ttl 10                     -> #4
        0  hold b:1 by ann                            -> limit_per_buyer seats=3/3
        10 hold b:1 by ann                            -> #5
    ",
    );
}

#[test]
fn a_limit_that_comes_later_counts_what_was_there_before() {
    let mut world = noon();
    run(
        &mut world,
        "
        0  hold a:2 by ann              -> #0
        0  hold b:1 by ann              -> #1
        0  confirm #0 pay p             -> #0 confirmed
        0  sale noon limit one:a=1      -> noon open v2
        0  confirm #1 pay p             -> #1 confirmed
        0  hold a:1 by ann              -> limit_per_buyer one=2/1
        0  hold b:1 by ann              -> #2
        0  sale noon holds 1            -> noon open v3
        0  hold b:1 by ann              -> buyer_has_hold
        0  hold a:1 by bob              -> #3
        0  cancel #0                    -> #0 cancelled
        0  sale noon limit one:a=1      -> noon open v4
        0  hold a:1 by ann              -> #4
        &  sale noon                    -> noon open v5
        &  hold a:1 by ann              -> #5
    ",
    );
}

#[test]
fn a_reference_is_free_again_once_its_hold_claims_nothing() {
    run(
        &mut noon(),
        "
        0  hold a:1 by ann ref r ttl 10   -> #0
        0  hold a:1 by bob ref r          -> reference_in_use #0
        10 hold a:1 by bob ref r          -> #1
        10 confirm #1 pay p               -> #1 confirmed
        10 hold a:1 by ann ref r          -> reference_in_use #1
        10 cancel #1                      -> #1 cancelled
        10 hold a:1 by ann ref r          -> #2
        10 release #2                     -> #2 released
        10 hold a:1 by ann ref r          -> #3
    ",
    );
}

#[test]
fn a_shrink_below_what_is_claimed_makes_only_this_item_refuse() {
    run(
        &mut noon(),
        "
        0  hold a:3 by ann         -> #0
        0  adjust a by -2          -> a total=1 held=3 sold=0 available=0 oversold=2
        0  hold a:1 by bob         -> all_held 1:a=all_held,asked1,free0,held3,most1,at60
        0  hold b:1 by bob         -> #1
        0  confirm #0 pay p        -> #0 confirmed
        0  see a                   -> total=1 held=0 sold=3 available=0 oversold=2
        0  hold a:1 by bob         -> sold_out
        0  cancel #0 lines 1:2     -> #0 confirmed
        0  see a                   -> total=1 sold=1 available=0 oversold=0
        0  adjust a by 0           -> invalid_field by
        0  adjust a by -2          -> invalid_field by
        0  adjust a by 1000000000  -> invalid_field by
        0  adjust a by 1 if 2      -> version_mismatch now=1
        0  adjust a by 1 if 1      -> a total=2
        0  adjust x by 1           -> item_not_found 0:x
        0  hold a:1 by bob         -> #2
    ",
    );
}

/// The check before a row is written took the smaller total for the one that the claim had been made under.
#[test]
fn a_claim_and_a_shrink_in_one_turn_are_both_right() {
    run(
        &mut noon(),
        "
        0  hold a:3 by ann          -> #0 active
        &  adjust a by -2           -> a total=1 held=3 sold=0 available=0 oversold=2
        0  hold b:3 by ann          -> #1 active
        &  item b total 2           -> b total=2 held=3 sold=0 available=0 oversold=1 v2
        0  hold b:1 by ann          -> all_held
    ",
    );
}

#[test]
fn the_oversell_limit_bounds_what_a_hold_may_cause() {
    run(
        &mut noon(),
        "
        0  hold b:3 by ann                -> #0
        0  see b                          -> total=2 held=3 sold=0 available=0 oversold=1
        0  hold b:1 by bob                -> all_held
        0  item b total 2 oversell 2      -> b total=2 held=3 sold=0 available=0 oversold=1 v2
        0  hold b:1 by bob                -> #1
        0  item b total 2                 -> b v3
        0  hold b:1 by bob                -> all_held
        0  item b total 2                 -> b v3
        0  item b total 4                 -> use_adjust total=2
        0  item b total 2 if 2            -> version_mismatch now=3
        0  item b total 2 if 3            -> b v3
        0  item d total 2 if 1            -> version_mismatch now=0
        0  item d total 1000000001        -> invalid_field total
        0  item d total 2 in moon         -> sale_not_found
    ",
    );
}

#[test]
fn a_sale_lives_by_steps() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0  publish noon       -> sale_not_found
        0  sale noon          -> noon draft v1 created
        0  sale noon          -> noon draft v1
        0  pause noon         -> sale_not_open
        0  close noon         -> sale_not_open
        0  archive noon       -> sale_not_open
        0  publish noon       -> noon open
        &  publish noon       -> noon open
        0  archive noon       -> invalid_field sale
        0  resume noon        -> noon open
        0  pause noon         -> noon paused
        0  pause noon         -> noon paused
        0  publish noon       -> sale_paused
        0  resume noon        -> noon open
        0  close noon         -> noon closed
        0  pause noon         -> sale_closed
        0  close noon         -> noon closed
        0  reopen noon        -> noon open
        0  sale noon title x if 9   -> version_mismatch now=1
        0  sale noon title x if 1   -> noon open v2
        0  close noon         -> noon closed
        0  archive noon       -> noon archived
        0  close noon         -> sale_archived
    ",
    );
}

#[test]
fn a_sale_lives_by_its_clock() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0       sale noon opens 10 closes 20   -> noon draft
        0       item a total 2                 -> a
        0       hold a:1                       -> sale_not_open
        0       publish noon                   -> noon scheduled
        0       due                            -> due=10
        9.999   hold a:1                       -> sale_not_open opens=10
        10      hold a:1                       -> #0 active
        11      pause noon                     -> noon paused
        20      see sale:noon                  -> closed
        20      resume noon                    -> sale_closed
        20      confirm #0 pay p               -> #0 confirmed
        20      reopen noon                    -> invalid_field closes_at
        20      sale noon opens 30             -> noon closed v2
        20      reopen noon                    -> noon scheduled
        30      hold a:1                       -> #1 active
    ",
    );
}

#[test]
fn a_sale_that_slept_through_its_opening_is_closed() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0       sale noon opens 10 closes 20   -> noon draft
        0       publish noon                   -> noon scheduled
        25      see sale:noon                  -> closed
    ",
    );
}

/// A published sale whose opening time was taken away stayed scheduled for good: nothing could open it.
#[test]
fn a_scheduled_sale_without_an_opening_time_opens() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0  sale noon opens 100   -> noon draft
        0  item a total 2        -> a
        0  publish noon          -> noon scheduled
        1  sale noon             -> noon scheduled v2
        2  hold a:1              -> #0 active
    ",
    );
}

#[test]
fn terms_that_cannot_hold_together_are_refused() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0  sale noon opens 9 closes 9            -> invalid_field closes_at
        0  sale noon ttl 0                       -> invalid_field hold_seconds
        0  sale noon ttl 700                     -> invalid_field hold_seconds
        0  sale noon ttlmax 2000                 -> invalid_field hold_seconds_max
        0  sale noon chain 40000000              -> invalid_field hold_chain_seconds_max
        0  sale noon holds 0                     -> invalid_field live_holds_per_buyer
        0  sale noon limit x:=0                  -> invalid_field limits[0].per_buyer
        0  sale noon limit x:=1 limit x:a=1      -> invalid_field limits[1].name
        0  hold a:1                              -> sale_not_found
    ",
    );
}

#[test]
fn a_key_means_one_thing_and_is_answered_the_same() {
    run(
        &mut noon(),
        "
        0  hold a:1 by ann key k            -> #0 active
        &  hold a:1 by ann key k            -> replay #0 active
        0  hold a:1 by ann key k            -> replay #0 active end=60
        0  hold a:2 by ann key k            -> key_reused
        0  hold a:1 by bob key k            -> key_reused
        0  hold a:1 by ann key k as ann     -> #1 active
        0  hold a:1 by ann                  -> #2 active
        0  confirm #0 pay p key k           -> #0 confirmed
        0  confirm #0 pay q key k           -> key_reused
        0  release #1 barekey m             -> #1 released
        0  release #1 barekey m             -> replay #1 released
        0  extend #1 seconds 9 barekey m    -> key_reused
        0  adjust a by 2 key k              -> a total=5
        0  adjust a by 2 key k              -> replay a total=5
        0  see a                            -> total=5 held=1 sold=1
        0  adjust a by 3 key k              -> key_reused
    ",
    );
}

#[test]
fn refusals_that_competed_are_recorded_and_those_at_the_door_are_not() {
    let mut world = World::new();
    run(&mut world, "
        0  hold a:1 by ann key k           -> sale_not_found
        0  sale noon opens 5               -> noon draft
        0  hold a:1 by ann key k           -> sale_not_open
        0  publish noon                    -> noon scheduled
        0  hold a:1 by ann key k           -> sale_not_open
        5  hold a:1 by ann key k           -> item_not_found
        5  item a total 1                  -> a
        5  pause noon                      -> noon paused
        5  hold a:1 by ann key k           -> sale_paused
        5  hold a:2 by ann key k           -> sale_paused
        5  resume noon                     -> noon open
        5  hold a:1 by ann key k           -> #0 active
        5  hold a:1 by bob key l           -> all_held 1:a=all_held,asked1,free0,held1,most1,at65
        5  hold a:1 by ann ref r key n     -> all_held
        5  confirm #9 pay p key c          -> hold_not_found
        6  release #0 lines 2 key r        -> invalid_field
        6  release #0 lines 2 key r        -> invalid_field
        7  release #0 key r                -> #0 released
        7  hold a:1 by bob key l           -> replay all_held 1:a=all_held,asked1,free0,held1,most1,at65
        7  hold a:1 by ann key k           -> replay #0 active 1:a=held1
        7  confirm #0 pay p key c          -> hold_released
        7  confirm #0 pay p key c          -> replay hold_released
    ");
}

#[test]
fn replays_repeat_the_first_answer_after_the_hold_moved_on() {
    run(&mut noon(), "
        0  hold a:3 by ann ref r key k               -> #0 active end=60 ext=2 1:a=held3
        1  extend #0 seconds 90 key x as ann         -> #0 active end=91 ext=1
        1  hold a:3 by ann ref r key k               -> replay #0 active end=60 ext=2 1:a=held3
        2  release #0 lines 1:1 key r1               -> #0 active 1:a=held2,released1
        2  release #0 lines 1:1 key r2               -> #0 active 1:a=held1,released2
        2  release #0 lines 1:1 key r1               -> replay #0 active 1:a=held2,released1
        2  hold a:3 by ann ref r key k               -> replay #0 active end=60 ext=2 1:a=held3
        3  confirm #0 pay p key c                    -> #0 confirmed 1:a=sold1,released2
        3  confirm #0 pay p key c2                   -> #0 confirmed already
        4  cancel #0 key b                           -> #0 cancelled 1:a=released2,cancelled1
        4  confirm #0 pay p key c                    -> replay #0 confirmed 1:a=sold1,released2
        4  confirm #0 pay p key c2                   -> replay #0 confirmed 1:a=sold1,released2 already
        4  extend #0 seconds 90 key x as ann         -> replay #0 active end=91 ext=1 1:a=held3
        5  hold b:2 by ann key s                     -> #1 active
        5  hold b:1 by ann key t replaces #1         -> #2 active supersedes=#1
        5  hold b:2 by ann key s                     -> replay #1 active end=65 ext=2 1:b=held2
        99 hold b:2 by ann key s                     -> replay #1 active end=65 ext=2 1:b=held2
        99 hold b:1 by ann key t replaces #1         -> replay #2 active end=65 ext=2 1:b=held1 supersedes=#1
        99 see #2                                    -> #2 expired
    ");
}

/// A replay is the very value, texts aside, and carries where the hold stands now beside it.
#[test]
fn a_replay_is_the_recorded_answer_word_for_word() {
    let mut world = noon();
    let step = creates(create("ann", &[("a", 1), ("b", 1)])).key("k");
    let command = world.command(&step);
    let first = world.turn(std::slice::from_ref(&command)).remove(0);
    let Answer::Done(noondrop_core::Outcome::Hold(mut first)) = first else { panic!("{first:?}") };
    run(
        &mut world,
        "
        1  release #0 lines 1   -> #0 active
        2  extend #0 seconds 99 -> #0 active
        3  hold b:2 replaces #0 -> #1 active
        4  shop main live       -> main live
    ",
    );
    world.now = 80_000;
    world.turn(&[]);
    let Decision::Replay { outcome: noondrop_core::Outcome::Hold(again), durable } =
        world.state.decide(&command)
    else {
        panic!("a known key")
    };
    assert!(durable);
    assert_eq!(again.now.state, noondrop_core::HoldState::Released);
    first.now = again.now;
    assert_eq!(again, first);
}

/// The answer of the record said `live: true` of a hold of the rehearsal, once its shop had gone live.
#[test]
fn a_rehearsed_hold_stays_one_when_its_shop_goes_live() {
    let mut world = noon();
    run(
        &mut world,
        "
        0  hold a:1 by ann key k   -> #0 active
        0  shop main live          -> main live
        0  hold a:1 by bob         -> #1 active end=60 ext=2 1:a=held1 live
        0  hold a:1 by ann key k   -> replay #0 active
    ",
    );
    let told = world.step(&creates(create("ann", &[("a", 1)])).key("k"));
    assert!(!told.ends_with("live"), "{told}");
}

/// Whoever made a shop was written down as the clock, because nobody had introduced him.
#[test]
fn whoever_defines_a_shop_is_in_the_log() {
    let world = World::new();
    let row = world.log.last().expect("the shop's row");
    let entries = noondrop_core::codec::decode_row(1, &row.facts, &row.private).unwrap();
    let [Entry { fact: Fact::ActorSeen(who), .. }, Entry { fact: Fact::ShopDefined(shop), .. }] =
        entries.as_slice()
    else {
        panic!("{entries:?}")
    };
    assert_eq!(who.actor, shop.by);
}

#[test]
fn shops_do_not_see_each_other() {
    run(
        &mut noon(),
        "
        0  shop away                               -> away rehearsal created
        0  shop away                               -> away rehearsal
        0  hold a:1 by ann shop away               -> sale_not_found
        0  hold a:1 by ann ref r key k             -> #0
        0  confirm #0 pay p shop away              -> hold_not_found
        0  release #0 shop away                    -> hold_not_found
        0  sale noon shop away                     -> noon draft v1 created
        0  publish noon shop away                  -> noon open
        0  item a total 1 shop away                -> a total=1
        0  hold a:1 by ann ref r key k shop away   -> #1 active
        0  hold a:1 by ann shop away replaces #0   -> hold_not_found
        0  hold - by ann shop away retakes #0      -> hold_not_found
        0  see a                                   -> held=1 available=2
    ",
    );
}

#[test]
fn repeats_are_told_at_1_2_4_8() {
    let mut world = noon();
    let command = world.command(&creates(create("ann", &[("a", 1)])).key("k"));
    world.turn(std::slice::from_ref(&command));
    let key = command.key.expect("it has a key").hash;
    let told: Vec<u32> = (1..=20)
        .filter_map(|_| match world.state.note_repeat(key, Some(Digest16([4; 16])))?.fact {
            Fact::KeyRepeated(repeated) => Some(repeated.count),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [1, 2, 4, 8, 16]);
    assert_eq!(world.state.note_repeat(Digest16([9; 16]), None), None);
}

#[test]
fn a_full_house_of_keys_lets_refusals_go_first_and_successes_never() {
    let settings = Settings { keys_max: 3, ..Settings::default() };
    let mut world = World::with(settings);
    run(
        &mut world,
        "
        0   sale noon                 -> noon draft
        0   item a total 1            -> a
        0   publish noon              -> noon open
        0   hold a:1 by ann key k1    -> #0
        0   hold a:1 by bob key k2    -> all_held
    ",
    );
    assert!(!world.state.keys_full());
    run(&mut world, "0   hold a:1 by cyd key k3    -> all_held");
    assert!(world.state.keys_full());
    world.now = 59_000;
    world.turn(&[]);
    assert!(world.state.keys_full(), "refusals are kept a minute whatever happens");
    world.now = 61_000;
    world.turn(&[]);
    assert!(!world.state.keys_full());
    let counters = world.state.counters();
    assert_eq!((counters.success_keys, counters.refusal_keys), (1, 0));
    run(
        &mut world,
        "
        61  hold a:1 by cyd key k3    -> #1 active
        61  hold a:1 by ann key k1    -> replay #0 active
        61  confirm #1 pay p key k4   -> #1 confirmed
    ",
    );
    world.now = 3_600_000;
    world.turn(&[]);
    assert!(world.state.keys_full(), "successes are never let go early");
}

#[test]
fn settings_and_accepted_losses_are_facts() {
    let mut world = noon();
    let settings = Settings { refusal_key_seconds: 5, ..Settings::default() };
    let loss = noondrop_core::LossAccepted {
        acknowledged: noondrop_core::Seq(9),
        found: noondrop_core::Seq(7),
    };
    world.turn_of(&[Fact::SettingsChanged(settings).into(), Fact::LossAccepted(loss).into()], &[]);
    assert_eq!(world.state.settings(), settings);
    assert_eq!(world.replayed().dump(), world.dump());
    let started = crate::world::log_started(Settings::default());
    let plan = world.state.plan_time(crate::world::at(world.now));
    world.state.open_turn(world.next_moment(plan.at));
    assert!(world.state.apply(&started).is_err(), "a log starts once");
    world.state.apply(&Fact::SettingsChanged(Settings::default()).into()).unwrap();
    world.state.undo_turn().unwrap();
    assert_eq!(world.state.settings(), settings);
}

#[test]
fn a_restored_log_goes_on_right_after_the_row_that_it_names() {
    let mut world = noon();
    let plan = world.state.plan_time(crate::world::at(world.now));
    let moment = world.next_moment(plan.at);
    let restored = |after| Fact::LogRestored(noondrop_core::LogRestored { after }).into();
    world.state.open_turn(moment);
    let before = noondrop_core::Seq(moment.seq.0 - 1);
    for wrong in [noondrop_core::Seq(before.0 - 1), moment.seq] {
        assert!(world.state.apply(&restored(wrong)).is_err(), "{wrong:?}");
    }
    world.state.apply(&restored(before)).unwrap();
    world.state.undo_turn().unwrap();
}
