//! The program's only clock reads outside the engine.
//!
//! What decides takes its time from the engine, which fixes it once a turn; what is here is for identity (has a token run
//! out?), for measuring and for logs. Everything below takes the time as an argument, so a test can choose it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A wall-clock time in seconds since 1970 in UTC, as tokens and credentials count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub u64);

impl UnixSeconds {
    /// This time and so many seconds; the far end of time where that would overflow.
    #[must_use]
    pub fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

/// The wall clock now. It may step; nothing that decides may use it.
#[must_use]
pub fn now() -> UnixSeconds {
    UnixSeconds(since_1970().as_secs())
}

/// The wall clock now in milliseconds since 1970, for logs and for records that people read.
#[must_use]
pub fn now_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// The steady clock now, for measuring how long something took.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one home of the steady clock in the program")]
pub fn steady() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the one home of the wall clock in the program")]
fn since_1970() -> Duration {
    // A clock set before 1970 reads as 1970: every token is then "not yet valid", which is the safe side.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_to_the_end_of_time_stays_there() {
        assert_eq!(UnixSeconds(u64::MAX - 1).plus(5), UnixSeconds(u64::MAX));
    }

    #[test]
    fn both_readings_of_the_wall_clock_agree() {
        let seconds = now();
        let ms = now_ms();
        assert!(ms / 1_000 >= seconds.0 && ms / 1_000 <= seconds.0 + 2);
    }
}
