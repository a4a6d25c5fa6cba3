//! The schemas of bodies. Requests refuse what they do not know; answers may grow.

use noondrop_core::{HoldState, Override};
use serde_json::{Map, Value, json};

/// A reference to one of [`all`].
#[must_use]
pub fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Every schema, by name.
#[must_use]
pub fn all() -> Value {
    let mut all = Map::new();
    for (name, schema) in requests().into_iter().chain(answers()) {
        all.insert(name.to_owned(), schema);
    }
    Value::Object(all)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 64})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn list(of: Value) -> Value {
    let mut schema = json!({"type": "array"});
    schema["items"] = of;
    schema
}

/// With `null` allowed.
fn maybe(schema: Value) -> Value {
    let mut either = json!({});
    either["anyOf"] = Value::Array(vec![schema, json!({"type": "null"})]);
    either
}

/// Members; a name that ends in `?` may be left out.
fn members(of: &[(&str, Value)]) -> Value {
    let plain = |name: &str| name.trim_end_matches('?').to_owned();
    let properties: Map<String, Value> =
        of.iter().map(|(name, schema)| (plain(name), schema.clone())).collect();
    let needed = of.iter().filter(|(name, _)| !name.ends_with('?'));
    let needed: Vec<&str> = needed.map(|(name, _)| *name).collect();
    json!({"type": "object", "properties": properties, "required": needed})
}

/// As [`members`], and nothing else.
fn request(of: &[(&str, Value)]) -> Value {
    let mut schema = members(of);
    schema["additionalProperties"] = false.into();
    schema
}

fn requests() -> Vec<(&'static str, Value)> {
    let fence = || ("fence", count());
    let fence_or_reason = || [("fence?", count()), ("reason?", text())];
    let line = request(&[
        ("item", name()),
        ("quantity?", count()),
        ("from?", name()),
        ("together?", json!({"type": "boolean"})),
        ("seats?", list(seat_name())),
        ("sections?", list(name())),
        ("tags?", list(name())),
        ("zone?", name()),
    ]);
    let parts = || {
        list(request(&[("line", count()), ("quantity?", count()), ("seats?", list(seat_name()))]))
    };
    let paid = || ("payment_ref", text());
    let [fence_maybe, reason_maybe] = fence_or_reason();
    vec![
        (
            "HoldNew",
            request(&[
                ("sale", name()),
                ("buyer", name()),
                ("reference?", name()),
                ("lines?", list(line)),
                ("ttl_seconds?", count()),
                ("metadata?", json!({"type": "object"})),
                ("supersedes?", request(&[("hold", text()), fence()])),
                ("retake?", text()),
                ("confirm?", request(&[paid()])),
                ("override?", list(json!({"enum": Override::ALL.map(Override::as_str)}))),
                ("reason?", text()),
            ]),
        ),
        ("Erase", request(&[("buyer", name()), ("reason", text())])),
        ("Confirm", request(&[fence(), paid()])),
        ("Extend", request(&[fence_maybe.clone(), ("seconds", count()), reason_maybe.clone()])),
        ("Release", request(&[fence_maybe, ("lines?", parts()), reason_maybe])),
        (
            "Cancel",
            request(&[
                fence(),
                ("lines?", parts()),
                ("to?", json!({"type": "string", "examples": ["stock", "destroyed", "returns"]})),
                ("reason", text()),
            ]),
        ),
        ("ShopNew", request(&[("live", json!({"type": "boolean"}))])),
        ("SaleNew", request(&sale_terms())),
        (
            "ItemNew",
            request(&[
                ("total?", count()),
                ("oversell_limit?", count()),
                ("counts_against?", list(name())),
                ("seats?", list(request(&seat()))),
            ]),
        ),
        (
            "SeatsChange",
            request(&[
                ("add?", list(request(&seat()))),
                ("remove?", list(seat_name())),
                ("reason", text()),
            ]),
        ),
        (
            "Block",
            request(&[
                ("quantity?", count()),
                ("seats?", list(seat_name())),
                ("label", name()),
                ("reason", text()),
            ]),
        ),
        (
            "Adjust",
            request(&[
                ("by", json!({"type": "integer"})),
                ("reason", text()),
                ("if_total?", count()),
            ]),
        ),
    ]
}

fn seat_name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 32})
}

fn seat() -> Vec<(&'static str, Value)> {
    vec![
        ("seat", seat_name()),
        ("section", name()),
        ("row", name()),
        ("number", count()),
        ("rank?", count()),
        ("tags?", list(name())),
        ("zone?", maybe(name())),
    ]
}

fn sale_terms() -> Vec<(&'static str, Value)> {
    let limit = request(&[("name", name()), ("items?", list(name())), ("per_buyer", count())]);
    vec![
        ("title?", text()),
        ("opens_at?", maybe(time())),
        ("closes_at?", maybe(time())),
        ("hold_seconds?", count()),
        ("hold_seconds_max?", count()),
        ("hold_chain_seconds_max?", count()),
        ("extensions_max?", count()),
        ("live_holds_per_buyer?", maybe(count())),
        ("limits?", list(limit)),
        (
            "returns_to?",
            maybe(request(&[("label", name()), ("lapsed?", json!({"type": "boolean"}))])),
        ),
    ]
}

