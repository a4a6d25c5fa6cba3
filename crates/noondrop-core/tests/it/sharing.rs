//! Tables for items that share units, and for units set aside: one line per event, with what is expected of it.

use noondrop_core::codec::decode_row;
use noondrop_core::{Fact, ItemIx, limits};

use crate::checks::block;
use crate::script::run;
use crate::world::{World, item, plain_terms};

/// A hall of 5 with two kinds of tickets that have no units of their own, and 2 VIP places in it.
fn hall() -> World {
    let items = [
        item("hall", Some(5), &[]),
        item("adult", None, &["hall"]),
        item("child", None, &["hall"]),
        item("vip", Some(2), &["hall"]),
    ];
    World::offering(plain_terms(), &items)
}

fn floor() -> World {
    World::selling(plain_terms(), &[("a", 5, 0)])
}

#[test]
fn the_last_place_of_a_hall_goes_to_one_ticket_of_any_kind() {
    run(
        &mut hall(),
        "
        0  hold adult:4 by ann      -> #0 active end=60 ext=2 1:adult=held4
        0  see hall                 -> total=5 held=4 sold=0 available=1 oversold=0
        0  see adult                -> total=0 held=0 sold=0 available=0 oversold=0
        0  hold child:1 by bob      -> #1 active
        &  hold vip:1 by cyd        -> all_held 1:vip@hall=all_held,asked1,free0,held5,most5,at60
        1  confirm #0 pay p         -> #0 confirmed
        1  see hall                 -> total=5 held=1 sold=4 available=0
        1  release #1               -> #1 released
        1  hold vip:2 by cyd        -> not_enough_free 1:vip@hall=not_enough_free,asked2,free1,held0,most1,at-
        1  hold vip:3 by cyd        -> not_enough_free 1:vip=not_enough_free,asked3,free2,held0,most2,at-
        1  hold vip:1 by cyd        -> #2 active
        1  see vip                  -> total=2 held=1 sold=0 available=1
        1  cancel #0 lines 1:1      -> #0 confirmed 1:adult=sold3,cancelled1
        1  see hall                 -> total=5 held=1 sold=3 available=1
        61 see vip                  -> held=0 available=2
        61 see hall                 -> held=0 sold=3 available=2
        61 hold child:3 by bob      -> not_enough_free 1:child@hall=not_enough_free,asked3,free2,held0,most2,at-
    ",
    );
}

/// Cancelling freed the ticket and not the hall, or the other way round.
#[test]
fn what_comes_back_comes_back_in_every_pool() {
    run(
        &mut hall(),
        "
        0  hold vip:2,adult:1 by ann       -> #0 active
        0  see hall                        -> held=3
        0  release #0 lines 1:1            -> #0 active 1:vip=held1,released1 2:adult=held1
        0  see hall                        -> held=2 available=3
        0  see vip                         -> held=1 available=1
        0  confirm #0 pay p                -> #0 confirmed
        0  cancel #0 lines 1 destroyed     -> #0 confirmed
        0  see vip                         -> total=1 held=0 sold=0 available=1
        0  see hall                        -> total=4 held=0 sold=1 available=3
    ",
    );
}

#[test]
fn sums_are_over_pools_and_not_over_lines() {
    run(
        &mut hall(),
        "
        0  hold adult:3,child:3 by ann         -> not_enough_free 1:adult@hall=not_enough_free,asked3,free5,held0,most5,at- 2:child@hall=not_enough_free,asked3,free5,held0,most5,at-
        0  hold adult:2,vip:1,hall:2 by ann    -> #0 active
        0  see hall                            -> held=5 available=0
        0  hold adult:3,vip:2 by ann replaces #0  -> #1 active
        0  hold adult:4,vip:2 by ann replaces #1  -> not_enough_free
        0  see hall                            -> held=5
    ",
    );
}

#[test]
fn a_limit_on_a_pool_counts_all_that_draws_on_it_once() {
    let mut world = hall();
    run(
        &mut world,
        "
        0  sale noon limit three:hall,vip=3   -> noon open v2
        0  hold adult:1,vip:1 by ann          -> #0
        0  hold child:2 by ann                -> limit_per_buyer three=2/3
        0  hold child:1 by ann                -> #1
        0  hold vip:1 by ann                  -> limit_per_buyer three=3/3
        0  sale noon limit tickets:adult=1    -> noon open v3
        0  hold vip:1 by ann                  -> #2
        0  hold adult:1 by ann                -> limit_per_buyer tickets=1/1
    ",
    );
}

