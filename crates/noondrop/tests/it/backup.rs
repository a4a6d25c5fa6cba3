//! Backups of a real server: while it sells, killed in the middle, of a history that changed, to places that are wrong.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use noondrop::serve::LOG_FILE;
use noondrop::time::steady;
use noondrop_log::sqlite::SqliteOpener;
use noondrop_log::{LogOpener, Position};
use serde_json::Value;

use crate::program::{Ran, binary, noondrop};
use crate::shop::Shop;

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn backup(data: &Path, to: &Path) -> Value {
    let ran = noondrop(["backup", "--json", "--data", text(data), "--to", text(to)]);
    assert!(ran.success, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn audited(data: &Path) -> Value {
    let ran = noondrop(["audit", "--json", "--data", text(data)]);
    assert!(ran.success, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn head(data: &Path) -> Position {
    let opener = SqliteOpener::at(data.join(LOG_FILE), std::sync::Arc::default()).unwrap();
    opener.reader().unwrap().head().unwrap()
}

/// The first row of a copy at which the audit stops.
fn bad_row(data: &Path) -> u64 {
    let ran = noondrop(["audit", "--json", "--data", text(data)]);
    assert!(!ran.success, "{ran:?}");
    serde_json::from_str::<Value>(&ran.out).unwrap()["row"].as_u64().unwrap()
}

#[test]
fn a_backup_beside_a_selling_server_is_whole_and_is_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(300);

    let ((first, second), made) = shop.sell_while(|_| (backup(&data, &to), backup(&data, &to)));
    assert_eq!(first["from"], "0.00000000");
    assert_eq!(second["from"], first["to"], "the second goes on where the first ended");
    for ran in [&first, &second] {
        assert!(ran["rows"].as_u64() > Some(0) && ran["bytes"].as_u64() > Some(1_900), "{ran}");
    }
    assert_eq!(audited(&to)["position"], second["to"], "it ends where it says");

    shop.server.stop().unwrap();
    let last = backup(&data, &to);
    let (copy, log) = (audited(&to), audited(&data));
    for same in ["position", "digest", "rows", "facts", "holds", "held", "sold"] {
        assert_eq!(copy[same], log[same], "{same}");
    }
    assert_eq!(last["to"], log["position"]);
    assert!(copy["holds"].as_u64().unwrap() >= 300 + made, "every answered hold is in it");
    let again = backup(&data, &to);
    assert_eq!((&again["rows"], &again["to"]), (&0.into(), &last["to"]));
    let names: Vec<_> =
        fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "one file and its lock: {names:?}");

    // A copy of a copy is a copy; and a copy is no log to serve.
    assert_eq!(backup(&to, &home.path().join("second"))["to"], last["to"]);
    let served = noondrop(["serve", "--listen", "127.0.0.1:0", "--data", text(&to)]);
    assert!(!served.success && served.err.contains("a backup's copy"), "{served:?}");
    assert_eq!(backup(&data, &to)["rows"], 0, "the attempt changed nothing");
}

#[test]
fn a_backup_that_is_killed_leaves_a_shorter_copy_and_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(2_500);
    let end = head(&data);

    let mut reached = 0;
    for round in 1..=2 {
        let arguments =
            ["backup", "--mb-per-second", "1", "--data", text(&data), "--to", text(&to)];
        let mut child = Command::new(binary());
        child.args(arguments).current_dir(home.path()).stdout(Stdio::null());
        let mut child = child.spawn().unwrap();
        let begun = steady();
        let further = |reached| to.join(LOG_FILE).exists() && head(&to).seq > reached;
        while !further(reached) {
            assert!(begun.elapsed() < Duration::from_secs(30), "it copies nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        reached = head(&to).seq;
        assert!(reached < end.seq, "round {round}: it was killed in the middle");
        assert_eq!(audited(&to)["rows"], reached, "what is there is whole");
    }
    let last = backup(&data, &to);
    assert!(last["from"].as_str().unwrap().starts_with(&format!("{reached}.")), "{last}");
    assert_eq!(audited(&to)["position"], audited(&data)["position"]);
    shop.server.stop().unwrap();
}

#[test]
fn two_backups_do_not_write_one_copy() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    backup(&data, &to);
    let writer = noondrop_log::sqlite::SqliteCopy::open(to.join(LOG_FILE)).unwrap();
    let ran = noondrop(["backup", "--data", text(&data), "--to", text(&to)]);
    assert!(!ran.success && ran.err.contains("somebody writes to"), "{ran:?}");
    drop(writer);
    backup(&data, &to);
    shop.server.stop().unwrap();
}

/// A hole, a changed row, a swapped state: the audit of the copy names the row, and a restore wants nothing of it.
#[test]
fn a_damaged_copy_is_found_and_not_restored() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(200);
    shop.server.stop().unwrap();
    backup(&data, &to);
    assert_eq!(audited(&to)["position"], audited(&data)["position"], "before, it is good");
    let damages = [
        ("a hole", "DELETE FROM log WHERE seq = 20"),
        ("a changed fact", "UPDATE log SET facts = CAST(x'00' || facts AS BLOB) WHERE seq = 20"),
        ("a time", "UPDATE log SET at = at + 1 WHERE seq = 20"),
        ("a sum", "UPDATE log SET state_sum = zeroblob(16) WHERE seq = 20"),
    ];
    for (what, sql) in damages {
        let copy = home.path().join(what);
        fs::create_dir(&copy).unwrap();
        fs::copy(to.join(LOG_FILE), copy.join(LOG_FILE)).unwrap();
        let connection = rusqlite::Connection::open(copy.join(LOG_FILE)).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1);
        drop(connection);
        assert_eq!(bad_row(&copy), 20, "{what}");
        let target = home.path().join("restored");
        let ran = noondrop(["restore", "--from", text(&copy), "--data", text(&target)]);
        assert!(!ran.success && ran.err.contains("row 20 "), "{what}: {ran:?}");
        assert!(!target.join(LOG_FILE).exists(), "{what}");
    }
    // Without its last rows a copy is an older copy, and no worse.
    let connection = rusqlite::Connection::open(to.join(LOG_FILE)).unwrap();
    let gone = connection.execute("DELETE FROM log WHERE seq > 30", []).unwrap();
    drop(connection);
    assert_eq!(audited(&to)["rows"], 30);
    assert_eq!(backup(&data, &to)["rows"], gone);
}

