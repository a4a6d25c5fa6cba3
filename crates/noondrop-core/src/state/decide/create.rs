//! New holds: who may get the last unit.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::act::check_fence;
use super::passing::Passing;
use super::seats::{Picked, WantedSeats};
use super::{By, Decided, Entries, invalid};
use crate::command::{Actor, Command, HoldCreate, Override, SaleTerms};
use crate::fact::{
    Entry, Fact, HoldAct, HoldActRefused, HoldConfirmed, HoldCreated, HoldRefused, HoldReleased,
    HoldTouched, LineTaken, LineWanted, Private, Short, Superseded,
};
use crate::limits::{HOLD_LINES_MAX, TOTAL_MAX, TTL_SECONDS_MAX};
use crate::outcome::{HoldState, Line, Outcome, SeatKept};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::seats::{Found, SeatNo};
use crate::state::State;
use crate::state::hold::{From, Hold};
use crate::units::{HoldNo, ItemIx, LabelIx, SaleIx, Timestamp};

/// A line with its item found, and its seats.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) item: ItemIx,
    pub(super) quantity: u32,
    /// The block that it takes them from.
    pub(super) from: Option<LabelIx>,
    pub(super) seats: WantedSeats,
}

pub(super) type WantedLines = SmallVec<[Wanted; 1]>;

