//! How quick the seat map is: 200,000 seats, sold in pairs until nothing is left, and other ways to use it.
//!
//! ```text
//! cargo run --release -p noondrop-core --example seats_speed
//! ```

use std::time::Instant;

use noondrop_core::LabelIx;
use noondrop_core::seats::{Found, NotFound, SeatDef, SeatMap, SeatNo, SeatState, SectionIx, Wish};
use noondrop_core::{HoldNo, Name};

const SECTIONS: u32 = 20;
const ROWS: u32 = 100;
const NUMBERS: u32 = 100;

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// A stage in front: rows further back are worse, and so are seats away from the middle.
fn defs() -> Vec<SeatDef> {
    let mut defs = Vec::new();
    for (section, row) in (0..SECTIONS).flat_map(|s| (0..ROWS).map(move |r| (s, r))) {
        for number in 1..=NUMBERS {
            let rank = section.abs_diff(10) * 40 + row * 10 + number.abs_diff(NUMBERS / 2);
            defs.push(SeatDef {
                name: name(&format!("{section}-{row}-{number}")),
                section: name(&format!("S{section}")),
                row: name(&format!("{row}")),
                number,
                rank,
                tags: if number == 1 { vec![name("aisle")] } else { Vec::new() },
                zone: Some(name(if row < 20 { "front" } else { "back" })),
            });
        }
    }
    defs
}

fn filled(defs: &[SeatDef]) -> SeatMap {
    let mut map = SeatMap::new();
    for def in defs {
        map.add(def).expect("a new seat");
    }
    map
}

fn report(what: &str, times: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    let each = seconds / times as f64 * 1e9;
    println!("{what:<58} {:>12.0} /s {each:>10.0} ns", times as f64 / seconds);
}

fn take(map: &mut SeatMap, seats: &Found) {
    for &seat in seats {
        map.set(seat, SeatState { owner: Some(HoldNo(seat.0.into())), ..SeatState::FREE });
    }
}

/// Takes the best until there is none; returns what was taken, and why no more was.
fn sell_out(map: &mut SeatMap, wish: &Wish, quantity: u32, what: &str) -> Vec<Found> {
    let (mut taken, since) = (Vec::new(), now());
    let end: NotFound = loop {
        map.prepare(wish, quantity);
        match map.best(wish, quantity, &[]) {
            Ok(seats) => {
                take(map, &seats);
                taken.push(seats);
            }
            Err(end) => break end,
        }
    };
    report(what, taken.len(), since);
    println!("{:<58} {end}", "");
    taken
}

fn free_all(map: &mut SeatMap) {
    for no in 0..u32::try_from(map.len()).expect("fits") {
        map.set(SeatNo(no), SeatState::FREE);
    }
}

fn main() {
    let defs = defs();
    let since = now();
    let mut map = filled(&defs);
    report("add, each", defs.len(), since);
    println!("{:<58} {:>12} bytes a seat", "memory, bare", map.memory_bytes() / map.len());

    let pair = Wish { together: true, ..Wish::default() };
    let single = Wish::default();
    let since = now();
    map.prepare(&pair, 2);
    report("first prepare of all", 1, since);
    let since = now();
    map.prepare(&single, 1);
    report("prepare another quantity", 1, since);
    let since = now();
    map.prepare(&Wish { zone: map.zone("front"), ..pair.clone() }, 2);
    report("prepare another zone", 1, since);
    println!(
        "{:<58} {:>12} bytes a seat",
        "memory, three searches",
        map.memory_bytes() / map.len()
    );

    let mut map = filled(&defs);
    sell_out(&mut map, &pair, 2, "best pair and set two, until sold out");
    let since = now();
    for _ in 0..100_000 {
        assert!(map.best(&pair, 2, &[]).is_err());
    }
    report("refuse a pair, sold out", 100_000, since);
    churn(&mut map, &pair);

    free_all(&mut map);
    sell_out(&mut map, &single, 1, "best single and set it, pairs prepared too");
    free_all(&mut map);
    sell_out(&mut map, &single, 4, "best four apart and set them");
    free_all(&mut map);
    sell_out(&mut map, &pair, 100, "best hundred together and set them");
    free_all(&mut map);
    let sections = [3, 4, 11].map(SectionIx).into_iter().collect();
    let some = Wish { sections, ..pair.clone() };
    sell_out(&mut map, &some, 2, "best pair of three sections and set two");

    free_all(&mut map);
    prepare_many(&mut map);
    sell_out(&mut map, &pair, 2, "best pair and set two, 32 searches prepared");
    unprepared(&map, &pair);
}

/// Half is sold; then holds lapse at random, and others come.
fn churn(map: &mut SeatMap, pair: &Wish) {
    free_all(map);
    let mut held: Vec<Found> = Vec::new();
    while held.len() < 50_000 {
        let seats = map.best(pair, 2, &[]).expect("enough are free");
        take(map, &seats);
        held.push(seats);
    }
    let (mut chance, since) = (1u64, now());
    for _ in 0..500_000 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (chance >> 33) as usize % held.len();
        for &seat in &held[at] {
            map.set(seat, SeatState::FREE);
        }
        let seats = map.best(pair, 2, &[]).expect("two were freed");
        take(map, &seats);
        held[at] = seats;
    }
    report("free a pair somewhere, best pair, set two", 500_000, since);
    let since = now();
    for at in 0..200_000 {
        assert!(map.best(pair, 2, &held[at % held.len()]).is_ok());
    }
    report("best pair while another is superseded", 200_000, since);
}

fn prepare_many(map: &mut SeatMap) {
    for quantity in 1..=8 {
        for zone in ["front", "back"] {
            map.prepare(
                &Wish { zone: map.zone(zone), together: true, ..Wish::default() },
                quantity,
            );
        }
        map.prepare(&Wish { together: true, ..Wish::default() }, quantity);
        let from_block = Some(LabelIx(1));
        map.prepare(&Wish { from_block, together: true, ..Wish::default() }, quantity);
    }
}

fn unprepared(map: &SeatMap, pair: &Wish) {
    let mut bare = map.clone();
    bare.pop();
    free_all(&mut bare);
    let since = now();
    for _ in 0..20 {
        assert!(bare.best(pair, 2, &[]).is_ok());
    }
    report("best pair without preparing", 20, since);
}
