//! `/v1/shops`, `/v1/sales`, `…/items`: what is on offer, as those define it who sell it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use noondrop_core::{
    Act, BuyerLimit, ItemAdjust, ItemPut, SaleMove, SalePut, SaleStep, SaleTerms, ShopPut,
    Timestamp,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, Caller, position_header, value_response, with_etag};
use super::blocks::ReturnsBody;
use super::body::{self, LargeRaw, Path, Query, Raw};
use super::holds::AtLeast;
use super::problem::Problem;
use super::render::{sale_value, shop_value};
use super::seats::{SeatBody, defs};
use super::strict::Strict;
use crate::auth::Role;

const ADMINS: &[Role] = &[Role::Admin];

/// The version that the caller saw, from `If-Match`: the tag of an answer that wrote it, or of one that showed it, where
/// a digest of all that was shown follows.
fn if_match(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or("").trim_matches('"');
    let version = text.split_once('-').map_or(text, |(version, _)| version);
    version
        .parse()
        .map(Some)
        .map_err(|_| Problem::field("If-Match", "the ETag of an earlier answer"))
}

/// A shop.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShopBody {
    live: bool,
}

/// `PUT /v1/shops/{shop}`
pub async fn shop_put(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(shop): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(&[Role::Operator])?;
    let name = body::path_name("shop", &shop)?;
    let body: ShopBody = body::read(&headers, raw)?;
    let act = Act::ShopPut(ShopPut { name, live: body.live });
    let reply = app.execute(&caller, &headers, act, &shop).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// `GET /v1/shops/{shop}`
pub async fn shop_get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(shop): Path<String>,
) -> Result<Response, Problem> {
    let own = caller.role() == Role::Operator || *caller.shop.as_str() == *shop;
    let name = shop.clone();
    let answer = app.ask(move |state, _| state.shop(&name)).await?;
    let view = answer.value.filter(|_| own);
    let view = view.ok_or_else(|| Problem::missing("shop", &shop))?;
    let mut response = value_response(StatusCode::OK, &shop_value(&view));
    position_header(response.headers_mut(), answer.position);
    Ok(response)
}

/// A sale's rules. What is left out has its default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaleBody {
    #[serde(default)]
    title: String,
    opens_at: Option<jiff::Timestamp>,
    closes_at: Option<jiff::Timestamp>,
    hold_seconds: Option<u32>,
    hold_seconds_max: Option<u32>,
    hold_chain_seconds_max: Option<u32>,
    extensions_max: Option<u8>,
    live_holds_per_buyer: Option<u32>,
    #[serde(default)]
    limits: Vec<Strict<LimitBody>>,
    returns_to: Option<Strict<ReturnsBody>>,
}

/// A limit per buyer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitBody {
    name: String,
    #[serde(default)]
    items: Vec<String>,
    per_buyer: u32,
}

/// What a sale has that does not say.
pub(crate) const HOLD_SECONDS: u32 = 300;
/// The same, of extensions.
pub(crate) const EXTENSIONS: u8 = 2;

fn time(field: &str, time: jiff::Timestamp) -> Result<Timestamp, Problem> {
    let ms = u64::try_from(time.as_millisecond());
    ms.map(Timestamp).map_err(|_| Problem::field(field, "after 1970"))
}

impl SaleBody {
    fn terms(self) -> Result<SaleTerms, Problem> {
        let hold_seconds = self.hold_seconds.unwrap_or(HOLD_SECONDS);
        let hold_seconds_max = self.hold_seconds_max.unwrap_or(hold_seconds);
        let chain = hold_seconds_max.saturating_mul(3);
        let limits = self.limits.into_iter().enumerate().map(|(place, limit)| {
            let items = limit
                .items
                .iter()
                .enumerate()
                .map(|(at, item)| body::name(&format!("limits[{place}].items[{at}]"), item));
            Ok(BuyerLimit {
                name: body::name(&format!("limits[{place}].name"), &limit.name)?,
                items: items.collect::<Result<_, Problem>>()?,
                per_buyer: limit.per_buyer,
            })
        });
        Ok(SaleTerms {
            title: self.title,
            opens_at: self.opens_at.map(|at| time("opens_at", at)).transpose()?,
            closes_at: self.closes_at.map(|at| time("closes_at", at)).transpose()?,
            hold_seconds,
            hold_seconds_max,
            hold_chain_seconds_max: self.hold_chain_seconds_max.unwrap_or(chain),
            extensions_max: self.extensions_max.unwrap_or(EXTENSIONS),
            live_holds_per_buyer: self.live_holds_per_buyer,
            limits: limits.collect::<Result<_, Problem>>()?,
            returns_to: self.returns_to.map(|returns| returns.0.read()).transpose()?,
        })
    }
}

