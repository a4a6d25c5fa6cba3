//! A sale described in TOML: what may stand there, its bounds, and errors that name file, line and column.
//!
//! What only the server can know (whether units are held, how many labels the sale has used) is left to the server.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use noondrop_core::limits::{TEXT_BYTES_MAX, TOTAL_MAX, TTL_SECONDS_MAX};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;

use super::blocks::{self, BlockWanted};
use super::seats::{self, Seat};
use crate::http::define::{EXTENSIONS, HOLD_SECONDS};
use crate::http::render::time_text;

/// Why a file does not describe a sale.
#[derive(Debug, PartialEq, Eq)]
pub struct FileError {
    file: PathBuf,
    place: Option<String>,
    what: String,
}

impl FileError {
    /// About all of it.
    #[must_use]
    pub fn whole(file: &Path, what: String) -> Self {
        Self { file: file.to_owned(), place: None, what }
    }

    /// About a line.
    #[must_use]
    pub fn line(file: &Path, line: u64, what: String) -> Self {
        Self { place: Some(format!("line {line}")), ..Self::whole(file, what) }
    }

    /// About a column of a line, by its name or number.
    #[must_use]
    pub fn column(file: &Path, line: u64, column: impl fmt::Display, what: String) -> Self {
        Self { place: Some(format!("line {line}, column {column}")), ..Self::whole(file, what) }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, what } = self;
        match place {
            Some(place) => write!(f, "{}, {place}: {what}", file.display()),
            None => write!(f, "{} {what}", file.display()),
        }
    }
}

impl Error for FileError {}

/// A sale as a file describes it.
#[derive(Clone, Debug)]
pub struct SaleFile {
    /// Its name.
    pub sale: String,
    /// Its terms with their wire names, each of them: what the file leaves out has its default.
    pub terms: Map<String, Value>,
    /// Its items; one comes after those that it counts against.
    pub items: Vec<ItemWanted>,
    /// Whether it is to be published.
    pub published: bool,
}

/// An item of it.
#[derive(Clone, Debug)]
pub struct ItemWanted {
    /// Its name.
    pub name: String,
    /// Its own units.
    pub units: Units,
    /// How many units more than there are may be sold.
    pub oversell_limit: u32,
    /// The items that it takes from, too.
    pub counts_against: Vec<String>,
    /// Units set aside.
    pub blocks: Vec<BlockWanted>,
}

