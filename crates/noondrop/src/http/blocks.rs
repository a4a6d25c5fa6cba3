//! `…/items/{item}/block`, `unblock`: units set aside under a label, and labels wherever they come in.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use noondrop_core::{Act, CancelTo, ItemBlock, ItemUnblock, Name, Returns};
use serde::Deserialize;

use super::app::{App, Caller};
use super::body::{self, LargeRaw, Path};
use super::problem::Problem;
use super::seats::seat_names;
use crate::auth::Role;

const ADMINS: &[Role] = &[Role::Admin];
/// What `to` of a cancel means without being a label.
const STOCK: &str = "stock";
const DESTROYED: &str = "destroyed";

/// Units to set aside, or to put on sale again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockBody {
    quantity: Option<u32>,
    seats: Option<Vec<String>>,
    label: String,
    reason: String,
}

/// What both routes ask for.
struct Asked {
    sale: Name,
    item: Name,
    quantity: u32,
    seats: Option<Vec<Name>>,
    label: Name,
    reason: String,
}

impl Asked {
    fn read(sale: &str, item: &str, headers: &HeaderMap, raw: LargeRaw) -> Result<Self, Problem> {
        let BlockBody { quantity, seats, label: text, reason } = body::read(headers, raw.into())?;
        let seats = seats.map(|seats| seat_names("seats", &seats)).transpose()?;
        let named = seats.as_ref().map(|seats| u32::try_from(seats.len()).unwrap_or(u32::MAX));
        let quantity = quantity.or(named);
        Ok(Self {
            sale: body::path_name("sale", sale)?,
            item: body::path_name("item", item)?,
            quantity: quantity
                .ok_or_else(|| Problem::field("quantity", "a number, or seats by name"))?,
            seats,
            label: label("label", &text)?,
            reason: body::text("reason", &reason)?,
        })
    }
}

/// Where units go that come back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnsBody {
    label: String,
    #[serde(default)]
    lapsed: bool,
}

impl ReturnsBody {
    pub(super) fn read(self) -> Result<Returns, Problem> {
        Ok(Returns { label: label("returns_to.label", &self.label)?, lapsed: self.lapsed })
    }
}

/// A label; two words are taken.
pub(super) fn label(field: &str, text: &str) -> Result<Name, Problem> {
    if [STOCK, DESTROYED].contains(&text) {
        return Err(Problem::field(field, "a label; stock and destroyed mean something else"));
    }
    body::name(field, text)
}

/// Where cancelled units go.
pub(super) fn cancel_to(text: &str) -> Result<CancelTo, Problem> {
    match text {
        STOCK => Ok(CancelTo::Stock),
        DESTROYED => Ok(CancelTo::Destroyed),
        other => label("to", other).map(CancelTo::Block),
    }
}

/// `POST /v1/sales/{sale}/items/{item}/block`
pub async fn item_block(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    headers: HeaderMap,
    raw: LargeRaw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let Asked { sale: of, item: name, quantity, seats, label, reason } =
        Asked::read(&sale, &item, &headers, raw)?;
    let act = Act::ItemBlock(ItemBlock { sale: of, item: name, quantity, label, reason, seats });
    let reply = app.execute(&caller, &headers, act, &format!("{sale}/{item}")).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}

/// `POST /v1/sales/{sale}/items/{item}/unblock`
pub async fn item_unblock(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((sale, item)): Path<(String, String)>,
    headers: HeaderMap,
    raw: LargeRaw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let Asked { sale: of, item: name, quantity, seats, label, reason } =
        Asked::read(&sale, &item, &headers, raw)?;
    let act =
        Act::ItemUnblock(ItemUnblock { sale: of, item: name, quantity, label, reason, seats });
    let reply = app.execute(&caller, &headers, act, &format!("{sale}/{item}")).await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}
