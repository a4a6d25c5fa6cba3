//! What is best, case by case; and what adding, taking back and setting do.

use crate::units::LabelIx;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use smallvec::SmallVec;

use crate::ids::Name;
use crate::seats::search::FINDERS_MAX;
use crate::seats::*;
use crate::units::HoldNo;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn def(section: &str, row: &str, number: u32, rank: u32) -> SeatDef {
    SeatDef {
        name: name(&format!("{section}{row}-{number}")),
        section: name(section),
        row: name(row),
        number,
        rank,
        tags: Vec::new(),
        zone: None,
    }
}

const TAKEN: SeatState = SeatState { planned: true, owner: Some(HoldNo(7)), block: None };
const LABEL: LabelIx = LabelIx(3);

/// A map of rows: `A1 = 0 0 x`. A number is a free seat of that rank; `x` taken, `u` not planned, `w` wheelchair, `a`
/// an aisle seat, `z` in the zone `z`, `b` blocked, each of rank 0. Seats are numbered from 1.
fn map(rows: &[&str]) -> SeatMap {
    let mut map = SeatMap::new();
    for text in rows {
        let (row, seats) = text.split_once('=').expect("a row and its seats");
        let (section, row) = row.trim().split_at(1);
        for (number, seat) in (1..).zip(seats.split_whitespace()) {
            let mut def = def(section, row, number, seat.parse().unwrap_or(0));
            match seat {
                "w" => def.tags.push(name(WHEELCHAIR)),
                "a" => def.tags.push(name("aisle")),
                "z" => def.zone = Some(name("z")),
                _ => {}
            }
            let no = map.add(&def).expect("a new seat");
            let state = match seat {
                "x" => TAKEN,
                "u" => SeatState { planned: false, ..SeatState::FREE },
                "b" => SeatState { block: Some(LABEL), ..SeatState::FREE },
                _ => SeatState::FREE,
            };
            map.set(no, state);
        }
    }
    map
}

fn together() -> Wish {
    Wish { together: true, ..Wish::default() }
}

fn say(map: &SeatMap, found: Result<Found, NotFound>) -> String {
    match found {
        Ok(seats) => {
            let names = seats.iter().map(|&no| map.seat(no).expect("a seat").name);
            names.collect::<Vec<_>>().join(" ")
        }
        Err(NotFound::NotEnough { free }) => format!("enough? {free}"),
        Err(NotFound::NotTogether { free }) => format!("together? {free}"),
    }
}

/// The answer, which must be the same whether the search is prepared or not.
fn best(map: &SeatMap, wish: &Wish, quantity: u32, freed: &[&str]) -> String {
    let freed: Vec<SeatNo> = freed.iter().map(|name| map.find(name).expect("a seat")).collect();
    let slow = say(map, map.best(wish, quantity, &freed));
    let mut twin = map.clone();
    twin.prepare(wish, quantity);
    assert_eq!(say(&twin, twin.best(wish, quantity, &freed)), slow, "prepared");
    slow
}

#[test]
fn the_lowest_sum_of_ranks_wins_and_ties_go_to_the_worst_rank_then_the_row_then_the_number() {
    let cases: [(&[&str], u32, &str); 9] = [
        (&["A1 = 5 5 1 1 5 5"], 2, "A1-3 A1-4"),
        (&["A1 = 9 9 9", "B1 = 1 1 1"], 3, "B1-1 B1-2 B1-3"),
        // The same sum: 2 + 2 is better than 1 + 3.
        (&["A1 = 1 3", "A2 = 2 2"], 2, "A2-1 A2-2"),
        (&["A1 = x 4 4", "A2 = 4 4"], 2, "A1-2 A1-3"),
        (&["A1 = 4 4 4 4"], 2, "A1-1 A1-2"),
        // Sections come first, even if their rows are added in between.
        (&["A1 = 9 9", "B1 = 4 4", "A2 = 4 4"], 2, "A2-1 A2-2"),
        // No block reaches over a gap or into the next row.
        (&["A1 = 1 x 1 u 1 b 1", "A2 = 1"], 2, "together? 5"),
        (&["A1 = 1 x"], 2, "enough? 1"),
        (&[], 1, "enough? 0"),
    ];
    for (rows, quantity, expected) in cases {
        assert_eq!(best(&map(rows), &together(), quantity, &[]), expected, "{rows:?}");
    }
    assert_eq!(best(&map(&["A1 = 1"]), &together(), 0, &[]), "");
}

