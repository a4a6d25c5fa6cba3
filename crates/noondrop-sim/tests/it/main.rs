//! The simulator, from outside: it is what it says, a function of its seed.

use noondrop_sim::world::{RunOptions, World};

#[test]
fn the_same_seed_makes_the_same_trace() {
    for seed in 1..=20 {
        let run = || World::run(RunOptions { seed, steps: 120, plant: None, aloud: false });
        let (one, other) = (run(), run());
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!((one.rows, one.judged), (other.rows, other.judged), "seed {seed}");
    }
}

#[test]
fn different_seeds_make_different_traces() {
    let trace = |seed| World::run(RunOptions { seed, steps: 60, plant: None, aloud: false }).trace;
    assert_ne!(trace(1), trace(2));
}
