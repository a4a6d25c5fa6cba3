//! `/v1/sales/{sale}/items/{item}/seats`: the seats of an item, to define and to draw.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use noondrop_core::seats::{SEAT_NAME_BYTES_MAX, SeatDef, SeatNo};
use noondrop_core::{Act, HoldView, ItemSeats, Name, SeatInfo, SeatsAsked, Seq};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Caller, is_known, position_header, value_response};
use super::body::{self, LargeRaw, Path, Query};
use super::problem::Problem;
use super::strict::Strict;
use crate::auth::Role;

/// Most seats in one page.
const PAGE_MAX: usize = 10_000;
/// Seats in a page where the request names no number.
const PAGE: usize = 2_000;

const ADMINS: &[Role] = &[Role::Admin];

/// A seat, as it is added.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatBody {
    seat: String,
    section: String,
    row: String,
    number: u32,
    #[serde(default)]
    rank: u32,
    #[serde(default)]
    tags: Vec<String>,
    zone: Option<String>,
}

impl SeatBody {
    fn into_def(self, list: &str, place: usize) -> Result<SeatDef, Problem> {
        let field = |field: &str| format!("{list}[{place}].{field}");
        let named = |what: &str, text: &str| body::name(&field(what), text);
        let tags = self.tags.iter().map(|tag| named("tags", tag)).collect::<Result<_, _>>()?;
        Ok(SeatDef {
            name: seat_name(&field("seat"), &self.seat)?,
            section: named("section", &self.section)?,
            row: named("row", &self.row)?,
            number: self.number,
            rank: self.rank,
            tags,
            zone: self.zone.as_deref().map(|zone| named("zone", zone)).transpose()?,
        })
    }
}

fn seat_name(field: &str, text: &str) -> Result<Name, Problem> {
    let bound = format!("1 to {SEAT_NAME_BYTES_MAX} characters of A-Z a-z 0-9 . _ ~ -");
    let name = Name::parse(text).ok().filter(|name| name.as_str().len() <= SEAT_NAME_BYTES_MAX);
    name.ok_or_else(|| Problem::field(field, &bound))
}

/// Seats that are defined in a list of a body.
pub fn defs(list: &str, seats: Vec<Strict<SeatBody>>) -> Result<Vec<SeatDef>, Problem> {
    seats.into_iter().enumerate().map(|(place, seat)| seat.0.into_def(list, place)).collect()
}

fn names(field: &str, texts: &[String]) -> Result<Vec<Name>, Problem> {
    let named = |(place, text): (usize, &String)| body::name(&format!("{field}[{place}]"), text);
    texts.iter().enumerate().map(named).collect()
}

/// Seats that are named in a list of a body.
pub fn seat_names(field: &str, texts: &[String]) -> Result<Vec<Name>, Problem> {
    let named = |(place, text): (usize, &String)| seat_name(&format!("{field}[{place}]"), text);
    texts.iter().enumerate().map(named).collect()
}

/// Which seats a line wants, as its members say.
#[derive(Debug, Default)]
pub struct WishBody {
    /// Next to each other.
    pub together: Option<bool>,
    /// By name.
    pub seats: Option<Vec<String>>,
    /// Only in these.
    pub sections: Option<Vec<String>>,
    /// Only with these.
    pub tags: Option<Vec<String>>,
    /// Only in this one.
    pub zone: Option<String>,
}

impl WishBody {
    /// For the core; none where nothing is asked.
    pub fn into_asked(self, line: usize) -> Result<Option<Box<SeatsAsked>>, Problem> {
        let field = |field: &str| format!("lines[{line}].{field}");
        let Self { together, seats, sections, tags, zone } = self;
        let describes =
            together.is_some() || sections.is_some() || tags.is_some() || zone.is_some();
        if seats.is_none() && !describes {
            return Ok(None);
        }
        if seats.is_some() && describes {
            return Err(Problem::field(
                &field("seats"),
                "alone, without together, sections, tags or zone",
            ));
        }
        if seats.as_ref().is_some_and(Vec::is_empty) {
            return Err(Problem::field(&field("seats"), "at least one seat, or absent"));
        }
        let list = |what: &str, texts: Option<Vec<String>>| {
            texts.map(|texts| names(&field(what), &texts)).transpose()
        };
        let named = seats.map(|seats| seat_names(&field("seats"), &seats)).transpose()?;
        Ok(Some(Box::new(SeatsAsked {
            named,
            together: together.unwrap_or(false),
            sections: list("sections", sections)?,
            tags: list("tags", tags)?,
            zone: zone.map(|zone| body::name(&field("zone"), &zone)).transpose()?,
        })))
    }
}

/// More or fewer seats.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatsBody {
    #[serde(default)]
    add: Vec<Strict<SeatBody>>,
    #[serde(default)]
    remove: Vec<String>,
    reason: String,
}

