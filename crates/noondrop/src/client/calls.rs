//! A few requests that must succeed: setting a sale up, looking at counts. Not for load.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::connection::{ClientError, Connection, Timeouts};
use super::target::Target;

/// How often a request without an answer is sent again.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Why a request did not succeed.
#[derive(Debug)]
pub enum CallError {
    /// No answer, however often it was sent.
    Unanswered {
        /// Method and path.
        call: String,
        /// Why, the last time.
        source: ClientError,
    },
    /// An answer, but no success.
    Refused {
        /// Method and path.
        call: String,
        /// The status code.
        status: u16,
        /// The body, or the beginning of it.
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

impl CallError {
    /// The status of an answer that was no success.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unanswered { .. } | Self::NotJson { .. } => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { call, .. } => write!(f, "{call} got no answer"),
            Self::Refused { call, status, body } => write!(f, "{call} was answered {status}: {body}"),
            Self::NotJson { call, .. } => write!(f, "the answer to {call} is no JSON"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unanswered { source, .. } => Some(source),
            Self::NotJson { source, .. } => Some(source),
            Self::Refused { .. } => None,
        }
    }
}

/// A caller with a credential, on a connection of its own.
#[derive(Debug)]
pub struct Calls {
    connection: Connection,
    host: String,
    token: Option<String>,
}

impl Calls {
    /// Asks `target`, as whoever the token belongs to.
    #[must_use]
    pub fn new(target: &Target, token: Option<&str>) -> Self {
        let timeouts = Timeouts { connect: Duration::from_secs(1), answer: Duration::from_secs(10) };
        let connection = Connection::new(target.clone(), timeouts);
        Self { connection, host: target.host.clone(), token: token.map(str::to_owned) }
    }

    /// `GET`, once: the status and the body, whatever they are.
    pub async fn look(&mut self, path: &str) -> Result<(u16, Vec<u8>), ClientError> {
        let request = self.rendered("GET", path, None);
        let response = self.connection.request(&request).await?;
        Ok((response.status, response.body.to_vec()))
    }

    /// `GET` of JSON.
    pub async fn get(&mut self, path: &str) -> Result<Value, CallError> {
        self.call("GET", path, None).await
    }

    /// `PUT` of JSON: may be sent several times.
    pub async fn put(&mut self, path: &str, body: &Value) -> Result<Value, CallError> {
        self.call("PUT", path, Some(body)).await
    }

    /// `POST` of something that may be sent several times.
    pub async fn post(&mut self, path: &str) -> Result<Value, CallError> {
        self.call("POST", path, None).await
    }

    async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let call = format!("{method} {path}");
        let request = self.rendered(method, path, body);
        let mut tries = 0;
        loop {
            tries += 1;
            let unanswered = match self.connection.request(&request).await {
                Ok(response) if response.status != 503 || tries >= TRIES => {
                    return result(call, response.status, response.body);
                }
                Ok(_) => None,
                Err(error) => Some(error),
            };
            if let Some(source) = unanswered
                && tries >= TRIES
            {
                return Err(CallError::Unanswered { call, source });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn rendered(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let mut request = Vec::with_capacity(256);
        let host = &self.host;
        let token = self.token.iter().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token: String = token.collect();
        let body = body.map(|body| serde_json::to_vec(body).expect("a value is always JSON"));
        let kind = if body.is_some() { "Content-Type: application/json\r\n" } else { "" };
        let body = body.unwrap_or_default();
        let length = body.len();
        write!(
            request,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{token}{kind}Content-Length: {length}\r\n\r\n"
        )
        .expect("writing to a vector cannot fail");
        request.extend_from_slice(&body);
        request
    }
}

fn result(call: String, status: u16, body: &[u8]) -> Result<Value, CallError> {
    if !(200..300).contains(&status) {
        let body = String::from_utf8_lossy(body).chars().take(400).collect();
        return Err(CallError::Refused { call, status, body });
    }
    serde_json::from_slice(body).map_err(|source| CallError::NotJson { call, source })
}
