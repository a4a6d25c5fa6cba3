//! What can be wrong with a configuration. A message names the setting, the bound and where the value came from; it never
//! quotes a line of the file, since that may hold a secret.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// One setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its dotted name, such as `server.listen`; empty where the whole is meant.
    pub setting: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Where its value came from, if that is known.
    pub origin: Option<String>,
}

impl Problem {
    /// A problem of one setting.
    #[must_use]
    pub fn new(setting: impl Into<String>, message: impl Into<String>) -> Self {
        Self { setting: setting.into(), message: message.into(), origin: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.setting.is_empty() {
            write!(f, "{} ", self.setting)?;
        }
        f.write_str(&self.message)?;
        match &self.origin {
            Some(origin) => write!(f, " (from {origin})"),
            None => Ok(()),
        }
    }
}

/// Why there is no configuration to work with.
#[derive(Debug)]
pub enum ConfigError {
    /// A file could not be read.
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no TOML.
    Syntax {
        /// Which.
        path: PathBuf,
        /// The line, from 1, where the parser knows it.
        line: Option<usize>,
        /// What the parser says.
        message: String,
    },
    /// Settings are wrong; all that were found.
    Invalid(Vec<Problem>),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, .. } => write!(f, "could not read {}", path.display()),
            Self::Syntax { path, line: Some(line), message } => {
                write!(f, "{}, line {line}: {message}", path.display())
            }
            Self::Syntax { path, line: None, message } => {
                write!(f, "{}: {message}", path.display())
            }
            Self::Invalid(problems) => {
                f.write_str("the configuration is not usable")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Syntax { .. } | Self::Invalid(_) => None,
        }
    }
}
