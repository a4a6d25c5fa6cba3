//! The shape of the configuration. What each setting means and its default stand in `config.default.toml`, once.
//!
//! No defaults here, except for what may be absent; no bounds (see [`check`](super::check)); no reading.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::auth::Role;
use crate::time::UnixSeconds;

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `[server]`
    pub server: ServerSettings,
    /// `[store]`
    pub store: StoreSettings,
    /// `[engine]`
    pub engine: EngineSettings,
    /// `[retention]`
    pub retention: RetentionSettings,
    /// `[limits]`
    pub limits: LimitSettings,
    /// `[log]`
    pub log: LogSettings,
    /// `[[principals]]`
    #[serde(default)]
    pub principals: Vec<PrincipalSettings>,
    /// `[[jwt]]`
    #[serde(default)]
    pub jwt: Vec<JwtSettings>,
}

/// `[server]`: how requests come in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port.
    #[serde(deserialize_with = "address_and_port")]
    pub listen: SocketAddr,
    /// Longest time for one request.
    pub request_timeout_ms: u64,
    /// Longest time for a request's head.
    pub header_timeout_ms: u64,
    /// Largest body.
    pub body_bytes_max: u64,
    /// Most connections at one time.
    pub connections_max: u64,
    /// Longest time that a stopping server finishes what it began.
    pub shutdown_grace_ms: u64,
    /// Whether `/metrics` asks for no secret.
    pub public_metrics: bool,
    /// Threads for HTTP; 0: one for each core.
    pub threads: u64,
}

/// `[store]`: where the log lives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// The data directory.
    pub path: PathBuf,
    /// Rows from one snapshot to the next.
    pub snapshot_every_rows: u64,
    /// Seconds from one snapshot to the next.
    pub snapshot_every_seconds: u64,
}

/// `[engine]`: how turns are made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSettings {
    /// Most commands in one turn.
    pub turn_commands_max: u64,
    /// Most bytes of facts in one turn.
    pub turn_bytes_max: u64,
    /// Most commands that wait.
    pub queue_max: u64,
    /// How long to look for work before sleeping.
    pub spin_us: u32,
}

/// `[retention]`: proposals for facts of the log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionSettings {
    /// How long a success keeps its key.
    pub success_keys_hours: u64,
    /// How long a refusal keeps its key.
    pub refusal_keys_seconds: u64,
    /// Most keys in memory.
    pub keys_max: u64,
}

/// `[limits]`: quotas against one caller; 0: none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Refusals a minute for one buyer.
    pub refusals_per_minute_per_buyer: u64,
    /// Refusals a minute for one principal.
    pub refusals_per_minute_per_principal: u64,
    /// Live holds of one buyer, over all sales of a shop.
    pub live_holds_per_buyer: u64,
}

/// `[log]`: the program's own log, not the ledger.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// For whom it is written.
    pub format: LogFormat,
    /// What is worth a line.
    pub level: String,
}

/// Who reads the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// People.
    Text,
    /// Machines: one JSON object a line.
    Json,
}

/// One of `[[principals]]`: a program or person with a secret.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalSettings {
    /// Its name, unique in its shop. Idempotency keys belong to it, so it outlives any secret.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Its shop; an operator has none, for anyone else none means `main`.
    pub shop: Option<String>,
    /// The secrets that count now.
    #[serde(default)]
    pub secrets: Vec<SecretSettings>,
}

/// One secret of a principal: its hash, or the file that holds it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSettings {
    /// `blake3:` and 64 hexadecimal digits.
    pub hash: Option<HiddenText>,
    /// A file with the secret itself.
    pub secret_file: Option<PathBuf>,
    /// From this time on it no longer counts.
    #[serde(default, deserialize_with = "time_in_quotes")]
    pub expires: Option<UnixSeconds>,
}

/// One of `[[jwt]]`: an issuer of buyers' tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtSettings {
    /// The shop of all its tokens; none: the token's claim says.
    pub shop: Option<String>,
    /// The claim `iss`, exactly.
    pub issuer: String,
    /// What the claim `aud` must be or hold.
    pub audience: String,
    /// How far the two clocks may be apart.
    #[serde(default = "default_leeway_seconds")]
    pub leeway_seconds: u64,
    /// The keys that count now.
    #[serde(default)]
    pub keys: Vec<JwtKeySettings>,
}

/// One key of an issuer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtKeySettings {
    /// The header `kid` that picks this key.
    pub kid: String,
    /// The one algorithm that it is for.
    pub alg: SigningAlgorithm,
    /// A public key, PEM.
    pub public_key: Option<String>,
    /// A file with a public key, PEM.
    pub public_key_file: Option<PathBuf>,
    /// A shared secret (HS256).
    pub secret: Option<HiddenText>,
    /// A file with a shared secret (HS256).
    pub secret_file: Option<PathBuf>,
}

/// How a buyer's token may be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SigningAlgorithm {
    /// RSA, PKCS #1 v1.5, SHA-256.
    RS256,
    /// ECDSA over P-256, SHA-256.
    ES256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// HMAC with SHA-256: both sides know the secret.
    HS256,
}

/// A text that is never printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct HiddenText(String);

impl HiddenText {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for use and not for printing.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

const fn default_leeway_seconds() -> u64 {
    30
}

fn address_and_port<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    from.deserialize_str(AddressVisitor)
}

struct AddressVisitor;

impl Visitor<'_> for AddressVisitor {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an IP address and a port, such as \"127.0.0.1:7878\" or \"[::1]:7878\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SocketAddr, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

fn time_in_quotes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<UnixSeconds>, D::Error> {
    from.deserialize_any(TimeVisitor).map(Some)
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = UnixSeconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time in quotes, such as \"2027-01-31T00:00:00Z\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<UnixSeconds, E> {
        parse_time(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// A time from its RFC 3339 text; none: it is no such text, or from before 1970.
#[must_use]
pub fn parse_time(text: &str) -> Option<UnixSeconds> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok().map(UnixSeconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_its_zone() {
        assert_eq!(parse_time("1970-01-02T00:00:00Z"), Some(UnixSeconds(86_400)));
        assert_eq!(parse_time("1970-01-02T01:00:00+01:00"), Some(UnixSeconds(86_400)));
        assert_eq!(parse_time("2027-01-31"), None);
        assert_eq!(parse_time("1969-12-31T00:00:00Z"), None);
    }

    #[test]
    fn a_hidden_text_is_not_printed() {
        let secrets = SecretSettings {
            hash: Some(HiddenText::new("blake3:00ff")),
            secret_file: None,
            expires: None,
        };
        assert!(!format!("{secrets:?}").contains("00ff"));
    }
}
