//! The seats of items, in the state: who has them, and what they add to `state_sum`.
//!
//! A seat belongs to a hold from the fact that made the hold to the fact that gives the seat back, so a seat's owner
//! follows from the holds; whether it is planned, and its block, do not. A seat that is removed while somebody has it
//! stays his, not planned any more; once it is given back it is gone.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::apply::Fits;
use super::hold::Hold;
use super::recount::Violation;
use super::turn::Change;
use super::{State, sum};
use crate::fact::{BlockAct, BlockMoved, Draws, LineMoved, SeatOut, SeatsChanged};
use crate::outcome::{Counts, HoldState, Line, SeatKept, SeatOfHold};
use crate::refusal::SeatStanding;
use crate::seats::{SeatDef, SeatMap, SeatNames, SeatNo, SeatState, Wish};
use crate::units::{HoldNo, ItemIx, LabelIx, Seq};

/// All items of seats.
#[derive(Clone, Default)]
pub(super) struct Seating {
    pub(super) maps: BTreeMap<ItemIx, Seated>,
    /// The wishes that came last. Decides only what is prepared, never an outcome.
    pub(super) wishes: VecDeque<(ItemIx, u32, Wish)>,
}

/// The seats of one item.
#[derive(Clone, Default)]
pub(super) struct Seated {
    pub(super) map: SeatMap,
    /// By seat: the row that changed it last, as far as this process knows.
    changed: Vec<Seq>,
    /// What was not seen changing by this process changed at this row, or before.
    known_from: Seq,
    newest: Seq,
}

impl Seating {
    pub(super) fn map(&self, item: ItemIx) -> Option<&SeatMap> {
        self.maps.get(&item).map(|seated| &seated.map)
    }

    fn expect(&self, item: ItemIx) -> &SeatMap {
        self.map(item).expect("a seat of a hold is one of an item of seats")
    }
}

impl Seated {
    /// A map that was read from a snapshot made at a row.
    pub(super) fn read(map: SeatMap, at: Seq) -> Self {
        let changed = alloc::vec![at; map.len()];
        Self { map, changed, known_from: at, newest: at }
    }

    /// The seats that changed after a row, from one on; all, if that is longer ago than is known.
    pub(super) fn changed_since(
        &self,
        since: Option<Seq>,
        from: SeatNo,
    ) -> impl Iterator<Item = SeatNo> + '_ {
        let since = since.filter(|since| *since >= self.known_from);
        let seats = (0..).map(SeatNo).zip(&self.changed).skip(from.0 as usize);
        seats.filter(move |(_, at)| since.is_none_or(|since| **at > since)).map(|(seat, _)| seat)
    }

    /// The row of the newest change, or one after it.
    pub(super) const fn newest_change(&self) -> Seq {
        self.newest
    }

    fn note(&mut self, seat: SeatNo, at: Seq) {
        self.changed[seat.0 as usize] = at;
        self.newest = at;
    }

    fn set(&mut self, seat: SeatNo, state: SeatState, at: Seq) -> SeatState {
        self.note(seat, at);
        self.map.set(seat, state)
    }
}

/// What a seat's definition adds to `state_sum`.
fn def_sum(item: ItemIx, seat: SeatNo, def: &SeatDef) -> u128 {
    sum::encoded(sum::SEAT, id(item, seat), def)
}

fn id(item: ItemIx, seat: SeatNo) -> u64 {
    u64::from(item.0) << 32 | u64::from(seat.0)
}

/// What a seat's state adds to `state_sum`.
fn state_sum(item: ItemIx, seat: SeatNo, state: SeatState) -> u128 {
    let mut bytes = [0; 11];
    bytes[0] = u8::from(state.planned);
    bytes[1..9].copy_from_slice(&state.owner.map_or(u64::MAX, |no| no.0).to_le_bytes());
    bytes[9..].copy_from_slice(&state.block.map_or(u16::MAX, |label| label.0).to_le_bytes());
    sum::entry(sum::SEAT_STATE, id(item, seat), &bytes)
}

impl Seating {
    /// The names of all seats; those that are known already are not made again.
    pub(super) fn names(
        &self,
        known: &BTreeMap<ItemIx, Arc<SeatNames>>,
    ) -> BTreeMap<ItemIx, Arc<SeatNames>> {
        let named = |(item, seated): (&ItemIx, &Seated)| {
            let known = known.get(item).filter(|names| names.len() == seated.map.len());
            (*item, known.cloned().unwrap_or_else(|| Arc::new(seated.map.names())))
        };
        self.maps.iter().map(named).collect()
    }

