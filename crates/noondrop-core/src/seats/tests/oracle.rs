//! Random maps and changes against the rules of the module's header, written a second time: naive, and sharing nothing.

use crate::units::LabelIx;
use alloc::format;
use alloc::vec::Vec;

use proptest::prelude::*;
use smallvec::SmallVec;

use crate::ids::Name;
use crate::seats::*;
use crate::units::HoldNo;

/// What the oracle knows of a seat.
#[derive(Clone, Debug)]
struct Known {
    def: SeatDef,
    state: SeatState,
}

/// A wish in names, so that the oracle needs no numbers of the map.
#[derive(Clone, Debug)]
struct Asked {
    together: bool,
    sections: Vec<&'static str>,
    tags: Vec<&'static str>,
    zone: Option<&'static str>,
    block: Option<u16>,
    quantity: u32,
    freed: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Act {
    Add(SeatDef),
    Pop,
    Set(prop::sample::Index, SeatState),
    Take(prop::sample::Index, Asked),
    Prepare(Asked),
    Ask(Asked),
}

const SECTIONS: [&str; 3] = ["A", "B", "C"];
const ZONES: [&str; 2] = ["cheap", "dear"];
const TAGS: [&str; 2] = [WHEELCHAIR, "aisle"];

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn some<T: Clone + core::fmt::Debug + 'static>(all: &'static [T]) -> BoxedStrategy<Vec<T>> {
    prop_oneof![
        4 => Just(Vec::new()),
        3 => prop::sample::subsequence(all, 0..=all.len()).prop_map(|some| some.clone()),
    ]
    .boxed()
}

fn asked(quantities: &'static [u32]) -> impl Strategy<Value = Asked> {
    let zone = prop_oneof![2 => Just(None), 1 => prop::sample::select(&ZONES[..]).prop_map(Some)];
    let block = prop_oneof![3 => Just(None), 1 => (0u16..2).prop_map(Some)];
    let freed = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0u32..40, 0..12)];
    let quantity = prop::sample::select(quantities);
    let parts = (any::<bool>(), some(&SECTIONS), some(&TAGS), zone, block, quantity, freed);
    parts.prop_map(|(together, sections, tags, zone, block, quantity, freed)| Asked {
        together,
        sections,
        tags,
        zone,
        block,
        quantity,
        freed,
    })
}

fn def(numbers: u32) -> impl Strategy<Value = SeatDef> {
    let section = prop::sample::select(&SECTIONS[..]);
    let zone = prop_oneof![2 => Just(None), 1 => prop::sample::select(&ZONES[..]).prop_map(Some)];
    let tags = prop_oneof![5 => Just(Vec::new()), 1 => some(&TAGS)];
    (section, 0u32..2, 0..numbers, 0u32..5, tags, zone).prop_map(
        |(section, row, number, rank, tags, zone)| SeatDef {
            // Set by whoever adds it.
            name: name("x"),
            section: name(section),
            row: name(&format!("{row}")),
            number,
            rank,
            tags: tags.into_iter().map(name).collect(),
            zone: zone.map(name),
        },
    )
}

fn state() -> impl Strategy<Value = SeatState> {
    let planned = prop::bool::weighted(0.85);
    let owner = prop_oneof![2 => Just(None), 1 => (0u64..3).prop_map(|no| Some(HoldNo(no)))];
    let block = prop_oneof![3 => Just(None), 1 => (0u16..2).prop_map(|ix| Some(LabelIx(ix)))];
    (planned, owner, block).prop_map(|(planned, owner, block)| SeatState { planned, owner, block })
}

fn acts(adds: u32, numbers: u32, quantities: &'static [u32]) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        adds => def(numbers).prop_map(Act::Add),
        adds.div_ceil(4) => Just(Act::Pop),
        8 => (any::<prop::sample::Index>(), state()).prop_map(|(at, state)| Act::Set(at, state)),
        4 => (any::<prop::sample::Index>(), asked(quantities)).prop_map(|(at, asked)| Act::Take(at, asked)),
        3 => asked(quantities).prop_map(Act::Prepare),
        4 => asked(quantities).prop_map(Act::Ask),
    ];
    prop::collection::vec(act, 1..60)
}

type Named<'a, T> = Vec<(&'a Name, T)>;

/// Rows in their order; each with its seats by number.
fn rows(seats: &[Known]) -> Vec<Vec<usize>> {
    let mut sections: Named<'_, Named<'_, Vec<usize>>> = Vec::new();
    for (at, seat) in seats.iter().enumerate() {
        let def = &seat.def;
        if !sections.iter().any(|(name, _)| *name == &def.section) {
            sections.push((&def.section, Vec::new()));
        }
        let section = sections.iter_mut().find(|(name, _)| *name == &def.section);
        let rows = &mut section.expect("just added").1;
        match rows.iter_mut().find(|(name, _)| *name == &def.row) {
            Some((_, row)) => row.push(at),
            None => rows.push((&def.row, alloc::vec![at])),
        }
    }
    let rows = sections.into_iter().flat_map(|(_, rows)| rows).map(|(_, mut row)| {
        row.sort_by_key(|&at| seats[at].def.number);
        row
    });
    rows.collect()
}

