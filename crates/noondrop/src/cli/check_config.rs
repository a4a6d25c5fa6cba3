//! `noondrop check-config`: is the configuration usable, what is in force, and where did each value come from.

use std::io::Write;

use clap::Args;

use super::{ConfigArguments, Failure};
use crate::auth::{Authenticator, refuse_non_loopback_without_principals};
use crate::config::{Listed, load};

/// Widest column that values are aligned in.
const COLUMN_CHARS_MAX: usize = 64;

/// Options of `check-config`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// Checks everything that a start would check short of opening the store; then prints what is in force.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let loaded = load::load(&options.config.sources(Vec::new()))?;
    refuse_non_loopback_without_principals(&loaded.settings)?;
    Authenticator::new(&loaded.settings, None)?;
    let lines = loaded.listing();
    let width = lines.iter().map(|line| text(line).chars().count()).max().unwrap_or_default();
    let width = width.min(COLUMN_CHARS_MAX);
    for line in &lines {
        writeln!(out, "{:<width$}  # {}", text(line), line.origin)?;
    }
    Ok(())
}

fn text(line: &Listed) -> String {
    format!("{} = {}", line.setting, line.value)
}
