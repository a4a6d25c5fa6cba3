//! Why an engine did not start or stop well; and one line out of an error and its causes.

use std::error::Error;
use std::fmt;

use noondrop_log::{AppendError, BeginError, LogError};

use crate::replay::ReplayError;

/// Why an engine could not start. Reads well to somebody who has never seen the inside.
#[derive(Debug)]
pub enum StartError {
    /// The store could not be opened or read.
    Log(LogError),
    /// The log's rows can not be turned into a state.
    Replay(ReplayError),
    /// The log changed while it was read.
    Begin(BeginError),
    /// The first row of this start could not be written.
    Append(AppendError),
    /// What this start has to say does not fit the log.
    Misfit(String),
    /// The first row of this start did not come about, because others kept changing the log.
    Unwritten,
    /// The operating system gave no thread.
    Thread(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(_) => f.write_str("could not open the log"),
            Self::Replay(_) => f.write_str("could not recover the state from the log"),
            Self::Begin(_) => f.write_str("the log changed while the state was recovered from it"),
            Self::Append(_) => f.write_str("could not write this start's first row to the log"),
            Self::Misfit(what) => write!(f, "this start's first row does not fit the log: {what}"),
            Self::Unwritten => f.write_str("the log kept changing before this start's first row"),
            Self::Thread(_) => f.write_str("could not start the sequencer's thread"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Log(cause) => Some(cause),
            Self::Replay(cause) => Some(cause),
            Self::Begin(cause) => Some(cause),
            Self::Append(cause) => Some(cause),
            Self::Misfit(_) | Self::Unwritten => None,
            Self::Thread(cause) => Some(cause),
        }
    }
}

impl From<LogError> for StartError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<ReplayError> for StartError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

/// What was left when an engine stopped.
#[derive(Debug)]
pub enum StopError {
    /// The store failed to the end. These many callers were told so; their commands were not done,
    /// or the same key will tell.
    Unfinished {
        /// How many.
        calls: usize,
    },
    /// A thread ended with a panic.
    Panicked,
}

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished { calls } => {
                write!(f, "the engine stopped before {calls} waiting calls could be done")
            }
            Self::Panicked => f.write_str("the engine stopped by a bug"),
        }
    }
}

impl Error for StopError {}

/// An error and its causes in one line, for the one place that logs it.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
