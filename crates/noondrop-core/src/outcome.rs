//! What was decided, as a caller sees it: the numbers of an answer. Names and private texts are joined at the door.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use smallvec::SmallVec;

use crate::command::SaleTerms;
use crate::ids::{Digest16, HoldId, Name};
use crate::refusal::Refusal;
use crate::units::{Fence, HoldNo, ItemIx, LabelIx, SaleIx, ShopIx, Timestamp};

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A hold, as it was right after the decision.
    Hold(HoldView),
    /// An item.
    Item(ItemView),
    /// A sale.
    Sale(SaleView),
    /// A shop.
    Shop(ShopView),
    /// A buyer was forgotten.
    Erased(ErasedView),
    /// No.
    Refused(Refusal),
}

/// A buyer who was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedView {
    /// His shop.
    pub shop: ShopIx,
    /// Who.
    pub buyer: Digest16,
    /// How many holds he ever had.
    pub holds: u64,
    /// When.
    pub at: Timestamp,
    /// He was forgotten before; when last.
    pub before: Option<Timestamp>,
}

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum HoldState {
    /// It has held units and its time is not over.
    #[n(0)]
    Active,
    /// Sold.
    #[n(1)]
    Confirmed,
    /// Given back, all of it.
    #[n(2)]
    Released,
    /// Its time ran out.
    #[n(3)]
    Expired,
    /// Sold, then given back, all of it.
    #[n(4)]
    Cancelled,
}

impl HoldState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Active, Self::Confirmed, Self::Released, Self::Expired, Self::Cancelled];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A hold's numbers.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct HoldView {
    /// Its public id.
    #[n(0)]
    pub id: HoldId,
    /// Its running number.
    #[n(1)]
    pub no: HoldNo,
    /// Its fence.
    #[n(2)]
    pub fence: Fence,
    /// Where it stood.
    #[n(3)]
    pub state: HoldState,
    /// Its shop.
    #[n(4)]
    pub shop: ShopIx,
    /// Its sale.
    #[n(5)]
    pub sale: SaleIx,
    /// When it was made.
    #[n(6)]
    pub created_at: Timestamp,
    /// When it lapses, or would have.
    #[n(7)]
    pub expires_at: Timestamp,
    /// The time to live it was made with.
    #[n(8)]
    pub ttl_seconds: u32,
    /// How often its buyer may still extend it.
    #[n(9)]
    pub extensions_left: u8,
    /// The hold that it replaced.
    #[n(10)]
    pub supersedes: Option<HoldId>,
    /// The hold that replaced it.
    #[n(11)]
    pub superseded_by: Option<HoldId>,
    /// Its lines.
    #[n(12)]
    pub lines: Lines,
    /// The command found its work done before (a repeated confirm).
    #[n(13)]
    pub already: bool,
    /// Whether its shop sells for real.
    #[n(14)]
    pub live: bool,
    /// Where it stands now: in an answer from the record this is ahead of `state`.
    #[n(15)]
    pub now: HoldNow,
    /// Private texts; none where the caller has them from its own command.
    #[cbor(skip)]
    pub texts: Option<Box<HoldTexts>>,
    /// The seats that it ever had, by line.
    #[n(16)]
    pub seats: Vec<SeatOfHold>,
}

/// A seat of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SeatOfHold {
    /// The line, from 1.
    #[n(0)]
    pub line: u8,
    /// Its name.
    #[n(1)]
    pub name: Name,
    /// Whether the hold still has it.
    #[n(2)]
    pub kept: SeatKept,
}

/// What became of a seat of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SeatKept {
    /// The hold has it, held or sold.
    #[n(0)]
    Kept,
    /// It was given back before it was sold.
    #[n(1)]
    Released,
    /// It was given back after it was sold.
    #[n(2)]
    Cancelled,
    /// The hold's time ran out.
    #[n(3)]
    Lapsed,
}

/// A hold's standing at the time of the answer, for headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldNow {
    /// The state now.
    #[n(0)]
    pub state: HoldState,
    /// The end now.
    #[n(1)]
    pub expires_at: Timestamp,
}

/// A hold's private texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldTexts {
    /// For whom; empty once erased.
    pub buyer: String,
    /// The shop's cart or order number.
    pub reference: Option<String>,
    /// JSON text.
    pub metadata: Option<String>,
}

/// One line: its five counts always add up to what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Line {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// Units claimed.
    #[n(1)]
    pub held: u32,
    /// Units owned.
    #[n(2)]
    pub sold: u32,
    /// Units given back before they were sold, or lapsed.
    #[n(3)]
    pub released: u32,
    /// Units given back after they were sold.
    #[n(4)]
    pub cancelled: u32,
    /// The block that it took them from, if it did.
    #[n(5)]
    pub from: Option<LabelIx>,
}

