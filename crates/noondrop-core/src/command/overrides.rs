//! Refusals that the box office may pass over: the sale's door, limits per buyer, a quarantine. Never stock itself.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::refusal::Refusal;

/// A refusal that may be passed over. Beyond the stock is what an item's `oversell_limit` says, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Override {
    /// The sale is not open yet.
    #[n(0)]
    SaleNotOpen,
    /// The sale is paused.
    #[n(1)]
    SalePaused,
    /// The sale is closed.
    #[n(2)]
    SaleClosed,
    /// The item's counts are being checked.
    #[n(3)]
    ItemQuarantined,
    /// The buyer has a hold already.
    #[n(4)]
    BuyerHasHold,
    /// The buyer would have too many.
    #[n(5)]
    LimitPerBuyer,
}

impl Override {
    /// All of them, in the order in which refusals are told.
    pub const ALL: [Self; 6] = [
        Self::SaleNotOpen,
        Self::SalePaused,
        Self::SaleClosed,
        Self::ItemQuarantined,
        Self::BuyerHasHold,
        Self::LimitPerBuyer,
    ];

    /// The code of the refusal that it passes over.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SaleNotOpen => "sale_not_open",
            Self::SalePaused => "sale_paused",
            Self::SaleClosed => "sale_closed",
            Self::ItemQuarantined => "item_quarantined",
            Self::BuyerHasHold => "buyer_has_hold",
            Self::LimitPerBuyer => "limit_per_buyer",
        }
    }

    /// The one of a code.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == code)
    }

    /// The one that passes over a refusal.
    #[must_use]
    pub const fn of(refusal: &Refusal) -> Option<Self> {
        match refusal {
            Refusal::SaleNotOpen { .. } => Some(Self::SaleNotOpen),
            Refusal::SalePaused => Some(Self::SalePaused),
            Refusal::SaleClosed => Some(Self::SaleClosed),
            Refusal::ItemQuarantined { .. } => Some(Self::ItemQuarantined),
            Refusal::BuyerHasHold { .. } => Some(Self::BuyerHasHold),
            Refusal::LimitPerBuyer { .. } => Some(Self::LimitPerBuyer),
            _ => None,
        }
    }
}

/// What the box office wants passed over, and why.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct Overriding {
    /// Which refusals, at least one.
    #[n(0)]
    pub codes: Vec<Override>,
    /// Why, for the ledger.
    #[n(1)]
    pub reason: String,
}
