//! Rows applied to a state, every check at every row: the state's own sum, and the invariants of all that a row touched.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use noondrop_core::{
    ActorIx, Catalog, HoldId, HoldNo, ItemIx, Misfit, Moment, Seq, State, Timestamp, Totals,
    Violation,
};
use noondrop_log::{GENESIS, Position};

use super::scan::Scanned;
use crate::http::render::label_text;

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
        self.apply_telling(scanned, &mut |_, _| ())
    }

    /// The same; `tell` sees the state right before each fact.
    pub fn apply_telling(
        &mut self,
        scanned: &Scanned,
        tell: &mut dyn FnMut(usize, &mut State),
    ) -> Result<(), ReplayError> {
        let row = &scanned.row;
        let moment = Moment { seq: Seq(row.seq), at: Timestamp(row.at), nonce: row.nonce };
        self.state.open_turn(moment);
        for (place, entry) in scanned.entries.iter().enumerate() {
            tell(place, &mut self.state);
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

/// Numbers to names, for sentences.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// Names by index.
    pub catalog: &'a Catalog,
    /// Ids of holds.
    pub state: &'a State,
}

impl Naming<'_> {
    /// The public id of a hold.
    #[must_use]
    pub fn hold(&self, no: HoldNo) -> String {
        self.hold_id(no).map_or_else(|| format!("hold #{no}"), |id| id.to_string())
    }

    fn hold_id(&self, no: HoldNo) -> Option<HoldId> {
        self.state.hold_by_no(no).map(|view| view.id)
    }

    /// The name of an item.
    #[must_use]
    pub fn item(&self, item: ItemIx) -> String {
        let known = self.catalog.items.get(item.0 as usize);
        known.map_or_else(|| format!("item #{item}"), |item| item.name.to_string())
    }

    /// The block that units of a pool come out of, or go to; nothing where it is none.
    #[must_use]
    pub fn block(&self, pool: ItemIx, label: Option<noondrop_core::LabelIx>) -> String {
        let text = |label| label_text(self.catalog, pool, label);
        label.map(|label| format!(" (set aside for {})", text(label))).unwrap_or_default()
    }

    /// The name of a sale.
    #[must_use]
    pub fn sale(&self, sale: noondrop_core::SaleIx) -> String {
        let known = self.catalog.sales.get(sale.0 as usize);
        known.map_or_else(|| format!("sale #{sale}"), |sale| sale.name.to_string())
    }

    /// Who acted.
    #[must_use]
    pub fn actor(&self, actor: ActorIx) -> String {
        match actor {
            ActorIx::SYSTEM => "the clock".into(),
            ActorIx::BUYER => "the buyer".into(),
            ActorIx(number) => {
                let known = self.catalog.actors.get((number - ActorIx::FIRST) as usize);
                known.map_or_else(
                    || format!("principal #{number}"),
                    |(name, role)| format!("{name} ({})", role.as_str()),
                )
            }
        }
    }
}
