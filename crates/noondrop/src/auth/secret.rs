//! Secrets of principals: `nd_<role>_` and 256 random bits in base 32. Kept and compared as hashes only.
//!
//! A fast hash is right here. A slow one protects secrets that people choose, because those can be guessed; nobody guesses
//! 256 random bits, however fast each guess is, and a slow hash would make every request slow and flooding cheap. This is
//! also why a secret that was not made here is refused: its bits might be few.

use std::fmt;

use data_encoding::{Encoding, HEXLOWER_PERMISSIVE};
use subtle::{Choice, ConstantTimeEq};

use super::role::Role;
use crate::entropy::{self, EntropyError};

const SECRET_BYTES: usize = 32;
const PREFIX: &str = "nd_";
const HASH_PREFIX: &str = "blake3:";

/// A secret in the clear: on its way to its owner, or from a caller. Never kept, never printed by `{:?}`.
#[derive(Clone)]
pub struct Secret {
    text: String,
    role: Role,
}

impl Secret {
    /// A new secret. The role in it is for the eye, and for whoever finds one where it should not be.
    pub fn generate(role: Role) -> Result<Self, EntropyError> {
        let bytes = entropy::random_bytes::<SECRET_BYTES>()?;
        Ok(Self { text: format!("{PREFIX}{role}_{}", base32().encode(&bytes)), role })
    }

    /// Takes a text that has the form of a secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, bits) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let role = role.parse().ok()?;
        let bytes = base32().decode(bits.as_bytes()).ok()?;
        (bytes.len() == SECRET_BYTES).then(|| Self { text: text.to_owned(), role })
    }

    /// Whether a text claims to be a secret, whatever follows.
    #[must_use]
    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The role that it was made for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The text, for its owner's eyes.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(blake3::hash(self.text.as_bytes()).as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_(hidden)", self.role)
    }
}

/// The hash of a secret. Compared in constant time only, so there is no `==`.
#[derive(Clone, Copy)]
pub struct SecretHash([u64; 4]);

impl SecretHash {
    /// From `blake3:` and 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(HASH_PREFIX)?;
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
        Some(Self::from_bytes(bytes.as_slice().try_into().ok()?))
    }

    fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        Self(words)
    }

    fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

impl ConstantTimeEq for SecretHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        let mut same = Choice::from(1);
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            same &= mine.ct_eq(theirs);
        }
        same
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HASH_PREFIX}{}", HEXLOWER_PERMISSIVE.encode(&self.to_bytes()))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blake3:(hidden)")
    }
}

/// RFC 4648 base 32, lower case, no padding: survives double clicks, URLs and being read aloud.
fn base32() -> Encoding {
    let mut specification = data_encoding::Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("32 different symbols are an encoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_secret_has_its_form() {
        let secret = Secret::generate(Role::Seller).unwrap();
        let text = secret.reveal();
        assert!(text.starts_with("nd_seller_"));
        assert_eq!(text.len(), "nd_seller_".len() + 52);
        assert_eq!(Secret::parse(text).unwrap().role(), Role::Seller);
    }

    #[test]
    fn other_texts_are_no_secrets() {
        let text = Secret::generate(Role::Admin).unwrap().reveal().to_owned();
        let short = &text[..text.len() - 1];
        let upper = text.to_uppercase();
        let role = text.replace("admin", "king");
        for wrong in ["", "nd_", "nd_admin_", "nd_admin_hunter2", short, &upper, &role] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_hash_goes_through_its_text() {
        let hash = Secret::generate(Role::Admin).unwrap().hash();
        let again = SecretHash::parse(&hash.to_string()).unwrap();
        assert!(bool::from(hash.ct_eq(&again)));
    }

    #[test]
    fn different_secrets_have_different_hashes() {
        let one = Secret::generate(Role::Admin).unwrap().hash();
        let two = Secret::generate(Role::Admin).unwrap().hash();
        assert!(!bool::from(one.ct_eq(&two)));
    }

    #[test]
    fn half_a_hash_is_none() {
        for wrong in
            ["", "blake3:", "blake3:00ff", &"0".repeat(64), &format!("sha256:{}", "0".repeat(64))]
        {
            assert!(SecretHash::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn debug_shows_neither_secret_nor_hash() {
        let secret = Secret::generate(Role::Admin).unwrap();
        assert_eq!(format!("{secret:?}"), "nd_admin_(hidden)");
        assert_eq!(format!("{:?}", secret.hash()), "blake3:(hidden)");
    }
}
