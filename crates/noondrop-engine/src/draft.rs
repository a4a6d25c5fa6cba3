//! The row that is being made: its encoded facts, and the answers that wait for it. Its buffers are
//! used again.

use noondrop_core::{Digest16, Entry, codec};

use crate::call::Answered;

/// A place in a draft to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    facts: usize,
    private: usize,
    entries: u32,
    repeats: usize,
}

/// A key that was answered from the record in this turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) key: Digest16,
    pub(crate) origin: Option<Digest16>,
}

/// One turn, as far as it is made.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) facts: Vec<u8>,
    pub(crate) private: Vec<u8>,
    pub(crate) entries: u32,
    pub(crate) nonce: [u8; 16],
    /// In the order in which they were decided; positions are filled in once there is one.
    pub(crate) answers: Vec<Answered>,
    pub(crate) repeats: Vec<Repeat>,
    /// Set while facts are applied: a panic then leaves changes that nothing remembers.
    pub(crate) applying: bool,
}

impl Draft {
    pub(crate) fn clear(&mut self) {
        debug_assert!(self.answers.is_empty(), "every caller is answered or waits on");
        self.facts.clear();
        self.private.clear();
        self.entries = 0;
        self.repeats.clear();
        self.applying = false;
    }

    /// Encodes a fact with its private texts.
    pub(crate) fn push(&mut self, entry: &Entry) {
        codec::encode_fact(&entry.fact, &mut self.facts);
        if let Some(private) = &entry.private {
            codec::encode_private(self.entries, private, &mut self.private);
        }
        self.entries += 1;
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            facts: self.facts.len(),
            private: self.private.len(),
            entries: self.entries,
            repeats: self.repeats.len(),
        }
    }

    pub(crate) fn cut(&mut self, mark: Mark) {
        self.facts.truncate(mark.facts);
        self.private.truncate(mark.private);
        self.entries = mark.entries;
        self.repeats.truncate(mark.repeats);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.facts.len() + self.private.len()
    }
}
