//! `/v1/ledger`, a hold's history, `/v1/attempts`: what is looked for in the log. How it is read is in [`reading`].
//!
//! [`reading`]: super::reading

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use noondrop_core::codec::{CodecError, decode_row, glance_at_row};
use noondrop_core::{Digest16, Entry, Fact, HoldNo, Name, Seq, Timestamp};
use noondrop_log::{Position, Row};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Caller, position_header, value_response};
use super::body::{Path, Query};
use super::problem::Problem;
use super::reading::{After, Eyes, Reading, unreadable};
use super::render::time_text;
use crate::audit::scan::Skim;
use crate::audit::seat::SeatTold;
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
            let told = |entry: &&Entry| reading.eyes.told(entry, Some(hold), &row);
            facts.extend(about.iter().rev().map(told));
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
    seat: Option<String>,
    after: Option<String>,
}

/// Which facts are attempts at what is asked about.
struct Wanted {
    by: By,
    /// The keys of the facts that were taken: what came again under them is a repeat.
    keys: HashSet<Digest16>,
}

/// What an attempt is known by.
enum By {
    Buyer(Digest16),
    Reference(Digest16),
    Key(Digest16),
    Hold(HoldNo),
    Seat(SeatTold),
}

impl Wanted {
    /// To be asked in the order of the log.
    fn takes(&mut self, fact: &Fact) -> bool {
        let taken = match (&mut self.by, fact) {
            (_, Fact::KeyRepeated(fact)) => return self.keys.contains(&fact.key),
            (By::Buyer(buyer), Fact::HoldCreated(fact)) => fact.buyer == *buyer,
            (By::Buyer(buyer), Fact::HoldRefused(fact)) => fact.buyer == *buyer,
            (By::Reference(text), Fact::HoldCreated(fact)) => fact.reference == Some(*text),
            (By::Reference(text), Fact::HoldRefused(fact)) => fact.reference == Some(*text),
            (By::Buyer(_) | By::Reference(_), _) => false,
            (By::Key(key), fact) => key_of(fact).is_some_and(|used| used.hash == *key),
            (By::Hold(hold), fact) => is_about(fact, *hold),
            (By::Seat(seat), fact) => seat.takes(fact),
        };
        self.keys.extend(key_of(fact).filter(|_| taken).map(|used| used.hash));
        taken
    }

    /// The hold that a fact about many is to be shown of; to be asked before [`Self::takes`].
    fn only(&self, fact: &Fact) -> Option<HoldNo> {
        match (&self.by, fact) {
            (By::Hold(hold), _) => Some(*hold),
            (By::Seat(seat), Fact::HoldsExpired(_)) => seat.owner().or(Some(HoldNo(u64::MAX))),
            _ => None,
        }
    }

    /// Whether it is of one sale anyway.
    const fn is_of_one_sale(&self) -> bool {
        matches!(self.by, By::Hold(_) | By::Seat(_))
    }
}

/// `GET /v1/attempts?sale=&buyer=|reference=|key=|hold=|seat=`
pub async fn attempts(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<AttemptsQuery>,
) -> Result<Response, Problem> {
    caller.needs(SUPPORT)?;
    let mut after = After::read(&app, query.after.as_deref()).await?;
    let digester = app.handle.digester();
    let shop = caller.shop.as_str();
    let AttemptsQuery { buyer, reference, key, hold, seat, .. } = &query;
    let by = match (buyer, reference, key, hold, seat) {
        (Some(buyer), None, None, None, None) => By::Buyer(digester.buyer(shop, buyer)),
        (None, Some(text), None, None, None) => By::Reference(digester.reference(shop, text)),
        (None, None, Some(hash), None, None) => By::Key(key_hash(hash)?),
        (None, None, None, Some(hold), None) => {
            let (view, ..) = super::holds::find(&app, &caller, hold).await?;
            if query.after.is_none() {
                // Nothing is about a hold before the row that made it.
                after = After::Number(view.id.seq.0 - 1);
            }
            By::Hold(view.no)
        }
        (None, None, None, None, Some(seat)) => {
            let sale = query.sale.as_deref().ok_or_else(|| Problem::field("sale", "the seat's"))?;
            By::Seat(find_seat(&app, &caller, sale, seat, query.after.is_some()).await?)
        }
        _ => return Err(Problem::field("buyer, reference, key, hold or seat", "one of them")),
    };
    let keys = match by {
        By::Key(key) => HashSet::from([key]),
        _ => HashSet::new(),
    };
    let (wanted, sale) = (Wanted { by, keys }, query.sale);
    let read = move |reading: &mut Reading| {
        Ok((search(reading, after, wanted, sale.as_deref())?, reading.until))
    };
    let (value, until) = Reading::of(&app, &caller.shop, read).await?;
    Ok(page_response(&value, until))
}

