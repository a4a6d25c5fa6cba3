//! What everyone sees of an item, how long a cache may keep it, and what the box office passes over.

use std::time::Duration;

use noondrop::audit::explain::{Bounds, Question, explain};
use serde_json::{Value, json};

use crate::http_world::{Ask, Seen, Who, World, floor, get, path_of, post, put};

const ANN: Who = Who::Buyer("ann");
const FLOOR: &str = "/v1/sales/noon/items/floor";

fn level(world: &World, who: Who) -> Value {
    world.send(who, &get(FLOOR)).done(200).json()["level"].clone()
}

fn confirm(world: &World, hold: &Value) {
    world.act(hold, "confirm", json!({"payment_ref": "p"})).done(200);
}

#[test]
fn counts_are_for_who_sells_and_a_level_is_for_everyone() {
    let world = World::with_floor(30);
    for who in [Who::Seller, Who::Admin, Who::Auditor, Who::Operator] {
        let item = world.send(who, &get(FLOOR)).done(200).json();
        assert_eq!((&item["available"], &item["level"]), (&json!(30), &json!("available")));
        assert_eq!(item["sold_out_at"], Value::Null);
    }
    let shown = json!({
        "item": "floor", "sale": "noon", "version": 1, "seated": false, "level": "available",
        "sold_out_at": null,
    });
    for who in [ANN, Who::Worker] {
        assert_eq!(world.send(who, &get(FLOOR)).done(200).json(), shown);
        let list = world.send(who, &get("/v1/sales/noon/items")).done(200);
        assert_eq!(list.json(), json!({"items": [shown]}));
    }
    world.send(Who::Nobody, &get(FLOOR)).refused(401, "unauthenticated", "no");
}

#[test]
fn a_level_goes_from_available_to_sold_out_and_back() {
    let world = World::with_floor(12);
    assert_eq!(level(&world, ANN), "available");
    let two = world.hold("k1", "bob", 2);
    assert_eq!(level(&world, ANN), "few");
    let rest = world.hold("k2", "cyd", 10);
    assert_eq!(level(&world, ANN), "all_held");
    confirm(&world, &two);
    assert_eq!(level(&world, ANN), "all_held");
    world.pass(Duration::from_secs(60));
    confirm(&world, &rest);
    let seen = world.send(ANN, &get(FLOOR)).done(200).json();
    assert_eq!(seen["level"], "sold_out");
    assert_eq!(seen["sold_out_at"], "2026-06-15T12:01:00.000Z");
    assert_eq!(world.send(Who::Seller, &get(FLOOR)).json()["sold_out_at"], seen["sold_out_at"]);
    let back = json!({"lines": [{"line": 1, "quantity": 1}], "to": "stock", "reason": "ill"});
    world.act(&rest, "cancel", back).done(200);
    let seen = world.send(ANN, &get(FLOOR)).done(200).json();
    assert_eq!((&seen["level"], &seen["sold_out_at"]), (&json!("few"), &Value::Null));
}

#[test]
fn a_hold_that_is_past_its_end_claims_nothing() {
    let world = World::with_floor(1);
    world.hold("k", "bob", 1);
    assert_eq!(level(&world, ANN), "all_held");
    world.pass(Duration::from_secs(300));
    assert_eq!(level(&world, ANN), "few");
}

