//! The buyers: they come early, press at opening, double-click, lose answers, try a second device, pay or walk away.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Plan;
use crate::bench::figures::Durations;
use crate::client::{Answer, Connection, Request};
use crate::time::{now_ms, steady};

/// How long an answer may take before a buyer gives it up and asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a buyer waits before he asks again after an outage.
const AGAIN_AFTER: Duration = Duration::from_millis(25);
/// Attempts with new keys before a buyer gives up.
const ATTEMPTS_MAX: u32 = 200;
/// Times that one request is sent before a buyer gives up.
const SENDS_MAX: u32 = 2_000;

/// The sale's name; one per seed, so that a staging system can be rehearsed on again.
#[must_use]
pub fn sale_name(seed: u64) -> String {
    format!("rehearsal-{seed}")
}

/// What buyers saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Requests that were sent.
    pub requests: u64,
    /// Attempts, each with a key of its own.
    pub attempts: u64,
    /// Decisive answers by code; `held` and `confirmed` are successes.
    pub outcomes: BTreeMap<String, u64>,
    /// Answers from the record.
    pub replays: u64,
    /// Answers to one key that were not alike.
    pub differing: u64,
    /// Times that the server was killed.
    pub kills: u32,
    /// Requests without an answer.
    pub lost_answers: u64,
    /// Buyers who gave up: a bound was reached, which is a failure.
    pub gave_up: u64,
    /// Holds that were acknowledged: id by key.
    pub holds: BTreeMap<String, String>,
    /// Holds whose confirm was acknowledged.
    pub confirmed: Vec<String>,
    /// From sending to the answer, of single exchanges.
    pub exchanges: Durations,
    /// From a buyer's first sending to a decisive answer, outages and all.
    pub waits: Durations,
    /// First answer per key: status and a hash of the body.
    answers: BTreeMap<String, (u16, [u8; 32])>,
}

impl Seen {
    /// Holds that were acknowledged so far.
    #[must_use]
    pub fn holds_acknowledged(&self) -> u64 {
        self.holds.len() as u64
    }

    /// How often an outcome was seen.
    #[must_use]
    pub fn outcome(&self, code: &str) -> u64 {
        self.outcomes.get(code).copied().unwrap_or(0)
    }

    /// Notes a decisive answer to a key. All answers to one key must be alike, to the byte.
    pub fn note(&mut self, key: &str, answer: &Answer) {
        let hash = *blake3::hash(&answer.body).as_bytes();
        let first = self.answers.entry(key.to_owned()).or_insert((answer.status, hash));
        if *first != (answer.status, hash) {
            self.differing += 1;
        }
        self.replays += u64::from(answer.replayed);
    }

    fn count(&mut self, code: &str) {
        *self.outcomes.entry(code.to_owned()).or_default() += 1;
    }
}

/// What all buyers share.
pub struct World {
    /// What is rehearsed.
    pub plan: Plan,
    address: SocketAddr,
    token: String,
    opens_at_ms: u64,
    places: Semaphore,
    idle: RefCell<Vec<Connection>>,
    down: Cell<bool>,
    outages: Cell<u64>,
    /// What buyers saw.
    pub seen: RefCell<Seen>,
}

impl World {
    /// Before anybody came.
    #[must_use]
    pub fn new(plan: Plan, address: SocketAddr, token: String, opens_at_ms: u64) -> Rc<Self> {
        let connections = plan.connections.max(1);
        let idle = (0..connections).map(|_| Connection::new(address, ANSWER_WITHIN)).collect();
        Rc::new(Self {
            plan,
            address,
            token,
            opens_at_ms,
            places: Semaphore::new(connections),
            idle: RefCell::new(idle),
            down: Cell::new(false),
            outages: Cell::new(0),
            seen: RefCell::default(),
        })
    }

    /// Tells that the server is down, or up again.
    pub fn outage(&self, down: bool) {
        self.down.set(down);
        self.outages.set(self.outages.get() + 1);
    }

    /// Asks something that is no purchase.
    pub async fn get(&self, path: &str) -> Option<Answer> {
        let request =
            Request { method: "GET", path, token: &self.token, key: None, body: "" }.bytes();
        Connection::new(self.address, ANSWER_WITHIN).request(&request).await.ok()
    }

