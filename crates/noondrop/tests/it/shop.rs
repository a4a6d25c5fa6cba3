//! A shop with a real server, for tests that sell something and then look at the log.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use noondrop::client::{Connection, Request};
use noondrop::rehearse::server::ChildServer;
use serde_json::{Value, json};

use crate::program::server;

/// Makes every buyer of every crowd another one.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

/// An answer as a shop reads it.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    pub replayed: bool,
    pub text: String,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// One connection to a server, as its admin.
pub struct Caller {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    token: String,
}

impl Caller {
    pub fn new(address: SocketAddr, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connection = Connection::new(address, Duration::from_secs(10));
        Self { runtime, connection, token: token.to_owned() }
    }

    pub fn call(&mut self, method: &str, path: &str, key: Option<&str>, body: &str) -> Answered {
        let request = Request { method, path, token: &self.token, key, body }.bytes();
        let answer = self.runtime.block_on(self.connection.request(&request)).unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        Answered { status: answer.status, replayed: answer.replayed, text }
    }

    /// A request that must succeed.
    pub fn well(&mut self, method: &str, path: &str, key: Option<&str>, body: &Value) -> Answered {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answered = self.call(method, path, key, &body);
        assert!((200..300).contains(&answered.status), "{method} {path}: {answered:?}");
        answered
    }

    /// Puts `floor` of the sale `noon` on sale.
    pub fn open(&mut self, hold_seconds: u32) {
        let terms =
            json!({"title": "Noon", "hold_seconds": hold_seconds, "hold_seconds_max": 3_600});
        self.well("PUT", "/v1/sales/noon", None, &terms);
        self.well("PUT", "/v1/sales/noon/items/floor", None, &json!({"total": 1_000_000}));
        self.well("POST", "/v1/sales/noon/publish", None, &Value::Null);
    }

    /// Holds one unit for a buyer, under a key and with a reference of the same name.
    pub fn hold(&mut self, buyer: &str) -> Answered {
        self.hold_with(buyer, &json!({}))
    }

    /// The same with more in its body.
    pub fn hold_with(&mut self, buyer: &str, more: &Value) -> Answered {
        let mut body = json!({
            "sale": "noon",
            "buyer": buyer,
            "reference": format!("order-{buyer}"),
            "lines": [{"item": "floor", "quantity": 1}],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.well("POST", "/v1/holds", Some(&format!("cart-{buyer}")), &body)
    }

    pub fn confirm(&mut self, hold: &Value, payment_ref: &str) -> Answered {
        let path = format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap());
        let body = json!({"fence": hold["fence"], "payment_ref": payment_ref}).to_string();
        self.call("POST", &path, None, &body)
    }

    /// The position of the newest row.
    pub fn head(&mut self) -> String {
        let head = self.well("GET", "/v1/ledger/head", None, &Value::Null).json();
        head["position"].as_str().unwrap().to_owned()
    }

    pub fn state_of(&mut self, hold: &Value) -> String {
        let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
        let hold = self.well("GET", &path, None, &Value::Null).json();
        hold["state"].as_str().unwrap().to_owned()
    }
}

/// A server and its admin.
pub struct Shop {
    pub server: ChildServer,
    pub admin: Caller,
    pub token: String,
}

impl Shop {
    pub fn start(data: &Path) -> Self {
        fs::create_dir_all(data).unwrap();
        let server = server(data);
        let token = server.admin_secret().unwrap();
        let admin = Caller::new(server.address(), &token);
        Self { server, admin, token }
    }

    /// Sells until the work is done; a few kilobytes of metadata make the log grow. How many holds were answered.
    pub fn sell_while<T>(&self, work: impl FnOnce(&AtomicU64) -> T) -> (T, u64) {
        let (over, made) = (AtomicBool::new(false), AtomicU64::new(0));
        let address = self.server.address();
        let done = thread::scope(|scope| {
            for seller in 0..4 {
                let (over, made) = (&over, &made);
                scope.spawn(move || {
                    let mut caller = Caller::new(address, &self.token);
                    let more = json!({"metadata": {"note": "x".repeat(1_900)}});
                    loop {
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        let round = ROUNDS.fetch_add(1, Ordering::Relaxed);
                        caller.hold_with(&format!("b{seller}-{round}"), &more);
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&made)));
            over.store(true, Ordering::Relaxed);
            done
        });
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, made.into_inner())
    }

    /// Sells until so many holds were made.
    pub fn sell(&self, holds: u64) -> u64 {
        let (.., made) = self.sell_while(|made| {
            while made.load(Ordering::Relaxed) < holds {
                thread::sleep(Duration::from_millis(5));
            }
        });
        made
    }
}
