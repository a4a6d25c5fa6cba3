//! Every bound of the configuration. All problems are found at once, and each names its setting and its bound.
//!
//! Only what can be judged from the values alone: whether a key file can be read is found out by [`crate::auth`].

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use noondrop_core::Name;

use super::DEFAULT_SHOP;
use super::error::Problem;
use super::settings::{
    JwtKeySettings, JwtSettings, LimitSettings, PrincipalSettings, SecretSettings, Settings,
    SigningAlgorithm,
};
use crate::auth::{Role, SecretHash};
use crate::logging;

const HOUR_MS: u64 = 3_600_000;
const DAY_SECONDS: u64 = 86_400;
/// A quota beyond this is none; `0` says so more clearly.
const QUOTA_MAX: u64 = 1_000_000_000;
/// Longest issuer, audience or key id.
const JWT_TEXT_BYTES_MAX: usize = 256;
/// Widest gap between clocks that a token may have.
const LEEWAY_SECONDS_MAX: u64 = 300;

/// A number with its bounds.
struct Bound {
    setting: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
}

const fn bound(setting: &'static str, value: u64, range: RangeInclusive<u64>) -> Bound {
    Bound { setting, value, range }
}

/// Every problem, in the order of the file.
#[must_use]
pub fn check(settings: &Settings) -> Vec<Problem> {
    let mut problems: Vec<Problem> = bounds(settings)
        .iter()
        .chain(&quotas(&settings.limits))
        .filter_map(out_of_bounds)
        .collect();
    problems.extend(texts(settings));
    problems.extend(principals(&settings.principals));
    problems.extend(issuers(&settings.jwt));
    problems
}

fn bounds(settings: &Settings) -> Vec<Bound> {
    let Settings { server, store, engine, retention, .. } = settings;
    vec![
        bound("server.request_timeout_ms", server.request_timeout_ms, 100..=600_000),
        bound("server.header_timeout_ms", server.header_timeout_ms, 100..=600_000),
        bound("server.body_bytes_max", server.body_bytes_max, 1_024..=16_777_216),
        bound("server.connections_max", server.connections_max, 1..=1_000_000),
        bound("server.shutdown_grace_ms", server.shutdown_grace_ms, 0..=HOUR_MS),
        bound("server.threads", server.threads, 0..=1_024),
        bound("store.snapshot_every_rows", store.snapshot_every_rows, 100..=1_000_000_000),
        bound("store.snapshot_every_seconds", store.snapshot_every_seconds, 1..=30 * DAY_SECONDS),
        bound("engine.turn_commands_max", engine.turn_commands_max, 1..=65_535),
        bound("engine.turn_bytes_max", engine.turn_bytes_max, 65_536..=67_108_864),
        bound("engine.queue_max", engine.queue_max, 2..=16_777_216),
        bound("engine.spin_us", engine.spin_us.into(), 0..=10_000),
        bound("retention.success_keys_hours", retention.success_keys_hours, 1..=8_760),
        bound("retention.refusal_keys_seconds", retention.refusal_keys_seconds, 60..=DAY_SECONDS),
        bound("retention.keys_max", retention.keys_max, 1_000..=1_000_000_000),
    ]
}

fn quotas(limits: &LimitSettings) -> Vec<Bound> {
    let any = 0..=QUOTA_MAX;
    vec![
        bound(
            "limits.refusals_per_minute_per_buyer",
            limits.refusals_per_minute_per_buyer,
            any.clone(),
        ),
        bound(
            "limits.refusals_per_minute_per_principal",
            limits.refusals_per_minute_per_principal,
            any.clone(),
        ),
        bound("limits.live_holds_per_buyer", limits.live_holds_per_buyer, any.clone()),
    ]
}

fn out_of_bounds(bound: &Bound) -> Option<Problem> {
    let Bound { setting, value, range } = bound;
    let message = format!("is {value}; it must be from {} to {}", range.start(), range.end());
    (!range.contains(value)).then(|| Problem::new(*setting, message))
}

fn texts(settings: &Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    if settings.store.path.as_os_str().is_empty() {
        problems.push(Problem::new("store.path", "is empty; it must name a directory"));
    }
    if let Err(error) = logging::parse_level(&settings.log.level) {
        problems.push(Problem::new("log.level", error.to_string()));
    }
    problems
}

