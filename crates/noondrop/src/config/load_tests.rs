//! Layers, origins, and what is refused.

use std::fs;

use super::*;
use crate::config::LogFormat;

fn with_file(text: &str) -> Result<Loaded, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("noondrop.toml");
    fs::write(&path, text).unwrap();
    load(&Sources { file: Some(path), ..Sources::default() })
}

fn with_variable(name: &str, value: &str) -> Result<Loaded, ConfigError> {
    load(&Sources { variables: vec![Variable::new(name, value)], ..Sources::default() })
}

fn refused(result: Result<Loaded, ConfigError>) -> String {
    result.expect_err("must be refused").to_string()
}

#[test]
fn the_default_file_is_the_default_and_within_every_bound() {
    let loaded = load(&Sources::default()).unwrap();
    assert_eq!(loaded.settings.server.listen.to_string(), "127.0.0.1:7878");
    assert_eq!(loaded.settings.server.body_bytes_max, 65_536);
    assert_eq!(loaded.settings.retention.keys_max, 16_000_000);
    assert_eq!(loaded.settings.log.format, LogFormat::Text);
    assert!(loaded.settings.principals.is_empty() && loaded.settings.jwt.is_empty());
    assert!(loaded.listing().iter().all(|line| line.origin == "the defaults"));
}

#[test]
fn flags_beat_variables_beat_the_file_beats_the_defaults() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("noondrop.toml");
    let text = "[server]\nlisten = \"127.0.0.1:1\"\nthreads = 1\nconnections_max = 1\n";
    fs::write(&path, text).unwrap();
    let flag = Flag { flag: "--listen", setting: "server.listen", value: "127.0.0.1:3".into() };
    let variables = vec![
        Variable::new("NOONDROP_SERVER__LISTEN", "127.0.0.1:2"),
        Variable::new("NOONDROP_SERVER__THREADS", "2"),
    ];
    let loaded = load(&Sources { file: Some(path.clone()), variables, flags: vec![flag] }).unwrap();
    let server = &loaded.settings.server;
    assert_eq!((server.listen.port(), server.threads, server.connections_max), (3, 2, 1));
    assert_eq!(server.header_timeout_ms, 5_000);
    let listing = loaded.listing();
    let origin =
        |setting: &str| listing.iter().find(|line| line.setting == setting).unwrap().origin.clone();
    assert_eq!(origin("server.listen"), "flag --listen");
    assert_eq!(origin("server.threads"), "environment variable NOONDROP_SERVER__THREADS");
    assert_eq!(origin("server.connections_max"), path.display().to_string());
    assert_eq!(origin("server.header_timeout_ms"), "the defaults");
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let error = refused(with_file("[server]\nlisen = \"127.0.0.1:1\"\n"));
    assert!(
        error.contains("server.lisen is not a setting; did you mean server.listen?"),
        "{error}"
    );
    assert!(error.contains("noondrop.toml"), "{error}");
    let error = refused(with_file("[sever]\n"));
    assert!(error.contains("sever is not a setting; did you mean server?"), "{error}");
    let error = refused(with_file("spin_us = 3\n"));
    assert!(error.contains("did you mean engine.spin_us?"), "{error}");
    let error = refused(with_file("[log]\nzebra = 3\n"));
    assert!(error.contains("log.zebra is not a setting; known here: format, level"), "{error}");
}

#[test]
fn an_unknown_key_deep_inside_is_refused_too() {
    let error = refused(with_file(
        "[[principals]]\nname = \"app\"\nrole = \"seller\"\nsecrets = [{ hsh = \"blake3:00\" }]\n",
    ));
    assert!(error.contains("principals.0.secrets.0.hsh is not a setting"), "{error}");
    assert!(error.contains("did you mean principals.0.secrets.0.hash?"), "{error}");
}

#[test]
fn a_variable_that_names_no_setting_is_refused() {
    let error = refused(with_variable("NOONDROP_SERVER__LISEN", "127.0.0.1:1"));
    assert!(
        error.contains("server.lisen is not a setting; did you mean server.listen?"),
        "{error}"
    );
    assert!(error.contains("environment variable NOONDROP_SERVER__LISEN"), "{error}");
    for name in ["NOONDROP_SERVER_LISTEN", "NOONDROP_LISTEN", "NOONDROP_A__B__C", "NOONDROP___X"] {
        let error = refused(with_variable(name, "127.0.0.1:1"));
        assert!(error.contains(name) && error.contains("two underscores"), "{error}");
    }
}

#[test]
fn variables_of_the_tests_are_left_alone() {
    for name in ["NOONDROP_TEST_POSTGRES", "NOONDROP_SLOW_TESTS", "NOONDROP_CONFIG"] {
        with_variable(name, "1").unwrap();
    }
}

#[test]
fn a_variable_takes_the_type_of_its_setting() {
    let loaded = with_variable("NOONDROP_STORE__PATH", "123").unwrap();
    assert_eq!(loaded.settings.store.path, Path::new("123"));
    assert!(
        with_variable("NOONDROP_SERVER__PUBLIC_METRICS", "true")
            .unwrap()
            .settings
            .server
            .public_metrics
    );
    let error = refused(with_variable("NOONDROP_SERVER__THREADS", "many"));
    assert!(error.contains("server.threads must be"), "{error}");
    let error = refused(with_variable("NOONDROP_SERVER__LISTEN", "localhost:80"));
    assert!(error.contains("server.listen must be an IP address and a port"), "{error}");
    let error = refused(with_variable("NOONDROP_LOG__FORMAT", "xml"));
    assert!(error.contains("log.format") && error.contains("text, json"), "{error}");
}