/// The units of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Units {
    /// It has none and only takes from others.
    None,
    /// So many.
    Total(u32),
    /// Seats.
    Seats(Vec<Seat>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaleTable {
    sale: Spanned<String>,
    title: Option<Spanned<String>>,
    opens_at: Option<Spanned<Time>>,
    closes_at: Option<Spanned<Time>>,
    hold_seconds: Option<Spanned<i64>>,
    hold_seconds_max: Option<Spanned<i64>>,
    hold_chain_seconds_max: Option<Spanned<i64>>,
    extensions_max: Option<Spanned<i64>>,
    live_holds_per_buyer: Option<Spanned<i64>>,
    #[serde(default)]
    limits: Vec<LimitTable>,
    returns_to: Option<ReturnsTable>,
    state: Option<Spanned<String>>,
    #[serde(default)]
    items: Vec<ItemTable>,
}

/// A time, as TOML has it or as JSON does.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a time with its offset, such as 2027-01-31T11:00:00Z")]
enum Time {
    Toml(toml::value::Datetime),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitTable {
    name: Spanned<String>,
    #[serde(default)]
    items: Vec<Spanned<String>>,
    per_buyer: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReturnsTable {
    label: Spanned<String>,
    #[serde(default)]
    lapsed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemTable {
    item: Spanned<String>,
    total: Option<Spanned<i64>>,
    seats: Option<Spanned<String>>,
    oversell_limit: Option<Spanned<i64>>,
    #[serde(default)]
    counts_against: Vec<Spanned<String>>,
    #[serde(default)]
    blocks: Vec<blocks::BlockTable>,
}

/// The text of a file, to say where in it something stands.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    /// An error about a place.
    pub(super) fn at(&self, span: &Range<usize>, what: String) -> FileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |begin| begin.chars().count()) + 1;
        FileError::column(self.path, line as u64, column, what)
    }

    /// A name.
    pub(super) fn name(&self, field: &str, text: &Spanned<String>) -> Result<String, FileError> {
        let wrong =
            |bound| self.at(&text.span(), format!("{field}: {bound}, not {:?}", text.get_ref()));
        seats::name(text.get_ref()).map_err(wrong)?;
        Ok(text.get_ref().clone())
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &self,
        field: &str,
        number: &Spanned<i64>,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, FileError> {
        let found = u32::try_from(*number.get_ref()).ok().filter(|number| bounds.contains(number));
        found.ok_or_else(|| {
            let (least, most, is) = (bounds.start(), bounds.end(), number.get_ref());
            self.at(&number.span(), format!("{field}: {least} to {most}, not {is}"))
        })
    }

    fn optional(
        &self,
        field: &str,
        number: Option<&Spanned<i64>>,
        bounds: std::ops::RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, FileError> {
        number.map_or(Ok(default), |number| self.number(field, number, bounds))
    }

    fn time(&self, field: &str, time: Option<&Spanned<Time>>) -> Result<Value, FileError> {
        let Some(time) = time else { return Ok(Value::Null) };
        let text = match time.get_ref() {
            Time::Text(text) => text.clone(),
            Time::Toml(time) => time.to_string(),
        };
        let parsed = text.parse::<jiff::Timestamp>().ok();
        let ms = parsed.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        let ms = ms.ok_or_else(|| {
            let bound = "a time with its offset, such as 2027-01-31T11:00:00Z";
            self.at(&time.span(), format!("{field}: {bound}, not {text}"))
        })?;
        Ok(time_text(noondrop_core::Timestamp(ms)).into())
    }
}

/// Reads a sale and its seats. `seats` takes the place of the file that the only item of seats names.
pub fn read(path: &Path, seats: Option<&Path>) -> Result<SaleFile, FileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| FileError::whole(path, format!("could not be read: {error}")))?;
    parse(path, &text, seats)
}

fn parse(path: &Path, text: &str, seats: Option<&Path>) -> Result<SaleFile, FileError> {
    let source = Source { path, text };
    let table: SaleTable = toml::from_str(text).map_err(|error| {
        let what = error.message().to_owned();
        match error.span() {
            Some(span) => source.at(&span, what),
            None => FileError::whole(path, what),
        }
    })?;
    let seated = seats.map(|seats| seated_by_option(path, &table, seats)).transpose()?;
    let mut items = Vec::with_capacity(table.items.len());
    for (at, item) in table.items.iter().enumerate() {
        let seats = seated.filter(|(which, _)| *which == at).map(|(_, seats)| seats);
        items.push(item_wanted(&source, item, seats)?);
    }
    check_items(&source, &table, &items)?;
    let published = match &table.state {
        None => false,
        Some(state) if state.get_ref() == "published" => true,
        Some(state) => {
            let what = format!("state: \"published\", or absent, not {:?}", state.get_ref());
            return Err(source.at(&state.span(), what));
        }
    };
    Ok(SaleFile {
        sale: source.name("sale", &table.sale)?,
        terms: terms(&source, &table)?,
        items: in_order(&source, &table, items)?,
        published,
    })
}

/// Which item the seats of the option are for.
fn seated_by_option<'a>(
    path: &Path,
    table: &SaleTable,
    seats: &'a Path,
) -> Result<(usize, &'a Path), FileError> {
    let places = |is: &dyn Fn(&ItemTable) -> bool| -> Vec<usize> {
        let items = table.items.iter().enumerate();
        items.filter(|(_, item)| is(item)).map(|(at, _)| at).collect()
    };
    let mut found = places(&|item| item.seats.is_some());
    if found.is_empty() {
        found = places(&|item| item.total.is_none() && item.counts_against.is_empty());
    }
    if let [one] = found[..] {
        return Ok((one, seats));
    }
    let what = format!("has {} items of seats; --seats is for the only one", found.len());
    Err(FileError::whole(path, what))
}

fn item_wanted(
    source: &Source<'_>,
    item: &ItemTable,
    seats: Option<&Path>,
) -> Result<ItemWanted, FileError> {
    let units = match (&item.total, &item.seats, seats) {
        (Some(total), None, None) => Units::Total(source.number("total", total, 0..=TOTAL_MAX)?),
        (Some(total), ..) => {
            let what = "total: absent, where there are seats".to_owned();
            return Err(source.at(&total.span(), what));
        }
        (None, _, Some(seats)) => Units::Seats(seats::read(seats)?),
        (None, Some(seats), None) => {
            let beside = source.path.parent().unwrap_or(Path::new("")).join(seats.get_ref());
            Units::Seats(seats::read(&beside)?)
        }
        (None, None, None) if item.counts_against.is_empty() => {
            let what = "item: with a total, with seats, or counts_against others".to_owned();
            return Err(source.at(&item.item.span(), what));
        }
        (None, None, None) => Units::None,
    };
    let most = if matches!(units, Units::Total(_)) { TOTAL_MAX } else { 0 };
    let oversell = item.oversell_limit.as_ref();
    let against = item.counts_against.iter();
    let wanted = ItemWanted {
        name: source.name("item", &item.item)?,
        oversell_limit: source.optional("oversell_limit", oversell, 0..=most, 0)?,
        counts_against: against
            .map(|other| source.name("counts_against", other))
            .collect::<Result<_, _>>()?,
        blocks: blocks::wanted(source, &item.blocks, &units)?,
        units,
    };
    Ok(wanted)
}

