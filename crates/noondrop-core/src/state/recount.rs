//! The invariants: of what a turn touched, before its row is written; of everything, from scratch, for audits.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::hold::Hold;
use super::turn::Touched;
use super::{LIVE_HOLDS, State, UsageKey, sum};
use crate::fact::Settings;
use crate::ids::Digest16;
use crate::outcome::{Counts, HoldState};
use crate::seats::SeatNo;
use crate::units::{HoldNo, ItemIx, Timestamp};

/// Something that must hold does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// `available + held + sold + blocked != total + oversold`.
    Conservation(ItemIx),
    /// A turn claimed more than total + oversell limit.
    Oversold(ItemIx),
    /// An item's counts are not those of its holds.
    Counts {
        /// The item.
        item: ItemIx,
        /// Units in live holds, and what the account says.
        held: (u64, u32),
        /// Units owned, and what the account says.
        sold: (u64, u32),
    },
    /// The units under an item's labels are not what its account calls blocked.
    Blocked {
        /// The item.
        item: ItemIx,
        /// Units under its labels, and what the account says.
        blocked: (u64, u32),
    },
    /// The units that lines claim of an item are not what is counted for it.
    Claimed(ItemIx),
    /// A hold's lines and its state tell different stories.
    Hold(HoldNo),
    /// A live hold is past its end.
    Lapsed(HoldNo),
    /// A fence does not rise.
    Fence(HoldNo),
    /// A reference points to a hold that does not have it, or the other way round.
    Reference(HoldNo),
    /// Usage per buyer is not that of his holds.
    Usage,
    /// A live hold is in no queue: it would never lapse.
    NeverLapses(HoldNo),
    /// An item's seats are not those of its holds, or not those of its account.
    Seats(ItemIx),
    /// `state_sum` is not the sum of the entries.
    Sum,
    /// An undone turn left something behind.
    UndoFailed,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conservation(item) => {
                write!(f, "item #{item}: available + held + sold + blocked is not total + oversold")
            }
            Self::Oversold(item) => write!(f, "item #{item}: more units claimed than it may have"),
            Self::Counts { item, held, sold } => write!(
                f,
                "item #{item}: its holds hold {} and own {} units, its account says {} and {}",
                held.0, sold.0, held.1, sold.1
            ),
            Self::Blocked { item, blocked } => write!(
                f,
                "item #{item}: {} units are under its labels, its account says {}",
                blocked.0, blocked.1
            ),
            Self::Claimed(item) => write!(f, "item #{item}: its lines claim other units"),
            Self::Hold(no) => write!(f, "hold #{no}: its lines do not fit its state"),
            Self::Lapsed(no) => write!(f, "hold #{no}: still live after its end"),
            Self::Fence(no) => write!(f, "hold #{no}: its fence does not rise"),
            Self::Reference(no) => write!(f, "hold #{no}: its reference is not where it should be"),
            Self::Usage => f.write_str("usage per buyer is not that of his holds"),
            Self::NeverLapses(no) => write!(f, "hold #{no}: live, but in no queue"),
            Self::Seats(item) => {
                write!(f, "item #{item}: its seats are not those of its holds and its account")
            }
            Self::Sum => f.write_str("state_sum is not the sum of the entries"),
            Self::UndoFailed => f.write_str("an undone turn left something behind"),
        }
    }
}

impl core::error::Error for Violation {}

/// What a recount found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Items.
    pub items: u64,
    /// Holds of any state.
    pub holds: u64,
    /// Holds that claim units.
    pub live_holds: u64,
    /// Units in live holds.
    pub held: u64,
    /// Units owned.
    pub sold: u64,
    /// Units beyond their item's total.
    pub oversold: u64,
}

