//! A sale from a file, by the real program against a real server.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{admin_secret, binary};
use crate::sale_proxy::{Proxy, Then};
use crate::shop::Shop;

/// How a run ended and what it printed.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// A server, files beside it, and the program that asks it.
struct Desk {
    home: tempfile::TempDir,
    shop: Shop,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn example() -> String {
    fs::read_to_string(root().join("examples/noon.toml")).unwrap()
}

impl Desk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let shop = Shop::start(&home.path().join("data"));
        let desk = Self { home, shop };
        fs::copy(root().join("examples/seats.csv"), desk.path("seats.csv")).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.path("noon.toml");
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, address: SocketAddr, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.arg("sale").args(arguments).args(["--url", &format!("http://{address}")]);
        command.arg("--secret-file").arg(admin_secret(&self.path("data")));
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(self.shop.server.address(), arguments))
    }

    fn apply(&self, text: &str) -> Ran {
        let file = self.file(text);
        self.run(&["apply", file.to_str().unwrap()])
    }

    /// Applies, and a second time there is nothing to do.
    fn applied(&self, text: &str) -> String {
        let ran = self.apply(text);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("applied: "), "{ran:?}");
        self.nothing_to_do(text);
        ran.out
    }

    fn nothing_to_do(&self, text: &str) {
        let again = self.apply(text);
        assert_eq!(again.code, Some(0), "{again:?}");
        assert!(
            again.out.starts_with("nothing to do") || again.out.contains("\nnothing to do"),
            "{again:?}"
        );
    }

    fn item(&mut self, name: &str) -> Value {
        let path = format!("/v1/sales/noon/items/{name}");
        self.shop.admin.well("GET", &path, None, &Value::Null).json()
    }

    fn sale(&mut self) -> Value {
        self.shop.admin.well("GET", "/v1/sales/noon", None, &Value::Null).json()
    }

    fn post(&mut self, path: &str, key: &str, body: &Value) -> Value {
        self.shop.admin.well("POST", path, Some(key), body).json()
    }
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_sale_is_applied_once_and_a_dry_run_changes_nothing() {
    let mut desk = Desk::new();
    let file = desk.file(&example());
    let file = file.to_str().unwrap();
    let before = desk.shop.admin.head();
    let dry = desk.run(&["apply", file, "--dry-run"]);
    assert_eq!(dry.code, Some(2), "{dry:?}");
    for line in ["+ sale noon", "+ item hall", "60 seats in 2 sections", "state draft → published"]
    {
        assert!(dry.out.contains(line), "{line}: {dry:?}");
    }
    assert_eq!((desk.shop.admin.head(), dry.err.as_str()), (before, ""), "a dry run writes no row");

    desk.applied(&example());
    assert_eq!(desk.sale()["state"], "open");
    let hall = desk.item("hall");
    assert_eq!([&hall["total"], &hall["available"], &hall["blocked"]], [60, 55, 5]);
    let parking = desk.item("parking");
    assert_eq!(parking["blocks"], json!([{"label": "artists", "quantity": 4}]));
    assert_eq!(desk.item("parking-reduced")["counts_against"], json!(["parking"]));

    let head = desk.shop.admin.head();
    let dry = desk.run(&["apply", file, "--dry-run", "--json"]);
    let value: Value = serde_json::from_str(&dry.out).unwrap();
    assert_eq!((dry.code, &value["differences"]), (Some(0), &json!([])), "{dry:?}");
    desk.nothing_to_do(&example());
    assert_eq!(desk.shop.admin.head(), head, "nothing to do writes no row");
    let audit = desk.path("data");
    let audit = crate::program::noondrop(["audit", "--data", audit.to_str().unwrap()]);
    assert!(audit.success, "{audit:?}");
}

