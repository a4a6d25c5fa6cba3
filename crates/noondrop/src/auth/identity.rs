//! Who is calling, once that is known. Never the credential itself.

use std::sync::Arc;

use super::role::Role;

/// A caller.
///
/// Cheap to clone. Idempotency keys are scoped by shop and name (and issuer), never by secret or token, so that a retry
/// after a rotated secret or with a fresh token still finds its first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The shop that the credential names; none for an operator, who names one with each request.
    pub shop: Option<Arc<str>>,
    /// The principal's name; for a buyer with a token, the token's subject.
    pub name: Arc<str>,
    /// What he may do.
    pub role: Role,
    /// Whose holds these are: the token's subject. None for principals, who may act for any buyer of their shop.
    pub buyer: Option<Arc<str>>,
    /// Who signed the token; none for principals.
    pub issuer: Option<Arc<str>>,
}
