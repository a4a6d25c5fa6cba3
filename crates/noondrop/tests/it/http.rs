//! The API as its callers see it: statuses, codes, retries, replays, who may what, and what a read waits for.

use std::collections::BTreeSet;
use std::time::Duration;

use noondrop::http::codes::CODES;
use serde_json::{Value, json};

use crate::http_world::{Ask, Seen, Served, Who, World, floor, get, path_of, post, put};

/// Pages of codes that only later releases answer with: they are written, and no answer names them yet.
const CODES_OF_LATER_RELEASES: [&str; 1] = ["shop_live"];

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let mut codes: Vec<&str> = CODES.iter().map(|row| row.code).collect();
    let unique: BTreeSet<&str> = codes.iter().copied().collect();
    assert_eq!(unique.len(), codes.len(), "a code stands twice");
    for later in CODES_OF_LATER_RELEASES {
        assert!(!codes.contains(&later), "{later} is in use: strike it from the later ones");
    }
    codes.extend(CODES_OF_LATER_RELEASES);
    assert_eq!(crate::tidy::unpaired_error_pages(&codes), Vec::<String>::new());
}

// ——— before anything is decided

#[test]
fn a_key_is_asked_for_read_once_and_bounded() {
    let world = World::with_floor(10);
    let ask = || post("/v1/holds", &floor("ada", 1));
    let send = |ask: Ask| world.send(Who::Seller, &ask);
    send(ask()).refused(400, "key_missing", "no");
    let twice = send(ask().key("a").key("a")).refused(400, "key_malformed", "no");
    assert!(twice["bound"].as_str().is_some_and(|bound| bound.contains("255")));
    for bad in ["\"a", "\"a\"b\"", "", &"k".repeat(256)] {
        send(ask().key(bad)).refused(400, "key_malformed", "no");
    }
    let first = send(ask().key("cart-1")).done(201);
    let quoted = send(ask().key("\"cart-1\"")).done(201);
    assert_eq!(quoted.body, first.body, "bare and quoted mean the same key");
    assert_eq!(quoted.header("idempotency-replayed"), Some("true"));
}

#[test]
fn a_body_that_cannot_be_read_says_what_is_wrong_with_it() {
    let world = World::with_floor(10);
    let base = || Ask::new("POST", "/v1/holds").key("k");
    let json = || base().header("content-type", "application/json");
    let send = |ask: Ask| world.send(Who::Seller, &ask);

    let mut unknown = floor("ada", 1);
    unknown["priority"] = json!("high");
    let problem = send(base().json(&unknown)).refused(400, "unknown_field", "no");
    assert_eq!(problem["field"], "priority");

    for list in
        [json!(["noon", "ada"]), json!({"sale": "noon", "buyer": "ada", "lines": [["floor", 1]]})]
    {
        let problem = send(base().json(&list)).refused(400, "invalid_field", "no");
        assert!(
            problem["bound"].as_str().is_some_and(|bound| bound.contains("an object")),
            "{problem}"
        );
    }

    let mut line = floor("ada", 1);
    line["lines"][0]["color"] = json!("red");
    let problem = send(base().json(&line)).refused(400, "unknown_field", "no");
    assert_eq!(problem["field"], "lines[0].color");

    for bad in ["", "{", "[]", "{}", "{\"sale\":1}", "null {}"] {
        send(json().raw(bad)).refused(400, "invalid_field", "no");
    }
    let problem = send(base().json(&floor("ada", 0))).refused(400, "invalid_field", "no");
    assert!(problem["field"].as_str().is_some_and(|field| field.contains("quantity")));
    assert!(problem["bound"].is_string());

    send(json().raw(vec![b' '; 65_537])).refused(413, "too_large", "no");
    send(base().header("content-type", "text/plain").raw("{}")).refused(
        415,
        "unsupported_media_type",
        "no",
    );
    send(base().raw("{}")).refused(415, "unsupported_media_type", "no");
    let with_charset = base().header("content-type", "application/JSON; charset=utf-8");
    send(with_charset.raw(floor("ada", 1).to_string())).done(201);
}

#[test]
fn what_is_out_of_its_bounds_is_named() {
    let world = World::with_floor(10);
    let field = |change: &dyn Fn(&mut Value)| {
        let mut body = floor("ada", 1);
        change(&mut body);
        let seen = world.send(Who::Seller, &post("/v1/holds", &body).key("k"));
        let problem = seen.refused(400, "invalid_field", "no");
        problem["field"].as_str().expect("it names the field").to_owned()
    };
    assert_eq!(field(&|body| body["sale"] = json!("no spaces")), "sale");
    assert_eq!(field(&|body| body["buyer"] = json!("")), "buyer");
    assert_eq!(field(&|body| body["reference"] = json!("x".repeat(65))), "reference");
    assert_eq!(field(&|body| body["lines"][0]["item"] = json!("?")), "lines[0].item");
    assert_eq!(field(&|body| body["metadata"] = json!({"a": "x".repeat(2_048)})), "metadata");
    assert_eq!(field(&|body| body["ttl_seconds"] = json!(400 * 86_400 + 1)), "ttl_seconds");
    assert_eq!(field(&|body| body["retake"] = json!("hold_?")), "retake");
    assert_eq!(field(&|body| body["lines"] = json!([])), "lines");
    let origin = post("/v1/holds", &floor("ada", 1)).key("k");
    let origin = origin.header("noondrop-origin", "x".repeat(257));
    let problem = world.send(Who::Seller, &origin).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "Noondrop-Origin");
}

