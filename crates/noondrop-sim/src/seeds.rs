//! Seeds: those that once failed, and looking for the first that finds a planted bug.

use crate::plant::Plant;
use crate::world::{Failure, RunOptions, World};

/// Seeds that once failed, with what was wrong: `seed steps  # comment` a line.
const KEPT: &str = include_str!("../tests/seeds.txt");

/// The seeds that once failed, with their steps.
///
/// # Panics
///
/// If the file is not as its first lines say.
#[must_use]
pub fn kept() -> Vec<(u64, u64)> {
    let lines = KEPT.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            match (numbers.next(), numbers.next()) {
                (Some(Ok(seed)), Some(Ok(steps))) => (seed, steps),
                _ => panic!("not a seed and its steps: {line}"),
            }
        })
        .collect()
}

/// Runs seeds with a planted bug until one finds it: how many it took, and how it showed.
#[must_use]
pub fn find(plant: Plant, from: u64, seeds: u64, steps: u64) -> Option<(u64, Failure)> {
    (from..from + seeds).zip(1..).find_map(|(seed, count)| {
        let options = RunOptions { seed, steps, plant: Some(plant), aloud: false };
        World::run(options).failure.map(|failure| (count, failure))
    })
}
