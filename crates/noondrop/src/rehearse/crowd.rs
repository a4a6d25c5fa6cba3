//! The buyers: they come early, press at opening, double-click, lose answers, try a second device, pay or walk away.
//!
//! No IO here: the crowd hands out errands, is told what came of each, and decides what its buyers do next. Each errand
//! is one request with one key; it is sent again with that key until there is a decisive answer.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Plan;
use super::chances::Chances;
use super::record::{Kind, Record, Sight};
use crate::bench::figures::Durations;
use crate::client::Answer;
use crate::http::codes::{Retry, code_row};

/// How long a buyer waits before he sends again what got no answer.
const AGAIN_AFTER: Duration = Duration::from_millis(30);
/// What is added to it at random, so that not everybody comes back at once.
const AGAIN_WITHIN: Duration = Duration::from_millis(60);
/// The same after "try again with a new key", beside what the answer says.
const RETRY_WITHIN: Duration = Duration::from_millis(250);
/// How long after the opening buyers press: nobody's finger is faster, and no clock finer.
const PRESS_AFTER: Duration = Duration::from_millis(20);
/// New keys that one buyer tries before he gives up.
const ATTEMPTS_MAX: u16 = 500;

/// What a buyer's errand is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A hold, from his own device.
    Press,
    /// A hold, from his second device, with a key of its own.
    PressElsewhere,
    /// The confirm of the hold with this place in the record.
    Pay(usize),
}

/// One request with one key, to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Errand {
    /// Whose.
    pub buyer: u32,
    /// Which of his attempts.
    pub attempt: u16,
    /// What.
    pub act: Act,
    /// The buyer hangs up before the answer comes.
    pub hangs_up: bool,
    /// When it was first sent.
    pub first_sent: Option<Instant>,
}

impl Errand {
    /// What its key is known by in the record.
    #[must_use]
    pub fn key(&self) -> (u32, u32, Kind) {
        let attempt = u32::from(self.attempt);
        match self.act {
            Act::Press => (self.buyer, attempt, Kind::Press),
            Act::PressElsewhere => (self.buyer, attempt, Kind::PressElsewhere),
            Act::Pay(place) => (self.buyer, u32::try_from(place).unwrap_or(u32::MAX), Kind::Pay),
        }
    }
}

/// An errand for later; the earlier one first, then the lower rank.
#[derive(Clone, Copy, Debug)]
struct Later {
    at: Instant,
    rank: u64,
    errand: Errand,
}

impl Later {
    fn order(&self) -> (Instant, u64) {
        (self.at, self.rank)
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// What one buyer is like.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "habits that come in every combination")]
struct Habits {
    early: bool,
    double_clicks: bool,
    loses_answer: bool,
    loses_receipt: bool,
    second_device: bool,
    abandons: bool,
    hesitates: Duration,
    rank: u32,
}

impl Habits {
    fn of(plan: &Plan, buyer: u32) -> Self {
        let mut chances = Chances::of(plan.seed, buyer);
        let hesitates_seconds_max = (f64::from(plan.hold_ttl_seconds) / 8.0).min(0.25);
        Self {
            early: chances.hit(0.03),
            double_clicks: chances.hit(plan.duplicates),
            loses_answer: chances.hit(0.03),
            loses_receipt: chances.hit(0.03),
            second_device: chances.hit(0.05),
            abandons: chances.hit(plan.abandon),
            hesitates: Duration::from_secs_f64(hesitates_seconds_max * chances.draw()),
            rank: chances.bits(),
        }
    }
}

/// When the crowd gathers, presses and goes home.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Now.
    pub now: Instant,
    /// The sale opens.
    pub opens: Instant,
    /// From then on nobody tries again.
    pub closes: Instant,
}

/// What buyers saw, counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Attempts that were decided, each with a key of its own.
    pub attempts: u64,
    /// Decided attempts and payments, by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Answers from the record.
    pub replays: u64,
    /// Buyers who stopped trying with tickets left: a bound was reached.
    pub gave_up: u64,
    /// Buyers who had at least one decisive answer.
    pub heard: u32,
    /// From a buyer's first sending of a key to its decisive answer, outages and all.
    pub waits: Durations,
}

