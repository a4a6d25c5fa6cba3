//! Every sequence of a few acts in small worlds, against the oracle: items that share nothing, one hall, blocks.

use crate::checks::{scenes, try_all};

/// Acts in a sequence; the worlds are sized so that a debug build takes seconds.
const DEPTH: usize = 4;

/// Tries one world whole.
fn tries(place: usize) {
    let scene = &scenes()[place];
    let acts = scene.acts.len();
    let tried: usize = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let firsts = (half..acts).step_by(2);
                firsts.map(|first| try_all(scene, first, DEPTH)).sum::<usize>()
            })
        });
        halves.into_iter().map(|half| half.join().expect("an act came out differently")).sum()
    });
    assert_eq!(
        tried,
        (1..=u32::try_from(DEPTH).expect("few acts")).map(|depth| acts.pow(depth)).sum()
    );
}

#[test]
fn every_sequence_of_four_acts_ends_as_the_rules_say() {
    tries(0);
}

#[test]
fn every_sequence_of_four_acts_on_one_hall_ends_as_the_rules_say() {
    tries(1);
}

#[test]
fn every_sequence_of_four_acts_on_blocks_ends_as_the_rules_say() {
    tries(2);
}
