//! Time and chance: the program's one reading of each, and the estimate that becomes log time
//! (RULES R5).
//!
//! Everything else in this crate gets times and random bits handed to it, so that a simulation can
//! replay a run.

use noondrop_core::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

/// Where times come from.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch. May jump: somebody set the clock.
    fn wall_ms(&self) -> u64;

    /// Milliseconds since some fixed moment. Never jumps, and goes on while the machine sleeps.
    fn elapsed_ms(&self) -> u64;

    /// [`Clock::elapsed_ms`] in microseconds, to measure turns with.
    fn elapsed_us(&self) -> u64 {
        self.elapsed_ms() * 1_000
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn wall_ms(&self) -> u64 {
        (**self).wall_ms()
    }

    fn elapsed_ms(&self) -> u64 {
        (**self).elapsed_ms()
    }

    fn elapsed_us(&self) -> u64 {
        (**self).elapsed_us()
    }
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that counts through suspend: a hold must not live longer because a laptop lid was shut.
#[cfg(any(target_os = "linux", target_os = "android"))]
const ELAPSED: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const ELAPSED: ClockId = ClockId::Monotonic;

fn read_us(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000 + nanos / 1_000
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        read_us(ClockId::Realtime) / 1_000
    }

    fn elapsed_ms(&self) -> u64 {
        read_us(ELAPSED) / 1_000
    }

    fn elapsed_us(&self) -> u64 {
        read_us(ELAPSED)
    }
}

/// Where random bits come from.
pub trait Entropy: Send {
    /// 128 bits: a turn's nonce, a writer's name.
    fn nonce(&mut self) -> [u8; 16];

    /// 256 bits: a log's key secret.
    fn secret(&mut self) -> [u8; 32];
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn nonce(&mut self) -> [u8; 16] {
        (**self).nonce()
    }

    fn secret(&mut self) -> [u8; 32] {
        (**self).secret()
    }
}

/// Bits drawn from the operating system at once; a nonce for each turn would else be a call each.
const POOL_BYTES: usize = 1_024;

/// The operating system's random bits.
#[derive(Debug)]
pub struct SystemEntropy {
    pool: [u8; POOL_BYTES],
    used: usize,
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self { pool: [0; POOL_BYTES], used: POOL_BYTES }
    }
}

impl SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the engine's one source of chance")]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        if self.used + N > POOL_BYTES {
            getrandom::fill(&mut self.pool).expect("the operating system has random bits");
            self.used = 0;
        }
        let mut bits = [0; N];
        let from = &mut self.pool[self.used..self.used + N];
        bits.copy_from_slice(from);
        // What was given out is secret: it does not stay here.
        from.fill(0);
        self.used += N;
        bits
    }
}

impl Entropy for SystemEntropy {
    fn nonce(&mut self) -> [u8; 16] {
        self.take()
    }

    fn secret(&mut self) -> [u8; 32] {
        self.take()
    }
}

/// A reading further than this from the estimate is a step, not drift.
const STEP_MS: u64 = 2_000;

/// One look at both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The source of log time: the store's clock, or the host's.
    pub(crate) source_ms: u64,
    pub(crate) elapsed_ms: u64,
}

/// The time of the next turn: an estimate of the source that no step of the source can move.
#[derive(Debug)]
pub(crate) struct LogTime {
    /// The estimate at the newest reading, in microseconds.
    estimate_us: u64,
    read_at_elapsed_ms: u64,
    /// How far the source was off when it stepped away; none while it agrees.
    stepped_by_ms: Option<i64>,
    steps_total: u64,
    /// The last row is ahead of the estimate: from there, time goes on at half speed until they
    /// meet.
    ahead: Option<Ahead>,
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    at: Timestamp,
    since_elapsed_ms: u64,
}

impl Ahead {
    fn at(self, elapsed_ms: u64) -> Timestamp {
        Timestamp(self.at.0 + elapsed_ms.saturating_sub(self.since_elapsed_ms) / 2)
    }
}

impl LogTime {
    pub(crate) fn new(first: Reading) -> Self {
        Self {
            estimate_us: first.source_ms * 1_000,
            read_at_elapsed_ms: first.elapsed_ms,
            stepped_by_ms: None,
            steps_total: 0,
            ahead: None,
        }
    }

    /// How often the source stepped away.
    pub(crate) fn steps_total(&self) -> u64 {
        self.steps_total
    }

    /// Takes a reading in, and fixes the time of a turn: not before `last_at`, and never standing
    /// still.
    pub(crate) fn fix(&mut self, reading: Reading, last_at: Timestamp) -> Timestamp {
        self.take(reading);
        let estimate = self.estimate(reading.elapsed_ms);
        let at = match self.ahead {
            None => estimate,
            Some(ahead) => ahead.at(reading.elapsed_ms).max(estimate),
        };
        if at < last_at {
            self.ahead = Some(Ahead { at: last_at, since_elapsed_ms: reading.elapsed_ms });
            return last_at;
        }
        if at == estimate {
            self.ahead = None;
        }
        at
    }

    /// The estimate itself, without looking at the source.
    pub(crate) fn estimate(&self, elapsed_ms: u64) -> Timestamp {
        let since_ms = elapsed_ms.saturating_sub(self.read_at_elapsed_ms);
        Timestamp(self.estimate_us / 1_000 + since_ms)
    }

