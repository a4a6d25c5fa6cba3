//! Random worlds with many commands in a turn, and what must hold in all of them.

use noondrop_core::{CancelTo, Override, Returns, SaleStep, SaleTerms};
use proptest::prelude::*;

use crate::checks::{
    Pair, adjust, block, create, creates, names_are_used_once, strict_terms, unblock, undoes,
};
use crate::world::{Create, ItemAsked, Sent, Step, What, Which, Who, item, name};

/// What is on offer, and turns: how long to wait, and what is asked then.
#[derive(Clone, Debug)]
pub struct Turns {
    pub offer: Offer,
    pub turns: Vec<(u64, Vec<Step>)>,
}

/// What a random world sells: always `a`, `b` and `c`.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    /// Three items that share nothing.
    Apart,
    /// `b` counts against `a`, and `c` has no units of its own and counts against `b`. Cancelled units are set aside.
    Shared,
    /// The same, and what lapses is set aside, too.
    SharedAndKept,
}

impl Offer {
    pub fn pair(self) -> Pair {
        let lapsed = match self {
            Self::Apart => return Pair::selling(&strict_terms(), &ITEMS),
            Self::Shared => false,
            Self::SharedAndKept => true,
        };
        let returns_to = Some(Returns { label: name("returns"), lapsed });
        let items = [
            item("a", Some(6), &[]),
            ItemAsked { oversell: 2, ..item("b", Some(3), &["a"]) },
            item("c", None, &["b"]),
        ];
        Pair::offering(&SaleTerms { returns_to, ..strict_terms() }, &items)
    }
}

pub const ITEMS: [(&str, u32, u32); 3] = [("a", 6, 0), ("b", 3, 2), ("c", 7, 0)];

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![2 => Just(Which::Newest), 3 => (0u64..12).prop_map(Which::No)]
}

fn fence() -> impl Strategy<Value = Sent> {
    prop_oneof![
        9 => Just(Sent::Own),
        1 => which().prop_map(Sent::Of),
    ]
}

fn buyer() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ann", "bob", "cyd"])
}

type Parts = Option<Vec<(u8, Option<u32>)>>;

fn parts() -> impl Strategy<Value = Parts> {
    let part = (0u8..4, prop::option::of(0u32..4));
    prop::option::of(prop::collection::vec(part, 0..3))
}

fn new_hold() -> impl Strategy<Value = Step> {
    let from = prop::option::weighted(0.15, label().prop_map(str::to_owned));
    let line = (prop::sample::select(vec!["a", "b", "c"]), 1u32..5, from);
    let line = line.prop_map(|(item, units, from)| (item.to_owned(), units, from));
    let lines = prop::collection::vec(line, 1..4);
    let reference = prop::option::weighted(0.2, prop::sample::select(vec!["r1", "r2", "r3"]));
    let old = prop::option::weighted(0.25, (which(), fence()));
    let more = (prop::option::of(1u32..45), reference, old, prop::option::weighted(0.1, which()));
    let paid = prop::option::weighted(0.1, Just("late".to_owned()));
    (buyer(), lines, more, paid, any::<bool>()).prop_map(|(buyer, lines, more, payment, own)| {
        let (ttl, reference, supersedes, retake) = more;
        let reference = reference.map(str::to_owned);
        let lines: Vec<_> = if retake.is_some() && own { Vec::new() } else { lines };
        let made =
            Create { lines, ttl, reference, supersedes, retake, payment, ..create(buyer, &[]) };
        let step = creates(made);
        if own { step.by(buyer) } else { step }
    })
}

/// A new hold for which the box office passes over refusals; now and then somebody else asks for that.
fn overriding() -> impl Strategy<Value = Step> {
    let codes = prop::sample::subsequence(Override::ALL.to_vec(), 1..=Override::ALL.len());
    (new_hold(), codes, prop::bool::weighted(0.9)).prop_map(|(mut step, codes, admin)| {
        if let What::Create(create) = &mut step.what {
            create.overrides = codes;
        }
        if admin { Step { who: Who::Admin, ..step } } else { step }
    })
}

fn label() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["x", "returns"])
}

/// Units set aside and put back, and what items count against.
fn stock_keeping() -> impl Strategy<Value = Step> {
    let items = || prop::sample::select(vec!["a", "b", "c"]);
    let blocks =
        (items(), 1u32..4, label(), any::<bool>()).prop_map(|(item, units, label, back)| {
            if back { unblock(item, units, label) } else { block(item, units, label) }
        });
    let total = prop::sample::select(vec![None, Some(3), Some(6), Some(7)]);
    let against = prop::collection::vec(items(), 0..3);
    let puts = (items(), total, against)
        .prop_map(|(name, total, against)| Step::new(What::Item(item(name, total, &against))));
    prop_oneof![3 => blocks, 1 => puts]
}

