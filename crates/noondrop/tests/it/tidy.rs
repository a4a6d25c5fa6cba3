//! The house rules that a compiler does not check: which crate may know which, what core may not name, how long a file
//! may be, and that the repository speaks of itself alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Who may depend on whom, beyond tests. Arrows point one way, and nothing depends on the simulator.
const ARROWS: [(&str, &[&str]); 6] = [
    ("noondrop-core", &[]),
    ("noondrop-log", &["noondrop-core"]),
    ("noondrop-engine", &["noondrop-core", "noondrop-log"]),
    ("tower-idempotency", &[]),
    ("noondrop", &["noondrop-core", "noondrop-log", "noondrop-engine", "tower-idempotency"]),
    ("noondrop-sim", &["noondrop-core", "noondrop-log", "noondrop-engine"]),
];

/// Crates that decide or store must not learn what HTTP or a runtime is.
const NOT_BELOW_THE_PROGRAM: [&str; 6] = ["tokio", "axum", "hyper", "http", "serde_json", "clap"];

/// What core may not name: it has no clock, no chance, no IO, no threads and no waiting.
const NOT_IN_CORE: [&str; 13] = [
    "std::",
    "extern crate std",
    "async fn",
    "async move",
    ".await",
    "SystemTime",
    "Instant::",
    "getrandom",
    "rand::",
    "println!",
    "thread::",
    "HashMap",
    "unsafe ",
];

/// Longest file, tests not counted.
const FILE_LINES_MAX: usize = 500;

/// Files that may be longer, each with its reason.
const LONGER: [(&str, &str); 2] = [
    (
        "crates/noondrop-core/src/fact.rs",
        "every fact of the log stands in one list, so that nobody can miss a number that is taken",
    ),
    ("crates/noondrop-sim/src/checker.rs", "all that is checked after a step stands in one order"),
];

/// Names of places on a developer's machine: nobody else has them.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/", "home/"),
    concat!("/", "Users/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("C:", "\\Users"),
];

/// Kinds of files that are read as text.
const TEXT_ENDINGS: [&str; 9] = ["rs", "md", "toml", "json", "sh", "sql", "txt", "yml", "yaml"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace is two directories above this crate")
}

