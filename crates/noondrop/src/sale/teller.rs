//! The conversation with a running server: requests that may be sent again, answers read as JSON, refusals as they name
//! themselves.
//!
//! Each request either carries an idempotency key, or a version that it starts from, or says the same again harmlessly. So
//! after a cut connection it is simply sent again, and the answer says whether that happened.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::client::{Answer, Connection};

/// How often a request is sent before it counts as failed.
const TRIES: u32 = 12;
const PAUSE_MS: u64 = 50;
const PAUSE_MS_MAX: u64 = 2_000;
/// Longest wait for an answer: a hall of 200,000 seats takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// JSON; empty: none.
    pub body: &'a str,
    /// The version that a change starts from; 0: there is none yet.
    pub if_match: Option<u64>,
    /// Idempotency key.
    pub key: Option<&'a str>,
}

/// A successful answer.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its body.
    pub value: Value,
    /// It came from the record: nothing was done now.
    pub replayed: bool,
    /// It was sent more than once, because it got no answer.
    pub repeated: bool,
}

/// An answer that is no success.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Method and path.
    pub call: String,
    /// Its status.
    pub status: u16,
    /// Its body.
    pub value: Value,
    /// It came from the record.
    pub replayed: bool,
    /// It was sent more than once, because it got no answer.
    pub repeated: bool,
}

impl Refused {
    /// The code of the refusal.
    #[must_use]
    pub fn code(&self) -> &str {
        self.value["code"].as_str().unwrap_or_default()
    }
}

/// Why a request did not succeed.
#[derive(Debug)]
pub enum TellerError {
    /// No answer, however often it was sent.
    Unanswered {
        /// Method and path.
        call: String,
        /// Why, the last time.
        source: io::Error,
    },
    /// The server says no.
    Refused(Box<Refused>),
    /// A success that is no JSON.
    NotJson {
        /// Method and path.
        call: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl fmt::Display for TellerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { call, .. } => write!(f, "{call} got no answer"),
            Self::NotJson { call, .. } => write!(f, "the answer to {call} is no JSON"),
            Self::Refused(refused) => {
                let detail = refused.value["detail"].as_str().unwrap_or("no detail");
                let (call, status) = (&refused.call, refused.status);
                match refused.code() {
                    "" => write!(f, "{call} was answered {status}"),
                    code => write!(f, "{call} was refused: {code} ({status}): {detail}"),
                }
            }
        }
    }
}

impl Error for TellerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unanswered { source, .. } => Some(source),
            Self::NotJson { source, .. } => Some(source),
            Self::Refused(_) => None,
        }
    }
}

/// Asks one server, as whoever the secret belongs to.
#[derive(Debug)]
pub struct Teller {
    connection: Connection,
    secret: String,
    shop: Option<String>,
}

impl Teller {
    /// At this server; a shop is named by operators only.
    #[must_use]
    pub fn new(address: SocketAddr, secret: &str, shop: Option<&str>) -> Self {
        let connection = Connection::new(address, PATIENCE);
        Self { connection, secret: secret.to_owned(), shop: shop.map(str::to_owned) }
    }

    /// Reads.
    pub async fn get(&mut self, path: &str) -> Result<Value, TellerError> {
        let told = self.ask(Call { method: "GET", path, ..Call::default() }).await?;
        Ok(told.value)
    }

    /// Sends a request until there is an answer.
    pub async fn ask(&mut self, call: Call<'_>) -> Result<Told, TellerError> {
        let bytes = self.bytes(&call);
        let name = || format!("{} {}", call.method, call.path);
        let mut repeated = false;
        for tries in 1.. {
            let answer = match self.connection.request(&bytes).await {
                Ok(answer) => answer,
                Err(source) if tries >= TRIES => {
                    return Err(TellerError::Unanswered { call: name(), source });
                }
                Err(_) => {
                    repeated = true;
                    pause(tries, None).await;
                    continue;
                }
            };
            if matches!(answer.status, 503 | 429) && tries < TRIES {
                // What became of it, nobody may know (`outcome_unknown`).
                repeated = true;
                pause(tries, answer.retry_after_seconds).await;
                continue;
            }
            return told(name(), &answer, repeated);
        }
        unreachable!("the last try returns")
    }

    fn bytes(&self, call: &Call<'_>) -> Vec<u8> {
        let Call { method, path, body, if_match, key } = call;
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: noondrop\r\nauthorization: Bearer {}\r\n",
            self.secret
        );
        let mut header = |name: &str, value: &dyn fmt::Display| {
            write!(text, "{name}: {value}\r\n").expect("writing to a string cannot fail");
        };
        if let Some(version) = if_match {
            header("if-match", &format_args!("\"{version}\""));
        }
        if let Some(key) = key {
            header("idempotency-key", key);
        }
        if let Some(shop) = &self.shop {
            header("noondrop-shop", shop);
        }
        header("content-type", &"application/json");
        header("content-length", &body.len());
        text.push_str("\r\n");
        text.push_str(body);
        text.into_bytes()
    }
}

fn told(call: String, answer: &Answer, repeated: bool) -> Result<Told, TellerError> {
    let Answer { status, replayed, body, .. } = answer;
    let value = serde_json::from_slice(body);
    if (200..300).contains(status) {
        let value = value.map_err(|source| TellerError::NotJson { call, source })?;
        return Ok(Told { value, replayed: *replayed, repeated });
    }
    let value = value.unwrap_or_default();
    let (status, replayed) = (*status, *replayed);
    Err(TellerError::Refused(Box::new(Refused { call, status, value, replayed, repeated })))
}

async fn pause(tries: u32, asked_seconds: Option<u64>) {
    let ms = (PAUSE_MS << tries.min(10)).min(PAUSE_MS_MAX);
    let asked = asked_seconds.unwrap_or(0).saturating_mul(1_000).min(PAUSE_MS_MAX);
    tokio::time::sleep(Duration::from_millis(ms.max(asked))).await;
}
