//! Stories: `explain` with the real binary and `/v1/attempts` over HTTP, for each kind of question, in the words of support.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use noondrop::audit::glance::Glance;
use noondrop::audit::naming::Sees;
use noondrop::serve::LOG_FILE;
use noondrop_core::Fact;
use noondrop_core::codec::glance_at_row;
use noondrop_log::sqlite::{SqliteLog, SqliteOpener, SqliteOptions};
use noondrop_log::{Log, LogOpener};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_world::{Ask, Who, World, floor, get, path_of, post, put};
use crate::program::noondrop;

/// A world with a log where the program finds it.
struct Told {
    world: World,
    data: TempDir,
}

impl Told {
    fn empty() -> Self {
        let data = tempfile::tempdir().expect("a directory for the test");
        let path = data.path().join(LOG_FILE);
        let open = |_: &Path| {
            Box::new(SqliteLog::open(SqliteOptions::new(path)).expect("a new log")) as Box<dyn Log>
        };
        Self { world: World::on(open, ""), data }
    }

    /// With `floor` of some units in the sale `noon`.
    fn with_floor(total: u32) -> Self {
        let told = Self::empty();
        told.world.open_sale("noon", &json!({}));
        told.world.item("noon", "floor", total);
        told
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let data = self.data.path().to_str().expect("a path of ASCII");
        let ran = noondrop(["explain", "--data", data].iter().chain(arguments));
        assert!(ran.success, "{ran:?}");
        ran.out
    }

    fn value(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        serde_json::from_str(&self.ask(&arguments)).expect("it is JSON")
    }

    fn seconds(&self, seconds: u64) {
        self.world.pass(Duration::from_secs(seconds));
    }

    fn attempts(&self, query: &str) -> Vec<Value> {
        let path = format!("/v1/attempts?{query}");
        let found = self.world.send(Who::Seller, &get(path)).done(200).json();
        found["attempts"].as_array().expect("attempts").clone()
    }
}

/// Fails unless the text has each of these, in this order.
#[track_caller]
fn tells(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let found = rest.find(part);
        let from = found.unwrap_or_else(|| panic!("{part:?} is not in its place in:\n{text}"));
        rest = &rest[from + part.len()..];
    }
}

#[test]
fn who_got_nothing_is_told_how_far_behind_the_last_unit_each_attempt_came() {
    let told = Told::with_floor(500);
    told.world.send(Who::Admin, &put("/v1/sales/noon", &json!({"hold_seconds": 3_600})));
    for number in 0..5 {
        let hold = told.world.hold(&format!("s{number}"), &format!("shop{number}"), 99);
        if number < 3 {
            told.world
                .act(&hold, "confirm", json!({"payment_ref": format!("p{number}")}))
                .done(200);
        }
    }
    told.world.hold("last", "cat", 5);
    told.seconds(12);
    told.world.try_hold("k1", "bob", 1).refused(409, "all_held", "new_key");
    told.seconds(60);
    told.world.try_hold("k2", "bob", 2).refused(409, "all_held", "new_key");
    for _ in 0..3 {
        told.world.try_hold("k2", "bob", 2).refused(409, "all_held", "new_key");
    }
    // A repeat is noted with a later row.
    told.world.try_hold("k9", "eve", 1).refused(409, "all_held", "new_key");
    told.seconds(4_000);
    told.world.hold("k10", "eve", 1);
    let text = told.ask(&["--buyer", "bob"]);
    tells(
        &text,
        &[
            "app (seller) asked for 1 of floor of sale noon for buyer bob, with key ",
            ": refused, all_held: no floor was free, 203 were in other baskets.\n",
            "came again, 2 times by now; each was given the first answer.\n",
            "Buyer bob asked 2 times, first at 2026-06-15T12:00:12.000Z and last at 2026-06-15T12:01:12.000Z, \
             and got nothing.\n",
            "2 or 3 repeats of requests were given the first answer again (last noted at ",
            "All 500 of floor were sold or in other baskets; your first attempt came 12 s after the last was taken \
             and your second attempt came 72 s after the last was taken.\n",
            "Some of floor came back 66 min after your last attempt at it.\n",
        ],
    );
    let summary = &told.value(&["--buyer", "bob"])["summary"];
    for (member, value) in [
        ("attempts", json!(2)),
        ("granted", json!(0)),
        ("repeats_min", json!(2)),
        ("repeats_max", json!(3)),
        ("first_at", json!("2026-06-15T12:00:12.000Z")),
    ] {
        assert_eq!(summary[member], value, "{member}: {summary}");
    }
    let lack = &summary["lacks"][1];
    for (member, value) in [
        ("item", json!("floor")),
        ("code", json!("all_held")),
        ("total", json!(500)),
        ("held", json!(203)),
        ("sold", json!(297)),
        ("last_unit", json!("taken")),
        ("last_unit_at", json!("2026-06-15T12:00:00.000Z")),
        ("seconds_after", json!(72)),
    ] {
        assert_eq!(lack[member], value, "{member}: {lack}");
    }
    let found = told.attempts("buyer=bob&sale=noon");
    let kinds: Vec<&Value> = found.iter().map(|fact| &fact["kind"]).collect();
    assert_eq!(kinds[..3], ["hold.refused", "hold.refused", "key.repeated"], "{found:?}");
    assert_eq!(told.attempts("buyer=bob&sale=other"), [Value::Null; 0]);
    let sentence = found[0]["sentence"].as_str().expect("a sentence");
    assert!(text.contains(sentence), "{sentence} is in the same words in:\n{text}");
}

