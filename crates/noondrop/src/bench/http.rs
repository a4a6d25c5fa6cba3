//! `noondrop bench http`: holds through the whole server beside a route of the same server that only parses and answers.
//!
//! The server is a child process; the load comes from this one, in a closed loop per connection. Every hold has a key and
//! a buyer of its own, and at the end the holds in the log are compared with the answers: a script that repeats keys
//! would measure replays.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;

use super::figures::{Durations, rounded};
use super::workload::{ITEM, SALE};
use crate::cli::Failure;
use crate::client::{Connection, Request};
use crate::rehearse::server::ChildServer;
use crate::time::steady;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `http`
    pub bench: &'static str,
    /// Connections.
    pub connections: usize,
    /// Holds a second.
    pub hold_rps: f64,
    /// Bare answers a second.
    pub bare_rps: f64,
    /// The one by the other.
    pub ratio: f64,
    /// Median.
    pub hold_p50_ms: f64,
    /// 99 of 100.
    pub hold_p99_ms: f64,
    /// 99 of 100.
    pub bare_p99_ms: f64,
    /// Answers that were not 201, requests without an answer, and holds that the log has more or fewer of.
    pub errors: u64,
}

/// Starts a server that has the bench route, with the item on sale.
pub async fn prepare(server: &mut ChildServer) -> Result<String, Failure> {
    server.ready().await?;
    let token = server.admin_secret()?;
    let mut connection = Connection::new(server.address(), Duration::from_secs(10));
    let steps = [
        ("PUT", format!("/v1/sales/{SALE}"), r#"{"hold_seconds":3600}"#),
        ("PUT", format!("/v1/sales/{SALE}/items/{ITEM}"), r#"{"total":1000000000}"#),
        ("POST", format!("/v1/sales/{SALE}/publish"), ""),
    ];
    for (method, path, body) in steps {
        let request = Request { method, path: &path, token: &token, key: None, body };
        let answer = connection.request(&request.bytes()).await?;
        if answer.status >= 300 {
            return Err(format!("{path} was answered {}", answer.status).into());
        }
    }
    Ok(token)
}

/// The body of one hold.
#[must_use]
pub fn hold_body(buyer: u64) -> String {
    format!(
        "{{\"sale\":\"{SALE}\",\"buyer\":\"buyer-{buyer}\",\"lines\":[{{\"item\":\"{ITEM}\",\"quantity\":1}}]}}"
    )
}

#[derive(Default)]
struct Measured {
    next: u64,
    made: u64,
    errors: u64,
    durations: Durations,
}

/// Measures both, the bare one first.
pub fn run(data: &Path, connections: usize, seconds: u64) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let mut server = ChildServer::start_for_bench(data)?;
    let report = local.block_on(&runtime, async {
        let token: Rc<str> = prepare(&mut server).await?.into();
        let address = server.address();
        // Warm up, then measure each in turn.
        load(address, &token, "/v1/bench/bare", connections, Duration::from_millis(300), 0).await;
        let time = Duration::from_secs(seconds.max(1));
        let (mut bare, bare_s) =
            load(address, &token, "/v1/bench/bare", connections, time, 0).await;
        let (mut held, held_s) = load(address, &token, "/v1/holds", connections, time, 1).await;
        let (hold_rps, bare_rps) = (held.made as f64 / held_s, bare.made as f64 / bare_s);
        let in_log = holds_in(address, &token).await?;
        Ok::<_, Failure>(Report {
            bench: "http",
            connections,
            hold_rps: hold_rps.round(),
            bare_rps: bare_rps.round(),
            ratio: rounded(hold_rps / bare_rps),
            hold_p50_ms: held.durations.per_mille_ms(500),
            hold_p99_ms: held.durations.per_mille_ms(990),
            bare_p99_ms: bare.durations.per_mille_ms(990),
            errors: bare.errors + held.errors + in_log.abs_diff(held.made),
        })
    })?;
    server.stop()?;
    Ok(report)
}

async fn holds_in(address: std::net::SocketAddr, token: &str) -> Result<u64, Failure> {
    let path = format!("/v1/sales/{SALE}/items/{ITEM}");
    let request = Request { method: "GET", path: &path, token, key: None, body: "" }.bytes();
    let answer = Connection::new(address, Duration::from_secs(10)).request(&request).await?;
    let item: serde_json::Value = serde_json::from_slice(&answer.body)?;
    item["held"].as_u64().ok_or_else(|| "the item has no count".into())
}

async fn load(
    address: std::net::SocketAddr,
    token: &Rc<str>,
    path: &'static str,
    connections: usize,
    time: Duration,
    round: u64,
) -> (Measured, f64) {
    let measured = Rc::new(RefCell::new(Measured::default()));
    let begun = steady();
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let (measured, token) = (measured.clone(), token.clone());
        tasks.push(crate::tasks::spawn_here(async move {
            let mut connection = Connection::new(address, Duration::from_secs(10));
            while begun.elapsed() < time {
                let number = {
                    let mut all = measured.borrow_mut();
                    all.next += 1;
                    all.next
                };
                let key = format!("{round}-{number}");
                let body = hold_body(number);
                let request =
                    Request { method: "POST", path, token: &token, key: Some(&key), body: &body };
                let bytes = request.bytes();
                let sent = steady();
                let answer = connection.request(&bytes).await;
                let mut all = measured.borrow_mut();
                if answer.is_ok_and(|answer| answer.status == 201 && !answer.replayed) {
                    all.made += 1;
                    all.durations.push(sent.elapsed());
                } else {
                    all.errors += 1;
                }
            }
        }));
    }
    for task in tasks {
        if task.await.is_err() {
            measured.borrow_mut().errors += 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    (measured.take(), seconds)
}
