//! A buyer is erased: his texts are gone from memory, snapshots and rows, and nothing else changes.

use noondrop_core::codec::{CodecError, decode_row};
use noondrop_core::{
    Act, Actor, BuyerErase, Command, Digested, Eraser, HoldNo, Outcome, Refusal, Role, Seq, State,
};
use proptest::prelude::*;

use crate::checks::{cancel, confirm, create, creates, release, strict_terms};
use crate::world::{Answer, Create, Row, Which, World, name};
use crate::worlds::{ITEMS, Turns, plays, turns};

const ANN: &str = "ann-of-green-gables";
const BOB: &str = "bob-the-builder";

fn erase(world: &World, buyer: &str) -> Command {
    let digest = world.digester.buyer("main", buyer);
    let buyer = Digested { digest, text: buyer.into() };
    let act = Act::BuyerErase(BuyerErase { buyer, reason: "asked by letter".into() });
    let actor = Actor::Principal { name: name("office"), role: Role::Admin };
    Command { shop: name("main"), actor, key: None, origin: None, act }
}

fn erased(world: &mut World, buyer: &str) -> (u64, bool) {
    match world.turn(&[erase(world, buyer)]).pop() {
        Some(Answer::Done(Outcome::Erased(view))) => (view.holds, view.before.is_some()),
        other => panic!("{other:?}"),
    }
}

fn hold(world: &mut World, buyer: &str, reference: &str) {
    let reference = Some(reference.to_owned());
    let told = world.step(&creates(Create { reference, ..create(buyer, &[("a", 1)]) }));
    assert!(told.starts_with('#'), "{told}");
}

/// A hold of each that is sold and cancelled, and an attempt of each that lost.
fn sold() -> World {
    let mut world = World::selling(strict_terms(), &ITEMS);
    for (no, buyer) in [(0, ANN), (1, BOB)] {
        hold(&mut world, buyer, &format!("order-of-{buyer}"));
        world.step(&confirm(Which::No(no), &format!("paid-by-{buyer}")).key(buyer));
        world.step(&cancel(Which::No(no), Some(vec![(1, None)]), noondrop_core::CancelTo::Stock));
        world.step(&creates(create(buyer, &[("b", 9)])));
    }
    world
}

fn texts(buyer: &str) -> [String; 3] {
    [buyer.to_owned(), format!("order-of-{buyer}"), format!("paid-by-{buyer}")]
}

/// Whether a text is in the private blobs of the log, and in a snapshot.
fn found(world: &World, text: &str) -> (bool, bool) {
    let within = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    (world.log.iter().any(|row| within(&row.private)), within(&world.snapshot()))
}

/// What an engine does with the log after an erasure.
fn rewrite(world: &mut World) -> usize {
    let mut eraser = Eraser::new(world.state.erased_after(Seq(0)));
    let mut rewritten = 0;
    for row in &mut world.log {
        let private = eraser.rewritten(row.moment.seq, 1, &row.facts, &row.private);
        let private = private.expect("a row that was written");
        if let Some(private) = private {
            assert_eq!(private.len(), row.private.len(), "it takes the place of the old one");
            assert_ne!(private, row.private);
            row.private = private;
            rewritten += 1;
        }
    }
    rewritten
}

/// The log read into a fresh state, the sums compared row by row.
fn replayed(world: &World, rows: &[Row]) -> World {
    let mut state = State::new();
    for row in rows {
        let entries = decode_row(1, &row.facts, &row.private).expect("a row that was written");
        state.open_turn(row.moment);
        for entry in &entries {
            state.apply(entry).expect("a fact of the log fits");
        }
        assert_eq!(state.sum(), row.sum, "no text is part of the sum");
        state.commit_turn();
    }
    World { state, ..world.clone() }
}

#[test]
fn a_buyer_with_live_holds_is_erased_when_they_have_ended() {
    let mut world = World::selling(strict_terms(), &ITEMS);
    hold(&mut world, ANN, "r");
    let refused = world.turn(&[erase(&world, ANN)]);
    assert_eq!(refused, [Answer::Door(Refusal::BuyerHasLiveHolds { holds: 1 })]);
    assert_eq!(erased(&mut world, BOB), (0, false), "nobody else's hold is in the way");
    world.step(&release(Which::No(0), None));
    assert_eq!(erased(&mut world, ANN), (1, false));
    assert_eq!(erased(&mut world, ANN), (1, true), "again is harmless, and says so");
    hold(&mut world, ANN, "r");
    world.wait(600_000);
    assert_eq!(erased(&mut world, ANN), (2, true), "a lapsed hold is not live");
}

#[test]
fn nothing_of_him_is_left_and_all_of_the_others() {
    let mut world = sold();
    for text in texts(ANN).iter().chain(&texts(BOB)) {
        assert_eq!(found(&world, text), (true, true), "{text} is there before");
    }
    assert_eq!(erased(&mut world, ANN), (1, false));
    for text in texts(ANN) {
        assert_eq!(found(&world, &text), (true, false), "memory is clean at once: {text}");
    }
    assert!(rewrite(&mut world) >= 4);
    for text in texts(ANN) {
        assert_eq!(found(&world, &text), (false, false), "{text}");
    }
    for text in texts(BOB) {
        assert_eq!(found(&world, &text), (true, true), "{text} is another's");
    }
    assert!(found(&world, "asked by letter").0, "why he was erased stays");
    assert!(found(&world, "rain").0, "reasons about another's hold stay");
    let view = world.state.hold_by_no(HoldNo(0)).expect("it is there");
    let texts = view.texts.expect("it is there");
    assert_eq!((texts.buyer.as_str(), texts.reference, texts.metadata), ("", None, None));
    assert_eq!(world.state.payment_ref(HoldNo(0)), Some(""));
    // His digest still leads to his holds, and the same payment is still the same.
    assert_eq!(world.state.holds_of_buyer(world.digester.buyer("main", ANN), None, 9), [HoldNo(0)]);

    assert_eq!(rewrite(&mut world), 0, "again there is nothing to do");
    let rows = world.log.clone();
    assert_eq!(replayed(&world, &rows).dump(), world.dump());
    let bytes = world.snapshot();
    assert_eq!(world.read_back(&bytes).dump(), world.dump());
    assert_eq!(world.read_back(&bytes).snapshot(), bytes);
}

