//! `noondrop completions`: a completion script for a shell, made from the command line's own definition.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Failure};

/// Options of `completions`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The shell
    pub shell: Shell,
}

/// Prints the script.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "noondrop", &mut script);
    out.write_all(&script)?;
    Ok(())
}
