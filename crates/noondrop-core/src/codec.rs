//! Facts to bytes and back, strictly.
//!
//! minicbor skips what it does not know, and that would let an old program misread a newer log. So a row is decoded
//! and encoded again: bytes that do not come back the same hold something unknown, and the reader stops (RULES R12).

use alloc::vec::Vec;
use core::fmt;

use minicbor::{Decoder, Encode};

use crate::fact::{Entry, Fact, LEVEL, Private};

/// Why a row's blobs could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// Written at a level that this program does not know.
    Level(u16),
    /// Damaged, or of an unknown kind.
    Malformed,
    /// Readable, but with fields that this program does not know.
    UnknownFields,
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(level) => {
                write!(f, "the row is of format level {level}; this program reads up to {LEVEL}")
            }
            Self::Malformed => {
                f.write_str("the row holds a fact of an unknown kind, or is damaged")
            }
            Self::UnknownFields => {
                f.write_str("the row holds fields that this program does not know")
            }
        }
    }
}

impl core::error::Error for CodecError {}

/// Appends one fact.
pub fn encode_fact(fact: &Fact, into: &mut Vec<u8>) {
    minicbor::encode(fact, into).expect("writing to a vector cannot fail");
}

/// Appends the private texts of the fact at `index` of its row.
pub fn encode_private(index: u32, private: &Private, into: &mut Vec<u8>) {
    minicbor::encode((index, private), into).expect("writing to a vector cannot fail");
}

/// Reads a row's two blobs.
pub fn decode_row(level: u16, facts: &[u8], private: &[u8]) -> Result<Vec<Entry>, CodecError> {
    if !(1..=LEVEL).contains(&level) {
        return Err(CodecError::Level(level));
    }
    let mut entries: Vec<Entry> = decode_all::<Fact>(facts)?.into_iter().map(Entry::from).collect();
    for (index, texts) in decode_all::<(u32, Private)>(without_erased(private)?)? {
        let entry = entries.get_mut(index as usize).ok_or(CodecError::Malformed)?;
        entry.private = Some(texts);
    }
    Ok(entries)
}

/// Where texts were erased, the blob keeps its length: zeros stand at its end. No texts begin with one.
fn without_erased(private: &[u8]) -> Result<&[u8], CodecError> {
    if private.last() != Some(&0) {
        return Ok(private);
    }
    let mut decoder = Decoder::new(private);
    while decoder.position() < private.len() {
        let from = decoder.position();
        if private[from] == 0 {
            let erased = private[from..].iter().all(|byte| *byte == 0);
            return if erased { Ok(&private[..from]) } else { Err(CodecError::Malformed) };
        }
        decoder.skip().map_err(|_| CodecError::Malformed)?;
    }
    Ok(private)
}

/// Looks at a row's facts one by one, without their texts, and does not look for fields that this program does not know: for
/// who only seeks. What was found is to be read with [`decode_row`].
pub fn glance_at_row(
    level: u16,
    facts: &[u8],
    see: &mut dyn FnMut(&Fact),
) -> Result<(), CodecError> {
    if !(1..=LEVEL).contains(&level) {
        return Err(CodecError::Level(level));
    }
    let mut decoder = Decoder::new(facts);
    while decoder.position() < facts.len() {
        see(&decoder.decode().map_err(|_| CodecError::Malformed)?);
    }
    Ok(())
}

fn decode_all<'b, T>(bytes: &'b [u8]) -> Result<Vec<T>, CodecError>
where
    T: minicbor::Decode<'b, ()> + Encode<()>,
{
    let mut decoder = Decoder::new(bytes);
    let mut items = Vec::new();
    let mut again = Vec::with_capacity(256);
    while decoder.position() < bytes.len() {
        let from = decoder.position();
        let item: T = decoder.decode().map_err(|_| CodecError::Malformed)?;
        again.clear();
        minicbor::encode(&item, &mut again).expect("writing to a vector cannot fail");
        if again != bytes[from..decoder.position()] {
            return Err(CodecError::UnknownFields);
        }
        items.push(item);
    }
    Ok(items)
}
