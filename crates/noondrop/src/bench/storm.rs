//! `noondrop bench storm`: the same key at once on many connections, until all are answered.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::figures::Durations;
use super::http::{hold_body, prepare};
use crate::cli::Failure;
use crate::client::{Connection, Request};
use crate::rehearse::server::ChildServer;
use crate::time::steady;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `storm`
    pub bench: &'static str,
    /// Requests in one storm.
    pub duplicates: usize,
    /// Storms.
    pub storms: u32,
    /// Holds made: one per storm.
    pub holds: u64,
    /// Answers from the record: all others.
    pub replays: u64,
    /// Until all of a storm are answered, median.
    pub p50_ms: f64,
    /// The slowest storm.
    pub max_ms: f64,
    /// Answers that were not 201, or not alike.
    pub errors: u64,
}

/// Measures.
pub fn run(data: &Path, duplicates: usize, storms: u32) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let mut server = ChildServer::start(data)?;
    let report = local.block_on(&runtime, async {
        let token = prepare(&mut server).await?;
        let mut connections: Vec<Connection> = (0..duplicates)
            .map(|_| Connection::new(server.address(), Duration::from_secs(10)))
            .collect();
        let mut report = Report {
            bench: "storm",
            duplicates,
            storms,
            holds: 0,
            replays: 0,
            p50_ms: 0.0,
            max_ms: 0.0,
            errors: 0,
        };
        let mut durations = Durations::default();
        // The first only opens the connections.
        for storm in 0..=u64::from(storms) {
            let mut counted = report.clone();
            let took = one(&mut connections, &token, storm, &mut counted).await;
            if storm > 0 {
                report = counted;
                durations.push(took);
            }
        }
        report.p50_ms = durations.per_mille_ms(500);
        report.max_ms = durations.per_mille_ms(1_000);
        Ok::<_, Failure>(report)
    })?;
    server.stop()?;
    Ok(report)
}

async fn one(
    connections: &mut Vec<Connection>,
    token: &str,
    storm: u64,
    report: &mut Report,
) -> Duration {
    let (key, body) = (format!("storm-{storm}"), hold_body(storm));
    let request =
        Request { method: "POST", path: "/v1/holds", token, key: Some(&key), body: &body };
    let bytes: std::rc::Rc<[u8]> = request.bytes().into();
    let begun = steady();
    let mut tasks = Vec::new();
    for mut connection in connections.drain(..) {
        let bytes = bytes.clone();
        tasks.push(crate::tasks::spawn_here(async move {
            let answer = connection.request(&bytes).await;
            (connection, answer)
        }));
    }
    let mut first: Option<Vec<u8>> = None;
    for task in tasks {
        let Ok((connection, answer)) = task.await else {
            report.errors += 1;
            continue;
        };
        connections.push(connection);
        match answer {
            Ok(answer) if answer.status == 201 => {
                report.replays += u64::from(answer.replayed);
                report.holds += u64::from(!answer.replayed);
                let alike = first.get_or_insert_with(|| answer.body.clone()) == &answer.body;
                report.errors += u64::from(!alike);
            }
            _ => report.errors += 1,
        }
    }
    begun.elapsed()
}
