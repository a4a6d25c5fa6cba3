//! The rehearsal, end to end with the real binary; and the verbs that read what it leaves.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::path::Path;

use noondrop::rehearse::{Plan, run};
use serde_json::Value;

use crate::program::{admin_secret, binary, noondrop, server, slow_tests};

const NAMES: [&str; 17] = [
    "tickets",
    "attempts",
    "holds",
    "confirmed",
    "sold_out",
    "all_held",
    "replays",
    "kills",
    "requests_per_second",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "oversold",
    "lost_acknowledged",
    "lost_units",
    "conserved",
    "audit_ok",
];

const SMALL: [&str; 12] = [
    "rehearse",
    "--tickets=2000",
    "--buyers=2500",
    "--connections=64",
    "--hold-ttl=2",
    "--kill=1",
    "--abandon=0.05",
    "--duplicates=0.25",
    "--seed=7",
    "--json",
    "figures.json",
    "--data",
];

/// Runs a small rehearsal whose store and figures stay.
fn rehearsed(home: &Path) -> (Value, String) {
    let figures = home.join("figures.json");
    let data = home.join("data");
    let arguments = SMALL.map(|argument| match argument {
        "figures.json" => figures.to_str().unwrap().to_owned(),
        other => other.to_owned(),
    });
    let ran = noondrop(arguments.into_iter().chain([data.to_str().unwrap().to_owned()]));
    assert!(ran.success, "{}\n{}", ran.out, ran.err);
    (serde_json::from_slice(&fs::read(figures).unwrap()).unwrap(), ran.out)
}

#[test]
fn a_sale_survives_its_rehearsal_and_its_log_can_be_read() {
    let home = tempfile::tempdir().unwrap();
    let (figures, table) = rehearsed(home.path());
    let names: Vec<&String> = figures.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), NAMES.len(), "{names:?}");
    assert!(NAMES.iter().all(|name| figures.get(name).is_some()), "{names:?}");
    assert_eq!((&figures["tickets"], &figures["confirmed"]), (&2_000.into(), &2_000.into()));
    assert_eq!(figures["kills"], 1);
    for name in ["oversold", "lost_acknowledged", "lost_units"] {
        assert_eq!(figures[name], 0, "{name}");
    }
    assert!(figures["audit_ok"] == true && figures["conserved"] == true, "{figures}");
    assert!(figures["replays"].as_u64().unwrap() > 300, "a quarter double-clicks: {figures}");
    assert!(table.contains('✓') && !table.contains('✗'), "{table}");

    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    it_can_be_audited(data);
    its_facts_can_be_read_and_explained(data);
}

fn it_can_be_audited(data: &str) {
    let ran = noondrop(["audit", "--json", "--data", data]);
    assert!(ran.success, "{ran:?}");
    let verdict: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&verdict["sold"], &verdict["oversold"]), (&2_000.into(), &0.into()));
    let position = verdict["position"].as_str().unwrap();
    let kept = noondrop(["audit", "--data", data, "--expect", position]);
    assert!(kept.success && kept.out.contains(position), "{kept:?}");
    let (row, _) = position.split_once('.').unwrap();
    let other = noondrop(["audit", "--data", data, "--expect", &format!("{row}.00000000")]);
    assert!(!other.success && other.err.contains("another history"), "{other:?}");
}

fn its_facts_can_be_read_and_explained(data: &str) {
    let ran = noondrop(["ledger", "--json", "--limit", "20000", "--data", data]);
    let facts: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let confirmed = facts.iter().find(|fact| fact["kind"] == "hold.confirmed").unwrap();
    let created = facts
        .iter()
        .find(|fact| fact["kind"] == "hold.created" && fact["hold"] == confirmed["hold"]);
    let created = created.unwrap();
    let buyer = created["buyer_text"].as_str().unwrap();

    let by_buyer = noondrop(["explain", "--buyer", buyer, "--data", data]);
    assert!(by_buyer.success, "{by_buyer:?}");
    for words in ["granted as hold_", "confirmed", "sold", "were free then", "is confirmed", buyer]
    {
        assert!(by_buyer.out.contains(words), "{words}: {}", by_buyer.out);
    }
    let id = by_buyer.out.split_whitespace().find(|word| word.starts_with("hold_")).unwrap();
    let id = id.trim_end_matches(|last: char| !last.is_alphanumeric());
    let by_hold = noondrop(["explain", "--hold", id, "--data", data]);
    assert!(by_hold.out.contains("granted as hold_") && by_hold.out.contains(buyer), "{by_hold:?}");

    let hash = created["key"].as_str().unwrap();
    let by_hash = noondrop(["explain", "--key", hash, "--data", data]);
    assert!(by_hash.out.contains("granted as hold_"), "{by_hash:?}");
    let sale = created["sale"].as_str().unwrap();
    let number = buyer.trim_start_matches("buyer-");
    let key = format!("{sale}.cart-{number}.v0");
    let by_key = noondrop(["explain", "--key", &key, "--data", data]);
    assert!(by_key.out.contains(buyer), "{key}: {by_key:?}");
    let nobody = noondrop(["explain", "--buyer", "nobody", "--data", data]);
    assert!(nobody.out.contains("says nothing"), "{nobody:?}");
}