#[test]
fn a_query_that_is_not_known_is_a_problem_like_any_other() {
    let world = World::with_floor(10);
    let send = |path: &str| world.send(Who::Admin, &get(path));
    send("/v1/sales/noon?colour=red").refused(400, "unknown_field", "no");
    send("/v1/holds?sale=noon&limit=many").refused(400, "invalid_field", "no");
    send("/v1/holds?sale=noon&limit=201").refused(400, "invalid_field", "no");
    send("/v1/holds").refused(400, "invalid_field", "no");
    send("/v1/holds?sale=noon&state=asleep").refused(400, "invalid_field", "no");
    send("/v1/sales/noon?at_least=yesterday").refused(400, "invalid_field", "no");
}

#[test]
fn routes_and_methods_that_do_not_exist() {
    let world = World::with_floor(1);
    world.send(Who::Admin, &get("/v2/holds")).refused(404, "not_found", "no");
    let step = Ask::new("POST", "/v1/sales/noon/burn");
    world.send(Who::Admin, &step).refused(404, "not_found", "no");
    let delete = Ask::new("DELETE", "/v1/holds");
    world.send(Who::Admin, &delete).refused(405, "method_not_allowed", "no");
}

// ——— who may what

#[test]
fn a_stranger_learns_only_that_he_is_one() {
    let world = World::with_floor(1);
    let seen = world.send(Who::Nobody, &get("/v1/sales"));
    seen.refused(401, "unauthenticated", "no");
    assert_eq!(seen.header("www-authenticate"), Some("Bearer"));
    let guess = get("/v1/sales").header("authorization", "Bearer nd_admin_guess");
    world.send(Who::Nobody, &guess).refused(401, "unauthenticated", "no");
}

#[test]
fn each_route_takes_its_roles_and_names_them() {
    use Who::{Admin, Auditor, Buyer, Operator, OtherAdmin, Seller, Worker};
    let world = World::with_floor(5);
    let hold = world.hold("k", "ada", 1);
    let confirm = post(path_of(&hold, "confirm"), &json!({"fence": 1, "payment_ref": "p"}));
    let cancel = post(path_of(&hold, "cancel"), &json!({"fence": 1, "to": "stock", "reason": "r"}));
    let create = post("/v1/holds", &floor("ada", 1)).key("k2");
    let adjust = json!({"by": 1, "reason": "r"});
    let adjust = post("/v1/sales/noon/items/floor/adjust", &adjust).key("a");
    let aside = json!({"quantity": 1, "label": "x", "reason": "r"});
    let aside = |verb: &str| post(format!("/v1/sales/noon/items/floor/{verb}"), &aside).key(verb);
    let not_for: [(Ask, &[Who]); 14] = [
        (put("/v1/shops/other", &json!({"live": false})), &[Admin, Seller, Buyer("ada"), Auditor]),
        (put("/v1/sales/dusk", &json!({})), &[Seller, Buyer("ada"), Auditor, Worker]),
        (Ask::new("POST", "/v1/sales/noon/pause"), &[Seller, Buyer("ada"), Auditor, Worker]),
        (put("/v1/sales/noon/items/x", &json!({"total": 1})), &[Seller, Buyer("ada"), Auditor]),
        (adjust, &[Seller, Buyer("ada"), Auditor, Worker]),
        (aside("block"), &[Seller, Buyer("ada"), Auditor, Worker]),
        (aside("unblock"), &[Seller, Buyer("ada"), Auditor, Worker]),
        (create, &[Auditor, Worker]),
        (confirm, &[Buyer("ada"), Auditor, Worker]),
        (cancel, &[Buyer("ada"), Auditor, Worker]),
        (get(path_of(&hold, "history")), &[Buyer("ada"), Worker]),
        (get("/v1/ledger"), &[Seller, Buyer("ada"), Worker]),
        (get("/v1/attempts?buyer=ada"), &[Buyer("ada"), Worker]),
        (get("/metrics"), &[Seller, Buyer("ada"), Worker]),
    ];
    for (ask, callers) in not_for {
        for who in callers {
            let problem = world.send(*who, &ask).refused(403, "forbidden", "no");
            let needs = problem["needs"].as_array().expect("it names the roles");
            assert!(!needs.is_empty() && !needs.contains(&json!("buyer")) || *who != Buyer("ada"));
        }
    }
    world.send(Operator, &put("/v1/shops/other", &json!({"live": false}))).done(201);
    world.send(Operator, &put("/v1/sales/dusk", &json!({}))).done(201);
    world.send(OtherAdmin, &get("/v1/sales/dusk")).refused(404, "sale_not_found", "no");
}