impl State {
    /// Checks what the open turn touched; called before its row is written.
    ///
    /// # Errors
    ///
    /// The first thing that does not hold: nothing of this turn may be logged.
    pub fn check_touched(&self) -> Result<(), Violation> {
        for Touched { item, before, cap_max } in &self.turn.accounts {
            // An item that was made and undone within the turn has no account any more.
            let Some(counts) = self.books.counts.get(item.0 as usize) else {
                continue;
            };
            check_account(*item, counts)?;
            self.check_blocked(*item, counts)?;
            self.check_seats(*item, counts)?;
            let grew = counts.taken() > before.taken();
            if grew && counts.taken() > *cap_max {
                return Err(Violation::Oversold(*item));
            }
        }
        for &no in &self.turn.holds {
            match self.holds.plain_end(no) {
                // Its state alone says where its units are.
                Some(end) if end > self.last_at() => {}
                Some(_) => return Err(Violation::Lapsed(no)),
                None => self.holds.load(no).map_or(Ok(()), |hold| self.check_hold(&hold))?,
            }
        }
        Ok(())
    }

    fn check_blocked(&self, item: ItemIx, counts: &Counts) -> Result<(), Violation> {
        // Few have blocks at all, and then few of them.
        let labels = || self.books.blocks_of(item).map(|(_, units)| u64::from(units)).sum();
        let sum: u64 = if self.books.blocks.is_empty() { 0 } else { labels() };
        let blocked = (sum, counts.blocked);
        if sum == u64::from(counts.blocked) {
            Ok(())
        } else {
            Err(Violation::Blocked { item, blocked })
        }
    }

    fn check_hold(&self, hold: &Hold) -> Result<(), Violation> {
        let claimed: u64 = hold.lines.iter().map(|line| u64::from(line.held)).sum();
        let owned: u64 = hold.lines.iter().map(|line| u64::from(line.sold)).sum();
        let fits = match hold.state {
            HoldState::Active => claimed > 0 && owned == 0,
            HoldState::Confirmed => claimed == 0 && owned > 0,
            HoldState::Released | HoldState::Expired | HoldState::Cancelled => claimed + owned == 0,
        };
        if !fits {
            return Err(Violation::Hold(hold.no));
        }
        if hold.state == HoldState::Active && hold.expires_at <= self.last_at() {
            return Err(Violation::Lapsed(hold.no));
        }
        Ok(())
    }

    /// Counts everything again from the holds, and checks every invariant.
    ///
    /// # Errors
    ///
    /// All that does not hold.
    pub fn recount(&self) -> Result<Totals, Vec<Violation>> {
        let mut recount = Recount::new(self);
        for no in (0..self.holds.next_no().0).map(HoldNo) {
            let hold = self.holds.load(no).expect("holds in memory are dense");
            recount.hold(&hold);
        }
        recount.finish()
    }
}

fn check_account(item: ItemIx, counts: &Counts) -> Result<(), Violation> {
    let left = counts.available() + counts.taken();
    let right = u64::from(counts.total) + counts.oversold();
    if left == right { Ok(()) } else { Err(Violation::Conservation(item)) }
}

struct Recount<'a> {
    state: &'a State,
    held: Vec<u64>,
    sold: Vec<u64>,
    claimed: Vec<u64>,
    usage: BTreeMap<UsageKey, u32>,
    references: BTreeMap<Digest16, HoldNo>,
    queued: BTreeMap<HoldNo, Timestamp>,
    owners: BTreeMap<(ItemIx, SeatNo), HoldNo>,
    sum: u128,
    last_fence: u64,
    totals: Totals,
    violations: Vec<Violation>,
}

impl<'a> Recount<'a> {
    fn new(state: &'a State) -> Self {
        let items = state.books.items.len();
        let mut queued = BTreeMap::new();
        for item in (0..state.books.next_item().0).map(ItemIx) {
            for (at, no) in state.lapses.upcoming(item) {
                if state.holds.is_live_until(no) == Some(at) {
                    queued.insert(no, at);
                }
            }
        }
        Self {
            state,
            held: vec![0; items],
            sold: vec![0; items],
            claimed: vec![0; items],
            usage: BTreeMap::new(),
            references: BTreeMap::new(),
            queued,
            owners: BTreeMap::new(),
            sum: 0,
            last_fence: 0,
            totals: Totals { items: items as u64, ..Totals::default() },
            violations: Vec::new(),
        }
    }