#[test]
fn a_single_seat_is_not_left_alone_if_moving_by_one_helps() {
    let cases: [(&str, u32, &str); 12] = [
        // One before, two behind: moved up it would still leave one behind.
        ("A1 = 9 1 1 9 9", 2, "A1-1 A1-2"),
        ("A1 = 1 1 1", 2, "A1-1 A1-2"),
        ("A1 = 1 1 1 1 1", 2, "A1-1 A1-2"),
        ("A1 = 1 1 1 1", 2, "A1-1 A1-2"),
        // Best is in the middle of four and leaves one on each side: to the better side.
        ("A1 = 5 1 1 4", 2, "A1-3 A1-4"),
        ("A1 = 4 1 1 5", 2, "A1-1 A1-2"),
        ("A1 = 5 1 1 5", 2, "A1-1 A1-2"),
        ("A1 = 9 1 1 2 9", 2, "A1-1 A1-2"),
        // A taken seat is the end of a run like a row's end.
        ("A1 = 1 1 x 9 1 1 8 x", 2, "A1-1 A1-2"),
        ("A1 = 9 9 x 9 1 1 8 x", 2, "A1-6 A1-7"),
        // Nothing helps: the best stays.
        ("A1 = 9 1 1", 2, "A1-2 A1-3"),
        ("A1 = 7 1 7", 1, "A1-1"),
    ];
    for (row, quantity, expected) in cases {
        assert_eq!(best(&map(&[row]), &together(), quantity, &[]), expected, "{row}");
    }
    // Not together: nobody minds.
    assert_eq!(best(&map(&["A1 = 9 1 1 2 9"]), &Wish::default(), 2, &[]), "A1-2 A1-3");
}

#[test]
fn not_together_takes_the_lowest_ranks_wherever_they_are() {
    let map = map(&["A1 = 3 x 1 2", "A2 = 1 b 9", "B1 = 0"]);
    let wish = Wish::default();
    for (quantity, expected) in [
        (1, "B1-1"),
        (3, "B1-1 A1-3 A2-1"),
        (5, "B1-1 A1-3 A2-1 A1-4 A1-1"),
        (6, "B1-1 A1-3 A2-1 A1-4 A1-1 A2-3"),
        (7, "enough? 6"),
    ] {
        assert_eq!(best(&map, &wish, quantity, &[]), expected);
    }
}

#[test]
fn seats_are_adjacent_by_number_whatever_the_order_of_adding() {
    let mut map = SeatMap::new();
    for number in [10, 2, 1, 9, 30] {
        map.add(&def("A", "1", number, 10)).expect("a new seat");
    }
    assert_eq!(best(&map, &together(), 2, &[]), "A1-1 A1-2");
    map.set(map.find("A1-2").expect("a seat"), TAKEN);
    assert_eq!(best(&map, &together(), 3, &[]), "A1-9 A1-10 A1-30", "as nothing is between them");
    map.add(&def("A", "1", 20, 10)).expect("a new seat");
    assert_eq!(best(&map, &together(), 4, &[]), "A1-9 A1-10 A1-20 A1-30");
    map.set(map.find("A1-20").expect("a seat"), TAKEN);
    assert_eq!(best(&map, &together(), 3, &[]), "together? 4");
}

