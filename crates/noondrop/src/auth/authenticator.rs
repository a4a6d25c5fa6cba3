//! From a request's headers to who is calling: the one entry of [`crate::auth`].

use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::bootstrap::BootstrapAdmin;
use super::cache::TokenCache;
use super::claims::Expected;
use super::error::AuthError;
use super::identity::Identity;
use super::principals::Principals;
use super::role::Role;
use super::secret::{Secret, SecretHash};
use super::token::{Issuer, KeyText, TokenKey, Tokens};
use crate::config::{
    ConfigError, DEFAULT_SHOP, HiddenText, JwtKeySettings, JwtSettings, PrincipalSettings, Problem,
    SecretSettings, Settings,
};
use crate::time::{self, UnixSeconds};

/// Tokens whose check is remembered; about 300 bytes each.
const CACHED_TOKENS_MAX: usize = 65_536;
/// Longest credential: a token with a large RSA key and many claims has about 2 KiB.
const CREDENTIAL_BYTES_MAX: usize = 8_192;
const SCHEME: &str = "Bearer";

/// Knows every credential that counts. Made once at the start and shared.
#[derive(Debug)]
pub struct Authenticator {
    principals: Principals,
    tokens: Tokens,
    checked: TokenCache,
}

impl Authenticator {
    /// Reads every secret and key that the configuration names; all problems at once.
    ///
    /// The admin of a first start counts where he is given, that is where no principal is configured.
    pub fn new(settings: &Settings, admin: Option<&BootstrapAdmin>) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let mut principals = Principals::default();
        for (place, principal) in settings.principals.iter().enumerate() {
            add_principal(&mut principals, place, principal, &mut problems);
        }
        if let Some(admin) = admin {
            principals.add(&Arc::new(admin.identity()), admin.hash(), None);
        }
        let issuers = settings.jwt.iter().enumerate();
        let issuers = issuers.map(|(place, jwt)| issuer(place, jwt, &mut problems)).collect();
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems));
        }
        let checked = TokenCache::new(CACHED_TOKENS_MAX);
        Ok(Self { principals, tokens: Tokens::new(issuers), checked })
    }

    /// Who is calling, now.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Identity>, AuthError> {
        self.authenticate_at(headers, time::now())
    }

    /// Who is calling, at a time.
    pub fn authenticate_at(
        &self,
        headers: &HeaderMap,
        at: UnixSeconds,
    ) -> Result<Arc<Identity>, AuthError> {
        let credential = credential(headers)?;
        if Secret::looks_like_one(credential) {
            let secret = Secret::parse(credential).ok_or(AuthError::Malformed)?;
            return self.principals.identify(&secret, at);
        }
        self.buyer(credential, at)
    }

    fn buyer(&self, token: &str, at: UnixSeconds) -> Result<Arc<Identity>, AuthError> {
        if token.matches('.').count() != 2 {
            return Err(AuthError::Malformed);
        }
        if let Some(identity) = self.checked.find(token, at) {
            return Ok(identity);
        }
        let verified = self.tokens.verify(token, at)?;
        let identity = Arc::clone(&verified.identity);
        self.checked.keep(token, verified);
        Ok(identity)
    }
}

fn credential(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() {
        return Err(AuthError::Repeated);
    }
    let text = value.to_str().map_err(|_| AuthError::Malformed)?;
    let (scheme, credential) = text.split_once(' ').ok_or(AuthError::Malformed)?;
    let fits = scheme.eq_ignore_ascii_case(SCHEME)
        && (1..=CREDENTIAL_BYTES_MAX).contains(&credential.len())
        && credential.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if fits { Ok(credential) } else { Err(AuthError::Malformed) }
}

fn add_principal(
    principals: &mut Principals,
    place: usize,
    settings: &PrincipalSettings,
    problems: &mut Vec<Problem>,
) {
    let identity = Arc::new(principal_identity(settings));
    for (nth, secret) in settings.secrets.iter().enumerate() {
        match secret_hash(secret, settings.role) {
            Ok(hash) => principals.add(&identity, hash, secret.expires),
            Err(message) => {
                problems.push(Problem::new(format!("principals.{place}.secrets.{nth}"), message));
            }
        }
    }
}

fn principal_identity(settings: &PrincipalSettings) -> Identity {
    let shop = match settings.role {
        Role::Operator => None,
        _ => Some(settings.shop.as_deref().unwrap_or(DEFAULT_SHOP).into()),
    };
    Identity {
        shop,
        name: settings.name.as_str().into(),
        role: settings.role,
        buyer: None,
        issuer: None,
    }
}

fn secret_hash(settings: &SecretSettings, role: Role) -> Result<SecretHash, String> {
    if let Some(path) = &settings.secret_file {
        return secret_of_file(path, role).map(|secret| secret.hash());
    }
    let hash = settings.hash.as_ref().and_then(|hash| SecretHash::parse(hash.reveal()));
    hash.ok_or_else(|| "needs either a hash or a secret_file".to_owned())
}

fn secret_of_file(path: &Path, role: Role) -> Result<Secret, String> {
    let text = read_file(path)?;
    match Secret::parse(&text) {
        Some(secret) if secret.role() == role => Ok(secret),
        Some(secret) => {
            Err(format!("is a secret for the role {} in {}", secret.role(), path.display()))
        }
        None => Err(format!(
            "is no secret in {}; make one with `noondrop principal add`",
            path.display()
        )),
    }
}

fn issuer(place: usize, settings: &JwtSettings, problems: &mut Vec<Problem>) -> Issuer {
    let mut keys = Vec::new();
    for (nth, key) in settings.keys.iter().enumerate() {
        match token_key(key) {
            Ok(key) => keys.push(key),
            Err(message) => {
                problems.push(Problem::new(format!("jwt.{place}.keys.{nth}"), message));
            }
        }
    }
    let expected = Expected {
        issuer: settings.issuer.clone(),
        audience: settings.audience.clone(),
        shop: settings.shop.clone(),
        leeway_seconds: settings.leeway_seconds,
    };
    Issuer { expected, keys }
}

fn token_key(settings: &JwtKeySettings) -> Result<TokenKey, String> {
    let text = key_text(settings)?;
    let key = KeyText { algorithm: settings.alg, text: &text };
    TokenKey::new(&settings.kid, &key).map_err(str::to_owned)
}

fn key_text(settings: &JwtKeySettings) -> Result<String, String> {
    if let Some(path) = settings.public_key_file.as_ref().or(settings.secret_file.as_ref()) {
        return read_file(path);
    }
    let text = settings.public_key.as_deref();
    let text = text.or_else(|| settings.secret.as_ref().map(HiddenText::reveal));
    text.map(str::to_owned).ok_or_else(|| "has no key".to_owned())
}

/// A file's text without the line end that editors add.
fn read_file(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("names {}, which could not be read: {error}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
#[path = "authenticator_tests.rs"]
mod tests;
