//! Keyed hashes: the only way from a private text or an idempotency key into a fact.

use crate::ids::{Digest16, Digested};

/// Makes keyed hashes under the log's secret. Cheap to copy; used at the door, off the sequencer.
#[derive(Clone)]
pub struct Digester {
    secret: [u8; 32],
}

/// What an idempotency key is scoped by (RULES R7).
#[derive(Clone, Copy, Debug)]
pub struct KeyScope<'a> {
    /// The shop.
    pub shop: &'a str,
    /// The principal's configured name, or issuer and subject; never the token.
    pub principal: &'a str,
    /// The operation's stable name.
    pub operation: &'a str,
    /// The id in the path, or empty.
    pub target: &'a str,
}

impl Digester {
    /// From the secret in the log's first fact.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// An idempotency key in its scope.
    #[must_use]
    pub fn key(&self, scope: KeyScope<'_>, key: &str) -> Digest16 {
        self.parts(&["key", scope.shop, scope.principal, scope.operation, scope.target, key])
    }

    /// A buyer of a shop.
    #[must_use]
    pub fn buyer(&self, shop: &str, text: &str) -> Digest16 {
        self.parts(&["buyer", shop, text])
    }

    /// A reference of a shop.
    #[must_use]
    pub fn reference(&self, shop: &str, text: &str) -> Digest16 {
        self.parts(&["reference", shop, text])
    }

    /// A payment reference of a shop.
    #[must_use]
    pub fn payment(&self, shop: &str, text: &str) -> Digest16 {
        self.parts(&["payment", shop, text])
    }

    /// Client facts.
    #[must_use]
    pub fn origin(&self, shop: &str, text: &str) -> Digest16 {
        self.parts(&["origin", shop, text])
    }

    /// A buyer with its digest.
    #[must_use]
    pub fn digested_buyer(&self, shop: &str, text: &str) -> Digested {
        Digested { digest: self.buyer(shop, text), text: text.into() }
    }

    /// Length-prefixed, so that no two lists of parts read alike.
    fn parts(&self, parts: &[&str]) -> Digest16 {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Digest16(
            hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes"),
        )
    }
}

impl core::fmt::Debug for Digester {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Digester(secret)")
    }
}
