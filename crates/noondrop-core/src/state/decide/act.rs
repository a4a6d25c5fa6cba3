//! What can be asked of a hold: confirm, extend, release, cancel.
//!
//! Refusals in order: `hold_not_found`, `stale_fence`, the state. None of these looks at opening, closing, pausing,
//! quarantine or limits: what was promised is kept (RULES R10).

use alloc::format;

use super::create::{chain_end, refuse_act};
use super::{By, Decided, Entries, invalid};
use crate::command::{Actor, Command, HoldCancel, HoldConfirm, HoldExtend, HoldRelease};
use crate::fact::{
    Entry, Fact, HoldAct, HoldCancelled, HoldConfirmed, HoldExtended, HoldReleased, HoldTouched,
    LineMoved, Private, Short,
};
use crate::limits::TTL_SECONDS_MAX;
use crate::outcome::{HoldState, HoldView, Line, Outcome, SeatKept};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::state::State;
use crate::state::hold::{From, Hold};
use crate::units::{Fence, Timestamp};

impl State {
    pub(super) fn decide_confirm(
        &self,
        by: &By,
        command: &Command,
        confirm: &HoldConfirm,
        out: &mut Entries,
    ) -> Decided {
        let mut hold = self.hold_of(by, &command.actor, confirm.hold)?;
        let payment = confirm.payment_ref.digest;
        let standing = check_fence(&hold, Some(confirm.fence), command, false);
        let standing = standing.and_then(|()| match hold.state {
            HoldState::Confirmed
                if self.holds.payments[&hold.no].digest != payment
                    && !planted::is(Bug::AnyPayment) =>
            {
                Err(Refusal::ConfirmedWithOtherPayment { hold: hold.id })
            }
            HoldState::Confirmed => Ok(()),
            HoldState::Expired if planted::is(Bug::LapsedConfirms) => Ok(()),
            _ => self.check_active(&hold),
        });
        if let Err(refusal) = standing {
            return refuse_act(by, command, &hold, (HoldAct::Confirm, refusal), out);
        }
        let touched = touched(by, command, &hold);
        if hold.state == HoldState::Confirmed {
            let view = HoldView { already: true, ..self.view(&hold) };
            out.push(Fact::HoldConfirmedAgain(touched).into());
            return Ok(self.answer(view));
        }
        let moves = self.draws_of(hold.lines.iter().map(|line| (line.item, line.held, None)));
        hold.confirm();
        let fact = Fact::HoldConfirmed(HoldConfirmed { touched, payment, moves });
        let text = Some(confirm.payment_ref.text.clone());
        let private = Private { payment_ref: text, ..Private::default() };
        out.push(Entry { fact, private: Some(private) });
        Ok(self.answer(self.view(&hold)))
    }

    pub(super) fn decide_extend(
        &self,
        by: &By,
        command: &Command,
        extend: &HoldExtend,
        out: &mut Entries,
    ) -> Decided {
        let mut hold = self.hold_of(by, &command.actor, extend.hold)?;
        let standing = check_fence(&hold, extend.fence, command, extend.reason.is_some());
        let standing = standing.and_then(|()| self.check_active(&hold));
        if let Err(refusal) = standing {
            return refuse_act(by, command, &hold, (HoldAct::Extend, refusal), out);
        }
        let end = self.extended_end(command, &hold, extend.seconds)?;
        let counted = end > hold.expires_at && !command.actor.is_privileged();
        let touched = touched(by, command, &hold);
        let fact = Fact::HoldExtended(HoldExtended { touched, expires_at: end, counted });
        hold.expires_at = end;
        hold.extensions_used += u8::from(counted);
        out.push(with_reason(fact, extend.reason.as_deref()));
        Ok(self.answer(self.view(&hold)))
    }

    /// `at + seconds`, never earlier than the hold's end is now; for buyers within the sale's bounds.
    fn extended_end(
        &self,
        command: &Command,
        hold: &Hold,
        seconds: u32,
    ) -> Result<Timestamp, Refusal> {
        let terms = &self.books.sales[hold.sale.0 as usize].terms;
        let privileged = command.actor.is_privileged();
        let most = if privileged { TTL_SECONDS_MAX } else { terms.hold_seconds_max };
        if !(1..=most).contains(&seconds) {
            return Err(invalid("seconds", format!("1 to {most}")));
        }
        let wanted = self.turn.moment.at.plus_seconds(u64::from(seconds));
        if privileged && planted::is(Bug::ExtendShortens) {
            return Ok(wanted);
        }
        if privileged || wanted <= hold.expires_at {
            return Ok(wanted.max(hold.expires_at));
        }
        if hold.extensions_left() == 0 {
            let allowed = hold.extensions;
            return Err(invalid(
                "seconds",
                format!("no extension is left of the {allowed} allowed"),
            ));
        }
        let end = wanted.min(chain_end(terms, hold.chain_from()));
        if end <= hold.expires_at {
            let most = terms.hold_chain_seconds_max;
            return Err(invalid(
                "seconds",
                format!("the hold already lasts the most, {most} seconds"),
            ));
        }
        Ok(end)
    }

