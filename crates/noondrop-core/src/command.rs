//! What a caller asks for. Parsed and bounded at the door; decided by [`crate::State::decide`].
//!
//! The acts are encoded with numbered fields, absent ones left out, to take a fingerprint of them: two bodies that
//! mean the same have one fingerprint, whatever their member order or white space (RULES R7). Never reuse a number.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use smallvec::SmallVec;

use crate::ids::{Digest16, Digested, HoldId, Name, Role};
use crate::units::Fence;

mod overrides;
mod person;
mod sale;
mod stock;

pub use overrides::{Override, Overriding};
pub use person::*;
pub use sale::*;
pub use stock::*;

/// Version of the fingerprint; goes into it, so that a new encoding never meets an old one.
const FINGERPRINT_VERSION: u8 = 1;

/// One request, ready to be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The shop that the credential names.
    pub shop: Name,
    /// Who asks.
    pub actor: Actor,
    /// The idempotency key, if one was given.
    pub key: Option<KeyUse>,
    /// Digest of the client facts (device, address); outside the fingerprint.
    pub origin: Option<Digest16>,
    /// What is asked.
    pub act: Act,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A configured principal.
    Principal {
        /// Its configured name.
        name: Name,
        /// Its role.
        role: Role,
    },
    /// A buyer with a token of his own: may touch his own holds only.
    Buyer {
        /// Keyed hash of shop and subject.
        digest: Digest16,
    },
}

impl Actor {
    /// Whether the bounds for buyers (the sale's time to live, extensions) do not bind this actor.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        matches!(self, Self::Principal { role: Role::Operator | Role::Admin | Role::Seller, .. })
    }

    /// Whether this actor may pass over refusals of a new hold.
    #[must_use]
    pub fn may_override(&self) -> bool {
        matches!(self, Self::Principal { role: Role::Operator | Role::Admin, .. })
    }
}

/// An idempotency key in its scope, hashed, with the fingerprint of what it was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyUse {
    /// Keyed hash of shop, principal, operation, target and key.
    #[n(0)]
    pub hash: Digest16,
    /// Hash of the parsed command; a different one under the same key is `key_reused`.
    #[n(1)]
    pub fingerprint: u64,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Define a shop, or change it.
    ShopPut(ShopPut),
    /// Define a sale, or change its terms.
    SalePut(SalePut),
    /// Move a sale along its life cycle.
    SaleMove(SaleMove),
    /// Define an item, or change its terms.
    ItemPut(ItemPut),
    /// Add units to an item, or take some away.
    ItemAdjust(ItemAdjust),
    /// Set units aside under a label.
    ItemBlock(ItemBlock),
    /// Put units that were set aside on sale again.
    ItemUnblock(ItemUnblock),
    /// Add seats to an item, or take some away.
    ItemSeats(ItemSeats),
    /// Claim units for a while.
    HoldCreate(HoldCreate),
    /// Turn a hold into a sale.
    HoldConfirm(HoldConfirm),
    /// Move a hold's end.
    HoldExtend(HoldExtend),
    /// Give held units back.
    HoldRelease(HoldRelease),
    /// Give sold units back.
    HoldCancel(HoldCancel),
    /// Forget a buyer.
    BuyerErase(BuyerErase),
}

