//! What everyone may know of an item, and what the box office may pass over.

use noondrop_core::{Act, Entry, Fact, Level, Override, Timestamp, few};

use crate::script::{parse, run};
use crate::world::{World, item, plain_items, plain_terms};

/// A sale `noon` that sells `hall` (3 units) and `adult`, which only takes from it, and `vip` (1 of its own and of it).
fn hall() -> World {
    let items = [
        item("hall", Some(3), &[]),
        item("adult", None, &["hall"]),
        item("vip", Some(1), &["hall"]),
    ];
    World::offering(plain_terms(), &items)
}

#[test]
fn a_level_is_what_a_line_of_one_would_meet() {
    run(
        &mut World::selling(plain_terms(), &[("a", 1_000, 0), ("b", 2, 1)]),
        "
        0  see offer:a                  -> available
        0  hold a:979                   -> #0
        0  see offer:a                  -> available
        0  hold a:1                     -> #1
        0  see offer:a                  -> few
        0  hold a:20                    -> #2
        0  see offer:a                  -> all_held
        1  confirm #0 pay p             -> #0 confirmed
        1  confirm #1 pay q             -> #1 confirmed
        1  see offer:a                  -> all_held
        2  confirm #2 pay r             -> #2 confirmed
        3  see offer:a                  -> sold_out since=2
        4  hold a:1                     -> sold_out
        5  see offer:a                  -> sold_out since=2
        6  cancel #1                    -> #1 cancelled
        6  see offer:a                  -> few
        7  hold a:1 pays s              -> #3 confirmed
        8  see offer:a                  -> sold_out since=7
        8  see offer:b                  -> few
        8  hold b:3 pays t              -> #4 confirmed
        9  see offer:b                  -> sold_out since=8
        9  adjust b by 2                -> b total=4
        9  see offer:b                  -> few
        9  block b:1 label x            -> b total=4
        9  see offer:b                  -> few
        10 hold b:1 by bob              -> #5 active
        10 see offer:b                  -> all_held
        11 confirm #5 pay u             -> #5 confirmed
        12 see offer:b                  -> sold_out since=11
    ",
    );
}

#[test]
fn the_narrowest_pool_says_the_level() {
    run(
        &mut hall(),
        "
        0  see offer:adult              -> few
        0  hold vip:1                   -> #0
        0  see offer:vip                -> all_held
        0  see offer:adult              -> few
        1  confirm #0 pay p             -> #0 confirmed
        2  see offer:vip                -> sold_out since=1
        2  see offer:hall               -> few
        3  hold adult:2 pays q          -> #1 confirmed
        4  see offer:hall               -> sold_out since=3
        4  see offer:adult              -> sold_out since=3
        4  see offer:vip                -> sold_out since=1
        5  cancel #1                    -> #1 cancelled
        5  see offer:vip                -> sold_out since=1
        5  see offer:hall               -> few
    ",
    );
}

/// An item that begins without a unit is sold out from its beginning.
#[test]
fn an_item_without_units_is_sold_out_since_it_was_made() {
    run(
        &mut World::selling(plain_terms(), &[("a", 1, 0)]),
        "
        5  item z total 0               -> z total=0
        6  see offer:z                  -> sold_out since=5
        7  adjust z by 2                -> z total=2
        8  see offer:z                  -> few
    ",
    );
}

/// What lapsed is free for who asks, though no turn has said so yet; and never for a moment was it sold out.
#[test]
fn a_hold_that_is_past_its_end_claims_nothing() {
    let mut world = World::offering(plain_terms(), &plain_items(&[("a", 2, 0)]));
    run(&mut world, "0 hold a:2 ttl 10 -> #0");
    let a = world.state.item("main", "noon", "a").expect("it was defined").item;
    let end = world.state.hold_by_no(noondrop_core::HoldNo(0)).expect("it was made").expires_at;
    let level = |at: Timestamp| world.state.offer(a, at).level;
    assert_eq!(level(Timestamp(end.0 - 1)), Level::AllHeld);
    assert_eq!(level(end), Level::Few);
    assert_eq!(world.state.offer(a, end).sold_out_at, None);
}