/// Each item once, and only items that there are.
fn check_items(
    source: &Source<'_>,
    table: &SaleTable,
    items: &[ItemWanted],
) -> Result<(), FileError> {
    let mut names = BTreeSet::new();
    for (item, wanted) in table.items.iter().zip(items) {
        if !names.insert(wanted.name.as_str()) {
            let what = format!("item: {} is there already; each item once", wanted.name);
            return Err(source.at(&item.item.span(), what));
        }
    }
    let against = table.items.iter().flat_map(|item| &item.counts_against);
    let against = against.map(|other| ("counts_against", other));
    let limited = table.limits.iter().flat_map(|limit| &limit.items).map(|item| ("items", item));
    for (field, other) in against.chain(limited) {
        if !names.contains(other.get_ref().as_str()) {
            let what = format!("{field}: {} is no item of this file", other.get_ref());
            return Err(source.at(&other.span(), what));
        }
    }
    Ok(())
}

/// Items after those that they count against, else in the order of the file.
fn in_order(
    source: &Source<'_>,
    table: &SaleTable,
    mut items: Vec<ItemWanted>,
) -> Result<Vec<ItemWanted>, FileError> {
    let mut ordered: Vec<ItemWanted> = Vec::with_capacity(items.len());
    let mut placed = BTreeSet::new();
    while !items.is_empty() {
        let is_ready = |item: &ItemWanted| item.counts_against.iter().all(|o| placed.contains(o));
        let Some(at) = items.iter().position(is_ready) else {
            let first = &items[0].name;
            let of_it = table.items.iter().find(|item| item.item.get_ref() == first);
            let span = of_it.map_or(0..0, |item| item.item.span());
            let what = format!("counts_against: leads from {first} back to itself");
            return Err(source.at(&span, what));
        };
        let item = items.remove(at);
        placed.insert(item.name.clone());
        ordered.push(item);
    }
    Ok(ordered)
}

/// Every term, as the server tells it.
fn terms(source: &Source<'_>, table: &SaleTable) -> Result<Map<String, Value>, FileError> {
    let title = table.title.as_ref();
    if let Some(title) = title.filter(|title| title.get_ref().len() > TEXT_BYTES_MAX) {
        let what = format!("title: at most {TEXT_BYTES_MAX} bytes");
        return Err(source.at(&title.span(), what));
    }
    let seconds = table.hold_seconds.as_ref();
    let seconds = source.optional("hold_seconds", seconds, 1..=TTL_SECONDS_MAX, HOLD_SECONDS)?;
    let most = table.hold_seconds_max.as_ref();
    let most = source.optional("hold_seconds_max", most, seconds..=TTL_SECONDS_MAX, seconds)?;
    let chain = table.hold_chain_seconds_max.as_ref();
    let in_all = most.saturating_mul(3).min(TTL_SECONDS_MAX);
    let chain = source.optional("hold_chain_seconds_max", chain, most..=TTL_SECONDS_MAX, in_all)?;
    let extensions = table.extensions_max.as_ref();
    let extensions = source.optional(
        "extensions_max",
        extensions,
        0..=u32::from(u8::MAX),
        u32::from(EXTENSIONS),
    )?;
    let live = table.live_holds_per_buyer.as_ref();
    let live = live.map(|live| source.number("live_holds_per_buyer", live, 1..=u32::MAX));
    let opens_at = source.time("opens_at", table.opens_at.as_ref())?;
    let closes_at = source.time("closes_at", table.closes_at.as_ref())?;
    if let (Some(opens), Some(closes), Some(at)) =
        (opens_at.as_str(), closes_at.as_str(), &table.closes_at)
        && closes <= opens
    {
        return Err(source.at(&at.span(), "closes_at: after opens_at".into()));
    }
    let returns = table.returns_to.as_ref().map(|returns| {
        let label = blocks::label(source, "returns_to.label", &returns.label)?;
        Ok(json!({"label": label, "lapsed": returns.lapsed}))
    });
    let value = json!({
        "title": title.map_or("", |title| title.get_ref()),
        "opens_at": opens_at,
        "closes_at": closes_at,
        "hold_seconds": seconds,
        "hold_seconds_max": most,
        "hold_chain_seconds_max": chain,
        "extensions_max": extensions,
        "live_holds_per_buyer": live.transpose()?,
        "limits": limits(source, &table.limits)?,
        "returns_to": returns.transpose()?,
    });
    let Value::Object(terms) = value else { unreachable!("it was made as an object") };
    Ok(terms)
}

fn limits(source: &Source<'_>, limits: &[LimitTable]) -> Result<Vec<Value>, FileError> {
    let mut names = BTreeSet::new();
    let mut wanted = Vec::with_capacity(limits.len());
    for limit in limits {
        let name = source.name("limits.name", &limit.name)?;
        if !names.insert(name.clone()) {
            return Err(source.at(&limit.name.span(), "limits.name: each name once".into()));
        }
        let per_buyer = source.number("limits.per_buyer", &limit.per_buyer, 1..=TOTAL_MAX)?;
        let items: Vec<&String> = limit.items.iter().map(Spanned::get_ref).collect();
        wanted.push(json!({"name": name, "items": items, "per_buyer": per_buyer}));
    }
    Ok(wanted)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