#[test]
fn no_buyer_confirms_not_even_his_own_hold() {
    let world = World::with_floor(5);
    let ada = Who::Buyer("ada");
    let hold = world.send(ada, &post("/v1/holds", &floor("ada", 1)).key("k")).done(201).json();
    let paid = json!({"fence": hold["fence"], "payment_ref": "pay_1"});
    let confirm = post(path_of(&hold, "confirm"), &paid).key("c");
    world.send(ada, &confirm).refused(403, "forbidden", "no");
    let mut at_once = floor("ada", 1);
    at_once["confirm"] = json!({"payment_ref": "pay_1"});
    let seen = world.send(ada, &post("/v1/holds", &at_once).key("k2"));
    seen.refused(400, "invalid_field", "no");
    let now = world.send(ada, &get(path_of(&hold, "").trim_end_matches('/'))).done(200).json();
    assert_eq!(now["state"], "active");
    world.send(Who::Seller, &confirm).done(200);
}

#[test]
fn a_buyer_sees_and_touches_his_own_holds_only() {
    let world = World::with_floor(10);
    let (ada, bob) = (Who::Buyer("ada"), Who::Buyer("bob"));
    let hold = world.send(ada, &post("/v1/holds", &floor("ada", 1)).key("k")).done(201).json();
    let path = path_of(&hold, "").trim_end_matches('/').to_owned();
    world.send(ada, &get(&path)).done(200);
    world.send(bob, &get(&path)).refused(404, "hold_not_found", "no");
    for (act, body) in [
        ("release", json!({"fence": hold["fence"]})),
        ("extend", json!({"fence": hold["fence"], "seconds": 60})),
    ] {
        let ask = post(path_of(&hold, act), &body).key("k");
        world.send(bob, &ask).refused(404, "hold_not_found", "no");
    }
    let for_another = post("/v1/holds", &floor("ada", 1)).key("k2");
    let problem = world.send(bob, &for_another).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "buyer");
    let listed = |who, query: &str| {
        let page = world.send(who, &get(format!("/v1/holds?{query}"))).done(200).json();
        page["holds"].as_array().expect("a page of holds").len()
    };
    assert_eq!((listed(ada, "sale=noon"), listed(bob, "sale=noon")), (1, 0));
    assert_eq!(listed(bob, "buyer=ada"), 0, "a buyer's list is his own, whomever he names");
    assert_eq!(listed(Who::Seller, "buyer=ada"), 1);
    // The same key of another caller is another key.
    world.send(bob, &post("/v1/holds", &floor("bob", 1)).key("k")).done(201);
}

#[test]
fn a_reference_of_another_buyer_is_not_found_through_it() {
    let world = World::with_floor(10);
    let mut body = floor("ada", 1);
    body["reference"] = json!("cart-1");
    world.send(Who::Seller, &post("/v1/holds", &body).key("k")).done(201);
    let list = get("/v1/holds?reference=cart-1");
    let page = world.send(Who::Buyer("bob"), &list).done(200).json();
    assert_eq!(page["holds"], json!([]));
    let page = world.send(Who::Seller, &list).done(200).json();
    assert_eq!(page["holds"][0]["reference"], "cart-1");
}

#[test]
fn things_of_another_shop_do_not_exist() {
    let world = World::with_floor(10);
    let hold = world.hold("k", "ada", 1);
    world.send(Who::Operator, &put("/v1/shops/other", &json!({"live": true}))).done(201);
    let other = |ask: &Ask| world.send(Who::OtherAdmin, ask);
    other(&get("/v1/shops/main")).refused(404, "shop_not_found", "no");
    other(&get("/v1/sales/noon")).refused(404, "sale_not_found", "no");
    other(&get("/v1/sales/noon/items")).refused(404, "sale_not_found", "no");
    other(&get("/v1/sales/noon/items/floor")).refused(404, "item_not_found", "no");
    other(&Ask::new("POST", "/v1/sales/noon/pause")).refused(404, "sale_not_found", "no");
    other(&post("/v1/holds", &floor("ada", 1)).key("k")).refused(404, "sale_not_found", "no");
    other(&get(path_of(&hold, "history"))).refused(404, "hold_not_found", "no");
    let path = path_of(&hold, "").trim_end_matches('/').to_owned();
    other(&get(path)).refused(404, "hold_not_found", "no");
    for (act, body) in [
        ("release", json!({"fence": hold["fence"]})),
        ("extend", json!({"fence": hold["fence"], "seconds": 1})),
        ("confirm", json!({"fence": hold["fence"], "payment_ref": "p"})),
        ("cancel", json!({"fence": hold["fence"], "to": "stock", "reason": "r"})),
    ] {
        other(&post(path_of(&hold, act), &body).key("k")).refused(404, "hold_not_found", "no");
    }
    let elsewhere = get("/v1/sales").header("noondrop-shop", "other");
    world.send(Who::Admin, &elsewhere).refused(404, "shop_not_found", "no");
    let sales = world.send(Who::Operator, &elsewhere).done(200).json();
    assert_eq!(sales["sales"], json!([]));
    let page = other(&get("/v1/ledger")).done(200).json();
    assert!(!page.to_string().contains("noon"), "another shop's facts: {page}");
}

