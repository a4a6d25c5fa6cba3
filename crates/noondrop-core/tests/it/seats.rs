//! Seats: which ones a hold gets, keeps and gives back.

use noondrop_core::seats::SeatDef;
use noondrop_core::{
    Act, CancelTo, HoldCreate, HoldRef, HoldState, HoldView, ItemPut, LineAsked, LinePart, Outcome,
    SeatsAsked, StockCode,
};
use proptest::prelude::*;

use crate::seating::{
    best, block, cancel, change, code, confirm, counts, create, deeds, done, hall, hold, kept,
    names, no_hold, open_with, plays, put, random_seatings, refused, release, seat, these,
    together,
};
use crate::world::{World, name, plain_terms};

#[test]
fn the_best_seats_go_first_and_named_ones_to_whoever_names_them() {
    let mut world = open_with(hall());
    assert_eq!(counts(&world), [14, 0, 0, 14, 0]);
    let first = hold(&mut world, vec![together(2)]);
    assert_eq!(kept(&first), ["A-1-1", "A-1-2"]);
    // Three are left in the row: two of them would leave one alone, so it is moved, and still one is.
    assert_eq!(kept(&hold(&mut world, vec![these(&["A-1-4"])])), ["A-1-4"]);
    let refusal = no_hold(&mut world, vec![these(&["A-1-5", "A-1-4", "A-1-1"])]);
    assert_eq!(code(&refusal), "1:seat_taken free1 A-1-4=held,A-1-1=held");
    assert_eq!(code(&no_hold(&mut world, vec![these(&["Z-1-1"])])), "seat_not_found");
    assert_eq!(code(&no_hold(&mut world, vec![these(&["A-1-5", "A-1-5"])])), "invalid_field");
    let gold = SeatsAsked { zone: Some(name("gold")), together: true, ..SeatsAsked::default() };
    assert_eq!(kept(&hold(&mut world, vec![best(3, gold.clone())])), ["A-2-1", "A-2-2", "A-2-3"]);
    assert_eq!(code(&no_hold(&mut world, vec![best(2, gold)])), "1:not_together free2");
    let chairs = SeatsAsked { tags: Some(names(&["wheelchair"])), ..SeatsAsked::default() };
    assert_eq!(
        code(&no_hold(&mut world, vec![LineAsked::units(name("hall"), 7)])),
        "1:not_enough_free free6"
    );
    assert_eq!(kept(&hold(&mut world, vec![best(1, chairs)])), ["B-2-1"]);
    let nowhere = SeatsAsked { sections: Some(names(&["C"])), ..SeatsAsked::default() };
    assert_eq!(code(&no_hold(&mut world, vec![best(1, nowhere)])), "1:not_enough_free free0");
}

#[test]
fn a_hold_of_several_lines_gets_each_seat_once() {
    let mut world = open_with(hall());
    let lines =
        vec![together(2), these(&["A-1-1"]), together(2), LineAsked::units(name("floor"), 1)];
    let made = hold(&mut world, lines);
    let seats: Vec<(u8, String)> =
        made.seats.iter().map(|seat| (seat.line, seat.name.to_string())).collect();
    let told: Vec<String> = seats.iter().map(|(line, seat)| format!("{line}:{seat}")).collect();
    assert_eq!(told, ["1:A-1-2", "1:A-1-3", "2:A-1-1", "3:A-1-4", "3:A-1-5"]);
    let refusal = no_hold(&mut world, vec![LineAsked::units(name("floor"), 9)]);
    assert_eq!(code(&refusal), "1:not_enough_free free2");
    let seats = SeatsAsked { together: true, ..SeatsAsked::default() };
    let wrong = LineAsked { seats: Some(Box::new(seats)), ..LineAsked::units(name("floor"), 1) };
    assert_eq!(code(&no_hold(&mut world, vec![wrong])), "invalid_field");
}

