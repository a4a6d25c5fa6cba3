//! A few requests that must succeed: setting a sale up, looking at counts, asking how a server is. Not for load.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::{Connection, Request};

/// How often a request is sent before it counts as failed.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Why a request did not succeed.
#[derive(Debug)]
pub enum DeskError {
    /// No answer, however often it was sent.
    Unanswered {
        /// Method and path.
        call: String,
        /// Why, the last time.
        source: io::Error,
    },
    /// An answer that is no success.
    Refused {
        /// Method and path.
        call: String,
        /// Its status.
        status: u16,
        /// Its body.
        body: String,
    },
    /// A success that is no JSON.
    NotJson {
        /// Method and path.
        call: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl DeskError {
    /// The status of an answer that is no success.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unanswered { .. } | Self::NotJson { .. } => None,
        }
    }
}

impl fmt::Display for DeskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { call, .. } => write!(f, "{call} got no answer"),
            Self::Refused { call, status, body } => {
                write!(f, "{call} was answered {status}: {body}")
            }
            Self::NotJson { call, .. } => write!(f, "the answer to {call} is no JSON"),
        }
    }
}

impl std::error::Error for DeskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unanswered { source, .. } => Some(source),
            Self::NotJson { source, .. } => Some(source),
            Self::Refused { .. } => None,
        }
    }
}

/// Asks one server, as whoever the token belongs to.
#[derive(Debug)]
pub struct Desk {
    connection: Connection,
    token: String,
}

impl Desk {
    /// A desk at this server; an empty token is nobody's.
    #[must_use]
    pub fn new(address: SocketAddr, token: &str) -> Self {
        let connection = Connection::new(address, Duration::from_secs(10));
        Self { connection, token: token.to_owned() }
    }

    /// Sends a request that may be sent several times, until there is an answer; JSON comes back.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value, DeskError> {
        let bytes = self.ask_bytes(method, path, body).await?;
        let call = format!("{method} {path}");
        serde_json::from_slice(&bytes).map_err(|source| DeskError::NotJson { call, source })
    }

    /// The same; the body comes back as it is.
    pub async fn ask_bytes(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Vec<u8>, DeskError> {
        let token = &self.token;
        let request = Request { method, path, token, key: None, body }.bytes();
        let call = || format!("{method} {path}");
        for tries in 1.. {
            match self.connection.request(&request).await {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(answer.body),
                Ok(answer) if answer.status != 503 || tries >= TRIES => {
                    let body = String::from_utf8_lossy(&answer.body).into_owned();
                    return Err(DeskError::Refused { call: call(), status: answer.status, body });
                }
                Err(source) if tries >= TRIES => {
                    return Err(DeskError::Unanswered { call: call(), source });
                }
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        unreachable!("the last try returns")
    }
}
