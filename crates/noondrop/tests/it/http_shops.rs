//! Two shops on one deployment: same names, same buyers, same references, same keys, and they never meet.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http_world::{Ask, Seen, Who, World, floor, get, path_of, post, put};

/// The sale `noon` with the item `floor` in both shops: 5 units in `main`, 2 in `other`, which is live.
fn shops() -> World {
    shops_limited("")
}

fn shops_limited(limits: &str) -> World {
    let world = World::limited(limits);
    world.open_sale("noon", &json!({}));
    world.item("noon", "floor", 5);
    world.send(Who::Operator, &put("/v1/shops/other", &json!({"live": true}))).done(201);
    world.send(Who::OtherAdmin, &put("/v1/sales/noon", &json!({}))).done(201);
    world.send(Who::OtherAdmin, &Ask::new("POST", "/v1/sales/noon/publish")).done(200);
    let floor = put("/v1/sales/noon/items/floor", &json!({"total": 2}));
    world.send(Who::OtherAdmin, &floor).done(201);
    world
}

fn cart(buyer: &str, reference: &str) -> Value {
    let mut body = floor(buyer, 1);
    body["reference"] = json!(reference);
    body
}

fn elsewhere(ask: Ask) -> Ask {
    ask.header("noondrop-shop", "other")
}

#[test]
fn the_same_names_buyers_references_and_keys_never_meet() {
    let world = shops();
    let ask = post("/v1/holds", &cart("ada", "cart-1")).key("k");
    let holds = [Who::Seller, Who::OtherSeller].map(|who| world.send(who, &ask).done(201));
    assert!(holds.iter().all(|hold| hold.header("idempotency-replayed").is_none()));
    let [main, other] = holds.map(|hold| hold.json());
    assert_ne!(main["id"], other["id"]);
    assert_eq!((&main["shop"], &other["shop"]), (&json!("main"), &json!("other")));
    // Another body under the key of the other shop's seller, who has the same name, is no reuse of it.
    let own = post("/v1/holds", &cart("bob", "cart-2")).key("l");
    world.send(Who::Seller, &own).done(201);
    let same_key = post("/v1/holds", &cart("cyd", "cart-3")).key("l");
    world.send(Who::OtherSeller, &same_key).done(201);

    let free = |who| {
        let item = world.send(who, &get("/v1/sales/noon/items/floor")).done(200).json();
        (item["total"].clone(), item["held"].clone())
    };
    assert_eq!(free(Who::Seller), (json!(5), json!(2)));
    assert_eq!(free(Who::OtherSeller), (json!(2), json!(2)));
    for query in ["sale=noon", "buyer=ada", "reference=cart-1"] {
        let listed = |who| {
            let page = world.send(who, &get(format!("/v1/holds?{query}"))).done(200).json();
            page["holds"].as_array().expect("a page").clone()
        };
        let shop_of = |hold: &Value| hold["shop"].clone();
        assert!(listed(Who::Seller).iter().all(|hold| shop_of(hold) == "main"), "{query}");
        assert!(listed(Who::OtherSeller).iter().all(|hold| shop_of(hold) == "other"), "{query}");
        assert!(!listed(Who::OtherSeller).is_empty(), "{query}");
    }
    // A buyer of the same name, with a token of the other shop.
    let path = |hold: &Value| path_of(hold, "").trim_end_matches('/').to_owned();
    world.send(Who::Buyer("ada"), &get(path(&main))).done(200);
    world.send(Who::OtherBuyer("ada"), &get(path(&other))).done(200);
    world.send(Who::OtherBuyer("ada"), &get(path(&main))).refused(404, "hold_not_found", "no");
    let mine = world.send(Who::OtherBuyer("ada"), &get("/v1/holds")).done(200).json();
    assert_eq!(mine["holds"].as_array().expect("a page").len(), 1);
    // The same payment pays in both.
    for (who, hold) in [(Who::Seller, &main), (Who::OtherSeller, &other)] {
        let body = json!({"fence": hold["fence"], "payment_ref": "pay-1"});
        world.send(who, &post(path_of(hold, "confirm"), &body)).done(200);
    }
}

