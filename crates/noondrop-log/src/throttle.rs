//! The one brake for bulk reading and writing: snapshots, backups, archives.
//!
//! A disk that is asked to take hundreds of megabytes at once makes the log wait behind them, and
//! with it every buyer. Whoever moves bulk data does so in pieces of [`PIECE_BYTES`], syncs each
//! piece, and then lets the throttle hold it back. All share one throttle, so two bulk jobs
//! together are as gentle as one.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How much bulk data to move before syncing it and pausing.
pub const PIECE_BYTES: usize = 1 << 20;

/// The pause after a full piece, unless another is set: at most 50 MB/s.
const PAUSE_DEFAULT: Duration = Duration::from_millis(20);

/// Holds bulk work back. Share one, in an `Arc`, between everything that does bulk work.
#[derive(Debug)]
pub struct Throttle {
    pause: Duration,
    turn: Mutex<()>,
}

impl Throttle {
    /// A throttle that pauses this long after each full piece. Zero does not hold back at all.
    pub fn with_pause(pause: Duration) -> Self {
        Self { pause, turn: Mutex::new(()) }
    }

    /// Waits for as long as moving `bytes` has earned.
    ///
    /// The lock is held while it sleeps. So the pauses of several jobs add up instead of running
    /// side by side, which bounds them together and needs no clock.
    pub fn wait(&self, bytes: usize) {
        let pause = self.pause_after(bytes);
        if pause.is_zero() {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(pause);
    }

    fn pause_after(&self, bytes: usize) -> Duration {
        // In microseconds, of which no job moves enough bytes to overflow.
        let pause = self.pause.as_micros() * bytes as u128 / PIECE_BYTES as u128;
        Duration::from_micros(u64::try_from(pause).unwrap_or(u64::MAX))
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::with_pause(PAUSE_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_bytes_moved() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pause_after(0), Duration::ZERO);
        assert_eq!(throttle.pause_after(PIECE_BYTES), Duration::from_millis(20));
        assert_eq!(throttle.pause_after(PIECE_BYTES / 2), Duration::from_millis(10));
        assert_eq!(throttle.pause_after(3 * PIECE_BYTES), Duration::from_millis(60));
        assert_eq!(Throttle::with_pause(Duration::ZERO).pause_after(PIECE_BYTES), Duration::ZERO);
    }
}
