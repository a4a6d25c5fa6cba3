//! One turn: its time, its undo journal, its `state_sum` (RULES R2, R5).

use alloc::boxed::Box;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::books::{Books, Item, Sale, Shop};
use super::erase::Erasure;
use super::hold::{From, Hold};
use super::keys::{Inserted, Retention};
use super::recount::Violation;
use super::texts::ErasedTexts;
use super::{NO_HOLD, State};
use crate::fact::{Draw, Entry, ExpiredRun, Fact, HoldsExpired, SaleMoved, SeatOut, Settings};
use crate::ids::{Digest16, HoldId};
use crate::limits::{TURN_EXPIRES_MAX, TURN_KEY_SWEEP_MAX, TURN_LAPSE_SCAN_MAX};
use crate::outcome::{Counts, Line, SaleState};
use crate::planted::{self, Bug};
use crate::seats::{SeatNo, SeatState};
use crate::units::{ActorIx, HoldNo, ItemIx, LabelIx, SaleIx, Seq, ShopIx, Timestamp};

/// When and where a turn is decided; all that `decide` knows of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The row that this turn will be.
    pub seq: Seq,
    /// Its time.
    pub at: Timestamp,
    /// Its 128 random bits.
    pub nonce: [u8; 16],
}

/// What the clock does to a turn before anyone is heard.
#[derive(Clone, Debug, PartialEq)]
pub struct TimePlan {
    /// The turn's time: what was asked for, or earlier where more is due than one turn takes.
    pub at: Timestamp,
    /// Lapses, openings and closings, to be applied first.
    pub entries: Vec<Entry>,
}

/// A place in the open turn to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(usize);

/// What was there before a change.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Started,
    Settings(Settings),
    Shop(ShopIx, Option<Shop>),
    ActorAdded,
    Sale(SaleIx, Option<Box<Sale>>),
    Item(ItemIx, Option<Box<Item>>),
    Counts(ItemIx, Counts),
    Block(ItemIx, LabelIx, u32),
    HoldAdded { buyer_added: bool },
    Hold(Box<Hold>),
    Paid(HoldNo),
    Key(Inserted),
    Seat(ItemIx, SeatNo, SeatState),
    SeatsAdded(ItemIx, u32),
    Texts(Vec<ErasedTexts>),
    Erased { buyer: Digest16, old: Option<Erasure>, newest: Seq },
}

/// An account that the turn changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    pub(super) item: ItemIx,
    /// As it was before the turn.
    pub(super) before: Counts,
    /// The most that holds could claim at any time within the turn: a claim may come before a shrink.
    pub(super) cap_max: u64,
}

/// The open turn, or the last one.
#[derive(Clone, Default)]
pub(super) struct Turn {
    pub(super) moment: Moment,
    before: Moment,
    open: bool,
    pub(super) journal: Vec<Change>,
    pub(super) accounts: SmallVec<[Touched; 8]>,
    pub(super) holds: Vec<HoldNo>,
    sum_before: u128,
    keys_sum_before: u128,
    /// Holds that the turn made so far.
    pub(super) created: u16,
    tags: Tags,
}

/// The secret parts of the ids of a turn's holds: the output of one extendable hash of the nonce, made in batches.
#[derive(Clone)]
struct Tags {
    reader: Option<blake3::OutputReader>,
    bytes: [u8; TAG_BYTES * TAG_BATCH],
    batch: Option<usize>,
}

const TAG_BYTES: usize = 10;
const TAG_BATCH: usize = 64;

impl Default for Tags {
    fn default() -> Self {
        Self { reader: None, bytes: [0; TAG_BYTES * TAG_BATCH], batch: None }
    }
}

fn tags_of(nonce: [u8; 16]) -> blake3::OutputReader {
    let mut hasher = blake3::Hasher::new_derive_key("noondrop hold id v1");
    hasher.update(&nonce);
    hasher.finalize_xof()
}

/// The id of the hold that a turn made in this place among its holds: for who reads facts without a state.
#[must_use]
pub fn hold_id(seq: Seq, nonce: [u8; 16], index: u16) -> HoldId {
    let (mut reader, mut tag) = (tags_of(nonce), [0; TAG_BYTES]);
    reader.set_position(u64::from(index) * TAG_BYTES as u64);
    reader.fill(&mut tag);
    HoldId { seq, index, tag }
}