// ——— refusals of the rules

#[test]
fn a_sale_that_is_not_open_says_when_to_come_back() {
    let world = World::empty();
    world.send(Who::Admin, &put("/v1/sales/noon", &json!({}))).done(201);
    world.item("noon", "floor", 5);
    let attempt = || world.try_hold("k", "ada", 1);
    let step = |step: &str| {
        let path = format!("/v1/sales/noon/{step}");
        world.send(Who::Admin, &Ask::new("POST", path)).done(200);
    };
    attempt().refused(409, "sale_not_open", "same_key");
    step("publish");
    step("pause");
    let seen = attempt();
    seen.refused(409, "sale_paused", "same_key");
    assert!(seen.header("retry-after").is_some());
    step("resume");
    attempt().done(201);
    step("close");
    world.try_hold("k2", "ada", 1).refused(409, "sale_closed", "no");
    let later = json!({"opens_at": "2026-06-15T13:00:00Z"});
    world.open_sale("dusk", &later);
    let mut body = floor("ada", 1);
    body["sale"] = json!("dusk");
    let seen = world.send(Who::Seller, &post("/v1/holds", &body).key("k3"));
    let problem = seen.refused(409, "sale_not_open", "same_key");
    assert_eq!(problem["opens_at"], "2026-06-15T13:00:00.000Z");
    assert_eq!(seen.header("retry-after"), Some("3600"));
}

#[test]
fn an_archived_sale_stays_as_it_is() {
    let world = World::with_floor(5);
    for step in ["close", "archive"] {
        let path = format!("/v1/sales/noon/{step}");
        world.send(Who::Admin, &Ask::new("POST", path)).done(200);
    }
    world.try_hold("k", "ada", 1).refused(409, "sale_archived", "no");
}

#[test]
fn what_is_not_there_is_named() {
    let world = World::with_floor(5);
    let mut body = floor("ada", 1);
    body["lines"][0]["item"] = json!("roof");
    let seen = world.send(Who::Seller, &post("/v1/holds", &body).key("k"));
    let problem = seen.refused(404, "item_not_found", "no");
    assert_eq!((&problem["errors"][0]["line"], &problem["item"]), (&json!(1), &json!("roof")));
    world.send(Who::Seller, &get("/v1/holds/hold_x")).refused(404, "hold_not_found", "no");
    world.send(Who::Seller, &get("/v1/sales/dusk")).refused(404, "sale_not_found", "no");
    world.send(Who::Operator, &get("/v1/shops/x")).refused(404, "shop_not_found", "no");
}

#[test]
fn stock_that_is_short_says_how_short_and_whether_waiting_helps() {
    let world = World::with_floor(3);
    let hold = world.hold("k1", "ada", 2);
    let problem = world.try_hold("k2", "bob", 2).refused(409, "not_enough_free", "new_key");
    let error = &problem["errors"][0];
    assert_eq!(
        (&error["requested"], &error["available"], &error["held"]),
        (&json!(2), &json!(1), &json!(2))
    );
    world.hold("k3", "bob", 1);
    let seen = world.try_hold("k4", "cat", 1);
    let problem = seen.refused(409, "all_held", "new_key");
    assert!(problem["errors"][0]["may_free_at"].is_string());
    assert_eq!(seen.header("retry-after"), Some("300"));
    world.act(&hold, "confirm", json!({"payment_ref": "p1"})).done(200);
    let other = world.send(Who::Seller, &get("/v1/holds?buyer=bob")).done(200).json();
    world.act(&other["holds"][0], "confirm", json!({"payment_ref": "p2"})).done(200);
    world.try_hold("k5", "cat", 1).refused(409, "sold_out", "no");
}

#[test]
fn a_buyer_has_bounds_of_his_own() {
    let world = World::empty();
    world.open_sale(
        "noon",
        &json!({"live_holds_per_buyer": 2, "limits": [{"name": "four", "per_buyer": 4}]}),
    );
    world.item("noon", "floor", 50);
    world.hold("k1", "ada", 2);
    let problem = world.try_hold("k2", "ada", 3).refused(409, "limit_per_buyer", "no");
    assert_eq!(problem["limit"], "four", "it has the limit's name");
    assert_eq!((&problem["per_buyer"], &problem["used"]), (&json!(4), &json!(2)));
    let mut body = floor("ada", 1);
    body["reference"] = json!("cart-9");
    world.send(Who::Seller, &post("/v1/holds", &body).key("k3")).done(201);
    let problem = world.try_hold("k4", "ada", 1).refused(409, "buyer_has_hold", "no");
    assert!(problem.get("hold").is_some());
    body["buyer"] = json!("bob");
    let seen = world.send(Who::Seller, &post("/v1/holds", &body).key("k5"));
    let problem = seen.refused(409, "reference_in_use", "no");
    assert!(problem["hold"].is_string());
}