/// A store that is damaged in the middle gives what is before the damage, row by row, and the backup says where it ends.
#[test]
fn a_damaged_store_gives_what_is_good_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(200);
    shop.server.stop().unwrap();
    let good = audited(&data);
    for (sql, to) in [
        ("UPDATE log SET at = at + 1 WHERE seq = 20", "changed"),
        ("DELETE FROM log WHERE seq = 20", "hole"),
    ] {
        let connection = rusqlite::Connection::open(data.join(LOG_FILE)).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1);
        drop(connection);
        let to = home.path().join(to);
        for _ in 0..2 {
            let ran = noondrop(["backup", "--data", text(&data), "--to", text(&to)]);
            assert!(!ran.success && ran.err.contains("the store is damaged"), "{ran:?}");
            assert_eq!(audited(&to)["rows"], 19, "{sql}: all that is good, also when asked again");
        }
    }
    assert!(good["rows"].as_u64() > Some(20));
}

#[test]
fn a_copy_whose_last_piece_is_half_written_is_taken_back_to_what_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    shop.sell(300);
    shop.server.stop().unwrap();
    backup(&data, &to);
    let whole = head(&to);
    // A crash in the middle of a commit, as files: changed pages in the copy, the old ones in its journal.
    let connection = rusqlite::Connection::open(to.join(LOG_FILE)).unwrap();
    connection.execute_batch("PRAGMA cache_size = 2; BEGIN; UPDATE log SET at = 0;").unwrap();
    let crashed = home.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    for name in [LOG_FILE.to_owned(), format!("{LOG_FILE}-journal")] {
        fs::copy(to.join(&name), crashed.join(&name)).unwrap();
    }
    drop(connection);
    let ran = noondrop(["audit", "--data", text(&crashed)]);
    assert!(!ran.success && ran.err.contains("interrupted"), "{ran:?}");
    let target = home.path().join("restored");
    let ran = noondrop(["restore", "--from", text(&crashed), "--data", text(&target)]);
    assert!(ran.success && ran.out.contains(&whole.to_string()), "{ran:?}");
    assert_eq!(head(&crashed), whole);
}