#[test]
fn what_changes_in_the_file_changes_on_the_server() {
    let mut desk = Desk::new();
    desk.applied(&example());
    let seats = fs::read_to_string(desk.path("seats.csv")).unwrap();
    let seats = seats.replace("B-2-6,balcony,2,6,62,,bronze\n", "B-3-1,balcony,3,1,70,,bronze\n");
    assert!(seats.contains("B-3-1") && !seats.contains("B-2-6"));
    fs::write(desk.path("seats.csv"), seats).unwrap();
    let changed = example()
        .replace("hold_seconds = 300 ", "hold_seconds = 240 ")
        .replace("total = 20", "total = 26")
        .replace("quantity = 4", "quantity = 6")
        .replace("oversell_limit = 10", "oversell_limit = 12")
        .replace("total = 100", "total = 90")
        .replace("\"S-1-6\", \"S-1-7\"", "\"S-1-6\", \"S-1-8\"");
    let out = desk.applied(&changed);
    for line in [
        "~ sale noon              hold_seconds 300 → 240",
        "+ item hall              1 seat more: B-3-1",
        "- item hall              1 seat fewer: B-2-6",
        "- block hall/house       1 put on sale again: S-1-7",
        "+ block hall/house       1 set aside: S-1-8",
        "~ item parking           total 20 → 26 (+6)",
        "+ block parking/artists  2 set aside (now 4)",
        "~ item programme         oversell_limit 10 → 12",
        "~ item programme         total 100 → 90 (-10)",
        "9 differences",
        "the sale is open: units of parking",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    assert_eq!(desk.sale()["hold_seconds"], 240);
    let (parking, programme) = (desk.item("parking"), desk.item("programme"));
    assert_eq!([&parking["total"], &parking["blocked"]], [26, 6]);
    assert_eq!([&programme["total"], &programme["oversell_limit"]], [90, 12]);
    // And the whole way back: every key of the way there is another one.
    fs::copy(root().join("examples/seats.csv"), desk.path("seats.csv")).unwrap();
    desk.applied(&example());
    assert_eq!(desk.item("hall")["total"], 60);
}

#[test]
fn what_was_sold_out_of_a_block_counts_as_set_aside() {
    let mut desk = Desk::new();
    desk.applied(&example());
    // One through the view: the units lie in `parking`.
    for (buyer, item) in [("ann", "parking"), ("bob", "parking-reduced")] {
        let body = json!({"sale": "noon", "buyer": buyer, "confirm": {"payment_ref": buyer},
            "lines": [{"item": item, "quantity": 1, "from": "artists"}]});
        desk.post("/v1/holds", buyer, &body);
    }
    let body = json!({"sale": "noon", "buyer": "cyd", "lines": [{"item": "hall", "seats": ["S-2-1"], "from": "press"}]});
    desk.post("/v1/holds", "cyd", &body);
    assert_eq!(desk.item("parking")["blocked"], 2);
    desk.nothing_to_do(&example());
    // Fewer than are left can be put on sale, and no more.
    let out = desk.apply(&example().replace("quantity = 4", "quantity = 1")).out;
    assert!(
        out.contains("2 put on sale again (of 4)") && out.contains("1 set aside for artists"),
        "{out}"
    );
    assert_eq!(desk.item("parking")["blocked"], 0);
    // A label that the file does not name stays; so does what came back under that of `returns_to`.
    let aside = json!({"quantity": 3, "label": "vip", "reason": "by hand"});
    desk.post("/v1/sales/noon/items/programme/block", "vip", &aside);
    let out = desk.run(&["apply", "noon.toml", "--dry-run"]);
    assert!(out.code == Some(0) && out.out.contains("3 set aside for vip stay"), "{out:?}");
}

#[test]
fn a_change_that_somebody_undid_is_made_again() {
    let mut desk = Desk::new();
    desk.applied(&example());
    let more = example().replace("total = 100", "total = 120");
    for round in 0..3 {
        desk.applied(&more);
        assert_eq!(desk.item("programme")["total"], 120, "round {round}");
        let undone = json!({"by": -20, "reason": "by hand"});
        let path = "/v1/sales/noon/items/programme/adjust";
        desk.post(path, &format!("undo-{round}"), &undone);
    }
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_done() {
    let mut desk = Desk::new();
    desk.applied(&example());
    let head = desk.shop.admin.head();
    let programme = example().rfind("# Programmes").unwrap();
    let seats = fs::read_to_string(desk.path("seats.csv")).unwrap();
    let file = example()[..programme].replace("hold_seconds = 300 ", "hold_seconds = 200 ");
    let ran = desk.apply(&file);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("! item programme is on the server and not in the file"), "{ran:?}");
    assert!(ran.err.contains("nothing was changed"), "{ran:?}");

    let (head_of_file, items) =
        example().split_once("# Equal units").map(|(h, i)| (h.to_owned(), i.to_owned())).unwrap();
    let begin = head_of_file.find("seats = \"seats.csv\"").unwrap();
    let ran = desk.apply(&format!("{}total = 60\n#{items}", &head_of_file[..begin]));
    assert!(
        ran.out.contains("! item hall has seats on the server and a total in the file"),
        "{ran:?}"
    );

    fs::write(desk.path("seats.csv"), seats.replace("S-1-1,stalls,1,1,5", "S-1-1,stalls,1,1,6"))
        .unwrap();
    let ran = desk.apply(&example());
    assert!(
        ran.code == Some(1)
            && ran.out.contains("seat S-1-1 is as it was added for ever (rank 5 → 6)"),
        "{ran:?}"
    );
    assert_eq!(desk.shop.admin.head(), head);
}

#[test]
fn the_servers_own_refusal_is_told_and_nothing_is_published_half_done() {
    let mut desk = Desk::new();
    let ran = desk.apply(&example().replace(
        "oversell_limit = 10",
        "oversell_limit = 10\nblocks = [{ label = \"much\", quantity = 500 }]",
    ));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("not_enough_free")
            && ran.err.contains("done before that: define the sale"),
        "{ran:?}"
    );
    assert_eq!(desk.sale()["state"], "draft");
    desk.applied(&example());
    assert_eq!(desk.sale()["state"], "open");

    let body = json!({"sale": "noon", "buyer": "ann", "lines": [{"item": "parking-reduced", "quantity": 1}]});
    desk.post("/v1/holds", "ann", &body);
    let ran = desk.apply(
        &example().replace("counts_against = [\"parking\"]", "counts_against = [\"programme\"]"),
    );
    assert!(ran.code == Some(1) && ran.err.contains("change the item parking-reduced"), "{ran:?}");
    assert!(ran.err.contains("invalid_field"), "{ran:?}");
}