/// The seat `ITEM/SEAT` of a sale. A page that goes on begins with whoever has the seat now.
async fn find_seat(
    app: &App,
    caller: &Caller,
    sale: &str,
    place: &str,
    goes_on: bool,
) -> Result<SeatTold, Problem> {
    let bound = || Problem::field("seat", "an item and a seat of it, as in hall/A-1-7");
    let (item, seat) = place.split_once('/').ok_or_else(bound)?;
    let names = (caller.shop.to_string(), sale.to_owned(), item.to_owned(), seat.to_owned());
    let (shop, sale, item, seat) = names;
    let find = move |state: &noondrop_core::State, _| {
        let known = state.item(&shop, &sale, &item).map(|view| view.item);
        let known = known.ok_or_else(|| Problem::missing("item", &item))?;
        let found = state.seat(known, &seat).ok_or_else(|| Problem::missing("seat", &seat))?;
        let told = SeatTold::new(known, found.no, &seat);
        Ok(if goes_on { told.owned_by(found.hold) } else { told })
    };
    app.ask(find).await?.value
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
    let Reading { reader, eyes, until } = reading;
    if let By::Seat(seat) = &wanted.by {
        eyes.seat = Some(seat.place());
    }
    let last = until.seq.min(from.seq.saturating_add(SCAN_ROWS_MAX));
    let rows = Skim::between(&mut **reader, from, last).map_err(|error| unreadable(&error))?;
    let (mut rows, mut attempts, mut shown) = (rows, Vec::new(), HashSet::new());
    while attempts.len() < PAGE_MAX
        && let Some(row) = rows.next()
    {
        let row = row.map_err(|error| unreadable(&error))?;
        let (about, entries) = taken(&mut wanted, &row).map_err(|error| unreadable(&error))?;
        for (place, only) in about {
            let entry = &entries[place];
            let fact = &entry.fact;
            eyes.learn(std::iter::once(entry), only)?;
            let of_sale = wanted.is_of_one_sale()
                || match fact {
                    // It names its key only, so it is of the sale that its attempt was of.
                    Fact::KeyRepeated(fact) => sale.is_none() || shown.contains(&fact.key),
                    fact => sale.is_none_or(|sale| eyes.is_of_sale(fact, sale)),
                };
            if eyes.see(fact) && of_sale {
                shown.extend(key_of(fact).map(|key| key.hash));
                attempts.push(eyes.told(entry, only, &row));
            }
        }
    }
    let stopped = Some(rows.position()).filter(|at| at.seq < until.seq);
    Ok(json!({"attempts": attempts, "next_after": stopped.map(|at| at.to_string())}))
}

/// A fact's place in its row, and the hold that it is shown of, where it is about many.
type Place = (usize, Option<HoldNo>);

/// The facts of a row that are wanted. Most rows have none, and of those nothing more is read.
fn taken(wanted: &mut Wanted, row: &Row) -> Result<(Vec<Place>, Vec<Entry>), CodecError> {
    let (mut about, mut place) = (Vec::new(), 0);
    glance_at_row(row.level, &row.facts, &mut |fact| {
        let only = wanted.only(fact);
        if wanted.takes(fact) {
            about.push((place, only));
        }
        place += 1;
    })?;
    let entries = if about.is_empty() {
        Vec::new()
    } else {
        decode_row(row.level, &row.facts, &row.private)?
    };
    Ok((about, entries))
}
