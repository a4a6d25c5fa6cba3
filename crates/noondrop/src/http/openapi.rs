//! The description of the API, made here and checked in at the root of the repository: the server hands out the file.
//!
//! Schemas are in [`schemas`]. A test compares the file with [`document`], and the routes with the router's.

pub mod schemas;

use serde_json::{Map, Value, json};

use super::codes::CODES;

/// OpenAPI 3.1, JSON.
pub const TEXT: &str = include_str!("../../../../openapi.json");

const READ: &[&str] = &["at_least"];
const HOLD_READERS: &str = "buyer (own), seller, admin, auditor";
const OWNERS: &str = "buyer (own), seller, admin";
const SELLERS: &str = "seller, admin";
const SUPPORT: &str = "seller, admin, auditor";
const AUDITORS: &str = "auditor, admin";
const ADMINS: &str = "admin";
const ALL: &str = "all";
const OPEN: &str = "";

/// One method of one route.
#[derive(Clone, Copy, Debug)]
struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Who may; empty: anybody, without a credential.
    roles: &'static str,
    query: &'static [&'static str],
    /// `Idempotency-Key`, `If-Match`.
    headers: &'static [&'static str],
    body: Option<&'static str>,
    /// Successes: status and schema; a media type where it is not JSON.
    answers: &'static [(u16, &'static str)],
}

const fn read(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    roles: &'static str,
    answer: &'static [(u16, &'static str)],
) -> Operation {
    let (query, headers, body) = (READ, &[], None);
    Operation { path, method: "get", id, summary, roles, query, headers, body, answers: answer }
}

const fn send(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    roles: &'static str,
    body: &'static str,
) -> Operation {
    Operation {
        path,
        method: "post",
        id,
        summary,
        roles,
        query: &[],
        headers: &["Idempotency-Key"],
        body: Some(body),
        answers: &[(200, "Hold")],
    }
}

const fn define(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: &'static str,
    answers: &'static [(u16, &'static str)],
) -> Operation {
    Operation {
        path,
        method: "put",
        id,
        summary,
        roles: ADMINS,
        query: &[],
        headers: &["If-Match"],
        body: Some(body),
        answers,
    }
}

/// What is not plain from a parameter's name.
const QUERY_TEXTS: &[(&str, &str)] = &[
    ("at_least", "A position to wait for; 412 if the log took another way."),
    (
        "after",
        "next_after of an earlier page, a position; 412 if the log took another way since. A bare row number is \
         taken too, and cannot notice that.",
    ),
    (
        "since",
        "The position of an earlier answer: only seats that changed after it; 412 if the log took another way.",
    ),
    ("before", "next_before of an earlier page: the id of a hold."),
];

const HOLD: &str = "/v1/holds/{id}";
const SALE: &str = "/v1/sales/{sale}";
const ITEM: &str = "/v1/sales/{sale}/items/{item}";