fn hold() -> Value {
    let states: Vec<&str> = HoldState::ALL.iter().map(|state| state.as_str()).collect();
    let line = members(&[
        ("line", count()),
        ("item", name()),
        ("held", count()),
        ("sold", count()),
        ("released", count()),
        ("cancelled", count()),
        ("seats?", list(members(&[("seat", seat_name()), ("gone?", text())]))),
        ("from?", name()),
    ]);
    members(&[
        ("id", text()),
        ("fence", count()),
        ("state", json!({"type": "string", "examples": states})),
        ("live", json!({"type": "boolean"})),
        ("shop", name()),
        ("sale", name()),
        ("buyer", maybe(text())),
        ("reference", maybe(text())),
        ("created_at", time()),
        ("expires_at", time()),
        ("ttl_seconds", count()),
        ("extensions_left", count()),
        ("supersedes", maybe(text())),
        ("superseded_by", maybe(text())),
        ("lines", list(line)),
        ("metadata", maybe(json!({"type": "object"}))),
        ("already?", json!({"type": "boolean"})),
    ])
}

fn answers() -> Vec<(&'static str, Value)> {
    let live = || ("live", json!({"type": "boolean"}));
    let facts = || list(json!({"type": "object"}));
    let told = || {
        let told = members(&[
            ("kind", text()),
            ("at", time()),
            ("position", text()),
            ("sentence", text()),
        ]);
        list(told)
    };
    let next = || ("next_after", maybe(text()));
    let mut sale = vec![("sale", name()), ("shop", name()), live(), ("state", text())];
    sale.push(("version", count()));
    sale.extend(sale_terms());
    let row =
        members(&[("seq", count()), ("position", text()), ("at", time()), ("facts", facts())]);
    vec![
        ("Hold", hold()),
        ("HoldPage", members(&[("holds", list(named("Hold"))), ("next_before", maybe(text()))])),
        ("History", members(&[("hold", text()), ("facts", told())])),
        ("Attempts", members(&[("attempts", told()), next()])),
        ("Shop", members(&[("shop", name()), live()])),
        ("Sale", members(&sale)),
        ("SaleList", members(&[("sales", list(named("Sale")))])),
        ("Item", item()),
        ("ItemList", members(&[("items", list(named("Item")))])),
        ("Seat", seat_told()),
        ("SeatPage", members(&[("seats", list(named("Seat"))), ("next_after", maybe(count()))])),
        ("LedgerPage", members(&[("rows", list(row)), next()])),
        ("LedgerHead", members(&[("position", text()), ("seq", count()), ("digest", text())])),
        (
            "Erased",
            members(&[
                ("buyer", text()),
                ("holds", count()),
                ("erased_at", time()),
                ("already", json!({"type": "boolean"})),
                ("erased_before_at", maybe(time())),
            ]),
        ),
        ("Problem", problem()),
    ]
}

fn seat_told() -> Value {
    let states =
        json!({"type": "string", "examples": ["free", "held", "sold", "blocked", "removed"]});
    let mut told = seat();
    told.extend([("state", states), ("planned", json!({"type": "boolean"}))]);
    told.extend([("block?", maybe(name())), ("hold?", text()), ("buyer?", maybe(text()))]);
    members(&told)
}

/// Counts are for sellers, admins and auditors; `level` and `sold_out_at` are in what is read.
fn item() -> Value {
    let levels = ["available", "few", "all_held", "sold_out"];
    members(&[
        ("item", name()),
        ("sale", name()),
        ("version", count()),
        ("level?", json!({"type": "string", "examples": levels})),
        ("sold_out_at?", maybe(time())),
        ("total?", count()),
        ("available?", count()),
        ("held?", count()),
        ("sold?", count()),
        ("blocked?", count()),
        ("oversold?", count()),
        ("oversell_limit?", count()),
        ("seated", json!({"type": "boolean"})),
        ("quarantined?", json!({"type": "boolean"})),
        ("view?", json!({"type": "boolean"})),
        ("counts_against?", list(name())),
        ("blocks?", list(members(&[("label", name()), ("quantity", count())]))),
    ])
}

fn problem() -> Value {
    members(&[
        ("type", json!({"type": "string", "format": "uri"})),
        ("title", text()),
        ("status", count()),
        ("code", text()),
        ("detail", text()),
        ("retry", json!({"type": "string", "examples": ["no", "same_key", "new_key"]})),
        ("field?", text()),
        ("bound?", json!({"type": ["string", "integer"]})),
        ("needs?", list(text())),
        ("shop?", text()),
        ("sale?", text()),
        ("item?", text()),
        ("seat?", text()),
        ("holds?", count()),
        ("hold?", maybe(text())),
        ("superseded_by?", maybe(text())),
        ("payment_ref?", maybe(text())),
        ("opens_at?", maybe(time())),
        ("limit?", text()),
        ("per_buyer?", count()),
        ("used?", count()),
        ("total?", count()),
        ("now?", count()),
        ("position?", text()),
        ("errors?", list(json!({"type": "object"}))),
    ])
}
