//! The HTTP API: JSON over HTTP/1.1 and h2.
//!
//! # Layout
//!
//! * [`app`]: what every handler has; how a command goes in and an answer comes out
//! * [`holds`] · [`define`]: shops, sales, items · [`offers`]: how much of an item there is · [`blocks`]: units set aside ·
//!   [`seats`]: those of an item · [`buyers`]: forgetting one ·
//!   [`ledger`]: the log, read by [`reading`] · [`operations`]: for those who run it
//! * [`body`], [`strict`] · [`keys`] · [`origin`] · [`overrides`]: reading requests · [`render`]: writing answers
//! * [`codes`] · [`problem`] · [`error`]: the one mapping from refusals and faults to answers
//! * [`server`]: one runtime per core, connections, shutting down
//!
//! All routes are in [`router`], and all layers, outermost last.

pub mod app;
pub mod blocks;
pub mod body;
pub mod buyers;
pub mod codes;
pub mod define;
pub mod error;
pub mod holds;
pub mod keys;
pub mod ledger;
pub mod offers;
pub mod openapi;
pub mod operations;
pub mod origin;
pub mod overrides;
pub mod problem;
pub mod reading;
pub mod render;
pub mod seats;
pub mod server;
pub mod strict;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post, put};

pub use app::{App, AppLimits};
use problem::Problem;

/// Which routes beside the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// None.
    None,
    /// A handler that only parses and answers, to measure against.
    Bench,
}

/// Every route.
pub fn router(app: &Arc<App>, extra: Extra) -> Router {
    let item = "/v1/sales/{sale}/items/{item}";
    let large = DefaultBodyLimit::max(body::LARGE_BODY_BYTES_MAX);
    let router = Router::new()
        .route("/v1/holds", post(holds::create).get(holds::list))
        .route("/v1/holds/{id}", get(holds::get))
        .route("/v1/holds/{id}/confirm", post(holds::confirm))
        .route("/v1/holds/{id}/extend", post(holds::extend))
        .route("/v1/holds/{id}/release", post(holds::release))
        .route("/v1/holds/{id}/cancel", post(holds::cancel))
        .route("/v1/holds/{id}/history", get(ledger::history))
        .route("/v1/shops/{shop}", put(define::shop_put).get(define::shop_get))
        .route("/v1/sales", get(define::sale_list))
        .route("/v1/sales/{sale}", put(define::sale_put).get(define::sale_get))
        .route("/v1/sales/{sale}/items", get(offers::list))
        .route(item, put(define::item_put).layer(large).get(offers::get))
        .route(&format!("{item}/seats"), post(seats::change).layer(large).get(seats::list))
        .route(&format!("{item}/seats/{{seat}}"), get(seats::get))
        .route(&format!("{item}/adjust"), post(define::item_adjust))
        .route(&format!("{item}/block"), post(blocks::item_block).layer(large))
        .route(&format!("{item}/unblock"), post(blocks::item_unblock).layer(large))
        .route("/v1/sales/{sale}/{step}", post(define::sale_move))
        .route("/v1/buyers/erase", post(buyers::erase))
        .route("/v1/ledger", get(ledger::ledger))
        .route("/v1/ledger/head", get(ledger::head))
        .route("/v1/attempts", get(ledger::attempts))
        .route("/healthz", get(operations::healthz))
        .route("/readyz", get(operations::readyz))
        .route("/metrics", get(operations::metrics))
        .route("/openapi.json", get(operations::openapi))
        .route("/", get(operations::page));
    let router = match extra {
        Extra::None => router,
        Extra::Bench => router.route("/v1/bench/bare", post(operations::bare)),
    };
    router
        .fallback(|| async { Problem::new("not_found", "There is no such route.") })
        .method_not_allowed_fallback(|| async {
            Problem::new("method_not_allowed", "This route does not take this method.")
        })
        .layer(DefaultBodyLimit::max(app.limits.body_bytes_max))
        .layer(axum::middleware::from_fn_with_state(app.clone(), app::with_request_id))
        .with_state(app.clone())
}