impl State {
    pub(super) fn decide_create(
        &self,
        by: &By,
        command: &Command,
        create: &HoldCreate,
        out: &mut Entries,
    ) -> Decided {
        let sale = self.books.sale(by.shop, create.sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        let mut passing = Passing::of(&command.actor, create)?;
        if let Err(refusal) = passing.over(self.admits(sale, create)) {
            if planted::is(Bug::DoorRecorded) {
                let none = WantedLines::new();
                out.push(lost(by, command, create, sale, &none, refusal.clone()));
                return Ok(Outcome::Refused(refusal));
            }
            return Err(refusal);
        }
        let retaken = match self.retaken(by, command, create, sale) {
            Ok(retaken) => retaken,
            Err(lost) => return on_hold(*lost, by, command, HoldAct::Retake, out),
        };
        let wanted = self.wanted(sale, command, create, retaken.as_ref())?;
        self.check_quarantine(&wanted, &mut passing)?;
        let terms = &self.books.sales[sale.0 as usize].terms;
        let ttl_seconds = ttl(terms, command, create)?;
        let old = match self.replaced(by, command, create, sale) {
            Ok(old) => old,
            Err(lost) => return on_hold(*lost, by, command, HoldAct::Supersede, out),
        };
        let retake = retaken.is_some();
        let competed = self.competes(sale, create, &wanted, old.as_ref(), retake, &mut passing);
        let picked = match competed {
            Ok(picked) => picked,
            Err(refusal) => {
                out.push(lost(by, command, create, sale, &wanted, refusal.clone()));
                return Ok(Outcome::Refused(refusal));
            }
        };
        let overridden = passing.into_passed();
        let attempt = Attempt {
            by,
            command,
            create,
            sale,
            wanted,
            picked,
            ttl_seconds,
            old,
            retaken,
            overridden,
        };
        Ok(self.take(&attempt, out))
    }

    /// The lapsed hold whose units are to be taken again.
    fn retaken(
        &self,
        by: &By,
        command: &Command,
        create: &HoldCreate,
        sale: SaleIx,
    ) -> Result<Option<Hold>, Box<LostOn>> {
        let privileged = command.actor.is_privileged();
        if (create.retake.is_some() || create.confirm.is_some()) && !privileged {
            return Err(Box::new((None, invalid("retake, confirm", "sellers and admins only"))));
        }
        let Some(id) = create.retake else {
            return Ok(None);
        };
        let hold = self.hold_of(by, &command.actor, id).map_err(|no| Box::new((None, no)))?;
        if hold.sale != sale || self.buyers[hold.buyer as usize].digest != create.buyer.digest.0 {
            return Err(Box::new((None, Refusal::HoldNotFound)));
        }
        if hold.state != HoldState::Expired {
            let bound = format!("a lapsed hold; this one is {}", hold.state.as_str());
            return Err(Box::new((None, invalid("retake", bound))));
        }
        // Once: a second key must not turn one payment into two sales.
        if let Some(by) = hold.extra.as_ref().and_then(|extra| extra.superseded_by) {
            let superseded_by = Some(self.holds.id(by));
            return Err(Box::new((Some(hold), Refusal::HoldReleased { superseded_by })));
        }
        Ok(Some(hold))
    }

    fn wanted(
        &self,
        sale: SaleIx,
        command: &Command,
        create: &HoldCreate,
        retaken: Option<&Hold>,
    ) -> Result<WantedLines, Refusal> {
        let wanted: WantedLines = match retaken {
            Some(hold) if create.lines.is_empty() => self.lapsed_lines(hold),
            _ => self.named(sale, command, create)?,
        };
        if wanted.is_empty() || wanted.len() > HOLD_LINES_MAX {
            return Err(invalid("lines", format!("1 to {HOLD_LINES_MAX} lines")));
        }
        Self::check_named(&wanted)?;
        Ok(wanted)
    }

    fn named(
        &self,
        sale: SaleIx,
        command: &Command,
        create: &HoldCreate,
    ) -> Result<WantedLines, Refusal> {
        let mut wanted = WantedLines::new();
        for (line, number) in create.lines.iter().zip(1u8..) {
            let item = self.books.item(sale, line.item.as_str());
            let item = item
                .ok_or_else(|| Refusal::ItemNotFound { line: number, item: line.item.clone() })?;
            if !(1..=TOTAL_MAX).contains(&line.quantity) {
                let field = format!("lines[{}].quantity", number - 1);
                return Err(invalid(field, format!("1 to {TOTAL_MAX}")));
            }
            let seats = self.wanted_seats(item, number, line.quantity, line.seats.as_deref())?;
            let from = match &line.from {
                Some(label) => Some(self.block_asked(sale, command, label, number)?),
                None => None,
            };
            wanted.push(Wanted { item, quantity: line.quantity, from, seats });
        }
        Ok(wanted)
    }

    /// The hold that this one is to replace; a refusal comes with it where it was found.
    fn replaced(
        &self,
        by: &By,
        command: &Command,
        create: &HoldCreate,
        sale: SaleIx,
    ) -> Result<Option<Hold>, Box<LostOn>> {
        let Some(named) = create.supersedes else {
            return Ok(None);
        };
        let hold =
            self.hold_of(by, &command.actor, named.hold).map_err(|no| Box::new((None, no)))?;
        if hold.sale != sale || self.buyers[hold.buyer as usize].digest != create.buyer.digest.0 {
            return Err(Box::new((None, Refusal::HoldNotFound)));
        }
        let standing = check_fence(&hold, Some(named.fence), command, false);
        let standing = standing.and_then(|()| self.check_active(&hold));
        match standing {
            Ok(()) => Ok(Some(hold)),
            Err(refusal) => Err(Box::new((Some(hold), refusal))),
        }
    }

    /// Everything that an attempt can lose against others.
    fn competes(
        &self,
        sale: SaleIx,
        create: &HoldCreate,
        wanted: &WantedLines,
        old: Option<&Hold>,
        retake: bool,
        passing: &mut Passing<'_>,
    ) -> Result<Picked, Refusal> {
        if let Some(reference) = &create.reference
            && let Some(&no) = self.references.get(&reference.digest)
            && old.is_none_or(|old| old.no != no)
        {
            return Err(Refusal::ReferenceInUse { hold: self.holds.id(no) });
        }
        self.check_buyer(sale, create, wanted, old, passing)?;
        self.check_stock(wanted, old, retake)
    }

    fn take(&self, attempt: &Attempt<'_>, out: &mut Entries) -> Outcome {
        let &Attempt { by, command, create, .. } = attempt;
        let at = self.turn.moment.at;
        let no = self.holds.next_no();
        let terms = &self.books.sales[attempt.sale.0 as usize].terms;
        let plain_end = at.plus_seconds(u64::from(attempt.ttl_seconds));
        let end = match &attempt.old {
            // The clock of a chain goes on; buyers cannot stretch it by replacing.
            Some(old) if !command.actor.is_privileged() => {
                plain_end.min(chain_end(terms, old.chain_from()).max(old.expires_at))
            }
            _ => plain_end,
        };
        let confirms = create.confirm.is_some();
        let fact = HoldCreated {
            hold: no,
            sale: attempt.sale,
            by: by.actor,
            buyer: create.buyer.digest,
            ttl_seconds: attempt.ttl_seconds,
            extensions: terms.extensions_max,
            lines: self.lines_taken(attempt),
            key: command.key.filter(|_| !confirms),
            reference: create.reference.as_ref().map(|reference| reference.digest),
            expires_at: (end != plain_end).then_some(end),
            supersedes: attempt
                .old
                .as_ref()
                .map(|old| Superseded { hold: old.no, chain_from: old.chain_from() }),
            retakes: attempt.retaken.as_ref().map(|old| old.no),
            origin: command.origin,
            overridden: attempt.overridden.clone(),
        };
        // Nobody is told a buyer's number, so it is not looked up before the fact is applied.
        let mut hold = self.new_hold(&fact, u32::MAX);
        if let Some(old) = &attempt.old {
            out.push(self.superseded(by, old, no));
        }
        out.push(Entry { fact: Fact::HoldCreated(fact), private: Some(texts(create)) });
        if let Some(payment) = &create.confirm {
            let touched = HoldTouched {
                hold: no,
                previous: self.turn.moment.seq,
                by: by.actor,
                key: command.key,
            };
            let moves = self.draws_of(hold.lines.iter().map(|line| (line.item, line.held, None)));
            let fact = HoldConfirmed { touched, payment: payment.digest, moves };
            let private = Private { payment_ref: Some(payment.text.clone()), ..Private::default() };
            out.push(Entry { fact: Fact::HoldConfirmed(fact), private: Some(private) });
            hold.confirm();
        }
        Outcome::Hold(self.view(&hold))
    }

    fn lines_taken(&self, attempt: &Attempt<'_>) -> Short<LineTaken> {
        let lines = attempt.wanted.iter().zip(&attempt.picked);
        let taken = |(line, seats): (&Wanted, &Option<Found>)| {
            let from = line.from.filter(|_| !planted::is(Bug::BlockPassedOver));
            LineTaken {
                item: line.item,
                quantity: line.quantity,
                draws: self.books.draws_from(line.item, line.quantity, from).collect(),
                seats: seats.as_ref().map(|seats| seats.to_vec()),
            }
        };
        lines.map(taken).collect()
    }

    fn superseded(&self, by: &By, old: &Hold, new: HoldNo) -> Entry {
        let parts = self.parts_of(old, None, From::Held);
        let (parts, seats) = parts.expect("all that a hold has is a part of it");
        // To its blocks, or on sale, and not where other units go that come back: the new hold is to have them.
        let (moves, seats) = self.moves_of(old, &parts, seats, |line| line.from);
        let fact = HoldReleased {
            touched: HoldTouched { hold: old.no, previous: old.last_seq, by: by.actor, key: None },
            lines: Short(parts),
            moves,
            superseded_by: Some(new),
            seats,
        };
        Fact::HoldReleased(fact).into()
    }
}

fn lost(
    by: &By,
    command: &Command,
    create: &HoldCreate,
    sale: SaleIx,
    wanted: &WantedLines,
    refusal: Refusal,
) -> Entry {
    let fact = HoldRefused {
        sale,
        by: by.actor,
        buyer: create.buyer.digest,
        reference: create.reference.as_ref().map(|reference| reference.digest),
        lines: wanted
            .iter()
            .map(|line| LineWanted {
                item: line.item,
                quantity: line.quantity,
                from: line.from,
                seats: match &line.seats {
                    WantedSeats::Named(seats) => Some(seats.clone()),
                    WantedSeats::None | WantedSeats::Best(_) => None,
                },
            })
            .collect(),
        refusal,
        key: command.key,
        origin: command.origin,
    };
    let private = Private { metadata: None, ..texts(create) };
    Entry { fact: Fact::HoldRefused(fact), private: Some(private) }
}

/// What lapsed of a hold, seat by seat where it had some.
impl State {
    fn lapsed_lines(&self, hold: &Hold) -> WantedLines {
        let lapsed = (0..hold.lines.len()).zip(1u8..).map(|(place, number)| {
            let lapsed = hold.seats().iter().filter(|held| held.kept == SeatKept::Lapsed);
            let seats = lapsed.filter(|held| held.line == number).map(|held| held.seat);
            let (quantity, seats): (u32, Vec<SeatNo>) = (hold.lapsed(place), seats.collect());
            let line = &hold.lines[place];
            let from = self.lapsed_into(hold.sale, line, quantity, &seats);
            let seats =
                if seats.is_empty() { WantedSeats::None } else { WantedSeats::Named(seats) };
            Wanted { item: line.item, quantity, from, seats }
        });
        lapsed.filter(|line| line.quantity > 0).collect()
    }

