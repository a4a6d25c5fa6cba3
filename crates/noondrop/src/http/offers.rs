//! `GET …/items` and `…/items/{item}`: counts for who sells and who checks, a level for everyone else.
//!
//! What buyers see changes a few times in a sale and not with each unit, so that an edge may keep it for a moment; what
//! it must never do is give one caller's answer to a caller with another credential ([`EVERYONE`]).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use noondrop_core::{Catalog, ItemView, Offer};
use noondrop_log::Position;
use serde_json::{Value, json};

use super::app::{App, Caller, is_known, position_header, value_response};
use super::body::{Path, Query};
use super::holds::AtLeast;
use super::problem::Problem;
use super::render::{item_value, time_text};
use crate::auth::Role;

/// How long a cache may give what everyone may see. `public`: also one that many share, although requests carry a
/// credential (RFC 9111, 3.5); it tells credentials apart by [`VARY`], and so never mixes shops or roles.
const EVERYONE: HeaderValue = HeaderValue::from_static("public, max-age=1");
/// What the answer depends on beside the path.
const VARY: HeaderValue = HeaderValue::from_static("Authorization, Noondrop-Shop");

/// Whether a role sees numbers.
fn sees_counts(role: Role) -> bool {
    match role {
        Role::Operator | Role::Admin | Role::Seller | Role::Auditor => true,
        Role::Buyer | Role::Worker => false,
    }
}

fn shown(role: Role, view: &ItemView, offer: Offer, catalog: &Catalog) -> Value {
    let mut value = item_value(view, catalog);
    if !sees_counts(role) {
        let everyone = ["item", "sale", "version", "seated"];
        let members = everyone.into_iter().map(|name| (name.to_owned(), value[name].take()));
        value = Value::Object(members.collect());
    }
    value["level"] = offer.level.as_str().into();
    value["sold_out_at"] = offer.sold_out_at.map(time_text).into();
    value
}

/// With a tag of what it shows. An item's begins with its version, so that `If-Match` takes it, too.
fn tagged(
    (caller, headers): (&Caller, &HeaderMap),
    (value, version): (&Value, Option<u32>),
    position: Position,
) -> Response {
    let bytes = serde_json::to_vec(value).expect("a value is always JSON");
    let digest = &blake3::hash(&bytes).to_hex()[..16];
    let version = version.map(|version| format!("{version}-")).unwrap_or_default();
    let tag = format!("\"{version}{digest}\"");
    let mut response = if is_known(headers, &tag) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        value_response(StatusCode::OK, value)
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("digits in quotes"));
    headers.insert(header::VARY, VARY);
    if !sees_counts(caller.role()) {
        headers.insert(header::CACHE_CONTROL, EVERYONE);
    }
    position_header(headers, position);
    response
}

/// `GET /v1/sales/{sale}/items/{item}`
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    Query(query): Query<AtLeast>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.at_least(query.at_least.as_deref()).await?;
    let (shop, name) = (caller.shop.clone(), item.clone());
    let answer = app
        .ask(move |state, now| {
            let view = state.item(shop.as_str(), &sale, &name)?;
            let offer = state.offer(view.item, now);
            Some((view, offer))
        })
        .await?;
    let (view, offer) = answer.value.ok_or_else(|| Problem::missing("item", &item))?;
    let value = shown(caller.role(), &view, offer, &app.handle.catalog());
    Ok(tagged((&caller, &headers), (&value, Some(view.version)), answer.position))
}

/// `GET /v1/sales/{sale}/items`
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(sale): Path<String>,
    Query(query): Query<AtLeast>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.at_least(query.at_least.as_deref()).await?;
    let (shop, name) = (caller.shop.clone(), sale.clone());
    let answer = app
        .ask(move |state, now| {
            let views = state.items(shop.as_str(), &name)?.into_iter();
            let offered = views.map(|view| (state.offer(view.item, now), view));
            Some(offered.collect::<Vec<_>>())
        })
        .await?;
    let items = answer.value.ok_or_else(|| Problem::missing("sale", &sale))?;
    let catalog = app.handle.catalog();
    let items = items.iter().map(|(offer, view)| shown(caller.role(), view, *offer, &catalog));
    let items = json!({"items": items.collect::<Vec<_>>()});
    Ok(tagged((&caller, &headers), (&items, None), answer.position))
}