#[test]
fn after_the_last_was_sold_it_says_sold() {
    let told = Told::with_floor(2);
    let hold = told.world.hold("k1", "ada", 2);
    told.world.act(&hold, "confirm", json!({"payment_ref": "p"})).done(200);
    told.seconds(72);
    told.world.try_hold("k2", "bob", 1).refused(409, "sold_out", "no");
    tells(
        &told.ask(&["--buyer", "bob"]),
        &[
            "refused, sold_out: all of floor were sold.\n",
            "Buyer bob asked once, at 2026-06-15T12:01:12.000Z, and got nothing.\n\
             All 2 of floor were sold; your first attempt came 72 s after the last was sold.\n",
        ],
    );
    // Granted: the counts of that moment, what followed, and how it stands.
    let id = hold["id"].as_str().expect("an id");
    for question in [["--buyer", "ada"], ["--hold", id]] {
        tells(
            &told.ask(&question),
            &[
                "for buyer ada, with key ",
                &format!(
                    ": granted as {id} until 2026-06-15T12:05:00.000Z; 2 of 2 floor were free then.\n"
                ),
                &format!("app (seller) confirmed {id} with payment p: sold.\n"),
                &format!("{id} is confirmed: 2 of floor of sale noon, buyer ada, fence "),
            ],
        );
    }
}

#[test]
fn a_reference_a_key_and_its_hash_tell_the_same() {
    let told = Told::with_floor(5);
    let mut body = floor("ada", 2);
    body["reference"] = json!("order-7");
    let ask = post("/v1/holds", &body).key("cart-7");
    let hold = told.world.send(Who::Seller, &ask).done(201).json();
    told.world.send(Who::Seller, &ask).done(201);
    told.world.act(&hold, "release", json!({})).done(200);
    let id = hold["id"].as_str().expect("an id");
    let by_reference = told.ask(&["--reference", "order-7"]);
    tells(
        &by_reference,
        &[
            "app (seller) asked for 2 of floor of sale noon for buyer ada (reference order-7), with key ",
            &format!("gave back 2 of line 1 of {id}: released.\n"),
            "came again, once by now; each was given the first answer.\n",
            "The buyer of reference order-7 asked once, at 2026-06-15T12:00:00.000Z, and was given it.\n\
             1 repeat of a request was given the first answer again (last noted at ",
            &format!(
                "{id} is released: 2 of floor of sale noon, buyer ada, reference order-7, fence "
            ),
        ],
    );
    let hash = told.value(&["--reference", "order-7"])["facts"][0]["key"].clone();
    let hash = hash.as_str().expect("a key").to_owned();
    let facts = |question: &[&str]| told.value(question)["facts"].clone();
    let wanted = facts(&["--reference", "order-7"]);
    for question in
        [&["--key", "cart-7"][..], &["--key", &hash], &["--key", "cart-7", "--principal", "app"]]
    {
        assert_eq!(facts(question), wanted, "{question:?}");
    }
    tells(&told.ask(&["--key", "cart-8"]), &["The log says nothing about this."]);
    for query in ["reference=order-7".to_owned(), format!("key={hash}")] {
        let kinds: Vec<Value> = told.attempts(&query).iter().map(|it| it["kind"].clone()).collect();
        assert_eq!(kinds, ["hold.created", "key.repeated"], "{query}");
    }
    let path = path_of(&hold, "history");
    let history = told.world.send(Who::Auditor, &get(path)).done(200).json();
    assert_eq!(
        history["facts"][1]["sentence"],
        format!("app (seller) gave back 2 of line 1 of {id}: released")
    );
}

