//! Which facts belong to a story. What a hold becomes comes after what made it, so what is wanted widens as the log is
//! read: the holds of a buyer, then all that happened to them, then the repeats of the keys that were used.

use std::collections::BTreeSet;

use noondrop_core::{Digest16, Digester, Fact, HoldId, HoldNo, KeyScope};

use super::glance::Glance;
use super::seat::SeatTold;
use crate::ledger::{key_of, touched};

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A hold.
    Hold(HoldId),
    /// A buyer of a shop.
    Buyer {
        /// The shop.
        shop: String,
        /// The buyer, as the shop names him.
        buyer: String,
    },
    /// A reference of a shop.
    Reference {
        /// The shop.
        shop: String,
        /// The reference.
        reference: String,
    },
    /// A seat of a sale.
    Seat(SeatName),
    /// A key, as the ledger shows it.
    KeyHash(Digest16),
    /// A key, as the caller sent it.
    Key(KeyText),
    /// Everything.
    All,
}

/// Where a seat is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatName {
    /// The shop.
    pub shop: String,
    /// The sale.
    pub sale: String,
    /// The item.
    pub item: String,
    /// The seat.
    pub seat: String,
}

/// A key as it was sent, and in which scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyText {
    /// The shop.
    pub shop: String,
    /// The principal's name; none: any that ever acted.
    pub principal: Option<String>,
    /// The operation's stable name.
    pub operation: String,
    /// The id in the path, or empty.
    pub target: String,
    /// The key.
    pub key: String,
}

/// See the module.
pub struct Wanted<'a> {
    question: &'a Question,
    /// The digest of the buyer or the reference, once the log has told its secret.
    digest: Option<Digest16>,
    digester: Option<Digester>,
    holds: BTreeSet<HoldNo>,
    keys: BTreeSet<Digest16>,
    seat: Option<SeatTold>,
}

impl<'a> Wanted<'a> {
    /// Before the first fact.
    #[must_use]
    pub fn new(question: &'a Question) -> Self {
        let keys = match question {
            Question::KeyHash(hash) => BTreeSet::from([*hash]),
            _ => BTreeSet::new(),
        };
        let (digest, digester, holds, seat) = (None, None, BTreeSet::new(), None);
        Self { question, digest, digester, holds, keys, seat }
    }

    /// The seat that is asked about, once it is known.
    #[must_use]
    pub fn seat(&self) -> Option<&SeatTold> {
        self.seat.as_ref()
    }

    /// Whether a hold is of the story.
    #[must_use]
    pub fn has_hold(&self, no: HoldNo) -> bool {
        self.holds.contains(&no)
    }

    /// Whether all holds are told of.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self.question == Question::All
    }

    /// To be asked in the order of the log; `before` stands right before the fact.
    pub fn takes(&mut self, fact: &Fact, before: &Glance) -> bool {
        self.learn(fact, before);
        let about = match (self.question, &mut self.seat) {
            (Question::All, _) => true,
            (Question::Seat(_), Some(seat)) => {
                seat.takes(fact)
                    || matches!(fact, Fact::KeyRepeated(it) if self.keys.contains(&it.key))
            }
            (Question::Seat(_), None) => false,
            _ => self.is_about(fact, before),
        };
        if !about || self.is_all() {
            return about;
        }
        if let Fact::HoldCreated(created) = fact {
            self.holds.insert(created.hold);
            if self.seat.is_none() {
                self.holds.extend(created.retakes);
            }
        }
        if let Some(key) = key_of(fact) {
            self.keys.insert(key.hash);
        }
        true
    }

    /// The log's first fact tells the secret behind every digest; each principal may have used the key.
    fn learn(&mut self, fact: &Fact, before: &Glance) {
        match fact {
            Fact::LogStarted(log) => {
                let digester = Digester::new(log.key_secret);
                self.digest = match self.question {
                    Question::Buyer { shop, buyer } => Some(digester.buyer(shop, buyer)),
                    Question::Reference { shop, reference } => {
                        Some(digester.reference(shop, reference))
                    }
                    _ => None,
                };
                self.digester = Some(digester);
                if let Question::Key(KeyText { principal: Some(principal), .. }) = self.question {
                    self.add_key_of(principal);
                }
            }
            Fact::ActorSeen(actor) => {
                if let Question::Key(KeyText { principal: None, .. }) = self.question {
                    self.add_key_of(actor.name.as_str());
                }
            }
            Fact::SeatsChanged(changed) => {
                let Question::Seat(name) = self.question else { return };
                let item = before.item(&name.shop, &name.sale, &name.item);
                if self.seat.is_none() && item == Some(changed.item) {
                    let known = before.catalog().seats.get(&changed.item);
                    let known = known.map_or(0, |names| names.len());
                    self.seat = SeatTold::added(changed, known, &name.seat);
                }
            }
            _ => {}
        }
    }

    fn add_key_of(&mut self, principal: &str) {
        let (Question::Key(text), Some(digester)) = (self.question, &self.digester) else { return };
        let principal = principal_scope(principal);
        let scope = KeyScope {
            shop: &text.shop,
            principal: &principal,
            operation: &text.operation,
            target: &text.target,
        };
        self.keys.insert(digester.key(scope, &text.key));
    }

    fn is_about(&self, fact: &Fact, before: &Glance) -> bool {
        let about = match fact {
            Fact::HoldCreated(created) => {
                self.is_attempt(created.buyer, created.reference)
                    || self.is_the_hold(before)
                    || created.supersedes.is_some_and(|old| self.has_hold(old.hold))
                    || created.retakes.is_some_and(|old| self.has_hold(old))
            }
            Fact::HoldRefused(refused) => self.is_attempt(refused.buyer, refused.reference),
            Fact::KeyRepeated(repeated) => self.keys.contains(&repeated.key),
            Fact::HoldsExpired(expired) => {
                !self.holds.is_empty() && expired.holds().any(|(no, _)| self.has_hold(no))
            }
            other => touched(other).is_some_and(|about| self.has_hold(about.hold)),
        };
        about || self.is_by_key(fact)
    }

    fn is_by_key(&self, fact: &Fact) -> bool {
        matches!(self.question, Question::KeyHash(_) | Question::Key(_))
            && key_of(fact).is_some_and(|key| self.keys.contains(&key.hash))
    }

    fn is_attempt(&self, buyer: Digest16, reference: Option<Digest16>) -> bool {
        match self.question {
            Question::Buyer { .. } => self.digest == Some(buyer),
            Question::Reference { .. } => self.digest.is_some() && self.digest == reference,
            _ => false,
        }
    }

    /// An id carries its row, its place among the holds that the row made, and secret bits that a wrong id has not.
    fn is_the_hold(&self, before: &Glance) -> bool {
        let Question::Hold(id) = self.question else { return false };
        id.seq.0 == before.seq() && before.next_hold().1 == *id
    }
}

/// How the name of a principal stands in a key's scope; a buyer's token has a scope of its own.
fn principal_scope(name: &str) -> String {
    if name.starts_with("token:") { name.to_owned() } else { format!("principal:{name}") }
}