impl Line {
    /// What the line asked for when it was made.
    #[must_use]
    pub const fn quantity(&self) -> u32 {
        self.held + self.sold + self.released + self.cancelled
    }
}

/// A hold's lines; nearly always one, and then without an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(pub SmallVec<[Line; 1]>);

impl<C> Encode<C> for Lines {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.0.as_slice().encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Lines {
    fn decode(d: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        d.array_iter_with(ctx)?.collect::<Result<_, _>>().map(Self)
    }
}

/// An item's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ItemView {
    /// Its index.
    #[n(0)]
    pub item: ItemIx,
    /// Its sale.
    #[n(1)]
    pub sale: SaleIx,
    /// Its counts.
    #[n(2)]
    pub counts: Counts,
    /// Rises with each change of its terms.
    #[n(3)]
    pub version: u32,
    /// New holds are refused while its counts are in doubt.
    #[n(4)]
    pub quarantined: bool,
    /// The command made it (and did not just change it).
    #[n(5)]
    pub created: bool,
    /// It has no units of its own: it draws only on what it counts against.
    #[n(6)]
    pub is_view: bool,
    /// The items that it counts against directly.
    #[n(7)]
    pub counts_against: Vec<ItemIx>,
    /// Units set aside, by label; they add up to what is blocked.
    #[n(8)]
    pub blocks: Vec<BlockView>,
    /// It is an item of seats.
    #[n(9)]
    pub seated: bool,
}

/// Units of an item that are set aside under one label.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BlockView {
    /// For what or whom.
    #[n(0)]
    pub label: Name,
    /// Units.
    #[n(1)]
    pub quantity: u32,
}

/// The account of a pool of units (RULES R8): `available + held + sold + blocked == total + oversold`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Counts {
    /// T: units that exist.
    #[n(0)]
    pub total: u32,
    /// H: units in live holds.
    #[n(1)]
    pub held: u32,
    /// S: units owned.
    #[n(2)]
    pub sold: u32,
    /// B: units set aside.
    #[n(3)]
    pub blocked: u32,
    /// L: units that holds may claim beyond the total.
    #[n(4)]
    pub oversell_limit: u32,
    /// U: seats that somebody has and that are not planned any more; 0 for other items.
    #[n(5)]
    pub unplanned: u32,
}

impl Counts {
    /// H + S + B: units that are spoken for.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.held as u64 + self.sold as u64 + self.blocked as u64
    }

    /// T + U: units that exist, and those that only their owner still has.
    const fn known(&self) -> u64 {
        self.total as u64 + self.unplanned as u64
    }

    /// T + U + L: units that holds may claim.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.known() + self.oversell_limit as u64
    }

    /// `max(D, 0)` of D = T + U − H − S − B.
    #[must_use]
    pub const fn available(&self) -> u64 {
        self.known().saturating_sub(self.taken())
    }

    /// `max(−D, 0) + U`.
    #[must_use]
    pub const fn oversold(&self) -> u64 {
        self.taken().saturating_sub(self.known()) + self.unplanned as u64
    }

    /// Units that a hold could have now.
    #[must_use]
    pub const fn free(&self) -> u64 {
        self.cap().saturating_sub(self.taken())
    }
}

/// Where a sale stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SaleState {
    /// Being written.
    #[n(0)]
    Draft,
    /// Published; opens by itself.
    #[n(1)]
    Scheduled,
    /// Takes holds.
    #[n(2)]
    Open,
    /// Takes none for now.
    #[n(3)]
    Paused,
    /// Takes none any more; confirms go on.
    #[n(4)]
    Closed,
    /// Its books are closed.
    #[n(5)]
    Archived,
}

impl SaleState {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Scheduled => "scheduled",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Closed => "closed",
            Self::Archived => "archived",
        }
    }
}

/// A sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaleView {
    /// Its index.
    pub sale: SaleIx,
    /// Its id.
    pub name: Name,
    /// Its shop's id.
    pub shop: Name,
    /// Whether its shop sells for real.
    pub live: bool,
    /// Where it stands.
    pub state: SaleState,
    /// Its rules.
    pub terms: SaleTerms,
    /// Rises with each change of its terms.
    pub version: u32,
    /// The command made it.
    pub created: bool,
}

/// A shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopView {
    /// Its index.
    pub shop: ShopIx,
    /// Its id.
    pub name: Name,
    /// Whether it sells for real.
    pub live: bool,
    /// The command made it.
    pub created: bool,
}
