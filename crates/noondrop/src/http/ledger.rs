//! `/v1/ledger`, a hold's history, `/v1/attempts`: read from the log itself, off the sequencer, one scan at a time.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use noondrop_core::codec::decode_row;
use noondrop_core::{Catalog, Digest16, Entry, Fact, HoldNo, KeyUse, Seq, Timestamp};
use noondrop_log::{LogOpener, LogReader, Row};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Caller, position_header, value_response};
use super::body::Query;
use super::problem::Problem;
use super::render::time_text;
use crate::auth::Role;
use crate::ledger::{Names, about_hold, fact_value};

const PAGE_MAX: usize = 200;
const PAGE_BYTES: usize = 4 << 20;
/// Rows that one search looks through; it says where it stopped.
const SCAN_ROWS_MAX: usize = 200_000;
/// Facts in one hold's story.
const STORY_MAX: usize = 200;

const READERS: &[Role] = &[Role::Auditor, Role::Admin];
const SUPPORT: &[Role] = &[Role::Seller, Role::Admin, Role::Auditor];

fn unreadable(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "the log could not be read");
    Problem::new("not_ready", "The log cannot be read at the moment.").after(1)
}

/// Reads the log on a thread that may wait, one scan at a time.
async fn scan<T: Send + 'static>(
    app: &App,
    read: impl FnOnce(&mut dyn LogReader, &Catalog) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let _turn = app.scans.acquire().await.map_err(|error| unreadable(&error))?;
    let opener: Arc<dyn LogOpener> = app.handle.opener();
    let catalog = app.handle.catalog();
    let scan = tokio::task::spawn_blocking(move || {
        let mut reader = opener.reader().map_err(|error| unreadable(&error))?;
        read(&mut *reader, &catalog)
    });
    scan.await.map_err(|error| unreadable(&error))?
}

fn entries_of(row: &Row) -> Result<Vec<Entry>, Problem> {
    decode_row(row.level, &row.facts, &row.private).map_err(|error| unreadable(&error))
}

/// Where the ledger is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerQuery {
    after: Option<u64>,
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
    let after = query.after.unwrap_or(0);
    let shop = caller.shop.clone();
    let rows = scan(&app, move |reader, catalog| {
        let rows = reader.page(after, limit, PAGE_BYTES).map_err(|error| unreadable(&error))?;
        let known = shop_filter(catalog, shop.as_str());
        rows.iter().map(|row| row_value(row, catalog, &known)).collect::<Result<Vec<_>, _>>()
    })
    .await?;
    let next = rows.last().and_then(|row| row["seq"].as_u64());
    let mut response = value_response(StatusCode::OK, &json!({"rows": rows, "next_after": next}));
    position_header(response.headers_mut(), app.handle.position());
    Ok(response)
}

/// Which facts a shop may see: its own, and those of the log itself.
fn shop_filter<'a>(catalog: &'a Catalog, shop: &'a str) -> impl Fn(&Entry) -> bool + 'a {
    move |entry| {
        let sale = match &entry.fact {
            Fact::SaleMoved(fact) => Some(fact.sale),
            Fact::ItemDefined(fact) => Some(fact.sale),
            Fact::HoldCreated(fact) => Some(fact.sale),
            Fact::HoldRefused(fact) => Some(fact.sale),
            _ => None,
        };
        let of = sale.and_then(|sale| catalog.sales.get(sale.0 as usize)).map(|sale| sale.shop);
        let named = match &entry.fact {
            Fact::SaleDefined(fact) => Some(fact.shop),
            Fact::ShopDefined(fact) => Some(fact.shop),
            _ => of,
        };
        let own = |known: &noondrop_core::ShopName| known.name.as_str() == shop;
        match named {
            Some(of) => catalog.shops.get(of.0 as usize).is_some_and(own),
            // What does not say its sale is told apart only where there is nothing to tell apart.
            None => catalog.shops.len() == 1,
        }
    }
}

