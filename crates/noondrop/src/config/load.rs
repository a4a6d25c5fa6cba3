//! From layers to one configuration: defaults < file < environment variables < flags.
//!
//! Each layer carries a name, so that `check-config` can say where a value came from and an error can say what to change.
//! An unknown key is refused with the nearest known one: a misspelt bound must not silently be the default.

use std::fs;
use std::path::{Path, PathBuf};

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::DEFAULT_TOML;
use super::check;
use super::error::{ConfigError, Problem};
use super::settings::Settings;
use crate::environment::{self, Variable};

/// The file that is read where none is named.
const USUAL_FILE: &str = "noondrop.toml";
/// Settings whose values are not shown.
const HIDDEN: [&str; 2] = ["hash", "secret"];
/// Longest text that a listing shows whole.
const SHOWN_CHARS_MAX: usize = 60;
/// How alike a known key must be to be suggested, from 0 to 1.
const ALIKE_MIN: f64 = 0.8;

/// A setting that the command line overrides.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As it was typed, such as `--listen`.
    pub flag: &'static str,
    /// The setting's dotted name.
    pub setting: &'static str,
    /// The value.
    pub value: String,
}

/// Where a configuration comes from, beside the defaults.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file, which must exist.
    pub file: Option<PathBuf>,
    /// Environment variables with our prefix.
    pub variables: Vec<Variable>,
    /// Flags.
    pub flags: Vec<Flag>,
}

impl Sources {
    /// The environment, and the file that the flag names, or else `NOONDROP_CONFIG`, or else `./noondrop.toml` if there is one.
    #[must_use]
    pub fn discover(config_flag: Option<&Path>, flags: Vec<Flag>) -> Self {
        let variables = environment::variables();
        let named = config_flag.map(Path::to_path_buf).or_else(|| {
            let variable = variables.iter().find(|variable| variable.name == environment::CONFIG);
            variable.map(|variable| PathBuf::from(&variable.value))
        });
        let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|path| path.exists());
        Self { file: named.or_else(usual), variables, flags }
    }
}

/// A configuration with the origin of each of its values.
#[derive(Debug)]
pub struct Loaded {
    /// The values, within their bounds.
    pub settings: Settings,
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
    figment: Figment,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Dotted name, such as `server.listen` or `principals.0.role`.
    pub setting: String,
    /// The value as TOML; a secret is hidden, a long text cut.
    pub value: String,
    /// Which layer it came from.
    pub origin: String,
}

/// Loads and checks a configuration.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let defaults = defaults();
    let mut figment = Figment::from(Layer::new("the defaults", defaults.clone()));
    if let Some(path) = &sources.file {
        figment = figment.merge(file_layer(path)?);
    }
    for (origin, setting, text) in overrides(sources)? {
        let value = value_like(defaults_value(&defaults, &setting), &text);
        figment = figment.merge(Layer::new(origin, nested(&setting, value)));
    }
    let settings: Settings =
        figment.extract().map_err(|error| ConfigError::Invalid(explain(error, &defaults)))?;
    let problems: Vec<Problem> =
        check::check(&settings).into_iter().map(|problem| with_origin(problem, &figment)).collect();
    if !problems.is_empty() {
        return Err(ConfigError::Invalid(problems));
    }
    Ok(Loaded { settings, file: sources.file.clone(), figment })
}

impl Loaded {
    /// Every value in force, in order of name, with its origin.
    #[must_use]
    pub fn listing(&self) -> Vec<Listed> {
        let mut lines = Vec::new();
        if let Ok(Value::Dict(_, dict)) = self.figment.extract::<Value>() {
            self.list_dict("", &dict, &mut lines);
        }
        lines
    }

    fn list_dict(&self, prefix: &str, dict: &Dict, lines: &mut Vec<Listed>) {
        for (key, value) in dict {
            self.list_value(&joined(prefix, key), value, lines);
        }
    }

    fn list_value(&self, name: &str, value: &Value, lines: &mut Vec<Listed>) {
        match value {
            Value::Dict(_, dict) => self.list_dict(name, dict, lines),
            Value::Array(_, items) if !items.is_empty() => {
                for (place, item) in items.iter().enumerate() {
                    self.list_value(&joined(name, &place.to_string()), item, lines);
                }
            }
            _ => lines.push(Listed {
                setting: name.to_owned(),
                value: shown(name, value),
                origin: origin(&self.figment, value.tag()),
            }),
        }
    }
}

/// One layer: a name that people understand, and values.
struct Layer {
    name: String,
    dict: Dict,
}