#[test]
fn limits_per_buyer_are_counted_shop_by_shop() {
    let world = shops();
    let terms = json!({"live_holds_per_buyer": 1});
    for who in [Who::Admin, Who::OtherAdmin] {
        world.send(who, &put("/v1/sales/noon", &terms)).done(200);
    }
    for who in [Who::Seller, Who::OtherSeller] {
        world.send(who, &post("/v1/holds", &floor("ada", 1)).key("k")).done(201);
        let more = post("/v1/holds", &floor("ada", 1)).key("l");
        world.send(who, &more).refused(409, "buyer_has_hold", "no");
    }
}

/// Sellers of two shops with one name shared what they may be refused.
#[test]
fn refusals_are_counted_shop_by_shop() {
    let world = shops_limited("refusals_per_minute_per_principal = 1");
    let too_many = |who, key: &str| world.send(who, &post("/v1/holds", &floor(key, 9)).key(key));
    too_many(Who::Seller, "k").refused(409, "not_enough_free", "new_key");
    too_many(Who::Seller, "l").refused(429, "rate_limited", "same_key");
    too_many(Who::OtherSeller, "k").refused(409, "not_enough_free", "new_key");
}

/// Everything that a path can name, asked by somebody of the other shop, before that shop has the like.
#[test]
fn what_another_shop_has_is_not_found_on_any_route() {
    let world = World::with_floor(5);
    let seats = json!({"seats": [{"seat": "A-1", "section": "A", "row": "1", "number": 1}]});
    world.send(Who::Admin, &put("/v1/sales/noon/items/hall", &seats)).done(201);
    let hold = world.hold("k", "ada", 1);
    world.send(Who::Operator, &put("/v1/shops/other", &json!({"live": false}))).done(201);
    world.send(Who::OtherAdmin, &put("/v1/sales/dusk", &json!({}))).done(201);
    world.send(Who::OtherAdmin, &Ask::new("POST", "/v1/sales/dusk/publish")).done(200);
    world.send(Who::OtherAdmin, &put("/v1/sales/dusk/items/floor", &json!({"total": 9}))).done(201);
    let other = |ask: &Ask| world.send(Who::OtherAdmin, ask);

    let item = "/v1/sales/noon/items/floor";
    let hall = "/v1/sales/noon/items/hall";
    other(&get("/v1/shops/main")).refused(404, "shop_not_found", "no");
    other(&get("/v1/sales/noon")).refused(404, "sale_not_found", "no");
    other(&get("/v1/sales/noon/items")).refused(404, "sale_not_found", "no");
    for path in [item.to_owned(), hall.into(), format!("{hall}/seats"), format!("{hall}/seats/A-1")]
    {
        other(&get(path)).refused(404, "item_not_found", "no");
    }
    for step in ["publish", "pause", "resume", "close", "reopen", "archive"] {
        let ask = Ask::new("POST", format!("/v1/sales/noon/{step}"));
        other(&ask).refused(404, "sale_not_found", "no");
    }
    let why = |mut body: Value| {
        body["reason"] = json!("r");
        body
    };
    for (path, body) in [
        (format!("{item}/adjust"), why(json!({"by": 1}))),
        (format!("{item}/block"), why(json!({"quantity": 1, "label": "x"}))),
        (format!("{item}/unblock"), why(json!({"quantity": 1, "label": "x"}))),
        (format!("{hall}/seats"), why(json!({"remove": ["A-1"]}))),
    ] {
        other(&post(path, &body).key("k")).refused(404, "sale_not_found", "no");
    }
    other(&put(item, &json!({"total": 1}))).refused(404, "sale_not_found", "no");
    other(&post("/v1/holds", &floor("ada", 1)).key("k")).refused(404, "sale_not_found", "no");

    let id = hold["id"].as_str().expect("a hold has an id");
    other(&get(format!("/v1/holds/{id}"))).refused(404, "hold_not_found", "no");
    other(&get(format!("/v1/holds/{id}/history"))).refused(404, "hold_not_found", "no");
    other(&get(format!("/v1/attempts?hold={id}"))).refused(404, "hold_not_found", "no");
    for (act, body) in [
        ("release", json!({"fence": hold["fence"]})),
        ("release", json!({"reason": "r"})),
        ("extend", json!({"fence": hold["fence"], "seconds": 1})),
        ("confirm", json!({"fence": hold["fence"], "payment_ref": "p"})),
        ("cancel", json!({"fence": hold["fence"], "to": "stock", "reason": "r"})),
    ] {
        let key = format!("{act} {body}");
        let ask = post(path_of(&hold, act), &body).key(&key);
        other(&ask).refused(404, "hold_not_found", "no");
    }
    // Nor can a new hold of the other shop stand for it.
    let mut instead = floor("ada", 1);
    instead["sale"] = json!("dusk");
    instead["supersedes"] = json!({"hold": id, "fence": hold["fence"]});
    other(&post("/v1/holds", &instead).key("s")).refused(404, "hold_not_found", "no");
    let mut again = instead.clone();
    again["supersedes"] = Value::Null;
    again["retake"] = json!(id);
    world.pass(Duration::from_secs(301));
    other(&post("/v1/holds", &again).key("r")).refused(404, "hold_not_found", "no");
    let seen = world.send(Who::Seller, &get(format!("/v1/holds/{id}"))).done(200).json();
    assert_eq!(seen["state"], "expired", "nobody touched it: {seen}");
}

