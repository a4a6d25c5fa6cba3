//! Rows applied to a state, every check at every row: the state's own sum, and the invariants of all that a row touched.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use noondrop_core::{Catalog, Misfit, Moment, Seq, State, Timestamp, Totals, Violation};
use noondrop_log::{GENESIS, Position};

use super::scan::Scanned;

/// What is wrong with a row.
#[derive(Debug)]
pub enum ReplayError {
    /// A fact does not fit the state before it.
    Misfit(Misfit),
    /// The state after it is not the one that its writer had.
    Sum,
    /// Something that must hold does not.
    Violation(Violation),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit(_) => f.write_str("a fact does not fit what was before it"),
            Self::Sum => {
                f.write_str("replayed, the row leads to another state than its writer had")
            }
            Self::Violation(_) => f.write_str("an invariant does not hold after the row"),
        }
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Misfit(cause) => Some(cause),
            Self::Violation(cause) => Some(cause),
            Self::Sum => None,
        }
    }
}

/// A state, and where in the log it stands.
pub struct Replay {
    state: State,
    position: Position,
}

impl Default for Replay {
    fn default() -> Self {
        Self { state: State::new(), position: GENESIS }
    }
}

impl Replay {
    /// The state after the last row.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes the state out.
    #[must_use]
    pub fn into_state(self) -> State {
        self.state
    }

    /// The last row.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Applies the next row of the chain. After an error the state is not to be used any more.
    pub fn apply(&mut self, scanned: &Scanned) -> Result<(), ReplayError> {
        let row = &scanned.row;
        let moment = Moment { seq: Seq(row.seq), at: Timestamp(row.at), nonce: row.nonce };
        self.state.open_turn(moment);
        for entry in &scanned.entries {
            self.state.apply(entry).map_err(ReplayError::Misfit)?;
        }
        self.state.check_touched().map_err(ReplayError::Violation)?;
        if self.state.sum() != row.state_sum {
            return Err(ReplayError::Sum);
        }
        self.state.commit_turn();
        self.position = row.position();
        Ok(())
    }

    /// Counts everything again, from the holds.
    pub fn recount(&self) -> Result<Totals, Vec<Violation>> {
        self.state.recount()
    }

    /// The names of everything.
    pub fn catalog(&mut self) -> Arc<Catalog> {
        self.state.catalog()
    }
}