#[test]
fn each_reason_for_a_no_has_its_sentence_to_the_buyer() {
    let told = hall();
    let mut taken = floor("ada", 1);
    taken["reference"] = json!("order-7");
    told.world.send(Who::Seller, &post("/v1/holds", &taken).key("ada")).done(201);
    told.world
        .send(Who::Seller, &post("/v1/holds", &seats("ada", &["A-1-3"])).key("ada-2"))
        .done(201);
    let mut again = floor("bob", 1);
    again["reference"] = json!("order-7");
    let line = |line: Value| json!({"sale": "noon", "lines": [line]});
    let cases: [(&str, Value, &str); 4] = [
        (
            "bob",
            again,
            "Your first attempt was refused: reference_in_use: the reference belonged to hold_",
        ),
        (
            "cat",
            line(json!({"item": "floor", "quantity": 5})),
            "4 of floor were free; your first attempt asked for 5.\n",
        ),
        (
            "dan",
            line(json!({"item": "hall", "quantity": 4, "together": true})),
            "5 of hall were free; your first attempt asked for 4 next to each other.\n",
        ),
        (
            "eve",
            seats("", &["A-1-3", "A-1-4"]),
            "A-1-3 of hall was already held; your first attempt came less than a second later.\n",
        ),
    ];
    for (buyer, mut body, sentence) in cases {
        body["buyer"] = json!(buyer);
        let refused = told.world.send(Who::Seller, &post("/v1/holds", &body).key(buyer));
        assert_eq!(refused.status, 409, "{refused:?}");
        tells(&told.ask(&["--buyer", buyer]), &["asked once, ", ", and got nothing.\n", sentence]);
    }
    // Who got something in the end is not told of what he missed.
    told.world.try_hold("cat-2", "cat", 1).done(201);
    let text = told.ask(&["--buyer", "cat"]);
    tells(&text, &["Buyer cat asked 2 times, ", ", 1 granted, 1 refused.\n\nNow, at "]);
}

#[test]
fn of_what_never_was_the_log_says_nothing() {
    let told = hall();
    let hold = told.world.hold("k", "ada", 1);
    let id = hold["id"].as_str().expect("an id");
    let (head, last) = id.split_at(id.len() - 9);
    let other = if last.starts_with('0') { "1" } else { "0" };
    let wrong = format!("{head}{other}{}", &last[1..]);
    for question in [
        &["--hold", &wrong][..],
        &["--buyer", "nobody"],
        &["--reference", "none"],
        &["--key", "none"],
        &["--buyer", "ada", "--shop", "other"],
        &["--seat", "hall/Z", "--sale", "noon"],
        &["--seat", "hall/A-1-1", "--sale", "late"],
    ] {
        tells(&told.ask(question), &["The log says nothing about this."]);
        let value = told.value(question);
        assert_eq!(
            (&value["facts"], &value["summary"]),
            (&json!([]), &Value::Null),
            "{question:?}"
        );
    }
}

const SEATS: &str = "/v1/sales/noon/items/hall/seats";

