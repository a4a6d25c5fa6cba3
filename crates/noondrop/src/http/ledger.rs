//! `/v1/ledger`, a hold's history, `/v1/attempts`: what is looked for in the log. How it is read is in [`reading`].
//!
//! [`reading`]: super::reading

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use noondrop_core::codec::decode_row;
use noondrop_core::{Digest16, Entry, Fact, HoldNo, Name, Seq, Timestamp};
use noondrop_log::{Position, Row};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Caller, position_header, value_response};
use super::body::{Path, Query};
use super::problem::Problem;
use super::reading::{After, Eyes, Reading, unreadable};
use super::render::time_text;
use crate::audit::{Scan, Scanned};
use crate::auth::Role;
use crate::ledger::{about_hold, is_about, key_of};

const PAGE_MAX: usize = 200;
/// A page ends with the row that goes over.
const PAGE_BYTES: usize = 4 << 20;
/// Rows that one search looks through; it says where it stopped.
const SCAN_ROWS_MAX: u64 = 200_000;
/// Facts in one hold's story.
const STORY_MAX: usize = 200;

const READERS: &[Role] = &[Role::Auditor, Role::Admin];
const SUPPORT: &[Role] = &[Role::Seller, Role::Admin, Role::Auditor];

/// A page with the position that it shows.
fn page_response(value: &Value, until: Position) -> Response {
    let mut response = value_response(StatusCode::OK, value);
    position_header(response.headers_mut(), until);
    response
}

/// Where the ledger is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// `GET /v1/ledger?after=&limit=`
pub async fn ledger(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<LedgerQuery>,
) -> Result<Response, Problem> {
    caller.needs(READERS)?;
    let limit = query.limit.unwrap_or(50);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::field("limit", &format!("1 to {PAGE_MAX}")));
    }
    let after = After::read(&app, query.after.as_deref()).await?;
    let read = move |reading: &mut Reading| Ok((page(reading, after, limit)?, reading.until));
    let (value, until) = Reading::of(&app, &caller.shop, read).await?;
    Ok(page_response(&value, until))
}

fn page(reading: &mut Reading, after: After, limit: usize) -> Result<Value, Problem> {
    let Some(from) = reading.find(after)? else {
        return Ok(json!({"rows": [], "next_after": Value::Null}));
    };
    let last = reading.until.seq.min(from.seq + limit as u64);
    let scan = Scan::after(&mut *reading.reader, from).map_err(|error| unreadable(&error))?;
    let (mut rows, mut bytes): (Vec<Scanned>, usize) = (Vec::new(), 0);
    for scanned in scan.until(last) {
        let scanned = scanned.map_err(|error| unreadable(&error))?;
        bytes += scanned.row.facts.len() + scanned.row.private.len();
        rows.push(scanned);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    let eyes = &mut reading.eyes;
    eyes.learn(rows.iter().flat_map(|scanned| &scanned.entries), None)?;
    let next = rows.last().map(|scanned| scanned.row.position().to_string());
    let rows: Vec<Value> = rows.iter().map(|scanned| row_value(scanned, eyes)).collect();
    Ok(json!({"rows": rows, "next_after": next}))
}

fn row_value(scanned: &Scanned, eyes: &mut Eyes) -> Value {
    let mut facts = Vec::new();
    for entry in &scanned.entries {
        if eyes.see(&entry.fact) {
            facts.push(eyes.value(entry, None));
        }
    }
    json!({
        "seq": scanned.row.seq,
        "position": scanned.row.position().to_string(),
        "at": time_text(Timestamp(scanned.row.at)),
        "facts": facts,
    })
}

/// `GET /v1/ledger/head`
pub async fn head(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    caller.needs(READERS)?;
    let position = app.handle.position();
    let digest = data_encoding::HEXLOWER.encode(&position.digest);
    let value = json!({"position": position.to_string(), "seq": position.seq, "digest": digest});
    let mut response = value_response(StatusCode::OK, &value);
    position_header(response.headers_mut(), position);
    Ok(response)
}

/// A fact with its place.
fn placed(mut value: Value, row: &Row) -> Value {
    value["at"] = time_text(Timestamp(row.at)).into();
    value["position"] = row.position().to_string().into();
    value
}

/// `GET /v1/holds/{id}/history`
pub async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.needs(SUPPORT)?;
    let (view, _, position) = super::holds::find(&app, &caller, &id).await?;
    let number = view.no;
    let last = app.ask(move |state, _| state.hold_last_seq(number)).await?.value;
    let facts = story(&app, &caller.shop, number, last).await?;
    let mut response = value_response(StatusCode::OK, &json!({"hold": id, "facts": facts}));
    position_header(response.headers_mut(), position);
    Ok(response)
}

/// A hold's facts, oldest first, walked backwards from its newest.
async fn story(
    app: &App,
    shop: &Name,
    hold: HoldNo,
    last: Option<Seq>,
) -> Result<Vec<Value>, Problem> {
    Reading::of(app, shop, move |reading| {
        let mut facts = Vec::new();
        let mut next = last;
        while let Some(seq) = next.filter(|_| facts.len() < STORY_MAX) {
            let row = reading.reader.row(seq.0).map_err(|error| unreadable(&error))?;
            let Some(row) = row else { break };
            let entries = decode_row(row.level, &row.facts, &row.private);
            let entries = entries.map_err(|error| unreadable(&error))?;
            let (about, before) = about_hold(&entries, hold);
            reading.eyes.learn(about.iter().copied(), Some(hold))?;
            let values = about.iter().rev().map(|entry| reading.eyes.value(entry, Some(hold)));
            facts.extend(values.map(|value| placed(value, &row)));
            next = before.filter(|before| *before < seq);
        }
        facts.reverse();
        Ok(facts)
    })
    .await
}

