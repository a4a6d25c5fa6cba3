//! The difference between a file and a server, as lines for people and as requests. Asks nobody.
//!
//! Requests are in an order in which each that was done is right without the next: terms first; items after those that
//! they count against; of each item its definition, its units, what is put on sale again, what is set aside. Publishing is
//! apart: it comes after everything else was seen to be there.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::blocks;
use super::file::{ItemWanted, SaleFile, Units};
use super::hall::fitting;
use super::seats::Seat;
use super::standing::{ItemStanding, Standing, sale_path};

/// Why units change, for the ledger.
pub(super) const REASON: &str = "a sale from a file";

/// The terms of a sale in the order in which a person reads them.
const TERMS: [&str; 10] = [
    "title",
    "opens_at",
    "closes_at",
    "hold_seconds",
    "hold_seconds_max",
    "hold_chain_seconds_max",
    "extensions_max",
    "live_holds_per_buyer",
    "limits",
    "returns_to",
];

/// What kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The server has not what the file has.
    Add,
    /// The server has it otherwise.
    Change,
    /// The server has what the file has not.
    Remove,
}

impl Kind {
    /// How it is drawn.
    #[must_use]
    pub const fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Change => '~',
            Self::Remove => '-',
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// What kind.
    pub kind: Kind,
    /// Of what: `sale noon`, `item hall`, `block hall/house`.
    pub of: String,
    /// What it is.
    pub says: String,
}

/// What keeps a request from being done twice, or over someone else's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Only on this version; 0: only if there is none yet.
    Version(u64),
    /// An idempotency key, made of the request and what was seen.
    Key(String),
    /// The same again changes nothing.
    Harmless,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does, after "to".
    pub does: String,
    /// `PUT`, `POST`
    pub method: &'static str,
    /// Where to.
    pub path: String,
    /// What is sent.
    pub body: String,
    /// How it is guarded.
    pub guard: Guard,
}

/// All differences, and what to do about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For people.
    pub differences: Vec<Difference>,
    /// What a person should know, though nothing is done about it.
    pub notes: Vec<String>,
    /// Why nothing can be done.
    pub refusals: Vec<String>,
    /// In this order.
    pub steps: Vec<Step>,
    /// After all of them are there.
    pub publish: Option<Step>,
}