/// `hall` with the seats A-1-1 to A-1-6.
fn hall() -> Told {
    let told = Told::with_floor(5);
    let seats: Vec<Value> = (1..=6)
        .map(|number| json!({"seat": format!("A-1-{number}"), "section": "A", "row": "1", "number": number}))
        .collect();
    let hall = put("/v1/sales/noon/items/hall", &json!({ "seats": seats }));
    told.world.send(Who::Admin, &hall).done(201);
    told
}

fn seats(buyer: &str, seats: &[&str]) -> Value {
    json!({"sale": "noon", "buyer": buyer, "lines": [{"item": "hall", "seats": seats}]})
}

#[test]
fn a_seat_tells_who_wanted_it_who_had_it_and_where_it_went() {
    let told = hall();
    let send = |who, ask: &Ask| told.world.send(who, ask);
    let block = json!({"label": "sponsor", "seats": ["A-1-1", "A-1-2"], "reason": "for the bank"});
    send(Who::Admin, &post("/v1/sales/noon/items/hall/block", &block).key("b")).done(200);
    let wants = |key: &str, buyer: &str, of: &[&str]| post("/v1/holds", &seats(buyer, of)).key(key);
    send(Who::Seller, &wants("k1", "bob", &["A-1-1"])).refused(409, "seat_taken", "new_key");
    let unblock = json!({"label": "sponsor", "seats": ["A-1-1"], "reason": "not needed"});
    send(Who::Admin, &post("/v1/sales/noon/items/hall/unblock", &unblock).key("u")).done(200);
    let lapsing = send(Who::Seller, &wants("k2", "ada", &["A-1-1", "A-1-3"])).done(201).json();
    told.seconds(12);
    send(Who::Seller, &wants("k3", "bob", &["A-1-1", "A-1-4"])).refused(
        409,
        "seat_taken",
        "new_key",
    );
    told.seconds(400);
    let cat = send(Who::Seller, &wants("k4", "cat", &["A-1-1", "A-1-4"])).done(201).json();
    told.world.act(&lapsing, "confirm", json!({"payment_ref": "late"}));
    let part = json!({"lines": [{"line": 1, "seats": ["A-1-4"]}]});
    told.world.act(&cat, "release", part).done(200);
    told.world.act(&cat, "confirm", json!({"payment_ref": "p"})).done(200);
    let change = json!({"remove": ["A-1-1"], "reason": "a pillar"});
    send(Who::Admin, &post(SEATS, &change).key("r")).done(200);
    let id = |hold: &Value| hold["id"].as_str().expect("an id").to_owned();
    let (lapsing, cat) = (id(&lapsing), id(&cat));

    let parts = [
        "office (admin) set aside A-1-1 and A-1-2 of hall under sponsor; 2 are there now (for the bank)".to_owned(),
        "app (seller) asked for A-1-1 of hall of sale noon for buyer bob".to_owned(),
        "refused, seat_taken: A-1-1 of hall was set aside".to_owned(),
        "office (admin) put on sale again A-1-1 of hall from under sponsor; 1 is there now (not needed)".to_owned(),
        "asked for A-1-1 and A-1-3 of hall of sale noon for buyer ada".to_owned(),
        format!("granted as {lapsing} until "),
        "for buyer bob".to_owned(),
        "refused, seat_taken: A-1-1 of hall was already held".to_owned(),
        format!("time ran out for {lapsing}: A-1-1"),
        " of hall came back".to_owned(),
        format!("granted as {cat} until "),
        format!("wanted to confirm {lapsing}: refused, "),
        format!("app (seller) confirmed {cat} with payment p: sold"),
        "office (admin) changed the seats of hall (a pillar): removed A-1-1; it has 5 seats now, and 1 removed seat \
         still has an owner"
            .to_owned(),
    ];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let text = told.ask(&["--seat", "hall/A-1-1", "--sale", "noon"]);
    tells(&text, &parts);
    tells(&text, &[&format!("time ran out for {lapsing}: A-1-1 and A-1-3 of hall came back.\n")]);
    assert!(!text.contains("gave back"), "what became of A-1-4 is another story:\n{text}");
    let now = format!("A-1-1 of hall is sold with {cat}, and is removed as soon as it comes back");
    tells(&text, &[&format!(": {now}.\n")]);
    let value = told.value(&["--seat", "hall/A-1-1", "--sale", "noon"]);
    assert_eq!((&value["seat"]["state"], &value["seat"]["hold"]), (&json!("sold"), &json!(cat)));

    let found = told.attempts("sale=noon&seat=hall/A-1-1");
    let sentences: Vec<&str> =
        found.iter().map(|it| it["sentence"].as_str().expect("text")).collect();
    tells(&sentences.join("\n"), &parts);
    assert_eq!(found.len(), value["facts"].as_array().expect("facts").len());

    // To a buyer who got nothing: when his seat was taken.
    tells(
        &told.ask(&["--buyer", "bob"]),
        &[
            "Buyer bob asked 2 times",
            "A-1-1 of hall was set aside; your first attempt came less than a second later",
            "A-1-1 of hall was already held; your second attempt came 12 s later",
        ],
    );
    for (query, status, code) in [
        ("seat=hall/A-1-1", 400, "invalid_field"),
        ("sale=noon&seat=A-1-1", 400, "invalid_field"),
        ("sale=noon&seat=hall/Z", 404, "seat_not_found"),
        ("sale=noon&seat=hell/A-1-1", 404, "item_not_found"),
        ("sale=noon&seat=hall/A-1-1&buyer=bob", 400, "invalid_field"),
    ] {
        let path = format!("/v1/attempts?{query}");
        told.world.send(Who::Seller, &get(path)).refused(status, code, "no");
    }
    let data = told.data.path().to_str().expect("ASCII");
    for arguments in [&["--seat", "hall/A-1-1"][..], &["--seat", "A-1-1", "--sale", "noon"]] {
        let ran = noondrop(["explain", "--data", data].iter().chain(arguments));
        assert!(!ran.success && ran.err.contains("--"), "{ran:?}");
    }
}

