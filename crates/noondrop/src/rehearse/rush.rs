//! The connections that the crowd shares: each takes an errand, sends it, and tells what came of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use super::crowd::{Act, Crowd, Errand};
use super::stage::{ITEM, Stage};
use crate::bench::figures::Durations;
use crate::client::{Answer, Connection, Request};
use crate::time::steady;

/// How long an answer may take before a buyer asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether somebody's time has come.
const TICK: Duration = Duration::from_millis(2);
/// How often the counts are asked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What all connections share.
pub struct Rush {
    /// The crowd.
    pub crowd: RefCell<Crowd>,
    /// Requests sent.
    pub sent: Cell<u64>,
    /// Requests answered.
    pub answered: Cell<u64>,
    /// Units free, held and sold, as the server said last.
    pub counts: Cell<Option<(u64, u64, u64)>>,
    /// From sending to the answer, of exchanges that no outage touched.
    pub exchanges: RefCell<Durations>,
    /// Answered requests and seconds from the opening until everybody had an answer.
    pub storm: Cell<Option<(u64, f64)>>,
    stage: Stage,
    down: Cell<bool>,
    outages: Cell<u64>,
    wake: Notify,
}

impl Rush {
    /// Nobody has sent anything yet.
    #[must_use]
    pub fn new(stage: Stage, crowd: Crowd) -> Rc<Self> {
        Rc::new(Self {
            crowd: RefCell::new(crowd),
            sent: Cell::new(0),
            answered: Cell::new(0),
            counts: Cell::new(None),
            exchanges: RefCell::default(),
            storm: Cell::new(None),
            stage,
            down: Cell::new(false),
            outages: Cell::new(0),
            wake: Notify::new(),
        })
    }

    /// Tells that the server is down, or up again.
    pub fn outage(&self, down: bool) {
        self.down.set(down);
        self.outages.set(self.outages.get() + 1);
    }

    /// Whether everybody has gone home.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.crowd.borrow().is_over()
    }

    /// Wakes connections when somebody's time has come; ends with the crowd.
    pub async fn tick(self: Rc<Self>) {
        while !self.is_over() {
            if self.crowd.borrow_mut().release(steady()) {
                self.wake.notify_one();
            }
            self.note_storm();
            tokio::time::sleep(TICK).await;
        }
        self.wake.notify_waiters();
    }

    fn note_storm(&self) {
        let crowd = self.crowd.borrow();
        let opened = steady().saturating_duration_since(self.stage.opens);
        if self.storm.get().is_none() && crowd.tally.heard == self.stage.buyers {
            self.storm.set(Some((self.answered.get(), opened.as_secs_f64())));
        }
    }

    /// Asks for the counts now and then; ends with the crowd.
    pub async fn look(self: Rc<Self>) {
        let mut connection = Connection::new(self.stage.address, Duration::from_secs(1));
        let path = self.stage.item_path();
        let token = &self.stage.token;
        let request = Request { method: "GET", path: &path, token, key: None, body: "" }.bytes();
        while !self.is_over() {
            if let Ok(answer) = connection.request(&request).await {
                let item: serde_json::Value =
                    serde_json::from_slice(&answer.body).unwrap_or_default();
                let units = |name: &str| item[name].as_u64();
                let counts = units("available").zip(units("held")).zip(units("sold"));
                let counts = counts.map(|((available, held), sold)| (available, held, sold));
                self.counts.set(counts.or(self.counts.get()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// One connection; ends with the crowd.
    pub async fn serve(self: Rc<Self>) {
        let mut connection = Connection::new(self.stage.address, ANSWER_WITHIN);
        while !self.is_over() {
            let errand = self.crowd.borrow_mut().take(steady());
            let Some(errand) = errand else {
                // The tick may have ended between the question and here, so not for ever.
                let _ =
                    tokio::time::timeout(Duration::from_millis(250), self.wake.notified()).await;
                continue;
            };
            if self.crowd.borrow_mut().release(steady()) {
                self.wake.notify_one();
            }
            let request = self.request(&errand);
            let answer = self.exchange(&mut connection, &request, errand.hangs_up).await;
            self.crowd.borrow_mut().settle(errand, answer.as_ref(), steady());
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &[u8],
        hangs_up: bool,
    ) -> Option<Answer> {
        self.sent.set(self.sent.get() + 1);
        let (sent, outages) = (steady(), self.outages.get());
        if hangs_up {
            // Nothing came back, whatever became of it.
            let _ = connection.send_and_hang_up(request).await;
            return None;
        }
        let answer = connection.request(request).await.ok()?;
        self.answered.set(self.answered.get() + 1);
        if outages == self.outages.get() && !self.down.get() {
            self.exchanges.borrow_mut().push(sent.elapsed());
        }
        Some(answer)
    }

    fn request(&self, errand: &Errand) -> Vec<u8> {
        let Stage { token, sale, .. } = &self.stage;
        let Errand { buyer, attempt, .. } = errand;
        let press = |key: String| {
            let name = buyer_name(*buyer);
            let body = format!(
                "{{\"sale\":\"{sale}\",\"buyer\":\"{name}\",\"lines\":[{{\"item\":\"{ITEM}\",\"quantity\":1}}]}}"
            );
            let path = "/v1/holds";
            Request { method: "POST", path, token, key: Some(&key), body: &body }.bytes()
        };
        match errand.act {
            Act::Press => press(format!("{sale}.cart-{buyer}.v{attempt}")),
            Act::PressElsewhere => press(format!("{sale}.phone-{buyer}.v{attempt}")),
            Act::Pay(place) => {
                let promise = self.crowd.borrow().record.promise(place);
                let path = format!("/v1/holds/{}/confirm", promise.id);
                let key = format!("{sale}.pay-{buyer}-{place}");
                let fence = promise.fence;
                let payment = payment_ref(*buyer, place);
                let body = format!("{{\"fence\":{fence},\"payment_ref\":\"{payment}\"}}");
                Request { method: "POST", path: &path, token, key: Some(&key), body: &body }.bytes()
            }
        }
    }
}

/// The payment of a buyer for the hold with this place in the record.
#[must_use]
pub fn payment_ref(buyer: u32, place: usize) -> String {
    format!("pi-{buyer}-{place}")
}

/// A buyer, as the shop names him.
#[must_use]
pub fn buyer_name(buyer: u32) -> String {
    format!("buyer-{buyer}")
}
