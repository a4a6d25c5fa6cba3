//! Facts: what happened, in the words an auditor uses. The log's long-lived format.
//!
//! Numbers of fields and variants are never reused; a new field or variant comes with a new format level.
//! Each fact says who and by which key, conserves by itself, and points to the hold's previous fact, so that a story
//! can be walked backwards (RULES R1). Facts hold digests where a person could be named; the texts travel beside
//! them in [`Private`], outside the digest of the row (RULES R13).

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use smallvec::SmallVec;

use crate::command::{CancelTo, KeyUse, Override, SaleTerms};
use crate::ids::{Digest16, Name, Role};
use crate::outcome::SaleState;
use crate::refusal::Refusal;
use crate::seats::{SeatDef, SeatNo};
use crate::units::{ActorIx, HoldNo, ItemIx, LabelIx, SaleIx, Seq, ShopIx, Timestamp};

/// The format level that this program writes at most and reads at most.
pub const LEVEL: u16 = 1;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Fact {
    /// The first fact of every log.
    #[n(0)]
    LogStarted(#[n(0)] LogStarted),
    /// A shop was defined or changed.
    #[n(1)]
    ShopDefined(#[n(0)] ShopDefined),
    /// A principal acted for the first time.
    #[n(2)]
    ActorSeen(#[n(0)] ActorSeen),
    /// A sale was defined or changed.
    #[n(3)]
    SaleDefined(#[n(0)] SaleDefined),
    /// A sale moved along its life cycle.
    #[n(4)]
    SaleMoved(#[n(0)] SaleMoved),
    /// An item was defined or changed.
    #[n(5)]
    ItemDefined(#[n(0)] ItemDefined),
    /// An item got more or fewer units.
    #[n(6)]
    ItemAdjusted(#[n(0)] ItemAdjusted),
    /// Units were claimed.
    #[n(7)]
    HoldCreated(#[n(0)] HoldCreated),
    /// An attempt to claim units lost.
    #[n(8)]
    HoldRefused(#[n(0)] HoldRefused),
    /// A hold became a sale.
    #[n(9)]
    HoldConfirmed(#[n(0)] HoldConfirmed),
    /// A confirm came again with the same payment.
    #[n(10)]
    HoldConfirmedAgain(#[n(0)] HoldTouched),
    /// A hold's end moved.
    #[n(11)]
    HoldExtended(#[n(0)] HoldExtended),
    /// Held units came back.
    #[n(12)]
    HoldReleased(#[n(0)] HoldReleased),
    /// Holds lapsed.
    #[n(13)]
    HoldsExpired(#[n(0)] HoldsExpired),
    /// Sold units came back.
    #[n(14)]
    HoldCancelled(#[n(0)] HoldCancelled),
    /// Something asked of a hold was refused.
    #[n(15)]
    HoldActRefused(#[n(0)] HoldActRefused),
    /// A key was used again and again; logged at counts 1, 2, 4, 8 …
    #[n(16)]
    KeyRepeated(#[n(0)] KeyRepeated),
    /// An operator went on after acknowledged rows were gone.
    #[n(17)]
    LossAccepted(#[n(0)] LossAccepted),
    /// How long keys live, and how many.
    #[n(18)]
    SettingsChanged(#[n(0)] Settings),
    /// Units were set aside.
    #[n(19)]
    ItemBlocked(#[n(0)] BlockMoved),
    /// Units that were set aside are on sale again.
    #[n(20)]
    ItemUnblocked(#[n(0)] BlockMoved),
    /// There were not enough units to set aside, or to put on sale again.
    #[n(21)]
    BlockRefused(#[n(0)] BlockRefused),
    /// An item got more or fewer seats.
    #[n(22)]
    SeatsChanged(#[n(0)] SeatsChanged),
    /// The log goes on from a backup's copy.
    #[n(23)]
    LogRestored(#[n(0)] LogRestored),
    /// A buyer's private texts were erased.
    #[n(24)]
    BuyerErased(#[n(0)] BuyerErased),
}

/// The first fact of every log: it names the log, makes its secret and states the level.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LogStarted {
    /// Random, for good.
    #[n(0)]
    pub log_id: Digest16,
    /// Keys every digest in this log; never rotated, never in a configuration, never shown.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub key_secret: [u8; 32],
    /// The format level.
    #[n(2)]
    pub level: u16,
    /// Settings that can change an outcome.
    #[n(3)]
    pub settings: Settings,
}

/// Settings that can change an outcome; a configuration only proposes them (RULES R12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Settings {
    /// A success key replays at least this long after the decision and after the hold is final.
    #[n(0)]
    pub success_key_hours: u32,
    /// A refusal key replays at least this long.
    #[n(1)]
    pub refusal_key_seconds: u32,
    /// Keys in memory; beyond it refusal keys go first, then new keyed commands are turned away.
    #[n(2)]
    pub keys_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { success_key_hours: 72, refusal_key_seconds: 600, keys_max: 16_000_000 }
    }
}

/// A shop was defined or changed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ShopDefined {
    /// Its index: the next free one, if it is new.
    #[n(0)]
    pub shop: ShopIx,
    /// Its id.
    #[n(1)]
    pub name: Name,
    /// Whether it sells for real.
    #[n(2)]
    pub live: bool,
    /// Who.
    #[n(3)]
    pub by: ActorIx,
}

/// A principal acted for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ActorSeen {
    /// Its index: the next free one.
    #[n(0)]
    pub actor: ActorIx,
    /// Its configured name.
    #[n(1)]
    pub name: Name,
    /// Its role.
    #[n(2)]
    pub role: Role,
    /// The shop for which it acted.
    #[n(3)]
    pub shop: Name,
}

/// A sale was defined or changed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SaleDefined {
    /// Its index: the next free one, if it is new.
    #[n(0)]
    pub sale: SaleIx,
    /// Its shop.
    #[n(1)]
    pub shop: ShopIx,
    /// Its id.
    #[n(2)]
    pub name: Name,
    /// Its rules.
    #[n(3)]
    pub terms: SaleTerms,
    /// 1 for a new one, then rising.
    #[n(4)]
    pub version: u32,
    /// Who.
    #[n(5)]
    pub by: ActorIx,
}

/// A sale moved along its life cycle, by a person or by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SaleMoved {
    /// The sale.
    #[n(0)]
    pub sale: SaleIx,
    /// Where it stands now.
    #[n(1)]
    pub state: SaleState,
    /// Who.
    #[n(2)]
    pub by: ActorIx,
}

/// An item was defined or changed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ItemDefined {
    /// Its index: the next free one, if it is new.
    #[n(0)]
    pub item: ItemIx,
    /// Its sale.
    #[n(1)]
    pub sale: SaleIx,
    /// Its id.
    #[n(2)]
    pub name: Name,
    /// Its total, now; 0 where it has no units of its own.
    #[n(3)]
    pub total: u32,
    /// Units that holds may claim beyond the total.
    #[n(4)]
    pub oversell_limit: u32,
    /// The pools that a unit of it takes from, each once: itself, unless it has no units of its own, then those that
    /// it counts against, directly or through others.
    #[n(5)]
    pub draws: Vec<ItemIx>,
    /// 1 for a new one, then rising; as before where only what it counts against changed.
    #[n(6)]
    pub version: u32,
    /// Who.
    #[n(7)]
    pub by: ActorIx,
    /// The items that it counts against directly, if any.
    #[n(8)]
    pub counts_against: Option<Vec<ItemIx>>,
    /// It is an item of seats; for good.
    #[n(9)]
    pub seated: Option<bool>,
}

/// An item got more or fewer seats.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SeatsChanged {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// New seats: their numbers go on from those that the item has had.
    #[n(1)]
    pub added: Vec<SeatDef>,
    /// Seats that were removed before and are back.
    #[n(2)]
    pub planned: Vec<SeatNo>,
    /// Seats that are not planned any more.
    #[n(3)]
    pub removed: Vec<SeatNo>,
    /// The item's total after.
    #[n(4)]
    pub total: u32,
    /// Who.
    #[n(5)]
    pub by: ActorIx,
    /// The key.
    #[n(6)]
    pub key: Option<KeyUse>,
    /// Seats that somebody has and that are not planned any more, after.
    #[n(7)]
    pub unplanned: u32,
    /// Removed seats that were set aside, by block.
    #[n(8)]
    pub unblocked: Option<Vec<Draw>>,
}

/// An item got more or fewer units.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ItemAdjusted {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// Its total after.
    #[n(1)]
    pub total: u32,
    /// The change.
    #[n(2)]
    pub by_units: i64,
    /// Who.
    #[n(3)]
    pub by: ActorIx,
    /// The key.
    #[n(4)]
    pub key: Option<KeyUse>,
}

/// Units were set aside, or put on sale again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BlockMoved {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// For what or whom; a label that its sale did not have is its next one.
    #[n(1)]
    pub label: Name,
    /// Units.
    #[n(2)]
    pub quantity: u32,
    /// Units of the item under the label, after.
    #[n(3)]
    pub blocked: u32,
    /// Who.
    #[n(4)]
    pub by: ActorIx,
    /// The key.
    #[n(5)]
    pub key: Option<KeyUse>,
    /// On an item of seats: which ones.
    #[n(6)]
    pub seats: Option<Vec<SeatNo>>,
}

/// There were not enough units to set aside, or to put on sale again.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct BlockRefused {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// For what or whom.
    #[n(1)]
    pub label: Name,
    /// Units that were asked for.
    #[n(2)]
    pub quantity: u32,
    /// What was asked.
    #[n(3)]
    pub operation: BlockAct,
    /// Why not.
    #[n(4)]
    pub refusal: Refusal,
    /// Who.
    #[n(5)]
    pub by: ActorIx,
    /// The key.
    #[n(6)]
    pub key: Option<KeyUse>,
}

/// What can be asked of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum BlockAct {
    /// `items.block`
    #[n(0)]
    Block,
    /// `items.unblock`
    #[n(1)]
    Unblock,
}

/// Units that move in or out of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Draw {
    /// The pool.
    #[n(0)]
    pub pool: ItemIx,
    /// Units.
    #[n(1)]
    pub quantity: u32,
    /// The label under which they were set aside before, or are after; none: they are on sale there.
    #[n(2)]
    pub label: Option<LabelIx>,
}

/// A short list of draws.
pub type Draws = Short<Draw>;

/// A list that is nearly always of one, and then needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Short<T>(pub SmallVec<[T; 1]>);

impl<T> core::ops::Deref for Short<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> FromIterator<T> for Short<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<C, T: Encode<C>> Encode<C> for Short<T> {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        self.0.as_slice().encode(e, ctx)
    }
}

impl<'b, C, T: Decode<'b, C>> Decode<'b, C> for Short<T> {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, decode::Error> {
        d.array_iter_with(ctx)?.collect::<Result<_, _>>().map(Self)
    }
}

/// One line of a new hold, with every pool that it took from written out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LineTaken {
    /// The item that the caller named.
    #[n(0)]
    pub item: ItemIx,
    /// Units.
    #[n(1)]
    pub quantity: u32,
    /// From which pools, how many each.
    #[n(2)]
    pub draws: Draws,
    /// On an item of seats: which ones.
    #[n(3)]
    pub seats: Option<Vec<SeatNo>>,
}

/// A seat that leaves its hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SeatOut {
    /// The hold's line, from 1.
    #[n(0)]
    pub line: u8,
    /// Of which item.
    #[n(1)]
    pub item: ItemIx,
    /// Which.
    #[n(2)]
    pub seat: SeatNo,
    /// The block that it is in from then on.
    #[n(3)]
    pub to: Option<LabelIx>,
    /// It was not planned any more: it is gone with its owner.
    #[n(4)]
    pub gone: Option<bool>,
}

/// Units were claimed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldCreated {
    /// Its running number: the next one.
    #[n(0)]
    pub hold: HoldNo,
    /// Its sale.
    #[n(1)]
    pub sale: SaleIx,
    /// Who asked.
    #[n(2)]
    pub by: ActorIx,
    /// For whom.
    #[n(3)]
    pub buyer: Digest16,
    /// Time to live, as granted.
    #[n(4)]
    pub ttl_seconds: u32,
    /// How often its buyer may extend it.
    #[n(5)]
    pub extensions: u8,
    /// What was taken.
    #[n(6)]
    pub lines: Short<LineTaken>,
    /// The key.
    #[n(7)]
    pub key: Option<KeyUse>,
    /// The shop's cart or order number.
    #[n(8)]
    pub reference: Option<Digest16>,
    /// Its end, where that is not simply creation + time to live.
    #[n(9)]
    pub expires_at: Option<Timestamp>,
    /// The hold that it replaces, and the clock of that one's chain.
    #[n(10)]
    pub supersedes: Option<Superseded>,
    /// The lapsed hold whose units it takes again.
    #[n(11)]
    pub retakes: Option<HoldNo>,
    /// Device and address.
    #[n(12)]
    pub origin: Option<Digest16>,
    /// Refusals that there were and that the box office passed over; why is in the private reason.
    #[n(13)]
    pub overridden: Option<Vec<Override>>,
}

/// The hold that a new one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Superseded {
    /// Which.
    #[n(0)]
    pub hold: HoldNo,
    /// When the first hold of the chain was made.
    #[n(1)]
    pub chain_from: Timestamp,
}

/// A line that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LineWanted {
    /// The item.
    #[n(0)]
    pub item: ItemIx,
    /// Units.
    #[n(1)]
    pub quantity: u32,
    /// Out of this block.
    #[n(2)]
    pub from: Option<LabelIx>,
    /// The seats that were asked for by name.
    #[n(3)]
    pub seats: Option<Vec<SeatNo>>,
}

/// An attempt to claim units lost; with the counts of that moment, so that "why did I not get one?" has an answer.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct HoldRefused {
    /// The sale.
    #[n(0)]
    pub sale: SaleIx,
    /// Who asked.
    #[n(1)]
    pub by: ActorIx,
    /// For whom.
    #[n(2)]
    pub buyer: Digest16,
    /// The shop's cart or order number.
    #[n(3)]
    pub reference: Option<Digest16>,
    /// What was asked for.
    #[n(4)]
    pub lines: Short<LineWanted>,
    /// Why not.
    #[n(5)]
    pub refusal: Refusal,
    /// The key.
    #[n(6)]
    pub key: Option<KeyUse>,
    /// Device and address.
    #[n(7)]
    pub origin: Option<Digest16>,
}

/// A hold became a sale.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldConfirmed {
    /// Which, and its previous fact.
    #[n(0)]
    pub touched: HoldTouched,
    /// The payment.
    #[n(1)]
    pub payment: Digest16,
    /// Units that move from held to sold in each pool.
    #[n(2)]
    pub moves: Draws,
}

/// The part that every fact about an existing hold shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldTouched {
    /// Which hold.
    #[n(0)]
    pub hold: HoldNo,
    /// The row of its previous fact.
    #[n(1)]
    pub previous: Seq,
    /// Who.
    #[n(2)]
    pub by: ActorIx,
    /// The key.
    #[n(3)]
    pub key: Option<KeyUse>,
}