/// Blocks and changes of seats were in no shop's ledger as soon as there were two shops.
#[test]
fn each_ledger_tells_all_of_its_own_and_nothing_of_the_other() {
    let world = shops();
    let seats = |seat: &str| json!({"seat": seat, "section": "A", "row": "1", "number": 1});
    let hall = |prefix: &str| json!({"seats": [seats(&format!("{prefix}-1"))]});
    for (who, prefix) in [(Who::Admin, "main"), (Who::OtherAdmin, "other")] {
        let secret = |what: &str| format!("{prefix}-{what}");
        world.send(who, &put("/v1/sales/noon/items/hall", &hall(prefix))).done(201);
        let add = json!({"remove": [format!("{prefix}-1")], "reason": secret("pillar")});
        world.send(who, &post("/v1/sales/noon/items/hall/seats", &add).key("s")).done(200);
        let block = |verb: &str, quantity: u32| {
            let body =
                json!({"quantity": quantity, "label": secret("label"), "reason": secret(verb)});
            world.send(who, &post(format!("/v1/sales/noon/items/floor/{verb}"), &body).key(verb))
        };
        block("block", 1).done(200);
        block("unblock", 1).done(200);
        let more = json!({"by": 1, "reason": secret("more")});
        world.send(who, &post("/v1/sales/noon/items/floor/adjust", &more).key("a")).done(200);
        let body = cart("ada", &secret("cart"));
        world.send(who, &post("/v1/holds", &body).key("h")).done(201);
        world.send(who, &post("/v1/holds", &body).key("h")).done(201);
        world.send(who, &post("/v1/holds", &floor("ada", 99)).key("n")).refused(
            409,
            "not_enough_free",
            "new_key",
        );
    }
    world.pass(Duration::from_secs(301));
    world.hold("late", "bob", 1);
    let ledger = |who, ask: Ask| world.send(who, &ask).done(200).text();
    let all = || get("/v1/ledger?limit=200");
    let told = [
        ("main", "other", ledger(Who::Admin, all())),
        ("other", "main", ledger(Who::OtherAdmin, all())),
        ("other", "main", ledger(Who::Operator, elsewhere(all()))),
    ];
    for (own, foreign, text) in told {
        for kind in [
            "log.started",
            "shop.defined",
            "sale.defined",
            "sale.moved",
            "item.defined",
            "item.seats_changed",
            "item.blocked",
            "item.unblocked",
            "item.adjusted",
            "hold.created",
            "hold.refused",
            "key.repeated",
            "holds.expired",
        ] {
            assert!(text.contains(kind), "{kind} is not in the ledger of {own}: {text}");
        }
        for what in ["pillar", "label", "block", "more", "cart"] {
            assert!(text.contains(&format!("{own}-{what}")), "{own}-{what} is not in {text}");
            assert!(!text.contains(&format!("{foreign}-{what}")), "{foreign}-{what} is in {text}");
        }
    }
    let tried = |who, query: &str| {
        let page = world.send(who, &get(format!("/v1/attempts?{query}"))).done(200).json();
        page["attempts"].as_array().expect("a page").clone()
    };
    for who in [Who::Admin, Who::OtherAdmin] {
        let attempts = tried(who, "buyer=ada");
        assert_eq!(attempts.len(), 3, "a hold, a refusal, a repeat: {attempts:?}");
        let key = attempts[0]["key"].as_str().expect("it had a key");
        assert!(!tried(who, &format!("key={key}")).is_empty());
        let stranger = if who == Who::Admin { Who::OtherAdmin } else { Who::Admin };
        assert_eq!(tried(stranger, &format!("key={key}")), Vec::<Value>::new());
    }
    assert_eq!(tried(Who::Admin, "reference=other-cart"), Vec::<Value>::new());
}

