//! The pages of the codes against the answers: each member that a page names comes, and none comes that it does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use noondrop::http::codes::CODES;
use noondrop::http::openapi;
use serde_json::{Value, json};

use crate::http_world::{Ask, Seen, Who, World, floor, get, path_of, post, put};

/// What every problem has.
const COMMON: [&str; 6] = ["type", "title", "status", "code", "detail", "retry"];

/// Codes that only a fault, a full machine or a long wait brings about.
const NOT_TO_BE_HAD: [&str; 6] =
    ["item_quarantined", "internal", "overloaded", "outcome_unknown", "keys_full", "not_ready"];

/// What a page promises beyond the common members.
struct Page {
    members: BTreeSet<String>,
    /// Of each entry of `errors`.
    of_errors: BTreeSet<String>,
    headers: BTreeSet<String>,
}

impl Page {
    fn of(code: &str) -> Self {
        let path = format!("../../docs/errors/{code}.md");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        let text = text.expect("each code has a page");
        let (_, fields) = text.split_once("## Fields").expect("a page has this section");
        let (mut members, mut of_errors) = (BTreeSet::new(), BTreeSet::new());
        let mut headers = BTreeSet::new();
        let pieces: Vec<&str> = fields.split('`').collect();
        for at in (1..pieces.len()).step_by(2) {
            let (before, word) = (pieces[at - 1], pieces[at].to_owned());
            let after = pieces.get(at + 1).copied().unwrap_or_default();
            if before.ends_with("header ") {
                headers.insert(word);
            } else if after.starts_with(':') {
                members.insert(word);
            } else if members.contains("errors") {
                of_errors.insert(word);
            }
        }
        Self { members, of_errors, headers }
    }
}

/// Everything that was met, by code.
#[derive(Default)]
struct Met(BTreeMap<String, Vec<Seen>>);

