//! One row of the log, its digest, and the check that rows form one unbroken chain.
//!
//! The digest covers everything but `private`, so that a person's data can be erased from a row
//! without breaking the chain. What the facts say is not known here.

use std::error::Error;
use std::fmt;

use crate::Position;

/// What a row says before it has its place in the chain.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unsealed {
    /// The number of the row; one more than the row before.
    pub seq: u64,
    /// The time of the turn, in ms since the Unix epoch.
    pub at: u64,
    /// Random bits that name one start of one process.
    pub writer: [u8; 16],
    /// Which attempt of that writer this is. It makes two attempts at the same turn differ.
    pub attempt: u32,
    /// Random bits of the turn, from which ids are derived.
    pub nonce: [u8; 16],
    /// The format level at which `facts` is written.
    pub level: u16,
    /// The sum over the whole state after this row.
    pub state_sum: [u8; 16],
    /// What happened, encoded.
    pub facts: Vec<u8>,
    /// The texts of persons, which may be rewritten. Outside the digest.
    pub private: Vec<u8>,
}

/// One row of the log. The fields are those of [`Unsealed`] and the digest that seals them.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is described at Unsealed")]
pub struct Row {
    pub seq: u64,
    pub at: u64,
    pub writer: [u8; 16],
    pub attempt: u32,
    pub nonce: [u8; 16],
    pub level: u16,
    pub state_sum: [u8; 16],
    /// The digest over the row before and all fields of this one but `private`.
    pub digest: [u8; 32],
    pub facts: Vec<u8>,
    pub private: Vec<u8>,
}

impl Row {
    /// Gives a row its place after the row whose digest is `previous`.
    ///
    /// The digest is blake3 over `previous ‖ seq ‖ at ‖ writer ‖ attempt ‖ nonce ‖ level ‖
    /// state_sum ‖ length of facts (8 bytes) ‖ facts`, numbers in fixed width, little-endian.
    pub fn seal(previous: &[u8; 32], unsealed: Unsealed) -> Self {
        let Unsealed { seq, at, writer, attempt, nonce, level, state_sum, facts, private } =
            unsealed;
        let digest = [0; 32];
        let mut row =
            Self { seq, at, writer, attempt, nonce, level, state_sum, digest, facts, private };
        row.digest = row.digest_after(previous);
        row
    }

    /// Whether this row is whole and follows the row whose digest is `previous`.
    pub fn verify(&self, previous: &[u8; 32]) -> bool {
        self.digest == self.digest_after(previous)
    }

    /// Where this row stands.
    pub fn position(&self) -> Position {
        Position { seq: self.seq, digest: self.digest }
    }

    fn digest_after(&self, previous: &[u8; 32]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(previous);
        hasher.update(&self.seq.to_le_bytes());
        hasher.update(&self.at.to_le_bytes());
        hasher.update(&self.writer);
        hasher.update(&self.attempt.to_le_bytes());
        hasher.update(&self.nonce);
        hasher.update(&self.level.to_le_bytes());
        hasher.update(&self.state_sum);
        hasher.update(&(self.facts.len() as u64).to_le_bytes());
        hasher.update(&self.facts);
        *hasher.finalize().as_bytes()
    }
}

/// Shows sizes, not contents: a row must be safe to print, and `private` is about persons.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("position", &format_args!("{}", self.position()))
            .field("at", &self.at)
            .field("attempt", &self.attempt)
            .field("level", &self.level)
            .field("facts_bytes", &self.facts.len())
            .field("private_bytes", &self.private.len())
            .finish_non_exhaustive()
    }
}

/// Shows sizes, for the reason given at [`Row`].
impl fmt::Debug for Unsealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsealed")
            .field("seq", &self.seq)
            .field("at", &self.at)
            .field("attempt", &self.attempt)
            .field("level", &self.level)
            .field("facts_bytes", &self.facts.len())
            .field("private_bytes", &self.private.len())
            .finish_non_exhaustive()
    }
}

