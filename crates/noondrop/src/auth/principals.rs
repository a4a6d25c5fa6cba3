//! The principals and their live secrets; who a secret belongs to, without telling by the time it takes.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::error::AuthError;
use super::identity::Identity;
use super::secret::{Secret, SecretHash};
use crate::time::UnixSeconds;

/// One secret of somebody.
#[derive(Debug)]
struct Entry {
    hash: SecretHash,
    expires: Option<UnixSeconds>,
    identity: Arc<Identity>,
}

/// Every secret that counts.
#[derive(Debug, Default)]
pub struct Principals {
    entries: Vec<Entry>,
}

impl Principals {
    /// Adds one secret of a principal; a principal may have several.
    pub fn add(
        &mut self,
        identity: &Arc<Identity>,
        hash: SecretHash,
        expires: Option<UnixSeconds>,
    ) {
        self.entries.push(Entry { hash, expires, identity: Arc::clone(identity) });
    }

    /// Whose secret this is.
    ///
    /// Every entry is compared, found or not: no early end says how far a guess got or which place it matched.
    pub fn identify(&self, secret: &Secret, at: UnixSeconds) -> Result<Arc<Identity>, AuthError> {
        let hash = secret.hash();
        let mut found = None;
        for entry in &self.entries {
            if bool::from(entry.hash.ct_eq(&hash)) {
                found = Some(entry);
            }
        }
        let entry = found.ok_or(AuthError::UnknownSecret)?;
        if entry.expires.is_some_and(|expires| expires <= at) {
            return Err(AuthError::SecretExpired);
        }
        Ok(Arc::clone(&entry.identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Role;

    fn identity(name: &str) -> Arc<Identity> {
        Arc::new(Identity {
            shop: Some("main".into()),
            name: name.into(),
            role: Role::Seller,
            buyer: None,
            issuer: None,
        })
    }

    fn secret() -> Secret {
        Secret::generate(Role::Seller).unwrap()
    }

    #[test]
    fn each_of_several_live_secrets_counts() {
        let (one, two, other) = (secret(), secret(), secret());
        let mut principals = Principals::default();
        principals.add(&identity("app"), one.hash(), None);
        principals.add(&identity("app"), two.hash(), None);
        principals.add(&identity("till"), other.hash(), None);
        let name = |secret| principals.identify(secret, UnixSeconds(0)).unwrap().name.to_string();
        assert_eq!([name(&one), name(&two), name(&other)], ["app", "app", "till"]);
    }

    #[test]
    fn a_secret_ends_at_its_time() {
        let secret = secret();
        let mut principals = Principals::default();
        principals.add(&identity("app"), secret.hash(), Some(UnixSeconds(100)));
        assert!(principals.identify(&secret, UnixSeconds(99)).is_ok());
        assert_eq!(principals.identify(&secret, UnixSeconds(100)), Err(AuthError::SecretExpired));
    }

    #[test]
    fn a_stranger_is_not_known() {
        let mut principals = Principals::default();
        principals.add(&identity("app"), secret().hash(), None);
        let stranger = principals.identify(&secret(), UnixSeconds(0));
        assert_eq!(stranger, Err(AuthError::UnknownSecret));
    }
}
