//! Everything that the log says, in memory; decides, applies, undoes. No clock, no chance, no IO.
//!
//! # Layout
//!
//! * [`books`]: shops, sales, items and their accounts · [`blocks`]: units set aside · [`seating`]: who has which seat ·
//!   [`holds`]: holds, dense · [`keys`]: idempotency keys · [`lapse`]: when holds end
//! * [`turn`]: one turn of the log: its moment, the undo journal, `state_sum`
//! * [`decide`]: from a command to an outcome and facts, changing nothing · [`apply`]: from a fact to a changed state,
//!   deciding nothing; replay uses only this, [`settle`] for holds that exist, and [`erase`] for persons
//! * [`look`]: what can be asked · [`offer`]: what everyone may know · [`recount`]: all invariants from scratch · [`snapshot`]: to bytes and back

use alloc::collections::BTreeMap;

use crate::chunked::Chunked;
use crate::digester::Digester;
use crate::fact::Settings;
use crate::ids::Digest16;
use crate::index::Index;
use crate::units::{HoldNo, SaleIx, Seq, Timestamp};

mod account;
mod apply;
mod blocks;
mod books;
mod decide;
mod erase;
mod hold;
mod holds;
mod keys;
mod lapse;
mod look;
mod offer;
mod recount;
mod seating;
mod settle;
mod snapshot;
mod sum;
mod texts;
mod turn;
mod wishes;

pub use apply::Misfit;
pub use books::{Catalog, ItemName, SaleName, ShopName};
pub use decide::Decision;
pub use look::{Counters, SeatInfo};
pub use offer::{Level, Offer, few};
pub use recount::{Totals, Violation};
pub use snapshot::SnapshotError;
pub use turn::{Moment, Savepoint, TimePlan, hold_id};

use books::Books;
use erase::Erasure;
use holds::Holds;
use keys::Keys;
use lapse::Lapses;
use seating::Seating;
use turn::Turn;

/// What the log's first fact said.
#[derive(Clone)]
struct LogIdentity {
    log_id: Digest16,
    secret: [u8; 32],
    level: u16,
}

/// A buyer that ever had a hold.
#[derive(
    Clone,
    Copy,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C)]
struct Buyer {
    digest: [u8; 16],
    /// His newest hold's number; all ones: none.
    newest: zerocopy::little_endian::U64,
}

/// Marks a buyer without a hold (his only one was undone).
const NO_HOLD: u64 = u64::MAX;

/// What a buyer has in one sale, for one limit; [`LIVE_HOLDS`] counts his live holds.
type UsageKey = (SaleIx, u16, u32);
const LIVE_HOLDS: u16 = u16::MAX;

/// The state that the log describes.
#[derive(Clone, Default)]
pub struct State {
    log: Option<LogIdentity>,
    settings: Settings,
    books: Books,
    holds: Holds,
    buyers: Chunked<Buyer>,
    buyer_index: Index,
    /// Which hold has a reference; only holds that claim or own units do.
    references: BTreeMap<Digest16, HoldNo>,
    usage: BTreeMap<UsageKey, u32>,
    keys: Keys,
    lapses: Lapses,
    seating: Seating,
    /// Who was forgotten, and when last.
    erased: BTreeMap<Digest16, Erasure>,
    /// The row of the newest of these.
    newest_erasure: Seq,
    turn: Turn,
    /// Sum over all entries but the keys and what the open turn did to the accounts.
    sum: u128,
}

impl State {
    /// The state before the first fact.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the log has its first fact.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.log.is_some()
    }

    /// Makes the digests that this log understands.
    #[must_use]
    pub fn digester(&self) -> Option<Digester> {
        self.log.as_ref().map(|log| Digester::new(log.secret))
    }

    /// The log's random id.
    #[must_use]
    pub fn log_id(&self) -> Option<Digest16> {
        self.log.as_ref().map(|log| log.log_id)
    }

    /// The log's format level: what a writer writes, whatever else it could.
    #[must_use]
    pub fn level(&self) -> u16 {
        self.log.as_ref().map_or(crate::fact::LEVEL, |log| log.level)
    }

    /// The settings that decide.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// The time of the newest turn.
    #[must_use]
    pub const fn last_at(&self) -> Timestamp {
        self.turn.moment.at
    }

    /// The next time at which something happens by itself; may be early, never late.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let lapse = self.lapses.head().map(|(at, _)| at);
        let opening = self.books.next_move().map(|(at, _)| at);
        lapse.into_iter().chain(opening).min()
    }
}
