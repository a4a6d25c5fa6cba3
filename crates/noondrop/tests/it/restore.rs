//! After a restore nothing of the lost rows answers for another: not an id, not a fence, not a key, not a position.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::Command;

use noondrop_core::Outcome;
use noondrop_engine::{
    Answered, Call, EngineOptions, Pending, Sequencer, SystemClock, SystemEntropy, Ticket,
};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use serde_json::{Value, json};

use crate::backup::{assert_changed, backup, text};
use crate::program::{binary, noondrop};
use crate::shop::{self, Shop};

/// A shop whose newest rows are lost: it stands on what a restore made of its copy.
struct Lost {
    shop: Shop,
    kept: shop::Answered,
    gone: Vec<shop::Answered>,
    copied: String,
    positions: Vec<String>,
}

const LOST: [&str; 4] = ["bob", "eve", "dan", "fay"];

/// Sells, takes a copy, sells on, loses it all but the copy, and restores.
fn restored(home: &Path) -> Lost {
    let (data, to) = (home.join("data"), home.join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    let kept = shop.admin.hold("ann");
    let copied = backup(&data, &to)["to"].as_str().unwrap().to_owned();
    let (lost, positions) =
        LOST.iter().map(|buyer| (shop.admin.hold(buyer), shop.admin.head())).unzip();
    shop.server.kill().unwrap();
    fs::rename(&data, home.join("old")).unwrap();
    let arguments = ["restore", "--json", "--from", text(&to), "--data", text(&data)];
    let ran = noondrop(arguments.into_iter().chain(["--expect", &copied]));
    assert!(ran.success, "{ran:?}");
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["from"], copied.as_str());
    let seq = |position: &str| position.split_once('.').unwrap().0.parse::<u64>().unwrap();
    assert_eq!(seq(result["to"].as_str().unwrap()), seq(&copied) + 1, "one row tells of it");
    let names: Vec<_> =
        fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["noondrop.sqlite"], "nothing else is left behind");
    drop(shop);
    Lost { shop: Shop::start(&data), kept, gone: lost, copied, positions }
}

#[test]
fn a_late_confirm_from_before_the_restore_never_meets_another_persons_hold() {
    let home = tempfile::tempdir().unwrap();
    let Lost { mut shop, kept, gone: lost, .. } = restored(home.path());
    let fence = |hold: &shop::Answered| hold.json()["fence"].as_u64().unwrap();
    let highest = lost.iter().map(fence).max().unwrap();
    let refused = |shop: &mut Shop, when: &str| {
        for hold in lost.iter().map(shop::Answered::json) {
            let late = shop.admin.confirm(&hold, "pay-late");
            assert_eq!((late.status, late.code().as_str()), (404, "hold_not_found"), "{when}");
            let id = hold["id"].as_str().unwrap();
            for (method, path) in
                [("GET", format!("/v1/holds/{id}")), ("POST", format!("/v1/holds/{id}/release"))]
            {
                let body = if method == "GET" {
                    String::new()
                } else {
                    json!({"fence": hold["fence"]}).to_string()
                };
                let answered = shop.admin.call(method, &path, None, &body);
                assert_eq!(answered.status, 404, "{when}: {method} {path}: {answered:?}");
            }
        }
    };
    refused(&mut shop, "before the places of the lost holds are taken");
    // As many rows and more, so that each lost id's row and place belong to another hold now.
    let new: Vec<shop::Answered> =
        (0..LOST.len() + 2).map(|number| shop.admin.hold(&format!("new-{number}"))).collect();
    refused(&mut shop, "after");
    for hold in &new {
        assert!(fence(hold) > highest, "{} is not above {highest}", fence(hold));
        assert_eq!(shop.admin.state_of(&hold.json()), "active");
    }
    // What the copy has is as it was.
    let again = shop.admin.hold("ann");
    assert!(again.replayed && again.text == kept.text, "{again:?}");
    assert_eq!(shop.admin.confirm(&kept.json(), "pay-ann").status, 200);
    shop.server.stop().unwrap();
}