    /// The block in which a lapsed line's units still are, so that they can be taken out again.
    fn lapsed_into(
        &self,
        sale: SaleIx,
        line: &Line,
        quantity: u32,
        seats: &[SeatNo],
    ) -> Option<LabelIx> {
        let label = self.books.back_to(sale, line.from)?;
        let pool = self.books.items[line.item.0 as usize].draws[0];
        let in_block = |seat: &SeatNo| {
            self.seat_state(line.item, *seat).is_some_and(|state| state.block == Some(label))
        };
        let there = self.books.blocked(pool, label) >= quantity && seats.iter().all(in_block);
        if there { Some(label) } else { line.from }
    }
}

/// A refusal, and the hold that it is about, where there is one.
type LostOn = (Option<Hold>, Refusal);

fn on_hold(
    lost: LostOn,
    by: &By,
    command: &Command,
    operation: HoldAct,
    out: &mut Entries,
) -> Decided {
    match lost {
        (Some(hold), refusal) => refuse_act(by, command, &hold, (operation, refusal), out),
        (None, refusal) => Err(refusal),
    }
}

/// A refusal about an existing hold is a fact of that hold's story.
pub(super) fn refuse_act(
    by: &By,
    command: &Command,
    hold: &Hold,
    (operation, refusal): (HoldAct, Refusal),
    out: &mut Entries,
) -> Decided {
    if !refusal.competed() {
        return Err(refusal);
    }
    let touched =
        HoldTouched { hold: hold.no, previous: hold.last_seq, by: by.actor, key: command.key };
    let fact = HoldActRefused { touched, operation, refusal: refusal.clone() };
    out.push(Fact::HoldActRefused(fact).into());
    Ok(Outcome::Refused(refusal))
}

/// An attempt that gets what it asks for.
struct Attempt<'a> {
    by: &'a By,
    command: &'a Command,
    create: &'a HoldCreate,
    sale: SaleIx,
    wanted: WantedLines,
    picked: Picked,
    ttl_seconds: u32,
    old: Option<Hold>,
    retaken: Option<Hold>,
    overridden: Option<Vec<Override>>,
}

fn ttl(terms: &SaleTerms, command: &Command, create: &HoldCreate) -> Result<u32, Refusal> {
    if let Actor::Buyer { digest } = command.actor
        && digest != create.buyer.digest
    {
        return Err(invalid("buyer", "your own id"));
    }
    let most = if command.actor.is_privileged() { TTL_SECONDS_MAX } else { terms.hold_seconds_max };
    let seconds = create.ttl_seconds.unwrap_or(terms.hold_seconds);
    if (1..=most).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(invalid("ttl_seconds", format!("1 to {most}")))
    }
}

/// The latest end that a buyer can reach by extending and replacing.
pub(super) fn chain_end(terms: &SaleTerms, from: Timestamp) -> Timestamp {
    from.plus_seconds(u64::from(terms.hold_chain_seconds_max))
}

fn texts(create: &HoldCreate) -> Private {
    Private {
        buyer: Some(create.buyer.text.clone()),
        reference: create.reference.as_ref().map(|reference| reference.text.clone()),
        metadata: create.metadata.clone(),
        reason: create.overriding.as_ref().map(|overriding| overriding.reason.clone()),
        ..Private::default()
    }
}