impl Tally {
    /// How often an outcome was seen.
    #[must_use]
    pub fn outcome(&self, code: &str) -> u64 {
        self.outcomes.get(code).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Buyer {
    attempt: u16,
    heard: bool,
}

/// All of them.
pub struct Crowd {
    plan: Plan,
    closes: Instant,
    buyers: Vec<Buyer>,
    /// What was promised comes before what is new: payments, and everything sent again.
    urgent: VecDeque<Errand>,
    presses: VecDeque<Errand>,
    later: BinaryHeap<Reverse<Later>>,
    out: usize,
    jitter: Chances,
    /// What they counted.
    pub tally: Tally,
    /// What they were told.
    pub record: Record,
}

/// The part of a hold that a buyer keeps.
#[derive(Deserialize)]
struct Held<'a> {
    id: &'a str,
    fence: u64,
}

#[derive(Deserialize)]
struct Refused<'a> {
    code: &'a str,
}

impl Crowd {
    /// Everybody is there, and waits for the opening.
    #[must_use]
    pub fn gather(plan: &Plan, times: Times) -> Self {
        let mut crowd = Self {
            plan: plan.clone(),
            closes: times.closes,
            buyers: vec![Buyer::default(); plan.buyers as usize],
            urgent: VecDeque::new(),
            presses: VecDeque::new(),
            later: BinaryHeap::new(),
            out: 0,
            jitter: Chances::of(plan.seed, u32::MAX),
            tally: Tally::default(),
            record: Record::default(),
        };
        for buyer in 0..plan.buyers {
            crowd.enter(buyer, times);
        }
        crowd
    }

    fn enter(&mut self, buyer: u32, times: Times) {
        let habits = Habits::of(&self.plan, buyer);
        let at = if habits.early { times.now } else { times.opens + PRESS_AFTER };
        let errand = |act| Errand { buyer, attempt: 0, act, hangs_up: false, first_sent: None };
        let mut errands = vec![Errand { hangs_up: habits.loses_answer, ..errand(Act::Press) }];
        if habits.double_clicks {
            errands.push(errand(Act::Press));
        }
        if habits.second_device {
            errands.push(errand(Act::PressElsewhere));
        }
        for (place, errand) in (0..).zip(errands) {
            // Side by side, so that they are sent at once.
            let rank = u64::from(habits.rank) << 8 | place;
            self.later.push(Reverse(Later { at, rank, errand }));
        }
    }

    /// The next errand, to be sent now.
    pub fn take(&mut self, now: Instant) -> Option<Errand> {
        self.release(now);
        let errand = self.urgent.pop_front().or_else(|| self.presses.pop_front())?;
        self.out += 1;
        Some(Errand { first_sent: errand.first_sent.or(Some(now)), ..errand })
    }

    /// Moves what is due to where it is taken from; whether anything can be taken.
    pub fn release(&mut self, now: Instant) -> bool {
        while self.later.peek().is_some_and(|Reverse(later)| later.at <= now) {
            let Some(Reverse(Later { errand, .. })) = self.later.pop() else { break };
            let is_new = errand.first_sent.is_none() && !matches!(errand.act, Act::Pay(_));
            if is_new { self.presses.push_back(errand) } else { self.urgent.push_back(errand) }
        }
        !(self.urgent.is_empty() && self.presses.is_empty())
    }

