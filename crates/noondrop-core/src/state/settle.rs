//! From a fact about a hold that exists to a changed state: confirmed, extended, given back, lapsed. Decides nothing.

use super::State;
use super::apply::Fits;
use super::hold::{Hold, Payment};
use super::keys::{KeyOutcome, Recorded};
use super::sum;
use super::turn::Change;
use crate::command::{CancelTo, KeyUse};
use crate::fact::{
    HoldActRefused, HoldCancelled, HoldConfirmed, HoldExtended, HoldReleased, HoldTouched,
    HoldsExpired, Private,
};
use crate::outcome::{Counts, HoldState, SeatKept};
use crate::planted::{self, Bug};
use crate::units::ActorIx;

impl State {
    pub(super) fn apply_confirmed(
        &mut self,
        fact: &HoldConfirmed,
        private: Option<&Private>,
    ) -> Fits {
        let mut hold = self.touched(&fact.touched, HoldState::Active)?;
        hold.confirm();
        self.move_units(&fact.moves, |counts, q| {
            Some(Counts {
                held: counts.held.checked_sub(q)?,
                sold: counts.sold.checked_add(q)?,
                ..counts
            })
        })?;
        let text = private.and_then(|texts| texts.payment_ref.clone()).unwrap_or_default();
        self.add(sum::entry(sum::PAYMENT, hold.no.0, &fact.payment.0));
        self.holds.payments.insert(hold.no, Payment { digest: fact.payment, text });
        self.turn.journal.push(Change::Paid(hold.no));
        self.note_seats(&hold);
        self.replace(&hold);
        let no = fact.touched.hold;
        self.record_key(fact.touched.key, || KeyOutcome::Confirmed(no));
        Ok(())
    }

    pub(super) fn apply_confirmed_again(&mut self, fact: &HoldTouched) -> Fits {
        let hold = self.touched(fact, HoldState::Confirmed)?;
        let mut view = self.view(&hold);
        view.already = true;
        self.replace(&hold);
        self.record_key(fact.key, || KeyOutcome::Recorded(Recorded::Hold(view)));
        Ok(())
    }

    pub(super) fn apply_extended(&mut self, fact: &HoldExtended) -> Fits {
        let mut hold = self.touched(&fact.touched, HoldState::Active)?;
        if fact.expires_at < hold.expires_at && !planted::is(Bug::ExtendShortens) {
            return Err("it would shorten the hold");
        }
        hold.expires_at = fact.expires_at;
        hold.extensions_used = hold.extensions_used.saturating_add(u8::from(fact.counted));
        self.record_hold(fact.touched.key, &hold);
        Ok(())
    }

    pub(super) fn apply_released(&mut self, fact: &HoldReleased) -> Fits {
        let mut hold = self.touched(&fact.touched, HoldState::Active)?;
        hold.release(&fact.lines).ok_or("it gives back more than the hold has")?;
        if let Some(by) = fact.superseded_by {
            hold.extra_mut().superseded_by = Some(by);
        }
        self.give_back_held(&fact.moves)?;
        self.move_blocked(&fact.moves, u32::checked_add)?;
        if let Some(seats) = &fact.seats {
            self.give_seats_back(&mut hold, seats, SeatKept::Released, false)?;
        }
        self.record_hold(fact.touched.key, &hold);
        Ok(())
    }

    pub(super) fn apply_expired(&mut self, fact: &HoldsExpired) -> Fits {
        let mut lapsed = 0;
        for (no, previous) in fact.holds() {
            let touched = HoldTouched { hold: no, previous, by: ActorIx::SYSTEM, key: None };
            let mut hold = self.touched(&touched, HoldState::Active)?;
            if hold.expires_at > self.turn.moment.at {
                return Err("a hold would lapse before its end");
            }
            lapsed += hold.kept_seats().count();
            hold.expire();
            self.replace(&hold);
        }
        self.give_back_held(&fact.moves)?;
        self.move_blocked(&fact.moves, u32::checked_add)?;
        if planted::is(Bug::LapsedSeatsKept) {
            return Ok(());
        }
        self.give_lapsed_seats_back(fact.seats.as_deref().unwrap_or_default(), lapsed)
    }

    pub(super) fn apply_cancelled(&mut self, fact: &HoldCancelled) -> Fits {
        let mut hold = self.touched(&fact.touched, HoldState::Confirmed)?;
        hold.cancel(&fact.lines).ok_or("it gives back more than the hold has")?;
        if let CancelTo::Block(label) = &fact.to {
            self.intern_label(hold.sale, label);
        }
        let keeps = fact.to != CancelTo::Destroyed && !planted::is(Bug::CancelShrinks);
        for draw in fact.moves.iter() {
            // Of an item of seats the total goes with each seat, below.
            let keeps = keeps || self.seating.map(draw.pool).is_some();
            self.change_counts(draw.pool, |counts| {
                let gone = if keeps { 0 } else { draw.quantity };
                let total = counts.total.saturating_sub(gone);
                Some(Counts { sold: counts.sold.checked_sub(draw.quantity)?, total, ..counts })
            })?;
        }
        self.move_blocked(&fact.moves, u32::checked_add)?;
        if let Some(seats) = &fact.seats {
            let destroyed = fact.to == CancelTo::Destroyed;
            self.give_seats_back(&mut hold, seats, SeatKept::Cancelled, destroyed)?;
        }
        self.record_hold(fact.touched.key, &hold);
        Ok(())
    }

    pub(super) fn apply_act_refused(&mut self, fact: &HoldActRefused) -> Fits {
        if fact.touched.hold >= self.holds.next_no() {
            return Err("no such hold");
        }
        let refusal = || KeyOutcome::Recorded(Recorded::Refused(fact.refusal.clone()));
        self.record_key(fact.touched.key, refusal);
        Ok(())
    }

    /// The hold that a fact is about, with its place moved on; in the state that the fact needs.
    fn touched(&self, fact: &HoldTouched, needs: HoldState) -> Result<Hold, &'static str> {
        let mut hold = self.holds.load(fact.hold).ok_or("no such hold")?;
        if hold.state != needs && !planted::is(Bug::LapsedConfirms) {
            return Err("the hold is in another state");
        }
        if hold.last_seq != fact.previous {
            return Err("it names another row as the hold's previous one");
        }
        hold.last_seq = self.turn.moment.seq;
        Ok(hold)
    }

    /// Puts a changed hold back, with the key that changed it.
    fn record_hold(&mut self, key: Option<KeyUse>, hold: &Hold) {
        let view = key.is_some().then(|| self.view(hold));
        self.replace(hold);
        if let Some(view) = view {
            self.record_key(key, || KeyOutcome::Recorded(Recorded::Hold(view)));
        }
    }
}
