//! The simulator, from outside: a function of its seed, quiet on the real rules, loud on every planted bug.

use std::process::Command;

use noondrop_sim::seeds;
use noondrop_sim::world::{Report, RunOptions, World};

/// Steps of one world; longer ones are for the command line.
const STEPS: u64 = 120;
const SEEDS: u64 = 300;

fn run(seed: u64, steps: u64) -> Report {
    World::run(RunOptions { seed, steps, plant: None, aloud: false })
}

fn ends_well(seed: u64, steps: u64) {
    if let Some(failure) = run(seed, steps).failure {
        panic!("{failure}");
    }
}

#[test]
fn seeds_that_once_failed_end_well() {
    for (seed, steps) in seeds::kept() {
        ends_well(seed, steps);
    }
}

#[test]
fn worlds_of_trouble_end_well() {
    for seed in 1..=SEEDS {
        ends_well(seed, STEPS);
    }
}

#[test]
fn the_same_seed_makes_the_same_trace() {
    for seed in 1..=20 {
        let (one, other) = (run(seed, STEPS), run(seed, STEPS));
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!((one.rows, one.judged), (other.rows, other.judged), "seed {seed}");
    }
    assert_ne!(run(1, STEPS).trace, run(2, STEPS).trace);
}

/// In a process of its own: wrong rules are planted in a whole process at once.
#[test]
fn every_planted_bug_is_found() {
    let output = Command::new(env!("CARGO_BIN_EXE_noondrop-sim"))
        .args(["--plant", "all", "--seeds", "400", "--steps", "120"])
        .output()
        .expect("the simulator is built");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "not all were found:\n{table}");
    assert!(table.lines().count() > 30, "a table of all of them:\n{table}");
}
