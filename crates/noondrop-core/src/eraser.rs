//! Which private texts of a log belong to erased buyers, row by row from the first; pure, for whoever rewrites rows.
//!
//! A buyer's texts are those of the facts that name his digest (a hold, a refused attempt, an earlier erasure), and those of all
//! facts about his holds (payments, reasons), up to the fact that erased him. What he does after that is not touched.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::codec::{CodecError, decode_row, encode_private};
use crate::fact::{Entry, Fact};
use crate::ids::Digest16;
use crate::units::{HoldNo, Seq};

/// Finds what is to be overwritten. Shown each row of the log in order.
#[derive(Clone, Debug, Default)]
pub struct Eraser {
    buyers: BTreeMap<Digest16, Seq>,
    holds: BTreeMap<HoldNo, Digest16>,
}

impl Eraser {
    /// For buyers with the row of the fact that erased each.
    #[must_use]
    pub fn new(buyers: impl IntoIterator<Item = (Digest16, Seq)>) -> Self {
        Self { buyers: buyers.into_iter().collect(), holds: BTreeMap::new() }
    }

    /// The last row that may hold something to erase.
    #[must_use]
    pub fn last(&self) -> Option<Seq> {
        self.buyers.values().max().copied()
    }

    /// The private blob that a row should have: as long as the one that it has, the rest of it zeros, so that it takes the old one's
    /// place to the last byte. None: nothing to erase.
    ///
    /// # Errors
    ///
    /// The row is not understood.
    pub fn rewritten(
        &mut self,
        seq: Seq,
        level: u16,
        facts: &[u8],
        private: &[u8],
    ) -> Result<Option<Vec<u8>>, CodecError> {
        let entries = decode_row(level, facts, private)?;
        let mut kept = Vec::with_capacity(private.len());
        let mut erases = false;
        for (place, entry) in entries.iter().enumerate() {
            let owner = self.owner(&entry.fact);
            let Some(texts) = &entry.private else { continue };
            if owner.is_some_and(|owner| self.is_before_erasure(owner, seq, &entries[place + 1..]))
            {
                erases = true;
            } else {
                let place = u32::try_from(place).map_err(|_| CodecError::Malformed)?;
                encode_private(place, texts, &mut kept);
            }
        }
        if !erases {
            return Ok(None);
        }
        kept.resize(private.len(), 0);
        Ok(Some(kept))
    }

    /// The buyer to be erased that a fact is about.
    fn owner(&mut self, fact: &Fact) -> Option<Digest16> {
        let named = match fact {
            Fact::HoldCreated(created) => Some(created.buyer),
            Fact::HoldRefused(refused) => Some(refused.buyer),
            Fact::BuyerErased(erased) => Some(erased.buyer),
            other => other.touched().and_then(|touched| self.holds.get(&touched.hold)).copied(),
        };
        let owner = named.filter(|buyer| self.buyers.contains_key(buyer))?;
        if let Fact::HoldCreated(created) = fact {
            self.holds.insert(created.hold, owner);
        }
        Some(owner)
    }

    fn is_before_erasure(&self, owner: Digest16, seq: Seq, later: &[Entry]) -> bool {
        let erased_by = self.buyers[&owner];
        let follows = |entry: &Entry| matches!(&entry.fact, Fact::BuyerErased(erased) if erased.buyer == owner);
        seq < erased_by || (seq == erased_by && later.iter().any(follows))
    }
}