/// Compares.
#[must_use]
pub fn plan(file: &SaleFile, standing: &Standing) -> Plan {
    let mut plan = Plan::default();
    plan.terms(file, standing);
    for wanted in &file.items {
        plan.item(file, wanted, standing);
    }
    for name in standing.items.keys() {
        if !file.items.iter().any(|item| item.name == *name) {
            plan.refusals.push(format!(
                "item {name} is on the server and not in the file, and items are never removed: describe it, with total = 0 to sell no more of it"
            ));
        }
    }
    plan.state(file, standing);
    plan
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(limit_words).collect::<Vec<_>>().join("; "),
        Value::Object(returns) => {
            let label = returns.get("label").and_then(Value::as_str).unwrap_or_default();
            let lapsed = returns.get("lapsed") == Some(&Value::Bool(true));
            format!("{label}{}", if lapsed { ", what lapses too" } else { "" })
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn limit_words(limit: &Value) -> String {
    let items = limit["items"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let items = items.collect::<Vec<_>>().join(", ");
    let of = if items.is_empty() { "all items".to_owned() } else { items };
    let name = limit["name"].as_str().unwrap_or_default();
    format!("{name}: {} of {of}", limit["per_buyer"])
}

/// `1 seat`, `2 seats`
#[must_use]
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Plan {
    /// Whether the server has what the file says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty() && self.refusals.is_empty()
    }

    pub(super) fn differs(&mut self, kind: Kind, of: String, says: String) {
        self.differences.push(Difference { kind, of, says });
    }

    fn terms(&mut self, file: &SaleFile, standing: &Standing) {
        let of = format!("sale {}", file.sale);
        let wanted =
            TERMS.iter().map(|name| (*name, file.terms.get(*name).unwrap_or(&Value::Null)));
        let changed: Vec<(&str, &Value, &Value)> = match &standing.sale {
            None => {
                let set = wanted.filter(|(_, value)| quoted(value) != "none");
                let words = set.map(|(name, value)| format!("{name} {}", quoted(value)));
                self.differs(Kind::Add, of, words.collect::<Vec<_>>().join(", "));
                Vec::new()
            }
            Some(sale) => {
                let both = wanted.map(|(name, value)| (name, &sale[name], value));
                both.filter(|(_, now, wanted)| now != wanted).collect()
            }
        };
        for (name, now, wanted) in &changed {
            let says = format!("{name} {} → {}", quoted(now), quoted(wanted));
            self.differs(Kind::Change, format!("sale {}", file.sale), says);
        }
        if standing.sale.is_none() || !changed.is_empty() {
            self.steps.push(Step {
                does: format!("define the sale {}", file.sale),
                method: "PUT",
                path: sale_path(&file.sale),
                body: Value::Object(file.terms.clone()).to_string(),
                guard: Guard::Version(standing.version()),
            });
        }
    }

    fn state(&mut self, file: &SaleFile, standing: &Standing) {
        let of = format!("sale {}", file.sale);
        match standing.state() {
            Some("archived") if !self.differences.is_empty() => {
                self.refusals
                    .push(format!("{of} is archived, and what is archived stays as it is"));
            }
            None | Some("draft") if file.published => {
                self.differs(Kind::Change, of, "state draft → published".to_owned());
                self.publish = Some(Step {
                    does: format!("publish {}", file.sale),
                    method: "POST",
                    path: format!("{}/publish", sale_path(&file.sale)),
                    body: String::new(),
                    guard: Guard::Harmless,
                });
            }
            Some(state @ ("paused" | "closed")) if file.published => {
                let verb = if state == "paused" { "resume" } else { "reopen" };
                self.notes.push(format!(
                    "{of} is {state} and stays so: `noondrop sale {verb} {}` is a step of its own",
                    file.sale
                ));
            }
            _ => {}
        }
    }

    fn item(&mut self, file: &SaleFile, wanted: &ItemWanted, standing: &Standing) {
        let path = format!("{}/items/{}", sale_path(&file.sale), wanted.name);
        let now = standing.items.get(&wanted.name);
        let before = self.steps.len();
        let mut lost = HashSet::new();
        match now {
            None => self.new_item(&path, wanted),
            Some(now) if !self.is_of_its_kind(wanted, now) => return,
            Some(now) => {
                self.definition(&path, wanted, now);
                match (&wanted.units, &now.seats) {
                    (Units::Total(total), _) => {
                        self.total(&path, wanted, now.number("total"), *total);
                    }
                    (Units::Seats(seats), Some(told)) => {
                        lost = self.seats(&path, wanted, seats, told);
                    }
                    _ => {}
                }
            }
        }
        let moves = self.steps.len() > before;
        self.blocks(&path, file, wanted, now, &lost);
        let sets_aside = self.steps[before..].iter().filter(|s| s.path.ends_with("/block")).count();
        let is_open = standing.state() == Some("open");
        if is_open && sets_aside > 0 && (moves || self.steps.len() - before > sets_aside) {
            self.notes.push(format!(
                "the sale is open: units of {} can be bought until they are set aside; pause it for the change if that matters",
                wanted.name
            ));
        }
    }

    fn is_of_its_kind(&mut self, wanted: &ItemWanted, now: &ItemStanding) -> bool {
        let kind = |seated: bool, view: bool| match (seated, view) {
            (true, _) => "seats",
            (_, true) => "no units of its own",
            _ => "a total",
        };
        let has = kind(now.is_seated(), now.is_view());
        let (seated, view) = (matches!(wanted.units, Units::Seats(_)), wanted.units == Units::None);
        let wants = kind(seated, view);
        if has != wants {
            let name = &wanted.name;
            self.refusals.push(format!(
                "item {name} has {has} on the server and {wants} in the file, and an item stays of its kind: give the new one another name"
            ));
        }
        has == wants
    }

    fn new_item(&mut self, path: &str, wanted: &ItemWanted) {
        let mut words = Vec::new();
        let mut body = json!({});
        let mut rest: &[Seat] = &[];
        match &wanted.units {
            Units::None => words.push("no units of its own".to_owned()),
            Units::Total(total) => {
                words.push(counted(u64::from(*total), "unit"));
                body["total"] = (*total).into();
            }
            Units::Seats(seats) => {
                let sections: HashSet<&str> = seats.iter().map(|s| s.section.as_str()).collect();
                let (seated, sections) = (seats.len() as u64, sections.len() as u64);
                words.push(format!(
                    "{} in {}",
                    counted(seated, "seat"),
                    counted(sections, "section")
                ));
                let (first, others) = seats.split_at(fitting(seats));
                body["seats"] = serde_json::to_value(first).expect("seats are JSON");
                rest = others;
            }
        }
        if !wanted.counts_against.is_empty() {
            words.push(format!("counts against {}", wanted.counts_against.join(", ")));
            body["counts_against"] = json!(wanted.counts_against);
        }
        if wanted.oversell_limit > 0 {
            words.push(format!("{} more may be sold", wanted.oversell_limit));
            body["oversell_limit"] = wanted.oversell_limit.into();
        }
        self.differs(Kind::Add, format!("item {}", wanted.name), words.join(", "));
        self.steps.push(Step {
            does: format!("define the item {}", wanted.name),
            method: "PUT",
            path: path.to_owned(),
            body: body.to_string(),
            guard: Guard::Version(0),
        });
        self.seat_steps(path, &wanted.name, rest, &[]);
    }

    /// What a `PUT` may change of an item that there is.
    fn definition(&mut self, path: &str, wanted: &ItemWanted, now: &ItemStanding) {
        let of = format!("item {}", wanted.name);
        let before = self.differences.len();
        let (limit, wanted_limit) = (now.number("oversell_limit"), wanted.oversell_limit);
        if limit != u64::from(wanted_limit) {
            let says = format!("oversell_limit {limit} → {wanted_limit}");
            self.differs(Kind::Change, of.clone(), says);
        }
        let against = now.counts_against();
        let both: [HashSet<&str>; 2] = [
            against.iter().copied().collect(),
            wanted.counts_against.iter().map(String::as_str).collect(),
        ];
        if both[0] != both[1] {
            let words = |list: &[&str]| match list {
                [] => "nothing".to_owned(),
                some => some.join(", "),
            };
            let wanted: Vec<&str> = wanted.counts_against.iter().map(String::as_str).collect();
            let says = format!("counts against {} → {}", words(&against), words(&wanted));
            self.differs(Kind::Change, of, says);
        }
        if self.differences.len() > before {
            let mut body = json!({
                "oversell_limit": wanted_limit,
                "counts_against": wanted.counts_against,
            });
            if wanted.units != Units::None {
                body["total"] = now.number("total").into();
            }
            self.steps.push(Step {
                does: format!("change the item {}", wanted.name),
                method: "PUT",
                path: path.to_owned(),
                body: body.to_string(),
                guard: Guard::Version(now.number("version")),
            });
        }
    }

    fn total(&mut self, path: &str, wanted: &ItemWanted, now: u64, total: u32) {
        if now == u64::from(total) {
            return;
        }
        let by = i64::from(total) - i64::try_from(now).unwrap_or(i64::MAX);
        let says = format!("total {now} → {total} ({by:+})");
        self.differs(Kind::Change, format!("item {}", wanted.name), says);
        let body = json!({"by": by, "reason": REASON, "if_total": now});
        let does = format!("adjust {} by {by:+}", wanted.name);
        self.keyed(does, format!("{path}/adjust"), body.to_string(), "");
    }

    fn blocks(
        &mut self,
        path: &str,
        file: &SaleFile,
        wanted: &ItemWanted,
        now: Option<&ItemStanding>,
        lost: &HashSet<&str>,
    ) {
        let returns = file.terms.get("returns_to").and_then(|returns| returns["label"].as_str());
        let found = blocks::compare(&wanted.blocks, now, lost, returns);
        self.notes.extend(found.notes.into_iter().map(|note| format!("{}: {note}", wanted.name)));
        for one in found.moves {
            let (kind, verb) =
                if one.aside { (Kind::Add, "block") } else { (Kind::Remove, "unblock") };
            let of = format!("block {}/{}", wanted.name, one.label);
            self.differs(kind, of, one.says);
            let does = format!("{verb} units of {} under {}", wanted.name, one.label);
            self.keyed(does, format!("{path}/{verb}"), one.body.to_string(), &one.seen);
        }
    }

    pub(super) fn keyed(&mut self, does: String, path: String, body: String, seen: &str) {
        let mut hash = blake3::Hasher::new();
        for part in [path.as_str(), body.as_str(), seen] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let key = format!("sale-apply.{}", &hash.finalize().to_hex()[..32]);
        self.steps.push(Step { does, method: "POST", path, body, guard: Guard::Key(key) });
    }
}

/// What is said as one JSON object.
#[must_use]
pub fn as_value(plan: &Plan) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("differences", json!(plan.differences)),
        ("notes", json!(plan.notes)),
        ("refusals", json!(plan.refusals)),
    ])
}