/// A hold's end moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldExtended {
    /// Which, and its previous fact.
    #[n(0)]
    pub touched: HoldTouched,
    /// Its end now.
    #[n(1)]
    pub expires_at: Timestamp,
    /// Whether it used one of the buyer's extensions.
    #[n(2)]
    pub counted: bool,
}

/// Units of one line that change their state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LineMoved {
    /// The line, from 1.
    #[n(0)]
    pub line: u8,
    /// Units.
    #[n(1)]
    pub quantity: u32,
}

/// Held units came back.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldReleased {
    /// Which, and its previous fact.
    #[n(0)]
    pub touched: HoldTouched,
    /// From which lines.
    #[n(1)]
    pub lines: Short<LineMoved>,
    /// Into which pools.
    #[n(2)]
    pub moves: Draws,
    /// The hold that replaces it, made by the next fact.
    #[n(3)]
    pub superseded_by: Option<HoldNo>,
    /// Which seats, of the lines that have some.
    #[n(4)]
    pub seats: Option<Vec<SeatOut>>,
}

/// Holds that lapsed together: consecutive numbers with one previous row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ExpiredRun {
    /// The first, as a distance from the end of the run before.
    #[n(0)]
    pub skip: u64,
    /// How many.
    #[n(1)]
    pub count: u32,
    /// The row of their previous fact.
    #[n(2)]
    pub previous: Seq,
}

