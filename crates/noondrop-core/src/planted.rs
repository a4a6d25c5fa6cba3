//! Deliberately wrong rules, one at a time, for tests and the simulator to find. Only with the feature `planted`; a
//! release never has it, and without it every question here is a constant `false`.
//!
//! The switch is one for the whole process, because the core has no thread and no environment to ask. Whoever sets it
//! runs alone in his process.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU32, Ordering};

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A wrong rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        #[cfg(feature = "planted")]
        impl Bug {
            /// Every wrong rule.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

bugs! {
    /// Each line is checked alone, not the sum of all lines on a pool.
    LinesAlone,
    /// A replaced hold's units are counted as free twice.
    ReplacedFreedTwice,
    /// A replaced hold's units are not counted as free.
    ReplacedNotFreed,
    /// A release gives its units back twice.
    ReleasedTwice,
    /// Holds lapse one millisecond late.
    LapsesLate,
    /// Of a lapsed hold only the first line gives its units back.
    FirstLineLapses,
    /// A lapsed hold may be confirmed.
    LapsedConfirms,
    /// A confirm with another payment is taken for a repeat of the first.
    AnyPayment,
    /// Any fence will do.
    AnyFence,
    /// Limits per buyer count only what is sold.
    LimitsForgetHeld,
    /// A confirmed hold lets go of its reference.
    ReferenceLetGo,
    /// Extending moves a hold's end even where that is earlier.
    ExtendShortens,
    /// Cancelled units leave the total, though they go back on sale.
    CancelShrinks,
    /// An adjustment sets the total instead of adding to it.
    AdjustSets,
    /// A key answers whatever is asked with it.
    AnyFingerprint,
    /// A success key is let go as early as a refusal.
    SuccessForgotten,
    /// A refusal at the door is recorded.
    DoorRecorded,
    /// A replay shows the hold as it is now.
    ReplayMoves,
    /// Undoing a turn leaves the accounts as they are.
    UndoForgetsCounts,
    /// `state_sum` does not see references, clocks and replacements.
    SumSkipsExtras,
    /// A turn is taken at its time though more is due than it takes.
    TimeDoesNotLag,
    /// A line takes from its first pool and from none that its item counts against.
    OwnPoolOnly,
    /// Lines on different items are not summed on the pool that they share.
    SharesAlone,
    /// Limits per buyer look at the item that a line names and not at what it draws on.
    LimitsCountLines,
    /// What an item counts against may change while its units are held or sold.
    SharesChange,
    /// What was held out of a block goes on sale when it comes back.
    BlockToStock,
    /// A line out of a block takes units that are on sale.
    BlockPassedOver,
    /// A sale's rule for what comes back is forgotten.
    ReturnsForgotten,
    /// A seat that somebody has is given again to whoever names it.
    SeatGivenTwice,
    /// A line may pick a seat that another line of its hold has.
    SeatPickedTwice,
    /// A lapsed hold keeps its seats.
    LapsedSeatsKept,
    /// Undoing a turn leaves the seats as they are.
    UndoForgetsSeats,
}

#[cfg(feature = "planted")]
static PLANTED: AtomicU32 = AtomicU32::new(u32::MAX);

/// Plants a bug in this whole process, or none.
#[cfg(feature = "planted")]
pub fn set(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(u32::MAX, |bug| bug as u32), Ordering::Relaxed);
}

#[cfg(feature = "planted")]
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as u32
}

#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