#[test]
fn a_number_out_of_bounds_is_refused_with_its_bounds_and_origin() {
    let error = refused(with_variable("NOONDROP_SERVER__REQUEST_TIMEOUT_MS", "0"));
    let wanted = "server.request_timeout_ms is 0; it must be from 100 to 600000 \
                  (from environment variable NOONDROP_SERVER__REQUEST_TIMEOUT_MS)";
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn all_problems_are_told_at_once() {
    let error = refused(with_file(
        "[server]\nconnections_max = 0\n[retention]\nrefusal_keys_seconds = 59\n[log]\nlevel = \"loud\"\n",
    ));
    for setting in ["server.connections_max", "retention.refusal_keys_seconds", "log.level"] {
        assert!(error.contains(setting), "{error}");
    }
}

#[test]
fn what_is_no_toml_is_refused_by_line_and_not_quoted() {
    let error = refused(with_file("[server]\nthreads = 1\nsecret hunter2\n"));
    assert!(error.contains("line 3") && !error.contains("hunter2"), "{error}");
}

fn principal(lines: &str) -> Result<Loaded, ConfigError> {
    with_file(&format!("[[principals]]\nname = \"app\"\n{lines}\n"))
}

#[test]
fn principals_are_checked() {
    let hash = format!("secrets = [{{ hash = \"blake3:{}\" }}]", "0".repeat(64));
    principal(&format!("role = \"seller\"\n{hash}")).unwrap();
    let cases = [
        (format!("role = \"king\"\n{hash}"), "operator, admin, seller, buyer, auditor, worker"),
        (format!("role = \"buyer\"\n{hash}"), "principals.0.role is buyer"),
        (format!("role = \"operator\"\nshop = \"main\"\n{hash}"), "belongs to no shop"),
        (format!("role = \"seller\"\nshop = \"a/b\"\n{hash}"), "principals.0.shop is \"a/b\""),
        ("role = \"seller\"".to_owned(), "principals.0.secrets is empty"),
        ("role = \"seller\"\nsecrets = [{}]".to_owned(), "either a hash or a secret_file"),
        ("role = \"seller\"\nsecrets = [{ hash = \"x\" }]".to_owned(), "64 hexadecimal digits"),
    ];
    for (lines, wanted) in cases {
        let error = refused(principal(&lines));
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn a_name_counts_once_in_a_shop() {
    let one = format!(
        "[[principals]]\nname = \"app\"\nrole = \"seller\"\nsecrets = [{{ hash = \"blake3:{}\" }}]\n",
        "0".repeat(64)
    );
    let other = one.replace("role", "shop = \"other\"\nrole");
    with_file(&format!("{one}{other}")).unwrap();
    let error =
        refused(with_file(&format!("{one}{}", one.replace("role", "shop = \"main\"\nrole"))));
    assert!(error.contains("principals.1.name is \"app\" twice"), "{error}");
}

#[test]
fn an_end_without_quotes_is_explained() {
    let hash = "0".repeat(64);
    let error = refused(principal(&format!(
        "role = \"seller\"\nsecrets = [{{ hash = \"blake3:{hash}\", expires = 2027-01-31T00:00:00Z }}]"
    )));
    assert!(error.contains("expires must be a time in quotes"), "{error}");
}

#[test]
fn issuers_are_checked() {
    let jwt = |keys: &str| {
        with_file(&format!("[[jwt]]\nissuer = \"i\"\naudience = \"a\"\nkeys = [{keys}]\n"))
    };
    jwt("{ kid = \"1\", alg = \"HS256\", secret = \"s\" }, { kid = \"2\", alg = \"RS256\", public_key_file = \"f\" }")
        .unwrap();
    let cases = [
        ("", "jwt.0.keys is empty"),
        ("{ kid = \"1\", alg = \"none\", secret = \"s\" }", "RS256, ES256, EdDSA, HS256"),
        ("{ kid = \"1\", alg = \"HS256\", public_key = \"p\" }", "exactly one of secret"),
        ("{ kid = \"1\", alg = \"RS256\", secret = \"s\" }", "exactly one of public_key"),
        (
            "{ kid = \"1\", alg = \"RS256\", public_key = \"p\", public_key_file = \"f\" }",
            "exactly one",
        ),
        ("{ kid = \"\", alg = \"HS256\", secret = \"s\" }", "jwt.0.keys.0.kid has 0 bytes"),
        (
            "{ kid = \"1\", alg = \"HS256\", secret = \"s\" }, { kid = \"1\", alg = \"HS256\", secret = \"t\" }",
            "jwt.0.keys.1.kid is \"1\" twice",
        ),
    ];
    for (keys, wanted) in cases {
        let error = refused(jwt(keys));
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn a_listing_hides_secrets() {
    let loaded = with_file(&format!(
        "[[principals]]\nname = \"app\"\nrole = \"seller\"\nsecrets = [{{ hash = \"blake3:{}\" }}]\n\
         [[jwt]]\nissuer = \"i\"\naudience = \"a\"\nkeys = [{{ kid = \"1\", alg = \"HS256\", secret = \"hunter2\" }}]\n",
        "7".repeat(64)
    ))
    .unwrap();
    let listing = loaded.listing();
    let value =
        |setting: &str| listing.iter().find(|line| line.setting == setting).unwrap().value.clone();
    assert_eq!(value("principals.0.secrets.0.hash"), "(hidden)");
    assert_eq!(value("jwt.0.keys.0.secret"), "(hidden)");
    assert_eq!(value("principals.0.role"), "\"seller\"");
    let all = format!("{listing:?}{:?}", loaded.settings);
    assert!(!all.contains("hunter2") && !all.contains("7777"), "{all}");
}