fn act() -> impl Strategy<Value = Step> {
    let payment = prop::sample::select(vec!["p", "q"]);
    let confirms = (which(), fence(), payment).prop_map(|(hold, fence, payment)| {
        Step::new(What::Confirm { hold, fence, payment: payment.into() })
    });
    let seconds = 1u32..60;
    let extends = (which(), fence(), seconds, prop::option::of(buyer())).prop_map(
        |(hold, fence, seconds, buyer)| {
            let step = Step::new(What::Extend { hold, fence, seconds, reason: None });
            buyer.into_iter().fold(step, Step::by)
        },
    );
    let releases =
        (which(), fence(), parts(), any::<bool>()).prop_map(|(hold, fence, parts, reason)| {
            let fence = if reason { Sent::Nothing } else { fence };
            Step::new(What::Release { hold, fence, parts, reason })
        });
    let to = prop_oneof![
        Just(None),
        Just(Some(CancelTo::Destroyed)),
        Just(Some(CancelTo::Stock)),
        label().prop_map(|label| Some(CancelTo::Block(name(label)))),
    ];
    let cancels = (which(), parts(), to).prop_map(|(hold, parts, to)| {
        Step::new(What::Cancel { hold, fence: Sent::Own, parts, to })
    });
    let adjusts =
        (prop::sample::select(vec!["a", "b"]), -4i64..5).prop_map(|(item, by)| adjust(item, by));
    let walks = prop::sample::select(vec![SaleStep::Pause, SaleStep::Resume, SaleStep::Resume])
        .prop_map(|to| Step::new(What::Move { sale: "noon".into(), to }));
    prop_oneof![
        10 => new_hold(),
        5 => confirms,
        3 => extends,
        4 => releases,
        3 => cancels,
        2 => adjusts,
        4 => stock_keeping(),
        1 => walks,
        2 => overriding(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = prop::option::weighted(0.4, prop::sample::select(vec!["k1", "k2", "k3", "k4"]));
    (act(), key).prop_map(|(step, key)| match (&step.what, key) {
        (What::Move { .. } | What::Item(_), _) | (_, None) => step,
        (_, Some(key)) => step.key(key),
    })
}

/// A few turns of a few commands; the clock sometimes stands still, and sometimes passes many ends. Some commands with
/// a key come again later, as they were.
pub fn turns() -> impl Strategy<Value = Turns> {
    let wait =
        prop_oneof![3 => Just(0u64), 4 => 1u64..9_000, 1 => Just(20_000u64), 1 => Just(60_000)];
    let again = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    let turn = (wait, prop::collection::vec(step(), 0..7), again);
    let offer = prop::sample::select(vec![Offer::Apart, Offer::Shared, Offer::SharedAndKept]);
    (offer, prop::collection::vec(turn, 1..9)).prop_map(|(offer, turns)| {
        let mut keyed: Vec<Step> = Vec::new();
        let turns = turns.into_iter().map(|(wait, mut steps, again)| {
            if !keyed.is_empty() {
                steps.extend(again.iter().map(|which| which.get(&keyed).clone()));
            }
            keyed.extend(steps.iter().filter(|step| step.key.is_some()).cloned());
            (wait, steps)
        });
        Turns { offer, turns: turns.collect() }
    })
}

/// Plays turns against the oracle; every answer, count and hold is compared at each.
pub fn plays(turns: &Turns) -> Pair {
    let mut pair = turns.offer.pair();
    for (wait, steps) in &turns.turns {
        pair.turn(*wait, steps);
    }
    pair
}

/// The log, the snapshot and the state tell the same, and go on the same.
pub fn survives_a_restart(turns: &Turns) {
    let (before, after) = turns.turns.split_at(turns.turns.len() / 2);
    let mut pair = plays(&Turns { turns: before.to_vec(), ..*turns });
    let bytes = pair.world.snapshot();
    let mut restored = pair.clone();
    restored.world = pair.world.read_back(&bytes);
    assert_eq!(restored.world.snapshot(), bytes, "written, read and written again");
    assert_eq!(restored.world.dump(), pair.world.dump());
    for (wait, steps) in after {
        pair.turn(*wait, steps);
        restored.turn(*wait, steps);
        assert_eq!(pair.world.log.last(), restored.world.log.last(), "the same row, sum and all");
    }
    assert_eq!(pair.world.replayed().dump(), pair.world.dump(), "replayed from the log");
    names_are_used_once(&pair.world);
}

/// Each turn is undone, wholly and by half, and then done.
pub fn can_be_undone(turns: &Turns) {
    let mut pair = turns.offer.pair();
    for (wait, steps) in &turns.turns {
        undoes(&pair.world, *wait, steps, steps.len() / 2);
        pair.turn(*wait, steps);
    }
}

/// Goes on in the state in which turns were undone: nothing that was left behind may show later.
pub fn undoing_never_shows(turns: &Turns) {
    let mut pair = turns.offer.pair();
    for (wait, steps) in &turns.turns {
        let mut tried = pair.world.clone();
        tried.wait(*wait);
        let mut entries = tried.open(&[]);
        for step in steps {
            let command = tried.command(step);
            tried.decide(&command, &mut entries);
        }
        tried.state.undo_turn().expect("the sum comes back");
        pair.world.state = tried.state;
        pair.turn(*wait, steps);
    }
}
