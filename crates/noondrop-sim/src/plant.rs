//! Planted bugs: each must be found, or the simulation proves nothing.
//!
//! The rules' own come from `noondrop_core::planted`, those of the turn from the engine's probe, and the rest are made
//! here, around them: in the store, the operator, the callers.

use std::fmt;

use noondrop_engine::Planted;

/// One deliberately wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A wrong rule, by its number in the core.
    Rule(u8),
    /// A wrong step of the engine.
    Turn(Planted),
    /// The store says that a row is written, and forgets it.
    AppendSwallowed,
    /// A start does not look whether answered rows are gone.
    SlotUnchecked,
    /// A start takes the last whole row for a torn one and cuts it off.
    TailCut,
    /// Rows that the log lost are not kept anywhere.
    EvidenceDropped,
    /// A caller's retry comes with a new key.
    RetryWithoutKey,
    /// Snapshots lack a part of the state.
    SnapshotDamaged,
    /// Two answers of a turn go to each other's callers.
    AnswersSwapped,
    /// Nobody takes a turn when something is due and nobody calls.
    NoIdleTurn,
}