    /// Whether everybody has gone home.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.out == 0 && self.urgent.is_empty() && self.presses.is_empty() && self.later.is_empty()
    }

    /// Buyers who mean to pay, and so must get a ticket while there are any.
    #[must_use]
    pub fn willing(plan: &Plan) -> u64 {
        (0..plan.buyers).filter(|&buyer| !Habits::of(plan, buyer).abandons).count() as u64
    }

    /// What came of an errand; no answer: nobody knows.
    pub fn settle(&mut self, errand: Errand, answer: Option<&Answer>, now: Instant) {
        self.out -= 1;
        let again = Errand { hangs_up: false, ..errand };
        let Some(answer) = answer else { return self.again(again, AGAIN_AFTER, now) };
        let success = (200..300).contains(&answer.status);
        let code = if success { "" } else { code_of(answer) };
        let row = code_row(code);
        if !success && !row.recorded {
            return self.not_decided(again, answer, code, row.retry, now);
        }
        self.tally.replays += u64::from(answer.replayed);
        match self.record.note(errand.key(), answer) {
            // A repeat: it was compared, and the first answer is what the buyer acts on.
            Sight::Again => {}
            Sight::First => self.decided(errand, answer, code, now),
        }
    }

    fn not_decided(
        &mut self,
        errand: Errand,
        answer: &Answer,
        code: &str,
        retry: Retry,
        now: Instant,
    ) {
        if code == "internal" || retry != Retry::SameKey {
            self.record.unexpected(&format!("{} {code}", answer.status));
        }
        if retry != Retry::SameKey {
            return;
        }
        let early = code == "sale_not_open";
        // Before the opening nothing was sent that could be decided.
        let errand = Errand { first_sent: errand.first_sent.filter(|_| !early), ..errand };
        let wait = answer.retry_after_seconds.map_or(AGAIN_AFTER, Duration::from_secs);
        self.again(errand, if early { wait } else { wait.min(Duration::from_secs(1)) }, now);
    }

    /// The same request with the same key, after a while. What was begun is ended also after closing time, for a while.
    fn again(&mut self, errand: Errand, wait: Duration, now: Instant) {
        let last = self.closes + Duration::from_secs(10);
        if now >= last {
            self.tally.gave_up += 1;
            return;
        }
        let at = now + wait + self.jitter.up_to(AGAIN_WITHIN);
        self.send_at(errand, at);
    }

    fn send_at(&mut self, errand: Errand, at: Instant) {
        let rank = u64::from(self.jitter.bits()) << 8;
        self.later.push(Reverse(Later { at, rank, errand }));
    }

    fn decided(&mut self, errand: Errand, answer: &Answer, code: &str, now: Instant) {
        if let Some(first_sent) = errand.first_sent {
            self.tally.waits.push(now.saturating_duration_since(first_sent));
        }
        let buyer = &mut self.buyers[errand.buyer as usize];
        if !std::mem::replace(&mut buyer.heard, true) {
            self.tally.heard += 1;
        }
        match errand.act {
            Act::Press | Act::PressElsewhere => self.pressed(errand, answer, code, now),
            Act::Pay(place) => self.paid(errand, place, code, now),
        }
    }

    fn count(&mut self, code: &str) {
        *self.tally.outcomes.entry(code.to_owned()).or_default() += 1;
    }

    fn pressed(&mut self, errand: Errand, answer: &Answer, code: &str, now: Instant) {
        self.tally.attempts += 1;
        if code.is_empty() {
            return self.held(errand, answer, now);
        }
        self.count(code);
        match code {
            "all_held" | "not_enough_free" if errand.act == Act::Press => {
                let wait = Duration::from_secs(answer.retry_after_seconds.unwrap_or(1).min(5));
                let at = now + wait + self.jitter.up_to(RETRY_WITHIN);
                self.press_again(errand.buyer, at);
            }
            "all_held" | "not_enough_free" | "sold_out" | "buyer_has_hold" | "limit_per_buyer" => {}
            other => self.record.unexpected(other),
        }
    }

    fn held(&mut self, errand: Errand, answer: &Answer, now: Instant) {
        let held = serde_json::from_slice::<Held<'_>>(&answer.body).ok();
        let id = held.as_ref().and_then(|held| held.id.parse().ok());
        let (Some(held), Some(id)) = (held, id) else {
            return self.record.unexpected("a hold that cannot be read");
        };
        self.count("held");
        let place = self.record.hold(errand.buyer, id, held.fence);
        let habits = Habits::of(&self.plan, errand.buyer);
        if habits.abandons {
            self.count("walked away");
            return;
        }
        let at = now + habits.hesitates;
        let pay = Errand { act: Act::Pay(place), first_sent: None, ..errand };
        self.send_at(Errand { hangs_up: habits.loses_receipt, ..pay }, at);
        if habits.double_clicks {
            self.send_at(Errand { hangs_up: false, ..pay }, at);
        }
    }

    fn paid(&mut self, errand: Errand, place: usize, code: &str, now: Instant) {
        if code.is_empty() {
            self.count("confirmed");
            return self.record.confirm(place);
        }
        self.count(&format!("confirm: {code}"));
        if code == "hold_expired" {
            // Too late: the money goes back, and he tries for another ticket.
            let at = now + self.jitter.up_to(RETRY_WITHIN);
            self.press_again(errand.buyer, at);
        } else {
            self.record.unexpected(&format!("confirm: {code}"));
        }
    }

    /// A new attempt with a new key, unless it is late.
    fn press_again(&mut self, buyer: u32, at: Instant) {
        let known = &mut self.buyers[buyer as usize];
        if at >= self.closes || known.attempt >= ATTEMPTS_MAX {
            self.tally.gave_up += 1;
            return;
        }
        known.attempt += 1;
        let attempt = known.attempt;
        let errand = Errand { buyer, attempt, act: Act::Press, hangs_up: false, first_sent: None };
        self.send_at(errand, at);
    }
}

fn code_of(answer: &Answer) -> &str {
    serde_json::from_slice::<Refused<'_>>(&answer.body).map_or("internal", |refused| refused.code)
}

#[cfg(test)]
#[path = "crowd_tests.rs"]
mod tests;