impl Tags {
    fn restart(&mut self, nonce: [u8; 16]) {
        self.reader = Some(tags_of(nonce));
        self.batch = None;
        self.prepare(0);
    }

    fn prepare(&mut self, index: usize) {
        let batch = index / TAG_BATCH;
        if self.batch == Some(batch) {
            return;
        }
        let reader = self.reader.as_mut().expect("a turn is open");
        reader.set_position((batch * self.bytes.len()) as u64);
        reader.fill(&mut self.bytes);
        self.batch = Some(batch);
    }

    fn get(&self, index: usize) -> [u8; TAG_BYTES] {
        assert_eq!(self.batch, Some(index / TAG_BATCH), "tags are prepared ahead");
        let from = index % TAG_BATCH * TAG_BYTES;
        self.bytes[from..from + TAG_BYTES].try_into().expect("ten bytes")
    }
}

impl Turn {
    /// The secret part of the next hold's id.
    pub(super) fn next_tag(&self) -> [u8; TAG_BYTES] {
        self.tags.get(usize::from(self.created))
    }

    pub(super) fn set_created(&mut self, created: u16) {
        self.created = created;
        self.tags.prepare(usize::from(created));
    }

    pub(super) fn assert_open(&self) {
        assert!(self.open, "facts are applied within a turn");
    }
}

impl State {
    /// Fixes the time of a turn and finds what the clock does at it. No decision is taken at a time at which a
    /// lapsed hold is still counted: where more holds are due than one turn takes, the turn is at the millisecond
    /// before the first that is left over (RULES R5). The entries must be applied first thing in the turn.
    pub fn plan_time(&mut self, at: Timestamp) -> TimePlan {
        let mut at = at.max(self.last_at());
        let mut due: Vec<HoldNo> = Vec::new();
        let mut looked = 0;
        let mut reached = None;
        let late = u64::from(planted::is(Bug::LapsesLate));
        while let Some((time, pool)) = self.lapses.head().filter(|(time, _)| time.0 + late <= at.0)
        {
            let full = due.len() >= TURN_EXPIRES_MAX || looked >= TURN_LAPSE_SCAN_MAX;
            if full && reached != Some(time) {
                at = if planted::is(Bug::TimeDoesNotLag) { at } else { Timestamp(time.0 - 1) };
                break;
            }
            reached = Some(time);
            for no in self.lapses.take(pool, time) {
                looked += 1;
                if self.holds.is_live_until(no) == Some(time) {
                    due.push(no);
                }
            }
        }
        due.sort_unstable();
        due.dedup();
        let mut entries = Vec::new();
        if !due.is_empty() {
            entries.push(Fact::HoldsExpired(self.expiry_of(&due)).into());
        }
        for sale in self.books.moves_until(at) {
            entries.push(Fact::SaleMoved(self.clock_move(sale, at)).into());
        }
        TimePlan { at, entries }
    }

    fn clock_move(&self, sale: SaleIx, at: Timestamp) -> SaleMoved {
        let entry = &self.books.sales[sale.0 as usize];
        let closes = entry.terms.closes_at.is_some_and(|closes_at| closes_at <= at);
        let state = if closes { SaleState::Closed } else { SaleState::Open };
        SaleMoved { sale, state, by: ActorIx::SYSTEM }
    }

    fn expiry_of(&self, due: &[HoldNo]) -> HoldsExpired {
        let mut runs: Vec<ExpiredRun> = Vec::new();
        let mut moves: Vec<Draw> = Vec::new();
        let mut seats: Vec<SeatOut> = Vec::new();
        let mut next = 0;
        for &no in due {
            let previous = self.holds.last_seq(no);
            match runs.last_mut() {
                Some(run) if no.0 == next && run.previous == previous => run.count += 1,
                _ => runs.push(ExpiredRun { skip: no.0 - next, count: 1, previous }),
            }
            next = no.0 + 1;
            let simple = self.holds.simple_held(no).filter(|_| !self.holds.has_seats(no));
            if let Some((item, quantity)) = simple {
                let to = self.books.back_to(self.holds.sale_of(no), None);
                self.add_draws(&mut moves, item, quantity, to);
            } else {
                let hold = self.holds.load(no).expect("a due hold is in memory");
                let most = if planted::is(Bug::FirstLineLapses) { 1 } else { hold.lines.len() };
                for line in &hold.lines[..most] {
                    let to = self.books.back_to(hold.sale, line.from);
                    if hold.seats().is_empty() {
                        self.add_draws(&mut moves, line.item, line.held, to);
                    }
                }
                if !hold.seats().is_empty() {
                    self.add_lapsed(&hold, &mut moves, &mut seats);
                }
            }
        }
        HoldsExpired { runs, moves, seats: (!seats.is_empty()).then_some(seats) }
    }

