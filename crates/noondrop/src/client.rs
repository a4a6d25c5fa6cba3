//! A small HTTP/1.1 client for load and rehearsals: one request at a time on a connection that is kept.
//!
//! It shares a few cores with the server that it drives, so it does little: no pools of its own, no redirects, bodies
//! with a length only.

mod desk;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use desk::{Desk, DeskError};

/// Largest answer that is taken.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// It came from the record.
    pub replayed: bool,
    /// When to try again, if it says so.
    pub retry_after_seconds: Option<u64>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A connection, made when it is needed and again after it failed.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    patience: Duration,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// To this address; an answer that takes longer than `patience` is given up.
    #[must_use]
    pub fn new(address: SocketAddr, patience: Duration) -> Self {
        Self { address, patience, stream: None, buffer: Vec::new() }
    }

    /// Sends a whole request and reads its answer. After an error nobody knows what became of it.
    pub async fn request(&mut self, request: &[u8]) -> io::Result<Answer> {
        let answer = timeout(self.patience, self.exchange(request)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if answer.is_err() {
            self.stream = None;
            self.buffer.clear();
        }
        answer
    }

    /// Sends a request and hangs up without waiting for the answer.
    pub async fn send_and_hang_up(&mut self, request: &[u8]) -> io::Result<()> {
        let stream = self.stream().await?;
        let sent = stream.write_all(request).await;
        self.stream = None;
        self.buffer.clear();
        sent
    }

    async fn stream(&mut self) -> io::Result<&mut TcpStream> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("it was just made"))
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let stream = self.stream().await?;
        stream.write_all(request).await?;
        loop {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(answer) = parse(&buffer)? {
                self.buffer = buffer;
                return Ok(answer);
            }
            if buffer.len() > ANSWER_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
    }
}

/// The whole answer, once all of it is there.
fn parse(bytes: &[u8]) -> io::Result<Option<Answer>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let httparse::Status::Complete(from) = head.parse(bytes).map_err(invalid)? else {
        return Ok(None);
    };
    let mut answer = Answer { status: head.code.unwrap_or(0), ..Answer::default() };
    let mut length = 0usize;
    for header in head.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or("").trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        } else if header.name.eq_ignore_ascii_case("idempotency-replayed") {
            answer.replayed = value == "true";
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            answer.retry_after_seconds = value.parse().ok();
        }
    }
    let Some(body) = bytes.get(from..from + length) else { return Ok(None) };
    answer.body = body.to_vec();
    Ok(Some(answer))
}

/// One request as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Bearer token.
    pub token: &'a str,
    /// Idempotency key.
    pub key: Option<&'a str>,
    /// JSON; empty: none.
    pub body: &'a str,
}

impl Request<'_> {
    /// Ready to send.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Self { method, path, token, body, .. } = self;
        let key = self.key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: noondrop\r\nauthorization: Bearer {token}\r\n{key}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_once_it_is_whole() {
        let whole = b"HTTP/1.1 201 Created\r\nIdempotency-Replayed: true\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nabcd";
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).expect("a prefix is no error").is_none(), "{end}");
        }
        let answer = parse(whole).expect("it is one").expect("it is whole");
        assert_eq!((answer.status, answer.replayed), (201, true));
        assert_eq!((answer.retry_after_seconds, answer.body.as_slice()), (Some(3), &b"abcd"[..]));
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }
}
