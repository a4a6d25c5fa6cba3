//! What is counted: cheap for the sequencer, complete for the metrics. Nothing here is per buyer or
//! per seat.

use noondrop_core::{Outcome, refusal::Refusal};

use crate::call::{Fault, Reply};

const BUCKETS: usize = 16;

/// Counts by size. The last bucket has no bound.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds, inclusive.
    pub bounds: &'static [u64; BUCKETS],
    /// How many fell into each bucket, not cumulative; one more than there are bounds.
    pub counts: [u64; BUCKETS + 1],
    /// Sum of all values.
    pub sum: u64,
}

/// Powers of two.
static SIZES: [u64; BUCKETS] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];
static MICROSECONDS: [u64; BUCKETS] = [
    50, 100, 200, 300, 500, 750, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    500_000, 2_000_000,
];

impl Histogram {
    fn of(bounds: &'static [u64; BUCKETS]) -> Self {
        Self { bounds, counts: [0; BUCKETS + 1], sum: 0 }
    }

    fn add(&mut self, value: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// How many values there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// How often an operation ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeCount {
    /// The operation's stable name; empty for faults.
    pub operation: &'static str,
    /// `done`, or the code of the refusal or the fault.
    pub code: &'static str,
    /// How often.
    pub count: u64,
}

/// Counts since the engine started.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Turns that decided something or wrote a row.
    pub turns: u64,
    /// Rows written.
    pub rows: u64,
    /// Bytes in these rows, facts and private texts.
    pub row_bytes: u64,
    /// How long turns took, in microseconds.
    pub turn_us: Histogram,
    /// Commands per turn.
    pub turn_commands: Histogram,
    /// Answers by kind; replays are not among them.
    pub outcomes: Vec<OutcomeCount>,
    /// Answers from the record.
    pub replays: u64,
    /// Answers from the record per turn that had any: how large storms of duplicates are.
    pub storm: Histogram,
    /// Appends that surely failed.
    pub appends_not_written: u64,
    /// Appends whose end was unknown at first.
    pub appends_unknown: u64,
    /// Turns that could not begin, and attempts to recover the store that failed.
    pub store_failures: u64,
    /// Invariants that a turn would have broken; each was contained.
    pub violations: u64,
    /// Times that the log's history turned out to have changed.
    pub history_changes: u64,
    /// Times that the state was dropped and read again from the log.
    pub reloads: u64,
    /// Steps of the clock.
    pub clock_steps: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            turns: 0,
            rows: 0,
            row_bytes: 0,
            turn_us: Histogram::of(&MICROSECONDS),
            turn_commands: Histogram::of(&SIZES),
            outcomes: Vec::new(),
            replays: 0,
            storm: Histogram::of(&SIZES),
            appends_not_written: 0,
            appends_unknown: 0,
            store_failures: 0,
            violations: 0,
            history_changes: 0,
            reloads: 0,
            clock_steps: 0,
        }
    }
}

impl Tally {
    pub(crate) fn reply(&mut self, reply: &Reply) {
        if reply.replayed {
            self.replays += 1;
            return;
        }
        let code = match &reply.outcome {
            Outcome::Refused(refusal) => Refusal::code(refusal),
            Outcome::Hold(_)
            | Outcome::Item(_)
            | Outcome::Sale(_)
            | Outcome::Shop(_)
            | Outcome::Erased(_) => "done",
        };
        self.outcome(reply.command.act.operation(), code);
    }

    pub(crate) fn fault(&mut self, fault: &Fault) {
        self.outcome("", fault.code());
    }

    pub(crate) fn turn(&mut self, took_us: u64, commands: usize, replays: u64) {
        self.turns += 1;
        self.turn_us.add(took_us);
        self.turn_commands.add(commands as u64);
        if replays > 0 {
            self.storm.add(replays);
        }
    }

    /// A handful of kinds exist, and the common ones come first: a look along a short list.
    fn outcome(&mut self, operation: &'static str, code: &'static str) {
        let known =
            |count: &&mut OutcomeCount| same(count.operation, operation) && same(count.code, code);
        match self.outcomes.iter_mut().find(known) {
            Some(found) => found.count += 1,
            None => self.outcomes.push(OutcomeCount { operation, code, count: 1 }),
        }
    }
}

/// One text is mostly also one place; equal texts in two places are still equal.
fn same(a: &'static str, b: &'static str) -> bool {
    std::ptr::eq(a, b) || a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_bounds_it() {
        let mut histogram = Histogram::of(&SIZES);
        for value in [0, 1, 2, 3, 32_768, 32_769] {
            histogram.add(value);
        }
        assert_eq!(histogram.counts[0], 2);
        assert_eq!(histogram.counts[1], 1);
        assert_eq!(histogram.counts[2], 1);
        assert_eq!(histogram.counts[BUCKETS - 1], 1);
        assert_eq!(histogram.counts[BUCKETS], 1);
        assert_eq!(histogram.total(), 6);
    }
}