#[test]
fn sections_zones_tags_and_blocks_narrow_the_search() {
    let map = map(&["A1 = 5 5 w w 5 5 5", "B1 = z z 1 b b b a a", "C1 = 3 3"]);
    let section = |name: &&str| map.section(name).expect("a section");
    let within =
        |names: &[&str]| Wish { sections: names.iter().map(section).collect(), ..together() };
    let tagged = |names: &[&str]| Wish {
        tags: map.tags(names.iter().copied()).expect("known tags"),
        ..together()
    };
    let from_block = |label| Wish { from_block: Some(label), ..together() };
    let aisle_in_a = Wish { sections: within(&["A"]).sections, ..tagged(&["aisle"]) };
    let cases = [
        (within(&["A"]), 2, "A1-1 A1-2"),
        (within(&["C", "A", "C"]), 2, "C1-1 C1-2"),
        (within(&["C", "B"]), 3, "B1-1 B1-2 B1-3"),
        (within(&["A", "C"]), 4, "together? 7"),
        (within(&["C"]), 3, "enough? 2"),
        (tagged(&[WHEELCHAIR]), 2, "A1-3 A1-4"),
        (tagged(&["aisle"]), 2, "B1-7 B1-8"),
        (tagged(&["aisle", WHEELCHAIR]), 1, "enough? 0"),
        (aisle_in_a, 1, "enough? 0"),
        (Wish { zone: map.zone("z"), ..together() }, 2, "B1-1 B1-2"),
        (Wish { zone: map.zone("z"), ..together() }, 3, "enough? 2"),
        (from_block(LABEL), 3, "B1-4 B1-5 B1-6"),
        (from_block(LabelIx(0)), 1, "enough? 0"),
        (Wish { sections: SmallVec::from_iter([SectionIx(99)]), ..together() }, 1, "enough? 0"),
    ];
    for (wish, quantity, expected) in cases {
        assert_eq!(best(&map, &wish, quantity, &[]), expected, "{wish:?}");
    }
    assert_eq!(map.tags(["no-such-tag"]), None);
}

#[test]
fn a_wheelchair_seat_is_as_good_as_taken_to_others() {
    let map = map(&["A1 = 1 w 1 1 w w"]);
    assert_eq!(best(&map, &together(), 2, &[]), "A1-3 A1-4");
    assert_eq!(best(&map, &together(), 3, &[]), "together? 3");
    assert_eq!(best(&map, &Wish::default(), 4, &[]), "enough? 3");
    let wish = Wish { tags: TagSet::WHEELCHAIR, ..together() };
    assert_eq!(best(&map, &wish, 2, &[]), "A1-5 A1-6");
    assert_eq!(best(&map, &wish, 3, &[]), "together? 3");
}

#[test]
fn freed_seats_count_as_having_no_owner_and_nothing_else() {
    let mut map = map(&["A1 = 1 x x 9", "A2 = 5 5 5 5"]);
    let section = Wish { sections: SmallVec::from_iter([SectionIx(0)]), ..together() };
    for wish in [&together(), &section] {
        assert_eq!(best(&map, wish, 2, &[]), "A2-1 A2-2");
        assert_eq!(best(&map, wish, 2, &["A1-3", "A1-2", "A1-3", "A2-1"]), "A1-1 A1-2");
        assert_eq!(best(&map, wish, 4, &["A1-2", "A1-3"]), "A1-1 A1-2 A1-3 A1-4");
    }
    assert_eq!(best(&map, &Wish::default(), 3, &["A1-3"]), "A1-3 A1-1 A2-1");
    assert_eq!(best(&map, &Wish::default(), 9, &["A1-3"]), "enough? 7");
    // Removed while it was owned: it vanishes once it is free.
    map.set(SeatNo(1), SeatState { planned: false, ..TAKEN });
    assert_eq!(best(&map, &together(), 3, &["A1-2", "A1-3"]), "A2-1 A2-2 A2-3");
    // It came from a block, and goes back to it.
    map.set(SeatNo(2), SeatState { block: Some(LABEL), ..TAKEN });
    assert_eq!(best(&map, &Wish::default(), 9, &["A1-2", "A1-3"]), "enough? 6");
    let block = Wish { from_block: Some(LABEL), ..together() };
    assert_eq!(best(&map, &block, 1, &["A1-3"]), "A1-3");
    assert_eq!(best(&map, &block, 1, &[]), "enough? 0");
    assert_eq!(map.best(&block, 1, &[SeatNo(99)]), Err(NotFound::NotEnough { free: 0 }));
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let mut map = map(&["A1 = 1"]);
    let long = SeatDef { name: name(&"x".repeat(33)), ..def("A", "1", 2, 0) };
    let many = (0..SEAT_TAGS_MAX).map(|n| name(&format!("t{n}"))).collect::<Vec<_>>();
    let twice = [name("t"), name("t")].to_vec();
    let cases = [
        (def("A", "1", 1, 0), AddError::NameTaken(SeatNo(0))),
        (SeatDef { name: name("other"), ..def("A", "1", 1, 0) }, AddError::PlaceTaken(SeatNo(0))),
        (long, AddError::NameTooLong),
        (SeatDef { tags: many.clone(), ..def("Z", "Z", 1, 0) }, AddError::TooManyTags),
    ];
    for (def, expected) in cases {
        assert_eq!(map.check(&def), Err(expected));
        assert_eq!(map.add(&def), Err(expected));
        assert_eq!((map.len(), map.section("Z")), (1, None));
    }
    let fits = SeatDef { tags: many[1..].to_vec(), ..def("Z", "Z", 1, 0) };
    assert_eq!(map.add(&fits), Ok(SeatNo(1)));
    assert_eq!(map.pop(), Some(SeatNo(1)));
    assert_eq!(map.add(&SeatDef { tags: twice, ..def("Z", "Z", 2, 0) }), Ok(SeatNo(1)));
    let view = map.seat(SeatNo(1)).expect("a seat");
    assert_eq!(map.tag_names(view.tags).map(Name::as_str).collect::<Vec<_>>(), ["t"]);
}

