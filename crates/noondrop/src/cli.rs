//! The command line: one variant of [`Verb`] and one file under `cli/` for each verb.
//!
//! To add a verb: a file `cli/<verb>.rs` with `Options` (clap) and `run`, a variant here, an arm in [`run`]. Each verb's
//! help says whether it works on the store or asks a running server, because the first needs the server to be stopped or
//! the second needs it to run.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Flag, Sources};

pub mod audit;
pub mod backup;
pub mod bench;
pub mod check_config;
pub mod compare;
pub mod completions;
pub mod explain;
pub mod ledger;
pub mod principal;
pub mod rehearse;
pub mod restore;
pub mod sale;
pub mod serve;
pub mod status;
pub mod store;

pub use store::{StoreArguments, block_on, read_token};

/// Why a verb failed. Its cause chain is printed to standard error.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "noondrop", version, propagate_version = true, max_term_width = 100)]
#[command(about = "Sells every unit exactly once and can explain every outcome.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Runs the server. Works on the store.
    Serve(serve::Options),
    /// Rehearses a sale with a crowd and kills. Works on a throw-away store, or asks a running server.
    Rehearse(rehearse::Options),
    /// Checks that everything in a log holds. Works on the store, beside a running server too.
    Audit(audit::Options),
    /// Tells the story of a hold or a buyer. Works on the store, beside a running server too.
    Explain(explain::Options),
    /// Prints the facts of a log. Works on the store, beside a running server too.
    Ledger(ledger::Options),
    /// Copies the log, or goes on with a copy. Works on the store, beside a running server too.
    Backup(backup::Options),
    /// Makes a log of a backup, checked by replay. Works on the store, which must not be there yet.
    Restore(restore::Options),
    /// Compares paid orders with the log. Works on the store, beside a running server too.
    Compare(compare::Options),
    /// Measures. Works on a throw-away store.
    Bench(bench::Options),
    /// A part of `bench recovery`, in a process of its own. Works on the store.
    #[command(hide = true)]
    BenchStart(BenchStart),
    /// Defines a sale from a file, shows it, moves it along. Asks a running server.
    Sale(sale::Options),
    /// Tells how a server is doing. Asks a running server.
    Status(status::Options),
    /// Makes and lists those who may call. Works on the configuration alone.
    Principal(principal::Options),
    /// Checks the configuration and prints it with the origin of each value. Works on the configuration alone.
    CheckConfig(check_config::Options),
    /// Prints a completion script for a shell. Works on nothing.
    Completions(completions::Options),
}

/// The start that `bench recovery` measures.
#[derive(Clone, Debug, Args)]
pub struct BenchStart {
    /// The file of the log
    #[arg(long)]
    store: PathBuf,
    /// How many live holds it has
    #[arg(long)]
    holds: u64,
}

/// The option that every verb with a configuration has.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArguments {
    /// The configuration file.
    #[arg(
        long,
        value_name = "FILE",
        help = "Configuration file [default: what NOONDROP_CONFIG names, or ./noondrop.toml if it exists]"
    )]
    pub config: Option<PathBuf>,
}

impl ConfigArguments {
    /// Where the configuration comes from, with these flags on top.
    #[must_use]
    pub fn sources(&self, flags: Vec<Flag>) -> Sources {
        Sources::discover(self.config.as_deref(), flags)
    }
}

/// Runs the program with its own arguments.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    finish(run(cli, &mut io::stdout().lock()))
}

/// Reads a command line, for tests and for programs that bring their own.
pub fn parse<I, A>(arguments: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    Cli::try_parse_from(arguments)
}

/// Does what was asked for and prints to `out`.
pub fn run(cli: Cli, out: &mut dyn Write) -> Result<(), Failure> {
    match cli.verb {
        Verb::Serve(options) => serve::run(&options, out),
        Verb::Rehearse(options) => rehearse::run(&options, out),
        Verb::Audit(options) => audit::run(&options, out),
        Verb::Explain(options) => explain::run(&options, out),
        Verb::Ledger(options) => ledger::run(&options, out),
        Verb::Backup(options) => backup::run(&options, out),
        Verb::Restore(options) => restore::run(&options, out),
        Verb::Compare(options) => compare::run(&options, out),
        Verb::Bench(options) => bench::run(&options, out),
        Verb::BenchStart(options) => {
            let report = crate::bench::recovery::start(&options.store, options.holds)?;
            Ok(writeln!(out, "{}", serde_json::to_string(&report)?)?)
        }
        Verb::Sale(options) => sale::run(&options, out),
        Verb::Status(options) => status::run(&options, out),
        Verb::Principal(options) => principal::run(&options, out),
        Verb::CheckConfig(options) => check_config::run(&options, out),
        Verb::Completions(options) => completions::run(&options, out),
    }
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if is_closed_pipe(failure.as_ref()) => ExitCode::SUCCESS,
        // As `diff` and `terraform plan -detailed-exitcode` have it; the difference was printed.
        Err(failure) if failure.is::<sale::Differs>() => ExitCode::from(2),
        Err(failure) => {
            eprintln!("noondrop: {}", chain(failure.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// `noondrop … | head` is no failure.
fn is_closed_pipe(failure: &(dyn Error + 'static)) -> bool {
    failure
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// An error and its causes on one line.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;