fn fits(seat: &Known, is_freed: bool, asked: &Asked) -> bool {
    let has = |tag: &str| seat.def.tags.iter().any(|one| one.as_str() == tag);
    let in_section =
        asked.sections.is_empty() || asked.sections.contains(&seat.def.section.as_str());
    let in_zone = asked.zone.is_none_or(|zone| seat.def.zone == Some(name(zone)));
    seat.state.planned
        && (seat.state.owner.is_none() || is_freed)
        && seat.state.block == asked.block.map(LabelIx)
        && asked.tags.iter().all(|tag| has(tag))
        && (!has(WHEELCHAIR) || asked.tags.contains(&WHEELCHAIR))
        && in_section
        && in_zone
}

fn oracle(seats: &[Known], asked: &Asked) -> Result<Vec<u32>, NotFound> {
    let quantity = asked.quantity as usize;
    let good: Vec<bool> = (0u32..)
        .zip(seats)
        .map(|(no, seat)| fits(seat, asked.freed.contains(&no), asked))
        .collect();
    let free = u32::try_from(good.iter().filter(|good| **good).count()).expect("a few");
    let rows = rows(seats);
    let number = |at: &usize| u32::try_from(*at).expect("a few");
    let not_enough = Err(NotFound::NotEnough { free });
    if !asked.together {
        let mut all: Vec<usize> = rows.into_iter().flatten().filter(|&at| good[at]).collect();
        all.sort_by_key(|&at| seats[at].def.rank);
        return all.get(..quantity).map_or(not_enough, |all| Ok(all.iter().map(number).collect()));
    }
    // Sum, worst, row, first seat in the row.
    let mut blocks: Vec<(u32, u32, usize, usize)> = Vec::new();
    for (row, all) in rows.iter().enumerate() {
        for first in 0..(all.len() + 1).saturating_sub(quantity) {
            let block = &all[first..first + quantity];
            if block.iter().all(|&at| good[at]) {
                let ranks = block.iter().map(|&at| seats[at].def.rank);
                blocks.push((ranks.clone().sum(), ranks.max().unwrap_or(0), row, first));
            }
        }
    }
    let Some(&best) = blocks.iter().min() else {
        return if free >= asked.quantity {
            Err(NotFound::NotTogether { free })
        } else {
            not_enough
        };
    };
    let orphans = |&(_, _, row, first): &(u32, u32, usize, usize)| {
        let is_good = |at: Option<usize>| {
            at.and_then(|at| rows[row].get(at)).is_some_and(|&at: &usize| good[at])
        };
        let end = first + quantity;
        let before = is_good(first.checked_sub(1)) && !is_good(first.checked_sub(2));
        before || (is_good(Some(end)) && !is_good(Some(end + 1)))
    };
    let mut best = best;
    if orphans(&best) {
        let near = blocks.iter().filter(|one| one.2 == best.2 && one.3.abs_diff(best.3) == 1);
        best = near.filter(|one| !orphans(one)).min().copied().unwrap_or(best);
    }
    Ok(rows[best.2][best.3..best.3 + quantity].iter().map(number).collect())
}

/// The map's wish; `None` if it names what the map never had.
fn wish(map: &SeatMap, asked: &Asked) -> Option<Wish> {
    let section = |name: &&str| map.section(name).unwrap_or(SectionIx(77));
    Some(Wish {
        together: asked.together,
        sections: asked.sections.iter().map(section).collect::<SmallVec<_>>(),
        tags: map.tags(asked.tags.iter().copied())?,
        zone: match asked.zone {
            None => None,
            Some(zone) => Some(map.zone(zone)?),
        },
        from_block: asked.block.map(LabelIx),
    })
}

/// What the map says: prepared as it is, prepared on purpose, and not at all.
fn ask(map: &SeatMap, asked: &Asked) -> Option<[Result<Vec<u32>, NotFound>; 3]> {
    let wish = wish(map, asked)?;
    let freed: Vec<SeatNo> = asked.freed.iter().copied().map(SeatNo).collect();
    let mut prepared = map.clone();
    prepared.prepare(&wish, asked.quantity);
    let bare = SeatMap { search: None, ..map.clone() };
    Some([map, &prepared, &bare].map(|map| {
        let found = map.best(&wish, asked.quantity, &freed)?;
        Ok(found.into_iter().map(|no| no.0).collect())
    }))
}