#[test]
fn what_a_buyer_does_after_his_erasure_is_kept_until_the_next() {
    let mut world = sold();
    erased(&mut world, ANN);
    hold(&mut world, ANN, "order-2");
    let (first, second) = (erase(&world, BOB), creates(create(BOB, &[("b", 8)])));
    // Before and after the fact within one row.
    let after = world.command(&second);
    world.turn(&[after.clone(), first, after]);
    rewrite(&mut world);
    assert_eq!(
        (found(&world, "order-2").0, found(&world, "order-of-ann-of-green-gables").0),
        (true, false)
    );
    let row = world.log.last().expect("it is there");
    let entries = decode_row(1, &row.facts, &row.private).expect("a row that was written");
    let buyers =
        entries.iter().map(|entry| entry.private.as_ref().and_then(|texts| texts.buyer.as_deref()));
    let named: Vec<_> = buyers.collect();
    assert_eq!(named.iter().flatten().count(), 1, "only the attempt after it: {named:?}");
    assert_eq!(named.last(), Some(&Some(BOB)));
}

/// The answer of then, but for the texts; a create's answer has them from the request.
#[test]
fn keys_still_replay_without_the_texts() {
    let mut world = sold();
    let again = world.command(&confirm(Which::No(0), &format!("paid-by-{ANN}")).key(ANN));
    let texts = |answer: &Answer| match answer {
        Answer::Replay { outcome: Outcome::Hold(view), .. } => {
            (view.state, view.texts.as_ref().map(|texts| texts.buyer.clone()))
        }
        other => panic!("{other:?}"),
    };
    let before = world.turn(std::slice::from_ref(&again)).remove(0);
    erased(&mut world, ANN);
    let after = world.turn(&[again]).remove(0);
    assert_eq!(texts(&before).1.as_deref(), Some(ANN));
    assert_eq!(texts(&after), (texts(&before).0, Some(String::new())));
}

#[test]
fn zeros_at_the_end_of_a_private_blob_are_erased_texts_and_nothing_else_is() {
    let world = sold();
    let row = world.log.iter().rev().find(|row| !row.private.is_empty()).expect("it is there");
    let read = |private: &[u8]| decode_row(1, &row.facts, private);
    let padded = [row.private.as_slice(), &[0; 9]].concat();
    assert_eq!(read(&padded), read(&row.private));
    assert!(read(&[0; 3]).expect("it is there").iter().all(|entry| entry.private.is_none()));
    for bad in [[&row.private[..], &[0, 1, 0]].concat(), [&[0][..], &row.private, &[0]].concat()] {
        assert_eq!(read(&bad), Err(CodecError::Malformed));
    }
}

fn texts_of(world: &World, of: &str) -> Vec<(HoldNo, String)> {
    let buyer = world.digester.buyer("main", of);
    let all = (0..world.state.next_hold_no().0).map(HoldNo);
    let own = all.filter(|no| world.state.hold_buyer(*no) == Some(buyer));
    own.map(|no| {
        let texts = world.state.hold_by_no(no).expect("holds are dense").texts;
        (no, format!("{texts:?} {:?}", world.state.payment_ref(no)))
    })
    .collect()
}

fn is_erased_alone(turns: &Turns) {
    let mut world = plays(turns).world;
    world.wait(3_600_000);
    world.turn(&[]);
    let (before, others) = (world.dump(), ["bob", "cyd"].map(|buyer| texts_of(&world, buyer)));
    // Undone, it leaves everything as it was.
    let command = erase(&world, "ann");
    let mut undone = world.clone();
    let mut entries = undone.open(&[]);
    let answer = undone.decide(&command, &mut entries);
    assert!(matches!(answer, Answer::Done(Outcome::Erased(_))), "{answer:?}");
    undone.state.undo_turn().expect("the sum comes back");
    assert_eq!(undone.dump(), before);

    erased(&mut world, "ann");
    assert_eq!(["bob", "cyd"].map(|buyer| texts_of(&world, buyer)), others);
    let gone =
        |(_, text): &(HoldNo, String)| !text.contains("ann") && !text.contains("Some(\"p\")");
    assert!(texts_of(&world, "ann").iter().all(gone), "{:?}", texts_of(&world, "ann"));
    world.state.recount().expect("the sum is right");

    rewrite(&mut world);
    let rows = world.log.clone();
    assert_eq!(replayed(&world, &rows).dump(), world.dump(), "with the rest of the texts");
    // The state and its sum are the same without any texts at all.
    let bare: Vec<Row> =
        rows.iter().map(|row| Row { private: Vec::new(), ..row.clone() }).collect();
    assert_eq!(replayed(&world, &bare).state.sum(), world.state.sum());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_erased_state_is_the_one_replayed_without_his_texts(turns in turns()) {
        is_erased_alone(&turns);
    }
}
