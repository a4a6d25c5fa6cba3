//! Identities: names that callers choose, digests that stand for private texts, and hold ids.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};

use crate::limits::NAME_BYTES_MAX;
use crate::units::Seq;

/// A caller-chosen id: `[A-Za-z0-9._~-]{1,64}` (RFC 3986 "unreserved", safe in any URL).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// Why a text is no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameError;

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 to {NAME_BYTES_MAX} characters of A-Z a-z 0-9 . _ ~ -")
    }
}

impl core::error::Error for NameError {}

impl Name {
    /// Checks and takes a text.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if Self::is_valid(text) { Ok(Self(text.into())) } else { Err(NameError) }
    }

    /// Whether a text may be a name.
    #[must_use]
    pub fn is_valid(text: &str) -> bool {
        (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl core::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<C> Encode<C> for Name {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.str(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Name {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        Self::parse(d.str()?).map_err(|_| decode::Error::message("not a name"))
    }
}

/// 128 bits that stand for a text (buyer, reference, key …): a keyed hash, useless without the log's secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest16(pub [u8; 16]);

impl Digest16 {
    /// The first 64 bits, already uniform: a ready hash for an index.
    #[must_use]
    pub fn hash64(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight of sixteen bytes"))
    }
}

/// A text is no digest of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest16Error;

impl fmt::Display for Digest16Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not 32 hexadecimal digits")
    }
}

impl core::error::Error for Digest16Error {}

impl core::str::FromStr for Digest16 {
    type Err = Digest16Error;

    fn from_str(text: &str) -> Result<Self, Digest16Error> {
        // A sign is no digit, though a number may have one.
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| digits);
        number.map(|number| Self(number.to_be_bytes())).ok_or(Digest16Error)
    }
}

impl fmt::Debug for Digest16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Digest16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<C> Encode<C> for Digest16 {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Digest16 {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        let bytes = d.bytes()?;
        bytes.try_into().map(Self).map_err(|_| decode::Error::message("not 16 bytes"))
    }
}

/// The public id of a hold: the row that made it, its place there, and 80 bits that nobody can guess.
///
/// It carries its `seq`, so that a replica that is behind can catch up before it says "not found".
/// The place makes looking up one index away; it is folded with the secret bits, so that ids look opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId {
    /// The row that created the hold; below 2^48.
    pub seq: Seq,
    /// The hold's place among those that the row created.
    pub index: u16,
    /// 80 bits of a hash of the row's nonce.
    pub tag: [u8; 10],
}

const HOLD_PREFIX: &str = "hold_";
const HOLD_ID_BYTES: usize = 18;
const HOLD_ID_CHARS: usize = (HOLD_ID_BYTES * 8).div_ceil(5);
/// Crockford's base 32: no I, L, O, U, so that an id survives being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Why a text is no hold id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldIdError;

impl fmt::Display for HoldIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HOLD_PREFIX} and {HOLD_ID_CHARS} characters of base 32")
    }
}

impl core::error::Error for HoldIdError {}

impl HoldId {
    fn to_bytes(self) -> [u8; HOLD_ID_BYTES] {
        let mut bytes = [0; HOLD_ID_BYTES];
        bytes[..10].copy_from_slice(&self.tag);
        bytes[10..16].copy_from_slice(&self.seq.0.to_be_bytes()[2..]);
        bytes[16..].copy_from_slice(&self.index.to_be_bytes());
        Self::fold(&mut bytes);
        bytes
    }

    fn from_bytes(mut bytes: [u8; HOLD_ID_BYTES]) -> Self {
        Self::fold(&mut bytes);
        let mut seq = [0; 8];
        seq[2..].copy_from_slice(&bytes[10..16]);
        Self {
            seq: Seq(u64::from_be_bytes(seq)),
            index: u16::from_be_bytes([bytes[16], bytes[17]]),
            tag: bytes[..10].try_into().expect("ten of eighteen bytes"),
        }
    }

