//! Where a row stands in a log: its number together with its digest. Never the number alone.
//!
//! A log can go back (a restore, a fail-over without a standby) and take another branch. The same
//! number then names another row, so every comparison in this project is of whole positions.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// How many bytes of the digest the written form of a position shows.
const PREFIX_BYTES: usize = 4;

/// The place before the first row of any log.
pub const GENESIS: Position = Position { seq: 0, digest: [0; 32] };

/// One place in one history: the number of a row and the digest that chains it to all before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The number of the row. The first row has 1; 0 stands for the empty log.
    pub seq: u64,
    /// The digest of that row, and so of everything up to it.
    pub digest: [u8; 32],
}

impl Position {
    /// The short form, as people and the wire write it.
    pub fn short(&self) -> PositionRef {
        let [a, b, c, d, ..] = self.digest;
        PositionRef { seq: self.seq, prefix: [a, b, c, d] }
    }
}

/// Writes `48112.9f3c2ab1`: the number, and the first four bytes of the digest.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.short().fmt(f)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position({self})")
    }
}

/// A position as someone wrote it down: enough to recognise the row, not enough to replace it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PositionRef {
    /// The number of the row.
    pub seq: u64,
    /// The first bytes of its digest.
    pub prefix: [u8; PREFIX_BYTES],
}

impl PositionRef {
    /// Whether `position` is the one that was written down.
    pub fn matches(&self, position: &Position) -> bool {
        *self == position.short()
    }
}

impl fmt::Display for PositionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08x}", self.seq, u32::from_be_bytes(self.prefix))
    }
}

impl FromStr for PositionRef {
    type Err = ParsePositionError;

    /// Reads exactly what [`Position`] writes: one spelling for one position.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = parse(text).ok_or(ParsePositionError)?;
        // Compared with its own rendering, so that "+7", "007" or upper case are not second names.
        if parsed.to_string() == text { Ok(parsed) } else { Err(ParsePositionError) }
    }
}

fn parse(text: &str) -> Option<PositionRef> {
    let (seq, prefix) = text.split_once('.')?;
    let seq = seq.parse().ok()?;
    let prefix = u32::from_str_radix(prefix, 16).ok()?.to_be_bytes();
    Some(PositionRef { seq, prefix })
}

/// The text is not of the form `48112.9f3c2ab1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePositionError;

impl fmt::Display for ParsePositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position is written as a number, a dot and eight lower-case hex digits")
    }
}

impl Error for ParsePositionError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        let mut digest = [7; 32];
        digest[..4].copy_from_slice(&[0x0f, 0x3c, 0x2a, 0xb1]);
        Position { seq: 48_112, digest }
    }

    #[test]
    fn a_written_position_is_read_back_and_recognised() {
        let text = position().to_string();
        assert_eq!(text, "48112.0f3c2ab1");
        let read: PositionRef = text.parse().unwrap();
        assert!(read.matches(&position()));
        assert!(!read.matches(&GENESIS));
        assert_eq!(GENESIS.to_string(), "0.00000000");
    }

    #[test]
    fn one_position_has_one_spelling() {
        let wrong = [
            "",
            ".",
            "48112",
            "48112.",
            ".0f3c2ab1",
            "048112.0f3c2ab1",
            "+48112.0f3c2ab1",
            "48112.F3C2AB1A",
            "48112.0f3c2ab",
            "48112.0f3c2ab12",
            "48112.+f3c2ab1",
            " 1.0f3c2ab1",
            "99999999999999999999.0f3c2ab1",
            "1.0f3c2ab1\n",
        ];
        for text in wrong {
            assert_eq!(text.parse::<PositionRef>(), Err(ParsePositionError), "{text:?}");
        }
    }
}