    /// How long until [`LogTime::fix`] reaches a time.
    pub(crate) fn wait_ms(&self, until: Timestamp, elapsed_ms: u64) -> u64 {
        let at_full_speed = until.0.saturating_sub(self.estimate(elapsed_ms).0);
        match self.ahead {
            None => at_full_speed,
            Some(ahead) => {
                let at_half_speed =
                    until.0.saturating_sub(ahead.at(elapsed_ms).0).saturating_mul(2);
                at_half_speed.min(at_full_speed)
            }
        }
    }

    /// An operator says that the source is right: the estimate jumps to it. `at` still never goes
    /// back.
    pub(crate) fn accept_step(&mut self, reading: Reading) {
        let steps_total = self.steps_total;
        let ahead = self.ahead;
        *self = Self { steps_total, ahead, ..Self::new(reading) };
    }

    fn take(&mut self, reading: Reading) {
        let since_ms = reading.elapsed_ms.saturating_sub(self.read_at_elapsed_ms);
        if since_ms == 0
            && self.stepped_by_ms.is_none()
            && self.off_ms(reading).unsigned_abs() <= STEP_MS
        {
            // Nothing to slew with yet; most turns come here.
            return;
        }
        self.estimate_us += since_ms * 1_000;
        self.read_at_elapsed_ms = self.read_at_elapsed_ms.max(reading.elapsed_ms);
        let off_ms = self.off_ms(reading);
        if off_ms.unsigned_abs() > STEP_MS {
            self.note_step(off_ms);
            return;
        }
        self.stepped_by_ms = None;
        // At most 0.1 % of the time that went by: one microsecond a millisecond.
        let distance_us = (reading.source_ms * 1_000).abs_diff(self.estimate_us);
        let slew_us = distance_us.min(since_ms);
        if off_ms >= 0 {
            self.estimate_us += slew_us;
        } else {
            self.estimate_us -= slew_us;
        }
    }

    fn off_ms(&self, reading: Reading) -> i64 {
        let estimate = i64::try_from(self.estimate(reading.elapsed_ms).0).unwrap_or(i64::MAX);
        i64::try_from(reading.source_ms).unwrap_or(i64::MAX) - estimate
    }

    fn note_step(&mut self, off_ms: i64) {
        let known = self.stepped_by_ms.is_some_and(|known| known.abs_diff(off_ms) <= STEP_MS);
        if known {
            return;
        }
        self.stepped_by_ms = Some(off_ms);
        self.steps_total += 1;
        warn!(
            stepped_by_ms = off_ms,
            "the clock stepped; log time goes on as before until a restart or an operator accepts the step"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source_ms: u64, elapsed_ms: u64) -> Reading {
        Reading { source_ms, elapsed_ms }
    }

    #[test]
    fn drift_is_followed_by_at_most_a_thousandth() {
        let mut time = LogTime::new(at(1_000_000, 0));
        // The source runs 100 ms ahead at once: too little for a step, too much to follow at once.
        assert_eq!(time.fix(at(1_001_100, 1_000), Timestamp(0)), Timestamp(1_001_001));
        assert_eq!(time.fix(at(1_101_100, 101_000), Timestamp(0)), Timestamp(1_101_100));
        // And back: slower, never backwards.
        assert_eq!(time.fix(at(1_101_900, 102_000), Timestamp(0)), Timestamp(1_102_099));
        assert_eq!(time.steps_total(), 0);
    }

    #[test]
    fn a_step_is_counted_once_and_the_estimate_goes_on() {
        let mut time = LogTime::new(at(1_000_000, 0));
        for elapsed in 1..100 {
            let hour = 3_600_000;
            assert_eq!(
                time.fix(at(1_000_000 + hour + elapsed, elapsed), Timestamp(0)),
                Timestamp(1_000_000 + elapsed)
            );
        }
        assert_eq!(time.steps_total(), 1);
        // Backwards is another one; agreement ends it.
        assert_eq!(time.fix(at(5, 100), Timestamp(0)), Timestamp(1_000_100));
        assert_eq!(time.steps_total(), 2);
        assert_eq!(time.fix(at(1_000_101, 101), Timestamp(0)), Timestamp(1_000_101));
        assert_eq!(time.fix(at(5, 102), Timestamp(0)), Timestamp(1_000_102));
        assert_eq!(time.steps_total(), 3);
    }

    #[test]
    fn behind_the_last_row_time_goes_at_half_speed_until_they_meet() {
        let last = Timestamp(1_010_000);
        let mut time = LogTime::new(at(1_000_000, 0));
        assert_eq!(time.fix(at(1_000_000, 0), last), last);
        assert_eq!(time.wait_ms(Timestamp(1_010_050), 0), 100);
        assert_eq!(time.fix(at(1_000_100, 100), last), Timestamp(1_010_050));
        assert_eq!(time.fix(at(1_019_998, 19_998), last), Timestamp(1_019_999));
        assert_eq!(time.fix(at(1_020_000, 20_000), last), Timestamp(1_020_000));
        assert_eq!(time.fix(at(1_020_100, 20_100), last), Timestamp(1_020_100));
    }

    #[test]
    fn an_accepted_step_back_slows_time_and_never_turns_it() {
        let mut time = LogTime::new(at(1_000_000, 0));
        let last = time.fix(at(1_000_000, 0), Timestamp(0));
        time.accept_step(at(900_000, 10));
        assert_eq!(time.fix(at(900_000, 10), last), last);
        assert_eq!(time.fix(at(900_020, 30), last), Timestamp(last.0 + 10));
    }
}
