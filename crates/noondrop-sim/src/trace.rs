//! What happened, event by event: a hash of all of it, and the newest events for a person to read.

use std::collections::VecDeque;
use std::fmt;

/// Events that are kept as text.
const KEPT: usize = 30;

/// The trace of one run.
#[derive(Debug)]
pub struct Trace {
    hasher: blake3::Hasher,
    newest: VecDeque<String>,
    aloud: bool,
}

impl Trace {
    /// An empty trace; `aloud` prints each event as it comes.
    #[must_use]
    pub fn new(aloud: bool) -> Self {
        Self { hasher: blake3::Hasher::new(), newest: VecDeque::new(), aloud }
    }

    /// Adds an event.
    pub fn event(&mut self, step: u64, elapsed_ms: u64, what: fmt::Arguments<'_>) {
        let line = format!("step {step:>4} t+{elapsed_ms:>9} ms  {what}");
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        if self.aloud {
            println!("{line}");
        }
        if self.newest.len() == KEPT {
            self.newest.pop_front();
        }
        self.newest.push_back(line);
    }

    /// Adds bytes to the hash that nobody needs to read.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The hash of everything so far.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// The newest events, oldest of them first.
    pub fn newest(&self) -> impl Iterator<Item = &str> {
        self.newest.iter().map(String::as_str)
    }
}
