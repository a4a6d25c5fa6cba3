//! Who is calling: principals by a secret, buyers by a signed token. What a caller may do is for the routes to say.
//!
//! # Layout
//!
//! * [`authenticator`]: from a request's headers to an [`Identity`]; the one entry
//! * [`principals`] · [`secret`]: secrets, their hashes, and finding a principal without telling which
//! * [`token`]: JSON Web Tokens of buyers · [`claims`]: what they say · [`cache`]: those already checked
//! * [`mod@bootstrap`]: the admin secret of a first start, and the addresses that need principals
//! * [`role`] · [`identity`] · [`error`]
//!
//! A caller learns only that he was not recognised; why is for the log.

pub mod authenticator;
pub mod bootstrap;
pub mod cache;
pub mod claims;
pub mod error;
pub mod identity;
pub mod principals;
pub mod role;
pub mod secret;
pub mod token;

pub use authenticator::Authenticator;
pub use bootstrap::{
    BootstrapAdmin, BootstrapError, bootstrap, refuse_non_loopback_without_principals,
};
pub use error::{AuthError, TokenFault};
pub use identity::Identity;
pub use role::Role;
pub use secret::{Secret, SecretHash};
