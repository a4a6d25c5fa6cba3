//! Seats: which ones a hold gets, keeps and gives back. Tables first, then random worlds against a naive account of
//! who has which seat; after each turn everything is counted again, undone, replayed and read from a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use noondrop_core::seats::SeatDef;
use noondrop_core::{
    Act, Actor, CancelTo, Command, HoldCancel, HoldConfirm, HoldCreate, HoldRef, HoldRelease,
    HoldState, HoldView, ItemPut, ItemSeats, ItemView, KeyUse, LineAsked, LinePart, Name, Outcome,
    Refusal, Role, SeatKept, SeatsAsked, State, StockCode,
};
use proptest::prelude::*;

use crate::world::{Answer, World, name, plain_terms};

/// `A-1-3` is seat 3 of row 1 in section A; its rank is its row, and row 2 of section B is for wheelchairs.
fn seat(text: &str) -> SeatDef {
    let mut parts = text.split('-');
    let (section, row, number) = (parts.next(), parts.next(), parts.next());
    let row = row.expect("a row");
    let number: u32 = number.expect("a number").parse().expect("a number");
    let section = section.expect("a section");
    let tags = if section == "B" && row == "2" { vec![name("wheelchair")] } else { Vec::new() };
    SeatDef {
        name: name(text),
        section: name(section),
        row: name(row),
        number,
        rank: row.parse().expect("a row is a number"),
        tags,
        zone: Some(name(if section == "A" { "gold" } else { "silver" })),
    }
}

fn hall() -> Vec<SeatDef> {
    let mut seats = Vec::new();
    for (section, row, many) in [("A", 1, 5), ("A", 2, 3), ("B", 1, 4), ("B", 2, 2)] {
        seats.extend((1..=many).map(|number| seat(&format!("{section}-{row}-{number}"))));
    }
    seats
}

fn open_with(seats: Vec<SeatDef>) -> World {
    let mut world = World::selling(plain_terms(), &[("floor", 3, 0)]);
    let made = done(&mut world, put(seats));
    let Outcome::Item(item) = made else { panic!("{made:?}") };
    assert!(item.created && item.seated);
    world
}

fn put(seats: Vec<SeatDef>) -> Act {
    Act::ItemPut(ItemPut {
        sale: name("noon"),
        item: name("hall"),
        total: 0,
        oversell_limit: 0,
        if_version: None,
        seats: Some(seats),
    })
}

fn by_till(act: Act, key: Option<KeyUse>) -> Command {
    let actor = Actor::Principal { name: name("till"), role: Role::Seller };
    Command { shop: name("main"), actor, key, origin: None, act }
}

/// One act in a turn of its own, checked from all sides.
fn answer(world: &mut World, act: Act) -> Answer {
    let command = by_till(act, None);
    // First as a turn that is lost.
    let before = world.state.sum();
    let mut trial = world.open(&[]);
    world.decide(&command, &mut trial);
    world.state.check_touched().expect("nothing that a turn touched is wrong");
    world.state.undo_turn().expect("an undone turn leaves nothing behind");
    assert_eq!(world.state.sum(), before);
    world.state.recount().expect("an undone turn leaves all counts as they were");
    let answer = world.turn(&[command]).pop().expect("one command, one answer");
    world.state.recount().expect("all that must hold does");
    answer
}

