//! From a fact to a changed state. Decides nothing: a fact that does not fit is an error, never a refusal.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::books::{ActorEntry, Item, Sale, Shop};
use super::hold::{HeldSeat, Hold};
use super::keys::{KeyOutcome, Recorded};
use super::turn::{Change, Touched};
use super::{LogIdentity, State, sum};
use crate::command::KeyUse;
use crate::fact::{
    BlockAct, Draw, Entry, Fact, HoldCreated, HoldRefused, ItemAdjusted, ItemDefined, LineTaken,
    LogStarted, Private, SaleDefined, SeatsChanged,
};
use crate::ids::HoldId;
use crate::limits::TURN_HOLDS_MAX;
use crate::outcome::{Counts, HoldState, SaleState, SeatKept};
use crate::planted::{self, Bug};
use crate::units::{Fence, HoldNo, ItemIx, SaleIx, ShopIx};

/// A fact that does not fit the state: the log is damaged, this program is, or the two do not belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The fact's kind.
    pub kind: &'static str,
    /// What does not fit.
    pub why: &'static str,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fact {} does not fit the state: {}", self.kind, self.why)
    }
}

impl core::error::Error for Misfit {}

pub(super) type Fits = Result<(), &'static str>;

impl State {
    /// Changes the state by one fact, within the open turn.
    ///
    /// # Errors
    ///
    /// The fact does not fit; the caller rolls back to where it was.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), Misfit> {
        self.turn.assert_open();
        let private = entry.private.as_ref();
        let fits = match &entry.fact {
            Fact::LogStarted(fact) => self.apply_started(fact),
            Fact::SettingsChanged(settings) => {
                self.turn.journal.push(Change::Settings(self.settings));
                self.set_settings(*settings);
                Ok(())
            }
            Fact::ShopDefined(fact) => {
                self.apply_shop(fact.shop, Shop { name: fact.name.clone(), live: fact.live })
            }
            Fact::ActorSeen(fact) => self.apply_actor(fact),
            Fact::SaleDefined(fact) => self.apply_sale_defined(fact),
            Fact::SaleMoved(fact) => match self.books.sales.get(fact.sale.0 as usize).cloned() {
                Some(sale) => self.apply_sale(fact.sale, Sale { state: fact.state, ..sale }),
                None => Err("no such sale"),
            },
            Fact::ItemDefined(fact) => self.apply_item(fact),
            Fact::ItemAdjusted(fact) => self.apply_adjusted(fact),
            Fact::ItemBlocked(fact) => self.apply_blocked(fact, BlockAct::Block),
            Fact::ItemUnblocked(fact) => self.apply_blocked(fact, BlockAct::Unblock),
            Fact::BlockRefused(fact) => {
                let refusal = || KeyOutcome::Recorded(Recorded::Refused(fact.refusal.clone()));
                self.record_key(fact.key, refusal);
                Ok(())
            }
            Fact::HoldCreated(fact) => self.apply_created(fact, private),
            Fact::HoldRefused(fact) => {
                self.apply_refused(fact);
                Ok(())
            }
            Fact::HoldConfirmed(fact) => self.apply_confirmed(fact, private),
            Fact::HoldConfirmedAgain(fact) => self.apply_confirmed_again(fact),
            Fact::HoldExtended(fact) => self.apply_extended(fact),
            Fact::HoldReleased(fact) => self.apply_released(fact),
            Fact::HoldsExpired(fact) => self.apply_expired(fact),
            Fact::HoldCancelled(fact) => self.apply_cancelled(fact),
            Fact::HoldActRefused(fact) => self.apply_act_refused(fact),
            Fact::KeyRepeated(fact) => {
                self.keys.set_repeats(&fact.key, fact.count);
                Ok(())
            }
            Fact::LossAccepted(_) => Ok(()),
            Fact::SeatsChanged(fact) => self.apply_seats_changed(fact),
            Fact::LogRestored(fact) if fact.after.0 + 1 == self.turn.moment.seq.0 => Ok(()),
            Fact::LogRestored(_) => Err("it names another row than the one before it"),
            Fact::BuyerErased(fact) => self.apply_erased(fact),
        };
        fits.map_err(|why| Misfit { kind: entry.fact.kind(), why })
    }

    fn apply_started(&mut self, fact: &LogStarted) -> Fits {
        if self.log.is_some() {
            return Err("the log has started before");
        }
        self.turn.journal.push(Change::Settings(self.settings));
        self.turn.journal.push(Change::Started);
        self.set_settings(fact.settings);
        let log = LogIdentity { log_id: fact.log_id, secret: fact.key_secret, level: fact.level };
        self.add(Self::log_sum(&log));
        self.log = Some(log);
        Ok(())
    }

    fn apply_shop(&mut self, shop: ShopIx, entry: Shop) -> Fits {
        if shop > self.books.next_shop() {
            return Err("its number is not the next one");
        }
        let old = self.books.shops.get(shop.0 as usize).cloned();
        self.turn.journal.push(Change::Shop(shop, old));
        self.write_shop(shop, Some(entry));
        Ok(())
    }

    fn apply_actor(&mut self, fact: &crate::fact::ActorSeen) -> Fits {
        if fact.actor != self.books.next_actor() {
            return Err("its number is not the next one");
        }
        let actor =
            ActorEntry { name: fact.name.clone(), role: fact.role, shop: fact.shop.clone() };
        self.add(sum::encoded(sum::ACTOR, self.books.actors.len() as u64, &actor));
        self.books.add_actor(actor);
        self.turn.journal.push(Change::ActorAdded);
        Ok(())
    }

    fn apply_sale_defined(&mut self, fact: &SaleDefined) -> Fits {
        let old = self.books.sales.get(fact.sale.0 as usize);
        let entry = Sale {
            shop: fact.shop,
            name: fact.name.clone(),
            terms: fact.terms.clone(),
            version: fact.version,
            state: old.map_or(SaleState::Draft, |sale| sale.state),
            labels: old.and_then(|sale| sale.labels.clone()),
        };
        self.apply_sale(fact.sale, entry)?;
        if let Some(returns) = &fact.terms.returns_to {
            self.intern_label(fact.sale, &returns.label);
        }
        Ok(())
    }

    fn apply_sale(&mut self, sale: SaleIx, entry: Sale) -> Fits {
        if sale > self.books.next_sale() || entry.shop >= self.books.next_shop() {
            return Err("its number is not the next one, or its shop is unknown");
        }
        let old = self.books.sales.get(sale.0 as usize).cloned();
        self.turn.journal.push(Change::Sale(sale, old.map(Box::new)));
        self.write_sale(sale, Some(entry));
        Ok(())
    }

    fn apply_item(&mut self, fact: &ItemDefined) -> Fits {
        let known = |pool: &ItemIx| *pool < self.books.next_item() || *pool == fact.item;
        let shared = fact.counts_against.iter().flatten();
        if fact.item > self.books.next_item() || !fact.draws.iter().chain(shared).all(known) {
            return Err("its number is not the next one, or it draws on an unknown pool");
        }
        if fact.sale >= self.books.next_sale() || fact.draws.is_empty() {
            return Err("no such sale, or it draws on nothing");
        }
        let place = fact.item.0 as usize;
        let old = self.books.items.get(place).cloned();
        // What units took is known from their item: it is the same for all of them, until they are back.
        let claimed = self.books.claimed.get(place).is_some_and(|units| *units > 0);
        let changes = old.as_ref().is_some_and(|old| old.draws != fact.draws);
        if claimed && changes && !planted::is(Bug::SharesChange) {
            return Err("units of it are held or sold, so it draws on what it did");
        }
        let quarantined = old.as_ref().is_some_and(|old| old.quarantined);
        self.turn.journal.push(Change::Item(fact.item, old.map(Box::new)));
        let entry = Item {
            sale: fact.sale,
            name: fact.name.clone(),
            version: fact.version,
            draws: fact.draws.clone(),
            quarantined,
            counts_against: fact.counts_against.clone(),
            seated: fact.seated.unwrap_or(false),
        };
        if entry.seated {
            if fact.total as usize
                != self.seating.map(fact.item).map_or(0, |map| map.totals().planned as usize)
            {
                return Err("its total is not the number of its seats");
            }
            self.seating.maps.entry(fact.item).or_default();
        }
        self.write_item(fact.item, Some(entry));
        let (total, oversell_limit) = (fact.total, fact.oversell_limit);
        self.change_counts(fact.item, |counts| Some(Counts { total, oversell_limit, ..counts }))
    }

    fn apply_adjusted(&mut self, fact: &ItemAdjusted) -> Fits {
        self.change_counts(fact.item, |counts| {
            let total = u32::try_from(i64::from(counts.total) + fact.by_units).ok()?;
            (total == fact.total).then_some(Counts { total, ..counts })
        })?;
        let view = self.books.item_view(fact.item);
        self.record_key(fact.key, || KeyOutcome::Recorded(Recorded::Item(view)));
        Ok(())
    }

    fn apply_seats_changed(&mut self, fact: &SeatsChanged) -> Fits {
        self.apply_seats(fact)?;
        let view = self.books.item_view(fact.item);
        self.record_key(fact.key, || KeyOutcome::Recorded(Recorded::Item(view)));
        Ok(())
    }

    fn apply_created(&mut self, fact: &HoldCreated, private: Option<&Private>) -> Fits {
        if fact.hold != self.holds.next_no() {
            return Err("its number is not the next one");
        }
        if fact.sale >= self.books.next_sale() || fact.lines.is_empty() {
            return Err("no such sale, or no lines");
        }
        if usize::from(self.turn.created) >= TURN_HOLDS_MAX {
            return Err("a turn makes at most 65,535 holds");
        }
        for line in fact.lines.iter() {
            self.move_units(&line.draws, |counts, q| {
                Some(Counts { held: counts.held.checked_add(q)?, ..counts })
            })?;
            self.move_blocked(&line.draws, u32::checked_sub)?;
            if let Some(seats) = &line.seats {
                if seats.len() != line.quantity as usize {
                    return Err("it has another number of seats than of units");
                }
                let from = line.draws.first().and_then(|draw| draw.label);
                for &seat in seats {
                    self.own_seat(line.item, seat, fact.hold, from)?;
                }
            }
        }
        let (buyer, buyer_added) = self.intern_buyer(fact.buyer);
        let hold = self.new_hold(fact, buyer);
        if self.turn.created == 0 {
            let moment = self.turn.moment;
            self.holds.open_turn_with(hold.no, moment.seq, moment.at, hold.fence);
        }
        self.turn.journal.push(Change::HoldAdded { buyer_added });
        self.holds.store(&hold);
        self.holds.add_texts(hold.no, private);
        self.buyers[buyer as usize].newest = hold.no.0.into();
        let created = self.turn.created + 1;
        self.turn.set_created(created);
        for line in fact.lines.iter() {
            for draw in line.draws.iter() {
                self.lapses.push(draw.pool, hold.expires_at, hold.no);
            }
        }
        self.account(&hold);
        self.turn.holds.push(hold.no);
        self.record_key(fact.key, || KeyOutcome::Created(hold.no));
        fact.retakes.map_or(Ok(()), |lapsed| self.point_to_retaking(lapsed, hold.no))
    }

    /// A lapsed hold names the one that took its units again: it is taken again once.
    fn point_to_retaking(&mut self, lapsed: HoldNo, by: HoldNo) -> Fits {
        let mut hold = self.holds.load(lapsed).ok_or("it retakes no hold")?;
        let taken = hold.extra.as_ref().is_some_and(|extra| extra.superseded_by.is_some());
        if hold.state != HoldState::Expired || taken {
            return Err("it retakes a hold that is not lapsed, or was retaken before");
        }
        hold.extra_mut().superseded_by = Some(by);
        self.replace(&hold);
        Ok(())
    }

    pub(super) fn next_fence(&self) -> Fence {
        Fence((self.holds.last_fence() + 1).max(self.turn.moment.at.0 << 10))
    }

    /// The hold that a fact makes, here and now.
    pub(super) fn new_hold(&self, fact: &HoldCreated, buyer: u32) -> Hold {
        let moment = self.turn.moment;
        let plain_end = moment.at.plus_seconds(u64::from(fact.ttl_seconds));
        let before = self.buyers.get(buyer as usize).map(|buyer| buyer.newest.get());
        let back = before.and_then(|no| u32::try_from(fact.hold.0.checked_sub(no)?).ok());
        let mut hold = Hold {
            no: fact.hold,
            id: HoldId { seq: moment.seq, index: self.turn.created, tag: self.turn.next_tag() },
            fence: self.next_fence(),
            created_at: moment.at,
            expires_at: fact.expires_at.unwrap_or(plain_end),
            last_seq: moment.seq,
            ttl_seconds: fact.ttl_seconds,
            sale: fact.sale,
            buyer,
            buyer_back: back.unwrap_or(0),
            state: HoldState::Active,
            extensions: fact.extensions,
            extensions_used: 0,
            live: self.books.shops[self.books.sales[fact.sale.0 as usize].shop.0 as usize].live,
            lines: fact.lines.iter().map(LineTaken::fresh).collect(),
            extra: None,
        };
        if let Some(reference) = fact.reference {
            hold.extra_mut().reference = Some(reference);
        }
        let seats = fact.lines.iter().zip(1u8..).flat_map(|(line, number)| {
            let seats = line.seats.iter().flatten();
            seats.map(move |&seat| HeldSeat { line: number, seat, kept: SeatKept::Kept })
        });
        let seats: Vec<HeldSeat> = seats.collect();
        if !seats.is_empty() {
            hold.extra_mut().seats = Some(seats);
        }
        if let Some(end) = fact.expires_at {
            hold.extra_mut().first_end = Some(end);
        }
        if let Some(old) = fact.supersedes {
            hold.extra_mut().supersedes = Some(old.hold);
            hold.extra_mut().chain_from = Some(old.chain_from);
        }
        hold
    }

    fn apply_refused(&mut self, fact: &HoldRefused) {
        let refusal = || KeyOutcome::Recorded(Recorded::Refused(fact.refusal.clone()));
        self.record_key(fact.key, refusal);
    }

    pub(super) fn replace(&mut self, hold: &Hold) {
        let old = self.holds.load(hold.no).expect("a changed hold is in memory");
        self.turn.journal.push(Change::Hold(Box::new(old)));
        self.turn.holds.push(hold.no);
        self.write_hold(hold);
    }

    /// Puts a hold over the one with its number, with all that follows from it.
    pub(super) fn write_hold(&mut self, hold: &Hold) {
        let old = self.holds.load(hold.no).expect("a changed hold is in memory");
        self.unaccount(&old);
        self.holds.store(hold);
        self.account(hold);
        // Its old run may be gone (it was due), or be for another time.
        let queued = old.state == HoldState::Active && old.expires_at == hold.expires_at;
        if hold.state == HoldState::Active && !queued {
            for line in &hold.lines {
                for draw in self.books.draws(line.item, line.held) {
                    self.lapses.push(draw.pool, hold.expires_at, hold.no);
                }
            }
        }
    }

    pub(super) fn give_back_held(&mut self, moves: &[Draw]) -> Fits {
        self.move_units(moves, |counts, q| {
            let held = counts.held.checked_sub(q)?;
            let again = if planted::is(Bug::ReleasedTwice) { q } else { 0 };
            Some(Counts { held: held.saturating_sub(again), ..counts })
        })
    }

    pub(super) fn move_units(
        &mut self,
        moves: &[Draw],
        change: impl Fn(Counts, u32) -> Option<Counts>,
    ) -> Fits {
        moves
            .iter()
            .try_for_each(|draw| self.change_counts(draw.pool, |c| change(c, draw.quantity)))
    }

    pub(super) fn change_counts(
        &mut self,
        item: ItemIx,
        change: impl FnOnce(Counts) -> Option<Counts>,
    ) -> Fits {
        let counts = self.books.counts.get_mut(item.0 as usize).ok_or("no such item")?;
        let before = *counts;
        *counts = change(before).ok_or("a count would leave its range")?;
        let cap = counts.cap();
        self.turn.journal.push(Change::Counts(item, before));
        let accounts = &mut self.turn.accounts;
        match accounts.iter_mut().find(|seen| seen.item == item) {
            Some(seen) => seen.cap_max = seen.cap_max.max(cap),
            None => accounts.push(Touched { item, before, cap_max: before.cap().max(cap) }),
        }
        Ok(())
    }

    pub(super) fn record_key(&mut self, key: Option<KeyUse>, outcome: impl FnOnce() -> KeyOutcome) {
        if let Some(key) = key {
            let inserted = self.keys.insert(key, &outcome(), self.turn.moment.at);
            self.turn.journal.push(Change::Key(inserted));
        }
    }
}
