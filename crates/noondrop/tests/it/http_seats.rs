//! Seats over HTTP: defined, held, seen, given back, and only by those who may.

use serde_json::{Value, json};

use crate::http_world::{Who, World, get, path_of, post, put};

const SEATS: &str = "/v1/sales/noon/items/hall/seats";

fn seat(section: &str, row: u32, number: u32) -> Value {
    json!({"seat": format!("{section}-{row}-{number}"), "section": section, "row": row.to_string(),
           "number": number, "rank": row * 10})
}

/// Section A with two rows of three; section B with one row of two.
fn hall() -> World {
    let world = World::with_floor(5);
    let mut seats: Vec<Value> = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
        .map(|(row, number)| seat("A", row, number))
        .to_vec();
    seats.extend([seat("B", 1, 1), seat("B", 1, 2)]);
    let defined = put("/v1/sales/noon/items/hall", &json!({ "seats": seats }));
    let item = world.send(Who::Admin, &defined).done(201).json();
    assert_eq!((&item["total"], &item["seated"]), (&json!(8), &json!(true)));
    world
}

fn wants(buyer: &str, line: &Value) -> Value {
    json!({"sale": "noon", "buyer": buyer, "lines": [line]})
}

fn hold(world: &World, key: &str, line: &Value) -> Value {
    world.send(Who::Seller, &post("/v1/holds", &wants("ada", line)).key(key)).done(201).json()
}

