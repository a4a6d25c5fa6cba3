//! Holds in memory: dense, found by number; fifty bytes each while nothing unusual happened to them.
//!
//! A hold that a turn works on is a [`Hold`], loaded from the store, changed by its own methods and put back.
//! What is rare (several lines, parts given back, a reference, a replaced hold) lies in side maps.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use smallvec::{SmallVec, smallvec};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::hold::{Extra, Hold, Payment, simple_line, state_from};
use super::texts::{ErasedTexts, Texts};
use crate::chunked::Chunked;
use crate::fact::Private;
use crate::ids::HoldId;
use crate::outcome::{HoldNow, HoldState, HoldTexts, HoldView, Line, Lines};
use crate::planted::{self, Bug};
use crate::units::{Fence, HoldNo, ItemIx, SaleIx, Seq, ShopIx, Timestamp};

/// A number below 2^48 in six bytes: a position, or a time up to the year 10889.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub(super) struct U48([u8; 6]);

impl U48 {
    pub(super) const MAX: u64 = (1 << 48) - 1;

    pub(super) fn new(value: u64) -> Self {
        assert!(value <= Self::MAX, "{value} needs more than 48 bits");
        let bytes = value.to_le_bytes();
        Self([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]])
    }

    pub(super) fn get(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0);
        u64::from_le_bytes(bytes)
    }
}

/// The stored part of a hold. What it shares with its turn (position, time, fence) lies in [`CreatingTurn`].
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Record {
    tag: [u8; 10],
    expires_at: U48,
    last_seq: U48,
    ttl_seconds: U32,
    sale: U32,
    buyer: U32,
    /// Distance back to the same buyer's hold before; 0: none.
    buyer_back: U32,
    item: U32,
    quantity: U32,
    state: u8,
    flags: u8,
    extensions: u8,
    extensions_used: u8,
}

const HAS_LINES: u8 = 1;
const HAS_EXTRA: u8 = 2;
/// Its shop sold for real when the hold was made.
const MADE_LIVE: u8 = 4;

/// A row that created holds.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct CreatingTurn {
    first_no: zerocopy::little_endian::U64,
    seq: zerocopy::little_endian::U64,
    at: zerocopy::little_endian::U64,
    first_fence: zerocopy::little_endian::U64,
}

/// All holds in memory.
#[derive(Clone, Default)]
pub(super) struct Holds {
    pub(super) records: Chunked<Record>,
    pub(super) turns: Chunked<CreatingTurn>,
    pub(super) lines: BTreeMap<HoldNo, SmallVec<[Line; 1]>>,
    pub(super) extras: BTreeMap<HoldNo, Box<Extra>>,
    pub(super) payments: BTreeMap<HoldNo, Payment>,
    texts: Texts,
}

impl Holds {
    /// The number that the next hold gets.
    pub(super) fn next_no(&self) -> HoldNo {
        HoldNo(self.records.len() as u64)
    }

    /// The full number of a stored low half, which lies at most 2^32 back.
    pub(super) fn widen(&self, low: u32) -> HoldNo {
        let newest = self.next_no().0;
        #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
        let back = (newest as u32).wrapping_sub(low);
        HoldNo(newest - u64::from(back))
    }

    pub(super) fn open_turn_with(&mut self, no: HoldNo, seq: Seq, at: Timestamp, fence: Fence) {
        self.turns.push(CreatingTurn {
            first_no: no.0.into(),
            seq: seq.0.into(),
            at: at.0.into(),
            first_fence: fence.0.into(),
        });
    }

    /// The last fence that was given out.
    pub(super) fn last_fence(&self) -> u64 {
        self.turns.last().map_or(0, |turn| {
            turn.first_fence.get() + (self.records.len() as u64 - turn.first_no.get()).max(1) - 1
        })
    }

    fn turn_of(&self, no: HoldNo) -> &CreatingTurn {
        // Most looks are at holds of the newest turn.
        let last = self.turns.len() - 1;
        if self.turns[last].first_no.get() <= no.0 {
            return &self.turns[last];
        }
        &self.turns[self.turns.partition_point(|turn| turn.first_no.get() <= no.0) - 1]
    }