#[test]
fn a_key_of_the_lost_rows_is_decided_anew_and_a_position_of_them_is_history_that_changed() {
    let home = tempfile::tempdir().unwrap();
    let Lost { mut shop, gone: lost, copied, positions, .. } = restored(home.path());
    for (buyer, old) in LOST.iter().zip(&lost) {
        let new = shop.admin.hold(buyer);
        assert!(!new.replayed && new.json()["id"] != old.json()["id"], "{new:?}");
        let again = shop.admin.hold(buyer);
        assert!(again.replayed && again.text == new.text, "{again:?}");
    }
    shop.admin.hold("gil");
    let mut read = |position: &str| {
        shop.admin.call("GET", &format!("/v1/sales?at_least={position}"), None, "")
    };
    for lost in &positions {
        let answered = read(lost);
        assert_eq!((answered.status, answered.code().as_str()), (412, "history_changed"), "{lost}");
    }
    assert_eq!(read(&copied).status, 200, "the copy's own position is still ours");

    // A start again is a start like any other, and the log says what happened to it.
    let data = home.path().join("data");
    shop.server.kill().unwrap();
    shop.server.restart().unwrap();
    crate::program::wait_until_ready(&mut shop.server);
    shop.server.stop().unwrap();
    let audit = noondrop(["audit", "--data", text(&data), "--expect", &copied]);
    assert!(audit.success, "{audit:?}");
    let ledger = noondrop(["ledger", "--json", "--data", text(&data)]);
    let facts = ledger.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> = facts.filter(|fact| fact["kind"] == "log.restored").collect();
    assert_eq!(told.len(), 1, "{ledger:?}");
    let row = copied.split_once('.').unwrap().0;
    assert_eq!(told[0]["after"], row.parse::<u64>().unwrap());
    let sentence = told[0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains(&format!("restored from a backup that ended at row {row}")),
        "{sentence}"
    );
}

#[test]
fn the_copy_of_a_history_that_changed_is_kept_and_another_is_begun_when_told_to() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let Lost { mut shop, copied, .. } = restored(home.path());
    // The copy ends where the log went on: it is gone on with.
    shop.admin.hold("gil");
    assert_eq!(backup(&data, &to)["from"], copied.as_str());
    // A copy of the lost rows is not.
    let (old, other) = (home.path().join("old"), home.path().join("copy-of-old"));
    let lost = backup(&old, &other)["to"].as_str().unwrap().to_owned();
    shop.admin.hold("hal");
    let row = lost.split_once('.').unwrap().0.parse().unwrap();
    let ran = noondrop(["backup", "--data", text(&data), "--to", text(&other)]);
    let opener = noondrop_log::sqlite::SqliteOpener::at(
        data.join("noondrop.sqlite"),
        std::sync::Arc::default(),
    );
    let mut reader = noondrop_log::LogOpener::reader(&opener.unwrap()).unwrap();
    let ours = match reader.row(row).unwrap() {
        Some(row) => row.position(),
        None => reader.head().unwrap(),
    };
    assert_changed(&ran, &lost, &ours.to_string());
    let ran = noondrop(["backup", "--fresh", "--data", text(&data), "--to", text(&other)]);
    assert!(ran.success && ran.err.contains(&format!("until-{lost}")), "{ran:?}");
    for (directory, end) in
        [(other.join(format!("until-{lost}")), lost), (other, shop.admin.head())]
    {
        let audit = noondrop(["audit", "--data", text(&directory), "--expect", &end]);
        assert!(audit.success, "{audit:?}");
    }
    shop.server.stop().unwrap();
}

