//! The guide to the API against the program: its table of errors, and its examples, sent to a real server.

use std::fmt::Write as _;
use std::path::Path;

use noondrop::http::codes::CODES;
use serde_json::Value;

use crate::http_openapi::assert_checked_in;
use crate::http_world::{Ask, Seen, Served, Who};

const GUIDE: &str = "docs/API.md";
const TABLE_BEGINS: &str = "<!-- errors: made from code -->\n";
const TABLE_ENDS: &str = "<!-- end -->";
/// What the guide calls the hold of its example.
const HOLD: &str = "hold_7Q2M";
/// And its fence.
const FENCE: &str = "1824430000128";

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(GUIDE);
    std::fs::read_to_string(path).expect("the guide is checked in")
}

fn table() -> String {
    let mut text = String::from("| code | status | recorded | retry | |\n|---|---|---|---|---|\n");
    for row in CODES {
        let recorded = if row.recorded { "yes" } else { "no" };
        writeln!(
            text,
            "| [`{0}`](errors/{0}.md) | {1} | {recorded} | `{2}` | {3} |",
            row.code,
            row.status,
            row.retry.as_str(),
            row.title
        )
        .expect("writing to a string");
    }
    text
}

#[test]
fn the_guide_has_every_code() {
    let guide = guide();
    let (before, rest) = guide.split_once(TABLE_BEGINS).expect("the guide has a place for it");
    let (_, after) = rest.split_once(TABLE_ENDS).expect("the place has an end");
    let wanted = format!("{before}{TABLE_BEGINS}{}{TABLE_ENDS}{after}", table());
    assert_checked_in(GUIDE, &wanted);
}

/// One request with the answer that the guide promises.
#[derive(Debug)]
struct Example {
    who: Who,
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    promised: Vec<(String, String)>,
    answer: String,
}

fn examples(guide: &str) -> Vec<Example> {
    let blocks = guide.split("```http\n").skip(1);
    blocks.map(|block| example(block.split("```").next().unwrap_or_default())).collect()
}

fn example(block: &str) -> Example {
    let (request, answer) = block.split_once("\nHTTP/1.1 ").expect("an example has an answer");
    let (first, mut headers, body) = message(request);
    let mut words = first.split(' ');
    let method = match words.next() {
        Some("GET") => "GET",
        Some("PUT") => "PUT",
        Some("POST") => "POST",
        other => panic!("no method: {other:?}"),
    };
    let path = words.next().expect("a request has a path").to_owned();
    let place = headers.iter().position(|(name, _)| name == "Authorization");
    let who = match headers.remove(place.expect("an example says who asks")).1.as_str() {
        "Bearer nd_admin_…" => Who::Admin,
        "Bearer nd_seller_…" => Who::Seller,
        "Bearer nd_auditor_…" => Who::Auditor,
        "Bearer nd_worker_…" => Who::Worker,
        other => panic!("who is {other}?"),
    };
    let (status, promised, answer) = message(answer);
    let status = status.trim().parse().expect("a status");
    Example { who, method, path, headers, body, status, promised, answer }
}

/// First line, headers, body.
fn message(text: &str) -> (String, Vec<(String, String)>, String) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (first, headers, body.trim().to_owned())
}

/// Whether everything that is promised is there; `…` is anything.
fn fits(promised: &Value, found: &Value) -> bool {
    match (promised, found) {
        (Value::Object(promised), Value::Object(found)) => {
            promised.iter().all(|(name, value)| found.get(name).is_some_and(|it| fits(value, it)))
        }
        (Value::Array(promised), Value::Array(found)) => {
            promised.len() == found.len()
                && promised.iter().zip(found).all(|(value, it)| fits(value, it))
        }
        (Value::String(text), found) if text == "…" => !found.is_null(),
        _ => promised == found,
    }
}

/// The hold's real id and fence, once there is one, in place of the guide's.
struct Names(Option<(String, String)>);

impl Names {
    fn real(&self, text: &str) -> String {
        match &self.0 {
            Some((id, fence)) => text.replace(HOLD, id).replace(FENCE, fence),
            None => text.to_owned(),
        }
    }

    fn learn(&mut self, seen: &Seen) {
        let body = seen.json();
        if let (None, Some(id), Some(fence)) =
            (&self.0, body["id"].as_str(), body["fence"].as_u64())
        {
            self.0 = Some((id.to_owned(), fence.to_string()));
        }
    }
}

#[test]
fn the_examples_do_what_the_guide_says() {
    let served = Served::empty();
    let mut names = Names(None);
    let examples = examples(&guide());
    assert!(examples.len() >= 6, "the guide shows too little");
    for example in &examples {
        let mut ask = Ask::new(example.method, names.real(&example.path));
        for (name, value) in &example.headers {
            ask = ask.header(name, value);
        }
        let seen = served.send(example.who, &ask.raw(names.real(&example.body)));
        names.learn(&seen);
        assert_eq!(seen.status, example.status, "{example:?}: {}", seen.text());
        for (name, value) in &example.promised {
            let found = seen.header(name);
            assert!(found.is_some_and(|it| value == "…" || it == value), "{name}: {found:?}");
        }
        let promised = names.real(&example.answer);
        let promised: Value = serde_json::from_str(&promised).expect("an example's body is JSON");
        assert!(fits(&promised, &seen.json()), "{example:?}: {}", seen.text());
    }
}
