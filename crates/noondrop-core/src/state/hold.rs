//! One hold, out of the store: read, changed by its own steps, and put back.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use smallvec::SmallVec;

use crate::command::LinePart;
use crate::fact::{LineMoved, LineTaken, SeatOut};
use crate::ids::{Digest16, HoldId};
use crate::outcome::{HoldState, Line, SeatKept};
use crate::planted::{self, Bug};
use crate::seats::SeatNo;
use crate::units::{Fence, HoldNo, ItemIx, SaleIx, Seq, Timestamp};

/// What few holds have.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Extra {
    #[n(0)]
    pub(super) reference: Option<Digest16>,
    /// The end that it was made with, where that is not creation + time to live.
    #[n(1)]
    pub(super) first_end: Option<Timestamp>,
    /// When the first hold of its chain was made.
    #[n(2)]
    pub(super) chain_from: Option<Timestamp>,
    #[n(3)]
    pub(super) supersedes: Option<HoldNo>,
    #[n(4)]
    pub(super) superseded_by: Option<HoldNo>,
    /// Per line, the units that were given back before the rest lapsed; none where nothing was.
    #[n(5)]
    pub(super) released_before: Option<Vec<u32>>,
    /// The seats that it ever had, in the order of its lines.
    #[n(6)]
    pub(super) seats: Option<Vec<HeldSeat>>,
}

/// A seat that a hold has, or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct HeldSeat {
    /// From 1.
    #[n(0)]
    pub(super) line: u8,
    #[n(1)]
    pub(super) seat: SeatNo,
    #[n(2)]
    pub(super) kept: SeatKept,
}

impl Extra {
    const NONE: Self = Self {
        reference: None,
        first_end: None,
        chain_from: None,
        supersedes: None,
        superseded_by: None,
        released_before: None,
        seats: None,
    };
}

/// What a confirm leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub(super) digest: Digest16,
    /// The payment's own id; empty once erased.
    pub(super) text: String,
}

/// One hold, out of the store, to be read or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) no: HoldNo,
    pub(super) id: HoldId,
    pub(super) fence: Fence,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) last_seq: Seq,
    pub(super) ttl_seconds: u32,
    pub(super) sale: SaleIx,
    pub(super) buyer: u32,
    pub(super) buyer_back: u32,
    pub(super) state: HoldState,
    pub(super) extensions: u8,
    pub(super) extensions_used: u8,
    /// Its shop sold for real when it was made: what was told of it stays so.
    pub(super) live: bool,
    pub(super) lines: SmallVec<[Line; 1]>,
    pub(super) extra: Option<Box<Extra>>,
}

/// Which count of a line a step takes units out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Held,
    Sold,
}

/// A part of a line that the line does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadPart {
    pub(super) field: String,
    pub(super) bound: String,
}

