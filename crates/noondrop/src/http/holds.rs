//! `/v1/holds`: claims on units, and what can be asked of them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use noondrop_core::limits::METADATA_BYTES_MAX;
use noondrop_core::{
    Act, Digested, Digester, Fence, HoldCancel, HoldConfirm, HoldCreate, HoldExtend, HoldId,
    HoldNo, HoldRef, HoldRelease, HoldState, HoldView, LineAsked, LinePart, SeatKept, Timestamp,
};
use serde::Deserialize;
use serde_json::Value;

use super::app::{App, Caller, hold_headers, json_response, position_header};
use super::blocks::{cancel_to, label};
use super::body::{self, Path, Query, Raw};
use super::overrides::overriding;
use super::problem::Problem;
use super::render::{Texts, hold_body};
use super::seats::{WishBody, seat_names};
use super::strict::Strict;
use crate::auth::Role;

/// Most holds in one page.
const PAGE_MAX: usize = 200;
/// Holds that one page looks at while it searches.
const SCAN_MAX: usize = 20_000;

const OWNERS: &[Role] = &[Role::Buyer, Role::Seller, Role::Admin];
const READERS: &[Role] = &[Role::Buyer, Role::Seller, Role::Admin, Role::Auditor];
const ADMINS: &[Role] = &[Role::Admin];
const SELLERS: &[Role] = &[Role::Seller, Role::Admin];

/// A new hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    sale: String,
    buyer: String,
    reference: Option<String>,
    #[serde(default)]
    lines: Vec<Strict<LineBody>>,
    ttl_seconds: Option<u32>,
    metadata: Option<serde_json::Map<String, Value>>,
    supersedes: Option<Strict<HoldRefBody>>,
    retake: Option<String>,
    confirm: Option<Strict<PaymentBody>>,
    #[serde(rename = "override")]
    overrides: Option<Vec<String>>,
    reason: Option<String>,
}

/// One line of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineBody {
    item: String,
    quantity: Option<u32>,
    from: Option<String>,
    together: Option<bool>,
    seats: Option<Vec<String>>,
    sections: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    zone: Option<String>,
}

impl LineBody {
    fn into_asked(self, place: usize) -> Result<LineAsked, Problem> {
        let item = body::name(&format!("lines[{place}].item"), &self.item)?;
        let from = self.from.as_ref().map(|from| label(&format!("lines[{place}].from"), from));
        let from = from.transpose()?.map(Box::new);
        let Self { quantity, together, seats, sections, tags, zone, .. } = self;
        let named = seats.as_ref().map(|seats| u32::try_from(seats.len()).unwrap_or(u32::MAX));
        let quantity = quantity.or(named).ok_or_else(|| {
            Problem::field(&format!("lines[{place}].quantity"), "a number, or seats by name")
        })?;
        let wish = WishBody { together, seats, sections, tags, zone };
        let seats = wish.into_asked(place)?;
        Ok(LineAsked { from, seats, ..LineAsked::units(item, quantity) })
    }
}

/// A hold with the fence that the caller knows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRefBody {
    hold: String,
    fence: u64,
}

/// A payment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentBody {
    payment_ref: String,
}

impl HoldBody {
    /// The sale that it is about.
    #[must_use]
    pub fn sale(&self) -> &str {
        &self.sale
    }