#[test]
fn a_hold_that_is_over_says_how_it_ended() {
    let world = World::with_floor(10);
    let confirm = |hold: &Value| world.act(hold, "confirm", json!({"payment_ref": "p"}));

    let mut stale = world.hold("k1", "ada", 1);
    let hold = stale.clone();
    stale["fence"] = json!(stale["fence"].as_u64().expect("a fence") + 1);
    confirm(&stale).refused(409, "stale_fence", "no");

    world.act(&hold, "release", json!({})).done(200);
    world.act(&hold, "extend", json!({"seconds": 5})).refused(409, "hold_released", "no");

    let sold = world.hold("k2", "ada", 1);
    confirm(&sold).done(200);
    world.act(&sold, "release", json!({})).refused(409, "hold_confirmed", "no");
    let again = json!({"fence": sold["fence"], "payment_ref": "q"});
    let again = post(path_of(&sold, "confirm"), &again).key("second");
    let problem = world.send(Who::Seller, &again);
    let problem = problem.refused(409, "confirmed_with_other_payment", "no");
    assert_eq!(problem["payment_ref"], "p", "it names the first payment");
    world.act(&sold, "cancel", json!({"to": "stock", "reason": "refunded"})).done(200);
    let gone = json!({"fence": sold["fence"], "payment_ref": "p"});
    let gone = post(path_of(&sold, "confirm"), &gone).key("third");
    world.send(Who::Seller, &gone).refused(409, "hold_cancelled", "no");

    let lapsed = world.hold("k3", "bob", 10);
    world.pass(Duration::from_secs(301));
    confirm(&lapsed).refused(409, "hold_expired", "no");
    world.hold("k4", "cat", 5);
    let mut retake = floor("bob", 10);
    retake["retake"] = lapsed["id"].clone();
    let seen = world.send(Who::Seller, &post("/v1/holds", &retake).key("k5"));
    seen.refused(409, "units_gone", "no");
}

#[test]
fn a_buyer_who_keeps_being_refused_has_to_wait() {
    let world = World::limited("refusals_per_minute_per_buyer = 2");
    world.open_sale("noon", &json!({}));
    world.item("noon", "floor", 1);
    world.hold("k1", "ada", 1);
    for key in ["k2", "k3"] {
        world.try_hold(key, "bob", 1).refused(409, "all_held", "new_key");
    }
    let seen = world.try_hold("k4", "bob", 1);
    seen.refused(429, "rate_limited", "same_key");
    assert!(seen.header("retry-after").is_some());
    let missed = world.try_hold("k3", "bob", 1);
    missed.refused(409, "all_held", "new_key");
    assert_eq!(missed.header("idempotency-replayed"), Some("true"), "an old answer is no attempt");
    world.try_hold("k5", "cat", 1).refused(409, "all_held", "new_key");
}

#[test]
fn a_buyer_has_only_so_many_live_holds() {
    let world = World::with_floor(50);
    let attempt =
        |key: &str| world.send(Who::Buyer("ada"), &post("/v1/holds", &floor("ada", 1)).key(key));
    for key in ["k1", "k2", "k3"] {
        attempt(key).done(201);
    }
    attempt("k4").refused(429, "rate_limited", "same_key");
    assert_eq!(attempt("k3").done(201).header("idempotency-replayed"), Some("true"));
}

#[test]
fn a_definition_says_what_it_is_at_and_takes_no_stale_change() {
    let world = World::empty();
    let sale = |terms: Value| world.send(Who::Admin, &put("/v1/sales/noon", &terms));
    let first = sale(json!({})).done(201);
    let tag = first.header("etag").expect("a sale has a version").to_owned();
    let seen = world.send(Who::Admin, &get("/v1/sales/noon")).done(200);
    assert_eq!(seen.header("etag"), Some(tag.as_str()));
    let change = |tag: &str, title: &str| {
        let ask = put("/v1/sales/noon", &json!({"title": title})).header("if-match", tag);
        world.send(Who::Admin, &ask)
    };
    let second = change(&tag, "Noon").done(200);
    assert_ne!(second.header("etag"), Some(tag.as_str()));
    change(&tag, "Dusk").refused(409, "version_mismatch", "no");
    let problem = change("yesterday", "Dusk").refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "If-Match");
    world.item("noon", "floor", 5);
    let ask = put("/v1/sales/noon/items/floor", &json!({"total": 6}));
    let problem = world.send(Who::Admin, &ask).refused(409, "use_adjust", "no");
    assert_eq!(problem["total"], 5);
    let adjust = json!({"by": 1, "reason": "found one"});
    let adjust = post("/v1/sales/noon/items/floor/adjust", &adjust);
    world.send(Who::Admin, &adjust).refused(400, "key_missing", "no");
    let seen = world.send(Who::Admin, &adjust.key("a1")).done(200);
    assert_eq!(seen.json()["total"], 6);
}