#[test]
fn blocks_and_shared_capacity_are_named() {
    let told = Told::with_floor(5);
    let send = |who, ask: &Ask| told.world.send(who, ask);
    let put_item = |item: &str, body: Value| {
        send(Who::Admin, &put(format!("/v1/sales/noon/items/{item}"), &body)).done(201);
    };
    put_item("venue", json!({"total": 3}));
    put_item("vip", json!({"total": 10, "counts_against": ["venue"]}));
    let block = json!({"label": "sponsor", "quantity": 2, "reason": "bank"});
    send(Who::Admin, &post("/v1/sales/noon/items/floor/block", &block).key("b")).done(200);
    let wants = |buyer: &str, line: Value| json!({"sale": "noon", "buyer": buyer, "lines": [line]});
    let from = |quantity: u32| json!({"item": "floor", "quantity": quantity, "from": "sponsor"});
    let vip = |quantity: u32| json!({"item": "vip", "quantity": quantity});
    let ask = |key: &str, body: &Value| send(Who::Admin, &post("/v1/holds", body).key(key));
    ask("k1", &wants("ada", from(1))).done(201);
    let few = ask("k2", &wants("bob", from(2)));
    assert_eq!(few.status, 409, "{few:?}");
    ask("k3", &wants("cat", vip(3))).done(201);
    told.seconds(5);
    let gone = ask("k4", &wants("dan", vip(1)));
    assert_eq!(gone.status, 409, "{gone:?}");
    let cases: [(&str, &[&str]); 4] = [
        ("ada", &["asked for 1 of floor out of the block sponsor of sale noon"]),
        (
            "bob",
            &[
                "1 of floor out of the block sponsor was left where 2 were asked for.\n",
                "1 of floor out of the block sponsor was left; your first attempt asked for 2.\n",
            ],
        ),
        ("cat", &["3 of 3 venue were free then"]),
        (
            "dan",
            &[
                "refused, all_held: vip was limited by venue: no venue was free, 3 were in other baskets.\n",
                "vip is limited by venue: all 3 of venue were in other baskets; your first attempt came 5 s after \
                 the last was taken.\n",
            ],
        ),
    ];
    for (buyer, parts) in cases {
        tells(&told.ask(&["--buyer", buyer]), parts);
    }
}