    fn into_act(self, shop: &str, digester: &Digester) -> Result<Act, Problem> {
        let metadata = self.metadata.map(|map| metadata(&map)).transpose()?;
        let lines = self.lines.into_iter().enumerate();
        let lines = lines.map(|(place, line)| line.0.into_asked(place));
        let lines = lines.collect::<Result<_, Problem>>()?;
        body::name("buyer", &self.buyer)?;
        let reference = self.reference.map(|text| {
            body::name("reference", &text)?;
            Ok(Digested { digest: digester.reference(shop, &text), text })
        });
        let supersedes = self.supersedes.map(|old| {
            let hold =
                old.hold.parse().map_err(|_| Problem::field("supersedes.hold", "a hold id"))?;
            Ok(HoldRef { hold, fence: Fence(old.fence) })
        });
        let retake =
            self.retake.map(|old| old.parse().map_err(|_| Problem::field("retake", "a hold id")));
        let confirm = self
            .confirm
            .map(|paid| payment("confirm.payment_ref", &paid.payment_ref, shop, digester));
        let overriding = overriding(self.overrides.as_deref(), self.reason.as_deref())?;
        Ok(Act::HoldCreate(HoldCreate {
            sale: body::name("sale", &self.sale)?,
            buyer: digester.digested_buyer(shop, &self.buyer),
            reference: reference.transpose()?,
            lines,
            ttl_seconds: self.ttl_seconds,
            metadata,
            supersedes: supersedes.transpose()?,
            retake: retake.transpose()?,
            confirm: confirm.transpose()?,
            overriding,
        }))
    }
}

/// One text for one meaning: members sorted, no white space.
fn metadata(map: &serde_json::Map<String, Value>) -> Result<String, Problem> {
    let text = serde_json::to_string(map).expect("a value is always JSON");
    if text.len() <= METADATA_BYTES_MAX {
        Ok(text)
    } else {
        Err(Problem::field("metadata", &format!("at most {METADATA_BYTES_MAX} bytes of JSON")))
    }
}

fn payment(field: &str, text: &str, shop: &str, digester: &Digester) -> Result<Digested, Problem> {
    let text = body::text(field, text)?;
    Ok(Digested { digest: digester.payment(shop, &text), text })
}

/// `POST /v1/holds`
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(OWNERS)?;
    let body: HoldBody = body::read(&headers, raw)?;
    if body.overrides.is_some() {
        caller.needs(ADMINS)?;
    }
    let act = body.into_act(caller.shop.as_str(), &app.handle.digester())?;
    let reply = app.execute(&caller, &headers, act, "").await?;
    Ok(app.respond(reply, StatusCode::CREATED).await)
}

/// Moves a hold's end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtendBody {
    fence: Option<u64>,
    seconds: u32,
    reason: Option<String>,
}

/// `POST /v1/holds/{id}/extend`
pub async fn extend(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(OWNERS)?;
    let hold = body::path_hold(&id)?;
    let body: ExtendBody = body::read(&headers, raw)?;
    let reason = body.reason.map(|reason| body::text("reason", &reason)).transpose()?;
    let fence = body.fence.map(Fence);
    let act = Act::HoldExtend(HoldExtend { hold, fence, seconds: body.seconds, reason });
    let reply = app.execute(&caller, &headers, act, &id).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// A part of a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartBody {
    line: u8,
    quantity: Option<u32>,
    seats: Option<Vec<String>>,
}

fn parts(lines: Option<Vec<Strict<PartBody>>>) -> Result<Option<Vec<LinePart>>, Problem> {
    let part = |(place, part): (usize, Strict<PartBody>)| {
        let part = part.0;
        let field = format!("lines[{place}].seats");
        let seats = part.seats.map(|seats| seat_names(&field, &seats)).transpose()?;
        Ok(LinePart { seats, ..LinePart::units(part.line, part.quantity) })
    };
    lines.map(|lines| lines.into_iter().enumerate().map(part).collect()).transpose()
}

/// Gives held units back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    fence: Option<u64>,
    lines: Option<Vec<Strict<PartBody>>>,
    reason: Option<String>,
}

/// `POST /v1/holds/{id}/release`
pub async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(OWNERS)?;
    let hold = body::path_hold(&id)?;
    let body: ReleaseBody = body::read(&headers, raw)?;
    let reason = body.reason.map(|reason| body::text("reason", &reason)).transpose()?;
    let fence = body.fence.map(Fence);
    let act = Act::HoldRelease(HoldRelease { hold, fence, lines: parts(body.lines)?, reason });
    let reply = app.execute(&caller, &headers, act, &id).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// Turns a hold into a sale.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmBody {
    fence: u64,
    payment_ref: String,
}

