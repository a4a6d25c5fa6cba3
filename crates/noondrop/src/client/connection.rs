//! One kept-alive connection: a request goes out whole, its answer comes back, then the next.
//!
//! After any failure the connection is closed and the next request opens a new one. Whether a request that failed was
//! carried out is not known here; its idempotency key tells.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::{self, Parsed, RESPONSE_BYTES_MAX, Response};
use super::target::Target;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole answer, from the first byte sent.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), answer: Duration::from_secs(15) }
    }
}

/// No answer.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody took the connection: surely not done.
    Connect(io::Error),
    /// The connection broke before the whole answer was there: whether it was done is not known.
    Broken(io::Error),
    /// It took too long: whether it was done is not known.
    TimedOut,
    /// What came back is no HTTP/1.1 response.
    Malformed,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect(_) => "could not connect",
            Self::Broken(_) => "the connection broke before the answer was there",
            Self::TimedOut => "no answer in time",
            Self::Malformed => "the answer is no HTTP/1.1 response",
        })
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect(source) | Self::Broken(source) => Some(source),
            Self::TimedOut | Self::Malformed => None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    timeouts: Timeouts,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Not connected yet.
    #[must_use]
    pub fn new(target: Target, timeouts: Timeouts) -> Self {
        Self { target, timeouts, stream: None, buffer: Vec::with_capacity(4_096) }
    }

    /// Connects, if it is not connected.
    pub async fn connect(&mut self) -> Result<(), ClientError> {
        if self.stream.is_none() {
            let connecting = timeout(self.timeouts.connect, TcpStream::connect(self.target.address));
            let connected = connecting.await.map_err(|_| ClientError::TimedOut)?;
            let stream = connected.map_err(ClientError::Connect)?;
            stream.set_nodelay(true).map_err(ClientError::Connect)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Sends a whole request and waits for the whole answer.
    pub async fn request(&mut self, bytes: &[u8]) -> Result<Response<'_>, ClientError> {
        self.connect().await?;
        // Out of its place while in use: a request that is given up leaves no half-read answer behind.
        let mut stream = self.stream.take().ok_or(ClientError::Malformed)?;
        self.buffer.clear();
        let answered = timeout(self.timeouts.answer, exchange(&mut stream, &mut self.buffer, bytes));
        let layout = answered.await.map_err(|_| ClientError::TimedOut)??;
        if !layout.closes {
            self.stream = Some(stream);
        }
        Ok(layout.of(&self.buffer))
    }

    /// Sends a whole request and hangs up without waiting for the answer.
    pub async fn send_and_hang_up(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.connect().await?;
        let mut stream = self.stream.take().ok_or(ClientError::Malformed)?;
        let sent = timeout(self.timeouts.answer, stream.write_all(bytes));
        sent.await.map_err(|_| ClientError::TimedOut)?.map_err(ClientError::Broken)
    }
}

async fn exchange(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    bytes: &[u8],
) -> Result<answer::Layout, ClientError> {
    stream.write_all(bytes).await.map_err(ClientError::Broken)?;
    loop {
        let read = stream.read_buf(buffer).await.map_err(ClientError::Broken)?;
        if read == 0 {
            return Err(ClientError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        match answer::parse(buffer) {
            Parsed::Whole(layout) => return Ok(layout),
            Parsed::Partial if buffer.len() <= RESPONSE_BYTES_MAX => {}
            Parsed::Partial | Parsed::Malformed => return Err(ClientError::Malformed),
        }
    }
}