    async fn exchange(&self, request: &[u8], hang_up: bool) -> Option<Answer> {
        let _place = self.places.acquire().await.ok()?;
        let mut connection = self.idle.borrow_mut().pop().expect("a place has a connection");
        self.seen.borrow_mut().requests += 1;
        let (sent, outages) = (steady(), self.outages.get());
        let answer = if hang_up {
            // Nothing came back, whatever became of it.
            let _ = connection.send_and_hang_up(request).await;
            None
        } else {
            connection.request(request).await.ok()
        };
        let mut seen = self.seen.borrow_mut();
        if answer.is_none() {
            seen.lost_answers += 1;
        } else if outages == self.outages.get() && !self.down.get() {
            seen.exchanges.push(sent.elapsed());
        }
        self.idle.borrow_mut().push(connection);
        answer
    }

    /// Sends one request with one key until there is a decisive answer, obeying `retry`.
    async fn decide(&self, path: &str, key: &str, body: &str, mut hang_up: bool) -> Option<Answer> {
        let token = &self.token;
        let request = Request { method: "POST", path, token, key: Some(key), body }.bytes();
        let first = steady();
        for _ in 0..SENDS_MAX {
            let answer = self.exchange(&request, std::mem::take(&mut hang_up)).await;
            match answer {
                // Not decided, or not known: the same key tells.
                None => tokio::time::sleep(AGAIN_AFTER).await,
                Some(answer) if matches!(answer.status, 429 | 500..) => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                Some(answer) if is_before_opening(&answer) => {
                    tokio::time::sleep(self.until_opening().max(AGAIN_AFTER)).await;
                }
                Some(answer) => {
                    let mut seen = self.seen.borrow_mut();
                    seen.note(key, &answer);
                    seen.waits.push(waited(first));
                    return Some(answer);
                }
            }
        }
        self.seen.borrow_mut().gave_up += 1;
        None
    }

    fn until_opening(&self) -> Duration {
        Duration::from_millis(self.opens_at_ms.saturating_sub(now_ms()))
    }
}

fn waited(since: Instant) -> Duration {
    since.elapsed()
}

fn is_before_opening(answer: &Answer) -> bool {
    answer.status == 409 && code(answer) == "sale_not_open"
}

fn code(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body["code"].as_str().unwrap_or("unreadable").to_owned()
}

/// All buyers, on their way.
pub struct Crowd {
    buyers: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Sends everybody off.
    #[must_use]
    pub fn gather(world: &Rc<World>) -> Self {
        let buyers = (0..world.plan.buyers)
            .map(|number| {
                let buyer = Buyer::new(world, number);
                crate::tasks::spawn_here(buyer.live())
            })
            .collect();
        Self { buyers }
    }

    /// Whether everybody has gone home.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.buyers.iter().all(JoinHandle::is_finished)
    }
}

/// One buyer, and his habits.
#[expect(clippy::struct_excessive_bools, reason = "habits are independent of each other")]
struct Buyer {
    world: Rc<World>,
    number: u32,
    early: bool,
    double_clicks: bool,
    loses_answer: bool,
    second_device: bool,
    abandons: bool,
    hesitates: Duration,
}

impl Buyer {
    fn new(world: &Rc<World>, number: u32) -> Self {
        let plan = &world.plan;
        let mut chances = Chances::new(plan.seed, number);
        Self {
            world: world.clone(),
            number,
            early: chances.next() < 0.05,
            double_clicks: chances.next() < plan.duplicates,
            loses_answer: chances.next() < 0.02,
            second_device: chances.next() < 0.05,
            abandons: chances.next() < plan.abandon,
            hesitates: Duration::from_millis(200).mul_f64(chances.next()),
        }
    }

    async fn live(self) {
        let wait = self.world.until_opening();
        if !self.early {
            tokio::time::sleep(wait).await;
        }
        let Some((id, fence)) = self.hold().await else { return };
        if self.second_device {
            self.try_second_device().await;
        }
        if self.abandons {
            self.world.seen.borrow_mut().count("abandoned");
            return;
        }
        tokio::time::sleep(self.hesitates).await;
        self.pay(id, fence).await;
    }