/// Holds lapsed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldsExpired {
    /// Which, in rising order.
    #[n(0)]
    pub runs: Vec<ExpiredRun>,
    /// Into which pools, all together.
    #[n(1)]
    pub moves: Vec<Draw>,
    /// Which seats, of the holds that have some.
    #[n(2)]
    pub seats: Option<Vec<SeatOut>>,
}

/// Sold units came back.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HoldCancelled {
    /// Which, and its previous fact.
    #[n(0)]
    pub touched: HoldTouched,
    /// From which lines.
    #[n(1)]
    pub lines: Short<LineMoved>,
    /// Out of which pools' sold units.
    #[n(2)]
    pub moves: Draws,
    /// Where to; a label that the sale did not have is its next one.
    #[n(3)]
    pub to: CancelTo,
    /// Which seats, of the lines that have some.
    #[n(4)]
    pub seats: Option<Vec<SeatOut>>,
}

/// Something asked of a hold was refused.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct HoldActRefused {
    /// Which, and its previous fact (which stays its previous fact).
    #[n(0)]
    pub touched: HoldTouched,
    /// What was asked.
    #[n(1)]
    pub operation: HoldAct,
    /// Why not.
    #[n(2)]
    pub refusal: Refusal,
}

/// What can be asked of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum HoldAct {
    /// `holds.confirm`
    #[n(0)]
    Confirm,
    /// `holds.extend`
    #[n(1)]
    Extend,
    /// `holds.release`
    #[n(2)]
    Release,
    /// `holds.cancel`
    #[n(3)]
    Cancel,
    /// `holds.create` that would have replaced it
    #[n(4)]
    Supersede,
    /// `holds.create` that would have taken its units again
    #[n(5)]
    Retake,
}