impl Met {
    fn add(&mut self, seen: Seen) -> Value {
        let body = seen.json();
        let code = body["code"].as_str().unwrap_or_else(|| panic!("no problem: {}", seen.text()));
        self.0.entry(code.to_owned()).or_default().push(seen);
        body
    }
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn each_page_names_the_members_that_come_and_no_others() {
    let mut met = Met::default();
    at_the_door(&mut met);
    of_sales(&mut met);
    of_stock(&mut met);
    of_buyers(&mut met);
    of_holds(&mut met);

    let document = openapi::document();
    let described = names(&document["components"]["schemas"]["Problem"]["properties"]);
    for row in CODES {
        let Some(answers) = met.0.get(row.code) else {
            assert!(NOT_TO_BE_HAD.contains(&row.code), "{} is not brought about", row.code);
            continue;
        };
        let page = Page::of(row.code);
        let (mut members, mut of_errors) = (BTreeSet::new(), BTreeSet::new());
        for seen in answers {
            let body = seen.json();
            members.extend(names(&body));
            for error in body["errors"].as_array().into_iter().flatten() {
                of_errors.extend(names(error));
            }
            for header in &page.headers {
                assert!(seen.header(header).is_some(), "{}: {header} is missing", row.code);
            }
        }
        for common in COMMON {
            assert!(members.remove(common), "{}: {common} is missing", row.code);
        }
        assert_eq!(members, page.members, "{}: found, and on its page", row.code);
        assert_eq!(of_errors, page.of_errors, "{}: errors, and on its page", row.code);
        assert!(members.is_subset(&described), "{}: {members:?} in openapi.json", row.code);
    }
}

fn at_the_door(met: &mut Met) {
    let world = World::with_floor(5);
    let create = || post("/v1/holds", &floor("ada", 1));
    met.add(world.send(Who::Seller, &create()));
    met.add(world.send(Who::Seller, &create().key("a").key("b")));
    met.add(world.send(Who::Nobody, &create().key("a")));
    met.add(world.send(Who::Auditor, &create().key("a")));
    let json = || Ask::new("POST", "/v1/holds").key("a").header("content-type", "application/json");
    met.add(world.send(Who::Seller, &json().raw("{}")));
    met.add(world.send(Who::Seller, &json().raw(vec![b' '; 65_537])));
    met.add(world.send(Who::Seller, &Ask::new("POST", "/v1/holds").key("a").raw("{}")));
    let mut unknown = floor("ada", 1);
    unknown["lines"][0]["colour"] = json!("red");
    let problem = met.add(world.send(Who::Seller, &post("/v1/holds", &unknown).key("a")));
    assert_eq!(problem["field"], "lines[0].colour");
    unknown = floor("ada", 1);
    unknown["colour"] = json!("red");
    let problem = met.add(world.send(Who::Seller, &post("/v1/holds", &unknown).key("a")));
    assert_eq!(problem["field"], "colour");
    met.add(world.send(Who::Seller, &get("/v2")));
    met.add(world.send(Who::Seller, &Ask::new("DELETE", "/v1/holds")));
    met.add(world.send(Who::Seller, &get("/v1/sales/noon?at_least=1.00000000")));
    world.send(Who::Seller, &create().key("a")).done(201);
    met.add(world.try_hold("a", "bob", 1));
}

fn of_sales(met: &mut Met) {
    let world = World::with_floor(5);
    let post_step = |step: &str| world.send(Who::Admin, &Ask::new("POST", format!("/v1/{step}")));
    let problem = met.add(world.send(Who::Operator, &get("/v1/shops/x")));
    assert_eq!(problem["shop"], "x");
    let foreign = get("/v1/sales").header("noondrop-shop", "x");
    assert_eq!(met.add(world.send(Who::Seller, &foreign))["shop"], "x");
    for path in ["/v1/sales/x", "/v1/sales/x/items"] {
        assert_eq!(met.add(world.send(Who::Seller, &get(path)))["sale"], "x");
    }
    assert_eq!(met.add(post_step("sales/x/publish"))["sale"], "x");
    let mut elsewhere = floor("ada", 1);
    elsewhere["sale"] = json!("x");
    let ask = post("/v1/holds", &elsewhere).key("a");
    assert_eq!(met.add(world.send(Who::Seller, &ask))["sale"], "x");
    assert_eq!(met.add(world.send(Who::Seller, &get("/v1/sales/noon/items/x")))["item"], "x");
    let mut roof = floor("ada", 1);
    roof["lines"][0]["item"] = json!("roof");
    let ask = post("/v1/holds", &roof).key("a");
    assert_eq!(met.add(world.send(Who::Seller, &ask))["item"], "roof");
    let adjust = json!({"by": 1, "reason": "r"});
    let adjust = post("/v1/sales/noon/items/x/adjust", &adjust).key("b");
    assert_eq!(met.add(world.send(Who::Admin, &adjust))["item"], "x");
    met.add(world.send(Who::Admin, &put("/v1/sales/noon/items/floor", &json!({"total": 9}))));
    let stale = put("/v1/sales/noon", &json!({})).header("if-match", "\"77\"");
    met.add(world.send(Who::Admin, &stale));
    for step in ["pause", "close", "archive"] {
        post_step(&format!("sales/noon/{step}")).done(200);
        met.add(world.try_hold("c", "ada", 1));
    }
    for (sale, terms) in
        [("draft", json!({})), ("dusk", json!({"opens_at": "2030-01-01T00:00:00Z"}))]
    {
        world.send(Who::Admin, &put(format!("/v1/sales/{sale}"), &terms)).done(201);
        elsewhere["sale"] = json!(sale);
        let ask = post("/v1/holds", &elsewhere).key("a");
        let problem = met.add(world.send(Who::Seller, &ask));
        assert!(problem.get("opens_at").is_some(), "{problem}");
        world.send(Who::Admin, &Ask::new("POST", format!("/v1/sales/{sale}/publish"))).done(200);
        if sale == "dusk" {
            assert!(met.add(world.send(Who::Seller, &ask))["opens_at"].is_string());
        }
    }
}

fn of_stock(met: &mut Met) {
    let world = World::with_floor(2);
    let hold = world.hold("a", "ada", 1);
    met.add(world.try_hold("b", "bob", 2));
    let other = world.hold("c", "bob", 1);
    met.add(world.try_hold("d", "cat", 1));
    world.act(&other, "confirm", json!({"payment_ref": "p"})).done(200);
    world.pass(Duration::from_secs(301));
    let third = world.hold("e", "cat", 1);
    let mut retake = floor("ada", 1);
    retake["retake"] = hold["id"].clone();
    met.add(world.send(Who::Seller, &post("/v1/holds", &retake).key("f")));
    world.act(&third, "confirm", json!({"payment_ref": "q"})).done(200);
    met.add(world.try_hold("g", "dan", 1));

    let seat = |number: u32| json!({"seat": format!("A{number}"), "section": "A", "row": "1", "number": number});
    let hall = json!({"seats": [seat(1), seat(2), seat(3)]});
    world.send(Who::Admin, &put("/v1/sales/noon/items/hall", &hall)).done(201);
    let mut wants = |key: &str, line: Value| {
        let body = json!({"sale": "noon", "buyer": "eve", "lines": [line]});
        let seen = world.send(Who::Seller, &post("/v1/holds", &body).key(key));
        if seen.status != 201 {
            met.add(seen);
        }
    };
    wants("h", json!({"item": "hall", "seats": ["A2"]}));
    wants("i", json!({"item": "hall", "seats": ["A1", "A2"]}));
    wants("j", json!({"item": "hall", "seats": ["A9"]}));
    wants("k", json!({"item": "hall", "quantity": 2, "together": true}));
    met.add(world.send(Who::Seller, &get("/v1/sales/noon/items/hall/seats/A9")));
}

fn of_buyers(met: &mut Met) {
    let world = World::limited("refusals_per_minute_per_buyer = 2");
    let terms = json!({"live_holds_per_buyer": 2, "limits": [{"name": "four", "per_buyer": 4}]});
    world.open_sale("noon", &terms);
    world.item("noon", "floor", 50);
    let mut body = floor("ada", 1);
    body["reference"] = json!("cart-1");
    let first = world.send(Who::Seller, &post("/v1/holds", &body).key("a")).done(201).json();
    let ask = post("/v1/buyers/erase", &json!({"buyer": "ada", "reason": "by letter"}));
    let problem = met.add(world.send(Who::Admin, &ask));
    assert_eq!(problem["holds"], 1);
    body["buyer"] = json!("bob");
    let problem = met.add(world.send(Who::Seller, &post("/v1/holds", &body).key("b")));
    assert_eq!(problem["hold"], first["id"]);
    let problem = met.add(world.try_hold("c", "ada", 4));
    assert_eq!((&problem["limit"], &problem["per_buyer"]), (&json!("four"), &json!(4)));
    world.hold("d", "ada", 1);
    let problem = met.add(world.try_hold("e", "ada", 1));
    assert!(problem["hold"].as_str().is_some_and(|hold| hold.starts_with("hold_")), "{problem}");
    let problem = met.add(world.try_hold("f", "ada", 1));
    assert_eq!(problem["limit"], "refusals_per_minute_per_buyer");

    let world = World::with_floor(50);
    let create = |key| world.send(Who::Buyer("ada"), &post("/v1/holds", &floor("ada", 1)).key(key));
    for key in ["a", "b", "c"] {
        create(key).done(201);
    }
    assert_eq!(met.add(create("d"))["limit"], "live_holds_per_buyer");
}

fn of_holds(met: &mut Met) {
    let world = World::with_floor(9);
    let act = |hold: &Value, act: &str, body: Value, key: &str| {
        let mut body = body;
        body["fence"] = hold["fence"].clone();
        world.send(Who::Seller, &post(path_of(hold, act), &body).key(key))
    };
    let pay = |payment: &str| json!({"payment_ref": payment});
    let cancel = || json!({"to": "stock", "reason": "r"});
    let mut refused = |hold: &Value, seen: Seen| {
        assert_eq!(seen.status, 409, "{}", seen.text());
        assert_eq!(met.add(seen)["hold"], hold["id"]);
    };

    let mut hold = world.hold("a", "ada", 1);
    let fence = hold["fence"].clone();
    hold["fence"] = json!(1);
    refused(&hold, act(&hold, "confirm", pay("p"), "k1"));
    hold["fence"] = fence;
    let mut swap = floor("ada", 1);
    swap["supersedes"] = json!({"hold": hold["id"], "fence": hold["fence"]});
    let next = world.send(Who::Seller, &post("/v1/holds", &swap).key("b")).done(201).json();
    refused(&hold, act(&hold, "confirm", pay("p"), "k2"));
    let seen = act(&hold, "confirm", pay("p"), "k2");
    assert_eq!(seen.json()["superseded_by"], next["id"]);
    assert_eq!(seen.header("idempotency-replayed"), Some("true"));
    refused(&hold, seen);
    refused(&hold, world.send(Who::Seller, &post("/v1/holds", &swap).key("c")));
    act(&next, "confirm", pay("p"), "k3").done(200);
    refused(&next, act(&next, "release", json!({}), "k4"));
    refused(&next, act(&next, "confirm", pay("q"), "k5"));
    act(&next, "cancel", cancel(), "k6").done(200);
    refused(&next, act(&next, "confirm", pay("p"), "k7"));
    let late = world.hold("d", "bob", 1);
    world.pass(Duration::from_secs(301));
    refused(&late, act(&late, "confirm", pay("p"), "k8"));

    let unknown = "hold_00000000000000000000000000000";
    for id in ["hold_x", unknown] {
        let seen = world.send(Who::Seller, &get(format!("/v1/holds/{id}")));
        assert_eq!(met.add(seen)["hold"], id);
        let confirm = json!({"fence": 1, "payment_ref": "p"});
        let ask = post(format!("/v1/holds/{id}/confirm"), &confirm).key("k9");
        assert_eq!(met.add(world.send(Who::Seller, &ask))["hold"], id);
    }
}
