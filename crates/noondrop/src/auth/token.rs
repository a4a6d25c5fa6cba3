//! JSON Web Tokens of buyers: the key by its id, the algorithm by the key, never by the token.
//!
//! A token's header is its sender's text. It may pick a key; it may not say how the key is used (RFC 8725, section 3.1):
//! otherwise a public RSA key, which everybody has, would serve as an HMAC secret.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};

use super::claims::{Accepted, Claims, Expected};
use super::error::TokenFault;
use super::identity::Identity;
use super::role::Role;
use crate::config::SigningAlgorithm;
use crate::time::UnixSeconds;

/// Fewest bytes of a shared secret: as many as the hash has (RFC 7518, section 3.2).
const SHARED_SECRET_BYTES_MIN: usize = 32;
const P256_POINT_BYTES: usize = 65;
const ED25519_KEY_BYTES: usize = 32;

/// Key material of one key, read but not yet looked at.
#[derive(Debug)]
pub struct KeyText<'a> {
    /// The algorithm that the configuration pins.
    pub algorithm: SigningAlgorithm,
    /// PEM of a public key, or a shared secret.
    pub text: &'a str,
}

/// One key of an issuer.
#[derive(Debug)]
pub struct TokenKey {
    kid: String,
    key: DecodingKey,
    validation: Validation,
}

impl TokenKey {
    /// A key for one algorithm; the error says what is wrong with it, without quoting it.
    pub fn new(kid: &str, key: &KeyText<'_>) -> Result<Self, &'static str> {
        let decoding = decoding_key(key)?;
        Ok(Self { kid: kid.to_owned(), key: decoding, validation: signature_only(key.algorithm) })
    }
}

/// One issuer of buyers' tokens.
#[derive(Debug)]
pub struct Issuer {
    /// What its tokens must say.
    pub expected: Expected,
    /// The keys that count now.
    pub keys: Vec<TokenKey>,
}

/// Every issuer.
#[derive(Debug, Default)]
pub struct Tokens {
    issuers: Vec<Issuer>,
}

/// A token that counts.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The buyer.
    pub identity: Arc<Identity>,
    /// From this time on the token no longer counts.
    pub until: UnixSeconds,
}

impl Tokens {
    /// These issuers.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>) -> Self {
        Self { issuers }
    }

    /// Checks a token: signature first, then what it says.
    ///
    /// Two issuers may use one key id, so each key with that id is tried; only its own issuer's claims count for it.
    pub fn verify(&self, token: &str, at: UnixSeconds) -> Result<Verified, TokenFault> {
        if self.issuers.is_empty() {
            return Err(TokenFault::NoIssuer);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenFault::Malformed)?;
        let kid = checked_header(&header)?;
        let mut fault = TokenFault::UnknownKey;
        for issuer in &self.issuers {
            for key in issuer.keys.iter().filter(|key| key.kid == kid) {
                match verify_with(issuer, key, token, at) {
                    Ok(verified) => return Ok(verified),
                    Err(found) => fault = found,
                }
            }
        }
        Err(fault)
    }
}

fn checked_header(header: &Header) -> Result<&str, TokenFault> {
    if header.crit.is_some() {
        return Err(TokenFault::UnknownExtension);
    }
    header.kid.as_deref().ok_or(TokenFault::UnknownKey)
}

fn verify_with(
    issuer: &Issuer,
    key: &TokenKey,
    token: &str,
    at: UnixSeconds,
) -> Result<Verified, TokenFault> {
    let data = jsonwebtoken::decode::<Claims>(token, &key.key, &key.validation)
        .map_err(|error| fault_of(error.kind()))?;
    let accepted = data.claims.accept(&issuer.expected, at)?;
    let until = accepted.until;
    Ok(Verified { identity: Arc::new(identity(accepted, &issuer.expected.issuer)), until })
}

fn identity(accepted: Accepted, issuer: &str) -> Identity {
    let subject: Arc<str> = accepted.subject.into();
    Identity {
        shop: Some(accepted.shop.into()),
        name: Arc::clone(&subject),
        role: Role::Buyer,
        buyer: Some(subject),
        issuer: Some(issuer.into()),
    }
}

fn fault_of(kind: &ErrorKind) -> TokenFault {
    match kind {
        ErrorKind::InvalidAlgorithm => TokenFault::WrongAlgorithm,
        ErrorKind::InvalidSignature => TokenFault::BadSignature,
        _ => TokenFault::Malformed,
    }
}

/// The library checks the signature; [`Claims::accept`] checks what is said, at a time that is an argument.
fn signature_only(algorithm: SigningAlgorithm) -> Validation {
    let mut validation = Validation::new(match algorithm {
        SigningAlgorithm::RS256 => Algorithm::RS256,
        SigningAlgorithm::ES256 => Algorithm::ES256,
        SigningAlgorithm::EdDsa => Algorithm::EdDSA,
        SigningAlgorithm::HS256 => Algorithm::HS256,
    });
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

fn decoding_key(key: &KeyText<'_>) -> Result<DecodingKey, &'static str> {
    let pem = key.text.as_bytes();
    match key.algorithm {
        SigningAlgorithm::HS256 => shared_secret(key.text),
        _ if key.text.contains("PRIVATE KEY") => {
            Err("is a private key; only the issuer may have that, give the public one")
        }
        SigningAlgorithm::RS256 => {
            DecodingKey::from_rsa_pem(pem).map_err(|_| "is no RSA public key in PEM")
        }
        SigningAlgorithm::ES256 => DecodingKey::from_ec_pem(pem)
            .ok()
            .filter(|key| has_bytes(key, P256_POINT_BYTES))
            .ok_or("is no P-256 public key in PEM"),
        SigningAlgorithm::EdDsa => DecodingKey::from_ed_pem(pem)
            .ok()
            .filter(|key| has_bytes(key, ED25519_KEY_BYTES))
            .ok_or("is no Ed25519 public key in PEM"),
    }
}

fn has_bytes(key: &DecodingKey, wanted: usize) -> bool {
    key.try_get_as_bytes().is_ok_and(|bytes| bytes.len() == wanted)
}

fn shared_secret(text: &str) -> Result<DecodingKey, &'static str> {
    if text.contains("-----BEGIN") {
        return Err(
            "is a PEM, but HS256 needs a shared secret: a public key is known to everybody",
        );
    }
    if text.len() < SHARED_SECRET_BYTES_MIN {
        return Err("is shorter than 32 bytes");
    }
    DecodingKey::from_secret(text.as_bytes()).map_err(|_| "is no shared secret")
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