/// What a pass over the facts alone knows in the end.
fn glanced(data: &Path) -> Glance {
    let opener = SqliteOpener::at(data.join(LOG_FILE), Arc::default()).expect("there is a log");
    let mut reader = opener.reader().expect("it can be read");
    let mut glance = Glance::default();
    for row in reader.page(0, 10_000, 64 << 20).expect("rows") {
        glance.begin(&row);
        let mut note = |fact: &Fact| {
            if let Fact::HoldCreated(created) = fact {
                let (no, id, _) = glance.next_hold();
                assert_eq!((no, Some(id)), (created.hold, Sees::hold(&glance, no)));
            }
            glance.note(fact);
        };
        glance_at_row(row.level, &row.facts, &mut note).expect("facts");
    }
    glance
}

#[test]
fn names_and_counts_from_facts_alone_are_those_of_the_server() {
    let told = hall();
    let send = |who, ask: &Ask, status| told.world.send(who, ask).done(status).json();
    let put_item = |item: &str, body: Value| {
        send(Who::Admin, &put(format!("/v1/sales/noon/items/{item}"), &body), 201);
    };
    put_item("venue", json!({"total": 9, "oversell_limit": 1}));
    put_item("vip", json!({"total": 10, "counts_against": ["venue"]}));
    let item = |item: &str, act: &str, key: &str, body: Value| {
        let path = format!("/v1/sales/noon/items/{item}/{act}");
        send(Who::Admin, &post(path, &body).key(key), 200)
    };
    let hold = |key: &str, line: Value| {
        let body = json!({"sale": "noon", "buyer": key, "lines": [line]});
        send(Who::Admin, &post("/v1/holds", &body).key(key), 201)
    };
    // Without a key: each of these names what it does.
    let act = |hold: &Value, act: &str, mut body: Value| {
        body["fence"] = hold["fence"].clone();
        send(Who::Admin, &post(path_of(hold, act), &body), 200);
    };
    item("floor", "block", "b1", json!({"label": "bank", "quantity": 3, "reason": "r"}));
    item("floor", "unblock", "u1", json!({"label": "bank", "quantity": 1, "reason": "r"}));
    item(
        "hall",
        "block",
        "b2",
        json!({"label": "bank", "seats": ["A-1-1", "A-1-2"], "reason": "r"}),
    );
    item("floor", "adjust", "a1", json!({"by": 2, "reason": "r"}));
    let vip = hold("vip", json!({"item": "vip", "quantity": 4}));
    act(&vip, "release", json!({"lines": [{"line": 1, "quantity": 1}]}));
    act(&vip, "confirm", json!({"payment_ref": "p1"}));
    let part = json!([{"line": 1, "quantity": 1}]);
    act(&vip, "cancel", json!({"to": "destroyed", "lines": part, "reason": "r"}));
    let from = hold("from", json!({"item": "floor", "quantity": 2, "from": "bank"}));
    act(&from, "confirm", json!({"payment_ref": "p2"}));
    act(&from, "cancel", json!({"to": "press", "lines": part, "reason": "r"}));
    let pair = hold("pair", json!({"item": "hall", "seats": ["A-1-3", "A-1-4"]}));
    act(&pair, "confirm", json!({"payment_ref": "p3"}));
    item("hall", "seats", "s1", json!({"remove": ["A-1-2", "A-1-3"], "reason": "r"}));
    act(
        &pair,
        "cancel",
        json!({"to": "stock", "lines": [{"line": 1, "seats": ["A-1-3"]}], "reason": "r"}),
    );
    act(
        &pair,
        "cancel",
        json!({"to": "destroyed", "lines": [{"line": 1, "seats": ["A-1-4"]}], "reason": "r"}),
    );
    hold("lapsing", json!({"item": "hall", "seats": ["A-1-5"]}));
    hold("lapsing-2", json!({"item": "floor", "quantity": 1, "from": "press"}));
    told.seconds(400);
    let last = hold("last", json!({"item": "vip", "quantity": 2}));

    let glance = glanced(told.data.path());
    for item in ["floor", "hall", "venue", "vip"] {
        let served = told.world.send(Who::Admin, &get(format!("/v1/sales/noon/items/{item}")));
        let served = served.done(200).json();
        let pool = glance.item("main", "noon", item).and_then(|item| glance.pool(item));
        let counts = pool.expect("an item").counts;
        let own =
            json!([counts.total, counts.held, counts.sold, counts.blocked, counts.available()]);
        let members =
            ["total", "held", "sold", "blocked", "available"].map(|name| served[name].clone());
        assert_eq!(own, json!(members), "{item}: {served}");
    }
    let text = told.ask(&["--buyer", "last"]);
    tells(&text, &[last["id"].as_str().expect("an id"), &format!("fence {}.", last["fence"])]);
}