    pub(super) fn find(&self, id: HoldId) -> Option<HoldNo> {
        let at = self.turns.partition_point(|turn| turn.seq.get() <= id.seq.0).checked_sub(1)?;
        let turn = &self.turns[at];
        let no = HoldNo(turn.first_no.get() + u64::from(id.index));
        let record = self.records.get(usize::try_from(no.0).ok()?)?;
        let next_turn = (at + 1 < self.turns.len()).then(|| self.turns[at + 1].first_no.get());
        let in_turn = next_turn.is_none_or(|first| no.0 < first);
        (turn.seq.get() == id.seq.0 && in_turn && record.tag == id.tag).then_some(no)
    }

    fn record(&self, no: HoldNo) -> &Record {
        &self.records[index(no)]
    }

    pub(super) fn id(&self, no: HoldNo) -> HoldId {
        let turn = self.turn_of(no);
        let place =
            u16::try_from(no.0 - turn.first_no.get()).expect("a turn makes at most 65,535 holds");
        HoldId { seq: Seq(turn.seq.get()), index: place, tag: self.record(no).tag }
    }

    pub(super) fn is_live_until(&self, no: HoldNo) -> Option<Timestamp> {
        let record = self.records.get(index(no))?;
        let active = state_from(record.state) == HoldState::Active;
        active.then(|| Timestamp(record.expires_at.get()))
    }

    /// The end after which nothing of this hold is pending any more.
    pub(super) fn settled_by(&self, no: HoldNo) -> Timestamp {
        Timestamp(self.record(no).expires_at.get())
    }

    pub(super) fn buyer_of(&self, no: HoldNo) -> u32 {
        self.record(no).buyer.get()
    }

    /// The same buyer's hold before this one.
    pub(super) fn buyer_before(&self, no: HoldNo) -> Option<HoldNo> {
        let back = self.record(no).buyer_back.get();
        (back > 0).then(|| HoldNo(no.0 - u64::from(back)))
    }

    /// The units that a hold claims on its only line, without loading it: the fast path of expiry.
    pub(super) fn simple_held(&self, no: HoldNo) -> Option<(ItemIx, u32)> {
        let record = self.record(no);
        let plain = record.flags & HAS_LINES == 0 && state_from(record.state) == HoldState::Active;
        plain.then(|| (ItemIx(record.item.get()), record.quantity.get()))
    }

    /// The units that a hold claims or owns on its only line, without loading it.
    pub(super) fn simple_claimed(&self, no: HoldNo) -> Option<(ItemIx, u32)> {
        let record = self.record(no);
        let claims = matches!(state_from(record.state), HoldState::Active | HoldState::Confirmed);
        let plain = record.flags & HAS_LINES == 0 && claims;
        plain.then(|| (ItemIx(record.item.get()), record.quantity.get()))
    }

    /// Whether a hold's lines lie in the side map.
    pub(super) fn has_lines(&self, no: HoldNo) -> bool {
        self.record(no).flags & HAS_LINES != 0
    }

    pub(super) fn last_seq(&self, no: HoldNo) -> Seq {
        Seq(self.record(no).last_seq.get())
    }

    pub(super) fn load(&self, no: HoldNo) -> Option<Hold> {
        let record = self.records.get(usize::try_from(no.0).ok()?)?;
        let turn = self.turn_of(no);
        let place = no.0 - turn.first_no.get();
        let state = state_from(record.state);
        let lines = if record.flags & HAS_LINES == 0 {
            smallvec![simple_line(state, ItemIx(record.item.get()), record.quantity.get())]
        } else {
            self.lines[&no].clone()
        };
        let extra = (record.flags & HAS_EXTRA != 0).then(|| self.extras[&no].clone());
        Some(Hold {
            no,
            id: HoldId {
                seq: Seq(turn.seq.get()),
                index: u16::try_from(place).expect("a turn makes at most 65,535 holds"),
                tag: record.tag,
            },
            fence: Fence(turn.first_fence.get() + place),
            created_at: Timestamp(turn.at.get()),
            expires_at: Timestamp(record.expires_at.get()),
            last_seq: Seq(record.last_seq.get()),
            ttl_seconds: record.ttl_seconds.get(),
            sale: SaleIx(record.sale.get()),
            buyer: record.buyer.get(),
            buyer_back: record.buyer_back.get(),
            state,
            extensions: record.extensions,
            extensions_used: record.extensions_used,
            live: record.flags & MADE_LIVE != 0,
            lines,
            extra,
        })
    }