    fn hold(&mut self, hold: &Hold) {
        self.totals.holds += 1;
        self.violations.extend(self.state.check_hold(hold).err());
        if hold.fence.0 <= self.last_fence {
            self.violations.push(Violation::Fence(hold.no));
        }
        self.last_fence = hold.fence.0;
        if hold.state == HoldState::Active {
            self.totals.live_holds += 1;
            if !self.queued.contains_key(&hold.no) {
                self.violations.push(Violation::NeverLapses(hold.no));
            }
        }
        for line in &hold.lines {
            self.claimed[line.item.0 as usize] += u64::from(line.held) + u64::from(line.sold);
            for draw in self.state.books.draws(line.item, 1) {
                self.held[draw.pool.0 as usize] += u64::from(line.held);
                self.sold[draw.pool.0 as usize] += u64::from(line.sold);
            }
        }
        self.owners.extend(hold.kept_seats().map(|seat| (seat, hold.no)));
        if let Some(reference) = hold.reference().filter(|_| hold.keeps_reference()) {
            self.references.insert(reference, hold.no);
        }
        if self.state.books.sales[hold.sale.0 as usize].counts_buyers() {
            for (key, units) in self.state.usage_of(hold) {
                *self.usage.entry(key).or_default() += units;
            }
        }
        self.sum = self.sum.wrapping_add(self.state.holds.sum(hold.no));
    }

    fn finish(mut self) -> Result<Totals, Vec<Violation>> {
        let state = self.state;
        for (item, counts) in (0..).map(ItemIx).zip(&state.books.counts) {
            self.violations.extend(check_account(item, counts).err());
            self.violations.extend(state.check_blocked(item, counts).err());
            if self.claimed[item.0 as usize] != state.books.claimed[item.0 as usize] {
                self.violations.push(Violation::Claimed(item));
            }
            let held = (self.held[item.0 as usize], counts.held);
            let sold = (self.sold[item.0 as usize], counts.sold);
            if held.0 != u64::from(held.1) || sold.0 != u64::from(sold.1) {
                self.violations.push(Violation::Counts { item, held, sold });
            }
            self.totals.held += held.0;
            self.totals.sold += sold.0;
            self.totals.oversold += counts.oversold();
        }
        self.violations.extend(state.recount_seats(&self.owners));
        if self.usage != state.usage {
            self.violations.push(Violation::Usage);
        }
        for (reference, no) in &self.references {
            if state.references.get(reference) != Some(no) {
                self.violations.push(Violation::Reference(*no));
            }
        }
        if state.references.len() != self.references.len() {
            self.violations.push(Violation::Reference(HoldNo(u64::MAX)));
        }
        if self.sum.wrapping_add(rest_of_sum(state)) != state.entries_sum() {
            self.violations.push(Violation::Sum);
        }
        if self.violations.is_empty() { Ok(self.totals) } else { Err(self.violations) }
    }
}

/// What everything but holds and keys adds to `state_sum`.
pub(super) fn rest_of_sum(state: &State) -> u128 {
    let log = state.log.as_ref().map_or(0, State::log_sum);
    let settings = State::settings_sum(&state.settings)
        .wrapping_sub(State::settings_sum(&Settings::default()));
    let payments = state.holds.payments.iter();
    let payments = payments.map(|(no, paid)| sum::entry(sum::PAYMENT, no.0, &paid.digest.0));
    let buyers = state.buyers.iter().zip(0..);
    let buyers = buyers.map(|(buyer, id)| sum::entry(sum::BUYER, id, &buyer.digest));
    let erased = state.erased.iter().map(|(buyer, erasure)| erasure.sum(buyer));
    let sums = payments.chain(buyers).chain(erased).fold(0, u128::wrapping_add);
    state
        .books
        .sum()
        .wrapping_add(state.seating.sum())
        .wrapping_add(log)
        .wrapping_add(settings)
        .wrapping_add(sums)
}

const _: () = assert!(LIVE_HOLDS as usize > crate::limits::SALE_LIMITS_MAX);
