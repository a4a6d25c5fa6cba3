//! Refusals: decided "no"s, values in order of precedence (RULES R10). A fault ("could not decide") is not here.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::ids::{HoldId, Name};
use crate::units::{ItemIx, LabelIx, Timestamp};

/// Why a command was refused. The order of the variants is the order in which they are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Refusal {
    /// The key was used before for something else.
    #[n(0)]
    KeyReused,
    /// No such shop.
    #[n(1)]
    ShopNotFound,
    /// No such sale in this shop.
    #[n(2)]
    SaleNotFound,
    /// Paused by its admin.
    #[n(3)]
    SalePaused,
    /// Not yet.
    #[n(4)]
    SaleNotOpen {
        /// When, if that is known.
        #[n(0)]
        opens_at: Option<Timestamp>,
    },
    /// Over.
    #[n(5)]
    SaleClosed,
    /// Over, and its books are closed.
    #[n(6)]
    SaleArchived,
    /// No such item in this sale.
    #[n(7)]
    ItemNotFound {
        /// The line that names it, from 1; 0 where the path does.
        #[n(0)]
        line: u8,
        /// What was asked for.
        #[n(1)]
        item: Name,
    },
    /// The item's counts are in doubt.
    #[n(8)]
    ItemQuarantined {
        /// The line.
        #[n(0)]
        line: u8,
        /// The item.
        #[n(1)]
        item: ItemIx,
    },
    /// Another hold has this reference.
    #[n(9)]
    ReferenceInUse {
        /// That hold.
        #[n(0)]
        hold: HoldId,
    },
    /// The buyer has as many live holds in this sale as he may.
    #[n(10)]
    BuyerHasHold {
        /// One of them.
        #[n(0)]
        hold: Option<HoldId>,
    },
    /// The buyer would have more units than he may.
    #[n(11)]
    LimitPerBuyer {
        /// The limit's name.
        #[n(0)]
        limit: Name,
        /// Units that it allows.
        #[n(1)]
        limit_max: u32,
        /// Units that the buyer has.
        #[n(2)]
        used: u32,
    },
    /// Some lines do not fit; all of them are listed.
    #[n(12)]
    Stock {
        /// The failing lines, by number.
        #[n(0)]
        lines: Vec<LineRefusal>,
        /// The attempt was to take a lapsed hold's units again: the answer is `units_gone`.
        #[n(1)]
        retake: bool,
    },
    /// No such hold for this caller.
    #[n(13)]
    HoldNotFound,
    /// The caller knows an older or other hold.
    #[n(14)]
    StaleFence,
    /// The hold lapsed.
    #[n(15)]
    HoldExpired,
    /// The hold was released.
    #[n(16)]
    HoldReleased {
        /// By which hold it was replaced, if it was.
        #[n(0)]
        superseded_by: Option<HoldId>,
    },
    /// The hold is confirmed: it cannot be released or extended.
    #[n(17)]
    HoldConfirmed,
    /// The hold was cancelled.
    #[n(18)]
    HoldCancelled,
    /// Another payment confirmed it: this one is a second charge. The other reference is looked up when rendered.
    #[n(19)]
    ConfirmedWithOtherPayment {
        /// The hold, to look the payment up.
        #[n(0)]
        hold: HoldId,
    },
    /// A definition's total counts at creation only.
    #[n(20)]
    UseAdjust {
        /// The total now.
        #[n(0)]
        total: u32,
    },
    /// The thing changed since the caller saw it.
    #[n(21)]
    VersionMismatch {
        /// Its version now; for `if_total`, its total.
        #[n(0)]
        now: u32,
    },
    /// A value that only the state can judge.
    #[n(22)]
    InvalidField {
        /// The field.
        #[n(0)]
        field: String,
        /// What it may be.
        #[n(1)]
        bound: String,
    },
    /// No such seat.
    #[n(23)]
    SeatNotFound {
        /// The line that names it, from 1; 0 where none does.
        #[n(0)]
        line: u8,
        /// What was asked for.
        #[n(1)]
        seat: Name,
    },
    /// The buyer has live holds: he is not forgotten in the middle of buying.
    #[n(24)]
    BuyerHasLiveHolds {
        /// How many.
        #[n(0)]
        holds: u32,
    },
}

/// Why one line does not fit, with the counts of that moment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LineRefusal {
    /// The line, from 1; 0 where the path names the item.
    #[n(0)]
    pub line: u8,
    /// The item that it names.
    #[n(1)]
    pub item: ItemIx,
    /// Why.
    #[n(2)]
    pub code: StockCode,
    /// The pool that did not have enough, where it is not the item itself.
    #[n(3)]
    pub limited_by: Option<ItemIx>,
    /// Units asked for.
    #[n(4)]
    pub requested: u32,
    /// Units that a hold could have had.
    #[n(5)]
    pub available: u32,
    /// Units in other holds.
    #[n(6)]
    pub held: u32,
    /// The most that could come free.
    #[n(7)]
    pub most: u32,
    /// When enough of the holds will have lapsed; none: not known.
    #[n(8)]
    pub may_free_at: Option<Timestamp>,
    /// The block that did not have enough, where it was one.
    #[n(9)]
    pub from: Option<LabelIx>,
    /// The seats that somebody else has, of those asked for by name; at most 32 of them.
    #[n(10)]
    pub seats: Option<Vec<SeatLack>>,
}