#[test]
fn no_story_tells_of_another_shop() {
    let told = Told::with_floor(5);
    let send = |who, ask: &Ask| told.world.send(who, ask);
    send(Who::Operator, &put("/v1/shops/other", &json!({"live": false}))).done(201);
    send(Who::OtherAdmin, &put("/v1/sales/noon", &json!({}))).done(201);
    send(Who::OtherAdmin, &Ask::new("POST", "/v1/sales/noon/publish")).done(200);
    for who in [Who::Admin, Who::OtherAdmin] {
        let seats = json!([{"seat": "A-1-1", "section": "A", "row": "1", "number": 1}]);
        send(who, &put("/v1/sales/noon/items/hall", &json!({ "seats": seats }))).done(201);
    }
    let mut theirs = seats("ada", &["A-1-1"]);
    theirs["reference"] = json!("secret-order");
    let theirs = send(Who::OtherAdmin, &post("/v1/holds", &theirs).key("k")).done(201).json();
    let ours =
        send(Who::Admin, &post("/v1/holds", &seats("ada", &["A-1-1"])).key("k")).done(201).json();
    told.seconds(400);
    // Both lapse in one fact.
    told.world.hold("later", "eve", 1);
    let id = |hold: &Value| hold["id"].as_str().expect("an id").to_owned();
    let (theirs, ours) = (id(&theirs), id(&ours));
    for question in [
        &["--buyer", "ada"][..],
        &["--seat", "hall/A-1-1", "--sale", "noon"],
        &["--hold", &ours],
        &["--key", "k"],
    ] {
        let text = told.ask(question);
        tells(&text, &[&ours, &format!("time ran out for {ours}: A-1-1 of hall came back.\n")]);
        assert!(!text.contains(&theirs) && !text.contains("secret"), "{question:?}:\n{text}");
        if !question.contains(&"--hold") {
            let other: Vec<&str> = question.iter().copied().chain(["--shop", "other"]).collect();
            let text = told.ask(&other);
            assert!(text.contains(&theirs) && !text.contains(&ours), "{other:?}:\n{text}");
        }
    }
    for (who, own, foreign) in [(Who::Admin, &ours, &theirs), (Who::OtherAdmin, &theirs, &ours)] {
        for query in
            ["buyer=ada".to_owned(), "sale=noon&seat=hall/A-1-1".into(), format!("hold={own}")]
        {
            let text = send(who, &get(format!("/v1/attempts?{query}"))).done(200).text();
            assert!(text.contains(own.as_str()), "{who:?} {query}: {text}");
            assert!(!text.contains(foreign.as_str()), "{who:?} {query}: {text}");
            let secret = text.contains("secret-order");
            assert_eq!(secret, who == Who::OtherAdmin, "{who:?} {query}: {text}");
            // One of the two maps: the other shop's is not shown.
            let maps = text.matches("item.seats_changed").count();
            assert_eq!(maps, usize::from(query.contains("seat=")), "{who:?} {query}: {text}");
        }
    }
}