#[test]
fn few_is_ten_units_or_two_per_cent() {
    let told = [0, 10, 500, 549, 550, 50_000].map(few);
    assert_eq!(told, [10, 10, 10, 10, 11, 1_000]);
}

#[test]
fn the_box_office_passes_over_the_door_and_limits_and_never_over_stock() {
    let mut world = World::new();
    run(
        &mut world,
        "
        0  sale noon holds 1 limit two:a=2                          -> noon draft v1 created
        0  item a total 6                                           -> a total=6
        0  hold a:1 over sale_not_open                              -> invalid_field override
        0  hold a:1 over sale_not_open as ann                       -> invalid_field override
        0  hold a:1 over sale_paused as admin                       -> sale_not_open
        0  hold a:1 over sale_not_open as admin                     -> #0 active
        0  publish noon                                             -> noon open
        0  hold a:1 as admin                                        -> buyer_has_hold
        0  hold a:2 over buyer_has_hold as admin                    -> limit_per_buyer two=1/2
        0  hold a:2 over buyer_has_hold over limit_per_buyer as admin -> #1 active
        0  pause noon                                               -> noon paused
        0  hold a:1 by bob over sale_paused as admin key k          -> #2 active
        0  hold a:1 by bob as admin key k                           -> key_reused
        0  close noon                                               -> noon closed
        0  hold a:1 by cyd over sale_paused as admin                -> sale_closed
        0  hold a:3 by cyd over sale_closed as admin                -> limit_per_buyer two=0/2
        0  hold a:3 by cyd over sale_closed over limit_per_buyer as admin key n -> not_enough_free
        0  hold a:2 by cyd over sale_closed over sale_paused as admin -> #3 active
        1  hold a:1 by dan over sale_closed as admin                -> all_held
        1  hold a:1 in moon over sale_closed as admin               -> sale_not_found
        2  confirm #3 pay p                                         -> #3 confirmed
        61 archive noon                                             -> noon archived
        61 hold a:1 by dan over sale_closed as admin                -> sale_archived
    ",
    );
}

/// The fact says what was passed over, and not what only might have been; the reason travels beside it.
#[test]
fn a_fact_says_which_refusals_were_passed_over() {
    let mut world = World::selling(plain_terms(), &[("a", 9, 0)]);
    run(&mut world, "0 pause noon -> noon paused");
    let asked = ["hold", "a:1", "over", "sale_closed", "over", "sale_paused", "as", "admin"];
    let command = world.command(&parse(&asked));
    let Act::HoldCreate(_) = &command.act else { panic!("a new hold: {command:?}") };
    let mut entries: Vec<Entry> = world.open(&[]);
    world.decide(&command, &mut entries);
    let made = entries.iter().find_map(|entry| match &entry.fact {
        Fact::HoldCreated(fact) => Some((fact.overridden.clone(), entry.private.clone())),
        _ => None,
    });
    let (overridden, private) = made.expect("it is made");
    assert_eq!(overridden, Some(vec![Override::SalePaused]));
    let private = private.expect("a hold has texts");
    assert_eq!(private.reason.as_deref(), Some("at the counter"));
    world.close(&entries);
    run(&mut world, "0 resume noon -> noon open");
    let plain = ["hold", "a:1", "over", "sale_paused", "as", "admin"];
    let command = world.command(&parse(&plain));
    let mut entries: Vec<Entry> = world.open(&[]);
    world.decide(&command, &mut entries);
    let Some(Fact::HoldCreated(fact)) = entries.last().map(|entry| &entry.fact) else {
        panic!("it is made: {entries:?}")
    };
    assert_eq!(fact.overridden, None, "nothing was in its way");
}

/// 400 days for who sells at the counter; a buyer is bound by the sale.
#[test]
fn sellers_and_admins_hold_for_400_days() {
    run(
        &mut World::selling(plain_terms(), &[("a", 9, 0)]),
        "
        0  hold a:1 ttl 34560000            -> #0 active end=34560000
        0  hold a:1 ttl 34560000 as admin   -> #1 active end=34560000
        0  hold a:1 ttl 34560001            -> invalid_field ttl_seconds
        0  hold a:1 ttl 601 as ann          -> invalid_field ttl_seconds
        34559999  see #0                    -> #0 active
        34560000  see #0                    -> #0 expired
    ",
    );
}