fn seats_of(hold: &Value) -> Vec<String> {
    let seats = hold["lines"][0]["seats"].as_array().expect("a line of seats");
    let kept = seats.iter().filter(|seat| seat.get("gone").is_none());
    kept.map(|seat| seat["seat"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_best_and_the_named_seats_are_held_and_replayed() {
    let world = hall();
    let line = json!({"item": "hall", "quantity": 3, "together": true});
    let best = hold(&world, "k1", &line);
    assert_eq!(seats_of(&best), ["A-1-1", "A-1-2", "A-1-3"]);
    let again = world.send(Who::Seller, &post("/v1/holds", &wants("ada", &line)).key("k1"));
    assert_eq!(again.done(201).json(), best);
    let named = hold(&world, "k2", &json!({"item": "hall", "seats": ["B-1-2", "A-2-1"]}));
    assert_eq!(seats_of(&named), ["B-1-2", "A-2-1"]);
    let third = wants("bob", &json!({"item": "hall", "seats": ["B-1-1", "B-1-2"]}));
    let problem = world.send(Who::Seller, &post("/v1/holds", &third).key("k3")).refused(
        409,
        "seat_taken",
        "new_key",
    );
    assert_eq!(problem["errors"][0]["seats"], json!([{"seat": "B-1-2", "state": "held"}]));
    let apart = wants("bob", &json!({"item": "hall", "quantity": 3, "together": true}));
    world.send(Who::Seller, &post("/v1/holds", &apart).key("k4")).refused(
        409,
        "not_together",
        "new_key",
    );
    let section = json!({"item": "hall", "quantity": 1, "sections": ["B"]});
    assert_eq!(seats_of(&hold(&world, "k5", &section)), ["B-1-1"]);
}

#[test]
fn bad_seats_are_named_with_their_bound() {
    let world = hall();
    let cases = [
        (json!({"item": "hall", "seats": ["Z"]}), 404, "seat_not_found", Value::Null),
        (json!({"item": "hall"}), 400, "invalid_field", json!("lines[0].quantity")),
        (json!({"item": "hall", "seats": []}), 400, "invalid_field", json!("lines[0].seats")),
        (
            json!({"item": "hall", "seats": ["a b"]}),
            400,
            "invalid_field",
            json!("lines[0].seats[0]"),
        ),
        (
            json!({"item": "hall", "seats": ["A-1-1"], "together": true}),
            400,
            "invalid_field",
            json!("lines[0].seats"),
        ),
        (
            json!({"item": "hall", "seats": ["A-1-1"], "quantity": 2}),
            400,
            "invalid_field",
            json!("lines[0].quantity"),
        ),
        (
            json!({"item": "hall", "seats": ["A-1-1", "A-1-1"]}),
            400,
            "invalid_field",
            json!("lines"),
        ),
        (
            json!({"item": "floor", "quantity": 1, "zone": "x"}),
            400,
            "invalid_field",
            json!("lines[0]"),
        ),
        (
            json!({"item": "hall", "quantity": 1001}),
            400,
            "invalid_field",
            json!("lines[0].quantity"),
        ),
    ];
    for (place, (line, status, code, field)) in cases.into_iter().enumerate() {
        let ask = post("/v1/holds", &wants("ada", &line)).key(&format!("k{place}"));
        let problem = world.send(Who::Seller, &ask).refused(status, code, "no");
        assert_eq!(problem.get("field").cloned().unwrap_or_default(), field, "{line}");
    }
    let both = put("/v1/sales/noon/items/pit", &json!({"total": 3, "seats": []}));
    world.send(Who::Admin, &both).refused(400, "invalid_field", "no");
    let twice =
        put("/v1/sales/noon/items/pit", &json!({"seats": [seat("A", 1, 1), seat("A", 1, 1)]}));
    world.send(Who::Admin, &twice).refused(400, "invalid_field", "no");
    let long =
        json!({"seats": [{"seat": "x".repeat(33), "section": "A", "row": "1", "number": 1}]});
    let problem = world.send(Who::Admin, &put("/v1/sales/noon/items/pit", &long));
    assert_eq!(problem.refused(400, "invalid_field", "no")["field"], "seats[0].seat");
    let adjust = post("/v1/sales/noon/items/hall/adjust", &json!({"by": 1, "reason": "more"}));
    world.send(Who::Admin, &adjust.key("k")).refused(400, "invalid_field", "no");
}

#[test]
fn seats_go_back_by_name_and_the_map_tells_what_changed() {
    let world = hall();
    let first = world.send(Who::Seller, &get(format!("{SEATS}?limit=5"))).done(200);
    let position = first.header("noondrop-position").expect("a position").to_owned();
    assert_eq!(first.json()["next_after"], 4);
    let rest = world.send(Who::Seller, &get(format!("{SEATS}?after=4"))).done(200).json();
    assert_eq!(
        (rest["seats"].as_array().map(Vec::len), &rest["next_after"]),
        (Some(3), &Value::Null)
    );
    let changed = |since: &str| {
        let page = world.send(Who::Seller, &get(format!("{SEATS}?since={since}"))).done(200);
        let seats = page.json()["seats"].as_array().expect("seats").clone();
        let told =
            seats.iter().map(|seat| format!("{}={}", seat["seat"], seat["state"]).replace('"', ""));
        (told.collect::<Vec<_>>(), page.header("noondrop-position").expect("a position").to_owned())
    };
    assert_eq!(changed(&position).0, Vec::<String>::new());
    let held = hold(&world, "k1", &json!({"item": "hall", "seats": ["A-1-1", "A-1-2"]}));
    let (seats, position) = changed(&position);
    assert_eq!(seats, ["A-1-1=held", "A-1-2=held"]);
    let part = json!({"fence": held["fence"], "lines": [{"line": 1, "seats": ["A-1-1"]}]});
    let left = world.send(Who::Seller, &post(path_of(&held, "release"), &part)).done(200).json();
    assert_eq!(seats_of(&left), ["A-1-2"]);
    assert_eq!(left["lines"][0]["seats"][0], json!({"seat": "A-1-1", "gone": "released"}));
    let (_, released) = changed(&position);
    let paid = json!({"fence": held["fence"], "payment_ref": "pay"});
    world.send(Who::Seller, &post(path_of(&held, "confirm"), &paid)).done(200);
    assert_eq!(changed(&released).0, ["A-1-2=sold"], "a seat that is sold looks different");
    let change =
        json!({"add": [seat("C", 1, 1)], "remove": ["A-1-2", "A-1-3"], "reason": "a pillar"});
    let item = world.send(Who::Admin, &post(SEATS, &change).key("pillar")).done(200).json();
    assert_eq!(
        (&item["total"], &item["oversold"], &item["available"]),
        (&json!(7), &json!(1), &json!(7))
    );
    let (seats, _) = changed(&position);
    assert_eq!(seats, ["A-1-1=free", "A-1-2=sold", "A-1-3=removed", "C-1-1=free"]);
}

#[test]
fn a_map_that_did_not_change_is_not_sent_again() {
    let world = hall();
    let seen = world.send(Who::Seller, &get(SEATS)).done(200);
    let tag = seen.header("etag").expect("a tag").to_owned();
    assert_eq!(seen.header("cache-control"), Some("private, no-cache"));
    let same = world.send(Who::Seller, &get(SEATS).header("if-none-match", &tag));
    assert_eq!((same.status, same.text().as_str()), (304, ""));
    hold(&world, "k", &json!({"item": "hall", "seats": ["A-1-1"]}));
    let other = world.send(Who::Seller, &get(SEATS).header("if-none-match", &tag)).done(200);
    assert_ne!(other.header("etag"), Some(tag.as_str()));
    world.send(Who::Seller, &get(format!("{SEATS}?limit=0"))).refused(400, "invalid_field", "no");
    world.send(Who::Seller, &get("/v1/sales/noon/items/floor/seats")).refused(
        400,
        "invalid_field",
        "no",
    );
}

#[test]
fn a_change_of_nothing_stays_nothing_when_it_comes_again() {
    let world = hall();
    let add = json!({"add": [seat("A", 1, 1)], "reason": "is there"});
    let first = world.send(Who::Admin, &post(SEATS, &add).key("add")).done(200);
    let remove = json!({"remove": ["A-1-1"], "reason": "a pillar"});
    world.send(Who::Admin, &post(SEATS, &remove).key("remove")).done(200);
    let again = world.send(Who::Admin, &post(SEATS, &add).key("add")).done(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    let item = world.send(Who::Admin, &get("/v1/sales/noon/items/hall")).done(200).json();
    assert_eq!(item["total"], 7);
    let tags: Vec<String> = (0..32).map(|tag| format!("t{tag}")).collect();
    let mut many = seat("Z", 1, 1);
    many["tags"] = json!(tags);
    let alone = put("/v1/sales/noon/items/pit", &json!({ "seats": [many] }));
    let problem = world.send(Who::Admin, &alone).refused(400, "invalid_field", "no");
    assert_eq!(problem["field"], "seats[0]");
}

#[test]
fn whose_a_seat_is_see_only_those_who_may_see_the_hold() {
    let world = hall();
    let held = hold(&world, "k", &json!({"item": "hall", "seats": ["A-1-1"]}));
    let path = format!("{SEATS}/A-1-1");
    for who in [Who::Seller, Who::Admin, Who::Auditor] {
        let seat = world.send(who, &get(&path)).done(200).json();
        assert_eq!((&seat["hold"], &seat["buyer"]), (&held["id"], &json!("ada")));
    }
    let own = world.send(Who::Buyer("ada"), &get(&path)).done(200).json();
    assert_eq!(own["hold"], held["id"]);
    let other = world.send(Who::Buyer("bob"), &get(&path)).done(200).json();
    assert_eq!((other.get("hold"), &other["state"]), (None, &json!("held")));
    world.send(Who::Seller, &get(format!("{SEATS}/Z"))).refused(404, "seat_not_found", "no");
    let change = json!({"remove": ["A-1-1"], "reason": "no"});
    world.send(Who::Seller, &post(SEATS, &change).key("r")).refused(403, "forbidden", "no");
    world.send(Who::Admin, &post(SEATS, &change)).refused(400, "key_missing", "no");
}

#[test]
fn the_ledger_names_the_seats() {
    let world = hall();
    let held = hold(&world, "k", &json!({"item": "hall", "seats": ["A-1-1", "A-1-2"]}));
    let part = json!({"fence": held["fence"], "lines": [{"line": 1, "seats": ["A-1-2"]}]});
    world.send(Who::Seller, &post(path_of(&held, "release"), &part)).done(200);
    let history = world.send(Who::Seller, &get(path_of(&held, "history"))).done(200).json();
    let facts = history["facts"].as_array().expect("facts").clone();
    assert_eq!(facts[0]["lines"][0]["seats"], json!(["A-1-1", "A-1-2"]));
    assert_eq!(facts[1]["seats"], json!(["A-1-2"]));
}