fn done(world: &mut World, act: Act) -> Outcome {
    match answer(world, act) {
        Answer::Done(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn refused(world: &mut World, act: Act) -> Refusal {
    match answer(world, act) {
        Answer::Door(refusal) | Answer::Done(Outcome::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

fn names(seats: &[&str]) -> Vec<Name> {
    seats.iter().map(|seat| name(seat)).collect()
}

fn these(seats: &[&str]) -> LineAsked {
    let asked = SeatsAsked { named: Some(names(seats)), ..SeatsAsked::default() };
    let quantity = u32::try_from(seats.len()).expect("few");
    LineAsked { seats: Some(Box::new(asked)), ..LineAsked::units(name("hall"), quantity) }
}

fn best(quantity: u32, asked: SeatsAsked) -> LineAsked {
    LineAsked { seats: Some(Box::new(asked)), ..LineAsked::units(name("hall"), quantity) }
}

fn together(quantity: u32) -> LineAsked {
    best(quantity, SeatsAsked { together: true, ..SeatsAsked::default() })
}

fn create(world: &World, lines: Vec<LineAsked>) -> HoldCreate {
    HoldCreate {
        sale: name("noon"),
        buyer: world.digester.digested_buyer("main", "ann"),
        reference: None,
        lines: lines.into_iter().collect(),
        ttl_seconds: Some(10),
        metadata: None,
        supersedes: None,
        retake: None,
        confirm: None,
    }
}

fn hold(world: &mut World, lines: Vec<LineAsked>) -> HoldView {
    let act = Act::HoldCreate(create(world, lines));
    match done(world, act) {
        Outcome::Hold(hold) => hold,
        other => panic!("{other:?}"),
    }
}

fn no_hold(world: &mut World, lines: Vec<LineAsked>) -> Refusal {
    let act = Act::HoldCreate(create(world, lines));
    refused(world, act)
}

fn confirm(world: &mut World, hold: &HoldView) {
    let digest = world.digester.payment("main", "p");
    let payment_ref = noondrop_core::Digested { digest, text: "p".into() };
    done(world, Act::HoldConfirm(HoldConfirm { hold: hold.id, fence: hold.fence, payment_ref }));
}

fn release(hold: &HoldView, lines: Option<Vec<LinePart>>) -> Act {
    Act::HoldRelease(HoldRelease { hold: hold.id, fence: Some(hold.fence), lines, reason: None })
}

fn cancel(hold: &HoldView, lines: Option<Vec<LinePart>>, to: CancelTo) -> Act {
    let reason = "returned".into();
    Act::HoldCancel(HoldCancel { hold: hold.id, fence: hold.fence, lines, to, reason })
}

fn change(add: Vec<SeatDef>, remove: &[&str]) -> Act {
    Act::ItemSeats(ItemSeats {
        sale: name("noon"),
        item: name("hall"),
        add,
        remove: names(remove),
        reason: "rebuilt".into(),
    })
}

/// What the hold still has.
fn kept(hold: &HoldView) -> Vec<String> {
    let kept = hold.seats.iter().filter(|seat| seat.kept == SeatKept::Kept);
    kept.map(|seat| seat.name.to_string()).collect()
}

fn hall_of(state: &State) -> ItemView {
    state.item("main", "noon", "hall").expect("the hall is on sale")
}

/// total, held, sold, available, oversold
fn counts(world: &World) -> [u64; 5] {
    let counts = hall_of(&world.state).counts;
    let [total, held, sold] = [counts.total, counts.held, counts.sold].map(u64::from);
    [total, held, sold, counts.available(), counts.oversold()]
}

fn code(refusal: &Refusal) -> String {
    let Refusal::Stock { lines, .. } = refusal else { return refusal.code().to_owned() };
    let line = |line: &noondrop_core::LineRefusal| {
        let taken = line.seats.iter().flatten();
        let taken: Vec<String> =
            taken.map(|lack| format!("{}={}", lack.seat, lack.standing.as_str())).collect();
        format!("{}:{} free{} {}", line.line, line.code.as_str(), line.available, taken.join(","))
    };
    lines.iter().map(line).collect::<Vec<_>>().join(";").trim().to_owned()
}

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

/// One thing that happens in a random world.
#[derive(Clone, Debug)]
enum Deed {
    Best { quantity: u32, together: bool, zone: bool, twice: bool },
    Named { seats: Vec<usize> },
    Replace { hold: usize, seats: Vec<usize> },
    Release { hold: usize, seat: Option<usize> },
    Confirm { hold: usize },
    Cancel { hold: usize, seat: Option<usize>, destroyed: bool },
    Remove { seat: usize },
    Add { seat: usize },
    Wait,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let (seat, hold) = (0..20usize, 0..8usize);
    let seats = || prop::collection::vec(0..20usize, 1..4);
    let deed = prop_oneof![
        6 => (1..5u32, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(quantity, together, zone, twice)| Deed::Best { quantity, together, zone, twice }
        ),
        4 => seats().prop_map(|seats| Deed::Named { seats }),
        2 => (hold.clone(), seats()).prop_map(|(hold, seats)| Deed::Replace { hold, seats }),
        3 => (hold.clone(), prop::option::of(seat.clone()))
            .prop_map(|(hold, seat)| Deed::Release { hold, seat }),
        3 => hold.clone().prop_map(|hold| Deed::Confirm { hold }),
        3 => (hold, prop::option::of(seat.clone()), any::<bool>())
            .prop_map(|(hold, seat, destroyed)| Deed::Cancel { hold, seat, destroyed }),
        2 => seat.clone().prop_map(|seat| Deed::Remove { seat }),
        2 => seat.prop_map(|seat| Deed::Add { seat }),
        1 => Just(Deed::Wait),
    ];
    prop::collection::vec(deed, 1..30)
}

/// The hall, and six seats that are added later, if at all.
fn all_seats() -> Vec<SeatDef> {
    let mut all = hall();
    all.extend((1..=6).map(|number| seat(&format!("A-3-{number}"))));
    all
}

/// A naive account: who has which seat, and which seats are on offer.
struct Naive {
    holds: Vec<HoldView>,
    owner: BTreeMap<String, usize>,
    planned: BTreeSet<String>,
}

impl Naive {
    fn is_free(&self, seat: &str) -> bool {
        self.planned.contains(seat) && !self.owner.contains_key(seat)
    }

    /// What is true of every hold, whoever decided it.
    fn take(&mut self, made: HoldView) {
        for seat in kept(&made) {
            assert!(self.is_free(&seat), "{seat} was not free");
            self.owner.insert(seat, self.holds.len());
        }
        self.holds.push(made);
    }

    fn leave(&mut self, hold: usize, seats: &[String]) {
        for seat in seats {
            assert_eq!(self.owner.remove(seat), Some(hold), "{seat} was another's");
        }
    }

    fn seats_of(&self, hold: usize) -> Vec<String> {
        self.owner
            .iter()
            .filter(|(_, owner)| **owner == hold)
            .map(|(seat, _)| seat.clone())
            .collect()
    }
}

fn plays(deeds: &[Deed]) {
    let mut world = open_with(hall());
    let planned = hall().iter().map(|def| def.name.to_string()).collect();
    let mut naive = Naive { holds: Vec::new(), owner: BTreeMap::new(), planned };
    for deed in deeds {
        play(&mut world, &mut naive, deed);
        check(&world, &naive);
    }
    let mut replayed = world.replayed();
    assert_eq!(replayed.state.sum(), world.state.sum(), "replay gives the same state");
    check(&replayed, &naive);
    check(&world.read_back(&world.snapshot()), &naive);
}

fn check(world: &World, naive: &Naive) {
    world.state.recount().expect("all that must hold does");
    for (no, hold) in naive.holds.iter().enumerate() {
        let mut seen = kept(&world.state.hold(hold.id).expect("a hold is never forgotten"));
        seen.sort();
        assert_eq!(seen, naive.seats_of(no));
    }
    let counts = hall_of(&world.state).counts;
    assert_eq!(counts.total as usize, naive.planned.len());
    let free = naive.planned.iter().filter(|seat| naive.is_free(seat)).count();
    assert_eq!(counts.available(), free as u64);
    let lost = naive.owner.keys().filter(|seat| !naive.planned.contains(*seat)).count();
    assert_eq!(counts.oversold(), lost as u64);
}

fn play(world: &mut World, naive: &mut Naive, deed: &Deed) {
    let all = all_seats();
    let text = |seat: &usize| all[seat % all.len()].name.to_string();
    match deed {
        Deed::Best { quantity, together, zone, twice } => {
            let zone = zone.then(|| name("silver"));
            let asked = SeatsAsked { together: *together, zone, ..SeatsAsked::default() };
            let mut lines = vec![best(*quantity, asked.clone())];
            if *twice {
                lines.push(best(1, asked));
            }
            let act = create(world, lines);
            world.state.prepare(&by_till(Act::HoldCreate(act.clone()), None));
            if let Answer::Done(Outcome::Hold(made)) = answer(world, Act::HoldCreate(act)) {
                naive.take(made);
            }
        }
        Deed::Named { seats } => {
            let seats: BTreeSet<String> = seats.iter().map(text).collect();
            let known = seats.iter().all(|seat| {
                hall().iter().any(|def| def.name.as_str() == seat) || naive.planned.contains(seat)
            });
            let list: Vec<&str> = seats.iter().map(String::as_str).collect();
            let act = Act::HoldCreate(create(world, vec![these(&list)]));
            match answer(world, act) {
                Answer::Done(Outcome::Hold(made)) => naive.take(made),
                _ => assert!(
                    !known || !seats.iter().all(|seat| naive.is_free(seat)),
                    "{seats:?} were free"
                ),
            }
        }
        Deed::Replace { hold, seats } => {
            let Some(old) = naive.holds.get(*hold).cloned() else { return };
            let seats: BTreeSet<String> = seats.iter().map(text).collect();
            let list: Vec<&str> = seats.iter().map(String::as_str).collect();
            let wanted = create(world, vec![these(&list)]);
            let supersedes = Some(HoldRef { hold: old.id, fence: old.fence });
            let act = Act::HoldCreate(HoldCreate { supersedes, ..wanted });
            if let Answer::Done(Outcome::Hold(made)) = answer(world, act) {
                let left = naive.seats_of(*hold);
                naive.leave(*hold, &left);
                naive.take(made);
            }
        }
        Deed::Release { hold, seat } => {
            let Some(of) = naive.holds.get(*hold).cloned() else { return };
            give_back(
                world,
                naive,
                *hold,
                seat.as_ref().map(text),
                |lines| release(&of, lines),
                false,
            );
        }
        Deed::Cancel { hold, seat, destroyed } => {
            let Some(of) = naive.holds.get(*hold).cloned() else { return };
            let to = if *destroyed { CancelTo::Destroyed } else { CancelTo::Stock };
            let act = |lines| cancel(&of, lines, to);
            give_back(world, naive, *hold, seat.as_ref().map(text), act, *destroyed);
        }
        Deed::Confirm { hold } => {
            let Some(of) = naive.holds.get(*hold).cloned() else { return };
            let digest = world.digester.payment("main", "p");
            let payment_ref = noondrop_core::Digested { digest, text: "p".into() };
            let confirm = HoldConfirm { hold: of.id, fence: of.fence, payment_ref };
            answer(world, Act::HoldConfirm(confirm));
        }
        Deed::Remove { seat } => {
            if let Answer::Done(Outcome::Item(_)) =
                answer(world, change(Vec::new(), &[&text(seat)]))
            {
                naive.planned.remove(&text(seat));
            }
        }
        Deed::Add { seat } => {
            let def = all[seat % all.len()].clone();
            let added = answer(world, change(vec![def], &[]));
            assert!(matches!(added, Answer::Done(Outcome::Item(_))), "{added:?}");
            naive.planned.insert(text(seat));
        }
        Deed::Wait => {
            world.wait(10_000);
            world.turn(&[]);
            for no in 0..naive.holds.len() {
                let state = world.state.hold(naive.holds[no].id).map(|hold| hold.state);
                if state == Some(HoldState::Expired) {
                    let left = naive.seats_of(no);
                    naive.leave(no, &left);
                }
            }
        }
    }
}

fn give_back(
    world: &mut World,
    naive: &mut Naive,
    hold: usize,
    seat: Option<String>,
    act: impl Fn(Option<Vec<LinePart>>) -> Act,
    destroyed: bool,
) {
    let line = seat.as_ref().and_then(|seat| {
        let mut seats = naive.holds[hold].seats.iter();
        seats.find(|of| of.name.as_str() == seat).map(|of| of.line)
    });
    let lines = seat.as_ref().map(|seat| {
        vec![LinePart { seats: Some(names(&[seat])), ..LinePart::units(line.unwrap_or(1), None) }]
    });
    if let Answer::Done(Outcome::Hold(_)) = answer(world, act(lines)) {
        let out = seat.map_or_else(|| naive.seats_of(hold), |seat| vec![seat]);
        naive.leave(hold, &out);
        if destroyed {
            naive.planned.retain(|seat| !out.contains(seat));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_each_seat_has_one_owner(deeds in deeds()) {
        plays(&deeds);
    }
}

/// For the planted bugs.
pub fn random_seatings() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..200 {
        let deeds = deeds().new_tree(&mut runner).expect("deeds can be made");
        plays(&deeds.current());
    }
}

#[test]
fn stock_codes_of_seats_come_after_those_of_counts() {
    assert!(StockCode::NotEnoughFree < StockCode::SeatTaken);
    assert!(StockCode::SeatTaken < StockCode::NotTogether);
}