impl Layer {
    fn new(name: impl Into<String>, dict: Dict) -> Self {
        Self { name: name.into(), dict }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

fn defaults() -> Dict {
    Toml::from_str(DEFAULT_TOML).expect("the built-in defaults are valid TOML: a test reads them")
}

fn file_layer(path: &Path) -> Result<Layer, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
    let dict = Toml::from_str::<Dict>(&text).map_err(|error| ConfigError::Syntax {
        path: path.to_path_buf(),
        line: error.span().and_then(|span| text.get(..span.start)).map(line_after),
        message: error.message().to_owned(),
    })?;
    Ok(Layer::new(path.display().to_string(), dict))
}

fn line_after(before: &str) -> usize {
    before.matches('\n').count() + 1
}

/// Every override: origin, dotted setting, text.
fn overrides(sources: &Sources) -> Result<Vec<(String, String, String)>, ConfigError> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for variable in sources.variables.iter().filter(|one| !environment::is_no_setting(&one.name)) {
        match setting_of(&variable.name) {
            Some(setting) => {
                let origin = format!("environment variable {}", variable.name);
                found.push((origin, setting, variable.value.clone()));
            }
            None => problems.push(Problem::new(
                variable.name.clone(),
                "names no setting; write NOONDROP_, the section, two underscores, the setting, \
                 as in NOONDROP_SERVER__LISTEN",
            )),
        }
    }
    for flag in &sources.flags {
        found.push((format!("flag {}", flag.flag), flag.setting.to_owned(), flag.value.clone()));
    }
    if problems.is_empty() { Ok(found) } else { Err(ConfigError::Invalid(problems)) }
}

/// `server.listen` from `NOONDROP_SERVER__LISTEN`. Lists and their members are for the file.
fn setting_of(variable: &str) -> Option<String> {
    let name = variable.strip_prefix(environment::PREFIX)?;
    let (section, setting) = name.split_once("__")?;
    let plain = |part: &str| !part.is_empty() && !part.contains("__");
    (plain(section) && plain(setting)).then(|| format!("{section}.{setting}").to_lowercase())
}

fn nested(setting: &str, value: Value) -> Dict {
    match figment::util::nest(setting, value) {
        Value::Dict(_, dict) => dict,
        _ => Dict::new(),
    }
}

fn defaults_value<'a>(defaults: &'a Dict, setting: &str) -> Option<&'a Value> {
    let (section, key) = setting.split_once('.')?;
    defaults.get(section)?.as_dict()?.get(key)
}

/// A text as the type that the default has, so that a directory may be called `123`. What does not fit stays a text,
/// and is then refused by name.
fn value_like(default: Option<&Value>, text: &str) -> Value {
    let parsed = match default {
        Some(Value::Num(..)) => text.parse::<i64>().ok().map(Value::from),
        Some(Value::Bool(..)) => text.parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::from(text))
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn shown(name: &str, value: &Value) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    if HIDDEN.contains(&last) {
        return "(hidden)".to_owned();
    }
    match value {
        Value::String(_, text) => shown_text(text),
        Value::Bool(_, yes) => yes.to_string(),
        Value::Num(_, number) => {
            number.to_i128().map_or_else(|| format!("{:?}", number.to_f64()), |n| n.to_string())
        }
        Value::Array(..) => "[]".to_owned(),
        _ => format!("{value:?}"),
    }
}

fn shown_text(text: &str) -> String {
    let cut = text.chars().count() > SHOWN_CHARS_MAX || text.contains('\n');
    if !cut {
        return format!("{text:?}");
    }
    let line: String =
        text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARS_MAX).collect();
    format!("{line:?} …")
}

fn origin(figment: &Figment, tag: Tag) -> String {
    figment
        .get_metadata(tag)
        .map_or_else(|| "the defaults".to_owned(), |found| found.name.to_string())
}

fn with_origin(problem: Problem, figment: &Figment) -> Problem {
    let found = figment.find_metadata(&problem.setting).map(|metadata| metadata.name.to_string());
    Problem { origin: found, ..problem }
}

/// What the reader of the values found wrong, in our words.
fn explain(error: figment::Error, defaults: &Dict) -> Vec<Problem> {
    error.into_iter().map(|one| explain_one(&one, defaults)).collect()
}

fn explain_one(error: &figment::Error, defaults: &Dict) -> Problem {
    use figment::error::Kind;
    let path = error.path.join(".");
    let (setting, message) = match &error.kind {
        Kind::UnknownField(name, known) => {
            (unknown_name(&path, name), unknown_message(&path, name, known, defaults))
        }
        Kind::MissingField(name) => (joined(&path, name), "is missing".to_owned()),
        Kind::UnknownVariant(name, known) => {
            (path, format!("is {name:?}; it must be one of {}", known.join(", ")))
        }
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            (path, format!("must be {expected}"))
        }
        other => (path, format!("is not usable: {other}")),
    };
    let origin = error.metadata.as_ref().map(|metadata| metadata.name.to_string());
    Problem { setting, message, origin }
}

/// The path of an unknown key's error may or may not end with the key itself.
fn unknown_name(path: &str, name: &str) -> String {
    if path.rsplit('.').next() == Some(name) { path.to_owned() } else { joined(path, name) }
}

fn unknown_message(path: &str, name: &str, known: &[&str], defaults: &Dict) -> String {
    let section = path.strip_suffix(name).unwrap_or(path).trim_end_matches('.');
    let nearest = nearest(name, known).map(|key| joined(section, key));
    match nearest.or_else(|| elsewhere(name, defaults)) {
        Some(key) => format!("is not a setting; did you mean {key}?"),
        None => format!("is not a setting; known here: {}", known.join(", ")),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|key| (strsim::jaro_winkler(name, key), *key))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

/// The same key in another section.
fn elsewhere(name: &str, defaults: &Dict) -> Option<String> {
    defaults.iter().find_map(|(section, value)| {
        value.as_dict()?.contains_key(name).then(|| joined(section, name))
    })
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
