//! Virtual time and seeded random bits, in the places where the engine looks for the machine's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use noondrop_engine::{Clock, Entropy};

use crate::dice::Dice;

/// Where virtual time starts, in milliseconds since the Unix epoch.
const START_MS: u64 = 1_750_000_000_000;

/// The time that passes for everyone. Only the world moves it.
#[derive(Clone, Debug, Default)]
pub struct VirtualTime(Arc<AtomicU64>);

impl VirtualTime {
    /// Milliseconds since the world began.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What an undisturbed clock on the wall shows.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        START_MS + self.elapsed_ms()
    }

    /// Lets time pass.
    pub fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

/// The clocks of one host: elapsed time is everybody's, the wall clock may be wrong.
#[derive(Clone, Debug)]
pub struct HostClock {
    time: VirtualTime,
    off_ms: Arc<AtomicI64>,
}

impl HostClock {
    /// A clock that is right.
    #[must_use]
    pub fn new(time: VirtualTime) -> Self {
        Self { time, off_ms: Arc::default() }
    }

    /// Somebody sets the wall clock, by so much.
    pub fn step(&self, by_ms: i64) {
        self.off_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// By how much the wall clock is wrong.
    #[must_use]
    pub fn off_ms(&self) -> i64 {
        self.off_ms.load(Ordering::Relaxed)
    }
}

impl Clock for HostClock {
    fn wall_ms(&self) -> u64 {
        self.time.wall_ms().saturating_add_signed(self.off_ms())
    }

    fn elapsed_ms(&self) -> u64 {
        self.time.elapsed_ms()
    }
}

/// Random bits that follow from the seed.
#[derive(Debug)]
pub struct SeededEntropy(pub Dice);

impl Entropy for SeededEntropy {
    fn nonce(&mut self) -> [u8; 16] {
        self.0.bytes()
    }

    fn secret(&mut self) -> [u8; 32] {
        self.0.bytes()
    }
}
