//! From a command to an outcome and the facts that make it true. Changes nothing.
//!
//! Refusals come in the order of [`Refusal`]'s variants (RULES R10). What competed and lost is a fact; what was
//! turned away at the door is not.

mod act;
mod block;
mod create;
mod define;
mod erase;
mod passing;
mod plan;
mod seats;
mod share;
mod stock;

use alloc::string::String;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::State;
use super::hold::{BadPart, Hold};
use super::keys::{Found, KeyOutcome, Recorded};
use crate::command::{Act, Actor, Command, KeyUse};
use crate::fact::{ActorSeen, Draw, Draws, Entry, Fact, Short};
use crate::ids::HoldId;
use crate::index::Index;
use crate::outcome::{HoldNow, HoldView, Outcome};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::units::{ActorIx, HoldNo, ItemIx, LabelIx, ShopIx};

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made and used up at once, on the hot path")]
pub enum Decision {
    /// Decided: once the facts are durable, the outcome is true. No facts: nothing had to change.
    Done {
        /// The answer.
        outcome: Outcome,
        /// To be applied and logged, in this order.
        entries: SmallVec<[Entry; 1]>,
    },
    /// Decided before, under the same key.
    Replay {
        /// The answer of then.
        outcome: Outcome,
        /// Whether that is durable, or part of the open turn.
        durable: bool,
    },
    /// Turned away at the door: not recorded, and decided anew each time.
    Refuse(Refusal),
}

type Entries = SmallVec<[Entry; 1]>;

/// A refusal inside a decision: recorded or not, by its kind.
type Decided = Result<Outcome, Refusal>;

/// Who acts, and for which shop.
struct By {
    shop: ShopIx,
    actor: ActorIx,
}