#[test]
fn what_an_item_counts_against_stays_while_its_units_are_out() {
    run(&mut hall(), "
        0  hold adult:1 by ann               -> #0
        0  hold vip:1 by bob                 -> #1
        0  item vip total 2                  -> invalid_field counts_against
        0  item adult against vip            -> invalid_field counts_against
        0  item child against vip            -> child total=0 held=0 sold=0 available=0 oversold=0 v2
        0  item child against vip            -> child v2
        0  hold child:2 by cyd               -> not_enough_free 1:child@vip=not_enough_free,asked2,free1,held1,most2,at60
        0  hold child:1 by cyd               -> #2
        0  see vip                           -> held=2
        0  see hall                          -> held=3
        0  confirm #1 pay p                  -> #1 confirmed
        0  release #2                        -> #2 released
        0  item vip total 2                  -> invalid_field counts_against
        0  cancel #1                         -> #1 cancelled
        0  item vip total 2                  -> vip v2
        0  hold child:2 by cyd               -> #3
        0  see hall                          -> held=1
        0  item vip total 2 against hall     -> invalid_field counts_against
    ");
}

#[test]
fn what_an_item_may_count_against() {
    let mut world = hall();
    run(&mut world, "
        0  item x                                  -> invalid_field total
        0  item x against nowhere                  -> invalid_field counts_against[0]
        0  item x against hall,vip,hall            -> invalid_field counts_against[2]
        0  item x total 1 against x                -> invalid_field counts_against[0]
        0  item x oversell 1 against hall          -> invalid_field oversell_limit
        0  item hall total 5 against vip           -> invalid_field counts_against[0]
        0  item hall total 5 against hall          -> invalid_field counts_against[0]
        0  item adult total 3 against hall         -> invalid_field total
        0  item vip against hall                   -> invalid_field total
        0  item adult                              -> invalid_field total
        0  item vip total 3 against hall           -> use_adjust total=2
        0  adjust adult by 1                       -> invalid_field item
        0  item x against adult,vip if 0           -> x total=0 held=0 sold=0 available=0 oversold=0 v1 created
        0  hold x:1                                -> #0
        0  see hall                                -> held=1
        0  see vip                                 -> held=1
    ");
    let many: Vec<String> = (0..9).map(|n| format!("p{n}")).collect();
    for pool in &many {
        world.step(&crate::script::parse(&["item", pool, "total", "1"]));
    }
    let against = many.join(",");
    let told = world.step(&crate::script::parse(&["item", "y", "against", &against]));
    assert_eq!(told, "invalid_field counts_against");
    let against = many[..8].join(",");
    let told = world.step(&crate::script::parse(&["item", "y", "against", &against]));
    assert!(told.ends_with("v1 created"), "{told}");
    let told = world.step(&crate::script::parse(&["item", "z", "against", "y"]));
    assert_eq!(told, "invalid_field counts_against", "those that follow are counted");
    let told = world.step(&crate::script::parse(&["item", "p0", "total", "1", "against", "hall"]));
    assert_eq!(told, "invalid_field counts_against", "an item below would have too many");
}

/// A change in the middle is told of each item that takes from other pools because of it.
#[test]
fn a_change_below_an_item_is_a_fact_of_that_item() {
    let mut world = hall();
    run(
        &mut world,
        "
        0  item site total 9                       -> site
        0  item hall total 5 against site          -> hall v2
    ",
    );
    let row = world.log.last().expect("the row of the change");
    let draws: Vec<_> = decode_row(1, &row.facts, &row.private)
        .unwrap()
        .into_iter()
        .map(|entry| match entry.fact {
            Fact::ItemDefined(fact) => (fact.name.to_string(), fact.version, fact.draws),
            other => panic!("{other:?}"),
        })
        .collect();
    let (hall, vip, site) = (ItemIx(0), ItemIx(3), ItemIx(4));
    let told = [
        ("hall".to_owned(), 2, vec![hall, site]),
        ("adult".into(), 1, vec![hall, site]),
        ("child".into(), 1, vec![hall, site]),
        ("vip".into(), 1, vec![vip, hall, site]),
    ];
    assert_eq!(draws, told);
    assert_eq!(world.replayed().dump(), world.dump());
}

/// A fact that changes what claimed units took is not taken, whoever wrote it.
#[test]
fn a_fact_that_changes_what_claimed_units_took_does_not_fit() {
    let mut world = hall();
    run(&mut world, "0  hold vip:1 by ann   -> #0");
    let row = &world.log[6];
    let mut entries = decode_row(1, &row.facts, &row.private).unwrap();
    let Fact::ItemDefined(vip) = &mut entries.last_mut().unwrap().fact else {
        panic!("{entries:?}")
    };
    assert_eq!(vip.name.as_str(), "vip");
    (vip.draws, vip.version) = (vec![vip.item], 2);
    world.state.open_turn(world.next_moment(world.state.last_at()));
    assert!(world.state.apply(entries.last().unwrap()).is_err());
}

#[test]
fn units_set_aside_are_for_who_names_their_label() {
    run(
        &mut floor(),
        "
        0  block a:3 label x key k          -> a total=5 held=0 sold=0 available=2 oversold=0 x:3 v1
        0  block a:3 label x key k          -> replay a total=5 held=0 sold=0 available=2 oversold=0 x:3 v1
        0  block a:2 label x key k          -> key_reused
        0  block a:3 label y key l          -> not_enough_free 0:a=not_enough_free,asked3,free2,held0,most2,at-
        0  block a:3 label y key l          -> replay not_enough_free
        0  hold a:3 by ann                  -> not_enough_free 1:a=not_enough_free,asked3,free2,held0,most2,at-
        0  hold a:3<x by ann                -> #0 active end=60 ext=2 1:a<x=held3
        0  see a                            -> total=5 held=3 sold=0 available=2 oversold=0
        0  hold a:1<x by bob key m          -> not_enough_free 1:a<=not_enough_free,asked1,free0,held0,most0,at-
        0  hold a:1<y by bob                -> invalid_field lines[0].from
        0  hold a:1<x by bob as bob         -> invalid_field lines[0].from
        0  release #0 lines 1:1             -> #0 active 1:a<x=held2,released1
        0  see a                            -> held=2 available=2 x:1
        0  hold a:1<x by bob key m          -> replay not_enough_free
        0  confirm #0 pay p                 -> #0 confirmed 1:a<x=sold2,released1
        0  see a                            -> held=0 sold=2 available=2 x:1
        0  hold a:2 by ann                  -> #1
        0  hold a:1 by ann                  -> all_held 1:a=all_held,asked1,free0,held2,most2,at60
        0  unblock a:2 label x              -> not_enough_free 0:a<=not_enough_free,asked2,free1,held2,most1,at-
        0  unblock a:1 label z              -> not_enough_free 0:a=not_enough_free,asked1,free0,held2,most0,at-
        0  unblock a:1 label x              -> a total=5 held=2 sold=2 available=1 oversold=0 v1
        0  hold a:1 by ann                  -> #2
    ",
    );
}

#[test]
fn what_lapses_goes_back_to_its_block() {
    run(
        &mut floor(),
        "
        0   block a:4 label x                  -> a
        0   hold a:4<x by ann ttl 10 key k     -> #0 active
        0   hold a:1 by bob ttl 20             -> #1
        0   hold a:1 by cyd                    -> all_held 1:a=all_held,asked1,free0,held5,most5,at20
        10  see a                              -> total=5 held=1 sold=0 available=0 oversold=0 x:4
        10  hold - by ann retakes #0 pays p    -> #2 confirmed 1:a<x=sold4
        10  see a                              -> held=1 sold=4 available=0
        10  hold a:4<x by ann ttl 10 key k     -> replay #0 active end=10 ext=2 1:a<x=held4
    ",
    );
}

#[test]
fn a_replaced_hold_gives_its_block_what_it_had() {
    run(
        &mut floor(),
        "
        0  block a:3 label x              -> a
        0  hold a:2<x by ann              -> #0
        0  hold a:3<x by ann replaces #0  -> #1 active 1:a<x=held3 supersedes=#0
        0  see a                          -> held=3 available=2
        0  hold a:4<x by ann replaces #1  -> not_enough_free 1:a<=not_enough_free,asked4,free3,held0,most3,at-
        0  hold a:3 by ann replaces #1    -> not_enough_free 1:a=not_enough_free,asked3,free2,held3,most5,at-
        0  hold a:2 by ann replaces #1    -> #2 active 1:a=held2
        0  see a                          -> held=2 available=0 x:3
    ",
    );
}

#[test]
fn cancelled_units_go_where_they_are_told_to() {
    let mut world = floor();
    run(&mut world, "
        0  hold a:5 by ann                       -> #0
        0  confirm #0 pay p                      -> #0 confirmed
        0  cancel #0 lines 1:1 to x              -> #0 confirmed
        0  cancel #0 lines 1:1                   -> #0 confirmed
        0  see a                                 -> total=5 held=0 sold=3 available=1 oversold=0 x:1
        0  sale noon returns back                -> noon open v2
        0  cancel #0 lines 1:1                   -> #0 confirmed
        0  cancel #0 lines 1:1 to stock          -> #0 confirmed
        0  see a                                 -> total=5 held=0 sold=1 available=2 oversold=0 x:1 back:1
        0  hold a:1 by bob ttl 10                -> #1
        10 see a                                 -> held=0 sold=1 available=2 x:1 back:1
        10 sale noon returns back lapsed         -> noon open v3
        10 hold a:2 by bob ttl 10                -> #2
        10 hold a:1 by cyd                       -> all_held 1:a=all_held,asked1,free0,held2,most2,at-
        10 release #2 lines 1:1                  -> #2 active
        20 see a                                 -> total=5 held=0 sold=1 available=0 oversold=0 x:1 back:3
        20 hold a:1 by cyd                       -> sold_out 1:a=sold_out,asked1,free0,held0,most0,at-
    ");
}

/// A ticket without units of its own comes back to the hall that it took from.
#[test]
fn a_block_lies_in_the_first_pool_of_an_item() {
    run(
        &mut hall(),
        "
        0  sale noon returns back            -> noon open v2
        0  block adult:1 label x             -> invalid_field item
        0  hold vip:1,adult:1 by ann         -> #0
        0  confirm #0 pay p                  -> #0 confirmed
        0  cancel #0                         -> #0 cancelled
        0  see vip                           -> total=2 held=0 sold=0 available=1 oversold=0 back:1
        0  see hall                          -> total=5 held=0 sold=0 available=4 oversold=0 back:1
        0  hold child:1<back,vip:1<back      -> #1 active 1:child<back=held1 2:vip<back=held1
        0  see vip                           -> held=1 available=1
        0  see hall                          -> held=2 available=3
        0  hold adult:3 by bob               -> #2
        0  block vip:1 label x               -> vip
        0  hold vip:1<x by cyd               -> all_held 1:vip@hall=all_held,asked1,free0,held5,most5,at60
    ",
    );
}

#[test]
fn who_may_set_units_aside_and_where() {
    run(
        &mut floor(),
        "
        0  block x:1 label x     -> item_not_found 0:x
        0  block a:0 label x     -> invalid_field quantity
        0  unblock a:0 label x   -> invalid_field quantity
        0  pause noon            -> noon paused
        0  block a:1 label x     -> a
        0  adjust a by -3        -> a total=2 held=0 sold=0 available=1 oversold=0 x:1 v1
        0  adjust a by -2        -> a total=0 held=0 sold=0 available=0 oversold=1 x:1 v1
        0  close noon            -> noon closed
        0  unblock a:1 label x   -> a total=0 held=0 sold=0 available=0 oversold=0 v1
        0  archive noon          -> noon archived
        0  block a:1 label x     -> sale_archived
        0  unblock a:1 label x   -> sale_archived
    ",
    );
}

#[test]
fn an_item_has_so_many_labels_with_units_at_once() {
    let mut world = World::selling(plain_terms(), &[("a", 100, 0)]);
    let labels: Vec<_> = (0..limits::ITEM_LABELS_MAX).map(|n| format!("l{n}")).collect();
    for label in &labels {
        world.step(&block("a", 1, label));
    }
    run(
        &mut world,
        "
        0  block a:1 label more       -> invalid_field label
        0  block a:1 label l0         -> a
        0  hold a:1 by ann pays p     -> #0 confirmed
        0  cancel #0 to more          -> invalid_field to
        0  unblock a:1 label l1       -> a
        0  cancel #0 to more          -> #0 cancelled
        0  block a:1 label l1         -> invalid_field label
    ",
    );
}