    /// What all seats add to `state_sum`, from scratch.
    pub(super) fn sum(&self) -> u128 {
        let mut all = 0u128;
        for (&item, seated) in &self.maps {
            for (seat, _) in seated.map.iter() {
                let def = seated.map.def(seat).expect("it was just there");
                let state = seated.map.state(seat).expect("it was just there");
                all = all.wrapping_add(def_sum(item, seat, &def));
                all = all.wrapping_add(state_sum(item, seat, state));
            }
        }
        all
    }
}

impl State {
    /// Changes a seat within the open turn.
    fn set_seat(&mut self, item: ItemIx, seat: SeatNo, state: SeatState) -> SeatState {
        let old = self.put_seat(item, seat, state);
        self.turn.journal.push(Change::Seat(item, seat, old));
        old
    }

    /// Changes a seat, to apply or to undo.
    pub(super) fn put_seat(&mut self, item: ItemIx, seat: SeatNo, state: SeatState) -> SeatState {
        let at = self.turn.moment.seq;
        let seated = self.seating.maps.get_mut(&item).expect("an item of seats");
        let old = seated.set(seat, state, at);
        self.add(state_sum(item, seat, state));
        self.subtract(state_sum(item, seat, old));
        old
    }

    /// Takes the newest seats out again.
    pub(super) fn remove_newest_seats(&mut self, item: ItemIx, many: u32) {
        self.books.changed();
        for _ in 0..many {
            let seated = self.seating.maps.get_mut(&item).expect("an item of seats");
            let seat = SeatNo(u32::try_from(seated.map.len()).expect("few enough") - 1);
            let def = seated.map.def(seat).expect("the newest seat");
            let state = seated.map.state(seat).expect("the newest seat");
            seated.map.pop();
            seated.changed.pop();
            self.subtract(def_sum(item, seat, &def));
            self.subtract(state_sum(item, seat, state));
        }
    }

    pub(super) fn apply_seats(&mut self, fact: &SeatsChanged) -> Fits {
        let item = fact.item;
        let known = self.seating.map(item).ok_or("it is no item of seats")?.len();
        let (mut total, mut unplanned) = (0i64, 0i64);
        let mut unblocked: BTreeMap<LabelIx, u32> = BTreeMap::new();
        for &seat in &fact.removed {
            let old = self.seat_state(item, seat).filter(|old| old.planned);
            let old = old.ok_or("it removes a seat that is not there")?;
            total -= 1;
            unplanned += i64::from(old.owner.is_some());
            if let (None, Some(label)) = (old.owner, old.block) {
                *unblocked.entry(label).or_default() += 1;
                self.change_block(item, label, |units| units.checked_sub(1))?;
            }
            self.set_seat(item, seat, SeatState { planned: false, block: None, ..old });
        }
        for &seat in &fact.planned {
            let old = self.seat_state(item, seat).filter(|old| !old.planned);
            let old = old.ok_or("it plans a seat that is planned")?;
            total += 1;
            unplanned -= i64::from(old.owner.is_some());
            self.set_seat(item, seat, SeatState { planned: true, ..old });
        }
        let mut added = 0;
        for def in &fact.added {
            let seated = self.seating.maps.get_mut(&item).expect("it was just there");
            let Ok(seat) = seated.map.add(def) else {
                self.turn.journal.push(Change::SeatsAdded(item, added));
                return Err("a seat cannot be added");
            };
            seated.changed.push(self.turn.moment.seq);
            seated.newest = self.turn.moment.seq;
            added += 1;
            // As the map tells it: in its order of tags.
            let def = seated.map.def(seat).expect("it was just added");
            self.add(def_sum(item, seat, &def));
            self.add(state_sum(item, seat, SeatState::FREE));
        }
        if added > 0 {
            self.books.changed();
            self.turn.journal.push(Change::SeatsAdded(item, added));
        }
        debug_assert_eq!(known + fact.added.len(), self.seating.expect(item).len());
        let told = fact.unblocked.iter().flatten().map(|draw| (draw.label, draw.quantity));
        if !unblocked.iter().map(|(label, units)| (Some(*label), *units)).eq(told) {
            return Err("other seats were set aside");
        }
        self.change_counts(item, |counts| {
            let total = i64::from(counts.total) + total + i64::from(added);
            let total = u32::try_from(total).ok().filter(|total| *total == fact.total)?;
            let unplanned = u32::try_from(i64::from(counts.unplanned) + unplanned).ok();
            let unplanned = unplanned.filter(|unplanned| *unplanned == fact.unplanned)?;
            let blocked = counts.blocked.checked_sub(unblocked.values().sum())?;
            Some(Counts { total, blocked, unplanned, ..counts })
        })
    }

