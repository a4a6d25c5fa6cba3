//! A hall of seats, and random worlds in it against a naive account of who has which seat. After each turn everything
//! is counted again; each turn is first undone; in the end all is replayed and read from a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use noondrop_core::seats::SeatDef;
use noondrop_core::{
    Act, Actor, CancelTo, Command, HoldCancel, HoldConfirm, HoldCreate, HoldRef, HoldRelease,
    HoldState, HoldView, ItemBlock, ItemPut, ItemSeats, ItemUnblock, ItemView, KeyUse, LineAsked,
    LinePart, Name, Outcome, Refusal, Role, SeatKept, SeatsAsked, State,
};
use proptest::prelude::*;

use crate::world::{Answer, World, name, plain_terms};

/// `A-1-3` is seat 3 of row 1 in section A; its rank is its row, and row 2 of section B is for wheelchairs.
pub fn seat(text: &str) -> SeatDef {
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

pub fn hall() -> Vec<SeatDef> {
    let mut seats = Vec::new();
    for (section, row, many) in [("A", 1, 5), ("A", 2, 3), ("B", 1, 4), ("B", 2, 2)] {
        seats.extend((1..=many).map(|number| seat(&format!("{section}-{row}-{number}"))));
    }
    seats
}

pub fn open_with(seats: Vec<SeatDef>) -> World {
    let mut world = World::selling(plain_terms(), &[("floor", 3, 0)]);
    let made = done(&mut world, put(seats));
    let Outcome::Item(item) = made else { panic!("{made:?}") };
    assert!(item.created && item.seated);
    world
}

pub fn put(seats: Vec<SeatDef>) -> Act {
    Act::ItemPut(ItemPut {
        sale: name("noon"),
        item: name("hall"),
        total: None,
        oversell_limit: 0,
        if_version: None,
        counts_against: None,
        seats: Some(seats),
    })
}

pub fn by_till(act: Act, key: Option<KeyUse>) -> Command {
    let actor = Actor::Principal { name: name("till"), role: Role::Seller };
    Command { shop: name("main"), actor, key, origin: None, act }
}

/// One act in a turn of its own, checked from all sides.
pub fn answer(world: &mut World, act: Act) -> Answer {
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

pub fn done(world: &mut World, act: Act) -> Outcome {
    match answer(world, act) {
        Answer::Done(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

pub fn refused(world: &mut World, act: Act) -> Refusal {
    match answer(world, act) {
        Answer::Door(refusal) | Answer::Done(Outcome::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

pub fn names(seats: &[&str]) -> Vec<Name> {
    seats.iter().map(|seat| name(seat)).collect()
}

pub fn these(seats: &[&str]) -> LineAsked {
    let asked = SeatsAsked { named: Some(names(seats)), ..SeatsAsked::default() };
    let quantity = u32::try_from(seats.len()).expect("few");
    LineAsked { seats: Some(Box::new(asked)), ..LineAsked::units(name("hall"), quantity) }
}

pub fn best(quantity: u32, asked: SeatsAsked) -> LineAsked {
    LineAsked { seats: Some(Box::new(asked)), ..LineAsked::units(name("hall"), quantity) }
}

pub fn together(quantity: u32) -> LineAsked {
    best(quantity, SeatsAsked { together: true, ..SeatsAsked::default() })
}

pub fn create(world: &World, lines: Vec<LineAsked>) -> HoldCreate {
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
        overriding: None,
    }
}

pub fn hold(world: &mut World, lines: Vec<LineAsked>) -> HoldView {
    let act = Act::HoldCreate(create(world, lines));
    match done(world, act) {
        Outcome::Hold(hold) => hold,
        other => panic!("{other:?}"),
    }
}

pub fn no_hold(world: &mut World, lines: Vec<LineAsked>) -> Refusal {
    let act = Act::HoldCreate(create(world, lines));
    refused(world, act)
}

pub fn confirm(world: &mut World, hold: &HoldView) {
    let digest = world.digester.payment("main", "p");
    let payment_ref = noondrop_core::Digested { digest, text: "p".into() };
    done(world, Act::HoldConfirm(HoldConfirm { hold: hold.id, fence: hold.fence, payment_ref }));
}

pub fn release(hold: &HoldView, lines: Option<Vec<LinePart>>) -> Act {
    Act::HoldRelease(HoldRelease { hold: hold.id, fence: Some(hold.fence), lines, reason: None })
}

pub fn cancel(hold: &HoldView, lines: Option<Vec<LinePart>>, to: CancelTo) -> Act {
    let reason = "returned".into();
    Act::HoldCancel(HoldCancel { hold: hold.id, fence: hold.fence, lines, to: Some(to), reason })
}

pub fn block(seats: &[&str], undo: bool) -> Act {
    let (sale, item, label) = (name("noon"), name("hall"), name("sponsor"));
    let (quantity, reason) = (u32::try_from(seats.len()).expect("few"), "sponsor".into());
    let seats = Some(names(seats));
    if undo {
        Act::ItemUnblock(ItemUnblock { sale, item, quantity, label, reason, seats })
    } else {
        Act::ItemBlock(ItemBlock { sale, item, quantity, label, reason, seats })
    }
}

pub fn change(add: Vec<SeatDef>, remove: &[&str]) -> Act {
    Act::ItemSeats(ItemSeats {
        sale: name("noon"),
        item: name("hall"),
        add,
        remove: names(remove),
        reason: "rebuilt".into(),
    })
}

/// What the hold still has.
pub fn kept(hold: &HoldView) -> Vec<String> {
    let kept = hold.seats.iter().filter(|seat| seat.kept == SeatKept::Kept);
    kept.map(|seat| seat.name.to_string()).collect()
}

pub fn hall_of(state: &State) -> ItemView {
    state.item("main", "noon", "hall").expect("the hall is on sale")
}

/// total, held, sold, available, oversold
pub fn counts(world: &World) -> [u64; 5] {
    let counts = hall_of(&world.state).counts;
    let [total, held, sold] = [counts.total, counts.held, counts.sold].map(u64::from);
    [total, held, sold, counts.available(), counts.oversold()]
}

pub fn code(refusal: &Refusal) -> String {
    let Refusal::Stock { lines, .. } = refusal else { return refusal.code().to_owned() };
    let line = |line: &noondrop_core::LineRefusal| {
        let taken = line.seats.iter().flatten();
        let taken: Vec<String> =
            taken.map(|lack| format!("{}={}", lack.seat, lack.standing.as_str())).collect();
        format!("{}:{} free{} {}", line.line, line.code.as_str(), line.available, taken.join(","))
    };
    lines.iter().map(line).collect::<Vec<_>>().join(";").trim().to_owned()
}

/// One thing that happens in a random world.
#[derive(Clone, Debug)]
pub enum Deed {
    Best { quantity: u32, together: bool, zone: bool, twice: bool },
    Named { seats: Vec<usize> },
    Replace { hold: usize, seats: Vec<usize> },
    Release { hold: usize, seat: Option<usize> },
    Confirm { hold: usize },
    Cancel { hold: usize, seat: Option<usize>, destroyed: bool },
    Block { seats: Vec<usize>, undo: bool },
    FromBlock { quantity: u32 },
    Remove { seat: usize },
    Add { seat: usize },
    Wait,
}

pub fn deeds() -> impl Strategy<Value = Vec<Deed>> {
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
        3 => (seats(), any::<bool>()).prop_map(|(seats, undo)| Deed::Block { seats, undo }),
        3 => (1..3u32).prop_map(|quantity| Deed::FromBlock { quantity }),
        2 => seat.clone().prop_map(|seat| Deed::Remove { seat }),
        2 => seat.prop_map(|seat| Deed::Add { seat }),
        1 => Just(Deed::Wait),
    ];
    prop::collection::vec(deed, 1..30)
}

/// The hall, and six seats that are added later, if at all.
pub fn all_seats() -> Vec<SeatDef> {
    let mut all = hall();
    all.extend((1..=6).map(|number| seat(&format!("A-3-{number}"))));
    all
}

/// A naive account: who has which seat, and which seats are on offer.
pub struct Naive {
    holds: Vec<HoldView>,
    owner: BTreeMap<String, usize>,
    /// Free seats that are set aside.
    aside: BTreeSet<String>,
    /// Seats that go back aside once their hold lets go.
    from_aside: BTreeSet<String>,
    planned: BTreeSet<String>,
}

impl Naive {
    fn is_free(&self, seat: &str) -> bool {
        self.planned.contains(seat) && !self.owner.contains_key(seat) && !self.aside.contains(seat)
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
            if self.from_aside.remove(seat) && self.planned.contains(seat) {
                self.aside.insert(seat.clone());
            }
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

pub fn plays(deeds: &[Deed]) {
    let mut world = open_with(hall());
    let planned = hall().iter().map(|def| def.name.to_string()).collect();
    let (aside, from_aside) = (BTreeSet::new(), BTreeSet::new());
    let mut naive = Naive { holds: Vec::new(), owner: BTreeMap::new(), aside, from_aside, planned };
    for deed in deeds {
        play(&mut world, &mut naive, deed);
        check(&world, &naive);
    }
    let mut replayed = world.replayed();
    assert_eq!(replayed.state.sum(), world.state.sum(), "replay gives the same state");
    check(&replayed, &naive);
    check(&world.read_back(&world.snapshot()), &naive);
}

pub fn check(world: &World, naive: &Naive) {
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

#[expect(clippy::too_many_lines, reason = "one arm for each deed")]
pub fn play(world: &mut World, naive: &mut Naive, deed: &Deed) {
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
            let act = |lines| cancel(&of, lines, to.clone());
            give_back(world, naive, *hold, seat.as_ref().map(text), act, *destroyed);
        }
        Deed::Confirm { hold } => {
            let Some(of) = naive.holds.get(*hold).cloned() else { return };
            let digest = world.digester.payment("main", "p");
            let payment_ref = noondrop_core::Digested { digest, text: "p".into() };
            let confirm = HoldConfirm { hold: of.id, fence: of.fence, payment_ref };
            answer(world, Act::HoldConfirm(confirm));
        }
        Deed::Block { seats, undo } => {
            let seats: BTreeSet<String> = seats.iter().map(text).collect();
            let list: Vec<&str> = seats.iter().map(String::as_str).collect();
            let free = seats.iter().all(|seat| naive.is_free(seat));
            let aside = seats.iter().all(|seat| naive.aside.contains(seat));
            match answer(world, block(&list, *undo)) {
                Answer::Done(Outcome::Item(item)) if *undo => {
                    assert!(aside, "{seats:?} were not aside");
                    naive.aside.retain(|seat| !seats.contains(seat));
                    assert_eq!(item.counts.blocked as usize, naive.aside.len());
                }
                Answer::Done(Outcome::Item(item)) => {
                    assert!(free, "{seats:?} were not free");
                    naive.aside.extend(seats);
                    assert_eq!(item.counts.blocked as usize, naive.aside.len());
                }
                _ => assert!(!if *undo { aside } else { free }, "{seats:?} {undo}"),
            }
        }
        Deed::FromBlock { quantity } => {
            let line = LineAsked::units(name("hall"), *quantity);
            let line = LineAsked { from: Some(Box::new(name("sponsor"))), ..line };
            let act = Act::HoldCreate(create(world, vec![line]));
            if let Answer::Done(Outcome::Hold(made)) = answer(world, act) {
                for seat in kept(&made) {
                    assert!(naive.aside.remove(&seat), "{seat} was not aside");
                    naive.from_aside.insert(seat);
                }
                naive.take(made);
            } else {
                let chairs = naive.aside.iter().filter(|seat| seat.starts_with("B-2")).count();
                assert!(naive.aside.len() - chairs < *quantity as usize, "{:?}", naive.aside);
            }
        }
        Deed::Remove { seat } => {
            if let Answer::Done(Outcome::Item(_)) =
                answer(world, change(Vec::new(), &[&text(seat)]))
            {
                naive.planned.remove(&text(seat));
                naive.aside.remove(&text(seat));
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

pub fn give_back(
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
        let sold = world
            .state
            .hold(naive.holds[hold].id)
            .is_some_and(|hold| matches!(hold.state, HoldState::Confirmed | HoldState::Cancelled));
        if sold {
            // Sold units go where the cancel says, wherever they came from.
            naive.from_aside.retain(|seat| !out.contains(seat));
        }
        naive.leave(hold, &out);
        if destroyed {
            naive.planned.retain(|seat| !out.contains(seat));
        }
    }
}

/// For the planted bugs; here, so that it stays in use.
pub fn random_seatings() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..200 {
        let deeds = deeds().new_tree(&mut runner).expect("deeds can be made");
        plays(&deeds.current());
    }
}