    pub(super) fn decide_release(
        &self,
        by: &By,
        command: &Command,
        release: &HoldRelease,
        out: &mut Entries,
    ) -> Decided {
        let mut hold = self.hold_of(by, &command.actor, release.hold)?;
        let standing = check_fence(&hold, release.fence, command, release.reason.is_some());
        let standing = standing.and_then(|()| self.check_active(&hold));
        if let Err(refusal) = standing {
            return refuse_act(by, command, &hold, (HoldAct::Release, refusal), out);
        }
        let (parts, seats) = self.parts_of(&hold, release.lines.as_deref(), From::Held)?;
        let back_to = |line: &Line| self.books.back_to(hold.sale, line.from);
        let (moves, seats) = self.moves_of(&hold, &parts, seats, back_to);
        let touched = touched(by, command, &hold);
        hold.release(&parts).expect("the parts were checked against the lines");
        hold.mark(seats.iter().flatten(), SeatKept::Released);
        let fact = HoldReleased { touched, lines: Short(parts), moves, superseded_by: None, seats };
        let entry = with_reason(Fact::HoldReleased(fact), release.reason.as_deref());
        out.push(entry);
        Ok(self.answer(self.view(&hold)))
    }

    pub(super) fn decide_cancel(
        &self,
        by: &By,
        command: &Command,
        cancel: &HoldCancel,
        out: &mut Entries,
    ) -> Decided {
        let mut hold = self.hold_of(by, &command.actor, cancel.hold)?;
        let standing = check_fence(&hold, Some(cancel.fence), command, false);
        let standing = standing.and_then(|()| match hold.state {
            HoldState::Confirmed => Ok(()),
            HoldState::Active => {
                Err(invalid("hold", "a confirmed hold; an active one is released, not cancelled"))
            }
            _ => self.check_active(&hold),
        });
        if let Err(refusal) = standing {
            return refuse_act(by, command, &hold, (HoldAct::Cancel, refusal), out);
        }
        let (parts, seats) = self.parts_of(&hold, cancel.lines.as_deref(), From::Sold)?;
        let (to, label) = self.cancelled_to(&hold, &parts, cancel.to.as_ref())?;
        let (moves, seats) = self.moves_of(&hold, &parts, seats, |_| label);
        let touched = touched(by, command, &hold);
        hold.cancel(&parts).expect("the parts were checked against the lines");
        hold.mark(seats.iter().flatten(), SeatKept::Cancelled);
        let fact = HoldCancelled { touched, lines: Short(parts), moves, to, seats };
        let entry = with_reason(Fact::HoldCancelled(fact), Some(&cancel.reason));
        out.push(entry);
        Ok(self.answer(self.view(&hold)))
    }

    pub(super) fn check_active(&self, hold: &Hold) -> Result<(), Refusal> {
        match hold.state {
            HoldState::Active => Ok(()),
            HoldState::Confirmed => Err(Refusal::HoldConfirmed),
            HoldState::Expired => Err(Refusal::HoldExpired),
            HoldState::Cancelled => Err(Refusal::HoldCancelled),
            HoldState::Released => {
                let by = hold.extra.as_ref().and_then(|extra| extra.superseded_by);
                Err(Refusal::HoldReleased { superseded_by: by.map(|no| self.holds.id(no)) })
            }
        }
    }

    fn answer(&self, view: HoldView) -> Outcome {
        Outcome::Hold(self.with_texts(view))
    }
}

/// The caller must know the hold as it is. A privileged one may leave the fence out and say why instead.
pub(super) fn check_fence(
    hold: &Hold,
    fence: Option<Fence>,
    command: &Command,
    has_reason: bool,
) -> Result<(), Refusal> {
    match fence {
        Some(fence) if fence == hold.fence || planted::is(Bug::AnyFence) => Ok(()),
        Some(_) => Err(Refusal::StaleFence),
        None if command.actor.is_privileged() && has_reason => Ok(()),
        None if matches!(command.actor, Actor::Buyer { .. }) => {
            Err(invalid("fence", "the hold's fence"))
        }
        None => Err(invalid("fence", "the hold's fence, or a reason instead")),
    }
}

fn touched(by: &By, command: &Command, hold: &Hold) -> HoldTouched {
    HoldTouched { hold: hold.no, previous: hold.last_seq, by: by.actor, key: command.key }
}

pub(super) fn line_of(hold: &Hold, part: LineMoved) -> &Line {
    &hold.lines[usize::from(part.line) - 1]
}

fn with_reason(fact: Fact, reason: Option<&str>) -> Entry {
    let private =
        reason.map(|reason| Private { reason: Some(reason.into()), ..Private::default() });
    Entry { fact, private }
}
