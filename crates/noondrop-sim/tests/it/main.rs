//! The simulator, from outside: a function of its seed, quiet on the real rules, loud on every planted bug.

use noondrop_sim::plant::Plant;
use noondrop_sim::seeds;
use noondrop_sim::world::{RunOptions, World};

/// Steps of one world; longer ones are for the command line.
const STEPS: u64 = 120;

fn run(seed: u64) -> noondrop_sim::world::Report {
    World::run(RunOptions { seed, steps: STEPS, plant: None, aloud: false })
}

#[test]
fn the_same_seed_makes_the_same_trace() {
    for seed in 1..=20 {
        let (one, other) = (run(seed), run(seed));
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!((one.rows, one.judged), (other.rows, other.judged), "seed {seed}");
    }
    assert_ne!(run(1).trace, run(2).trace);
}

#[test]
fn a_hundred_worlds_of_trouble_end_well() {
    for seed in 1..=100 {
        if let Some(failure) = run(seed).failure {
            panic!("{failure}");
        }
    }
}

#[test]
fn every_planted_bug_is_found_within_forty_seeds() {
    // Three need more trouble than forty short worlds have; the command line looks for them longer.
    let rare = ["undo-forgets-counts", "sum-skips-extras", "unknown-said-not-done"];
    let mut missed = Vec::new();
    for plant in Plant::all().into_iter().filter(|plant| !rare.contains(&plant.name().as_str())) {
        if seeds::find(plant, 1, 40, STEPS).is_none() {
            missed.push(plant.name());
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