    /// What a hold with seats gives back when it lapses.
    fn add_lapsed(&self, hold: &Hold, moves: &mut Vec<Draw>, seats: &mut Vec<SeatOut>) {
        let parts = hold.parts(None, From::Held).expect("all that a hold has is a part of it");
        let back_to = |line: &Line| self.books.back_to(hold.sale, line.from);
        let (drawn, out) = self.moves_of(hold, &parts, Some(hold.seats_out()), back_to);
        for draw in drawn.iter() {
            let same = |known: &&mut Draw| known.pool == draw.pool && known.label == draw.label;
            match moves.iter_mut().rev().find(same) {
                Some(known) => known.quantity += draw.quantity,
                None => moves.push(*draw),
            }
        }
        seats.extend(out.into_iter().flatten());
    }

    /// Adds what units of an item draw to a list with one entry per pool and block.
    pub(super) fn add_draws(
        &self,
        moves: &mut Vec<Draw>,
        item: ItemIx,
        quantity: u32,
        label: Option<LabelIx>,
    ) {
        if quantity == 0 {
            return;
        }
        for draw in self.books.draws_from(item, quantity, label) {
            let same = |known: &&mut Draw| known.pool == draw.pool && known.label == draw.label;
            match moves.iter_mut().rev().find(same) {
                Some(known) => known.quantity += draw.quantity,
                None => moves.push(draw),
            }
        }
    }

    /// Starts a turn.
    pub fn open_turn(&mut self, moment: Moment) {
        assert!(!self.turn.open, "one turn at a time");
        assert!(moment.at >= self.last_at(), "log time never goes back");
        self.sweep_keys(moment.at, TURN_KEY_SWEEP_MAX);
        self.keys.start_turn();
        let turn = &mut self.turn;
        turn.before = turn.moment;
        turn.moment = moment;
        turn.open = true;
        turn.journal.clear();
        turn.accounts.clear();
        turn.holds.clear();
        turn.sum_before = self.sum;
        turn.keys_sum_before = self.keys.sum;
        turn.created = 0;
        turn.tags.restart(moment.nonce);
    }

    pub(super) fn sweep_keys(&mut self, at: Timestamp, most: usize) {
        let back = |ms: u64| Timestamp(at.0.saturating_sub(ms));
        let hours = u64::from(self.settings.success_key_hours);
        let forgets = planted::is(Bug::SuccessForgotten);
        let retention = Retention {
            successes_from: back(if forgets { 600_000 } else { hours * 3_600_000 }),
            refusals_from: back(u64::from(self.settings.refusal_key_seconds) * 1_000),
            now: at,
        };
        let holds = &self.holds;
        self.keys.sweep(retention, most, |low| holds.settled_by(holds.widen(low)));
    }

    /// A place to come back to within the open turn.
    #[must_use]
    pub const fn savepoint(&self) -> Savepoint {
        Savepoint(self.turn.journal.len())
    }

