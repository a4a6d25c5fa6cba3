//! Each planted bug is caught by what guards the core. A binary of its own, because the switch is one for the whole
//! process; built only with the feature `planted`.

#[path = "../it/checks.rs"]
mod checks;
#[path = "../it/oracle.rs"]
mod oracle;
#[expect(dead_code, reason = "the tables use the rest of it")]
#[path = "../it/seating.rs"]
mod seating;
#[expect(dead_code, reason = "the tables use the rest of it")]
#[path = "../it/world.rs"]
mod world;
#[path = "../it/worlds.rs"]
mod worlds;

use std::panic::catch_unwind;

use noondrop_core::planted::{Bug, set};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Random worlds that each bug is looked for in.
const WORLDS: usize = 400;

/// What guards the core, cheapest first.
const GUARDS: [(&str, fn()); 11] = [
    ("seats", seating::random_seatings),
    ("doors", checks::doors_are_not_recorded),
    ("replays", checks::replays_are_the_first_answer),
    ("sums", checks::sums_tell_apart),
    ("retention", checks::keys_live_as_long_as_promised),
    ("small worlds", small_worlds),
    ("random worlds", || random_worlds(|turns| drop(worlds::plays(turns)))),
    ("undo", || random_worlds(worlds::can_be_undone)),
    ("later", || random_worlds(worlds::undoing_never_shows)),
    ("restart", || random_worlds(worlds::survives_a_restart)),
    ("lag", checks::time_lags_where_too_much_is_due),
];

fn small_worlds() {
    for scene in &checks::scenes() {
        for first in 0..scene.acts.len() {
            checks::try_all(scene, first, 3);
        }
    }
}

fn random_worlds(check: fn(&worlds::Turns)) {
    let mut runner = TestRunner::deterministic();
    for _ in 0..WORLDS {
        let turns = worlds::turns().new_tree(&mut runner).expect("worlds can be made");
        check(&turns.current());
    }
}

/// The guards that catch what is planted now.
fn caught_by() -> Vec<&'static str> {
    let caught = GUARDS.iter().filter(|(_, guard)| catch_unwind(guard).is_err());
    caught.map(|(name, _)| *name).collect()
}

#[test]
fn every_planted_bug_is_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    set(None);
    let sound = caught_by();
    let found: Vec<_> = Bug::ALL
        .iter()
        .map(|&bug| {
            set(Some(bug));
            (bug, caught_by())
        })
        .collect();
    set(None);
    drop(std::panic::take_hook());
    assert!(sound.is_empty(), "nothing is planted, yet {sound:?} complain");
    for (bug, caught) in &found {
        println!("{bug:?}: {}", caught.join(", "));
    }
    let missed: Vec<_> = found.iter().filter(|(_, caught)| caught.is_empty()).collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
