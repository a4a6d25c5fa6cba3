//! Every sequence of a few acts in a world of two items and three units, against the oracle.

use crate::checks::{alphabet, try_all};

/// Acts in a sequence; the world is sized so that a debug build takes seconds.
const DEPTH: usize = 4;

#[test]
fn every_sequence_of_four_acts_ends_as_the_rules_say() {
    let acts = alphabet().len();
    let tried: usize = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                (half..acts).step_by(2).map(|first| try_all(first, DEPTH)).sum::<usize>()
            })
        });
        halves.into_iter().map(|half| half.join().expect("an act came out differently")).sum()
    });
    assert_eq!(tried, (1..=u32::try_from(DEPTH).unwrap()).map(|depth| acts.pow(depth)).sum());
}
