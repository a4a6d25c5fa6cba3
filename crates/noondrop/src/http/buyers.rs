//! `/v1/buyers/erase`: a person is forgotten.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use noondrop_core::{Act, BuyerErase};
use serde::Deserialize;

use super::app::{App, Caller};
use super::body::{self, Raw};
use super::problem::Problem;
use crate::auth::Role;

const ADMINS: &[Role] = &[Role::Admin];

/// Who, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseBody {
    buyer: String,
    reason: String,
}

/// `POST /v1/buyers/erase`. Without a key: again is harmless, and says so.
pub async fn erase(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    raw: Raw,
) -> Result<Response, Problem> {
    caller.needs(ADMINS)?;
    let body: EraseBody = body::read(&headers, raw)?;
    body::name("buyer", &body.buyer)?;
    let buyer = app.handle.digester().digested_buyer(caller.shop.as_str(), &body.buyer);
    let act = Act::BuyerErase(BuyerErase { buyer, reason: body::text("reason", &body.reason)? });
    let reply = app.execute(&caller, &headers, act, "").await?;
    Ok(app.respond(reply, StatusCode::OK).await)
}