#[test]
fn seats_come_back_one_by_one_or_with_their_hold() {
    let mut world = open_with(hall());
    let made = hold(&mut world, vec![these(&["A-1-1", "A-1-2", "A-1-3"])]);
    let part = |seats: &[&str]| {
        Some(vec![LinePart { seats: Some(names(seats)), ..LinePart::units(1, None) }])
    };
    let unnamed = Some(vec![LinePart::units(1, Some(1))]);
    assert_eq!(code(&refused(&mut world, release(&made, unnamed))), "invalid_field");
    assert_eq!(code(&refused(&mut world, release(&made, part(&["A-1-4"])))), "invalid_field");
    let Outcome::Hold(left) = done(&mut world, release(&made, part(&["A-1-2"]))) else { panic!() };
    assert_eq!(kept(&left), ["A-1-1", "A-1-3"]);
    assert_eq!(counts(&world), [14, 2, 0, 12, 0]);
    confirm(&mut world, &made);
    assert_eq!(counts(&world), [14, 0, 2, 12, 0]);
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-1", "A-1-2"])])),
        "1:seat_taken free1 A-1-1=sold"
    );
    done(&mut world, cancel(&made, part(&["A-1-1"]), CancelTo::Stock));
    assert_eq!(counts(&world), [14, 0, 1, 13, 0]);
    done(&mut world, cancel(&made, None, CancelTo::Destroyed));
    assert_eq!(counts(&world), [13, 0, 0, 13, 0]);
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-3"])])),
        "1:seat_taken free0 A-1-3=removed"
    );
    let other = hold(&mut world, vec![these(&["A-1-1", "A-1-2"])]);
    world.wait(10_000);
    let again = hold(&mut world, vec![these(&["A-1-1"])]);
    assert_eq!(kept(&again), ["A-1-1"]);
    let lapsed = world.state.hold(other.id).expect("a hold is never forgotten");
    assert_eq!((lapsed.state, kept(&lapsed).len()), (HoldState::Expired, 0));
}

#[test]
fn a_replaced_hold_frees_its_seats_for_the_one_that_replaces_it() {
    let mut world = open_with(hall());
    let old = hold(&mut world, vec![these(&["A-1-1", "A-1-2"])]);
    let replaces = HoldRef { hold: old.id, fence: old.fence };
    let wanted = create(&world, vec![these(&["A-1-2", "A-1-3"])]);
    let act = HoldCreate { supersedes: Some(replaces), ..wanted };
    let Outcome::Hold(new) = done(&mut world, Act::HoldCreate(act)) else { panic!() };
    assert_eq!(kept(&new), ["A-1-2", "A-1-3"]);
    let replaces = HoldRef { hold: new.id, fence: new.fence };
    let wanted = create(&world, vec![together(5)]);
    let act = HoldCreate { supersedes: Some(replaces), ..wanted };
    let Outcome::Hold(whole) = done(&mut world, Act::HoldCreate(act)) else { panic!() };
    assert_eq!(kept(&whole).len(), 5);
    assert_eq!(counts(&world), [14, 5, 0, 9, 0]);
}

#[test]
fn late_money_gets_the_same_seats_or_none() {
    let mut world = open_with(hall());
    let late = hold(&mut world, vec![these(&["A-1-1", "A-1-2"])]);
    let gone = hold(&mut world, vec![these(&["A-1-4", "A-1-5"])]);
    world.wait(10_000);
    hold(&mut world, vec![these(&["A-1-5"])]);
    let digest = world.digester.payment("main", "late");
    let payment = noondrop_core::Digested { digest, text: "late".into() };
    let retake = |world: &World, of: &HoldView| {
        let wanted = create(world, Vec::new());
        let (retake, confirm) = (Some(of.id), Some(payment.clone()));
        Act::HoldCreate(HoldCreate { retake, confirm, ..wanted })
    };
    let act = retake(&world, &late);
    let Outcome::Hold(again) = done(&mut world, act) else { panic!() };
    assert_eq!(
        (again.state, kept(&again)),
        (HoldState::Confirmed, vec!["A-1-1".into(), "A-1-2".into()])
    );
    let act = retake(&world, &gone);
    let refusal = refused(&mut world, act);
    assert_eq!(refusal.code(), "units_gone");
    assert_eq!(code(&refusal), "1:seat_taken free1 A-1-5=held");
}

#[test]
fn seats_set_aside_are_only_for_who_draws_on_their_label() {
    let mut world = open_with(hall());
    done(&mut world, block(&["A-1-1", "A-1-2"], false));
    let item = world.state.item("main", "noon", "hall").expect("the hall is on sale");
    assert_eq!((item.counts.blocked, item.blocks[0].quantity), (2, 2));
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-1", "A-1-3"])])),
        "1:seat_taken free1 A-1-1=blocked"
    );
    assert_eq!(kept(&hold(&mut world, vec![together(2)])), ["A-1-3", "A-1-4"]);
    let from = |line: LineAsked| LineAsked { from: Some(Box::new(name("sponsor"))), ..line };
    assert_eq!(
        code(&no_hold(&mut world, vec![from(these(&["A-1-5"]))])),
        "1:seat_taken free0 A-1-5=free"
    );
    assert_eq!(code(&no_hold(&mut world, vec![from(together(3))])), "1:not_enough_free free2");
    let guest = hold(&mut world, vec![from(these(&["A-1-2"]))]);
    assert_eq!(
        code(&refused(&mut world, block(&["A-1-1", "A-1-2"], true))),
        "0:not_enough_free free1"
    );
    done(&mut world, release(&guest, None));
    done(&mut world, block(&["A-1-2"], true));
    assert_eq!(kept(&hold(&mut world, vec![these(&["A-1-2"])])), ["A-1-2"]);
    // What lapses goes back to its block, and a cancelled seat where it is sent.
    let guest = hold(&mut world, vec![from(LineAsked::units(name("hall"), 1))]);
    world.wait(10_000);
    world.turn(&[]);
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-1"])])),
        "1:seat_taken free0 A-1-1=blocked"
    );
    assert_eq!(kept(&world.state.hold(guest.id).expect("known")).len(), 0);
    let other = hold(&mut world, vec![these(&["A-2-1"])]);
    confirm(&mut world, &other);
    done(&mut world, cancel(&other, None, CancelTo::Block(name("returns"))));
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-2-1"])])),
        "1:seat_taken free0 A-2-1=blocked"
    );
    assert_eq!(counts(&world), [14, 0, 0, 12, 0]);
    done(&mut world, change(Vec::new(), &["A-2-1"]));
    assert_eq!(counts(&world), [13, 0, 0, 12, 0]);
}