impl Hold {
    pub(super) fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_with(|| Box::new(Extra::NONE))
    }

    pub(super) fn reference(&self) -> Option<Digest16> {
        self.extra.as_ref().and_then(|extra| extra.reference)
    }

    /// The seats that it ever had.
    pub(super) fn seats(&self) -> &[HeldSeat] {
        self.extra.as_ref().and_then(|extra| extra.seats.as_deref()).unwrap_or_default()
    }

    pub(super) fn seats_mut(&mut self) -> &mut [HeldSeat] {
        self.extra.as_mut().and_then(|extra| extra.seats.as_deref_mut()).unwrap_or_default()
    }

    /// The seats that it has now, with their items.
    pub(super) fn kept_seats(&self) -> impl Iterator<Item = (ItemIx, SeatNo)> + '_ {
        let kept = self.seats().iter().filter(|held| held.kept == SeatKept::Kept);
        kept.map(|held| (self.lines[usize::from(held.line) - 1].item, held.seat))
    }

    /// The seats that it has, as they go when it ends.
    pub(super) fn seats_out(&self) -> Vec<SeatOut> {
        let kept = self.seats().iter().filter(|held| held.kept == SeatKept::Kept);
        let out = kept.map(|held| SeatOut {
            line: held.line,
            item: self.lines[usize::from(held.line) - 1].item,
            seat: held.seat,
            to: None,
            gone: None,
        });
        out.collect()
    }

    /// Notes what became of seats.
    pub(super) fn mark<'a>(&mut self, out: impl Iterator<Item = &'a SeatOut>, kept: SeatKept) {
        for one in out {
            let mut seats = self.seats_mut().iter_mut();
            if let Some(held) = seats.find(|held| held.line == one.line && held.seat == one.seat) {
                held.kept = kept;
            }
        }
    }

    /// When the first hold of its chain was made.
    pub(super) fn chain_from(&self) -> Timestamp {
        self.extra.as_ref().and_then(|extra| extra.chain_from).unwrap_or(self.created_at)
    }

    /// Whether a reference is taken by this hold: while it claims or owns units.
    pub(super) fn keeps_reference(&self) -> bool {
        match self.state {
            HoldState::Active => true,
            HoldState::Confirmed => !planted::is(Bug::ReferenceLetGo),
            HoldState::Released | HoldState::Expired | HoldState::Cancelled => false,
        }
    }

    pub(super) fn extensions_left(&self) -> u8 {
        self.extensions.saturating_sub(self.extensions_used)
    }

    pub(super) fn confirm(&mut self) {
        for line in &mut self.lines {
            line.sold += line.held;
            line.held = 0;
        }
        self.state = HoldState::Confirmed;
    }

    pub(super) fn expire(&mut self) {
        if self.lines.iter().any(|line| line.released > 0) {
            self.extra_mut().released_before =
                Some(self.lines.iter().map(|line| line.released).collect());
        }
        for line in &mut self.lines {
            line.released += line.held;
            line.held = 0;
        }
        for held in self.seats_mut().iter_mut().filter(|held| held.kept == SeatKept::Kept) {
            held.kept = SeatKept::Lapsed;
        }
        self.state = HoldState::Expired;
    }

    /// What lapsed of a line, by its place: what its buyer had given back before is not his any more.
    pub(super) fn lapsed(&self, place: usize) -> u32 {
        let before = self.extra.as_ref().and_then(|extra| extra.released_before.as_ref());
        self.lines[place].released - before.map_or(0, |released| released[place])
    }

    /// Takes parts out of what is held; a hold without held units is released.
    pub(super) fn release(&mut self, parts: &[LineMoved]) -> Option<()> {
        for part in parts {
            let line = self.lines.get_mut(usize::from(part.line).checked_sub(1)?)?;
            line.held = line.held.checked_sub(part.quantity)?;
            line.released += part.quantity;
        }
        if self.lines.iter().all(|line| line.held == 0) {
            self.state = HoldState::Released;
        }
        Some(())
    }

    /// Takes parts out of what is sold; a hold without sold units is cancelled.
    pub(super) fn cancel(&mut self, parts: &[LineMoved]) -> Option<()> {
        for part in parts {
            let line = self.lines.get_mut(usize::from(part.line).checked_sub(1)?)?;
            line.sold = line.sold.checked_sub(part.quantity)?;
            line.cancelled += part.quantity;
        }
        if self.lines.iter().all(|line| line.sold == 0) {
            self.state = HoldState::Cancelled;
        }
        Some(())
    }

    /// Resolves the parts that a caller names against what the lines have; all of it where none are named.
    pub(super) fn parts(
        &self,
        asked: Option<&[LinePart]>,
        from: From,
    ) -> Result<SmallVec<[LineMoved; 1]>, BadPart> {
        let has = |line: &Line| match from {
            From::Held => line.held,
            From::Sold => line.sold,
        };
        let Some(asked) = asked else {
            let all = self
                .lines
                .iter()
                .zip(1..)
                .map(|(line, no)| LineMoved { line: no, quantity: has(line) });
            return Ok(all.filter(|part| part.quantity > 0).collect());
        };
        let mut parts: SmallVec<[LineMoved; 1]> = SmallVec::new();
        for (index, part) in asked.iter().enumerate() {
            let line = usize::from(part.line).checked_sub(1).and_then(|at| self.lines.get(at));
            let line = line.filter(|_| parts.iter().all(|seen| seen.line != part.line));
            let line = line.ok_or_else(|| BadPart {
                field: alloc::format!("lines[{index}].line"),
                bound: alloc::format!("1 to {}, each once", self.lines.len()),
            })?;
            let quantity = part.quantity.unwrap_or(has(line));
            if quantity == 0 || quantity > has(line) {
                let what = if from == From::Held { "held" } else { "sold" };
                return Err(BadPart {
                    field: alloc::format!("lines[{index}].quantity"),
                    bound: alloc::format!("1 to the {} units that are {what}", has(line)),
                });
            }
            parts.push(LineMoved { line: part.line, quantity });
        }
        if parts.is_empty() {
            return Err(BadPart { field: "lines".into(), bound: "at least one line".into() });
        }
        Ok(parts)
    }

    /// The hold as it was right after it was made: an answer from the record repeats that one.
    pub(super) fn as_created(&self) -> Self {
        let mut hold = self.clone();
        if planted::is(Bug::ReplayMoves) {
            return hold;
        }
        for line in &mut hold.lines {
            *line = Line { from: line.from, ..fresh_line(line.item, line.quantity()) };
        }
        hold.state = HoldState::Active;
        hold.extensions_used = 0;
        let first_end = self.extra.as_ref().and_then(|extra| extra.first_end);
        hold.expires_at =
            first_end.unwrap_or(self.created_at.plus_seconds(u64::from(self.ttl_seconds)));
        if let Some(extra) = &mut hold.extra {
            extra.superseded_by = None;
        }
        for held in hold.seats_mut() {
            held.kept = SeatKept::Kept;
        }
        hold
    }

    /// The hold as it was right after it was confirmed.
    pub(super) fn as_confirmed(&self) -> Self {
        let mut hold = self.clone();
        for line in &mut hold.lines {
            line.sold += line.cancelled;
            line.cancelled = 0;
        }
        for held in hold.seats_mut().iter_mut().filter(|held| held.kept == SeatKept::Cancelled) {
            held.kept = SeatKept::Kept;
        }
        hold.state = HoldState::Confirmed;
        hold
    }

    pub(super) fn simple(&self) -> Option<(ItemIx, u32)> {
        let [line] = self.lines.as_slice() else {
            return None;
        };
        let quantity = line.quantity();
        let plain = simple_line(self.state, line.item, quantity);
        (plain == *line).then_some((line.item, quantity))
    }
}

/// A line of which nothing has moved yet.
pub(super) const fn fresh_line(item: ItemIx, quantity: u32) -> Line {
    Line { item, held: quantity, sold: 0, released: 0, cancelled: 0, from: None }
}

impl LineTaken {
    /// The line that a hold begins with.
    pub(super) fn fresh(&self) -> Line {
        let from = self.draws.first().and_then(|draw| draw.label);
        Line { from, ..fresh_line(self.item, self.quantity) }
    }
}

/// The counts of an only line that moved whole with its hold.
pub(super) fn simple_line(state: HoldState, item: ItemIx, quantity: u32) -> Line {
    let mut line = fresh_line(item, 0);
    match state {
        HoldState::Active => line.held = quantity,
        HoldState::Confirmed => line.sold = quantity,
        HoldState::Released | HoldState::Expired => line.released = quantity,
        HoldState::Cancelled => line.cancelled = quantity,
    }
    line
}

pub(super) fn state_from(byte: u8) -> HoldState {
    HoldState::ALL[usize::from(byte)]
}