/// Whenever it is killed: there is a restored log or there is none, and it can be asked for again.
#[test]
fn a_restore_that_is_killed_leaves_no_half_of_a_log() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(1_500);
    shop.server.stop().unwrap();
    let copied = backup(&data, &to)["to"].as_str().unwrap().to_owned();
    let new = home.path().join("new");
    let arguments = ["restore", "--from", text(&to), "--data", text(&new)];
    let begun_to_write = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.flatten().any(|entry| entry.path().join("noondrop.sqlite").exists())
    };
    let mut child = Command::new(binary());
    let mut child = child.args(arguments).current_dir(home.path()).spawn().unwrap();
    while !begun_to_write(&new) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!new.join("noondrop.sqlite").exists(), "it has no name yet");
    let ran = noondrop(arguments);
    assert!(ran.success, "{ran:?}");
    let audit = noondrop(["audit", "--data", text(&new), "--expect", &copied]);
    assert!(audit.success, "{audit:?}");
}

/// More than one turn lets lapse is due at the restore: log time lags until all of it has lapsed, and a fence that was
/// given in between would be below those of the lost rows.
#[test]
fn fences_stay_fresh_where_log_time_lags() {
    const HOLDS: u64 = 40_000;
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    fs::create_dir(&data).unwrap();
    let mut engine = engine(&data);
    let digester = engine.state().unwrap().digester().unwrap();
    let opening = noondrop::bench::workload::opening(1).into_iter();
    let holds = (0..HOLDS).map(|number| noondrop::bench::workload::hold(&digester, number));
    answered(&mut engine, opening.chain(holds));
    drop(engine);
    backup(&data, &to);
    // All of them lapse; the rows after that are lost.
    let mut shop = Shop::start(&data);
    let begun = noondrop::time::steady();
    while live_holds(&mut shop) > 0 {
        assert!(begun.elapsed().as_secs() < 30, "they do not lapse");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let wish =
        json!({"sale": "bench", "buyer": "lost", "lines": [{"item": "ticket", "quantity": 1}]});
    let lost = shop.admin.well("POST", "/v1/holds", Some("lost"), &wish).json();
    shop.server.kill().unwrap();
    let new = home.path().join("new");
    let ran = noondrop(["restore", "--from", text(&to), "--data", text(&new)]);
    assert!(ran.success, "{ran:?}");

    // The very first turn after the restore has the new hold in it.
    let mut engine = self::engine(&new);
    let answers = answered(&mut engine, [noondrop::bench::workload::hold(&digester, HOLDS)]);
    let Ok(Outcome::Hold(hold)) = answers[0].answer.as_ref().map(|reply| &reply.outcome) else {
        panic!("it is held: {answers:?}");
    };
    assert!(Some(hold.fence.0) > lost["fence"].as_u64(), "{} {lost}", hold.fence);
    drop(engine);
    let audit = noondrop(["audit", "--json", "--data", text(&new)]);
    let verdict: Value = serde_json::from_str(&audit.out).unwrap();
    assert_eq!((&verdict["live_holds"], &verdict["holds"]), (&1.into(), &(HOLDS + 1).into()));
}

fn live_holds(shop: &mut Shop) -> u64 {
    let status = shop.admin.well("GET", "/readyz?verbose=1", None, &Value::Null).json();
    status["live_holds"].as_u64().unwrap()
}

type Bare = Sequencer<SqliteLog, SystemClock, SystemEntropy>;

fn engine(data: &Path) -> Bare {
    let log = SqliteLog::open(SqliteOptions::new(data.join("noondrop.sqlite"))).unwrap();
    let options = EngineOptions::default();
    Sequencer::recover(log, SystemClock, SystemEntropy::default(), options).unwrap()
}

/// Has commands decided, in as few turns as it takes.
fn answered(
    engine: &mut Bare,
    commands: impl IntoIterator<Item = noondrop_core::Command>,
) -> Vec<Answered> {
    let calls = commands.into_iter().map(Call::from).zip(0..);
    let mut calls: VecDeque<Pending> =
        calls.map(|(call, ticket)| Pending { ticket: Ticket(ticket), call }).collect();
    let (wanted, mut answers) = (calls.len(), Vec::new());
    while answers.len() < wanted {
        engine.turn(&mut calls, &mut answers);
    }
    answers
}
