//! After an erasure no clear text of a buyer is left in any file of the data directory of a real server.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use noondrop::serve::LOG_FILE;
use noondrop::time::steady;
use noondrop_engine::build_snapshot;
use noondrop_log::LogOpener;
use noondrop_log::sqlite::SqliteOpener;
use serde_json::{Value, json};

use crate::backup::{backup, text};
use crate::program::{admin_secret, binary, noondrop};
use crate::shop::{Answered, Caller, Shop};

const ANN: &str = "ann-shirley-8812";
const BOB: &str = "bob-cuthbert-4471";
/// What must never be in a file: addresses are cut and digested before anything is written.
const NEVER: [&str; 2] = ["203.0.113.77", "203.0.113.0"];

/// All clear texts of a buyer.
fn texts(buyer: &str) -> Vec<String> {
    let more = ["order-", "pay-", "late-pay-", "note-", "left-", "lost-order-"];
    let more = more.iter().map(|what| format!("{what}{buyer}"));
    [buyer.to_owned()].into_iter().chain(more).collect()
}

/// Every file below a directory.
fn files(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The files that have a text, as bytes or in hexadecimal.
fn with_text(files: &[PathBuf], wanted: &str) -> Vec<PathBuf> {
    let hex = data_encoding::HEXLOWER.encode(wanted.as_bytes());
    let has =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let found = files.iter().filter(|path| {
        // A file that went away meanwhile has no text.
        let bytes = fs::read(path).unwrap_or_default();
        has(&bytes, wanted) || has(&bytes, &hex)
    });
    found.cloned().collect()
}

#[track_caller]
fn assert_gone(data: &Path, buyer: &str) {
    let files = files(data);
    for text in texts(buyer).iter().map(String::as_str).chain(NEVER) {
        let found = with_text(&files, text);
        assert!(found.is_empty(), "{text} is in {found:?}");
    }
}

/// The negative control: the same look finds every text where it was not erased.
#[track_caller]
fn assert_there(data: &Path, buyer: &str) {
    let files = files(data);
    for text in texts(buyer) {
        assert!(!with_text(&files, &text).is_empty(), "{text} is nowhere");
    }
}

/// One hold that is sold and cancelled with a reason, one that a late payment meets, one attempt that lost; all of a buyer's
/// kinds of texts. Large metadata, so that they lie on pages of their own, too.
fn buys(admin: &mut Caller, buyer: &str) -> Value {
    let note = format!("note-{buyer}");
    let more = json!({"metadata": {"note": note, "fill": format!("{note} ").repeat(60)}});
    let hold = admin.hold_with(buyer, &more).json();
    assert_eq!(admin.confirm(&hold, &format!("pay-{buyer}")).status, 200);
    assert_eq!(admin.confirm(&hold, &format!("late-pay-{buyer}")).status, 409);
    let cancel = json!({
        "fence": hold["fence"],
        "lines": [{"line": 1}],
        "reason": format!("left-{buyer}"),
        "to": "stock",
    });
    let path = format!("/v1/holds/{}/cancel", hold["id"].as_str().unwrap());
    admin.well("POST", &path, None, &cancel);
    let paid = json!({
        "reference": format!("second-order-{buyer}"),
        "confirm": {"payment_ref": format!("late-pay-{buyer}")},
    });
    let key = format!("second-{buyer}");
    let mut body =
        json!({"sale": "noon", "buyer": buyer, "lines": [{"item": "floor", "quantity": 1}]});
    body.as_object_mut().unwrap().extend(paid.as_object().unwrap().clone());
    admin.well("POST", "/v1/holds", Some(&key), &body);
    let lost = json!({
        "sale": "noon",
        "buyer": buyer,
        "reference": format!("lost-order-{buyer}"),
        "metadata": {"note": format!("lost-note-{buyer}")},
        "lines": [{"item": "floor", "quantity": 2_000_000}],
    });
    let refused =
        admin.call("POST", "/v1/holds", Some(&format!("lost-{buyer}")), &lost.to_string());
    assert_eq!(refused.status, 409, "{refused:?}");
    hold
}

fn erase(admin: &mut Caller, buyer: &str) -> Answered {
    let body = json!({"buyer": buyer, "reason": "asked by letter of 30 November"});
    admin.call("POST", "/v1/buyers/erase", None, &body.to_string())
}

fn standing(admin: &mut Caller) -> Value {
    admin.well("GET", "/readyz?verbose", None, &Value::Null).json()["erasures"].clone()
}

/// Waits until the log is clean up to a row, and gives what the server says of it then.
fn cleaned(admin: &mut Caller, row: u64) -> Value {
    let begun = steady();
    loop {
        let erasures = standing(admin);
        if erasures["done"].as_u64().unwrap() >= row && erasures["pending"] == 0 {
            return erasures;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{erasures}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn row(position: &str) -> u64 {
    position.split_once('.').unwrap().0.parse().unwrap()
}

fn audited(data: &Path) -> Value {
    let ran = noondrop(["audit", "--json", "--data", text(data)]);
    assert!(ran.success, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn no_clear_text_is_left_in_any_file_after_an_erasure() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    let hold = buys(&mut shop.admin, ANN);
    buys(&mut shop.admin, BOB);
    shop.sell(200);
    // A snapshot from before, as a long sale has one.
    shop.server.stop().unwrap();
    let opener = SqliteOpener::at(data.join(LOG_FILE), std::sync::Arc::default()).unwrap();
    let head = opener.reader().unwrap().head().unwrap();
    build_snapshot(&opener, 2, head.seq).unwrap();
    drop(opener);
    let snapshots = data.join(format!("{LOG_FILE}.snapshots"));
    assert!(!with_text(&files(&snapshots), ANN).is_empty(), "it is in a snapshot");
    let mut shop = Shop::start(&data);
    assert_there(&data, ANN);
    assert_there(&data, BOB);

    let told = erase(&mut shop.admin, ANN);
    assert_eq!(told.status, 200, "{told:?}");
    let told = told.json();
    assert_eq!((&told["holds"], &told["already"]), (&json!(2), &json!(false)));
    // Memory is clean with the answer.
    let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    let seen = shop.admin.well("GET", &path, None, &Value::Null).json();
    for gone in ["buyer", "reference", "metadata"] {
        assert_eq!(seen[gone], Value::Null, "{gone}");
    }
    let late = shop.admin.confirm(&hold, "third-payment");
    assert!(!late.text.contains(ANN), "{late:?}");
    let head = shop.admin.head();
    let erasures = cleaned(&mut shop.admin, row(&head) - 1);
    assert!(erasures["rows_rewritten"].as_u64() >= Some(5), "{erasures}");
    // While it still runs: not in the write-ahead log, not in a snapshot.
    assert_gone(&data, ANN);
    assert_there(&data, BOB);
    let again = erase(&mut shop.admin, ANN).json();
    assert_eq!(again["already"], true);
    let head = shop.admin.head();
    cleaned(&mut shop.admin, row(&head));

    shop.server.stop().unwrap();
    assert_gone(&data, ANN);
    assert_there(&data, BOB);
    audited(&data);
    // It starts from what is left, and all of it is there but him.
    let mut shop = Shop::start(&data);
    let seen = shop.admin.well("GET", &path, None, &Value::Null).json();
    assert_eq!((&seen["buyer"], &seen["state"]), (&Value::Null, &json!("cancelled")));
    let list = format!("/v1/holds?buyer={ANN}");
    let found = shop.admin.well("GET", &list, None, &Value::Null).json();
    assert_eq!(
        found["holds"].as_array().map(Vec::len),
        Some(2),
        "who knows his name finds his holds"
    );
}

/// Killed at any moment of it, the next start goes on; until then nobody is told that it is done.
#[test]
fn an_erasure_that_is_killed_goes_on_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    buys(&mut shop.admin, BOB);
    let mut fates = BTreeSet::new();
    for round in 0..6 {
        let buyer = format!("{ANN}-{round}");
        buys(&mut shop.admin, &buyer);
        shop.sell(150);
        assert_there(&data, &buyer);
        assert_eq!(erase(&mut shop.admin, &buyer).status, 200);
        let head = shop.admin.head();
        std::thread::sleep(Duration::from_millis(round * 12));
        shop.server.kill().unwrap();
        let left = texts(&buyer).iter().any(|text| !with_text(&files(&data), text).is_empty());
        fates.insert(left);
        drop(shop);
        shop = Shop::start(&data);
        cleaned(&mut shop.admin, row(&head));
        assert_gone(&data, &buyer);
    }
    assert!(fates.contains(&true), "it was always done before it was killed: {fates:?}");
    assert_there(&data, BOB);
    shop.server.stop().unwrap();
    audited(&data);
    assert_there(&data, BOB);
}

#[test]
fn who_is_in_the_middle_of_buying_is_not_erased_and_only_an_admin_erases() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    let hold = shop.admin.hold(ANN).json();
    let refused = erase(&mut shop.admin, ANN);
    assert_eq!((refused.status, refused.code().as_str()), (409, "buyer_has_live_holds"));
    assert_eq!(refused.json()["holds"], 1);
    assert!(!shop.admin.head().is_empty());
    let path = format!("/v1/holds/{}/release", hold["id"].as_str().unwrap());
    shop.admin.well("POST", &path, None, &json!({"reason": "to be erased"}));
    assert_eq!(erase(&mut shop.admin, ANN).json()["already"], false);
    assert_eq!(erase(&mut shop.admin, "nobody-we-know").json()["holds"], 0);
    let head = shop.admin.head();
    cleaned(&mut shop.admin, row(&head));
    let told = noondrop(["explain", "--data", text(&data), "--buyer", ANN]);
    assert!(told.success && !told.out.contains("order-"), "{told:?}");
}

/// A copy from before has the texts: it is said so. Once restored and started, they go again.
#[test]
fn a_restored_log_is_cleaned_again() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    buys(&mut shop.admin, ANN);
    buys(&mut shop.admin, BOB);
    backup(&data, &to);
    erase(&mut shop.admin, ANN);
    let head = shop.admin.head();
    cleaned(&mut shop.admin, row(&head));
    backup(&data, &to);
    assert_there(&to, ANN);
    shop.server.stop().unwrap();
    fs::rename(&data, home.path().join("old")).unwrap();
    let ran = noondrop(["restore", "--json", "--from", text(&to), "--data", text(&data)]);
    assert!(ran.success, "{ran:?}");
    assert_there(&data, ANN);
    let mut shop = Shop::start(&data);
    cleaned(&mut shop.admin, row(&head));
    assert_gone(&data, ANN);
    assert_there(&data, BOB);
    shop.server.stop().unwrap();
    audited(&data);
}

/// The fact is among the lost rows; the list of digests that the answers gave is not.
#[test]
fn who_was_erased_after_the_copy_is_erased_again_by_a_list() {
    let home = tempfile::tempdir().unwrap();
    let (data, to, list) =
        (home.path().join("data"), home.path().join("copy"), home.path().join("erased.txt"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    buys(&mut shop.admin, ANN);
    buys(&mut shop.admin, BOB);
    // In the middle of buying in the copy, and not any more when he was erased.
    let live = shop.admin.hold_with("cyd", &json!({"reference": "order-of-cyd"})).json();
    backup(&data, &to);
    let release = json!({"fence": live["fence"]});
    let path = format!("/v1/holds/{}/release", live["id"].as_str().unwrap());
    shop.admin.well("POST", &path, None, &release);
    let mut digests = String::from("# erased in November\n\n");
    for buyer in [ANN, "cyd"] {
        let told = erase(&mut shop.admin, buyer).json();
        digests += told["buyer"].as_str().unwrap();
        digests += "\n";
    }
    shop.server.kill().unwrap();
    fs::rename(&data, home.path().join("old")).unwrap();

    let restore = |list: &Path| {
        let arguments = ["restore", "--json", "--from", text(&to), "--data", text(&data)];
        noondrop(arguments.into_iter().chain(["--erasures", text(list)]))
    };
    fs::write(&list, "ann\n").unwrap();
    let ran = restore(&list);
    assert!(!ran.success && ran.err.contains("line 1 of"), "{ran:?}");
    fs::write(&list, digests).unwrap();
    let ran = restore(&list);
    assert!(ran.success, "{ran:?}");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["erasures"], 2);
    audited(&data);
    let mut shop = Shop::start(&data);
    cleaned(&mut shop.admin, row(told["to"].as_str().unwrap()));
    assert_gone(&data, ANN);
    assert_there(&data, BOB);
    assert!(with_text(&files(&data), "order-of-cyd").is_empty());
    let path = format!("/v1/holds/{}", live["id"].as_str().unwrap());
    let seen = shop.admin.well("GET", &path, None, &Value::Null).json();
    assert_eq!((&seen["buyer"], &seen["state"]), (&Value::Null, &json!("active")));
    assert_eq!(erase(&mut shop.admin, ANN).json()["already"], true);
}

/// The most that a server tells, from its start to its end.
#[test]
fn log_lines_have_no_clear_text_of_a_buyer() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lines = data.join("server.log");
    let mut server = Command::new(binary())
        .args(["serve", "--listen", &address.to_string(), "--data", text(&data)])
        .env_remove("NOONDROP_UPDATE")
        .env("NOONDROP_LOG__LEVEL", "trace")
        .stdout(fs::File::create(data.join("server.out")).unwrap())
        .stderr(fs::File::create(&lines).unwrap())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begun = steady();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let token = fs::read_to_string(admin_secret(&data)).unwrap();
    let mut admin = Caller::new(address, token.trim());
    admin.open(3_600);
    buys(&mut admin, ANN);
    erase(&mut admin, ANN);
    let head = admin.head();
    cleaned(&mut admin, row(&head));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(fs::read_to_string(&lines).unwrap().contains("erased texts are gone"));
    assert_gone(&data, ANN);
}
