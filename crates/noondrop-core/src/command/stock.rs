//! What is asked of an item: define it, give it more or fewer units, set some aside; and where cancelled ones go.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::ids::Name;
use crate::seats::SeatDef;

/// Define an item, or change its terms.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ItemPut {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// Its id within the sale.
    #[n(1)]
    pub item: Name,
    /// Units at creation; a later put with another total is `use_adjust`. None: it has no units of its own and
    /// draws only on what it counts against.
    #[n(2)]
    pub total: Option<u32>,
    /// Units that holds may claim beyond the total.
    #[n(3)]
    pub oversell_limit: u32,
    /// The version that the caller saw.
    #[n(4)]
    pub if_version: Option<u32>,
    /// The items of this sale from whose units it takes, too; none and an empty list are the same.
    #[n(5)]
    pub counts_against: Option<Vec<Name>>,
    /// Its seats at creation, for an item of seats: their number is its total, and no total is given.
    #[n(6)]
    pub seats: Option<Vec<SeatDef>>,
}

impl ItemPut {
    /// Whether the item has units of its own, counted or named.
    #[must_use]
    pub const fn has_own(&self) -> bool {
        self.total.is_some() || self.seats.is_some()
    }
}

/// Add seats to an item, or take some away.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ItemSeats {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// The item.
    #[n(1)]
    pub item: Name,
    /// Seats to add. One that was removed before comes back if it is described as it was.
    #[n(2)]
    pub add: Vec<SeatDef>,
    /// Seats to take away, by name. One that somebody has stays his, and goes once it is free.
    #[n(3)]
    pub remove: Vec<Name>,
    /// Why, for the ledger.
    #[n(4)]
    pub reason: String,
}

/// Add units to an item, or take some away.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ItemAdjust {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// The item.
    #[n(1)]
    pub item: Name,
    /// Units to add; negative takes away.
    #[n(2)]
    pub by: i64,
    /// Why, for the ledger.
    #[n(3)]
    pub reason: String,
    /// The total that the caller saw; another one now is `version_mismatch`.
    #[n(4)]
    pub if_total: Option<u32>,
}

/// Set units aside under a label: nobody gets them but who draws on that label.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ItemBlock {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// The item.
    #[n(1)]
    pub item: Name,
    /// Units, at least 1.
    #[n(2)]
    pub quantity: u32,
    /// For what or whom.
    #[n(3)]
    pub label: Name,
    /// Why, for the ledger.
    #[n(4)]
    pub reason: String,
    /// On an item of seats: which ones, by name; none: the best that there are.
    #[n(5)]
    pub seats: Option<Vec<Name>>,
}

/// Put units that were set aside on sale again.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ItemUnblock {
    /// The sale.
    #[n(0)]
    pub sale: Name,
    /// The item.
    #[n(1)]
    pub item: Name,
    /// Units, at least 1.
    #[n(2)]
    pub quantity: u32,
    /// For what or whom they were set aside.
    #[n(3)]
    pub label: Name,
    /// Why, for the ledger.
    #[n(4)]
    pub reason: String,
    /// On an item of seats: which ones, by name; none: the best that there are.
    #[n(5)]
    pub seats: Option<Vec<Name>>,
}

/// Where cancelled units go. A number or, for a block, its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelTo {
    /// On sale again.
    Stock,
    /// Gone: the total shrinks with them.
    Destroyed,
    /// Set aside under this label.
    Block(Name),
}

impl<C> Encode<C> for CancelTo {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        match self {
            Self::Stock => e.u8(0)?,
            Self::Destroyed => e.u8(1)?,
            Self::Block(label) => e.str(label.as_str())?,
        };
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for CancelTo {
    fn decode(d: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        if d.datatype()? == minicbor::data::Type::String {
            return Name::decode(d, ctx).map(Self::Block);
        }
        match d.u8()? {
            0 => Ok(Self::Stock),
            1 => Ok(Self::Destroyed),
            _ => Err(minicbor::decode::Error::message("cancelled units go nowhere known")),
        }
    }
}