    /// A hold's seats look different from now on, though nobody else has them: they are sold.
    pub(super) fn note_seats(&mut self, hold: &Hold) {
        let at = self.turn.moment.seq;
        for (item, seat) in hold.kept_seats() {
            let seated = self.seating.maps.get_mut(&item).expect("an item of seats");
            seated.note(seat, at);
        }
    }

    pub(super) fn seat_state(&self, item: ItemIx, seat: SeatNo) -> Option<SeatState> {
        self.seating.map(item)?.state(seat)
    }

    /// Seats are set aside, or put on sale again.
    pub(super) fn block_seats(&mut self, fact: &BlockMoved, label: LabelIx, act: BlockAct) -> Fits {
        let seated = self.seating.map(fact.item).is_some();
        let seats = fact.seats.as_deref().unwrap_or_default();
        if seated != fact.seats.is_some() || (seated && seats.len() != fact.quantity as usize) {
            return Err("it has another number of seats than of units");
        }
        let (from, to) = match act {
            BlockAct::Block => (None, Some(label)),
            BlockAct::Unblock => (Some(label), None),
        };
        for &seat in seats {
            let free = SeatState { block: from, ..SeatState::FREE };
            if self.seat_state(fact.item, seat) != Some(free) {
                return Err("a seat is not free, or not in this block");
            }
            self.set_seat(fact.item, seat, SeatState { block: to, ..free });
        }
        Ok(())
    }

    /// A new hold gets a seat, out of a block or not.
    pub(super) fn own_seat(
        &mut self,
        item: ItemIx,
        seat: SeatNo,
        hold: HoldNo,
        from: Option<LabelIx>,
    ) -> Fits {
        let free = SeatState { block: from, ..SeatState::FREE };
        let old = self.seat_state(item, seat).filter(|old| *old == free);
        let old = old.ok_or("a seat is not free, or not in this block")?;
        self.set_seat(item, seat, SeatState { owner: Some(hold), ..old });
        Ok(())
    }

    /// A hold's seat has no owner any more. One that is not planned is gone with that.
    fn leave_seat(&mut self, out: &SeatOut, hold: HoldNo, destroyed: bool) -> Fits {
        let SeatOut { item, seat, to: block, .. } = *out;
        let old = self.seat_state(item, seat).filter(|old| old.owner == Some(hold));
        let old = old.ok_or("the hold does not have this seat")?;
        let planned = old.planned && !destroyed;
        if old.planned == out.gone.unwrap_or(false) {
            return Err("a seat is gone that is planned, or the other way round");
        }
        if !planned && block.is_some() {
            return Err("a seat that is gone is in no block");
        }
        self.set_seat(item, seat, SeatState { planned, owner: None, block });
        self.forget_seat(item, old, destroyed)
    }

    /// Seats leave a hold, one by one.
    pub(super) fn give_seats_back(
        &mut self,
        hold: &mut Hold,
        out: &[SeatOut],
        kept: SeatKept,
        destroyed: bool,
    ) -> Fits {
        for one in out {
            let line = usize::from(one.line).checked_sub(1).and_then(|at| hold.lines.get(at));
            if line.is_none_or(|line| line.item != one.item) {
                return Err("the hold's line is on another item");
            }
            let own = hold.seats_mut().iter_mut().find(|held| {
                held.line == one.line && held.seat == one.seat && held.kept == SeatKept::Kept
            });
            own.ok_or("the hold does not have this seat")?.kept = kept;
            self.leave_seat(one, hold.no, destroyed)?;
        }
        Ok(())
    }

    /// The seats of lapsed holds are free again, or back in their blocks. `lapsed` counts those that the holds had.
    pub(super) fn give_lapsed_seats_back(&mut self, out: &[SeatOut], lapsed: usize) -> Fits {
        if out.len() != lapsed {
            return Err("it has another number of seats than its holds");
        }
        for one in out {
            let owner = self.seat_state(one.item, one.seat).and_then(|state| state.owner);
            let ended = |no: &HoldNo| self.holds.is_live_until(*no).is_none();
            let owner = owner.filter(ended).ok_or("a seat is not that of a lapsed hold")?;
            self.leave_seat(one, owner, false)?;
        }
        Ok(())
    }