/// `PUT /v1/sales/{sale}`
pub async fn sale_put(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(sale): Path<String>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let name = body::name("sale", &sale)?;
    let body: SaleBody = body::read(&headers, raw)?;
    let if_version = if_match(&headers)?;
    let act = Act::SalePut(SalePut { sale: name, terms: body.terms()?, if_version });
    let reply = app.execute(&caller, &headers, act, &sale).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// `POST /v1/sales/{sale}/{step}`
pub async fn sale_move(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, step)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let to = match step.as_str() {
        "publish" => SaleStep::Publish,
        "pause" => SaleStep::Pause,
        "resume" => SaleStep::Resume,
        "close" => SaleStep::Close,
        "reopen" => SaleStep::Reopen,
        "archive" => SaleStep::Archive,
        _ => return Err(Problem::new("not_found", format!("A sale has no step {step}."))),
    };
    caller.needs(ADMINS)?;
    let name = body::path_name("sale", &sale)?;
    let act = Act::SaleMove(SaleMove { sale: name, to });
    let reply = app.execute(&caller, &headers, act, &sale).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// `GET /v1/sales/{sale}`
pub async fn sale_get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(sale): Path<String>,
    Query(query): Query<AtLeast>,
) -> Result<Response, Problem> {
    app.at_least(query.at_least.as_deref()).await?;
    let (shop, name) = (caller.shop.clone(), sale.clone());
    let answer = app.ask(move |state, _| state.sale(shop.as_str(), &name)).await?;
    let view = answer.value;
    let view = view.ok_or_else(|| Problem::missing("sale", &sale))?;
    let mut response = with_etag(value_response(StatusCode::OK, &sale_value(&view)), view.version);
    position_header(response.headers_mut(), answer.position);
    Ok(response)
}

/// `GET /v1/sales`
pub async fn sale_list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<AtLeast>,
) -> Result<Response, Problem> {
    app.at_least(query.at_least.as_deref()).await?;
    let shop = caller.shop.clone();
    let asked = move |state: &noondrop_core::State, _| {
        state.shop(shop.as_str()).map(|shop| state.sales(shop.name.as_str()))
    };
    let answer = app.ask(asked).await?;
    let sales = answer.value.ok_or_else(|| Problem::missing("shop", caller.shop.as_str()))?;
    let sales: Vec<Value> = sales.iter().map(sale_value).collect();
    let mut response = value_response(StatusCode::OK, &json!({ "sales": sales }));
    position_header(response.headers_mut(), answer.position);
    Ok(response)
}

/// An item.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemBody {
    total: Option<u32>,
    #[serde(default)]
    oversell_limit: u32,
    seats: Option<Vec<Strict<SeatBody>>>,
    #[serde(default)]
    counts_against: Vec<String>,
}

/// `PUT /v1/sales/{sale}/items/{item}`
pub async fn item_put(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    headers: HeaderMap,
    raw: LargeRaw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let body: ItemBody = body::read(&headers, raw.into())?;
    if body.total.is_some() && body.seats.is_some() {
        return Err(Problem::field("total", "absent, where seats are listed"));
    }
    let against = body.counts_against.iter().enumerate();
    let against = against.map(|(at, name)| body::name(&format!("counts_against[{at}]"), name));
    let against = against.collect::<Result<Vec<_>, Problem>>()?;
    let act = Act::ItemPut(ItemPut {
        sale: body::path_name("sale", &sale)?,
        item: body::name("item", &item)?,
        total: body.total,
        oversell_limit: body.oversell_limit,
        if_version: if_match(&headers)?,
        seats: body.seats.map(|seats| defs("seats", seats)).transpose()?,
        counts_against: (!against.is_empty()).then_some(against),
    });
    let reply = app.execute(&caller, &headers, act, &item).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// More or fewer units.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdjustBody {
    by: i64,
    reason: String,
    if_total: Option<u32>,
}

/// `POST /v1/sales/{sale}/items/{item}/adjust`
pub async fn item_adjust(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let body: AdjustBody = body::read(&headers, raw)?;
    let act = Act::ItemAdjust(ItemAdjust {
        sale: body::path_name("sale", &sale)?,
        item: body::path_name("item", &item)?,
        by: body.by,
        reason: body::text("reason", &body.reason)?,
        if_total: body.if_total,
    });
    let target = format!("{sale}/{item}");
    let reply = app.execute(&caller, &headers, act, &target).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}