#[test]
fn files_that_are_wrong_never_reach_the_server() {
    let mut desk = Desk::new();
    let head = desk.shop.admin.head();
    let ran = desk.apply("sale = \"noon\"\ncolour = 1\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("noon.toml, line 2, column 1: unknown field `colour`"), "{ran:?}");
    fs::write(desk.path("seats.csv"), "seat,section,row,number\nA,a,1,1\nB,a,1,one\n").unwrap();
    let ran = desk.apply("sale = \"noon\"\n[[items]]\nitem = \"hall\"\nseats = \"seats.csv\"\n");
    assert!(
        ran.err.contains("seats.csv, line 3, column number: 0 to 4294967295, not \"one\""),
        "{ran:?}"
    );
    assert_eq!(desk.shop.admin.head(), head);

    let ran = desk.run(&["show", "no on"]);
    assert!(ran.code == Some(1) && ran.err.contains("SALE: "), "{ran:?}");
    let mut nobody = Command::new(binary());
    nobody.args(["sale", "show", "noon"]).current_dir(desk.home.path());
    let ran = ran_without_secret(&mut nobody);
    assert!(ran.code == Some(1) && ran.err.contains("--secret-file"), "{ran:?}");
}

fn ran_without_secret(command: &mut Command) -> Ran {
    ran(command.env_remove("NOONDROP_SECRET").env_remove("NOONDROP_SECRET_FILE"))
}

#[test]
fn twenty_thousand_seats_come_from_a_file() {
    let desk = Desk::new();
    let mut seats = String::from("seat,section,row,number,rank,tags,zone\n");
    for no in 0..20_000 {
        let (section, row, number) = (no / 2_000, no / 50 % 40, no % 50);
        writeln!(seats, "{section}-{row}-{number},{section},{row},{number},{row},,z{section}")
            .unwrap();
    }
    fs::write(desk.path("all.csv"), &seats).unwrap();
    let file = desk.file("sale = \"noon\"\n[[items]]\nitem = \"arena\"\n");
    let arguments = ["apply", file.to_str().unwrap(), "--seats", "all.csv"];
    // By the program: a connection of ours would have been closed in the meantime.
    let total = |desk: &Desk| -> Value {
        let shown: Value =
            serde_json::from_str(&desk.run(&["show", "noon", "--json"]).out).unwrap();
        shown["items"][0]["total"].clone()
    };
    let first = desk.run(&arguments);
    assert!(first.code == Some(0) && first.out.contains("20000 seats in 10 sections"), "{first:?}");
    assert_eq!(total(&desk), 20_000);
    assert!(desk.run(&arguments).out.starts_with("nothing to do"));
    fs::write(
        desk.path("all.csv"),
        seats.replace("\n0-0-0,", "\nfirst,").replace(",0,0,0,0,,z0", ",0,0,77,0,,z0"),
    )
    .unwrap();
    let changed = desk.run(&arguments);
    assert!(
        changed.out.contains("1 seat more: first") && changed.out.contains("1 seat fewer: 0-0-0"),
        "{changed:?}"
    );
    assert_eq!(total(&desk), 20_000);
}

#[test]
fn a_run_that_was_killed_at_any_request_is_finished_by_the_next() {
    let desk = Desk::new();
    let server = desk.shop.server.address();
    let mut requests = 0;
    for then in [Then::HangBefore, Then::HangAfter] {
        // Round the requests until a run needs no more of them.
        for at in 0.. {
            let name = format!("noon-{at}-{}", then == Then::HangAfter);
            let file =
                desk.file(&example().replace("sale = \"noon\"", &format!("sale = \"{name}\"")));
            let file = file.to_str().unwrap();
            let proxy = Proxy::start(server, at, then);
            let mut child = desk.command(proxy.address(), &["apply", file]);
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let hangs = proxy.hangs_or(|| child.try_wait().unwrap().is_some());
            child.kill().ok();
            child.wait().unwrap();
            let again = desk.run(&["apply", file]);
            assert_eq!(again.code, Some(0), "{name}: {again:?}");
            let dry = desk.run(&["apply", file, "--dry-run"]);
            assert_eq!(dry.code, Some(0), "{name}: {dry:?}");
            let shown: Value =
                serde_json::from_str(&desk.run(&["show", &name, "--json"]).out).unwrap();
            assert_eq!(shown["state"], "open", "{name}");
            let blocked: Vec<_> =
                shown["items"].as_array().unwrap().iter().map(|i| &i["blocked"]).collect();
            assert_eq!(blocked, [5, 4, 0, 0], "{name}");
            if !hangs {
                break;
            }
            requests += 1;
        }
    }
    assert!(requests > 16, "only {requests} places to be killed at");
}

#[test]
fn a_connection_that_is_cut_is_no_failure() {
    let desk = Desk::new();
    let server = desk.shop.server.address();
    for at in 0..12 {
        let name = format!("noon-{at}");
        let file = desk.file(&example().replace("sale = \"noon\"", &format!("sale = \"{name}\"")));
        let proxy = Proxy::start(server, at, Then::CutAfter);
        let ran = ran(&mut desk.command(proxy.address(), &["apply", file.to_str().unwrap()]));
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
    }
}

#[test]
fn two_who_want_the_same_both_get_it() {
    let mut desk = Desk::new();
    desk.applied(&example());
    let file = desk.file(&example().replace("title = \"Noon\"", "title = \"Evening\""));
    let file = file.to_str().unwrap();
    let proxy = Proxy::start(desk.shop.server.address(), 0, Then::HangBeforeChange);
    let mut child = desk.command(proxy.address(), &["apply", file]).spawn().unwrap();
    assert!(proxy.hangs_or(|| false));
    assert_eq!(desk.run(&["apply", file]).code, Some(0));
    proxy.go_on();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!([&desk.sale()["title"], &desk.sale()["version"]], [&json!("Evening"), &json!(2)]);
}

#[test]
fn what_somebody_else_changes_meanwhile_stands() {
    let mut desk = Desk::new();
    desk.applied(&example());
    let file = desk.file(&example().replace("title = \"Noon\"", "title = \"Evening\""));
    let proxy = Proxy::start(desk.shop.server.address(), 0, Then::HangBeforeChange);
    let mut child = desk.command(proxy.address(), &["apply", file.to_str().unwrap()]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(proxy.hangs_or(|| false));
    let terms = json!({"title": "Midnight"});
    desk.shop.admin.well("PUT", "/v1/sales/noon", None, &terms);
    proxy.go_on();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("somebody else made changes meanwhile"), "{err}");
    assert_eq!(desk.sale()["title"], "Midnight");
}

#[test]
fn a_sale_is_moved_along_and_shown() {
    let desk = Desk::new();
    let file = desk.file(&example().replace("state = \"published\"", "#"));
    assert_eq!(desk.run(&["apply", file.to_str().unwrap()]).code, Some(0));
    let told = |verb: &str| desk.run(&[verb, "noon"]);
    for (verb, state) in [
        ("publish", "open"),
        ("pause", "paused"),
        ("resume", "open"),
        ("close", "closed"),
        ("reopen", "open"),
        ("close", "closed"),
    ] {
        assert_eq!(told(verb).out, format!("sale noon is {state}\n"), "{verb}");
    }
    let shown = told("show");
    assert!(
        shown.out.contains("sale noon is closed") && shown.out.contains("4 for artists"),
        "{shown:?}"
    );
    desk.apply(&example());
    let note = desk.apply(&example()).out;
    assert!(note.contains("closed and stays so: `noondrop sale reopen noon`"), "{note}");
    let refused = told("resume");
    assert!(refused.code == Some(1) && refused.err.contains("sale_closed"), "{refused:?}");
    assert_eq!(told("archive").out, "sale noon is archived\n");
    let ran = desk.apply(&example().replace("title = \"Noon\"", "title = \"Evening\""));
    assert!(ran.code == Some(1) && ran.out.contains("! sale noon is archived"), "{ran:?}");
}

#[test]
fn the_commands_of_the_guide_work_as_they_are_typed() {
    let guide = fs::read_to_string(root().join("docs/OPERATING.md")).unwrap();
    let section = guide.split("\n## A sale from a file\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let commands = section.lines().filter_map(|line| line.strip_prefix("    noondrop sale "));
    let desk = Desk::new();
    let mut ran_of_them = 0;
    for line in commands {
        let typed = line.split('#').next().unwrap();
        let mut command = Command::new(binary());
        command.arg("sale").args(typed.split_whitespace()).current_dir(root());
        command.env("NOONDROP_URL", format!("http://{}", desk.shop.server.address()));
        command.env("NOONDROP_SECRET_FILE", admin_secret(&desk.path("data")));
        let ran = ran(&mut command);
        let fine = if typed.contains("--dry-run") { [0, 2] } else { [0, 0] };
        assert!(ran.code.is_some_and(|code| fine.contains(&code)), "{line}: {ran:?}");
        ran_of_them += 1;
    }
    assert!(ran_of_them >= 6, "{ran_of_them}");
}