    /// The seats that parts of a hold give back, each with the block that it goes to, and what all of it moves. A seat
    /// that is gone goes nowhere.
    pub(super) fn moves_of(
        &self,
        hold: &Hold,
        parts: &[LineMoved],
        seats: Option<Vec<SeatOut>>,
        label_of: impl Fn(&Line) -> Option<LabelIx>,
    ) -> (Draws, Option<Vec<SeatOut>>) {
        let mut seats = seats;
        let mut moved: SmallVec<[(ItemIx, u32, Option<LabelIx>); 2]> = SmallVec::new();
        for part in parts {
            let line = &hold.lines[usize::from(part.line) - 1];
            let mut left = part.quantity;
            for out in seats.iter_mut().flatten().filter(|out| out.line == part.line) {
                let planned = self.seat_state(out.item, out.seat).is_some_and(|seat| seat.planned);
                out.to = label_of(line).filter(|_| planned);
                out.gone = (!planned).then_some(true);
                moved.push((line.item, 1, out.to));
                left -= 1;
            }
            moved.push((line.item, left, label_of(line)));
        }
        (self.draws_of(moved.into_iter()), seats)
    }

    /// What a seat that lost its owner changes about its item's total.
    fn forget_seat(&mut self, item: ItemIx, old: SeatState, destroyed: bool) -> Fits {
        if old.planned && !destroyed {
            return Ok(());
        }
        self.change_counts(item, |counts| {
            Some(if old.planned {
                Counts { total: counts.total.checked_sub(1)?, ..counts }
            } else {
                Counts { unplanned: counts.unplanned.checked_sub(1)?, ..counts }
            })
        })
    }

    /// A hold's seats with their names, for whoever is told of the hold.
    pub(super) fn seats_of(&self, hold: &Hold) -> Vec<SeatOfHold> {
        let named = |held: &super::hold::HeldSeat| {
            let item = hold.lines[usize::from(held.line) - 1].item;
            let name = self.seating.expect(item).name_of(held.seat);
            SeatOfHold { line: held.line, name, kept: held.kept }
        };
        hold.seats().iter().map(named).collect()
    }

    /// Where a seat stands.
    pub(super) fn standing(&self, state: SeatState) -> SeatStanding {
        match state.owner.and_then(|no| self.holds.load(no)) {
            Some(hold) if hold.state == HoldState::Active => SeatStanding::Held,
            Some(_) => SeatStanding::Sold,
            None if !state.planned => SeatStanding::Removed,
            None if state.block.is_some() => SeatStanding::Blocked,
            None => SeatStanding::Free,
        }
    }

    /// Whether the seats of an item tell the same as its account.
    pub(super) fn check_seats(&self, item: ItemIx, counts: &Counts) -> Result<(), Violation> {
        let Some(map) = self.seating.map(item) else { return Ok(()) };
        let seats = map.totals();
        let owned = u64::from(seats.owned) + u64::from(seats.owned_unplanned);
        let fits = seats.planned == counts.total
            && seats.owned_unplanned == counts.unplanned
            && owned == u64::from(counts.held) + u64::from(counts.sold)
            && seats.blocked.values().sum::<u32>() == counts.blocked
            && seats
                .blocked
                .iter()
                .map(|(label, units)| (*label, *units))
                .eq(self.books.blocks_of(item));
        if fits { Ok(()) } else { Err(Violation::Seats(item)) }
    }

    /// Whether each seat belongs to the hold that has it, and sums are right; from scratch.
    pub(super) fn recount_seats(
        &self,
        owners: &BTreeMap<(ItemIx, SeatNo), HoldNo>,
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut owned = 0;
        for (&item, seated) in &self.seating.maps {
            let counts = self.books.counts[item.0 as usize];
            violations.extend(self.check_seats(item, &counts).err());
            let same = seated.map.recount() == *seated.map.totals();
            let owners_fit = seated.map.iter().all(|(seat, view)| {
                owned += usize::from(view.state.owner.is_some());
                view.state.owner == owners.get(&(item, seat)).copied()
            });
            if !(same && owners_fit) {
                violations.push(Violation::Seats(item));
            }
        }
        if owned != owners.len() {
            violations.push(Violation::Seats(ItemIx(u32::MAX)));
        }
        violations
    }
}