fn row_value(
    row: &Row,
    catalog: &Catalog,
    known: &dyn Fn(&Entry) -> bool,
) -> Result<Value, Problem> {
    let entries = entries_of(row)?;
    let facts = entries.iter().filter(|entry| known(entry));
    let facts: Vec<Value> = facts.map(|entry| fact_value(entry, Names(catalog))).collect();
    Ok(json!({
        "seq": row.seq,
        "position": row.position().to_string(),
        "at": time_text(Timestamp(row.at)),
        "facts": facts,
    }))
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

/// A hold's facts, oldest first, walked backwards from its newest.
pub async fn story(app: &App, hold: HoldNo, last: Option<Seq>) -> Result<Vec<Value>, Problem> {
    scan(app, move |reader, catalog| {
        let mut facts = Vec::new();
        let mut next = last;
        while let Some(seq) = next.filter(|_| facts.len() < STORY_MAX) {
            let row = reader.row(seq.0).map_err(|error| unreadable(&error))?;
            let Some(row) = row else { break };
            let entries = entries_of(&row)?;
            let (about, before) = about_hold(&entries, hold);
            for entry in about.iter().rev() {
                let mut value = fact_value(entry, Names(catalog));
                value["at"] = time_text(Timestamp(row.at)).into();
                value["position"] = row.position().to_string().into();
                facts.push(value);
            }
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
    after: Option<u64>,
}

/// What an attempt is known by.
enum Wanted {
    Buyer(Digest16),
    Reference(Digest16),
    Key(Digest16),
}

impl Wanted {
    fn is(&self, entry: &Entry) -> bool {
        let of_key =
            |key: Option<KeyUse>, wanted: &Digest16| key.is_some_and(|k| k.hash == *wanted);
        match (self, &entry.fact) {
            (Self::Buyer(buyer), Fact::HoldCreated(fact)) => fact.buyer == *buyer,
            (Self::Buyer(buyer), Fact::HoldRefused(fact)) => fact.buyer == *buyer,
            (Self::Reference(text), Fact::HoldCreated(fact)) => fact.reference == Some(*text),
            (Self::Reference(text), Fact::HoldRefused(fact)) => fact.reference == Some(*text),
            (Self::Key(key), Fact::HoldCreated(fact)) => of_key(fact.key, key),
            (Self::Key(key), Fact::HoldRefused(fact)) => of_key(fact.key, key),
            (Self::Key(key), Fact::KeyRepeated(fact)) => fact.key == *key,
            _ => false,
        }
    }
}

/// `GET /v1/attempts?sale=&buyer=|reference=|key=|hold=`
pub async fn attempts(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<AttemptsQuery>,
) -> Result<Response, Problem> {
    caller.needs(SUPPORT)?;
    if let Some(hold) = &query.hold {
        let (view, ..) = super::holds::find(&app, &caller, hold).await?;
        let number = view.no;
        let last = app.ask(move |state, _| state.hold_last_seq(number)).await?.value;
        let facts = story(&app, number, last).await?;
        return Ok(value_response(StatusCode::OK, &json!({"attempts": facts})));
    }
    let digester = app.handle.digester();
    let shop = caller.shop.clone();
    let wanted = match (&query.buyer, &query.reference, &query.key) {
        (Some(buyer), None, None) => Wanted::Buyer(digester.buyer(shop.as_str(), buyer)),
        (None, Some(text), None) => Wanted::Reference(digester.reference(shop.as_str(), text)),
        (None, None, Some(hash)) => Wanted::Key(key_hash(hash)?),
        _ => return Err(Problem::field("buyer, reference, key or hold", "one of them")),
    };
    let (sale, after) = (query.sale, query.after.unwrap_or(0));
    let found = scan(&app, move |reader, catalog| {
        search(reader, catalog, after, &|entry, value| {
            let in_sale = sale.as_deref().is_none_or(|sale| value["sale"] == *sale);
            wanted.is(entry) && in_sale && shop_filter(catalog, shop.as_str())(entry)
        })
    })
    .await?;
    let mut response = value_response(StatusCode::OK, &found);
    position_header(response.headers_mut(), app.handle.position());
    Ok(response)
}

/// A key as the ledger shows it.
fn key_hash(text: &str) -> Result<Digest16, Problem> {
    let bound = "the 32 hexadecimal digits that the ledger shows";
    let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(Digest16).ok_or_else(|| Problem::field("key", bound))
}

fn search(
    reader: &mut dyn LogReader,
    catalog: &Catalog,
    after: u64,
    is: &dyn Fn(&Entry, &Value) -> bool,
) -> Result<Value, Problem> {
    let mut attempts = Vec::new();
    let (mut after, mut looked) = (after, 0);
    loop {
        let rows = reader.page(after, 1_024, PAGE_BYTES).map_err(|error| unreadable(&error))?;
        let Some(last) = rows.last() else {
            return Ok(json!({"attempts": attempts, "next_after": Value::Null}));
        };
        after = last.seq;
        looked += rows.len();
        for row in &rows {
            for entry in entries_of(row)? {
                if !matches!(
                    entry.fact,
                    Fact::HoldCreated(_) | Fact::HoldRefused(_) | Fact::KeyRepeated(_)
                ) {
                    continue;
                }
                let mut value = fact_value(&entry, Names(catalog));
                if is(&entry, &value) {
                    value["at"] = time_text(Timestamp(row.at)).into();
                    value["position"] = row.position().to_string().into();
                    attempts.push(value);
                }
            }
        }
        if looked >= SCAN_ROWS_MAX || attempts.len() >= PAGE_MAX {
            return Ok(json!({"attempts": attempts, "next_after": after}));
        }
    }
}