/// Checks that `rows` follow `previous` without a gap, each chained to the one before.
///
/// Returns the position of the last row, or `previous` if there is none.
pub fn verify_chain(previous: &Position, rows: &[Row]) -> Result<Position, ChainError> {
    let mut last = *previous;
    for row in rows {
        last = verify_next(&last, row)?;
    }
    Ok(last)
}

/// Checks that `row` is the very next one after `previous`.
pub(crate) fn verify_next(previous: &Position, row: &Row) -> Result<Position, ChainError> {
    let expected = previous.seq.checked_add(1);
    if expected != Some(row.seq) {
        return Err(ChainError::Gap { after: *previous, found: row.seq });
    }
    if !row.verify(&previous.digest) {
        return Err(ChainError::Unchained { after: *previous });
    }
    Ok(row.position())
}

/// How rows fail to be one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// The row after `after` has another number than the next one.
    Gap {
        /// The last good position.
        after: Position,
        /// The number that came instead.
        found: u64,
    },
    /// The row after `after` has the right number and a digest that does not follow.
    Unchained {
        /// The last good position.
        after: Position,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { after, found } => write!(f, "row {found} can not follow {after}"),
            Self::Unchained { after } => {
                write!(f, "the row after {after} is damaged or belongs to another history")
            }
        }
    }
}

impl Error for ChainError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GENESIS;

    fn chain(length: u64) -> Vec<Row> {
        let mut previous = GENESIS;
        (1..=length)
            .map(|seq| {
                let unsealed = Unsealed { seq, at: 1000 + seq, ..Unsealed::default() };
                let row = Row::seal(&previous.digest, unsealed);
                previous = row.position();
                row
            })
            .collect()
    }

    #[test]
    fn a_whole_chain_is_accepted_from_any_position_in_it() {
        let rows = chain(5);
        assert_eq!(verify_chain(&GENESIS, &rows), Ok(rows[4].position()));
        assert_eq!(verify_chain(&rows[2].position(), &rows[3..]), Ok(rows[4].position()));
        assert_eq!(verify_chain(&GENESIS, &[]), Ok(GENESIS));
    }

    #[test]
    fn a_missing_swapped_or_foreign_row_is_named() {
        let rows = chain(4);
        let with_gap = [rows[0].clone(), rows[2].clone()];
        let after = rows[0].position();
        assert_eq!(verify_chain(&GENESIS, &with_gap), Err(ChainError::Gap { after, found: 3 }));

        let foreign = Position { seq: 1, digest: [9; 32] };
        let unchained = Err(ChainError::Unchained { after: foreign });
        assert_eq!(verify_chain(&foreign, &rows[1..]), unchained);
    }

    /// One changed bit in any covered field must show. A field that the digest forgot would pass.
    #[test]
    fn every_field_but_private_is_covered_by_the_digest() {
        let alterations: [fn(&mut Row); 9] = [
            |row| row.seq ^= 1,
            |row| row.at ^= 1,
            |row| row.writer[15] ^= 1,
            |row| row.attempt ^= 1,
            |row| row.nonce[15] ^= 1,
            |row| row.level ^= 1,
            |row| row.state_sum[15] ^= 1,
            |row| row.digest[31] ^= 1,
            |row| row.facts.push(0),
        ];
        let row = chain(1).remove(0);
        for alter in alterations {
            let mut changed = row.clone();
            alter(&mut changed);
            assert!(!changed.verify(&GENESIS.digest), "{changed:?}");
        }
        let mut erased = row;
        erased.private = b"erased".to_vec();
        assert!(erased.verify(&GENESIS.digest));
    }

    #[test]
    fn printing_a_row_shows_nothing_of_its_contents() {
        let private = b"alice@example.com".to_vec();
        let row = Row::seal(&[0; 32], Unsealed { private, ..Unsealed::default() });
        let shown = format!("{row:?}");
        assert!(shown.contains("private_bytes: 17"), "{shown}");
        assert!(!shown.contains("alice") && !shown.contains("97, 108"), "{shown}");
    }
}
