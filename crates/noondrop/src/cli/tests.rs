//! The command line as its users see it: what is parsed, what is printed, what is refused.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use super::*;
use crate::auth::Secret;

fn told(arguments: &[&str]) -> Result<String, String> {
    let cli = parse([&["noondrop"], arguments].concat()).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    run(cli, &mut out).map_err(|failure| chain(failure.as_ref()))?;
    Ok(String::from_utf8(out).unwrap())
}

fn file(directory: &Path, text: &str) -> String {
    let path = directory.join("noondrop.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The part of `principal add` that is for pasting, and the secret.
fn added(arguments: &[&str]) -> (String, Secret) {
    let text = told(&[&["principal", "add"], arguments].concat()).unwrap();
    let secret = text.lines().find_map(|line| Secret::parse(line.trim())).unwrap();
    let begin = text.find("[[principals]]").unwrap();
    let end = text.find("\nIf the principal").unwrap();
    (text[begin..end].to_owned(), secret)
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_verb_says_what_it_works_on() {
    let words = [
        "orks on the store",
        "sks a running server",
        "configuration alone",
        "orks on nothing",
        "orks on a throw-away store",
    ];
    for verb in Cli::command().get_subcommands() {
        let about = verb.get_about().unwrap().to_string();
        assert!(words.iter().any(|word| about.contains(word)), "{}: {about}", verb.get_name());
    }
}

#[test]
fn what_principal_add_prints_can_be_pasted_and_used() {
    let (lines, secret) = added(&["app", "--role", "seller", "--expires", "2999-01-01T00:00:00Z"]);
    let home = tempfile::tempdir().unwrap();
    let file = file(home.path(), &lines);
    let list = told(&["principal", "list", "--config", &file]).unwrap();
    assert!(list.contains("app") && list.contains("seller") && list.contains("1 live"), "{list}");
    let shown = told(&["check-config", "--config", &file]).unwrap();
    assert!(!shown.contains(&secret.hash().to_string()), "{shown}");
}

#[test]
fn a_secret_is_never_the_same_twice() {
    let hashes = [added(&["app", "--role", "admin"]), added(&["app", "--role", "admin"])];
    assert_ne!(hashes[0].1.reveal(), hashes[1].1.reveal());
}

#[test]
fn principal_add_refuses_what_could_not_count() {
    let wrong: [&[&str]; 5] = [
        &["app", "--role", "buyer"],
        &["a b", "--role", "seller"],
        &["app", "--role", "seller", "--shop", "a/b"],
        &["app", "--role", "operator", "--shop", "main"],
        &["app", "--role", "seller", "--expires", "tomorrow"],
    ];
    for arguments in wrong {
        assert!(told(&[&["principal", "add"], arguments].concat()).is_err(), "{arguments:?}");
    }
}

#[test]
fn check_config_names_the_origin_of_each_value() {
    let home = tempfile::tempdir().unwrap();
    let file = file(home.path(), "[server]\nthreads = 3\n");
    let shown = told(&["check-config", "--config", &file]).unwrap();
    let line = |setting: &str| {
        shown.lines().find(|line| line.starts_with(setting)).unwrap_or_default().to_owned()
    };
    assert!(line("server.threads = 3 ").ends_with(&format!("# {file}")), "{shown}");
    assert!(line("server.body_bytes_max = 65536").ends_with("# the defaults"), "{shown}");
}

#[test]
fn check_config_refuses_an_open_address_that_nobody_guards() {
    let home = tempfile::tempdir().unwrap();
    let file = file(home.path(), "[server]\nlisten = \"0.0.0.0:7878\"\n");
    let error = told(&["check-config", "--config", &file]).unwrap_err();
    assert!(error.contains("server.listen") && error.contains("principal add"), "{error}");
}

#[test]
fn a_file_that_is_named_must_exist() {
    let error = told(&["check-config", "--config", "/nowhere/noondrop.toml"]).unwrap_err();
    assert!(error.contains("could not read /nowhere/noondrop.toml: "), "{error}");
}

#[test]
fn completions_name_every_verb() {
    let script = told(&["completions", "bash"]).unwrap();
    for verb in Cli::command().get_subcommands() {
        assert!(script.contains(verb.get_name()), "{}", verb.get_name());
    }
}

#[test]
fn serve_prepares_an_admin_on_loopback() {
    let home = tempfile::tempdir().unwrap();
    let options = serve::Options {
        config: ConfigArguments { config: Some(file(home.path(), "").into()) },
        data: Some(home.path().join("data")),
        listen: Some("127.0.0.1:0".to_owned()),
        dev: false,
        accept_loss: false,
        bench_routes: false,
    };
    let prepared = serve::prepare(&options).unwrap();
    assert!(prepared.admin.unwrap().path().starts_with(home.path().join("data")));
    assert_eq!(prepared.loaded.settings.server.listen.port(), 0);
    let listing = prepared.loaded.listing();
    let listen = listing.iter().find(|line| line.setting == "server.listen").unwrap();
    assert_eq!(listen.origin, "flag --listen");
}

#[test]
fn serve_makes_no_admin_beside_configured_principals() {
    let (lines, _) = added(&["app", "--role", "admin"]);
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let options = serve::Options {
        config: ConfigArguments { config: Some(file(home.path(), &lines).into()) },
        data: Some(data.clone()),
        ..serve::Options::default()
    };
    assert!(serve::prepare(&options).unwrap().admin.is_none());
    assert!(!data.exists());
}