#[test]
fn an_operator_says_which_shop_he_means() {
    let world = shops();
    let sold = |ask: Ask| world.send(Who::Operator, &ask).done(200).json()["total"].clone();
    assert_eq!(sold(get("/v1/sales/noon/items/floor")), 5, "main, where he says nothing");
    assert_eq!(sold(elsewhere(get("/v1/sales/noon/items/floor"))), 2);
    let ask = || post("/v1/holds", &floor("ada", 1)).key("k");
    let seen: [Seen; 2] = [ask(), elsewhere(ask())].map(|ask| world.send(Who::Operator, &ask));
    let shops = seen.map(|seen| seen.done(201).json()["shop"].clone());
    assert_eq!(shops, [json!("main"), json!("other")]);
    let nowhere = |ask: Ask| world.send(Who::Operator, &ask.header("noondrop-shop", "nowhere"));
    nowhere(get("/v1/sales")).refused(404, "shop_not_found", "no");
    nowhere(ask()).refused(404, "shop_not_found", "no");
    nowhere(put("/v1/sales/noon", &json!({}))).refused(404, "shop_not_found", "no");
    for who in [Who::Admin, Who::Seller, Who::Buyer("ada")] {
        world.send(who, &elsewhere(get("/v1/sales"))).refused(404, "shop_not_found", "no");
    }
}

#[test]
fn shops_sales_and_holds_repeat_whether_they_are_live() {
    let world = shops();
    let ask = post("/v1/holds", &floor("ada", 1)).key("k");
    for (shop, live, admin, seller) in [
        ("main", false, Who::Admin, Who::Seller),
        ("other", true, Who::OtherAdmin, Who::OtherSeller),
    ] {
        let of = |who, path: &str| world.send(who, &get(path)).done(200).json();
        let hold = world.send(seller, &ask).done(201).json();
        assert_eq!(hold["live"], live);
        let id = hold["id"].as_str().expect("a hold has an id");
        assert_eq!(of(seller, &format!("/v1/holds/{id}"))["live"], live);
        assert_eq!(of(seller, "/v1/holds?sale=noon")["holds"][0]["live"], live);
        assert_eq!(of(seller, &format!("/v1/shops/{shop}")), json!({"shop": shop, "live": live}));
        assert_eq!(of(admin, "/v1/sales/noon")["live"], live);
        assert_eq!(of(admin, "/v1/sales")["sales"][0]["live"], live);
        let released = json!({"fence": hold["fence"]});
        let released = world.send(seller, &post(path_of(&hold, "release"), &released)).done(200);
        assert_eq!(released.json()["live"], live);
    }
}

/// Two shops may have an item of one name: each sees its own, and who sees both can tell them apart.
#[test]
fn metrics_of_items_are_told_shop_by_shop() {
    let world = shops();
    let totals = |who| {
        let text = world.send(who, &get("/metrics")).done(200).text();
        let of_items = text.lines().filter(|line| line.starts_with("noondrop_item_units{"));
        let totals = of_items.filter(|line| line.contains("bucket=\"total\""));
        totals.map(str::to_owned).collect::<Vec<_>>()
    };
    let main = "noondrop_item_units{sale=\"noon\",item=\"floor\",bucket=\"total\"} 5";
    let other =
        "noondrop_item_units{shop=\"other\",sale=\"noon\",item=\"floor\",bucket=\"total\"} 2";
    assert_eq!(totals(Who::Auditor), [main]);
    assert_eq!(totals(Who::OtherAdmin), [other]);
    assert_eq!(totals(Who::Operator), [main, other]);
}