#[test]
fn taking_back_the_newest_seat_takes_back_what_it_brought() {
    let mut map = map(&["A1 = 1 1"]);
    let new = SeatDef { tags: vec![name("aisle")], zone: Some(name("z")), ..def("B", "1", 1, 0) };
    assert_eq!(map.add(&new), Ok(SeatNo(2)));
    map.set(SeatNo(2), TAKEN);
    assert_eq!(map.section_name(SectionIx(1)).as_str(), "B");
    assert_eq!(map.zone_name(ZoneIx(0)).as_str(), "z");
    assert_eq!(map.pop(), Some(SeatNo(2)));
    let known = (map.section("B"), map.zone("z"), map.tags(["aisle"]), map.find("B1-1"));
    assert_eq!(known, (None, None, None, None));
    assert_eq!(*map.totals(), map.recount());
    assert_eq!(map.add(&def("C", "1", 1, 0)), Ok(SeatNo(2)), "the number was never given away");
    assert_eq!(map.section("C"), Some(SectionIx(1)));
    while map.pop().is_some() {}
    assert!(map.is_empty());
    assert_eq!(*map.totals(), SeatTotals::default());
}

#[test]
fn totals_count_each_seat_once() {
    let mut map = map(&["A1 = 1 x u b b"]);
    let old = map.set(SeatNo(1), SeatState { planned: false, ..TAKEN });
    assert_eq!(old, TAKEN);
    map.set(SeatNo(3), SeatState { block: Some(LABEL), ..TAKEN });
    let totals = map.totals();
    assert_eq!((totals.planned, totals.owned, totals.owned_unplanned), (3, 1, 1));
    assert_eq!(totals.blocked.iter().map(|(l, n)| (*l, *n)).collect::<Vec<_>>(), [(LABEL, 1)]);
    assert_eq!(totals.free(), 1);
    assert_eq!(*totals, map.recount());
}

#[test]
fn no_more_than_so_many_searches_stay_prepared() {
    let row = format!("A1 = {}", "1 ".repeat(100));
    let mut map = map(&[&row]);
    for quantity in 1..=50 {
        map.prepare(&together(), quantity);
        map.prepare(&together(), 1);
    }
    map.set(SeatNo(0), TAKEN);
    let search = map.search.as_ref().expect("something is prepared");
    assert!(search.best(&together(), 1, &[], &map.seats).is_some(), "used all the time");
    assert!(search.best(&together(), 2, &[], &map.seats).is_none(), "the oldest one is gone");
    let kept = (1..=50).filter(|&q| search.best(&together(), q, &[], &map.seats).is_some());
    assert_eq!(kept.count(), FINDERS_MAX);
    for quantity in 1..=50 {
        assert_eq!(best(&map, &together(), quantity, &[]).split(' ').next(), Some("A1-2"));
    }
}

#[test]
fn errors_say_what_there_is() {
    assert_eq!(NotFound::NotEnough { free: 3 }.to_string(), "only 3 such seats are free");
    assert_eq!(AddError::Full.to_string(), "an item has at most 200000 seats");
}
