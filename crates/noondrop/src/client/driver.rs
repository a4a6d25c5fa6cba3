//! Many connections that send requests of one kind: each as soon as the last was answered, or all together at a rate.
//!
//! At a rate, a request's time counts from when it was due, not from when a connection was free for it: a server that
//! stalls is charged for everyone who would have come meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, LocalSet};

use super::answer::Response;
use super::connection::{Connection, Timeouts};
use super::target::Target;
use crate::bench::figures::Durations;
use crate::time::steady;

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each connection sends its next one when it has its answer.
    Closed,
    /// So many a second, all connections together.
    PerSecond(f64),
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// After so many requests.
    Requests(u64),
    /// After so long.
    After(Duration),
}

/// What to send, and how.
#[derive(Clone, Debug)]
pub struct Load {
    /// To whom.
    pub target: Target,
    /// Over how many connections.
    pub connections: usize,
    /// When requests are sent.
    pub pace: Pace,
    /// When to stop.
    pub stop: Stop,
    /// How long to wait for each.
    pub timeouts: Timeouts,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers from the record.
    pub replayed: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// How long each answer took.
    pub latencies: Durations,
    /// From the first request to the last answer.
    pub took: Duration,
}

impl LoadReport {
    /// Answers with a status.
    #[must_use]
    pub fn answered(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Answers a second, whatever they were.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        let answers: u64 = self.statuses.values().sum();
        answers as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Adds what another driver, on another thread, did at the same time.
    pub fn merge(&mut self, other: &Self) {
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.replayed += other.replayed;
        self.unanswered += other.unanswered;
        self.latencies.extend(&other.latencies);
        self.took = self.took.max(other.took);
    }

    fn note(&mut self, response: &Response<'_>, took: Duration) {
        *self.statuses.entry(response.status).or_default() += 1;
        self.replayed += u64::from(response.replayed);
        self.latencies.push(took);
    }
}

struct Shared<M> {
    load: Load,
    started: Instant,
    sent: u64,
    report: LoadReport,
    make: M,
}

impl<M: FnMut(u64, &mut Vec<u8>)> Shared<M> {
    /// The next request, and when it is due.
    fn next(&mut self, into: &mut Vec<u8>) -> Option<Instant> {
        let number = self.sent;
        let due = match self.load.pace {
            Pace::Closed => steady(),
            Pace::PerSecond(rate) => self.started + Duration::from_secs_f64(number as f64 / rate),
        };
        let over = match self.load.stop {
            Stop::Requests(most) => number >= most,
            Stop::After(most) => due.saturating_duration_since(self.started) >= most,
        };
        if over {
            return None;
        }
        self.sent += 1;
        into.clear();
        (self.make)(number, into);
        Some(due)
    }
}

/// Sends requests; `make` writes the whole request with the given number. Runs on the caller's current-thread runtime.
pub async fn drive(
    load: Load,
    make: impl FnMut(u64, &mut Vec<u8>) + 'static,
) -> LoadReport {
    let connections = load.connections;
    let report = LoadReport::default();
    let shared = Shared { load, started: steady(), sent: 0, report, make };
    let shared = Rc::new(RefCell::new(shared));
    let local = LocalSet::new();
    let mut all = JoinSet::new();
    for _ in 0..connections {
        all.spawn_local_on(one_connection(Rc::clone(&shared)), &local);
    }
    local.run_until(async { while all.join_next().await.is_some() {} }).await;
    let mut shared = shared.borrow_mut();
    shared.report.took = shared.started.elapsed();
    std::mem::take(&mut shared.report)
}

async fn one_connection<M: FnMut(u64, &mut Vec<u8>)>(shared: Rc<RefCell<Shared<M>>>) {
    let (target, timeouts) = {
        let shared = shared.borrow();
        (shared.load.target.clone(), shared.load.timeouts)
    };
    let mut connection = Connection::new(target, timeouts);
    let mut request = Vec::with_capacity(512);
    loop {
        let next = shared.borrow_mut().next(&mut request);
        let Some(due) = next else { return };
        let early = due.saturating_duration_since(steady());
        if !early.is_zero() {
            tokio::time::sleep(early).await;
        }
        match connection.request(&request).await {
            Ok(response) => {
                let took = steady().saturating_duration_since(due);
                shared.borrow_mut().report.note(&response, took);
            }
            Err(_) => shared.borrow_mut().report.unanswered += 1,
        }
    }
}
