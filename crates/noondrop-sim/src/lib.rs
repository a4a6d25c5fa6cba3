//! The simulator: the real rules and the real turn, in virtual time, on a log that fails in every way we could think of,
//! under callers who lose answers and ask again. Everything follows from a seed; an oracle judges every answer.
//!
//! # Layout
//!
//! * [`world`]: hosts, disk, callers; one step after another · [`process`]: the real sequencer, which can die anywhere
//! * [`disk`]: the memory log, dying processes, the slot of the last answered row · [`clock`]: virtual time
//! * [`faults`]: what goes wrong · `finish`: faults stop, and everything must come right
//! * `watch`: what each process says and shows, after every turn
//! * [`callers`], [`workload`]: who asks, and for what
//! * [`oracle`]: every decision once more, naively · [`checker`]: rows, answers and both states against each other
//! * [`plant`]: deliberate bugs, each of which must be found · [`trace`], [`dice`]: what happened, and why
//!
//! # Example
//!
//! ```
//! use noondrop_sim::world::{RunOptions, World};
//!
//! let report = World::run(RunOptions { seed: 1, steps: 120, plant: None, aloud: false });
//! assert!(report.failure.is_none());
//! ```

#![expect(
    clippy::similar_names,
    clippy::struct_excessive_bools,
    clippy::match_same_arms,
    clippy::unnecessary_wraps,
    reason = "the oracle and the workload read as tables"
)]
#![expect(clippy::print_stdout, reason = "what a run says aloud is what it is run for")]

pub mod callers;
pub mod checker;
pub mod clock;
pub mod dice;
pub mod disk;
pub mod faults;
mod finish;
pub mod oracle;
pub mod plant;
pub mod process;
pub mod seeds;
pub mod trace;
mod watch;
pub mod workload;
pub mod world;