/// A seat that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SeatLack {
    /// Which.
    #[n(0)]
    pub seat: Name,
    /// Why.
    #[n(1)]
    pub standing: SeatStanding,
}

/// Where a seat stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SeatStanding {
    /// A live hold has it.
    #[n(0)]
    Held,
    /// It is owned.
    #[n(1)]
    Sold,
    /// It is set aside.
    #[n(2)]
    Blocked,
    /// It is not on offer any more.
    #[n(3)]
    Removed,
    /// Anyone may have it.
    #[n(4)]
    Free,
}

impl SeatStanding {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Sold => "sold",
            Self::Blocked => "blocked",
            Self::Removed => "removed",
            Self::Free => "free",
        }
    }
}

/// How stock falls short, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum StockCode {
    /// Everything is sold or set aside.
    #[n(0)]
    SoldOut,
    /// Nothing is free, but enough is held that may come back.
    #[n(1)]
    AllHeld,
    /// Some is free, or could be, but not that much.
    #[n(2)]
    NotEnoughFree,
    /// Somebody else has a seat that was asked for by name.
    #[n(3)]
    SeatTaken,
    /// So many are free, but nowhere next to each other.
    #[n(4)]
    NotTogether,
}

impl StockCode {
    /// The stable code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SoldOut => "sold_out",
            Self::AllHeld => "all_held",
            Self::NotEnoughFree => "not_enough_free",
            Self::SeatTaken => "seat_taken",
            Self::NotTogether => "not_together",
        }
    }
}

impl Refusal {
    /// The stable code; each has a page in `docs/errors`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::KeyReused => "key_reused",
            Self::ShopNotFound => "shop_not_found",
            Self::SaleNotFound => "sale_not_found",
            Self::SalePaused => "sale_paused",
            Self::SaleNotOpen { .. } => "sale_not_open",
            Self::SaleClosed => "sale_closed",
            Self::SaleArchived => "sale_archived",
            Self::ItemNotFound { .. } => "item_not_found",
            Self::ItemQuarantined { .. } => "item_quarantined",
            Self::ReferenceInUse { .. } => "reference_in_use",
            Self::BuyerHasHold { .. } => "buyer_has_hold",
            Self::LimitPerBuyer { .. } => "limit_per_buyer",
            Self::Stock { retake: true, .. } => "units_gone",
            Self::Stock { lines, .. } => Self::worst(lines).as_str(),
            Self::HoldNotFound => "hold_not_found",
            Self::StaleFence => "stale_fence",
            Self::HoldExpired => "hold_expired",
            Self::HoldReleased { .. } => "hold_released",
            Self::HoldConfirmed => "hold_confirmed",
            Self::HoldCancelled => "hold_cancelled",
            Self::ConfirmedWithOtherPayment { .. } => "confirmed_with_other_payment",
            Self::UseAdjust { .. } => "use_adjust",
            Self::VersionMismatch { .. } => "version_mismatch",
            Self::InvalidField { .. } => "invalid_field",
            Self::SeatNotFound { .. } => "seat_not_found",
            Self::BuyerHasLiveHolds { .. } => "buyer_has_live_holds",
        }
    }

    /// The code of the whole, of several failing lines: the one that waiting helps least.
    fn worst(lines: &[LineRefusal]) -> StockCode {
        lines.iter().map(|line| line.code).min().expect("a stock refusal lists a line")
    }

    /// Whether the attempt competed and lost: then it is recorded, and its key replays it. A refusal at the
    /// door is decided anew each time, so that a retry that we told the client to make can succeed (RULES R7).
    #[must_use]
    pub const fn competed(&self) -> bool {
        match self {
            Self::ReferenceInUse { .. }
            | Self::BuyerHasHold { .. }
            | Self::LimitPerBuyer { .. }
            | Self::Stock { .. }
            | Self::StaleFence
            | Self::HoldExpired
            | Self::HoldReleased { .. }
            | Self::HoldConfirmed
            | Self::HoldCancelled
            | Self::ConfirmedWithOtherPayment { .. } => true,
            Self::KeyReused
            | Self::ShopNotFound
            | Self::SaleNotFound
            | Self::SalePaused
            | Self::SaleNotOpen { .. }
            | Self::SaleClosed
            | Self::SaleArchived
            | Self::ItemNotFound { .. }
            | Self::ItemQuarantined { .. }
            | Self::SeatNotFound { .. }
            | Self::BuyerHasLiveHolds { .. }
            | Self::HoldNotFound
            | Self::UseAdjust { .. }
            | Self::VersionMismatch { .. }
            | Self::InvalidField { .. } => false,
        }
    }
}