impl State {
    /// Loads what deciding these commands will look up into the cache, all at once: one by one, each would wait for
    /// memory (measured: a third of the time of a turn of 1,000 with 3 M keys). Changes nothing.
    pub fn warm<'a>(&self, commands: &(impl IntoIterator<Item = &'a Command> + Clone)) {
        for step in [Index::warm, Index::warm_overflow] {
            let loads = commands.clone().into_iter().map(|command| {
                let key = command.key.map_or(0, |key| self.keys.warm(&key.hash, step));
                match &command.act {
                    Act::HoldCreate(new) => {
                        key ^ step(&self.buyer_index, new.buyer.digest.hash64())
                    }
                    _ => key,
                }
            });
            core::hint::black_box(loads.fold(0, |all, load| all ^ load));
        }
    }

    /// Decides a command on the current state, at the open turn's moment.
    #[must_use]
    pub fn decide(&self, command: &Command) -> Decision {
        if let Some(key) = command.key
            && let Some(found) = self.find_key(&key)
        {
            return self.replay(key, found);
        }
        // The facts are written where they end up: moving them along costs more than making them.
        let mut entries = Entries::new();
        match self.decide_new(command, &mut entries) {
            Ok(outcome) => Decision::Done { outcome, entries },
            Err(refusal) => Decision::Refuse(refusal),
        }
    }

    fn decide_new(&self, command: &Command, out: &mut Entries) -> Decided {
        let (actor, introduction) = self.introduce(command);
        // A shop may be put by someone who acts for none yet.
        let shop = match &command.act {
            Act::ShopPut(_) => None,
            _ => Some(self.books.shop(command.shop.as_str()).ok_or(Refusal::ShopNotFound)?),
        };
        let by = By { shop: shop.unwrap_or_default(), actor };
        let outcome = match &command.act {
            Act::ShopPut(put) => Ok(self.decide_shop(actor, put, out)),
            Act::SalePut(put) => self.decide_sale(&by, put, out),
            Act::SaleMove(step) => self.decide_move(&by, step, out),
            Act::ItemPut(put) => self.decide_item(&by, put, out),
            Act::ItemAdjust(adjust) => self.decide_adjust(&by, command.key, adjust, out),
            Act::ItemBlock(act) => self.decide_block(&by, command.key, act, out),
            Act::ItemUnblock(act) => self.decide_unblock(&by, command.key, act, out),
            Act::ItemSeats(change) => self.decide_seats(&by, command.key, change, out),
            Act::HoldCreate(create) => self.decide_create(&by, command, create, out),
            Act::HoldConfirm(confirm) => self.decide_confirm(&by, command, confirm, out),
            Act::HoldExtend(extend) => self.decide_extend(&by, command, extend, out),
            Act::HoldRelease(release) => self.decide_release(&by, command, release, out),
            Act::HoldCancel(cancel) => self.decide_cancel(&by, command, cancel, out),
            Act::BuyerErase(erase) => self.decide_erase(&by, erase, out),
        }?;
        if let Some(introduction) = introduction
            && !out.is_empty()
        {
            out.insert(0, introduction);
        }
        Ok(outcome)
    }

    fn introduce(&self, command: &Command) -> (ActorIx, Option<Entry>) {
        let known = self.books.actor(&command.shop, &command.actor);
        let actor = known.unwrap_or_else(|| self.books.next_actor());
        let introduction = match &command.actor {
            Actor::Principal { name, role } if known.is_none() => {
                let shop = command.shop.clone();
                Some(
                    Fact::ActorSeen(ActorSeen { actor, name: name.clone(), role: *role, shop })
                        .into(),
                )
            }
            _ => None,
        };
        (actor, introduction)
    }

    fn find_key(&self, key: &KeyUse) -> Option<Found> {
        self.keys.find(&key.hash, |low| self.holds.widen(low))
    }

    fn replay(&self, key: KeyUse, found: Found) -> Decision {
        if found.fingerprint != key.fingerprint && !planted::is(Bug::AnyFingerprint) {
            return Decision::Refuse(Refusal::KeyReused);
        }
        let outcome = match found.outcome {
            KeyOutcome::Created(no) => {
                let now = self.hold_in_memory(no);
                Outcome::Hold(HoldView { now: hold_now(&now), ..self.view(&now.as_created()) })
            }
            KeyOutcome::Confirmed(no) => {
                let now = self.hold_in_memory(no);
                let view = self.view(&now.as_confirmed());
                Outcome::Hold(self.with_texts(HoldView { now: hold_now(&now), ..view }))
            }
            KeyOutcome::Recorded(Recorded::Hold(view)) => {
                let now = self.hold_in_memory(view.no);
                Outcome::Hold(self.with_texts(HoldView { now: hold_now(&now), ..view }))
            }
            KeyOutcome::Recorded(Recorded::Item(view)) => Outcome::Item(view),
            KeyOutcome::Recorded(Recorded::Refused(refusal)) => Outcome::Refused(refusal),
        };
        Decision::Replay { outcome, durable: found.durable }
    }

    fn hold_in_memory(&self, no: HoldNo) -> Hold {
        self.holds.load(no).expect("a key that is known keeps its hold in memory")
    }

    pub(super) fn with_texts(&self, mut view: HoldView) -> HoldView {
        view.texts = Some(alloc::boxed::Box::new(self.holds.texts(view.no)));
        view
    }

    pub(super) fn view(&self, hold: &Hold) -> HoldView {
        let mut view = self.holds.view(hold, self.books.sales[hold.sale.0 as usize].shop);
        if !hold.seats().is_empty() {
            view.seats = self.seats_of(hold);
        }
        view
    }

    /// What parts of a hold's lines draw, one entry per pool and block.
    pub(super) fn draws_of(
        &self,
        parts: impl Iterator<Item = (ItemIx, u32, Option<LabelIx>)>,
    ) -> Draws {
        let mut moves: Vec<Draw> = Vec::new();
        for (item, quantity, label) in parts {
            self.add_draws(&mut moves, item, quantity, label);
        }
        Short(SmallVec::from_vec(moves))
    }

    /// The hold that a caller names, if it is his to touch.
    fn hold_of(&self, by: &By, actor: &Actor, id: HoldId) -> Result<Hold, Refusal> {
        let hold = self.holds.find(id).and_then(|no| self.holds.load(no));
        let hold = hold.ok_or(Refusal::HoldNotFound)?;
        let mine = match actor {
            Actor::Principal { .. } => true,
            Actor::Buyer { digest } => self.buyers[hold.buyer as usize].digest == digest.0,
        };
        let same_shop = self.books.sales[hold.sale.0 as usize].shop == by.shop;
        if mine && same_shop { Ok(hold) } else { Err(Refusal::HoldNotFound) }
    }
}

pub(super) const fn hold_now(hold: &Hold) -> HoldNow {
    HoldNow { state: hold.state, expires_at: hold.expires_at }
}

fn invalid(field: impl Into<String>, bound: impl Into<String>) -> Refusal {
    Refusal::InvalidField { field: field.into(), bound: bound.into() }
}

impl From<BadPart> for Refusal {
    fn from(part: BadPart) -> Self {
        invalid(part.field, part.bound)
    }
}
