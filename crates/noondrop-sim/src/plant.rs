//! Planted bugs: each must be found, or the simulation proves nothing.
//!
//! The rules' own are `noondrop_core::planted`, those of the turn are the engine's, and the rest are made here, around
//! them: in the store, the operator, the callers.

use noondrop_core::planted::Bug;
use noondrop_engine::Planted;

/// One deliberately wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A wrong rule. The switch is one for the whole process.
    Rule(Bug),
    /// A wrong step of the turn.
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

/// Rules that small worlds cannot break: one starts where more than 8,192 holds lapse at once, the other does harm only
/// together with a second bug. The core's own tests have them.
const BEYOND_SMALL_WORLDS: [Bug; 2] = [Bug::TimeDoesNotLag, Bug::SumSkipsExtras];

/// Rules of seats, and of stock that items share or that is set aside: nobody does that here yet. The core's own tests have them.
const NOT_SIMULATED: [Bug; 11] = [
    Bug::OwnPoolOnly,
    Bug::SharesAlone,
    Bug::LimitsCountLines,
    Bug::SharesChange,
    Bug::BlockToStock,
    Bug::BlockPassedOver,
    Bug::ReturnsForgotten,
    Bug::SeatGivenTwice,
    Bug::SeatPickedTwice,
    Bug::LapsedSeatsKept,
    Bug::UndoForgetsSeats,
];

const TURNS: [Planted; 7] = [
    Planted::AnswerBeforeAppend,
    Planted::UnknownIsWritten,
    Planted::UnknownSaidNotDone,
    Planted::UndoSkipped,
    Planted::HistoryIgnored,
    Planted::ClockStepTaken,
    Planted::ClockFrozen,
];

const AROUND: [Plant; 8] = [
    Plant::AppendSwallowed,
    Plant::SlotUnchecked,
    Plant::TailCut,
    Plant::EvidenceDropped,
    Plant::RetryWithoutKey,
    Plant::SnapshotDamaged,
    Plant::AnswersSwapped,
    Plant::NoIdleTurn,
];

impl Plant {
    /// Every planted bug that a simulation must find.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let rules = Bug::ALL.iter().copied();
        let rules = rules.filter(|bug| !BEYOND_SMALL_WORLDS.contains(bug));
        let rules = rules.filter(|bug| !NOT_SIMULATED.contains(bug));
        rules.map(Self::Rule).chain(TURNS.map(Self::Turn)).chain(AROUND).collect()
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let camel = match self {
            Self::Rule(bug) => format!("{bug:?}"),
            Self::Turn(step) => format!("{step:?}"),
            around => format!("{around:?}"),
        };
        let mut name = String::new();
        for letter in camel.chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Finds one by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|plant| plant.name() == name)
    }

    /// Where it is planted, for the table.
    #[must_use]
    pub const fn place(self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::Turn(_) => "turn",
            _ => "around",
        }
    }

    /// The engine's part of it.
    #[must_use]
    pub const fn turn(self) -> Option<Planted> {
        match self {
            Self::Turn(step) => Some(step),
            _ => None,
        }
    }

    /// Plants the part of it that is one switch for the whole process.
    pub fn switch(plant: Option<Self>) {
        noondrop_core::planted::set(match plant {
            Some(Self::Rule(bug)) => Some(bug),
            _ => None,
        });
    }
}
