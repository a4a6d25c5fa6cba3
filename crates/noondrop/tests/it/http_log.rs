//! Ledger, history and attempts: who sees what of the log, from where to where, and one scan at a time.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use noondrop_log::memory::SharedMemory;
use noondrop_log::{
    AppendError, BeginError, Begun, Log, LogError, LogOpener, LogReader, Position, Row, Snapshots,
};
use serde_json::{Value, json};

use crate::http_world::{Who, World, floor, get, path_of, post, put};

/// Lets threads pass, or makes them wait.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock().expect("no holder panics") = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let closed = self.closed.lock().expect("no holder panics");
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let opened = self.opened.wait_while(closed, |closed| *closed).expect("no holder panics");
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        drop(opened);
    }

    fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

/// A log whose appends return, and whose pages are read, only as long as a test lets them.
#[derive(Clone, Default)]
struct Gates {
    appended: Arc<Gate>,
    pages: Arc<Gate>,
}

struct Gated<T: ?Sized> {
    gates: Gates,
    inner: Box<T>,
}

impl Log for Gated<dyn Log> {
    fn head(&mut self) -> Result<Position, LogError> {
        self.inner.head()
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        self.inner.begin(after)
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        let appended = self.inner.append(row);
        self.gates.appended.pass();
        appended
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        self.inner.recover()
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        self.inner.between_turns()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        self.inner.rewrite_private(rows)
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        self.inner.scrub(through)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        let inner = Box::new(self.inner.opener());
        Arc::new(Gated { gates: self.gates.clone(), inner })
    }
}

impl LogOpener for Gated<Arc<dyn LogOpener>> {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        let inner = self.inner.reader()?;
        Ok(Box::new(Gated { gates: self.gates.clone(), inner }))
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        self.inner.snapshots()
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        self.inner.scrubbed()
    }
}

impl LogReader for Gated<dyn LogReader> {
    fn head(&mut self) -> Result<Position, LogError> {
        self.inner.head()
    }

    fn page(&mut self, after: u64, rows: usize, bytes: usize) -> Result<Vec<Row>, LogError> {
        self.gates.pages.pass();
        self.inner.page(after, rows, bytes)
    }

    fn row(&mut self, seq: u64) -> Result<Option<Row>, LogError> {
        self.inner.row(seq)
    }
}

/// A world with `floor` on a log with gates, all of them open.
fn gated() -> (World, Gates) {
    let gates = Gates::default();
    let own = gates.clone();
    let open = move |_: &Path| {
        let inner: Box<dyn Log> = Box::new(SharedMemory::new().log());
        Box::new(Gated { gates: own, inner }) as Box<dyn Log>
    };
    let world = World::on(open, "");
    world.open_sale("noon", &json!({}));
    world.item("noon", "floor", 5);
    (world, gates)
}

#[test]
fn who_hangs_up_does_not_let_a_second_scan_in_beside_his_own() {
    let (world, gates) = gated();
    gates.pages.set(true);
    world.send_and_hang_up(Who::Auditor, &get("/v1/ledger"), || gates.pages.has_waiting());
    let free = world.app.scans.available_permits();
    // Opened before anything can fail: a scan that waits for ever keeps the world from ending.
    gates.pages.set(false);
    assert_eq!(free, 0, "the scan goes on, and so does its turn");
    world.send(Who::Auditor, &get("/v1/ledger")).done(200);
    assert_eq!(world.app.scans.available_permits(), 1);
}