#[test]
fn the_tag_of_a_buyer_changes_with_the_level_and_not_with_each_unit() {
    let world = World::with_floor(1_000);
    for path in [FLOOR, "/v1/sales/noon/items"] {
        let tag = |seen: &Seen| seen.header("etag").expect("a tag").to_owned();
        let ask = |who| world.send(who, &get(path)).done(200);
        let (public, counts) = (tag(&ask(ANN)), tag(&ask(Who::Seller)));
        world.hold(&format!("k1 {path}"), "bob", 1);
        assert_eq!(tag(&ask(ANN)), public);
        assert_ne!(tag(&ask(Who::Seller)), counts);
        for known in [public.clone(), format!("\"x\", W/{public}")] {
            let seen = world.send(ANN, &get(path).header("if-none-match", known)).done(304);
            assert_eq!((seen.header("etag"), seen.body.len()), (Some(public.as_str()), 0));
            assert_eq!(seen.header("cache-control"), Some("public, max-age=1"));
            assert!(seen.header("noondrop-position").is_some());
        }
        let stale = get(path).header("if-none-match", counts);
        world.send(Who::Seller, &stale).done(200);
        let free = world.send(Who::Seller, &get(FLOOR)).json()["available"].clone();
        let most = u32::try_from(free.as_u64().expect("a number")).expect("a small number");
        let rest = world.hold(&format!("k2 {path}"), "bob", most - 5);
        assert_ne!(tag(&ask(ANN)), public);
        world.act(&rest, "release", json!({})).done(200);
        assert_eq!(tag(&ask(ANN)), public);
    }
}

/// An edge gives one buyer's answer to the next, but never to who has another credential.
#[test]
fn only_what_everyone_sees_is_for_a_cache() {
    let world = World::with_floor(5);
    for path in [FLOOR, "/v1/sales/noon/items"] {
        let seen = world.send(ANN, &get(path)).done(200);
        assert_eq!(seen.header("cache-control"), Some("public, max-age=1"));
        assert_eq!(seen.header("vary"), Some("Authorization, Noondrop-Shop"));
        let seen = world.send(Who::Seller, &get(path)).done(200);
        assert_eq!(seen.header("cache-control"), Some("no-store"));
    }
    let missing = world.send(ANN, &get("/v1/sales/noon/items/roof"));
    missing.refused(404, "item_not_found", "no");
    assert_eq!(missing.header("cache-control"), Some("no-store"));
}

/// The tag of what was read is good for a change, too; what was sold meanwhile does not matter to it.
#[test]
fn a_tag_that_was_read_guards_a_definition() {
    let world = World::with_floor(5);
    let tag = world.send(Who::Admin, &get(FLOOR)).header("etag").expect("a tag").to_owned();
    world.hold("k", "bob", 1);
    let change = put(FLOOR, &json!({"total": 5, "oversell_limit": 1})).header("if-match", &tag);
    world.send(Who::Admin, &change).done(200);
    let change = put(FLOOR, &json!({"total": 5, "oversell_limit": 2})).header("if-match", &tag);
    world.send(Who::Admin, &change).refused(409, "version_mismatch", "no");
}

#[test]
fn a_reader_waits_for_the_position_that_it_wants_to_see() {
    let world = World::with_floor(1);
    let made = world.try_hold("k", "bob", 1).done(201);
    let position = made.header("noondrop-position").expect("a position");
    let seen = world.send(ANN, &get(format!("{FLOOR}?at_least={position}"))).done(200);
    assert_eq!(seen.json()["level"], "all_held");
    let other = get(format!("{FLOOR}?at_least=1.00000000"));
    world.send(ANN, &other).refused(412, "history_changed", "no");
}

#[test]
fn a_view_shows_what_a_line_of_one_would_get() {
    let world = World::with_floor(1);
    let adult = put("/v1/sales/noon/items/adult", &json!({"counts_against": ["floor"]}));
    world.send(Who::Admin, &adult).done(201);
    let adult = || world.send(ANN, &get("/v1/sales/noon/items/adult")).done(200).json();
    assert_eq!(adult()["level"], "few");
    let hold = world.hold("k", "bob", 1);
    assert_eq!(adult()["level"], "all_held");
    confirm(&world, &hold);
    assert_eq!(adult()["level"], "sold_out");
    assert!(adult()["sold_out_at"].is_string());
}

// ——— the box office

fn overriding(buyer: &str, codes: &Value) -> Value {
    let mut body = floor(buyer, 1);
    body["override"] = codes.clone();
    body["reason"] = json!("guest of the band");
    body
}