/// Every operation.
const OPERATIONS: &[Operation] = &[
    Operation {
        answers: &[(201, "Hold")],
        ..send("/v1/holds", "holds.create", "Claim units for a while", OWNERS, "HoldNew")
    },
    Operation {
        query: &["sale", "buyer", "reference", "state", "before", "limit", "at_least"],
        ..read("/v1/holds", "holds.list", "Look for holds", HOLD_READERS, &[(200, "HoldPage")])
    },
    read(HOLD, "holds.get", "One hold, as it is now", HOLD_READERS, &[(200, "Hold")]),
    send(
        "/v1/holds/{id}/confirm",
        "holds.confirm",
        "Sell what is held; never for a buyer",
        SELLERS,
        "Confirm",
    ),
    send("/v1/holds/{id}/extend", "holds.extend", "Move a hold's end", OWNERS, "Extend"),
    send("/v1/holds/{id}/release", "holds.release", "Give held units back", OWNERS, "Release"),
    send("/v1/holds/{id}/cancel", "holds.cancel", "Take sold units back", SELLERS, "Cancel"),
    Operation {
        query: &[],
        ..read(
            "/v1/holds/{id}/history",
            "holds.history",
            "A hold's facts, oldest first",
            SUPPORT,
            &[(200, "History")],
        )
    },
    Operation {
        roles: "operator",
        headers: &[],
        ..define(
            "/v1/shops/{shop}",
            "shops.put",
            "Define a shop",
            "ShopNew",
            &[(200, "Shop"), (201, "Shop")],
        )
    },
    Operation {
        query: &[],
        ..read("/v1/shops/{shop}", "shops.get", "One shop", ALL, &[(200, "Shop")])
    },
    read("/v1/sales", "sales.list", "The shop's sales", ALL, &[(200, "SaleList")]),
    define(SALE, "sales.put", "Define a sale", "SaleNew", &[(200, "Sale"), (201, "Sale")]),
    read(SALE, "sales.get", "One sale", ALL, &[(200, "Sale")]),
    read("/v1/sales/{sale}/items", "items.list", "A sale's items", ALL, &[(200, "ItemList")]),
    define(ITEM, "items.put", "Define an item", "ItemNew", &[(200, "Item"), (201, "Item")]),
    read(
        ITEM,
        "items.get",
        "One item: its account, or how much there is of it",
        ALL,
        &[(200, "Item")],
    ),
    Operation {
        answers: &[(200, "Item")],
        ..send(
            "/v1/sales/{sale}/items/{item}/adjust",
            "items.adjust",
            "More or fewer units",
            ADMINS,
            "Adjust",
        )
    },
    Operation {
        answers: &[(200, "Item")],
        ..send(
            "/v1/sales/{sale}/items/{item}/block",
            "items.block",
            "Set units aside under a label",
            ADMINS,
            "Block",
        )
    },
    Operation {
        answers: &[(200, "Item")],
        ..send(
            "/v1/sales/{sale}/items/{item}/unblock",
            "items.unblock",
            "Put units that were set aside on sale again",
            ADMINS,
            "Block",
        )
    },
    Operation {
        answers: &[(200, "Item")],
        ..send(
            "/v1/sales/{sale}/items/{item}/seats",
            "items.seats",
            "More or fewer seats",
            ADMINS,
            "SeatsChange",
        )
    },
    Operation {
        query: &["since", "after", "limit", "at_least"],
        ..read(
            "/v1/sales/{sale}/items/{item}/seats",
            "seats.list",
            "An item's seats, or those that changed",
            ALL,
            &[(200, "SeatPage")],
        )
    },
    read(
        "/v1/sales/{sale}/items/{item}/seats/{seat}",
        "seats.get",
        "One seat; who may see its hold sees whose it is",
        ALL,
        &[(200, "Seat")],
    ),
    Operation {
        headers: &[],
        body: None,
        answers: &[(200, "Sale")],
        ..send("/v1/sales/{sale}/{step}", "sales.move", "Move a sale to its next state", ADMINS, "")
    },
    Operation {
        headers: &[],
        answers: &[(200, "Erased")],
        ..send("/v1/buyers/erase", "buyers.erase", "Forget a buyer", ADMINS, "Erase")
    },
    Operation {
        query: &["after", "limit"],
        ..read("/v1/ledger", "ledger.list", "The log, row by row", AUDITORS, &[(200, "LedgerPage")])
    },
    Operation {
        query: &[],
        ..read(
            "/v1/ledger/head",
            "ledger.head",
            "Where the log ends",
            AUDITORS,
            &[(200, "LedgerHead")],
        )
    },
    Operation {
        query: &["sale", "buyer", "reference", "key", "hold", "seat", "after"],
        ..read(
            "/v1/attempts",
            "attempts.list",
            "Who tried what, and what came of it",
            SUPPORT,
            &[(200, "Attempts")],
        )
    },
    plain("/healthz", "operations.health", "The process answers", &[(200, "text/plain")]),
    Operation {
        query: &["verbose"],
        ..plain("/readyz", "operations.ready", "It can decide", &[(200, "text/plain")])
    },
    Operation {
        roles: "auditor, admin, operator; open where server.public_metrics says so",
        ..plain("/metrics", "operations.metrics", "For Prometheus", &[(200, "text/plain")])
    },
    plain("/openapi.json", "operations.openapi", "This description", &[(200, "application/json")]),
    plain("/", "operations.page", "A page for people", &[(200, "text/html")]),
];

const fn plain(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answers: &'static [(u16, &'static str)],
) -> Operation {
    Operation { query: &[], ..read(path, id, summary, OPEN, answers) }
}

/// The whole description.
#[must_use]
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Noondrop",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Sells every unit exactly once and can explain every outcome.",
            "description": "Response fields and enum values are only ever added: ignore what you do not know. \
                Unknown request fields are refused by name. Times are RFC 3339, UTC, in milliseconds. \
                What does not exist and what belongs to another shop are told apart by nobody: both are 404.",
        },
        "security": [{"bearer": []}],
        "paths": paths(),
        "components": {
            "schemas": schemas::all(),
            "parameters": parameters(),
            "headers": headers(),
            "responses": {"Problem": problem()},
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A principal's secret, or a buyer's JSON Web Token.",
            }},
        },
        "x-codes": codes(),
    })
}

fn paths() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    Value::Object(paths)
}

fn described(operation: &Operation) -> Value {
    let mut value = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters_of(operation),
        "responses": responses_of(operation),
    });
    if operation.roles.is_empty() {
        value["security"] = json!([]);
    } else {
        value["description"] = format!("Roles: {}.", operation.roles).into();
    }
    if let Some(body) = operation.body {
        let content = json!({"application/json": {"schema": schemas::named(body)}});
        value["requestBody"] = json!({"required": true, "content": content});
    }
    value
}

fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn parameters_of(operation: &Operation) -> Value {
    let path = in_path(operation.path).map(|name| {
        let schema = if name == "step" {
            json!({"enum": ["publish", "pause", "resume", "close", "archive", "reopen"]})
        } else {
            json!({"type": "string"})
        };
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    });
    let query = operation.query.iter().map(|name| {
        let kind = if *name == "limit" { "integer" } else { "string" };
        let mut parameter = json!({"name": name, "in": "query", "schema": {"type": kind}});
        if let Some((_, text)) = QUERY_TEXTS.iter().find(|(known, _)| known == name) {
            parameter["description"] = (*text).into();
        }
        parameter
    });
    let needed = [
        "holds.create",
        "holds.extend",
        "items.adjust",
        "items.seats",
        "items.block",
        "items.unblock",
    ];
    let needed = needed.contains(&operation.id);
    let headers = operation.headers.iter().map(|name| {
        let name = if needed { format!("{name}-Required") } else { (*name).to_owned() };
        json!({"$ref": format!("#/components/parameters/{name}")})
    });
    let shop = ["Noondrop-Shop", "Noondrop-Origin"].into_iter();
    let shop = shop.take(if operation.roles.is_empty() { 0 } else { 2 });
    let shop = shop.filter(|name| *name == "Noondrop-Shop" || operation.method != "get");
    let shop = shop.map(|name| json!({"$ref": format!("#/components/parameters/{name}")}));
    path.chain(query).chain(headers).chain(shop).collect()
}

fn responses_of(operation: &Operation) -> Value {
    let mut responses = Map::new();
    for (status, what) in operation.answers {
        let content = if what.contains('/') {
            json!({*what: {}})
        } else {
            json!({"application/json": {"schema": schemas::named(what)}})
        };
        let mut names = vec!["Noondrop-Request-Id"];
        if operation.path.starts_with("/v1/") {
            names.push("Noondrop-Position");
        }
        if operation.headers.contains(&"Idempotency-Key") {
            names.push("Idempotency-Replayed");
        }
        if *what == "Hold" {
            names.extend(["Noondrop-Hold-State", "Noondrop-Expires-In"]);
        }
        if ["Sale", "Item", "ItemList"].contains(what) {
            names.push("ETag");
        }
        let headers: Map<String, Value> = names
            .into_iter()
            .map(|name| (name.into(), json!({"$ref": format!("#/components/headers/{name}")})))
            .collect();
        let response = json!({"description": "Done.", "headers": headers, "content": content});
        responses.insert(status.to_string(), response);
    }
    if operation.path.starts_with("/v1/") || operation.id == "operations.metrics" {
        responses.insert("default".into(), json!({"$ref": "#/components/responses/Problem"}));
    }
    Value::Object(responses)
}

const ORIGIN: &str = "Where a request came from, such as device=d9;ip=203.0.113.7. Addresses are cut to /24 or \
    /48, and a digest of the rest is kept.";

fn parameters() -> Value {
    let header = |name: &str, required: bool, text: &str| {
        json!({
            "name": name,
            "in": "header",
            "required": required,
            "description": text,
            "schema": {"type": "string"},
        })
    };
    let key = "Bare, or a structured-field string; 1 to 255 printable ASCII characters. Derive it from the cart, \
        do not draw it at random.";
    json!({
        "Idempotency-Key": header("Idempotency-Key", false, key),
        "Idempotency-Key-Required": header("Idempotency-Key", true, key),
        "If-Match": header("If-Match", false, "The ETag of the version that was seen."),
        "Noondrop-Shop": header("Noondrop-Shop", false, "Which shop an operator means."),
        "Noondrop-Origin": header("Noondrop-Origin", false, ORIGIN),
    })
}

fn headers() -> Value {
    let header = |kind: &str, text: &str| json!({"description": text, "schema": {"type": kind}});
    json!({
        "Noondrop-Position": header("string", "The position in the log that this answer shows."),
        "Noondrop-Request-Id": header("string", "Names this answer in the server's log."),
        "Noondrop-Hold-State": header("string", "The hold's state now; the body may be a recorded one."),
        "Noondrop-Expires-In": header("integer", "Seconds that an active hold has left."),
        "Idempotency-Replayed": header("string", "true: the answer was recorded earlier."),
        "ETag": header("string", "The version, for If-Match; of an item that is read, also of all that is shown, for If-None-Match."),
        "Retry-After": header("integer", "Seconds to wait before the next attempt."),
    })
}

fn problem() -> Value {
    json!({
        "description": "Not done; the code says why, and retry what may be done about it.",
        "headers": {
            "Retry-After": {"$ref": "#/components/headers/Retry-After"},
            "Noondrop-Request-Id": {"$ref": "#/components/headers/Noondrop-Request-Id"},
        },
        "content": {"application/problem+json": {"schema": schemas::named("Problem")}},
    })
}

fn codes() -> Value {
    let row = |row: &super::codes::CodeRow| {
        json!({
            "code": row.code,
            "status": row.status,
            "recorded": row.recorded,
            "retry": row.retry.as_str(),
            "title": row.title,
        })
    };
    CODES.iter().map(row).collect()
}
