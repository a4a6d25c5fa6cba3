//! Runs the simulator: many seeds, one seed aloud, or every planted bug until it is found.

#![expect(
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what it is for"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use noondrop_sim::faults::Fault;
use noondrop_sim::plant::Plant;
use noondrop_sim::seeds;
use noondrop_sim::world::{Failure, Report, RunOptions, World};

/// The deterministic simulator of Noondrop.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Steps in each world before its faults stop.
    #[arg(long, default_value_t = 300)]
    steps: u64,
    /// Run with a planted bug; `all` runs each until it is found.
    #[arg(long)]
    plant: Option<String>,
    /// Run this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// Print every event.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A finding says what is wrong; a planted panic need not say it again.
    std::panic::set_hook(Box::new(|_| {}));
    match arguments.plant.as_deref() {
        Some("all") => find_all(&arguments),
        Some(name) => {
            if let Some(plant) = Plant::named(name) {
                run_all(&arguments, Some(plant))
            } else {
                let names: Vec<String> = Plant::all().into_iter().map(Plant::name).collect();
                eprintln!("no planted bug is called {name}; there are: {}", names.join(", "));
                ExitCode::from(2)
            }
        }
        None => run_all(&arguments, None),
    }
}

/// What many runs came to.
#[derive(Default)]
struct Sums {
    seeds: u64,
    steps: u64,
    rows: u64,
    judged: u64,
    faults: BTreeMap<Fault, (u64, u64)>,
    failures: Vec<Failure>,
}

impl Sums {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.steps += report.steps;
        self.rows += report.rows;
        self.judged += report.judged;
        for (fault, times) in report.faults {
            let sum = self.faults.entry(fault).or_default();
            sum.0 += times;
            sum.1 += 1;
        }
        self.failures.extend(report.failure);
    }

    fn print(&self, seconds: f64) {
        println!("\n{:<34} {:>10} {:>8}", "trouble", "times", "seeds");
        for fault in Fault::ALL {
            let (times, seeds) = self.faults.get(fault).copied().unwrap_or_default();
            println!("{:<34} {times:>10} {seeds:>8}", fault.to_string());
        }
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let a_second = |count: u64| count as f64 / seconds;
        println!(
            "\n{} seeds, {} steps, {} rows, {} answers judged in {seconds:.1} s: {:.0} steps/s, {:.0} seeds/s; {} failed",
            self.seeds,
            self.steps,
            self.rows,
            self.judged,
            a_second(self.steps),
            a_second(self.seeds),
            self.failures.len(),
        );
    }
}

/// Failures that are shown in full.
const SHOWN: usize = 3;

fn run_all(arguments: &Arguments, plant: Option<Plant>) -> ExitCode {
    let started = Instant::now();
    let mut sums = Sums::default();
    let seeds: Vec<u64> = match arguments.seed {
        Some(seed) => vec![seed],
        None => (arguments.from..arguments.from + arguments.seeds).collect(),
    };
    for (done, seed) in seeds.iter().enumerate() {
        let options =
            RunOptions { seed: *seed, steps: arguments.steps, plant, aloud: arguments.verbose };
        let report = World::run(options);
        if arguments.seed.is_some() {
            println!("seed {seed}: trace {}", hex(&report.trace));
        }
        if let Some(failure) = &report.failure
            && sums.failures.len() < SHOWN
        {
            println!("{failure}\n");
        }
        sums.add(report);
        if (done + 1) % 500 == 0 {
            let seconds = started.elapsed().as_secs();
            eprintln!("{} of {} seeds, {seconds} s", done + 1, seeds.len());
        }
    }
    sums.print(started.elapsed().as_secs_f64());
    if sums.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn find_all(arguments: &Arguments) -> ExitCode {
    println!("{:<24} {:<8} {:>6}  how it showed", "planted bug", "where", "seeds");
    let mut missed = 0;
    for plant in Plant::all() {
        if let Some((seeds, failure)) =
            seeds::find(plant, arguments.from, arguments.seeds, arguments.steps)
        {
            let how = failure.finding.lines().next().unwrap_or_default();
            let how: String = how.chars().take(100).collect();
            println!("{:<24} {:<8} {seeds:>6}  {how}", plant.name(), plant.place());
        } else {
            missed += 1;
            println!("{:<24} {:<8} {:>6}  NOT FOUND", plant.name(), plant.place(), "-");
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