    /// Writes a hold: a new one at the end, or over the one with its number.
    pub(super) fn store(&mut self, hold: &Hold) {
        let simple = hold.simple();
        if simple.is_none() {
            self.lines.insert(hold.no, hold.lines.clone());
        }
        if let Some(extra) = &hold.extra {
            self.extras.insert(hold.no, extra.clone());
        }
        let (item, quantity) = simple.unwrap_or_default();
        let flags = if simple.is_none() { HAS_LINES } else { 0 }
            | if hold.extra.is_some() { HAS_EXTRA } else { 0 }
            | if hold.live { MADE_LIVE } else { 0 };
        let record = Record {
            tag: hold.id.tag,
            expires_at: U48::new(hold.expires_at.0),
            last_seq: U48::new(hold.last_seq.0),
            ttl_seconds: hold.ttl_seconds.into(),
            sale: hold.sale.0.into(),
            buyer: hold.buyer.into(),
            buyer_back: hold.buyer_back.into(),
            item: item.0.into(),
            quantity: quantity.into(),
            state: hold.state as u8,
            flags,
            extensions: hold.extensions,
            extensions_used: hold.extensions_used,
        };
        let at = index(hold.no);
        if at == self.records.len() {
            self.records.push(record);
            return;
        }
        let dropped = self.records[at].flags & !flags;
        if dropped & HAS_LINES != 0 {
            self.lines.remove(&hold.no);
        }
        if dropped & HAS_EXTRA != 0 {
            self.extras.remove(&hold.no);
        }
        self.records[at] = record;
    }

    pub(super) fn add_texts(&mut self, no: HoldNo, private: Option<&Private>) {
        self.texts.push(no, private);
    }

    /// A hold's texts as they lie in memory, for a snapshot.
    pub(super) fn packed_texts(&self, no: HoldNo) -> &[u8] {
        self.texts.packed(no)
    }

    pub(super) fn add_packed_texts(&mut self, no: HoldNo, packed: &[u8]) {
        self.texts.push_packed(no, packed);
    }

    pub(super) fn sale_of(&self, no: HoldNo) -> SaleIx {
        SaleIx(self.record(no).sale.get())
    }

    /// Whether a hold ever had seats.
    pub(super) fn has_seats(&self, no: HoldNo) -> bool {
        self.record(no).flags & HAS_EXTRA != 0 && self.extras[&no].seats.is_some()
    }

    /// Whether a hold has nothing in the side maps.
    pub(super) fn is_plain(&self, no: HoldNo) -> bool {
        self.record(no).flags & (HAS_LINES | HAS_EXTRA) == 0
    }

    /// The end of a live hold with nothing in the side maps.
    pub(super) fn plain_end(&self, no: HoldNo) -> Option<Timestamp> {
        let record = self.records.get(index(no))?;
        let simple = record.flags & (HAS_LINES | HAS_EXTRA) == 0;
        let plain = simple && state_from(record.state) == HoldState::Active;
        plain.then(|| Timestamp(record.expires_at.get()))
    }