/// A key was used again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyRepeated {
    /// The key.
    #[n(0)]
    pub key: Digest16,
    /// How often it was answered from the record.
    #[n(1)]
    pub count: u32,
    /// Device and address of the repeat that reached this count.
    #[n(2)]
    pub origin: Option<Digest16>,
}

/// An operator went on after acknowledged rows were gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LossAccepted {
    /// The last row that was acknowledged.
    #[n(0)]
    pub acknowledged: Seq,
    /// The last row that was found.
    #[n(1)]
    pub found: Seq,
}

/// The log goes on from a backup's copy. What was answered after the copy's last row is not in this history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LogRestored {
    /// The last row of the copy: the one right before this fact's, which its digest names.
    #[n(0)]
    pub after: Seq,
}

/// A buyer's private texts were erased: from memory with this fact, from the rows before it soon after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BuyerErased {
    /// His shop.
    #[n(0)]
    pub shop: ShopIx,
    /// Who.
    #[n(1)]
    pub buyer: Digest16,
    /// How many holds he ever had.
    #[n(2)]
    pub holds: u64,
    /// Who asked.
    #[n(3)]
    pub by: ActorIx,
}

/// The private texts of one fact; they travel in the row's private blob, and can be erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Private {
    /// For whom.
    #[n(0)]
    pub buyer: Option<String>,
    /// The shop's cart or order number.
    #[n(1)]
    pub reference: Option<String>,
    /// JSON text.
    #[n(2)]
    pub metadata: Option<String>,
    /// The payment's own id.
    #[n(3)]
    pub payment_ref: Option<String>,
    /// Why, in a person's words.
    #[n(4)]
    pub reason: Option<String>,
}

