//! Orders against the log: each planted difference is found and explained, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use noondrop::time::steady;
use serde_json::{Value, json};

use crate::backup::text;
use crate::program::{Ran, noondrop};
use crate::shop::{Caller, Shop};

fn compared(data: &Path, orders: &str) -> (Ran, Value) {
    let file = data.join("orders.csv");
    fs::write(&file, orders).unwrap();
    let ran = noondrop(["compare", "--json", "--data", text(data), "--orders", text(&file)]);
    let found = serde_json::from_str(&ran.out).unwrap_or_default();
    (ran, found)
}

fn sold(admin: &mut Caller, buyer: &str) -> Value {
    let hold = admin.hold(buyer).json();
    assert_eq!(admin.confirm(&hold, &format!("pay-{buyer}")).status, 200);
    hold
}

fn wait_until_lapsed(admin: &mut Caller, hold: &Value) {
    let begun = steady();
    while admin.state_of(hold) != "expired" {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not lapse");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn id(hold: &Value) -> &str {
    hold["id"].as_str().unwrap()
}

#[test]
fn what_one_side_has_and_the_other_has_not_is_found_and_explained() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path();
    let mut shop = Shop::start(data);
    let admin = &mut shop.admin;
    admin.open(3_600);
    let mut good = String::from("order,payment_ref,hold,reference\n");
    for buyer in ["ann", "bob"] {
        let hold = sold(admin, buyer);
        writeln!(good, "1,pay-{buyer},{},order-{buyer}", id(&hold)).unwrap();
    }
    let gift = admin.hold("gus").json();
    assert_eq!(admin.confirm(&gift, "none").status, 200);
    good.push_str("7,,,order-unpaid\n");
    // Beside the running server: both sides say the same.
    let (ran, found) = compared(data, &good);
    assert!(ran.success, "{ran:?}");
    assert_eq!(
        [&found["orders"], &found["matched"], &found["unpaid"], &found["gifts"]],
        [&json!(2), &json!(2), &json!(1), &json!(1)]
    );
    assert_eq!(found["position"], admin.head());

    let lapsed = admin.hold_with("cyd", &json!({"ttl_seconds": 1})).json();
    let active = admin.hold("dan").json();
    let twice = sold(admin, "eve");
    let cancelled = sold(admin, "fay");
    let path = format!("/v1/holds/{}/cancel", id(&cancelled));
    admin.well(
        "POST",
        &path,
        None,
        &json!({"fence": cancelled["fence"], "to": "stock", "reason": "ill"}),
    );
    let released = admin.hold("gil").json();
    let path = format!("/v1/holds/{}/release", id(&released));
    admin.well("POST", &path, None, &json!({"fence": released["fence"]}));
    let unpaid = sold(admin, "hal");
    wait_until_lapsed(admin, &lapsed);
    let lost = "hold_Q95JNS8QEXH85SXMN43JZ512R6EV6";

    let rows = [
        ("lapsed", "pay-cyd,,order-cyd".to_owned(), id(&lapsed)),
        ("active", format!("pay-dan,{},", id(&active)), id(&active)),
        ("other_payment", format!("pay-eve-2,{},order-eve", id(&twice)), id(&twice)),
        ("other_hold", format!("pay-ann,{},", id(&active)), id(&active)),
        ("cancelled", "pay-fay,,".to_owned(), id(&cancelled)),
        ("released", "pay-gil,,order-gil".to_owned(), id(&released)),
        ("hold_not_found", format!("pay-lost,{lost},order-lost"), lost),
        ("never_seen", "pay-nobody,,order-nobody".to_owned(), ""),
        ("never_seen", "\"pay, with a comma\",,".to_owned(), ""),
    ];
    // A payment whose units are now in another hold of the order: sold again after a restore, or after the first lapsed.
    let first = admin.hold_with("ida", &json!({"ttl_seconds": 1})).json();
    wait_until_lapsed(admin, &first);
    let body = json!({"sale": "noon", "buyer": "ida", "reference": "order-ida", "lines": [{"item": "floor", "quantity": 1}]});
    let second = admin.well("POST", "/v1/holds", Some("ida-2"), &body).json();
    assert_eq!(admin.confirm(&second, "pay-ida").status, 200);
    let again = format!("8,pay-ida,{},\n8,pay-eve,{lost},\n", id(&first));
    let mut orders = good.clone() + &again;
    for (_, row, _) in &rows {
        writeln!(orders, "9,{row}").unwrap();
    }
    let (ran, found) = compared(data, &orders);
    assert!(!ran.success && ran.err.contains("differ"), "{ran:?}");
    let without_units = found["paid_without_units"].as_array().unwrap();
    assert_eq!(without_units.len(), rows.len(), "{found}");
    for ((code, _, hold), (line, order)) in rows.iter().zip((7_u64..).zip(without_units)) {
        assert_eq!((order["code"].as_str().unwrap(), &order["line"]), (*code, &line.into()));
        assert_eq!(order["hold"].as_str().unwrap_or_default(), *hold, "{order}");
    }
    let other = without_units[2]["why"].as_str().unwrap();
    assert!(other.ends_with("confirmed with another payment, pay-eve"), "{other}");
    let without_payment = found["units_without_payment"].as_array().unwrap();
    assert_eq!(without_payment.len(), 1, "{found}");
    let expected = [id(&unpaid), "pay-hal", "order-hal", "noon"];
    let told = ["hold", "payment_ref", "reference", "sale"]
        .map(|name| without_payment[0][name].as_str().unwrap());
    assert_eq!(told, expected);
    assert_eq!((&found["matched"], &without_payment[0]["units"]), (&4.into(), &1.into()));

    let file = data.join("orders.csv");
    let ran = noondrop(["compare", "--data", text(data), "--orders", text(&file)]);
    assert!(!ran.success, "{ran:?}");
    for words in [
        "✗ paid without units (9)",
        "✗ units without payment (1)",
        "lapsed at",
        "pay-hal, reference order-hal",
        "4 of 13 paid",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    shop.server.stop().unwrap();
}

#[test]
fn an_attempt_that_lost_and_a_hold_that_was_replaced_are_explained() {
    let home = tempfile::tempdir().unwrap();
    let mut shop = Shop::start(home.path());
    let admin = &mut shop.admin;
    admin.open(3_600);
    admin.well("PUT", "/v1/sales/noon/items/one", None, &json!({"total": 0}));
    let body = json!({"sale": "noon", "buyer": "zoe", "reference": "order-zoe", "lines": [{"item": "one", "quantity": 1}]});
    assert_eq!(admin.call("POST", "/v1/holds", Some("zoe"), &body.to_string()).code(), "sold_out");
    let first = admin.hold("yan").json();
    let body = json!({"sale": "noon", "buyer": "yan", "lines": [{"item": "floor", "quantity": 2}],
        "supersedes": {"hold": id(&first), "fence": first["fence"]}});
    let second = admin.well("POST", "/v1/holds", Some("yan-2"), &body).json();
    let orders =
        format!("payment_ref,hold,reference\npay-zoe,,order-zoe\npay-yan,{},\n", id(&first));
    let (ran, found) = compared(home.path(), &orders);
    assert!(!ran.success, "{ran:?}");
    let found = found["paid_without_units"].as_array().unwrap();
    assert_eq!((&found[0]["code"], &found[1]["code"]), (&"refused".into(), &"active".into()));
    assert!(found[0]["why"].as_str().unwrap().ends_with("sold_out"), "{found:?}");
    assert_eq!(found[1]["hold"], second["id"]);
    assert_eq!(admin.confirm(&second, "pay-yan").status, 200);
    let (ran, _) = compared(home.path(), "payment_ref\npay-yan\n");
    assert!(ran.success, "{ran:?}");
    shop.server.stop().unwrap();
}

#[test]
fn a_file_that_is_no_list_of_orders_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut shop = Shop::start(home.path());
    for (orders, words) in
        [("order,amount\n1,2\n", "payment_ref"), ("payment_ref,hold\na,b\n", "line 2")]
    {
        let (ran, _) = compared(home.path(), orders);
        assert!(!ran.success && ran.err.contains(words), "{ran:?}");
    }
    let data = text(home.path());
    let ran = noondrop(["compare", "--data", data, "--orders", "/nowhere/orders.csv"]);
    assert!(!ran.success && ran.err.contains("could not read /nowhere/orders.csv"), "{ran:?}");
    shop.server.stop().unwrap();
}