/// `POST /v1/holds/{id}/confirm`
pub async fn confirm(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(SELLERS)?;
    let hold = body::path_hold(&id)?;
    let body: ConfirmBody = body::read(&headers, raw)?;
    let digester = app.handle.digester();
    let payment_ref = payment("payment_ref", &body.payment_ref, caller.shop.as_str(), &digester)?;
    let act = Act::HoldConfirm(HoldConfirm { hold, fence: Fence(body.fence), payment_ref });
    let reply = app.execute(&caller, &headers, act, &id).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// Gives sold units back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelBody {
    fence: u64,
    lines: Option<Vec<Strict<PartBody>>>,
    /// `stock`, `destroyed` or a label; none: as the sale says.
    to: Option<String>,
    reason: String,
}

/// `POST /v1/holds/{id}/cancel`
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(SELLERS)?;
    let hold = body::path_hold(&id)?;
    let body: CancelBody = body::read(&headers, raw)?;
    let to = body.to.as_deref().map(cancel_to).transpose()?;
    let reason = body::text("reason", &body.reason)?;
    let fence = Fence(body.fence);
    let act = Act::HoldCancel(HoldCancel { hold, fence, lines: parts(body.lines)?, to, reason });
    let reply = app.execute(&caller, &headers, act, &id).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// What every read takes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    /// A position to see at least.
    pub at_least: Option<String>,
}

/// A hold whose end is past is over, whether or not a turn has said so yet.
fn as_of(mut view: HoldView, now: Timestamp) -> HoldView {
    if view.state == HoldState::Active && view.expires_at <= now {
        view.state = HoldState::Expired;
        view.now.state = HoldState::Expired;
        for line in &mut view.lines.0 {
            line.released += line.held;
            line.held = 0;
        }
        for seat in view.seats.iter_mut().filter(|seat| seat.kept == SeatKept::Kept) {
            seat.kept = SeatKept::Lapsed;
        }
    }
    view
}

/// Whether a caller may see a hold: his shop's, and for a buyer his own.
fn visible(app: &App, caller: &Caller, view: &HoldView) -> bool {
    let catalog = app.handle.catalog();
    let shop = catalog.shops.get(view.shop.0 as usize);
    let own = view.texts.as_ref().map(|texts| texts.buyer.as_str());
    shop.is_some_and(|shop| shop.name == caller.shop)
        && caller.buyer().is_none_or(|buyer| own == Some(buyer))
}

/// Finds a hold that a caller may see.
pub async fn find(
    app: &App,
    caller: &Caller,
    id: &str,
) -> Result<(HoldView, Timestamp, noondrop_log::Position), Problem> {
    let hold = body::path_hold(id)?;
    let answer = app.ask(move |state, now| (state.hold(hold), now)).await?;
    let (view, now) = answer.value;
    let view = view.filter(|view| visible(app, caller, view));
    let view = view.ok_or_else(|| Problem::missing("hold", id))?;
    Ok((as_of(view, now), now, answer.position))
}

/// `GET /v1/holds/{id}`
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<AtLeast>,
) -> Result<Response, Problem> {
    caller.needs(READERS)?;
    app.at_least(query.at_least.as_deref()).await?;
    let (view, now, position) = find(&app, &caller, &id).await?;
    let mut response = json_response(StatusCode::OK, body_of(&app, &view).into());
    hold_headers(response.headers_mut(), &view, now);
    position_header(response.headers_mut(), position);
    Ok(response)
}

fn body_of(app: &App, view: &HoldView) -> String {
    let texts = view.texts.as_deref().map(Texts::from).unwrap_or_default();
    hold_body(view, texts, &app.handle.catalog())
}

/// Which holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    sale: Option<String>,
    buyer: Option<String>,
    reference: Option<String>,
    state: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
    at_least: Option<String>,
}

