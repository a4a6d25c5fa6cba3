//! The program's only look at its environment variables, so that one file says which of them matter.
//!
//! | variable | what it does |
//! |---|---|
//! | `NOONDROP_CONFIG` | the configuration file, where no `--config` names one |
//! | `NOONDROP_URL`, `NOONDROP_SECRET`, `NOONDROP_SECRET_FILE` | which server `sale` asks, and as whom |
//! | `NOONDROP_<SECTION>__<SETTING>` | overrides one setting |
//! | `NOONDROP_TEST_…`, `NOONDROP_SLOW_TESTS` | read by the tests only |
//!
//! What a variable means is decided where it is used; here they are only collected.

/// The prefix of every variable that is ours.
pub const PREFIX: &str = "NOONDROP_";
/// Names the configuration file.
pub const CONFIG: &str = "NOONDROP_CONFIG";
/// The server that `sale` asks, where no `--url` names one.
pub const URL: &str = "NOONDROP_URL";
/// The secret that it asks with, where no `--secret-file` has one.
pub const SECRET: &str = "NOONDROP_SECRET";
/// A file that has the secret.
pub const SECRET_FILE: &str = "NOONDROP_SECRET_FILE";
/// Begins a variable that only tests read.
pub const TEST_PREFIX: &str = "NOONDROP_TEST_";
/// Turns the slow tests on.
pub const SLOW_TESTS: &str = "NOONDROP_SLOW_TESTS";

/// One environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its whole name.
    pub name: String,
    /// Its value; parts that are not UTF-8 are replaced, and then refused where the value is parsed.
    pub value: String,
}

impl Variable {
    /// A variable from its name and value.
    #[must_use]
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

/// Every variable whose name begins with [`PREFIX`], in order of name.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one home of environment variables")]
pub fn variables() -> Vec<Variable> {
    let mut ours: Vec<Variable> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            Some(Variable { name, value: value.to_string_lossy().into_owned() })
        })
        .collect();
    ours.sort_by(|a, b| a.name.cmp(&b.name));
    ours
}

/// Whether a variable is ours without being a setting.
#[must_use]
pub fn is_no_setting(name: &str) -> bool {
    [CONFIG, URL, SECRET, SECRET_FILE, SLOW_TESTS].contains(&name) || name.starts_with(TEST_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_read_is_no_setting() {
        for name in [
            "NOONDROP_CONFIG",
            "NOONDROP_SECRET",
            "NOONDROP_URL",
            "NOONDROP_SLOW_TESTS",
            "NOONDROP_TEST_POSTGRES",
        ] {
            assert!(is_no_setting(name), "{name}");
        }
        assert!(!is_no_setting("NOONDROP_SERVER__LISTEN"));
    }
}
