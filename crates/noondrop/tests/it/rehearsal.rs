//! The real binary: a rehearsal with a kill in the rush, and the audit and the story afterwards.

use std::process::Command;

fn noondrop(arguments: &[&str]) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_noondrop");
    Command::new(program).args(arguments).output().expect("the binary starts")
}

#[test]
fn a_rehearsal_with_a_kill_loses_nothing_and_sells_everything() {
    let home = tempfile::tempdir().expect("a directory");
    let figures = home.path().join("figures.json");
    let json = figures.to_str().expect("a path of this test");
    let output = noondrop(&[
        "rehearse",
        "--tickets",
        "400",
        "--buyers",
        "520",
        "--connections",
        "32",
        "--kill",
        "1",
        "--hold-ttl",
        "2",
        "--json",
        json,
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}\n{errors}");
    let figures = std::fs::read(&figures).expect("the figures were written");
    let figures: serde_json::Value = serde_json::from_slice(&figures).expect("they are JSON");
    assert_eq!(figures["kills"], 1);
    assert_eq!(figures["confirmed"], 400);
    let wrong = ["oversold", "lost_acknowledged", "lost_units"].map(|name| figures[name].as_u64());
    assert_eq!(wrong, [Some(0); 3]);
    assert_eq!((&figures["conserved"], &figures["audit_ok"]), (&true.into(), &true.into()));
}

#[test]
fn an_audit_of_no_store_says_where_it_looked() {
    let output = noondrop(&["audit", "--data", "/nowhere"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && errors.contains("/nowhere"), "{errors}");
}

#[test]
fn a_benchmark_counts_only_with_its_audit() {
    let output = noondrop(&["bench", "engine", "--batch", "100", "--holds", "5000", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let figures: serde_json::Value = serde_json::from_str(text.trim()).expect("one JSON object");
    let told = (&figures["bench"], &figures["errors"], &figures["audit_ok"]);
    assert_eq!(told, (&"engine".into(), &0.into(), &true.into()));
}
