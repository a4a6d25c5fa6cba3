//! A log with many facts, for measuring what reads it: `explain`, `audit`, a start.
//!
//! ```text
//! cargo run --release --example big_log -- ./big 5000000 1000
//! ```

use std::path::PathBuf;

use noondrop::bench::engine::{Plan, run};
use noondrop::cli::Failure;
use noondrop::serve::LOG_FILE;

fn arguments() -> Vec<String> {
    std::env::args().skip(1).collect()
}

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    let [data, holds, batch] = arguments.as_slice() else {
        return Err("a directory, how many holds, and how many of them in one turn".into());
    };
    let data = PathBuf::from(data);
    std::fs::create_dir_all(&data)?;
    let plan = Plan { batch: batch.parse()?, holds: holds.parse()?, draws: 1 };
    let report = run(&data.join(LOG_FILE), plan, &mut |made| eprintln!("{made} holds"))?;
    println!("{report:?}");
    Ok(())
}