#[test]
fn a_row_that_nobody_was_told_of_is_not_shown() {
    let (world, gates) = gated();
    let seqs = || {
        let page = world.send(Who::Auditor, &get("/v1/ledger?limit=200")).done(200).json();
        let rows = page["rows"].as_array().expect("rows").clone();
        rows.iter().map(|row| row["seq"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    let before = seqs();
    std::thread::scope(|scope| {
        gates.appended.set(true);
        let handle = world.handle();
        // Not over HTTP: a world answers one request at a time.
        let put = scope.spawn(move || handle.execute_blocking(define_item().into()));
        let begun = noondrop::time::steady();
        while !gates.appended.has_waiting() {
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing is appended");
            std::thread::yield_now();
        }
        let during = seqs();
        let later = *before.last().expect("a row") + 1;
        let beyond = world.send(Who::Auditor, &get(format!("/v1/ledger?after={later}")));
        gates.appended.set(false);
        put.join().expect("no panic").expect("it is decided");
        assert_eq!(during, before, "the row is in the log, and is not answered");
        assert_eq!(beyond.done(200).json()["rows"], json!([]));
    });
    assert_eq!(seqs().len(), before.len() + 1);
}

fn define_item() -> noondrop_core::Command {
    use noondrop_core::{Act, Actor, Command, ItemPut, Name, Role};
    let name = |text: &str| Name::parse(text).expect("a name");
    let item = ItemPut {
        sale: name("noon"),
        item: name("parking"),
        total: Some(1),
        oversell_limit: 0,
        if_version: None,
        counts_against: None,
        seats: None,
    };
    let actor = Actor::Principal { name: name("office"), role: Role::Admin };
    Command { shop: name("main"), actor, key: None, origin: None, act: Act::ItemPut(item) }
}

#[test]
fn the_ledger_goes_on_from_a_position_and_refuses_one_of_another_history() {
    let world = World::with_floor(5);
    world.hold("k1", "ada", 1);
    let mut seqs = Vec::new();
    let mut after = String::from("0");
    loop {
        let path = format!("/v1/ledger?limit=2&after={after}");
        let page = world.send(Who::Auditor, &get(path)).done(200).json();
        let rows = page["rows"].as_array().expect("rows");
        seqs.extend(rows.iter().map(|row| row["seq"].as_u64().expect("a number")));
        let Some(next) = page["next_after"].as_str() else { break };
        assert_eq!(next, rows.last().expect("a row")["position"], "it is a whole position");
        next.clone_into(&mut after);
    }
    let head = world.handle().position();
    assert!(seqs.iter().copied().eq(1..=head.seq), "{seqs:?}");

    for path in ["/v1/ledger?limit=1", "/v1/attempts?buyer=ada"] {
        let join = if path.contains('?') { '&' } else { '?' };
        let ask = |after: &str| get(format!("{path}{join}after={after}"));
        world.send(Who::Admin, &ask("2")).done(200);
        world.send(Who::Admin, &ask(&head.to_string())).done(200);
        let (seq, digest) = after.split_once('.').expect("a number and a digest");
        let other = if digest.starts_with('0') { "1" } else { "0" };
        let branch = format!("{seq}.{other}{}", &digest[1..]);
        let seen = world.send(Who::Admin, &ask(&branch));
        let problem = seen.refused(412, "history_changed", "no");
        assert_eq!(problem["position"], branch);
        assert_eq!(seen.header("noondrop-position"), Some(head.to_string().as_str()));
        let problem = world.send(Who::Admin, &ask("soon")).refused(400, "invalid_field", "no");
        assert_eq!(problem["field"], "after");
    }
}

fn kinds(facts: &Value) -> Vec<String> {
    let facts = facts.as_array().expect("facts").iter();
    facts.map(|fact| fact["kind"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn what_was_refused_to_a_hold_is_among_its_attempts() {
    let world = World::with_floor(5);
    let hold = world.hold("k1", "ada", 1);
    let other = world.hold("k2", "bob", 1);
    world.act(&hold, "release", json!({})).done(200);
    world.act(&hold, "confirm", json!({"payment_ref": "p"})).refused(409, "hold_released", "no");
    world.act(&other, "confirm", json!({"payment_ref": "q"})).done(200);
    let id = hold["id"].as_str().expect("an id");
    let found = world.send(Who::Seller, &get(format!("/v1/attempts?hold={id}"))).done(200).json();
    let attempts = &found["attempts"];
    assert_eq!(kinds(attempts), ["hold.created", "hold.released", "hold.act_refused"]);
    assert_eq!(attempts[2]["refusal"]["code"], "hold_released");
    for attempt in attempts.as_array().expect("attempts") {
        assert_eq!(attempt["hold"], hold["id"], "{attempt}");
    }
    assert!(found["next_after"].is_null());
}

/// Every value under `hold`, `holds`, `supersedes`, `superseded_by`, `retakes`.
fn holds_in(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("hold" | "supersedes" | "superseded_by" | "retakes", member) => {
                        found.push(member.clone());
                    }
                    ("holds", Value::Array(holds)) => found.extend(holds.iter().cloned()),
                    _ => holds_in(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| holds_in(item, found)),
        _ => {}
    }
}

#[test]
fn the_ledger_and_a_history_name_holds_as_everybody_does() {
    let world = World::with_floor(5);
    let first = world.hold("k1", "ada", 1);
    let mut body = floor("ada", 2);
    body["supersedes"] = json!({"hold": first["id"], "fence": first["fence"]});
    let second = world.send(Who::Seller, &post("/v1/holds", &body).key("k2")).done(201).json();
    world.act(&second, "extend", json!({"seconds": 5})).done(200);
    let third = world.hold("k3", "bob", 1);
    world.act(&third, "confirm", json!({"payment_ref": "p"})).done(200);
    world.pass(Duration::from_secs(400));
    let fourth = world.hold("k4", "cat", 1);

    let ledger = world.send(Who::Auditor, &get("/v1/ledger?limit=200")).done(200).json();
    let mut named = Vec::new();
    holds_in(&ledger, &mut named);
    named.retain(|hold| !hold.is_null());
    let known = [&first["id"], &second["id"], &third["id"], &fourth["id"]];
    assert!(named.iter().all(|hold| known.contains(&hold)), "{named:?}");
    assert!(known.iter().all(|id| named.contains(id)), "{named:?}");
    let facts = ledger["rows"].as_array().expect("rows").iter();
    let expired = facts.flat_map(|row| row["facts"].as_array().expect("facts"));
    let expired: Vec<&Value> = expired.filter(|fact| fact["kind"] == "holds.expired").collect();
    assert_eq!(expired[0]["holds"], json!([second["id"]]));
    assert_eq!(expired[0]["moves"], json!([{"item": "floor", "quantity": 2}]));

    let story = world.send(Who::Auditor, &get(path_of(&second, "history"))).done(200).json();
    assert_eq!(kinds(&story["facts"]), ["hold.created", "hold.extended", "holds.expired"]);
    assert_eq!(story["facts"][0]["supersedes"], first["id"]);
}

#[test]
fn each_shop_sees_what_became_of_its_own_holds_and_nothing_of_the_others() {
    let world = World::with_floor(5);
    let own = world.hold("k1", "ada", 1);
    let lapsing = world.hold("k2", "bob", 1);
    world.act(&own, "confirm", json!({"payment_ref": "p"})).done(200);
    world.act(&own, "cancel", json!({"to": "stock", "reason": "refund"})).done(200);
    world.act(&own, "release", json!({})).refused(409, "hold_cancelled", "no");

    world.send(Who::Operator, &put("/v1/shops/other", &json!({"live": false}))).done(201);
    let send = |ask| world.send(Who::OtherAdmin, &ask).done(201).json();
    send(put("/v1/sales/noon", &json!({})));
    world.send(Who::OtherAdmin, &crate::http_world::Ask::new("POST", "/v1/sales/noon/publish"));
    send(put("/v1/sales/noon/items/roof", &json!({"total": 5})));
    let mut body = floor("eve", 1);
    body["lines"][0]["item"] = json!("roof");
    let theirs = send(post("/v1/holds", &body).key("k1"));
    let theirs_lapsing = send(post("/v1/holds", &body).key("k2"));
    let paid = json!({"fence": theirs["fence"], "payment_ref": "q"});
    world.send(Who::OtherAdmin, &post(path_of(&theirs, "confirm"), &paid)).done(200);
    world.pass(Duration::from_secs(400));
    world.hold("k3", "cat", 1);

    for (who, mine, others) in [
        (Who::Admin, [&own, &lapsing], [&theirs, &theirs_lapsing]),
        (Who::OtherAdmin, [&theirs, &theirs_lapsing], [&own, &lapsing]),
    ] {
        let text = world.send(who, &get("/v1/ledger?limit=200")).done(200);
        let ledger = text.json();
        let rows = ledger["rows"].as_array().expect("rows").iter();
        let seen: Vec<String> = rows.flat_map(|row| kinds(&row["facts"])).collect();
        for kind in ["log.started", "hold.confirmed", "holds.expired", "item.defined"] {
            let count = seen.iter().filter(|known| *known == kind).count();
            assert_eq!(count, 1, "{who:?} {kind}: {seen:?}");
        }
        let cancelled = seen.iter().any(|kind| kind == "hold.cancelled");
        let refused = seen.iter().any(|kind| kind == "hold.act_refused");
        assert_eq!((cancelled, refused), (who == Who::Admin, who == Who::Admin), "{seen:?}");
        let text = text.text();
        let id = |hold: &Value| hold["id"].as_str().expect("an id").to_owned();
        assert!(mine.iter().all(|hold| text.contains(&id(hold))), "{text}");
        assert!(!others.iter().any(|hold| text.contains(&id(hold))), "{text}");
        assert_eq!(text.contains("roof"), who == Who::OtherAdmin, "pools are a shop's own");
    }
    let hold = own["id"].as_str().expect("an id");
    let path = format!("/v1/attempts?hold={hold}");
    let found = world.send(Who::Admin, &get(&path)).done(200).json();
    assert_eq!(kinds(&found["attempts"]).len(), 4, "{found}");
    world.send(Who::OtherAdmin, &get(&path)).refused(404, "hold_not_found", "no");
}
