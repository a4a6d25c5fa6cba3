//! `/healthz`, `/readyz`, `/metrics`, `/openapi.json`, `/`: for those who run it.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use noondrop_core::{Catalog, ItemView, Name};
use noondrop_engine::{Histogram, Phase, Status, Tally};
use serde::Deserialize;
use serde_json::json;

use super::app::{App, Caller, json_response, value_response};
use super::body::Query;
use super::problem::Problem;
use super::render::time_text;
use crate::auth::Role;

/// Items whose counts are metrics; more would be unbounded cardinality.
const ITEMS_MAX: usize = 200;

/// `GET /healthz`: the process answers.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// How much is wanted.
#[derive(Debug, Deserialize)]
pub struct ReadyQuery {
    verbose: Option<String>,
}

/// `GET /readyz`: it can decide.
pub async fn readyz(State(app): State<Arc<App>>, Query(query): Query<ReadyQuery>) -> Response {
    let status = app.handle.status();
    let ready = status.phase == Phase::Ready;
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if query.verbose.is_none() {
        return (code, format!("{}\n", status.phase.as_str())).into_response();
    }
    let why = match &status.phase {
        Phase::Recovering { why } | Phase::Failing { why, .. } => Some(why.clone()),
        Phase::Ready | Phase::Stopping | Phase::Stopped => None,
    };
    let value = json!({
        "ready": ready,
        "phase": status.phase.as_str(),
        "why": why,
        "position": status.position.to_string(),
        "last_at": time_text(status.last_at),
        "now": time_text(status.now),
        "expiry_lag_ms": status.expiry_lag_ms,
        "queue": {"creating": status.queue.creates, "settling": status.queue.settles},
        "holds": status.counters.holds,
        "live_holds": status.counters.live_holds,
        "keys": status.counters.success_keys + status.counters.refusal_keys,
        "memory_bytes": status.counters.memory_bytes,
        "turns": status.tally.turns,
        "rows": status.tally.rows,
        "replays": status.tally.replays,
        "erasures": {
            "pending": status.erasures.pending,
            "scanned": status.erasures.scanned,
            "rows_rewritten": status.erasures.rows_rewritten,
            "done": status.erasures.done,
            "failed": status.erasures.failed,
        },
        "violations": status.tally.violations,
        "clock_steps": status.tally.clock_steps,
        "uptime_ms": status.uptime_ms,
    });
    value_response(code, &value)
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    json_response(StatusCode::OK, super::openapi::TEXT.as_bytes().into())
}

/// `GET /`
pub async fn page() -> Html<&'static str> {
    Html(include_str!("page.html"))
}

/// `GET /metrics`
pub async fn metrics(
    State(app): State<Arc<App>>,
    caller: Result<Caller, Problem>,
) -> Result<Response, Problem> {
    let mut only = None;
    if !app.limits.public_metrics {
        let caller = caller?;
        caller.needs(&[Role::Auditor, Role::Admin, Role::Operator])?;
        // Who belongs to a shop sees its items, and no other's.
        only = (caller.role() != Role::Operator).then_some(caller.shop);
    }
    let catalog = app.handle.catalog();
    let items = app.ask(move |state, _| {
        let is_shown = |item: &ItemView| match (&only, shop_of(&catalog, item)) {
            (Some(only), shop) => shop == Some(only),
            (None, _) => true,
        };
        state.all_items().filter(is_shown).take(ITEMS_MAX).collect::<Vec<_>>()
    });
    let items = items.await;
    let items = items.map(|answer| answer.value).unwrap_or_default();
    let status = app.handle.status();
    let lags = follower_lags(&app, &status).await;
    let text = render(&status, &lags, &items, &app);
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn shop_of<'a>(catalog: &'a Catalog, item: &ItemView) -> Option<&'a Name> {
    let sale = catalog.sales.get(item.sale.0 as usize)?;
    catalog.shops.get(sale.shop.0 as usize).map(|shop| &shop.name)
}

/// For how long the oldest row that a follower was not given has waited, in seconds.
async fn follower_lags(app: &App, status: &Status) -> Vec<(&'static str, f64)> {
    let (handle, now) = (app.handle.clone(), status.now.0);
    let followers = status.followers.clone();
    let lag = move |next: u64| {
        let row = handle.opener().reader().and_then(|mut reader| reader.row(next));
        row.ok().flatten().map(|row| now.saturating_sub(row.at) as f64 / 1_000.0)
    };
    let lags = move || {
        let lag = |behind: u64, next| if behind == 0 { Some(0.0) } else { lag(next) };
        let all = followers.iter();
        all.filter_map(|one| Some((one.name, lag(one.rows_behind, one.seq + 1)?))).collect()
    };
    // The log is read only where somebody is behind, and never on a thread that serves.
    if status.followers.iter().all(|one| one.rows_behind == 0) {
        return lags();
    }
    tokio::task::spawn_blocking(lags).await.unwrap_or_default()
}

/// Why a confirm bought nothing: the money came late, or a second time.
const PAID_WITHOUT_UNITS: [&str; 4] =
    ["hold_expired", "hold_released", "hold_cancelled", "confirmed_with_other_payment"];

fn paid_without_units(tally: &Tally) -> u64 {
    let refused = tally.outcomes.iter().filter(|outcome| {
        outcome.operation == "holds.confirm" && PAID_WITHOUT_UNITS.contains(&outcome.code)
    });
    refused.map(|outcome| outcome.count).sum()
}