/// `GET /v1/holds?sale=&buyer=&reference=&state=`
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    caller.needs(READERS)?;
    app.at_least(query.at_least.as_deref()).await?;
    let limit = query.limit.unwrap_or(50);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::field("limit", &format!("1 to {PAGE_MAX}")));
    }
    let state = query.state.as_deref().map(wanted_state).transpose()?;
    let wanted = Wanted::of(&app, &caller, &query)?;
    let before = query.before.as_deref().map(str::parse::<HoldId>);
    let before = before.transpose().map_err(|_| page_begin())?;
    let answer = app.ask(move |all, now| {
        let before = before.map(|id| all.hold_no(id).ok_or(())).transpose()?;
        Ok::<_, ()>(wanted.page(all, now, before, limit, state))
    });
    let answer = answer.await?;
    let (views, next) = answer.value.map_err(|()| page_begin())?;
    let holds: Vec<Box<serde_json::value::RawValue>> = views
        .iter()
        .filter(|view| visible(&app, &caller, view))
        .map(|view| {
            serde_json::value::RawValue::from_string(body_of(&app, view))
                .expect("a hold's body is JSON")
        })
        .collect();
    let page = Page { holds, next_before: next.map(|id| id.to_string()) };
    let bytes = serde_json::to_vec(&page).expect("holds are JSON");
    let mut response = json_response(StatusCode::OK, bytes.into());
    position_header(response.headers_mut(), answer.position);
    Ok(response)
}

#[derive(serde::Serialize)]
struct Page {
    holds: Vec<Box<serde_json::value::RawValue>>,
    /// The public id of the last hold that was looked at: a running number would count the shop's sales.
    next_before: Option<String>,
}

fn page_begin() -> Problem {
    Problem::field("before", "next_before of an earlier page")
}

fn wanted_state(text: &str) -> Result<HoldState, Problem> {
    let found = HoldState::ALL.into_iter().find(|state| state.as_str() == text);
    let names = HoldState::ALL.map(HoldState::as_str).join(", ");
    found.ok_or_else(|| Problem::field("state", &format!("one of {names}")))
}

/// By what holds are looked for.
enum Wanted {
    Buyer(noondrop_core::Digest16),
    Reference(noondrop_core::Digest16),
    Sale { shop: String, sale: String },
}

impl Wanted {
    fn of(app: &App, caller: &Caller, query: &ListQuery) -> Result<Self, Problem> {
        let digester = app.handle.digester();
        let shop = caller.shop.as_str();
        let buyer = caller.buyer().or(query.buyer.as_deref());
        match (&query.reference, buyer, &query.sale) {
            (Some(reference), ..) => Ok(Self::Reference(digester.reference(shop, reference))),
            (None, Some(buyer), _) => Ok(Self::Buyer(digester.buyer(shop, buyer))),
            (None, None, Some(sale)) => Ok(Self::Sale { shop: shop.into(), sale: sale.clone() }),
            (None, None, None) => Err(Problem::field(
                "sale, buyer or reference",
                "given: holds are looked for by one of them",
            )),
        }
    }

    fn page(
        &self,
        all: &noondrop_core::State,
        now: Timestamp,
        before: Option<HoldNo>,
        limit: usize,
        state: Option<HoldState>,
    ) -> (Vec<HoldView>, Option<HoldId>) {
        let (numbers, next) = match self {
            Self::Buyer(buyer) => {
                let found = all.holds_of_buyer(*buyer, before, limit);
                let next = found.last().copied().filter(|_| found.len() == limit);
                (found, next)
            }
            Self::Reference(reference) => {
                (all.hold_of_reference(*reference).into_iter().collect(), None)
            }
            Self::Sale { shop, sale } => match all.sale(shop, sale) {
                Some(sale) => all.holds_of_sale(sale.sale, before, limit, SCAN_MAX),
                None => (Vec::new(), None),
            },
        };
        let next = next.and_then(|no| all.hold_place(no)).map(|(id, _)| id);
        let views = numbers.into_iter().filter_map(|no| all.hold_by_no(no));
        let views = views.map(|view| as_of(view, now));
        (views.filter(|view| state.is_none_or(|state| view.state == state)).collect(), next)
    }
}