fn principals(principals: &[PrincipalSettings]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, principal) in principals.iter().enumerate() {
        let at = format!("principals.{place}");
        problems.extend(principal_itself(&at, principal));
        let shop = match principal.role {
            Role::Operator => None,
            _ => Some(principal.shop.as_deref().unwrap_or(DEFAULT_SHOP)),
        };
        if !seen.insert((shop, principal.name.as_str())) {
            let message = format!("is {:?} twice in one shop; names are unique", principal.name);
            problems.push(Problem::new(format!("{at}.name"), message));
        }
        for (nth, secret) in principal.secrets.iter().enumerate() {
            problems.extend(secret_itself(&format!("{at}.secrets.{nth}"), secret));
        }
    }
    problems
}

fn principal_itself(at: &str, principal: &PrincipalSettings) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(not_a_name(&format!("{at}.name"), &principal.name));
    if let Some(shop) = &principal.shop {
        problems.extend(not_a_name(&format!("{at}.shop"), shop));
    }
    if principal.role == Role::Operator && principal.shop.is_some() {
        let message = "is set, but an operator belongs to no shop; leave it out";
        problems.push(Problem::new(format!("{at}.shop"), message));
    }
    if principal.role == Role::Buyer {
        let message = "is buyer, but buyers have no secrets; they come with a token, see [[jwt]]";
        problems.push(Problem::new(format!("{at}.role"), message));
    }
    if principal.secrets.is_empty() {
        let message = "is empty; a principal needs at least one secret";
        problems.push(Problem::new(format!("{at}.secrets"), message));
    }
    problems
}

fn secret_itself(at: &str, secret: &SecretSettings) -> Option<Problem> {
    match (&secret.hash, &secret.secret_file) {
        (Some(hash), None) => SecretHash::parse(hash.reveal()).is_none().then(|| {
            let message = "must be \"blake3:\" and 64 hexadecimal digits";
            Problem::new(format!("{at}.hash"), message)
        }),
        (None, Some(_)) => None,
        _ => Some(Problem::new(at, "needs either a hash or a secret_file")),
    }
}

fn issuers(issuers: &[JwtSettings]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, issuer) in issuers.iter().enumerate() {
        let at = format!("jwt.{place}");
        problems.extend(issuer_itself(&at, issuer));
        for (nth, key) in issuer.keys.iter().enumerate() {
            let at = format!("{at}.keys.{nth}");
            problems.extend(key_itself(&at, key));
            if !seen.insert((issuer.issuer.as_str(), key.kid.as_str())) {
                let message =
                    format!("is {:?} twice for one issuer; it must pick one key", key.kid);
                problems.push(Problem::new(format!("{at}.kid"), message));
            }
        }
    }
    problems
}

fn issuer_itself(at: &str, issuer: &JwtSettings) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(shop) = &issuer.shop {
        problems.extend(not_a_name(&format!("{at}.shop"), shop));
    }
    problems.extend(not_a_text(&format!("{at}.issuer"), &issuer.issuer));
    problems.extend(not_a_text(&format!("{at}.audience"), &issuer.audience));
    if issuer.leeway_seconds > LEEWAY_SECONDS_MAX {
        let message =
            format!("is {}; it must be from 0 to {LEEWAY_SECONDS_MAX}", issuer.leeway_seconds);
        problems.push(Problem::new(format!("{at}.leeway_seconds"), message));
    }
    if issuer.keys.is_empty() {
        problems.push(Problem::new(format!("{at}.keys"), "is empty; no token could be checked"));
    }
    problems
}

fn key_itself(at: &str, key: &JwtKeySettings) -> Vec<Problem> {
    let public = usize::from(key.public_key.is_some()) + usize::from(key.public_key_file.is_some());
    let shared = usize::from(key.secret.is_some()) + usize::from(key.secret_file.is_some());
    let fits = match key.alg {
        SigningAlgorithm::HS256 => (public, shared) == (0, 1),
        SigningAlgorithm::RS256 | SigningAlgorithm::ES256 | SigningAlgorithm::EdDsa => {
            (public, shared) == (1, 0)
        }
    };
    let mut problems: Vec<Problem> =
        not_a_text(&format!("{at}.kid"), &key.kid).into_iter().collect();
    if !fits {
        let message = "needs exactly one of secret and secret_file for HS256, \
                       exactly one of public_key and public_key_file for any other algorithm";
        problems.push(Problem::new(at, message));
    }
    problems
}

fn not_a_name(setting: &str, text: &str) -> Option<Problem> {
    Name::parse(text)
        .err()
        .map(|error| Problem::new(setting, format!("is {text:?}; it must be {error}")))
}

fn not_a_text(setting: &str, text: &str) -> Option<Problem> {
    let fits = (1..=JWT_TEXT_BYTES_MAX).contains(&text.len());
    (!fits).then(|| {
        let message = format!("has {} bytes; it must have 1 to {JWT_TEXT_BYTES_MAX}", text.len());
        Problem::new(setting, message)
    })
}