/// Every file below a directory, without what builds and tools leave behind.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).expect("a directory of the repository can be read");
    for entry in entries {
        let path = entry.expect("an entry of the repository can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let left_out = name == ".git" || name == "target" || name == "data";
            if !left_out {
                found.extend(files(&path));
            }
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn ends_with(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

/// Text that is ours: known endings, and scripts, which have none.
fn is_text(path: &Path) -> bool {
    ends_with(path, &TEXT_ENDINGS) || path.parent().is_some_and(is_of_scripts)
}

fn is_of_scripts(directory: &Path) -> bool {
    [Path::new("scripts"), Path::new(".ci")].iter().any(|known| directory.ends_with(known))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", shown(path)))
}

/// A file's lines, without its trailing test module and without comments.
fn code_lines(text: &str) -> Vec<&str> {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect()
}

/// Dependencies on workspace crates and others, tests' own not counted.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo tells about the workspace");
    let packages = metadata.packages.iter().map(|package| {
        let used =
            package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development);
        (package.name.to_string(), used.map(|one| one.name.clone()).collect())
    });
    packages.collect()
}

#[test]
fn crates_know_each_other_in_one_direction() {
    let dependencies = dependencies();
    let ours: Vec<&String> = dependencies.keys().collect();
    for (name, used) in &dependencies {
        let (_, allowed) = ARROWS
            .iter()
            .find(|(known, _)| known == name)
            .unwrap_or_else(|| panic!("{name} is new: say in ARROWS what it may depend on"));
        for other in used.iter().filter(|other| ours.contains(other)) {
            assert!(allowed.contains(&other.as_str()), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn only_the_program_knows_http_and_a_runtime() {
    for (name, used) in dependencies() {
        if matches!(name.as_str(), "noondrop-core" | "noondrop-log" | "noondrop-engine") {
            let found = used.iter().find(|other| NOT_BELOW_THE_PROGRAM.contains(&other.as_str()));
            assert_eq!(found, None, "{name} must not depend on it");
        }
    }
}

#[test]
fn core_is_pure() {
    let source = root().join("crates/noondrop-core/src");
    assert!(read(&source.join("lib.rs")).contains("\n#![no_std]\n"), "core must be no_std");
    let mut wrong = String::new();
    for path in files(&source) {
        for found in impurities(&read(&path)) {
            let _ = writeln!(wrong, "{} {found}", shown(&path));
        }
    }
    assert!(wrong.is_empty(), "core has no clock, chance, IO or waiting:\n{wrong}");
}

fn impurities(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in code_lines(text) {
        for word in NOT_IN_CORE.iter().filter(|word| line.contains(*word)) {
            found.push(format!("names {word}: {}", line.trim()));
        }
    }
    found
}

#[test]
fn an_impure_line_is_found_in_code_and_not_in_comments_or_tests() {
    assert_eq!(impurities("use std::fs;\nlet at = SystemTime::now();\n").len(), 2);
    assert_eq!(
        impurities("//! std::fs\nfn f() {}\n\n#[cfg(test)]\nmod tests { use std::fs; }\n").len(),
        0
    );
}

#[test]
fn no_file_is_too_long() {
    let mut wrong = String::new();
    for path in files(&root().join("crates")).iter().filter(|path| ends_with(path, &["rs"])) {
        let name = shown(path);
        let text = read(path);
        let lines = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(&text).lines().count();
        let is_test = name.contains("/tests/") || name.ends_with("tests.rs");
        let excused = LONGER.iter().any(|(known, _)| *known == name);
        if lines > FILE_LINES_MAX && !is_test && !excused {
            let _ = writeln!(wrong, "{name}: {lines} lines");
        }
    }
    assert!(
        wrong.is_empty(),
        "longer than {FILE_LINES_MAX} lines; split, or give a reason:\n{wrong}"
    );
}

#[test]
fn every_file_says_what_lives_in_it() {
    let sources = files(&root().join("crates"));
    let silent: Vec<String> = sources
        .iter()
        .filter(|path| ends_with(path, &["rs"]) && !read(path).starts_with("//!"))
        .map(|path| shown(path))
        .collect();
    assert!(silent.is_empty(), "these do not begin with `//!`: {silent:?}");
}

#[test]
fn nothing_names_a_place_on_one_machine() {
    let mut wrong = String::new();
    for path in files(&root()).iter().filter(|path| is_text(path)) {
        for (at, line) in read(path).lines().enumerate() {
            if MACHINE_PATHS.iter().any(|place| line.contains(place)) {
                let _ = writeln!(wrong, "{}:{}: {}", shown(path), at + 1, line.trim());
            }
        }
    }
    assert!(wrong.is_empty(), "these places exist on one machine only:\n{wrong}");
}

/// Codes without a page, and pages without a code.
///
/// For the test that knows every code: it passes those of the program's own enum, so that a new code fails until it has
/// its page.
pub fn unpaired_error_pages(codes: &[&str]) -> Vec<String> {
    let pages = error_pages();
    let without_page = codes.iter().filter(|code| !pages.iter().any(|page| page == *code));
    let without_code = pages.iter().filter(|page| !codes.contains(&page.as_str()));
    let missing = without_page.map(|code| format!("{code} has no page"));
    missing.chain(without_code.map(|page| format!("the page {page} has no code"))).collect()
}

#[test]
fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
    let pages = error_pages();
    let mut codes: Vec<&str> = pages.iter().map(String::as_str).collect();
    assert_eq!(unpaired_error_pages(&codes), Vec::<String>::new());
    codes.retain(|code| *code != "sold_out");
    codes.push("sold_in");
    assert_eq!(
        unpaired_error_pages(&codes),
        ["sold_in has no page", "the page sold_out has no code"]
    );
}

fn error_pages() -> Vec<String> {
    let pages = files(&root().join("docs/errors"));
    pages.iter().filter_map(|page| Some(page.file_stem()?.to_string_lossy().into_owned())).collect()
}

#[test]
fn all_error_pages_have_one_layout() {
    let sections = [
        "## What it means",
        "## Why it happens",
        "## What the client should do",
        "## What to tell the buyer",
        "## Fields",
    ];
    for code in error_pages() {
        let text = read(&root().join("docs/errors").join(format!("{code}.md")));
        assert!(text.starts_with(&format!("# `{code}`\n")), "{code}: the title is the code");
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(found, sections, "{code}");
        let words = ["`no`", "`same_key`", "`new_key`"];
        let retry = words.iter().find(|word| text.contains(&format!("| {word} |")));
        let retry = retry.unwrap_or_else(|| panic!("{code}: the table names no retry"));
        let advice = format!("## What the client should do\n\n{retry}: ");
        assert!(text.contains(&advice), "{code}: table and advice name the same retry");
    }
}
