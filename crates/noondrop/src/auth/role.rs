//! What a caller may be. The routes say which role may do what.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A caller's role.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Defines shops; belongs to none and names one with each request.
    Operator,
    /// Defines sales and items of a shop.
    Admin,
    /// The shop's own application: holds, confirms, cancels.
    Seller,
    /// One buyer, with his own holds only. Comes with a token, never with a secret.
    Buyer,
    /// Reads everything of a shop, changes nothing.
    Auditor,
    /// Works on queue entries.
    Worker,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] =
        [Self::Operator, Self::Admin, Self::Seller, Self::Buyer, Self::Auditor, Self::Worker];

    /// Its stable name.
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

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text is no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleError;

impl fmt::Display for RoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not one of operator, admin, seller, buyer, auditor, worker")
    }
}

impl std::error::Error for RoleError {}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(RoleError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("Admin".parse::<Role>(), Err(RoleError));
    }
}
