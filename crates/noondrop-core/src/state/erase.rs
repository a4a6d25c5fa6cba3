//! Persons who were forgotten: their texts leave memory, the fact that they were erased stays (RULES R13).
//!
//! Nothing of this depends on whether the texts are still in the log: a replay after the rows were rewritten comes to
//! the same state, because no text is part of `state_sum`.

use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::apply::Fits;
use super::texts::ErasedTexts;
use super::turn::Change;
use super::{State, sum};
use crate::fact::BuyerErased;
use crate::ids::Digest16;
use crate::units::{ActorIx, HoldNo, Seq, Timestamp};

/// When a buyer was forgotten last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Erasure {
    /// The row of the fact.
    #[n(0)]
    pub(super) seq: Seq,
    #[n(1)]
    pub(super) at: Timestamp,
}

impl Erasure {
    /// Its share of `state_sum`.
    pub(super) fn sum(&self, buyer: &Digest16) -> u128 {
        sum::encoded(sum::ERASED, 0, &(buyer, self))
    }
}

impl State {
    pub(super) fn apply_erased(&mut self, fact: &BuyerErased) -> Fits {
        if fact.shop >= self.books.next_shop() {
            return Err("no such shop");
        }
        let holds = self.holds_of_buyer(fact.buyer, None, usize::MAX);
        let erased = holds.into_iter().filter_map(|no| self.holds.erase_texts(no));
        let erased: Vec<ErasedTexts> = erased.collect();
        self.turn.journal.push(Change::Texts(erased));
        let moment = self.turn.moment;
        let old = self.erased.get(&fact.buyer).copied();
        let newest = self.newest_erasure;
        self.turn.journal.push(Change::Erased { buyer: fact.buyer, old, newest });
        self.write_erased(fact.buyer, Some(Erasure { seq: moment.seq, at: moment.at }));
        self.newest_erasure = moment.seq;
        Ok(())
    }

    pub(super) fn write_erased(&mut self, buyer: Digest16, new: Option<Erasure>) {
        self.add(new.map_or(0, |new| new.sum(&buyer)));
        let old = match new {
            Some(new) => self.erased.insert(buyer, new),
            None => self.erased.remove(&buyer),
        };
        self.subtract(old.map_or(0, |old| old.sum(&buyer)));
    }

    pub(super) fn restore_texts(&mut self, erased: Vec<ErasedTexts>) {
        for texts in erased {
            self.holds.restore_texts(texts);
        }
    }

    /// How many of a buyer's holds claim units for a while.
    pub(super) fn live_among(&self, holds: &[HoldNo]) -> usize {
        holds.iter().filter(|no| self.holds.is_live_until(**no).is_some()).count()
    }

    /// The buyers that were erased by rows after this one, with the row of the newest erasure of each.
    #[must_use]
    pub fn erased_after(&self, seq: Seq) -> Vec<(Digest16, Seq)> {
        let newer = self.erased.iter().filter(|(_, erasure)| erasure.seq > seq);
        newer.map(|(&buyer, erasure)| (buyer, erasure.seq)).collect()
    }

    /// The fact that erases a buyer who was erased in rows that a restored log does not have; also while he has live holds.
    #[must_use]
    pub fn erased_again(&self, buyer: Digest16) -> BuyerErased {
        let holds = self.holds_of_buyer(buyer, None, usize::MAX);
        let sale = holds.first().map(|no| &self.books.sales[self.holds.sale_of(*no).0 as usize]);
        let shop = sale.map(|sale| sale.shop).unwrap_or_default();
        BuyerErased { shop, buyer, holds: holds.len() as u64, by: ActorIx::SYSTEM }
    }

    /// The row of the newest erasure; 0: nobody was erased.
    #[must_use]
    pub const fn newest_erasure(&self) -> Seq {
        self.newest_erasure
    }

    /// When a buyer was erased last.
    #[must_use]
    pub fn erased_at(&self, buyer: Digest16) -> Option<Timestamp> {
        self.erased.get(&buyer).map(|erasure| erasure.at)
    }
}