/// `POST /v1/sales/{sale}/items/{item}/seats`
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    headers: HeaderMap,
    raw: LargeRaw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let body: SeatsBody = body::read(&headers, raw.into())?;
    let act = Act::ItemSeats(ItemSeats {
        sale: body::path_name("sale", &sale)?,
        item: body::path_name("item", &item)?,
        add: defs("add", body.add)?,
        remove: seat_names("remove", &body.remove)?,
        reason: body::text("reason", &body.reason)?,
    });
    let target = format!("{sale}/{item}");
    let reply = app.execute(&caller, &headers, act, &target).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// Which page of which seats.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatsQuery {
    since: Option<String>,
    after: Option<u32>,
    limit: Option<usize>,
    at_least: Option<String>,
}

fn seat_value(caller: &Caller, seat: &SeatInfo) -> Value {
    let tags: Vec<&str> = seat.def.tags.iter().map(Name::as_str).collect();
    let mut value = json!({
        "seat": seat.def.name.as_str(),
        "section": seat.def.section.as_str(),
        "row": seat.def.row.as_str(),
        "number": seat.def.number,
        "rank": seat.def.rank,
        "tags": tags,
        "zone": seat.def.zone.as_ref().map(Name::as_str),
        "state": seat.standing.as_str(),
        "planned": seat.planned,
    });
    // For whom seats are set aside is not for buyers.
    if caller.role() != Role::Buyer {
        value["block"] = seat.block.as_ref().map(Name::as_str).into();
    }
    value
}

/// `GET /v1/sales/{sale}/items/{item}/seats`
///
/// All seats, or those that changed after the position `since`; in pages. The position of an answer is what to ask with
/// the next time.
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    Query(query): Query<SeatsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::field("limit", &format!("1 to {PAGE_MAX}")));
    }
    app.at_least(query.at_least.as_deref()).await?;
    let since = match &query.since {
        Some(since) => Some(Seq(app.has_reached("since", since).await?.seq)),
        None => None,
    };
    let from = SeatNo(query.after.map_or(0, |after| after.saturating_add(1)));
    let (shop, name) = (caller.shop.clone(), item.clone());
    let answer = app
        .ask(move |state, _| {
            let view = state.item(shop.as_str(), &sale, &name)?;
            Some(state.seats(view.item, since, from, limit))
        })
        .await?;
    let seats = answer.value.ok_or_else(|| Problem::missing("item", &item))?;
    let (seats, newest) = seats
        .ok_or_else(|| Problem::field("item", "an item of seats; this one has only a total"))?;
    // Pages of one map share the tag only if they are the same page.
    let tag = format!("\"{newest}-{}-{limit}-{}\"", from.0, since.map_or(0, |since| since.0));
    let mut response = if is_known(&headers, &tag) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let next = seats.last().filter(|_| seats.len() == limit).map(|seat| seat.no.0);
        let seats: Vec<Value> = seats.iter().map(|seat| seat_value(&caller, seat)).collect();
        value_response(StatusCode::OK, &json!({"seats": seats, "next_after": next}))
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("digits in quotes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    position_header(headers, answer.position);
    Ok(response)
}

/// `GET /v1/sales/{sale}/items/{item}/seats/{seat}`
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item, seat)): Path<(String, String, String)>,
    Query(query): Query<super::holds::AtLeast>,
) -> Result<Response, Problem> {
    app.at_least(query.at_least.as_deref()).await?;
    let (shop, item_name, name) = (caller.shop.clone(), item.clone(), seat.clone());
    let answer = app
        .ask(move |state, _| {
            let view = state.item(shop.as_str(), &sale, &item_name)?;
            let seat = state.seat(view.item, &name);
            Some(seat.map(|seat| {
                let hold = seat.hold.and_then(|no| state.hold_by_no(no));
                (seat, hold)
            }))
        })
        .await?;
    let found = answer.value.ok_or_else(|| Problem::missing("item", &item))?;
    let (info, hold) = found.ok_or_else(|| Problem::missing("seat", &seat))?;
    let mut value = seat_value(&caller, &info);
    if let Some(hold) = hold.filter(|hold| may_see(&caller, hold)) {
        value["hold"] = hold.id.to_string().into();
        let buyer = hold.texts.as_ref().map(|texts| texts.buyer.as_str());
        value["buyer"] = buyer.filter(|buyer| !buyer.is_empty()).into();
    }
    let mut response = value_response(StatusCode::OK, &value);
    position_header(response.headers_mut(), answer.position);
    Ok(response)
}

/// Whose a seat is, only those see who may see its hold.
fn may_see(caller: &Caller, hold: &HoldView) -> bool {
    match caller.role() {
        Role::Seller | Role::Admin | Role::Auditor | Role::Operator => true,
        Role::Buyer => {
            let own = hold.texts.as_ref().map(|texts| texts.buyer.as_str());
            caller.buyer().is_some_and(|buyer| own == Some(buyer))
        }
        Role::Worker => false,
    }
}
