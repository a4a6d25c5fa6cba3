//! What buyers were told: the first answer to each key, against which every repeat is compared to the byte.

use std::collections::{BTreeMap, HashMap};

use noondrop_core::HoldId;

use crate::client::Answer;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A hold.
    Press,
    /// A hold, from a second device.
    PressElsewhere,
    /// A confirm.
    Pay,
}

/// Whether a key was answered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// No.
    First,
    /// Yes.
    Again,
}

/// A hold that a buyer was told he has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Whose.
    pub buyer: u32,
    /// Which.
    pub id: HoldId,
    /// With which fence.
    pub fence: u64,
    /// He was told that it is sold to him.
    pub confirmed: bool,
}

/// Buyer, which of his attempts or payments, what for.
type Key = (u32, u32, Kind);
/// Status and hash of a body.
type Print = (u16, [u8; 16]);

/// Kinds of surprises that are told apart.
const SURPRISES_MAX: usize = 50;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Record {
    answers: HashMap<Key, Print>,
    promises: Vec<Promise>,
    differing: u64,
    surprises: BTreeMap<String, u64>,
}

impl Record {
    /// Notes a decisive answer.
    pub fn note(&mut self, key: Key, answer: &Answer) -> Sight {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&answer.body).as_bytes()[..16]);
        let print = (answer.status, hash);
        match self.answers.insert(key, print) {
            None => Sight::First,
            Some(first) => {
                // The first one stays, so that each one that differs from it counts.
                self.answers.insert(key, first);
                self.differing += u64::from(first != print);
                Sight::Again
            }
        }
    }

    /// Notes a hold; its place in the record.
    pub fn hold(&mut self, buyer: u32, id: HoldId, fence: u64) -> usize {
        self.promises.push(Promise { buyer, id, fence, confirmed: false });
        self.promises.len() - 1
    }

    /// Notes that a hold was confirmed.
    pub fn confirm(&mut self, place: usize) {
        self.promises[place].confirmed = true;
    }

    /// Notes an answer that nobody should ever get here.
    pub fn unexpected(&mut self, what: &str) {
        if self.surprises.len() < SURPRISES_MAX || self.surprises.contains_key(what) {
            *self.surprises.entry(what.to_owned()).or_default() += 1;
        }
    }

    /// The hold at a place.
    #[must_use]
    pub fn promise(&self, place: usize) -> Promise {
        self.promises[place]
    }

    /// Every hold that was acknowledged.
    #[must_use]
    pub fn promises(&self) -> &[Promise] {
        &self.promises
    }

    /// Holds whose confirm was acknowledged.
    #[must_use]
    pub fn confirmed(&self) -> u64 {
        self.promises.iter().filter(|promise| promise.confirmed).count() as u64
    }

    /// Keys with an answer.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.answers.len() as u64
    }

    /// Repeats that were not answered like the first.
    #[must_use]
    pub fn differing(&self) -> u64 {
        self.differing
    }

    /// Answers that nobody should ever get here, and how often.
    #[must_use]
    pub fn surprises(&self) -> &BTreeMap<String, u64> {
        &self.surprises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_that_differs_by_a_byte_or_in_status_is_noticed() {
        let mut record = Record::default();
        let answer = Answer { status: 201, body: b"{}".to_vec(), ..Answer::default() };
        let mut note = |attempt, answer: &Answer| record.note((1, attempt, Kind::Press), answer);
        assert_eq!(note(0, &answer), Sight::First);
        assert_eq!(note(0, &Answer { replayed: true, ..answer.clone() }), Sight::Again);
        assert_eq!(note(1, &Answer { body: b"other".to_vec(), ..answer.clone() }), Sight::First);
        assert_eq!(note(0, &Answer { body: b"{ }".to_vec(), ..answer.clone() }), Sight::Again);
        assert_eq!(note(0, &Answer { status: 200, ..answer.clone() }), Sight::Again);
        assert_eq!(note(0, &answer), Sight::Again);
        assert_eq!(record.differing(), 2);
    }
}