// ——— replays

/// Headers that a replay may have otherwise.
fn lasting(seen: &Seen) -> Vec<(String, String)> {
    let moves = |name: &str| {
        name == "date"
            || name == "retry-after"
            || name.starts_with("idempotency-replayed")
            || name.starts_with("noondrop-")
    };
    let pairs = seen.headers.iter().filter(|(name, _)| !moves(name.as_str()));
    pairs.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect()
}

#[track_caller]
fn assert_replays(first: &Seen, again: &Seen) {
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", again.text());
    assert_eq!(again.status, first.status);
    assert_eq!(again.text(), first.text());
    assert_eq!(lasting(again), lasting(first));
}

#[test]
fn the_same_key_gets_the_same_bytes_also_after_the_hold_moved_on() {
    let world = World::with_floor(5);
    let first = world.try_hold("cart-1", "ada", 2).done(201);
    assert_eq!(first.header("noondrop-hold-state"), Some("active"));
    assert_eq!(first.header("noondrop-expires-in"), Some("300"));
    assert_replays(&first, &world.try_hold("cart-1", "ada", 2));
    let hold = first.json();
    let confirmed = world.act(&hold, "confirm", json!({"payment_ref": "p"})).done(200);
    let again = world.try_hold("cart-1", "ada", 2);
    assert_replays(&first, &again);
    assert_eq!(again.json()["state"], "active", "the body is as recorded");
    assert_eq!(again.header("noondrop-hold-state"), Some("confirmed"), "the header is as of now");
    world.pass(Duration::from_secs(600));
    assert_replays(&confirmed, &world.act(&hold, "confirm", json!({"payment_ref": "p"})));
}

#[test]
fn a_refusal_of_the_rules_is_replayed_and_one_of_the_door_is_not() {
    let world = World::with_floor(1);
    let hold = world.hold("k1", "ada", 1);
    let refused = world.try_hold("k2", "bob", 1);
    refused.refused(409, "all_held", "new_key");
    world.act(&hold, "release", json!({})).done(200);
    assert_replays(&refused, &world.try_hold("k2", "bob", 1));
    world.try_hold("k3", "bob", 1).done(201);

    let pause = |step: &str| {
        let path = format!("/v1/sales/noon/{step}");
        world.send(Who::Admin, &Ask::new("POST", path)).done(200);
    };
    world.item("noon", "parking", 1);
    let mut body = floor("cat", 1);
    body["lines"][0]["item"] = json!("parking");
    let ask = post("/v1/holds", &body).key("k4");
    pause("pause");
    world.send(Who::Seller, &ask).refused(409, "sale_paused", "same_key");
    pause("resume");
    let seen = world.send(Who::Seller, &ask).done(201);
    assert_eq!(seen.header("idempotency-replayed"), None);
}

#[test]
fn a_key_that_comes_with_another_body_is_told_so() {
    let world = World::with_floor(5);
    world.hold("k1", "ada", 1);
    world.try_hold("k1", "ada", 2).refused(422, "key_reused", "no");
    world.try_hold("k1", "bob", 1).refused(422, "key_reused", "no");
    // Members in another order, and white space, are no other body.
    let text = r#" {"lines": [{"quantity": 1, "item": "floor"}], "buyer": "ada", "sale": "noon"} "#;
    let ask = Ask::new("POST", "/v1/holds").key("k1").header("content-type", "application/json");
    let seen = world.send(Who::Seller, &ask.raw(text)).done(201);
    assert_eq!(seen.header("idempotency-replayed"), Some("true"));
}

#[test]
fn fifty_duplicates_at_once_make_one_hold() {
    let served = Served::with_floor(100);
    let ask = post("/v1/holds", &floor("ada", 3)).key("cart-1");
    let answers: Vec<Seen> = std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..50).map(|_| scope.spawn(|| served.send(Who::Seller, &ask))).collect();
        callers.into_iter().map(|caller| caller.join().expect("a caller is answered")).collect()
    });
    let (replays, firsts): (Vec<_>, Vec<_>) =
        answers.iter().partition(|seen| seen.header("idempotency-replayed").is_some());
    assert_eq!((firsts.len(), replays.len()), (1, 49));
    for replay in replays {
        assert_replays(firsts[0], replay);
    }
    assert_eq!(firsts[0].status, 201);
    let item = served.send(Who::Seller, &get("/v1/sales/noon/items/floor")).done(200).json();
    assert_eq!((&item["held"], &item["available"]), (&json!(3), &json!(97)));
}