    fn body(&self) -> String {
        let sale = sale_name(self.world.plan.seed);
        let number = self.number;
        format!(
            "{{\"sale\":\"{sale}\",\"buyer\":\"buyer-{number}\",\"lines\":[{{\"item\":\"ticket\",\"quantity\":1}}]}}"
        )
    }

    /// Tries until there is a ticket, or none left for him.
    async fn hold(&self) -> Option<(String, u64)> {
        let body = self.body();
        for attempt in 1..=ATTEMPTS_MAX {
            let key = format!("cart-{}.v{attempt}", self.number);
            self.world.seen.borrow_mut().attempts += 1;
            let answer = self.press(&key, &body, attempt == 1).await?;
            if answer.status == 201 {
                return self.held(&key, &answer);
            }
            let code = code(&answer);
            self.world.seen.borrow_mut().count(&code);
            if code != "all_held" && code != "not_enough_free" {
                return None;
            }
            // `retry: new_key`, once something may have come free.
            let seconds = answer.retry_after_seconds.unwrap_or(1).min(5);
            tokio::time::sleep(Duration::from_millis(seconds * 1_000)).await;
        }
        self.world.seen.borrow_mut().gave_up += 1;
        None
    }

    async fn press(&self, key: &str, body: &str, first: bool) -> Option<Answer> {
        let hang_up = first && self.loses_answer;
        if !(first && self.double_clicks) {
            return self.world.decide("/v1/holds", key, body, hang_up).await;
        }
        let click = || self.world.decide("/v1/holds", key, body, hang_up);
        let (one, other) = tokio::join!(click(), click());
        one.or(other)
    }

    fn held(&self, key: &str, answer: &Answer) -> Option<(String, u64)> {
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        let id = body["id"].as_str()?.to_owned();
        let fence = body["fence"].as_u64()?;
        let mut seen = self.world.seen.borrow_mut();
        seen.count("held");
        seen.holds.insert(key.to_owned(), id.clone());
        Some((id, fence))
    }

    /// The same buyer elsewhere: a distinct attempt, which must lose.
    async fn try_second_device(&self) {
        let key = format!("phone-{}.v1", self.number);
        self.world.seen.borrow_mut().attempts += 1;
        let Some(answer) = self.world.decide("/v1/holds", &key, &self.body(), false).await else {
            return;
        };
        let mut seen = self.world.seen.borrow_mut();
        if answer.status == 201 {
            // His first hold had lapsed meanwhile: then this one is his.
            drop(seen);
            if let Some((id, fence)) = self.held(&key, &answer) {
                self.pay(id, fence).await;
            }
        } else {
            seen.count(&code(&answer));
        }
    }

    async fn pay(&self, id: String, fence: u64) {
        let key = format!("pay-{id}");
        let body = format!("{{\"fence\":{fence},\"payment_ref\":\"pi-{}\"}}", self.number);
        let path = format!("/v1/holds/{id}/confirm");
        let Some(answer) = self.world.decide(&path, &key, &body, false).await else { return };
        let mut seen = self.world.seen.borrow_mut();
        if answer.status == 200 {
            seen.count("confirmed");
            seen.confirmed.push(id);
        } else {
            let code = code(&answer);
            seen.count(&format!("confirm: {code}"));
        }
    }
}

/// Chances of one buyer: from the seed, so that the same seed makes the same crowd.
struct Chances {
    hash: blake3::OutputReader,
}

impl Chances {
    fn new(seed: u64, number: u32) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes()).update(&number.to_le_bytes());
        Self { hash: hasher.finalize_xof() }
    }

    /// At least 0, below 1.
    fn next(&mut self) -> f64 {
        let mut bytes = [0; 4];
        self.hash.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_differing_answer_to_one_key_is_noticed() {
        let mut seen = Seen::default();
        let answer = Answer { status: 201, body: b"{}".to_vec(), ..Answer::default() };
        seen.note("k", &answer);
        seen.note("k", &Answer { replayed: true, ..answer.clone() });
        assert_eq!((seen.differing, seen.replays), (0, 1));
        seen.note("k", &Answer { body: b"{ }".to_vec(), ..answer.clone() });
        seen.note("k", &Answer { status: 200, ..answer });
        assert_eq!(seen.differing, 2);
    }
}