fn refused(arguments: &[&str], words: &str) {
    let ran = noondrop(arguments);
    assert!(!ran.success && ran.err.contains(words), "{arguments:?}: {ran:?}");
}

#[test]
fn places_that_are_wrong_are_named() {
    let home = tempfile::tempdir().unwrap();
    let (data, to) = (home.path().join("data"), home.path().join("copy"));
    let mut shop = Shop::start(&data);
    shop.admin.open(3_600);
    let data = text(&data);
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    refused(&["backup", "--data", data, "--to", data], "is the store itself");
    let link = at("link");
    std::os::unix::fs::symlink(data, &link).unwrap();
    refused(&["backup", "--data", data, "--to", &link], "is the store itself");
    fs::write(at("file"), "x").unwrap();
    refused(&["backup", "--data", data, "--to", &at("file")], "is not a directory");
    refused(&["backup", "--data", data, "--to", &at("no/where")], "could not make");
    refused(&["backup", "--data", data, "--to", "/proc"], "in /proc");
    fs::create_dir(at("strange")).unwrap();
    fs::write(home.path().join("strange").join(LOG_FILE), "not a database, and long enough")
        .unwrap();
    refused(&["backup", "--data", data, "--to", &at("strange")], "not a database");
    refused(&["backup", "--data", &at("none"), "--to", &at("copy")], "there is no log");
    refused(
        &["backup", "--data", data, "--to", &at("copy"), "--mb-per-second", "0"],
        "mb-per-second",
    );

    let other = home.path().join("other");
    let mut stopped = Shop::start(&other);
    stopped.server.stop().unwrap();
    refused(&["backup", "--data", data, "--to", text(&other)], "is a live log");
    refused(&["restore", "--data", &at("new"), "--from", text(&other)], "is a live log");
    refused(&["restore", "--data", &at("new"), "--from", &at("none")], "there is no backup");

    let copied = backup(Path::new(data), &to);
    refused(&["restore", "--data", data, "--from", text(&to)], "move the old one away");
    refused(&["restore", "--data", &at("file"), "--from", text(&to)], "could not read");
    let other_branch =
        ["restore", "--data", &at("new"), "--from", text(&to), "--expect", "2.00000000"];
    refused(&other_branch, "another history");
    for left in [".acknowledged", "-wal"] {
        let half = at(&format!("half{left}"));
        fs::create_dir(&half).unwrap();
        fs::write(format!("{half}/{LOG_FILE}{left}"), "x").unwrap();
        refused(&["restore", "--data", &half, "--from", text(&to)], "move the old one away");
    }
    assert!(!Path::new(&at("new")).exists(), "nothing was made");
    let ran = noondrop(["backup", "--data", text(&other), "--to", text(&to)]);
    assert_changed(&ran, copied["to"].as_str().unwrap(), &head(&other).to_string());
    shop.server.stop().unwrap();
}

pub fn assert_changed(ran: &Ran, copy: &str, source: &str) {
    assert!(!ran.success && ran.err.contains("the history changed"), "{ran:?}");
    assert!(ran.err.contains(copy) && ran.err.contains(source), "{copy}, {source}: {ran:?}");
}