#[test]
fn seats_count_against_a_pool_and_nothing_counts_against_seats() {
    let mut world = World::selling(plain_terms(), &[("venue", 3, 0)]);
    let Act::ItemPut(hall) = put(hall()) else { panic!() };
    let shared = ItemPut { counts_against: Some(vec![name("venue")]), ..hall.clone() };
    done(&mut world, Act::ItemPut(shared));
    let on_hall = ItemPut {
        item: name("adult"),
        counts_against: Some(vec![name("hall")]),
        seats: None,
        ..hall
    };
    assert_eq!(code(&refused(&mut world, Act::ItemPut(on_hall))), "invalid_field");
    let held = hold(&mut world, vec![together(2)]);
    let venue = |world: &World| {
        let item = world.state.item("main", "noon", "venue").expect("the venue is there");
        (item.counts.held, item.counts.sold, item.counts.total)
    };
    assert_eq!(venue(&world), (2, 0, 3));
    assert_eq!(code(&no_hold(&mut world, vec![together(2)])), "1:not_enough_free free1");
    confirm(&mut world, &held);
    done(&mut world, cancel(&held, None, CancelTo::Destroyed));
    assert_eq!((venue(&world), counts(&world)), ((0, 0, 1), [12, 0, 0, 12, 0]));
}

#[test]
fn seats_are_added_and_removed_during_the_sale() {
    let mut world = open_with(hall());
    let owner = hold(&mut world, vec![these(&["A-1-1"])]);
    confirm(&mut world, &owner);
    done(&mut world, change(vec![seat("A-1-10"), seat("A-3-1")], &["A-1-1", "A-1-2"]));
    // Somebody has one of the two: it stays his, beyond the total.
    assert_eq!(counts(&world), [14, 0, 1, 14, 1]);
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-2"])])),
        "1:seat_taken free0 A-1-2=removed"
    );
    done(&mut world, cancel(&owner, None, CancelTo::Stock));
    assert_eq!(counts(&world), [14, 0, 0, 14, 0]);
    assert_eq!(
        code(&no_hold(&mut world, vec![these(&["A-1-1"])])),
        "1:seat_taken free0 A-1-1=removed"
    );
    // It comes back as it was, or not at all.
    let other = SeatDef { rank: 9, ..seat("A-1-1") };
    assert_eq!(code(&refused(&mut world, change(vec![other], &[]))), "invalid_field");
    done(&mut world, change(vec![seat("A-1-1")], &[]));
    assert_eq!(kept(&hold(&mut world, vec![these(&["A-1-1"])])), ["A-1-1"]);
    // Nothing to change is nothing to tell.
    let rows = world.log.len();
    done(&mut world, change(vec![seat("A-1-1")], &["A-1-2"]));
    assert_eq!(world.log.last().map(|row| row.facts.len()), Some(0));
    assert_eq!(world.log.len(), rows + 1);
    assert_eq!(
        code(&refused(&mut world, change(vec![seat("A-9-1"), seat("A-9-1")], &[]))),
        "invalid_field"
    );
    assert_eq!(code(&refused(&mut world, change(Vec::new(), &["Z-1-1"]))), "seat_not_found");
    assert_eq!(code(&refused(&mut world, put(hall()))), "use_adjust");
}

#[test]
fn random_seatings_hold_with_nothing_planted() {
    random_seatings();
}

#[test]
fn stock_codes_of_seats_come_after_those_of_counts() {
    assert!(StockCode::NotEnoughFree < StockCode::SeatTaken);
    assert!(StockCode::SeatTaken < StockCode::NotTogether);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_each_seat_has_one_owner(deeds in deeds()) {
        plays(&deeds);
    }
}