impl Act {
    /// The operation's stable name: part of a key's scope, of metrics and of the ledger.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::ShopPut(_) => "shops.put",
            Self::SalePut(_) => "sales.put",
            Self::SaleMove(act) => act.to.operation(),
            Self::ItemPut(_) => "items.put",
            Self::ItemAdjust(_) => "items.adjust",
            Self::ItemBlock(_) => "items.block",
            Self::ItemUnblock(_) => "items.unblock",
            Self::ItemSeats(_) => "items.seats",
            Self::HoldCreate(_) => "holds.create",
            Self::HoldConfirm(_) => "holds.confirm",
            Self::HoldExtend(_) => "holds.extend",
            Self::HoldRelease(_) => "holds.release",
            Self::HoldCancel(_) => "holds.cancel",
            Self::BuyerErase(_) => "buyers.erase",
        }
    }

    /// Whether this act settles what was promised before and keeps a share of each turn that a
    /// storm of new holds cannot take (RULES R2).
    #[must_use]
    pub const fn settles(&self) -> bool {
        !matches!(self, Self::HoldCreate(_))
    }

    /// Hash of the parsed act: equal for equal meaning.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut bytes = Vec::with_capacity(128);
        bytes.push(FINGERPRINT_VERSION);
        let encoded = match self {
            Self::ShopPut(act) => minicbor::encode(act, &mut bytes),
            Self::SalePut(act) => minicbor::encode(act, &mut bytes),
            Self::SaleMove(act) => minicbor::encode(act, &mut bytes),
            Self::ItemPut(act) => minicbor::encode(act, &mut bytes),
            Self::ItemAdjust(act) => minicbor::encode(act, &mut bytes),
            Self::ItemBlock(act) => minicbor::encode(act, &mut bytes),
            Self::ItemUnblock(act) => minicbor::encode(act, &mut bytes),
            Self::ItemSeats(act) => minicbor::encode(act, &mut bytes),
            Self::HoldCreate(act) => minicbor::encode(act, &mut bytes),
            Self::HoldConfirm(act) => minicbor::encode(act, &mut bytes),
            Self::HoldExtend(act) => minicbor::encode(act, &mut bytes),
            Self::HoldRelease(act) => minicbor::encode(act, &mut bytes),
            Self::HoldCancel(act) => minicbor::encode(act, &mut bytes),
            Self::BuyerErase(act) => minicbor::encode(act, &mut bytes),
        };
        encoded.expect("writing to a vector cannot fail");
        let hash = blake3::hash(&bytes);
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight of thirty-two bytes"))
    }
}

/// Define a shop, or change it.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct ShopPut {
    /// Its id.
    #[n(0)]
    pub name: Name,
    /// A live shop sells for real; rehearsals refuse it.
    #[n(1)]
    pub live: bool,
}

/// One line of a new hold.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct LineAsked {
    /// The item.
    #[n(0)]
    pub item: Name,
    /// Units, at least 1.
    #[n(1)]
    pub quantity: u32,
    /// The label whose units it takes (seller); boxed, because it is rare and every command carries the place for it.
    #[n(2)]
    pub from: Option<Box<Name>>,
    /// On an item of seats: which ones. None: the best that are free, wherever they are.
    #[n(3)]
    pub seats: Option<Box<SeatsAsked>>,
}

impl LineAsked {
    /// So many units of an item, or of its best seats.
    #[must_use]
    pub const fn units(item: Name, quantity: u32) -> Self {
        Self { item, quantity, from: None, seats: None }
    }
}

/// Which seats of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct SeatsAsked {
    /// These, by name; then there is nothing else to say. None named: the best of those that the rest describes.
    #[n(0)]
    pub named: Option<Vec<Name>>,
    /// Next to each other in one row.
    #[n(1)]
    pub together: bool,
    /// Only in these sections; none: in all.
    #[n(2)]
    pub sections: Option<Vec<Name>>,
    /// Only seats with all of these tags.
    #[n(3)]
    pub tags: Option<Vec<Name>>,
    /// Only in this price zone.
    #[n(4)]
    pub zone: Option<Name>,
}

/// Claim units for a while: all lines or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldCreate {
    /// The sale.
    pub sale: Name,
    /// For whom.
    pub buyer: Digested,
    /// The shop's cart or order number.
    pub reference: Option<Digested>,
    /// What.
    pub lines: SmallVec<[LineAsked; 1]>,
    /// For how long; none: the sale's `hold_seconds`.
    pub ttl_seconds: Option<u32>,
    /// JSON text of the caller's own, kept and given back.
    pub metadata: Option<String>,
    /// Replace this hold of the same buyer and sale, in one step.
    pub supersedes: Option<HoldRef>,
    /// Take again what this lapsed hold had (seller).
    pub retake: Option<HoldId>,
    /// Confirm in the same step (seller).
    pub confirm: Option<Digested>,
    /// Pass over refusals (admin); boxed, because it is rare and every command carries the place for it.
    pub overriding: Option<Box<Overriding>>,
}