#[test]
fn a_caller_who_hangs_up_does_not_take_his_command_back() {
    let served = Served::with_floor(10);
    let ask = post("/v1/holds", &floor("ada", 1)).key("cart-1");
    served.send_and_hang_up(Who::Seller, &ask);
    // Whether it was already decided, the key makes it once; in the end it must be there without being asked again.
    let begun = noondrop::time::steady();
    let list = get("/v1/holds?buyer=ada");
    let found = loop {
        let page = served.send(Who::Seller, &list).done(200).json();
        let holds = page["holds"].as_array().expect("a page of holds").clone();
        if let Some(hold) = holds.into_iter().next() {
            break hold;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the command was lost");
        std::thread::yield_now();
    };
    let again = served.send(Who::Seller, &ask).done(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["id"], found["id"]);
}

// ——— reads

#[test]
fn a_read_waits_for_a_position_and_refuses_one_of_another_history() {
    let world = World::with_floor(5);
    let made = world.try_hold("k1", "ada", 1).done(201);
    let position = made.header("noondrop-position").expect("an answer has a position").to_owned();
    let path = |position: &str| format!("/v1/sales/noon/items/floor?at_least={position}");
    let seen = world.send(Who::Seller, &get(path(&position))).done(200);
    assert_eq!(seen.json()["held"], 1);
    let (seq, digest) = position.split_once('.').expect("a number and a digest");
    let other = if digest.starts_with('0') { "1" } else { "0" };
    let branch = format!("{seq}.{other}{}", &digest[1..]);
    world.send(Who::Seller, &get(path(&branch))).refused(412, "history_changed", "no");
}

#[test]
fn metrics_have_the_names_that_dashboards_use() {
    let world = World::with_floor(5);
    world.hold("k1", "ada", 1);
    world.hold("k1", "ada", 1);
    let text = world.send(Who::Auditor, &get("/metrics")).done(200).text();
    for name in [
        "ready",
        "turn_seconds",
        "turn_commands",
        "queue_depth",
        "outcomes_total",
        "paid_without_units",
        "replays_total",
        "storm_size",
        "log_append_failures_total",
        "log_bytes",
        "expiry_lag_seconds",
        "follower_lag_rows",
        "follower_lag_seconds",
        "snapshot_age_seconds",
        "conservation_violations_total",
        "quarantined_items",
        "live_holds",
        "keys",
        "item_units",
    ] {
        assert!(text.contains(&format!("# TYPE noondrop_{name} ")), "{name} is missing");
    }
    for line in [
        "noondrop_ready 1",
        "noondrop_replays_total 1",
        "noondrop_live_holds 1",
        "noondrop_item_units{sale=\"noon\",item=\"floor\",bucket=\"available\"} 4",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing:\n{text}");
    }
    assert!(!text.contains("ada"), "no label may name a buyer");
}

#[test]
fn bounds_of_histograms_are_decimal_fractions() {
    let world = World::with_floor(5);
    let text = world.send(Who::Auditor, &get("/metrics")).done(200).text();
    for bound in ["0.00005", "0.0003", "0.00075", "0.003", "2"] {
        let line = format!("noondrop_turn_seconds_bucket{{le=\"{bound}\"}} ");
        assert!(text.contains(&line), "{bound} is missing:\n{text}");
    }
}

#[test]
fn money_that_bought_nothing_is_counted() {
    let world = World::with_floor(5);
    let paid = |hold: &Value, payment: &str, key: &str| {
        let body = json!({"fence": hold["fence"], "payment_ref": payment});
        world.send(Who::Seller, &post(path_of(hold, "confirm"), &body).key(key))
    };
    let late = world.hold("k1", "ada", 1);
    world.act(&late, "release", json!({})).done(200);
    paid(&late, "p1", "c1").refused(409, "hold_released", "no");
    paid(&late, "p1", "c1").refused(409, "hold_released", "no");
    let twice = world.hold("k2", "bob", 1);
    paid(&twice, "p2", "c2").done(200);
    paid(&twice, "p3", "c3").refused(409, "confirmed_with_other_payment", "no");
    let text = world.send(Who::Auditor, &get("/metrics")).done(200).text();
    let line = text.lines().find(|line| line.starts_with("noondrop_paid_without_units "));
    assert_eq!(line, Some("noondrop_paid_without_units 2"), "a replay is no second payment");
}

#[test]
fn a_follower_that_is_behind_is_behind_by_some_time() {
    let world = World::with_floor(5);
    let _follower = world.handle().follow("mirror", noondrop_log::GENESIS);
    world.pass(Duration::from_secs(7));
    let text = world.send(Who::Auditor, &get("/metrics")).done(200).text();
    let name = "noondrop_follower_lag_seconds{follower=\"mirror\"} ";
    let lag = text.lines().find_map(|line| line.strip_prefix(name)).expect("it has its line");
    assert!((7.0..8.0).contains(&lag.parse::<f64>().expect("a number")), "{lag}");
}

#[test]
fn a_page_of_holds_goes_on_from_a_hold_and_counts_nothing() {
    let world = World::with_floor(50);
    let ids: Vec<Value> =
        (0..5).map(|n| world.hold(&format!("k{n}"), "ada", 1)["id"].clone()).collect();
    for (who, query) in [(Who::Seller, "sale=noon"), (Who::Buyer("ada"), "buyer=ada")] {
        let mut seen = Vec::new();
        let mut from = String::new();
        loop {
            let path = format!("/v1/holds?{query}&limit=2{from}");
            let page = world.send(who, &get(path)).done(200).json();
            let holds = page["holds"].as_array().expect("a page").iter();
            seen.extend(holds.map(|hold| hold["id"].clone()));
            if page["next_before"].is_null() {
                break;
            }
            let next = page["next_before"].as_str().expect("an opaque text");
            assert!(next.starts_with("hold_"), "{next}");
            from = format!("&before={next}");
        }
        assert!(seen.iter().eq(ids.iter().rev()), "{who:?}: {seen:?}");
    }
    for bad in ["3", "hold_x", "hold_00000000000000000000000000000"] {
        let path = format!("/v1/holds?sale=noon&before={bad}");
        let problem = world.send(Who::Seller, &get(path)).refused(400, "invalid_field", "no");
        assert_eq!(problem["field"], "before");
    }
}

#[test]
fn no_answer_may_be_kept_by_a_cache() {
    let world = World::with_floor(5);
    let answers = [
        world.try_hold("k1", "ada", 1),
        world.try_hold("k1", "ada", 1),
        world.send(Who::Seller, &get("/v1/sales")),
        world.send(Who::Nobody, &get("/v1/sales")),
        world.send(Who::Nobody, &get("/nowhere")),
        world.send(Who::Nobody, &Ask::new("DELETE", "/v1/holds")),
        world.send(Who::Nobody, &get("/readyz")),
    ];
    for seen in answers {
        assert_eq!(seen.header("cache-control"), Some("no-store"), "{seen:?}");
    }
}

#[test]
fn an_address_is_cut_before_a_digest_of_it_is_kept() {
    use noondrop_core::{Fact, codec::decode_row};
    let world = World::with_floor(5);
    let origins = ["ip=203.0.113.7", "ip=203.0.113.200", "ip=203.0.114.7"];
    for (n, origin) in origins.iter().enumerate() {
        let ask = post("/v1/holds", &floor("ada", 1)).key(&format!("k{n}"));
        let ask = ask.header("noondrop-origin", format!("device=d9;{origin}"));
        world.send(Who::Seller, &ask).done(201);
    }
    let mut reader = world.handle().opener().reader().expect("the log is there");
    let rows = reader.page(0, 1_000, usize::MAX).expect("the log can be read");
    let entries = rows.iter().flat_map(|row| {
        decode_row(row.level, &row.facts, &row.private).expect("a row is understood")
    });
    let kept: Vec<_> = entries
        .filter_map(|entry| match entry.fact {
            Fact::HoldCreated(hold) => Some(hold.origin.expect("it was given")),
            _ => None,
        })
        .collect();
    assert_eq!(kept[0], kept[1], "neighbours are not told apart");
    assert_ne!(kept[0], kept[2]);
}

#[test]
fn a_hold_has_a_history_and_attempts_can_be_looked_up() {
    let world = World::with_floor(1);
    let hold = world.hold("k1", "ada", 1);
    world.try_hold("k2", "bob", 1).refused(409, "all_held", "new_key");
    world.act(&hold, "confirm", json!({"payment_ref": "p"})).done(200);
    let story = world.send(Who::Auditor, &get(path_of(&hold, "history"))).done(200).json();
    assert_eq!(story["facts"].as_array().map(Vec::len), Some(2), "{story}");
    let found = world.send(Who::Seller, &get("/v1/attempts?buyer=bob")).done(200).json();
    assert_eq!(found["attempts"].as_array().map(Vec::len), Some(1), "{found}");
    let page = world.send(Who::Auditor, &get("/v1/ledger?limit=2")).done(200).json();
    assert_eq!(page["rows"].as_array().map(Vec::len), Some(2));
    let head = world.send(Who::Auditor, &get("/v1/ledger/head")).done(200).json();
    assert!(head["position"].is_string());
}

#[test]
fn every_answer_has_an_id_of_its_own() {
    let world = World::with_floor(1);
    let id = |path: &str| {
        let seen = world.send(Who::Seller, &get(path));
        seen.header("noondrop-request-id").expect("every answer has an id").to_owned()
    };
    let ids: BTreeSet<String> =
        ["/healthz", "/readyz", "/v1/sales", "/nowhere", "/"].map(id).into_iter().collect();
    assert_eq!(ids.len(), 5);
}
