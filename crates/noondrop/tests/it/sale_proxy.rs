//! A man in the middle who stops or cuts one request of a conversation, to be killed beside.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use noondrop::time::steady;

/// What happens to the request that was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It does not reach the server, and there is no answer.
    HangBefore,
    /// It reaches the server, and there is no answer.
    HangAfter,
    /// It waits until it may go on; the first that is no read.
    HangBeforeChange,
    /// It reaches the server, and the connection ends without the answer.
    CutAfter,
}

struct Shared {
    seen: AtomicUsize,
    hangs: AtomicBool,
    goes_on: AtomicBool,
}

/// The man in the middle.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Passes everything on but the request number `at`.
    pub fn start(server: SocketAddr, at: usize, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            seen: AtomicUsize::new(0),
            hangs: AtomicBool::new(false),
            goes_on: AtomicBool::new(false),
        });
        let known = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shared) = (client.unwrap(), known.clone());
                thread::spawn(move || pass(client, server, at, then, &shared));
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the request hangs, or until there is something else to stop for.
    pub fn hangs_or(&self, mut other: impl FnMut() -> bool) -> bool {
        let begun = steady();
        loop {
            if self.shared.hangs.load(Ordering::SeqCst) {
                return true;
            }
            if other() {
                return false;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing happens");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lets the request that waits go on.
    pub fn go_on(&self) {
        self.shared.goes_on.store(true, Ordering::SeqCst);
    }
}

fn pass(mut client: TcpStream, server: SocketAddr, at: usize, then: Then, shared: &Shared) {
    let mut server = TcpStream::connect(server).unwrap();
    while let Some(request) = message(&mut client) {
        let number = shared.seen.fetch_add(1, Ordering::SeqCst);
        let is_change = !request.starts_with(b"GET ");
        let picked = match then {
            Then::HangBeforeChange => is_change && !shared.goes_on.load(Ordering::SeqCst),
            _ => number == at,
        };
        if picked && matches!(then, Then::HangBefore | Then::HangBeforeChange) {
            shared.hangs.store(true, Ordering::SeqCst);
            while !shared.goes_on.load(Ordering::SeqCst) {
                if then == Then::HangBefore {
                    // Until the client is gone.
                    let _ = client.read(&mut [0]);
                    return;
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
        if server.write_all(&request).is_err() {
            return;
        }
        let Some(answer) = message(&mut server) else { return };
        if picked && then == Then::CutAfter {
            return;
        }
        if picked && then == Then::HangAfter {
            shared.hangs.store(true, Ordering::SeqCst);
            let _ = client.read(&mut [0]);
            return;
        }
        if client.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A whole request or answer: head and as many bytes as it says.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(bytes);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}