/// `kill -9` again and again under load; the log is audited after each kill, and every answer that was ever given is
/// compared with it at the end.
#[test]
fn nothing_acknowledged_is_lost_in_a_loop_of_kills() {
    let kills = if slow_tests() { 40 } else { 6 };
    let plan = Plan {
        tickets: 300 * kills,
        buyers: 360 * kills,
        connections: 48,
        duplicates: 0.4,
        hold_ttl_seconds: 2,
        abandon: 0.03,
        kills,
        seed: u64::from(kills),
        audit_each_kill: true,
    };
    let home = tempfile::tempdir().unwrap();
    let report = run(&plan, binary(), home.path()).unwrap();
    assert!(report.is_good(), "{:?}", report.failures());
    assert_eq!((report.kills, report.confirmed), (kills, u64::from(plan.tickets)));
}

#[test]
fn fewer_buyers_than_tickets_all_get_one() {
    let plan = Plan {
        tickets: 600,
        buyers: 400,
        connections: 32,
        hold_ttl_seconds: 1,
        kills: 0,
        seed: 3,
        ..Plan::default()
    };
    let home = tempfile::tempdir().unwrap();
    let report = run(&plan, binary(), home.path()).unwrap();
    assert!(report.is_good(), "{:?}", report.failures());
    assert_eq!((report.sold_out, report.lost_units), (0, 0));
}

#[test]
fn a_staging_system_is_rehearsed_on_but_never_killed() {
    let home = tempfile::tempdir().unwrap();
    let mut server = server(home.path());
    let url = format!("http://{}", server.address());
    let secret = admin_secret(home.path());
    let secret = secret.to_str().unwrap();
    let target = ["--target", &url, "--token-file", secret];
    let crowd = ["rehearse", "--tickets=100", "--buyers=120", "--connections=16", "--hold-ttl=1"];
    let ran = noondrop(crowd.iter().chain(&target));
    assert!(ran.success && !ran.out.contains('✗'), "{ran:?}");

    let killed = noondrop(crowd.iter().chain(&target).chain(&["--kill=1"]));
    assert!(!killed.success && killed.err.contains("never for a target"), "{killed:?}");

    let remote = noondrop(["audit", "--url", &url, "--token-file", secret]);
    assert!(remote.success && remote.out.contains("100 sold"), "{remote:?}");
    let gone = noondrop(["audit", "--url", &url, "--token-file", secret, "--expect", "2.00000000"]);
    assert!(!gone.success && gone.out.contains("another history"), "{gone:?}");

    let status = noondrop(["status", "--server", &server.address().to_string()]);
    assert!(status.success && status.out.contains("is ready"), "{status:?}");
    server.stop().unwrap();
    let status = noondrop(["status", "--server", &server.address().to_string()]);
    assert!(!status.success && status.err.contains("no answer"), "{status:?}");
}

/// Two principals, so that an operator can make the shop live.
fn write_configuration(home: &Path) -> (String, String) {
    let secret = |role| noondrop::auth::Secret::generate(role).unwrap();
    let (operator, admin) =
        (secret(noondrop::auth::Role::Operator), secret(noondrop::auth::Role::Admin));
    let text = format!(
        "[[principals]]\nname = \"house\"\nrole = \"operator\"\nsecrets = [{{ hash = \"{}\" }}]\n\
         [[principals]]\nname = \"office\"\nrole = \"admin\"\nsecrets = [{{ hash = \"{}\" }}]\n",
        operator.hash(),
        admin.hash()
    );
    fs::write(home.join("noondrop.toml"), text).unwrap();
    (operator.reveal().to_owned(), admin.reveal().to_owned())
}

#[test]
fn nobody_rehearses_on_a_live_shop() {
    let home = tempfile::tempdir().unwrap();
    let (operator, admin) = write_configuration(home.path());
    // The server looks for its configuration where it is started: in its data directory, here.
    let mut server = server(home.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut desk = noondrop::client::Desk::new(server.address(), &operator);
    runtime.block_on(desk.ask("PUT", "/v1/shops/main", "{\"live\":true}")).unwrap();
    let file = home.path().join("admin");
    fs::write(&file, format!("{admin}\n")).unwrap();
    let url = format!("http://{}", server.address());
    let ran = noondrop(["rehearse", "--target", &url, "--token-file", file.to_str().unwrap()]);
    assert!(!ran.success && ran.err.contains("live"), "{ran:?}");
    let mut desk = noondrop::client::Desk::new(server.address(), &admin);
    let sales = runtime.block_on(desk.ask("GET", "/v1/sales", "")).unwrap();
    assert_eq!(sales["sales"], serde_json::json!([]), "nothing was put on sale");
    server.stop().unwrap();
}