    /// Its own inverse: the place is xored with a hash of the secret bits. Not secrecy, only opacity.
    fn fold(bytes: &mut [u8; HOLD_ID_BYTES]) {
        let (tag, place) = bytes.split_at_mut(10);
        let mask = xxhash_rust::xxh3::xxh3_64(tag).to_le_bytes();
        for (byte, mask) in place.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.to_bytes();
        let mut text = [0u8; HOLD_ID_CHARS];
        let (mut bits, mut count, mut next) = (0u32, 0, bytes.iter());
        for slot in &mut text {
            if count < 5 {
                bits = (bits << 8) | u32::from(*next.next().unwrap_or(&0));
                count += 8;
            }
            count -= 5;
            *slot = ALPHABET[(bits >> count) as usize & 31];
        }
        f.write_str(HOLD_PREFIX)?;
        f.write_str(core::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl FromStr for HoldId {
    type Err = HoldIdError;

    fn from_str(text: &str) -> Result<Self, HoldIdError> {
        let digits = text.strip_prefix(HOLD_PREFIX).ok_or(HoldIdError)?;
        if digits.len() != HOLD_ID_CHARS {
            return Err(HoldIdError);
        }
        let mut bytes = [0u8; HOLD_ID_BYTES];
        let (mut bits, mut count, mut filled) = (0u32, 0, 0);
        for digit in digits.bytes() {
            let value = ALPHABET.iter().position(|&a| a == digit).ok_or(HoldIdError)?;
            bits = (bits << 5) | u32::try_from(value).map_err(|_| HoldIdError)?;
            count += 5;
            if count >= 8 {
                count -= 8;
                bytes[filled] = (bits >> count & 0xff) as u8;
                filled += 1;
            }
        }
        // One text per id: spare bits must be zero.
        if bits & ((1 << count) - 1) == 0 { Ok(Self::from_bytes(bytes)) } else { Err(HoldIdError) }
    }
}

impl<C> Encode<C> for HoldId {
    fn encode<W: Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.to_bytes())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for HoldId {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        let bytes = d.bytes()?;
        bytes.try_into().map(Self::from_bytes).map_err(|_| decode::Error::message("not a hold id"))
    }
}

/// What a caller may do; the names are those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Role {
    /// Runs the deployment: shops, and any shop's things.
    #[n(0)]
    Operator,
    /// Runs a shop: sales, items, everything of a seller.
    #[n(1)]
    Admin,
    /// The shop's own back end: holds for any buyer, confirms payments.
    #[n(2)]
    Seller,
    /// One buyer: his own holds only, never a confirm.
    #[n(3)]
    Buyer,
    /// Reads everything, changes nothing.
    #[n(4)]
    Auditor,
    /// Works off the queue of events.
    #[n(5)]
    Worker,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] =
        [Self::Operator, Self::Admin, Self::Seller, Self::Buyer, Self::Auditor, Self::Worker];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Seller => "seller",
            Self::Buyer => "buyer",
            Self::Auditor => "auditor",
            Self::Worker => "worker",
        }
    }
}

/// A private text and the digest that stands for it in facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digested {
    /// The keyed hash.
    pub digest: Digest16,
    /// The text itself: kept in memory and in the row's private blob, never in a fact.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn hold_ids_survive_text_and_only_canonical_text_is_taken() {
        for (seq, index) in [(1, 0), (48_112, 7), ((1 << 48) - 1, u16::MAX)] {
            let id = HoldId { seq: Seq(seq), index, tag: [7, 1, 250, 3, 4, 5, 6, 99, 8, 9] };
            let text = id.to_string();
            assert_eq!(text.len(), 5 + 29);
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(text.to_lowercase().parse::<HoldId>(), Err(HoldIdError));
            let mut other = text.clone();
            let last = other.pop().expect("not empty");
            let at = ALPHABET.iter().position(|&a| a == last as u8).expect("in the alphabet");
            other.push(ALPHABET[at ^ 1] as char);
            assert_eq!(other.parse::<HoldId>(), Err(HoldIdError), "spare bits must be zero");
        }
    }

    #[test]
    fn names_take_exactly_the_unreserved_characters() {
        for good in ["a", "A-1_2.3~", &"x".repeat(64)] {
            assert!(Name::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "ä", "a\0", &"x".repeat(65)] {
            assert_eq!(Name::parse(bad), Err(NameError), "{bad}");
        }
    }
}