    /// Undoes the open turn back to a place in it.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.turn.journal.len() > savepoint.0 {
            let change = self.turn.journal.pop().expect("longer than the savepoint");
            self.undo(change);
        }
    }

    /// `state_sum` with the open turn.
    pub fn sum(&mut self) -> [u8; 16] {
        self.total_sum().to_le_bytes()
    }

    fn total_sum(&self) -> u128 {
        self.entries_sum().wrapping_add(self.keys.sum)
    }

    /// The sum over all entries but the keys.
    pub(super) fn entries_sum(&self) -> u128 {
        let accounts =
            self.turn.accounts.iter().fold(0u128, |sum, Touched { item, before, .. }| {
                // An item that was made and undone within the turn has no account any more.
                let Some(now) = self.books.counts.get(item.0 as usize) else {
                    return sum;
                };
                let now = Books::counts_sum(*item, now);
                sum.wrapping_add(now).wrapping_sub(Books::counts_sum(*item, before))
            });
        self.sum.wrapping_add(accounts)
    }

    /// The turn's row is durable: forget how to undo it.
    pub fn commit_turn(&mut self) {
        assert!(self.turn.open, "a turn is open");
        self.sum = self.entries_sum();
        self.note_sold_out();
        self.turn.accounts.clear();
        self.turn.journal.clear();
        self.turn.holds.clear();
        self.turn.open = false;
        self.keys.start_turn();
    }

    /// The turn's row surely is not in the log: undo it all.
    ///
    /// # Errors
    ///
    /// `state_sum` did not come back: the state is not to be trusted any more.
    pub fn undo_turn(&mut self) -> Result<(), Violation> {
        assert!(self.turn.open, "a turn is open");
        self.rollback_to(Savepoint(0));
        let accounts = core::mem::take(&mut self.turn.accounts);
        self.turn.holds.clear();
        self.turn.open = false;
        self.turn.moment = self.turn.before;
        let same = |touched: &Touched| {
            let now = self.books.counts.get(touched.item.0 as usize);
            now.is_none_or(|now| *now == touched.before)
        };
        let back = accounts.iter().all(same)
            && self.sum == self.turn.sum_before
            && self.keys.sum == self.turn.keys_sum_before;
        if back { Ok(()) } else { Err(Violation::UndoFailed) }
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Started => self.unstart(),
            Change::Settings(old) => self.set_settings(old),
            Change::Shop(shop, old) => self.write_shop(shop, old),
            Change::ActorAdded => self.remove_actor(),
            Change::Sale(sale, old) => self.write_sale(sale, old.map(|old| *old)),
            Change::Item(item, old) => self.write_item(item, old.map(|old| *old)),
            Change::Counts(_, _) if planted::is(Bug::UndoForgetsCounts) => {}
            Change::Counts(item, old) => self.books.counts[item.0 as usize] = old,
            Change::Block(pool, label, old) => self.write_block(pool, label, old),
            Change::HoldAdded { buyer_added } => self.remove_newest_hold(buyer_added),
            Change::Hold(old) => self.write_hold(&old),
            Change::Paid(no) => self.remove_payment(no),
            Change::Key(inserted) => self.keys.undo(inserted),
            Change::Seat(..) if planted::is(Bug::UndoForgetsSeats) => {}
            Change::Seat(item, seat, old) => {
                self.put_seat(item, seat, old);
            }
            Change::SeatsAdded(item, many) => self.remove_newest_seats(item, many),
            Change::Texts(erased) => self.restore_texts(erased),
            Change::Erased { buyer, old, newest } => {
                self.write_erased(buyer, old);
                self.newest_erasure = newest;
            }
        }
    }

    fn remove_newest_hold(&mut self, buyer_added: bool) {
        let no = HoldNo(self.holds.next_no().0 - 1);
        let hold = self.holds.load(no).expect("the newest hold is in memory");
        self.unaccount(&hold);
        for line in &hold.lines {
            for draw in self.books.draws(line.item, line.held) {
                self.lapses.unpush(draw.pool, hold.expires_at, no);
            }
        }
        self.holds.pop();
        let created = self.turn.created - 1;
        self.turn.set_created(created);
        if buyer_added {
            self.remove_newest_buyer();
        } else {
            let newest =
                if hold.buyer_back == 0 { NO_HOLD } else { no.0 - u64::from(hold.buyer_back) };
            self.buyers[hold.buyer as usize].newest = newest.into();
        }
    }

    /// Counts a replay of a key. At counts 1, 2, 4, 8 … a fact about it, for a later turn.
    pub fn note_repeat(&mut self, key: Digest16, origin: Option<Digest16>) -> Option<Entry> {
        let count = self.keys.count_repeat(&key)?;
        // A count that stopped at its largest value is no power of two.
        let told = count.is_power_of_two();
        told.then(|| Fact::KeyRepeated(crate::fact::KeyRepeated { key, count, origin }).into())
    }

    /// Whether there is no room for a new key, after the refusals that are past a minute were let go.
    pub fn keys_full(&mut self) -> bool {
        let most = self.settings.keys_max as usize;
        if self.keys.len() < most {
            return false;
        }
        let back = |ms: u64| Timestamp(self.last_at().0.saturating_sub(ms));
        let retention = Retention {
            successes_from: Timestamp(0),
            refusals_from: back(60_000),
            now: self.last_at(),
        };
        self.keys.sweep(retention, TURN_KEY_SWEEP_MAX, |_| Timestamp(u64::MAX));
        self.keys.len() >= most
    }
}
