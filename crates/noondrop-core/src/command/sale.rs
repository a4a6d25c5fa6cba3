//! What is asked of a sale: define it, with all its rules, and move it along its life cycle.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::ids::Name;
use crate::units::Timestamp;

/// The rules of a sale, all of them: what decides is in the log (RULES R12).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SaleTerms {
    /// For people; up to 256 bytes.
    #[n(0)]
    pub title: String,
    /// Holds are taken from this time on; none: as soon as the sale is published.
    #[n(1)]
    pub opens_at: Option<Timestamp>,
    /// No new holds from this time on.
    #[n(2)]
    pub closes_at: Option<Timestamp>,
    /// A hold's time to live where the request names none.
    #[n(3)]
    pub hold_seconds: u32,
    /// The longest that a buyer may ask for.
    #[n(4)]
    pub hold_seconds_max: u32,
    /// From the first hold of a chain (extended, superseded) to its last end, for buyers.
    #[n(5)]
    pub hold_chain_seconds_max: u32,
    /// How often a buyer may extend one hold.
    #[n(6)]
    pub extensions_max: u8,
    /// Live holds that one buyer may have in this sale.
    #[n(7)]
    pub live_holds_per_buyer: Option<u32>,
    /// Units per buyer.
    #[n(8)]
    pub limits: Vec<BuyerLimit>,
    /// Where units go that come back; none: on sale again.
    #[n(9)]
    pub returns_to: Option<Returns>,
}

/// Where units go that come back, unless the caller says otherwise: not to the fastest robot.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Returns {
    /// They are set aside under this label.
    #[n(0)]
    pub label: Name,
    /// Also those that ordinary holds give back or let lapse, and not only what is cancelled.
    #[n(1)]
    pub lapsed: bool,
}

/// How many units one buyer may hold and own.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BuyerLimit {
    /// Its name, for the error.
    #[n(0)]
    pub name: Name,
    /// The items that it sums over, named by a line or drawn on by it; empty: every item of the sale.
    #[n(1)]
    pub items: Vec<Name>,
    /// Live + sold - cancelled units per buyer.
    #[n(2)]
    pub per_buyer: u32,
}

/// Define a sale, or change its terms.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct SalePut {
    /// Its id within the shop.
    #[n(0)]
    pub sale: Name,
    /// Its rules.
    #[n(1)]
    pub terms: SaleTerms,
    /// The version that the caller saw; another one now is `version_mismatch`.
    #[n(2)]
    pub if_version: Option<u32>,
}

/// Where a sale can be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SaleStep {
    /// From draft to scheduled or, where its time has come, open.
    #[n(0)]
    Publish,
    /// No new holds for now.
    #[n(1)]
    Pause,
    /// New holds again.
    #[n(2)]
    Resume,
    /// No new holds any more.
    #[n(3)]
    Close,
    /// Undo a close.
    #[n(4)]
    Reopen,
    /// Close the books: nothing changes any more.
    #[n(5)]
    Archive,
}

impl SaleStep {
    pub(super) const fn operation(self) -> &'static str {
        match self {
            Self::Publish => "sales.publish",
            Self::Pause => "sales.pause",
            Self::Resume => "sales.resume",
            Self::Close => "sales.close",
            Self::Reopen => "sales.reopen",
            Self::Archive => "sales.archive",
        }
    }
}

/// Move a sale along its life cycle.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct SaleMove {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// Where to.
    #[n(1)]
    pub to: SaleStep,
}