/// A fact with its private texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What happened.
    pub fact: Fact,
    /// What only those who may see it see.
    pub private: Option<Private>,
}

impl From<Fact> for Entry {
    fn from(fact: Fact) -> Self {
        Self { fact, private: None }
    }
}

impl Fact {
    /// The stable name of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LogStarted(_) => "log.started",
            Self::ShopDefined(_) => "shop.defined",
            Self::ActorSeen(_) => "actor.seen",
            Self::SaleDefined(_) => "sale.defined",
            Self::SaleMoved(_) => "sale.moved",
            Self::ItemDefined(_) => "item.defined",
            Self::ItemAdjusted(_) => "item.adjusted",
            Self::HoldCreated(_) => "hold.created",
            Self::HoldRefused(_) => "hold.refused",
            Self::HoldConfirmed(_) => "hold.confirmed",
            Self::HoldConfirmedAgain(_) => "hold.confirmed_again",
            Self::HoldExtended(_) => "hold.extended",
            Self::HoldReleased(_) => "hold.released",
            Self::HoldsExpired(_) => "holds.expired",
            Self::HoldCancelled(_) => "hold.cancelled",
            Self::HoldActRefused(_) => "hold.act_refused",
            Self::KeyRepeated(_) => "key.repeated",
            Self::LossAccepted(_) => "loss.accepted",
            Self::SettingsChanged(_) => "settings.changed",
            Self::ItemBlocked(_) => "item.blocked",
            Self::ItemUnblocked(_) => "item.unblocked",
            Self::BlockRefused(_) => "block.refused",
            Self::SeatsChanged(_) => "item.seats_changed",
            Self::LogRestored(_) => "log.restored",
            Self::BuyerErased(_) => "buyer.erased",
        }
    }
}

impl Fact {
    /// What happened to one hold that was there before.
    #[must_use]
    pub const fn touched(&self) -> Option<&HoldTouched> {
        match self {
            Self::HoldConfirmed(fact) => Some(&fact.touched),
            Self::HoldConfirmedAgain(touched) => Some(touched),
            Self::HoldExtended(fact) => Some(&fact.touched),
            Self::HoldReleased(fact) => Some(&fact.touched),
            Self::HoldCancelled(fact) => Some(&fact.touched),
            Self::HoldActRefused(fact) => Some(&fact.touched),
            _ => None,
        }
    }
}

impl HoldsExpired {
    /// The lapsed holds with the row of their previous fact.
    pub fn holds(&self) -> impl Iterator<Item = (HoldNo, Seq)> + '_ {
        let mut next = 0;
        self.runs.iter().flat_map(move |run| {
            let first = next + run.skip;
            next = first + u64::from(run.count);
            (first..next).map(move |no| (HoldNo(no), run.previous))
        })
    }
}
