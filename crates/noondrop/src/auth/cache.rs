//! Tokens whose signature was checked before, so that a buyer who presses again does not cost a signature check again.
//!
//! Bounded: each part keeps a young and an old half, and a full young half becomes the old one. So nothing is searched for
//! a victim, and what is in use moves back to the young half. Only tokens that counted are kept: a flood of forged ones
//! cannot push them out. What is kept is a digest of the token and the identity, not the token.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::identity::Identity;
use super::token::Verified;
use crate::time::UnixSeconds;

const PARTS: usize = 16;

type Digest = [u8; 32];

/// Checked tokens.
#[derive(Debug)]
pub struct TokenCache {
    parts: [Mutex<Part>; PARTS],
    young_max: usize,
}

#[derive(Debug, Default)]
struct Part {
    young: HashMap<Digest, Verified>,
    old: HashMap<Digest, Verified>,
}

impl TokenCache {
    /// A cache of at most so many tokens, give or take the rounding to its parts.
    #[must_use]
    pub fn new(tokens_max: usize) -> Self {
        let young_max = (tokens_max / PARTS / 2).max(1);
        Self { parts: Default::default(), young_max }
    }

    /// The buyer of a token that was checked before and still counts at a time.
    #[must_use]
    pub fn find(&self, token: &str, at: UnixSeconds) -> Option<Arc<Identity>> {
        let digest = digest(token);
        let found = self.with_part(&digest, |part| part.find(&digest, self.young_max))?;
        (at < found.until).then_some(found.identity)
    }

    /// Keeps a token that was just checked.
    pub fn keep(&self, token: &str, verified: Verified) {
        let digest = digest(token);
        self.with_part(&digest, |part| part.insert(digest, verified, self.young_max));
    }

    fn with_part<T>(&self, digest: &Digest, work: impl FnOnce(&mut Part) -> T) -> T {
        let part = &self.parts[usize::from(digest[0]) % PARTS];
        // A panic while the lock was held can at worst have lost an entry.
        work(&mut part.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Part {
    fn find(&mut self, digest: &Digest, young_max: usize) -> Option<Verified> {
        if let Some(found) = self.young.get(digest) {
            return Some(found.clone());
        }
        let found = self.old.remove(digest)?;
        self.insert(*digest, found.clone(), young_max);
        Some(found)
    }

    fn insert(&mut self, digest: Digest, verified: Verified, young_max: usize) {
        if self.young.len() >= young_max {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(digest, verified);
    }
}

fn digest(token: &str) -> Digest {
    *blake3::hash(token.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Role;

    fn verified(name: &str) -> Verified {
        let identity = Identity {
            shop: Some("main".into()),
            name: name.into(),
            role: Role::Buyer,
            buyer: Some(name.into()),
            issuer: Some("issuer".into()),
        };
        Verified { identity: Arc::new(identity), until: UnixSeconds(100) }
    }

    fn len(cache: &TokenCache) -> usize {
        let parts = cache.parts.iter().map(|part| part.lock().unwrap());
        parts.map(|part| part.young.len() + part.old.len()).sum()
    }

    #[test]
    fn a_kept_token_counts_until_its_time() {
        let cache = TokenCache::new(64);
        cache.keep("a.b.c", verified("cus_1"));
        assert_eq!(&*cache.find("a.b.c", UnixSeconds(99)).unwrap().name, "cus_1");
        assert!(cache.find("a.b.c", UnixSeconds(100)).is_none());
        assert!(cache.find("a.b.d", UnixSeconds(0)).is_none());
    }

    #[test]
    fn the_cache_does_not_grow_beyond_its_bound() {
        let cache = TokenCache::new(64);
        for nth in 0..10_000 {
            cache.keep(&format!("token {nth}"), verified("cus_1"));
        }
        assert!(len(&cache) <= 64, "{}", len(&cache));
    }

    #[test]
    fn a_token_in_use_stays() {
        let cache = TokenCache::new(64);
        cache.keep("hot", verified("cus_hot"));
        for nth in 0..10_000 {
            cache.keep(&format!("token {nth}"), verified("cus_1"));
            assert!(cache.find("hot", UnixSeconds(0)).is_some(), "lost after {nth}");
        }
    }
}
