//! The description of the API against the file that is checked in, and against the router that serves.

use std::collections::BTreeSet;
use std::path::Path;

use noondrop::http::openapi;
use serde_json::Value;

use crate::http_world::{Ask, Who, World};

const ROUTES: &str = include_str!("../../src/http.rs");

/// Whether files that are made from code are to be written anew.
pub fn is_updating() -> bool {
    let variables = noondrop::environment::variables();
    variables.iter().any(|variable| variable.name == "NOONDROP_UPDATE")
}

/// Compares a made file with what is checked in, or writes it.
#[track_caller]
pub fn assert_checked_in(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if is_updating() {
        std::fs::write(&path, text).expect("the repository can be written");
    }
    let known = std::fs::read_to_string(&path).expect("the file is checked in");
    assert_eq!(known, text, "made from code: run the tests once with NOONDROP_UPDATE=1");
}

/// Method and path of everything that is described.
fn described() -> Vec<(&'static str, String)> {
    let document = openapi::document();
    let paths = document["paths"].as_object().expect("paths are an object");
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods").keys();
        methods.map(move |method| match method.as_str() {
            "get" => ("GET", path.clone()),
            "put" => ("PUT", path.clone()),
            "post" => ("POST", path.clone()),
            other => panic!("{other} {path}: no route has this method"),
        })
    });
    all.collect()
}

/// The paths of the router, from its source: it does not tell them.
fn routed() -> BTreeSet<String> {
    let item = "/v1/sales/{sale}/items/{item}";
    let routes = ROUTES.split(".route(").skip(1).map(|rest| {
        let first = rest.split(',').next().unwrap_or_default().trim();
        let first = first.trim_start_matches("&format!(").trim_matches(['(', ')', '"']);
        if first == "item" {
            item.to_owned()
        } else {
            let path = first.replace("{item}/", &format!("{item}/"));
            path.replace("{{", "{").replace("}}", "}")
        }
    });
    routes.filter(|path| path != "/v1/bench/bare").collect()
}

#[test]
fn the_description_is_checked_in() {
    let text = serde_json::to_string_pretty(&openapi::document()).expect("a value is JSON");
    assert_checked_in("openapi.json", &format!("{text}\n"));
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let described: BTreeSet<String> = described().into_iter().map(|(_, path)| path).collect();
    assert_eq!(described, routed());
}

#[test]
fn every_described_method_is_served_and_no_other() {
    let world = World::with_floor(1);
    let described = described();
    let paths: BTreeSet<&String> = described.iter().map(|(_, path)| path).collect();
    for path in paths {
        let real = path.replace("{sale}", "noon").replace("{item}", "floor");
        let real = real.replace("{shop}", "main").replace("{step}", "publish");
        let real = real.replace("{id}", "hold_1");
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
            let seen = world.send(Who::Operator, &Ask::new(method, &real));
            let code = serde_json::from_slice::<Value>(&seen.body);
            let code = code.map(|body| body["code"].clone()).unwrap_or_default();
            if described.contains(&(method, path.clone())) {
                assert_ne!(code, "not_found", "{method} {path}");
                assert_ne!(seen.status, 405, "{method} {path}");
            } else {
                assert_eq!(seen.status, 405, "{method} {path} is served and not described");
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere_and_no_operation_has_the_name_of_another() {
    let document = openapi::document();
    let mut references = Vec::new();
    let mut ids = Vec::new();
    walk(&document, &mut references, &mut ids);
    for reference in references {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

fn walk(value: &Value, references: &mut Vec<String>, ids: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("$ref", Value::String(text)) => references.push(text.clone()),
                    ("operationId", Value::String(text)) => ids.push(text.clone()),
                    _ => walk(member, references, ids),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, references, ids)),
        _ => {}
    }
}

#[test]
fn the_server_hands_the_file_out() {
    let world = World::empty();
    let seen = world.send(Who::Nobody, &crate::http_world::get("/openapi.json")).done(200);
    assert_eq!(seen.text(), openapi::TEXT);
}