/// Writes one metric in the Prometheus text format.
struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let text = format!("# HELP noondrop_{name} {help}\n# TYPE noondrop_{name} {kind}\n");
        self.0.push_str(&text);
    }

    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "noondrop_{name}{labels} {value}").expect("writing to a string");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help);
        self.value(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.value(name, "", value);
    }

    /// Values are divided by `per`: a product would show what a fraction of two has as 0.000049999…
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram, per: f64) {
        self.head(name, "histogram", help);
        let mut below = 0;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            below += count;
            let labels = format!("{{le=\"{}\"}}", *bound as f64 / per);
            self.value(&format!("{name}_bucket"), &labels, below);
        }
        self.value(&format!("{name}_bucket"), "{le=\"+Inf\"}", histogram.total());
        self.value(&format!("{name}_sum"), "", histogram.sum as f64 / per);
        self.value(&format!("{name}_count"), "", histogram.total());
    }
}

fn render(status: &Status, lags: &[(&str, f64)], items: &[ItemView], app: &App) -> String {
    let mut text = Exposition(String::with_capacity(8_192));
    let tally = &status.tally;
    let ready = u8::from(status.phase == Phase::Ready);
    text.gauge("ready", "Whether it can decide", ready);
    text.histogram("turn_seconds", "How long turns took", &tally.turn_us, 1e6);
    text.histogram("turn_commands", "Commands per turn", &tally.turn_commands, 1.0);
    text.head("queue_depth", "gauge", "Commands that wait, by lane");
    text.value("queue_depth", "{lane=\"creating\"}", status.queue.creates);
    text.value("queue_depth", "{lane=\"settling\"}", status.queue.settles);
    text.head("outcomes_total", "counter", "Answers by operation and code");
    for outcome in &tally.outcomes {
        let labels = format!("{{kind=\"{}\",code=\"{}\"}}", outcome.operation, outcome.code);
        text.value("outcomes_total", &labels, outcome.count);
    }
    let late = paid_without_units(tally);
    text.counter("paid_without_units", "Confirms that came late, or a second time", late);
    text.counter("replays_total", "Answers from the record", tally.replays);
    text.histogram("storm_size", "Answers from the record per turn", &tally.storm, 1.0);
    let failures = tally.appends_not_written + tally.appends_unknown;
    text.counter("log_append_failures_total", "Appends that failed", failures);
    text.counter("log_bytes", "Bytes of rows written since the start", tally.row_bytes);
    let lag = status.expiry_lag_ms as f64 / 1_000.0;
    text.gauge("expiry_lag_seconds", "How late something that is due is", lag);
    text.head("follower_lag_rows", "gauge", "Rows that followers are behind");
    for follower in &status.followers {
        let labels = format!("{{follower=\"{}\"}}", follower.name);
        text.value("follower_lag_rows", &labels, follower.rows_behind);
    }
    text.head("follower_lag_seconds", "gauge", "Age of the oldest row that a follower lacks");
    for (follower, lag) in lags {
        text.value("follower_lag_seconds", &format!("{{follower=\"{follower}\"}}"), lag);
    }
    let age = status.snapshots.age_ms.map_or(-1.0, |ms| ms as f64 / 1_000.0);
    text.gauge("snapshot_age_seconds", "Since the newest snapshot; -1: none", age);
    text.counter("conservation_violations_total", "Contained violations", tally.violations);
    let erasures = &status.erasures;
    text.gauge("erasures_pending", "Erased buyers whose texts may be in the log", erasures.pending);
    let rewritten = erasures.rows_rewritten;
    text.counter("erasure_rows_rewritten_total", "Rows whose texts were overwritten", rewritten);
    text.counter("erasure_failures_total", "Erasures to be tried again", erasures.failed);
    let quarantined = items.iter().filter(|item| item.quarantined).count();
    text.gauge("quarantined_items", "Items whose counts are in doubt", quarantined);
    text.gauge("live_holds", "Holds that claim units", status.counters.live_holds);
    let keys = status.counters.success_keys + status.counters.refusal_keys;
    text.gauge("keys", "Idempotency keys in memory", keys);
    let catalog = app.handle.catalog();
    text.head("item_units", "gauge", "Units by item and bucket");
    for item in items {
        let name = catalog.items.get(item.item.0 as usize).map_or("", |i| i.name.as_str());
        let sale = catalog.sales.get(item.sale.0 as usize).map_or("", |s| s.name.as_str());
        // An item without this label is one of `main`: sales of two shops may have one name.
        let shop = shop_of(&catalog, item).filter(|shop| shop.as_str() != "main");
        let shop = shop.map(|shop| format!("shop=\"{shop}\",")).unwrap_or_default();
        let counts = &item.counts;
        let buckets = [
            ("total", u64::from(counts.total)),
            ("available", counts.available()),
            ("held", u64::from(counts.held)),
            ("sold", u64::from(counts.sold)),
            ("blocked", u64::from(counts.blocked)),
            ("oversold", counts.oversold()),
        ];
        for (bucket, units) in buckets {
            let labels = format!("{{{shop}sale=\"{sale}\",item=\"{name}\",bucket=\"{bucket}\"}}");
            text.value("item_units", &labels, units);
        }
    }
    text.0
}

/// `POST /v1/bench/bare`: reads and answers like a hold, and decides nothing. Mounted for benchmarks only.
pub async fn bare(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    raw: super::body::Raw,
) -> Result<Response, Problem> {
    let body: super::holds::HoldBody = super::body::read(&headers, raw)?;
    let _ = &app;
    let text = format!("{{\"sale\":\"{}\",\"shop\":\"{}\"}}", body.sale(), caller.shop);
    Ok(json_response(StatusCode::CREATED, text.into()))
}
