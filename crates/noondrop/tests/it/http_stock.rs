//! Items that share units, and units set aside, over HTTP.

use serde_json::{Value, json};

use crate::http_world::{Who, World, get, post, put};

/// A hall of 5, sold as tickets for adults that have no units of their own.
fn hall() -> World {
    let world = World::with_floor(5);
    let adult = put("/v1/sales/noon/items/adult", &json!({"counts_against": ["floor"]}));
    let seen = world.send(Who::Admin, &adult).done(201);
    let item = seen.json();
    assert_eq!((&item["view"], &item["total"]), (&json!(true), &json!(0)));
    assert_eq!(item["counts_against"], json!(["floor"]));
    world
}

fn lines(buyer: &str, lines: &Value) -> Value {
    json!({"sale": "noon", "buyer": buyer, "lines": lines})
}

fn block(quantity: u32, label: &str) -> Value {
    json!({"quantity": quantity, "label": label, "reason": "sponsor"})
}

#[test]
fn a_refusal_names_the_pool_that_lacked() {
    let world = hall();
    let ask = post("/v1/holds", &lines("ada", &json!([{"item": "adult", "quantity": 6}]))).key("k");
    let problem = world.send(Who::Seller, &ask).refused(409, "not_enough_free", "new_key");
    assert_eq!(problem["errors"][0]["limited_by"], "floor");
    assert_eq!(problem["errors"][0]["item"], "adult");
    let ask = post("/v1/holds", &lines("ada", &json!([{"item": "adult", "quantity": 2}]))).key("l");
    world.send(Who::Seller, &ask).done(201);
    let floor = world.send(Who::Admin, &get("/v1/sales/noon/items/floor")).done(200);
    assert_eq!(floor.json()["held"], 2);
    let change = put("/v1/sales/noon/items/adult", &json!({"total": 3}));
    let problem = world.send(Who::Admin, &change).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "total");
    let ring = put("/v1/sales/noon/items/floor", &json!({"total": 5, "counts_against": ["adult"]}));
    let problem = world.send(Who::Admin, &ring).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "counts_against[0]");
}

#[test]
fn units_set_aside_are_sold_by_label_and_come_back_to_it() {
    let world = hall();
    let at = |verb: &str| format!("/v1/sales/noon/items/floor/{verb}");
    let put_aside = post(at("block"), &block(3, "sponsor"));
    world.send(Who::Admin, &put_aside).refused(400, "key_missing", "no");
    world.send(Who::Seller, &put_aside.clone().key("b")).refused(403, "forbidden", "no");
    let seen = world.send(Who::Admin, &put_aside.clone().key("b")).done(200);
    assert_eq!(seen.json()["blocks"], json!([{"label": "sponsor", "quantity": 3}]));
    let again = world.send(Who::Admin, &put_aside.key("b")).done(200);
    assert_eq!((again.text(), again.header("idempotency-replayed")), (seen.text(), Some("true")));
    let seen = world.send(Who::Buyer("ada"), &get(at("").trim_end_matches('/'))).done(200);
    assert_eq!((&seen.json()["blocks"], &seen.json()["blocked"]), (&Value::Null, &Value::Null));

    let from = json!([{"item": "floor", "quantity": 2, "from": "sponsor"}]);
    let ask = post("/v1/holds", &lines("ada", &from)).key("k");
    let problem = world.send(Who::Buyer("ada"), &ask).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "lines[0].from");
    let hold = world.send(Who::Seller, &ask).done(201).json();
    assert_eq!(hold["lines"][0]["from"], "sponsor");
    let problem = world.send(Who::Seller, &post("/v1/holds", &lines("bob", &from)).key("l"));
    let problem = problem.refused(409, "not_enough_free", "new_key");
    assert_eq!(problem["errors"][0]["available"], 1);
    assert_eq!(problem["errors"][0]["from"], "sponsor");
    let back = post(at("unblock"), &block(2, "sponsor")).key("u");
    let problem = world.send(Who::Admin, &back).refused(409, "not_enough_free", "new_key");
    assert_eq!(problem["errors"][0]["line"], 0);

    let path = |verb: &str| format!("/v1/holds/{}/{verb}", hold["id"].as_str().unwrap());
    let confirm = json!({"fence": hold["fence"], "payment_ref": "p"});
    world.send(Who::Seller, &post(path("confirm"), &confirm)).done(200);
    let sale = json!({"returns_to": {"label": "returns"}});
    let seen = world.send(Who::Admin, &put("/v1/sales/noon", &sale)).done(200);
    assert_eq!(seen.json()["returns_to"], json!({"label": "returns", "lapsed": false}));
    let part = |to: Option<&str>| {
        let mut body = json!({"fence": hold["fence"], "lines": [{"line": 1, "quantity": 1}]});
        body["reason"] = json!("rain");
        if let Some(to) = to {
            body["to"] = json!(to);
        }
        post(path("cancel"), &body)
    };
    world.send(Who::Seller, &part(None)).done(200);
    world.send(Who::Seller, &part(Some("sponsor"))).done(200);
    let seen = world.send(Who::Seller, &get(at("").trim_end_matches('/'))).done(200);
    let blocks = json!([{"label": "sponsor", "quantity": 2}, {"label": "returns", "quantity": 1}]);
    assert_eq!(seen.json()["blocks"], blocks);
    let taken = post(at("block"), &block(1, "stock")).key("s");
    let problem = world.send(Who::Admin, &taken).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "label");

    let told = world.send(Who::Auditor, &get("/v1/ledger?limit=200")).done(200).text().clone();
    for kind in ["item.blocked", "block.refused", "hold.refused"] {
        assert!(told.contains(kind), "{kind} is in {told}");
    }
    let history = world.send(Who::Seller, &get(path("history"))).done(200).json();
    let created = &history["facts"][0]["lines"][0]["draws"];
    assert_eq!(created, &json!([{"item": "floor", "quantity": 2, "label": "sponsor"}]));
}