/// Which attempts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptsQuery {
    sale: Option<String>,
    buyer: Option<String>,
    reference: Option<String>,
    key: Option<String>,
    hold: Option<String>,
    after: Option<String>,
}

/// What an attempt is known by.
enum Wanted {
    Buyer(Digest16),
    Reference(Digest16),
    Key(Digest16),
    /// A hold, with the keys of what was asked of it.
    Hold(HoldNo, HashSet<Digest16>),
}

impl Wanted {
    /// To be asked in the order of the log.
    fn takes(&mut self, fact: &Fact) -> bool {
        match (self, fact) {
            (Self::Buyer(buyer), Fact::HoldCreated(fact)) => fact.buyer == *buyer,
            (Self::Buyer(buyer), Fact::HoldRefused(fact)) => fact.buyer == *buyer,
            (Self::Reference(text), Fact::HoldCreated(fact)) => fact.reference == Some(*text),
            (Self::Reference(text), Fact::HoldRefused(fact)) => fact.reference == Some(*text),
            (Self::Key(key), Fact::KeyRepeated(fact)) => fact.key == *key,
            (Self::Key(key), fact) => key_of(fact).is_some_and(|used| used.hash == *key),
            (Self::Hold(_, keys), Fact::KeyRepeated(fact)) => keys.contains(&fact.key),
            (Self::Hold(hold, keys), fact) => {
                let about = is_about(fact, *hold);
                keys.extend(key_of(fact).filter(|_| about).map(|used| used.hash));
                about
            }
            _ => false,
        }
    }

    fn only(&self) -> Option<HoldNo> {
        if let Self::Hold(hold, _) = self { Some(*hold) } else { None }
    }
}

/// `GET /v1/attempts?sale=&buyer=|reference=|key=|hold=`
pub async fn attempts(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<AttemptsQuery>,
) -> Result<Response, Problem> {
    caller.needs(SUPPORT)?;
    let mut after = After::read(&app, query.after.as_deref()).await?;
    let digester = app.handle.digester();
    let shop = caller.shop.as_str();
    let wanted = match (&query.buyer, &query.reference, &query.key, &query.hold) {
        (Some(buyer), None, None, None) => Wanted::Buyer(digester.buyer(shop, buyer)),
        (None, Some(text), None, None) => Wanted::Reference(digester.reference(shop, text)),
        (None, None, Some(hash), None) => Wanted::Key(key_hash(hash)?),
        (None, None, None, Some(hold)) => {
            let (view, ..) = super::holds::find(&app, &caller, hold).await?;
            if query.after.is_none() {
                // Nothing is about a hold before the row that made it.
                after = After::Number(view.id.seq.0 - 1);
            }
            Wanted::Hold(view.no, HashSet::new())
        }
        _ => return Err(Problem::field("buyer, reference, key or hold", "one of them")),
    };
    let sale = query.sale;
    let read = move |reading: &mut Reading| {
        Ok((search(reading, after, wanted, sale.as_deref())?, reading.until))
    };
    let (value, until) = Reading::of(&app, &caller.shop, read).await?;
    Ok(page_response(&value, until))
}

/// A key as the ledger shows it.
fn key_hash(text: &str) -> Result<Digest16, Problem> {
    let bound = "the 32 hexadecimal digits that the ledger shows";
    let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(Digest16).ok_or_else(|| Problem::field("key", bound))
}

fn search(
    reading: &mut Reading,
    after: After,
    mut wanted: Wanted,
    sale: Option<&str>,
) -> Result<Value, Problem> {
    let Some(from) = reading.find(after)? else {
        return Ok(json!({"attempts": [], "next_after": Value::Null}));
    };
    let (Reading { reader, eyes, until }, only) = (reading, wanted.only());
    let last = until.seq.min(from.seq.saturating_add(SCAN_ROWS_MAX));
    let scan = Scan::after(&mut **reader, from).map_err(|error| unreadable(&error))?;
    let (mut scan, mut attempts) = (scan.until(last), Vec::new());
    while attempts.len() < PAGE_MAX
        && let Some(scanned) = scan.next()
    {
        let Scanned { row, entries } = scanned.map_err(|error| unreadable(&error))?;
        let about: Vec<&Entry> = entries.iter().filter(|e| wanted.takes(&e.fact)).collect();
        eyes.learn(about.iter().copied(), only)?;
        for entry in about {
            let fact = &entry.fact;
            let of_sale = only.is_some() || sale.is_none_or(|sale| eyes.is_of_sale(fact, sale));
            if eyes.see(fact) && of_sale {
                attempts.push(placed(eyes.value(entry, only), &row));
            }
        }
    }
    let stopped = Some(scan.position()).filter(|at| at.seq < until.seq);
    Ok(json!({"attempts": attempts, "next_after": stopped.map(|at| at.to_string())}))
}
