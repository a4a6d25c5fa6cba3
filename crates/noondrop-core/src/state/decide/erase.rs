//! Forgetting a buyer. Refused while he has live holds: their payment would bring his texts back a minute later.

use super::{By, Decided, Entries};
use crate::command::BuyerErase;
use crate::fact::{BuyerErased, Entry, Fact, Private};
use crate::outcome::{ErasedView, Outcome};
use crate::refusal::Refusal;
use crate::state::State;

impl State {
    /// Decided anew each time: attempts that were refused since the last time are not in memory, only in the log.
    pub(super) fn decide_erase(&self, by: &By, erase: &BuyerErase, out: &mut Entries) -> Decided {
        let buyer = erase.buyer.digest;
        let holds = self.holds_of_buyer(buyer, None, usize::MAX);
        let live = self.live_among(&holds);
        if live > 0 {
            let holds = u32::try_from(live).unwrap_or(u32::MAX);
            return Err(Refusal::BuyerHasLiveHolds { holds });
        }
        let holds = holds.len() as u64;
        let fact = BuyerErased { shop: by.shop, buyer, holds, by: by.actor };
        let private = Private { reason: Some(erase.reason.clone()), ..Private::default() };
        out.push(Entry { fact: Fact::BuyerErased(fact), private: Some(private) });
        let (at, before) = (self.turn.moment.at, self.erased_at(buyer));
        Ok(Outcome::Erased(ErasedView { shop: by.shop, buyer, holds, at, before }))
    }
}
