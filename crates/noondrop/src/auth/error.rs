//! Why a caller was not recognised. The precise reason is for the log; the caller gets one of three texts.

use std::fmt;

/// Not recognised: 401 `unauthenticated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// No `Authorization` header.
    Missing,
    /// More than one: which one counts would be a guess.
    Repeated,
    /// Not `Bearer` and one credential of a known shape.
    Malformed,
    /// Well-formed, but no secret of ours.
    UnknownSecret,
    /// One of ours, but its time is over.
    SecretExpired,
    /// A token that does not count.
    Token(TokenFault),
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// No issuer is configured.
    NoIssuer,
    /// Not three parts of base64url JSON, or an algorithm that we do not know, such as `none`.
    Malformed,
    /// The header names no key, or one that we do not have.
    UnknownKey,
    /// The header asks for another algorithm than the key's.
    WrongAlgorithm,
    /// The header asks for an extension that we do not know.
    UnknownExtension,
    /// The signature is not the key's.
    BadSignature,
    /// Signed by the key, but for another issuer.
    WrongIssuer,
    /// Meant for somebody else.
    WrongAudience,
    /// A claim that must be there is not.
    MissingClaim(&'static str),
    /// A claim is not of its type or outside its bound.
    BadClaim(&'static str),
    /// Too late.
    Expired,
    /// Too early.
    NotYetValid,
    /// The token's shop is not its issuer's.
    WrongShop,
}

impl AuthError {
    /// The stable code, with its page under `docs/errors`.
    pub const CODE: &'static str = "unauthenticated";

    /// What the caller may know. The same for an unknown and for an expired secret, and for every fault of a token but
    /// its time, which an honest client needs to know and which a forger cannot reach.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Missing => "Send one Authorization header: Bearer and a secret or a token.",
            Self::Repeated | Self::Malformed => {
                "Send exactly one Authorization header: Bearer, one space, a secret or a token."
            }
            Self::Token(TokenFault::Expired) => "The token has expired.",
            Self::Token(TokenFault::NotYetValid) => "The token is not valid yet.",
            Self::UnknownSecret | Self::SecretExpired | Self::Token(_) => {
                "The credential is not valid here."
            }
        }
    }
}

impl From<TokenFault> for AuthError {
    fn from(fault: TokenFault) -> Self {
        Self::Token(fault)
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no Authorization header"),
            Self::Repeated => f.write_str("more than one Authorization header"),
            Self::Malformed => f.write_str("a malformed Authorization header"),
            Self::UnknownSecret => f.write_str("an unknown secret"),
            Self::SecretExpired => f.write_str("an expired secret"),
            Self::Token(fault) => write!(f, "a token that does not count: {fault}"),
        }
    }
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoIssuer => f.write_str("no issuer is configured"),
            Self::Malformed => f.write_str("malformed, or of an unknown algorithm"),
            Self::UnknownKey => f.write_str("no such key"),
            Self::WrongAlgorithm => f.write_str("not the key's algorithm"),
            Self::UnknownExtension => f.write_str("a critical extension"),
            Self::BadSignature => f.write_str("a wrong signature"),
            Self::WrongIssuer => f.write_str("another issuer"),
            Self::WrongAudience => f.write_str("another audience"),
            Self::MissingClaim(claim) => write!(f, "no claim {claim}"),
            Self::BadClaim(claim) => write!(f, "the claim {claim} is out of bounds"),
            Self::Expired => f.write_str("expired"),
            Self::NotYetValid => f.write_str("not valid yet"),
            Self::WrongShop => f.write_str("another shop than the issuer's"),
        }
    }
}

impl std::error::Error for AuthError {}
impl std::error::Error for TokenFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_cannot_tell_an_expired_secret_from_an_unknown_one() {
        assert_eq!(AuthError::SecretExpired.detail(), AuthError::UnknownSecret.detail());
        assert_eq!(
            AuthError::Token(TokenFault::UnknownKey).detail(),
            AuthError::Token(TokenFault::BadSignature).detail()
        );
    }
}