fn check(map: &SeatMap, seats: &[Known], asked: &Asked) -> Result<(), TestCaseError> {
    let expected = oracle(seats, asked);
    match ask(map, asked) {
        None => prop_assert_eq!(expected, Err(NotFound::NotEnough { free: 0 })),
        Some(answers) => {
            for (answer, way) in answers.into_iter().zip(["as it is", "prepared", "bare"]) {
                prop_assert_eq!(&answer, &expected, "{}: {:?}", way, asked);
            }
        }
    }
    Ok(())
}

fn add(map: &mut SeatMap, seats: &mut Vec<Known>, def: SeatDef) {
    let def = SeatDef { name: name(&format!("seat-{}", seats.len())), ..def };
    let taken = seats.iter().position(|seat| {
        let other = &seat.def;
        (&other.section, &other.row, other.number) == (&def.section, &def.row, def.number)
    });
    let no = |at: usize| SeatNo(u32::try_from(at).expect("a few"));
    let expected = taken.map_or(Ok(no(seats.len())), |at| Err(AddError::PlaceTaken(no(at))));
    assert_eq!(map.add(&def), expected);
    if taken.is_none() {
        seats.push(Known { def, state: SeatState::FREE });
    }
}

fn set(map: &mut SeatMap, seats: &mut [Known], at: usize, state: SeatState) {
    let old = map.set(SeatNo(u32::try_from(at).expect("a few")), state);
    assert_eq!(old, core::mem::replace(&mut seats[at].state, state));
}

fn play(map: &mut SeatMap, seats: &mut Vec<Known>, acts: Vec<Act>) -> Result<(), TestCaseError> {
    for act in acts {
        match act {
            Act::Add(def) => add(map, seats, def),
            Act::Pop => {
                let popped =
                    seats.pop().map(|_| SeatNo(u32::try_from(seats.len()).expect("a few")));
                prop_assert_eq!(map.pop(), popped);
            }
            Act::Set(at, state) if !seats.is_empty() => {
                let at = at.index(seats.len());
                set(map, seats, at, state);
            }
            Act::Set(..) => {}
            Act::Take(owner, asked) => {
                // As a hold does it: the best, and then they are taken.
                if let Some(wish) = wish(map, &asked) {
                    map.prepare(&wish, asked.quantity);
                    for no in map.best(&wish, asked.quantity, &[]).into_iter().flatten() {
                        let owner = Some(HoldNo(owner.index(100) as u64));
                        let state = SeatState { owner, ..seats[no.0 as usize].state };
                        set(map, seats, no.0 as usize, state);
                    }
                }
                check(map, seats, &asked)?;
            }
            Act::Prepare(asked) => {
                if let Some(wish) = wish(map, &asked) {
                    map.prepare(&wish, asked.quantity);
                }
            }
            Act::Ask(asked) => check(map, seats, &asked)?,
        }
        prop_assert_eq!(map.totals(), &map.recount());
    }
    prop_assert_eq!(map.len(), seats.len());
    for ((no, view), seat) in map.iter().zip(seats.iter()) {
        prop_assert_eq!(map.find(seat.def.name.as_str()), Some(no));
        prop_assert_eq!((view.name, view.row), (seat.def.name.as_str(), &seat.def.row));
        prop_assert_eq!(map.section_name(view.section), &seat.def.section);
        prop_assert_eq!((view.number, view.rank), (seat.def.number, seat.def.rank));
        prop_assert_eq!(view.zone.map(|zone| map.zone_name(zone)), seat.def.zone.as_ref());
        prop_assert_eq!(view.state, seat.state);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn small_maps_answer_as_the_oracle_does(acts in acts(5, 9, &[1, 2, 3, 4, 6])) {
        play(&mut SeatMap::new(), &mut Vec::new(), acts)?;
    }
}

const LONG: [u32; 14] = [1, 2, 3, 31, 32, 33, 62, 63, 64, 65, 66, 127, 129, 200];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn long_rows_and_long_blocks_answer_as_the_oracle_does(
        rows in prop::collection::vec((0usize..3, 0u32..2, 0u32..320), 1..5),
        ranks in prop::collection::vec(0u32..5, 50),
        acts in acts(1, 330, &LONG),
    ) {
        let (mut map, mut seats) = (SeatMap::new(), Vec::new());
        for (section, row, length) in rows {
            for number in 0..length {
                let def = SeatDef {
                    name: name("x"),
                    section: name(SECTIONS[section]),
                    row: name(&format!("{row}")),
                    number,
                    rank: ranks[(number as usize * 7 + section) % ranks.len()],
                    tags: Vec::new(),
                    zone: None,
                };
                add(&mut map, &mut seats, def);
            }
        }
        play(&mut map, &mut seats, acts)?;
    }
}