/// A hold named with the fence that the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct HoldRef {
    /// The hold.
    #[n(0)]
    pub hold: HoldId,
    /// Its fence.
    #[n(1)]
    pub fence: Fence,
}

impl<C> Encode<C> for HoldCreate {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.begin_map()?;
        e.u8(0)?.str(self.sale.as_str())?;
        e.u8(1)?.str(&self.buyer.text)?;
        if let Some(reference) = &self.reference {
            e.u8(2)?.str(&reference.text)?;
        }
        e.u8(3)?.array(self.lines.len() as u64)?;
        for line in &self.lines {
            line.encode(e, ctx)?;
        }
        if let Some(seconds) = self.ttl_seconds {
            e.u8(4)?.u32(seconds)?;
        }
        if let Some(metadata) = &self.metadata {
            e.u8(5)?.str(metadata)?;
        }
        if let Some(old) = &self.supersedes {
            e.u8(6)?;
            old.encode(e, ctx)?;
        }
        if let Some(old) = &self.retake {
            e.u8(7)?;
            old.encode(e, ctx)?;
        }
        if let Some(payment) = &self.confirm {
            e.u8(8)?.str(&payment.text)?;
        }
        if let Some(overriding) = &self.overriding {
            e.u8(9)?;
            overriding.encode(e, ctx)?;
        }
        e.end()?.ok()
    }
}

/// Turn a hold into a sale, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldConfirm {
    /// The hold.
    pub hold: HoldId,
    /// Its fence.
    pub fence: Fence,
    /// The payment's own id, or `none` for gifts.
    pub payment_ref: Digested,
}

impl<C> Encode<C> for HoldConfirm {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.map(3)?.u8(0)?;
        self.hold.encode(e, ctx)?;
        e.u8(1)?.u64(self.fence.0)?.u8(2)?.str(&self.payment_ref.text)?.ok()
    }
}

/// Move a hold's end to `at + seconds`, never earlier than it was.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct HoldExtend {
    /// The hold.
    #[n(0)]
    pub hold: HoldId,
    /// Its fence; a privileged caller may leave it out and give a reason instead.
    #[n(1)]
    pub fence: Option<Fence>,
    /// From now.
    #[n(2)]
    pub seconds: u32,
    /// Why, for the ledger.
    #[n(3)]
    pub reason: Option<String>,
}

/// A part of a hold's line.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct LinePart {
    /// The line's number, from 1.
    #[n(0)]
    pub line: u8,
    /// Units; none: all that the line has.
    #[n(1)]
    pub quantity: Option<u32>,
    /// On a line of seats: which ones, by name; none: all that the line has.
    #[n(2)]
    pub seats: Option<Vec<Name>>,
}

impl LinePart {
    /// So many units of a line; none: all that it has.
    #[must_use]
    pub const fn units(line: u8, quantity: Option<u32>) -> Self {
        Self { line, quantity, seats: None }
    }
}

/// Give held units back.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct HoldRelease {
    /// The hold.
    #[n(0)]
    pub hold: HoldId,
    /// Its fence; a privileged caller may leave it out and give a reason instead.
    #[n(1)]
    pub fence: Option<Fence>,
    /// Which units; none: all.
    #[n(2)]
    pub lines: Option<Vec<LinePart>>,
    /// Why, for the ledger.
    #[n(3)]
    pub reason: Option<String>,
}

/// Give sold units back.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
#[cbor(map)]
pub struct HoldCancel {
    /// The hold.
    #[n(0)]
    pub hold: HoldId,
    /// Its fence.
    #[n(1)]
    pub fence: Fence,
    /// Which units; none: all.
    #[n(2)]
    pub lines: Option<Vec<LinePart>>,
    /// Where the units go; none: where the sale says (`returns_to`), else on sale again.
    #[n(3)]
    pub to: Option<CancelTo>,
    /// Why, for the ledger.
    #[n(4)]
    pub reason: String,
}