    /// Whether a record that was read from outside points only to what is there.
    pub(super) fn is_whole(&self, no: HoldNo, sales: usize, items: usize) -> bool {
        let record = self.record(no);
        let lines = if record.flags & HAS_LINES == 0 {
            (record.item.get() as usize) < items
        } else {
            let lines = self.lines.get(&no);
            lines.is_some_and(|lines| lines.iter().all(|line| (line.item.0 as usize) < items))
        };
        lines
            && usize::from(record.state) < HoldState::ALL.len()
            && (record.sale.get() as usize) < sales
            && (record.flags & HAS_EXTRA == 0 || self.extras.contains_key(&no))
            && self.turns.get(0).is_some_and(|turn| turn.first_no.get() == 0)
    }

    /// Takes the newest hold out again.
    pub(super) fn pop(&mut self) {
        let no = HoldNo(self.records.len() as u64 - 1);
        self.lines.remove(&no);
        self.extras.remove(&no);
        self.records.pop();
        self.texts.pop(no);
        let emptied = self.turns.last().is_some_and(|turn| turn.first_no.get() == no.0);
        if emptied {
            self.turns.pop();
        }
    }

    /// Drops a hold's texts. What was there, if there was something.
    pub(super) fn erase_texts(&mut self, no: HoldNo) -> Option<ErasedTexts> {
        let packed = self.texts.erase(no);
        let paid = self.payments.get_mut(&no).filter(|paid| !paid.text.is_empty());
        let payment = paid.map(|paid| core::mem::take(&mut paid.text));
        (packed.is_some() || payment.is_some()).then_some(ErasedTexts { no, packed, payment })
    }

    pub(super) fn restore_texts(&mut self, erased: ErasedTexts) {
        if let Some(packed) = erased.packed {
            self.texts.restore(erased.no, &packed);
        }
        if let (Some(text), Some(paid)) = (erased.payment, self.payments.get_mut(&erased.no)) {
            paid.text = text;
        }
    }

    pub(super) fn texts(&self, no: HoldNo) -> HoldTexts {
        self.texts.get(no)
    }

    /// A hold's share of `state_sum`.
    pub(super) fn sum(&self, no: HoldNo) -> u128 {
        let record = self.record(no);
        let mut sum = super::sum::entry(super::sum::HOLD, no.0, record.as_bytes());
        if record.flags & HAS_LINES != 0 {
            sum = sum.wrapping_add(super::sum::encoded(
                super::sum::LINES,
                no.0,
                self.lines[&no].as_slice(),
            ));
        }
        if record.flags & HAS_EXTRA != 0 && !planted::is(Bug::SumSkipsExtras) {
            sum = sum.wrapping_add(super::sum::encoded(super::sum::EXTRA, no.0, &self.extras[&no]));
        }
        sum
    }

    pub(super) fn view(&self, hold: &Hold, shop: ShopIx) -> HoldView {
        let other = |no: Option<HoldNo>| no.map(|no| self.id_or_next(no, hold));
        let extra = hold.extra.as_deref();
        HoldView {
            id: hold.id,
            no: hold.no,
            fence: hold.fence,
            state: hold.state,
            shop,
            sale: hold.sale,
            created_at: hold.created_at,
            expires_at: hold.expires_at,
            ttl_seconds: hold.ttl_seconds,
            extensions_left: hold.extensions_left(),
            supersedes: other(extra.and_then(|extra| extra.supersedes)),
            superseded_by: other(extra.and_then(|extra| extra.superseded_by)),
            lines: Lines(hold.lines.clone()),
            already: false,
            live: hold.live,
            now: HoldNow { state: hold.state, expires_at: hold.expires_at },
            texts: None,
            seats: Vec::new(),
        }
    }

    /// The id of a hold that exists, or of the one being made.
    fn id_or_next(&self, no: HoldNo, being_made: &Hold) -> HoldId {
        if no == being_made.no { being_made.id } else { self.id(no) }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.records.memory_bytes()
            + self.turns.memory_bytes()
            + self.lines.len() * 96
            + self.extras.len() * 144
            + self.payments.len() * 96
            + self.texts.memory_bytes()
    }
}

pub(super) fn index(no: HoldNo) -> usize {
    usize::try_from(no.0).expect("a hold in memory has a number that fits")
}