#[test]
fn an_admin_sells_at_the_counter_while_the_sale_is_paused() {
    let world = World::with_floor(2);
    world.send(Who::Admin, &Ask::new("POST", "/v1/sales/noon/pause")).done(200);
    let body = overriding("ann", &json!(["sale_paused", "limit_per_buyer"]));
    let ask = |key: &str| post("/v1/holds", &body).key(key);
    let problem = world.send(Who::Seller, &ask("k")).refused(403, "forbidden", "no");
    assert_eq!(problem["needs"], json!(["admin"]));
    world.send(ANN, &ask("k")).refused(403, "forbidden", "no");
    world.send(Who::Admin, &post("/v1/holds", &floor("ann", 1)).key("p")).refused(
        409,
        "sale_paused",
        "same_key",
    );
    let made = world.send(Who::Admin, &ask("k")).done(201);
    let again = world.send(Who::Admin, &ask("k")).done(201);
    assert_eq!((again.text(), again.header("idempotency-replayed")), (made.text(), Some("true")));
    let turned = overriding("ann", &json!(["limit_per_buyer", "sale_paused"]));
    let turned = world.send(Who::Admin, &post("/v1/holds", &turned).key("k")).done(201);
    assert_eq!(turned.header("idempotency-replayed"), Some("true"), "a set has no order");

    let history = world.send(Who::Admin, &get(path_of(&made.json(), "history"))).done(200).json();
    let fact = &history["facts"][0];
    assert_eq!(fact["overridden"], json!(["sale_paused"]), "{history}");
    assert!(fact.to_string().contains("guest of the band"), "{history}");
    let question = Question::Buyer { shop: "main".into(), buyer: "ann".into() };
    let mut reader = world.handle().opener().reader().expect("a log that is open");
    let bounds = Bounds { after: 0, limit: 10 };
    let story = explain(&mut *reader, &question, bounds).expect("a whole log");
    let told = &story.facts[0].sentence;
    assert!(told.contains(", although it was sale_paused (guest of the band);"), "{told}");
    world.send(Who::Operator, &ask("o")).done(201);
    world.send(Who::Admin, &ask("m")).refused(409, "all_held", "new_key");
}

#[test]
fn what_may_be_passed_over_is_said() {
    let world = World::with_floor(2);
    let asks = |body: &Value| {
        let seen = world.send(Who::Admin, &post("/v1/holds", body).key("k"));
        let problem = seen.refused(400, "invalid_field", "no");
        (problem["field"].clone(), problem["bound"].clone())
    };
    let (field, bound) = asks(&overriding("ann", &json!(["sale_paused", "sold_out"])));
    assert_eq!(field, "override[1]");
    let allowed = "one of sale_not_open, sale_paused, sale_closed, item_quarantined, buyer_has_hold, limit_per_buyer";
    assert_eq!(bound, allowed);
    assert_eq!(asks(&overriding("ann", &json!([]))).0, "override");
    let mut silent = overriding("ann", &json!(["sale_paused"]));
    silent["reason"] = Value::Null;
    assert_eq!(asks(&silent).0, "reason");
    let mut lone = floor("ann", 1);
    lone["reason"] = json!("because");
    assert_eq!(asks(&lone).0, "reason");
}

#[test]
fn a_seller_holds_for_400_days_and_a_buyer_as_the_sale_says() {
    let world = World::with_floor(2);
    let asks = |who, seconds: u32, key: &str| {
        let mut body = floor("ann", 1);
        body["ttl_seconds"] = json!(seconds);
        world.send(who, &post("/v1/holds", &body).key(key))
    };
    let made = asks(Who::Seller, 34_560_000, "k").done(201).json();
    assert_eq!(made["expires_at"], "2027-07-20T12:00:00.000Z");
    asks(Who::Admin, 34_560_000, "l").done(201);
    for (who, seconds) in [(Who::Seller, 34_560_001), (ANN, 301)] {
        let problem = asks(who, seconds, "m").refused(400, "invalid_field", "no");
        assert_eq!(problem["field"], "ttl_seconds");
    }
}
