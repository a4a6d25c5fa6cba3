//! Seats of a CSV file: a header that names the columns, one line for each seat.
//!
//! `seat,section,row,number` must be there, `rank,tags,zone` may be, in any order. Tags are separated by `|`. An error names
//! file, line and column.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::StringRecord;
use noondrop_core::Name;
use noondrop_core::seats::{SEAT_NAME_BYTES_MAX, SEATS_MAX};
use serde::{Deserialize, Serialize};

use super::file::FileError;

const COLUMNS: [&str; 7] = ["seat", "section", "row", "number", "rank", "tags", "zone"];
/// How many of them must be there.
const NEEDED: usize = 4;

/// A seat, as a file has it and as a server takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Its name.
    pub seat: String,
    /// Its section.
    pub section: String,
    /// Its row.
    pub row: String,
    /// Its place in the row.
    pub number: u32,
    /// How good it is; 0 is best.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rank: u32,
    /// Its tags, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its price zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Seat {
    /// With its tags in order, each once: as a set they are compared.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.tags.sort_unstable();
        self.tags.dedup();
        self
    }

    /// How it differs from another of its name, in words.
    #[must_use]
    pub fn difference(&self, other: &Self) -> String {
        let text = |zone: &Option<String>| zone.clone().unwrap_or_else(|| "none".into());
        let both = [
            ("section", self.section.clone(), other.section.clone()),
            ("row", self.row.clone(), other.row.clone()),
            ("number", self.number.to_string(), other.number.to_string()),
            ("rank", self.rank.to_string(), other.rank.to_string()),
            ("tags", self.tags.join("|"), other.tags.join("|")),
            ("zone", text(&self.zone), text(&other.zone)),
        ];
        let differ = both.iter().filter(|(_, one, two)| one != two);
        let words = differ.map(|(what, one, two)| format!("{what} {one} → {two}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Reads a file of seats.
pub fn read(path: &Path) -> Result<Vec<Seat>, FileError> {
    let file = File::open(path)
        .map_err(|error| FileError::whole(path, format!("could not be read: {error}")))?;
    parse(path, std::io::BufReader::new(file))
}

fn parse(path: &Path, bytes: impl Read) -> Result<Vec<Seat>, FileError> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| unreadable(path, &error))?.clone();
    let columns = Columns::find(path, &header)?;
    let mut seats: Vec<Seat> = Vec::new();
    let mut lines: HashMap<String, u64> = HashMap::new();
    let mut places: HashMap<(String, String, u32), u64> = HashMap::new();
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| unreadable(path, &error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let error = |what: String| FileError::line(path, line, what);
        if record.len() != header.len() {
            let (has, wanted) = (record.len(), header.len());
            return Err(error(format!("it has {has} columns, and the header has {wanted}")));
        }
        if seats.len() >= SEATS_MAX {
            return Err(error(format!("an item has at most {SEATS_MAX} seats")));
        }
        let wrong = |(column, what)| FileError::column(path, line, column, what);
        let seat = columns.seat(&record).map_err(wrong)?;
        match lines.entry(seat.seat.clone()) {
            Entry::Occupied(first) => {
                let (name, first) = (&seat.seat, first.get());
                let what = format!("{name} is in line {first} already; each seat once");
                return Err(wrong(("seat", what)));
            }
            Entry::Vacant(entry) => entry.insert(line),
        };
        match places.entry((seat.section.clone(), seat.row.clone(), seat.number)) {
            Entry::Occupied(first) => {
                let Seat { section, row, number, .. } = &seat;
                let place = format!("section {section}, row {row} has number {number}");
                return Err(wrong(("number", format!("{place} in line {} already", first.get()))));
            }
            Entry::Vacant(entry) => entry.insert(line),
        };
        seats.push(seat);
    }
    if seats.is_empty() {
        return Err(FileError::whole(path, "has a header and no seat".into()));
    }
    Ok(seats)
}

fn unreadable(path: &Path, error: &csv::Error) -> FileError {
    match error.position() {
        Some(at) => FileError::line(path, at.line(), format!("could not be read: {error}")),
        None => FileError::whole(path, format!("could not be read: {error}")),
    }
}

/// Where each column stands.
struct Columns([Option<usize>; COLUMNS.len()]);

/// A column and what is wrong with it.
type Wrong = (&'static str, String);

impl Columns {
    fn find(path: &Path, header: &StringRecord) -> Result<Self, FileError> {
        let error = |what: String| FileError::line(path, 1, what);
        let mut found = Self([None; COLUMNS.len()]);
        for (at, name) in header.iter().enumerate() {
            let name = name.trim_start_matches('\u{feff}').trim();
            let known = COLUMNS.iter().position(|column| *column == name).ok_or_else(|| {
                let known = COLUMNS.join(",");
                error(format!("column {name:?} is not known; the header is {known}"))
            })?;
            if found.0[known].replace(at).is_some() {
                return Err(error(format!("column {name} is there twice")));
            }
        }
        match COLUMNS.iter().zip(found.0).take(NEEDED).find(|(_, at)| at.is_none()) {
            Some((name, _)) => {
                let known = COLUMNS.join(",");
                Err(error(format!("column {name} is missing; the header is {known}")))
            }
            None => Ok(found),
        }
    }

    fn seat(&self, record: &StringRecord) -> Result<Seat, Wrong> {
        let text = |column: usize| self.0[column].and_then(|at| record.get(at)).unwrap_or("");
        let named = |column: usize| {
            let text = text(column);
            name(text)
                .map(|()| text.to_owned())
                .map_err(|bound| (COLUMNS[column], format!("{bound}, not {text:?}")))
        };
        let number = |column: usize| {
            let bound = |_| (COLUMNS[column], format!("0 to {}, not {:?}", u32::MAX, text(column)));
            text(column).parse::<u32>().map_err(bound)
        };
        let seat = named(0)?;
        if seat.len() > SEAT_NAME_BYTES_MAX {
            return Err((
                COLUMNS[0],
                format!("at most {SEAT_NAME_BYTES_MAX} characters, not {seat:?}"),
            ));
        }
        let tags = text(5).split('|').map(str::trim).filter(|tag| !tag.is_empty());
        let tags: Vec<String> = tags.map(str::to_owned).collect();
        for tag in &tags {
            name(tag).map_err(|bound| (COLUMNS[5], format!("{bound}, not {tag:?}")))?;
        }
        Ok(Seat {
            seat,
            section: named(1)?,
            row: named(2)?,
            number: number(3)?,
            rank: if text(4).is_empty() { 0 } else { number(4)? },
            tags,
            zone: if text(6).is_empty() { None } else { Some(named(6)?) },
        }
        .sorted())
    }
}

/// Whether a text may be a name; if not, the bound.
pub fn name(text: &str) -> Result<(), String> {
    Name::parse(text).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<Vec<Seat>, String> {
        parse(Path::new("seats.csv"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_may_come_in_any_order_and_some_may_be_left_out() {
        let seats =
            told("\u{feff}number, row,section,seat,tags\n7,1,A,A-1-7,aisle|wheelchair\n").unwrap();
        let seat = Seat {
            seat: "A-1-7".into(),
            section: "A".into(),
            row: "1".into(),
            number: 7,
            rank: 0,
            tags: vec!["aisle".into(), "wheelchair".into()],
            zone: None,
        };
        assert_eq!(seats, [seat]);
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let all = "seat,section,row,number,rank,tags,zone\n";
        let wrong = [
            ("seat,section,number\n".to_owned(), "seats.csv, line 1: column row is missing"),
            ("seat,section,row,number,price\n".to_owned(), "line 1: column \"price\" is not known"),
            ("seat,section,row,number,row\n".to_owned(), "line 1: column row is there twice"),
            (all.to_owned(), "seats.csv has a header and no seat"),
            (
                format!("{all}a,A,1,1,0,,\nb,A,1,x,0,,\n"),
                "line 3, column number: 0 to 4294967295, not \"x\"",
            ),
            (format!("{all}a b,A,1,1,0,,\n"), "line 2, column seat: "),
            (format!("{all}{},A,1,1,0,,\n", "s".repeat(33)), "line 2, column seat: at most 32"),
            (format!("{all}a,A,1,1,-1,,\n"), "line 2, column rank: "),
            (format!("{all}a,A,1,1,0,x y,\n"), "line 2, column tags: "),
            (format!("{all}a,A,1,1,0,,é\n"), "line 2, column zone: "),
            (format!("{all}a,A,1\n"), "line 2: it has 3 columns, and the header has 7"),
            (
                format!("{all}a,A,1,1,0,,\na,A,1,2,0,,\n"),
                "line 3, column seat: a is in line 2 already",
            ),
            (
                format!("{all}a,A,1,1,0,,\nb,A,1,1,0,,\n"),
                "line 3, column number: section A, row 1 has number 1 in line 2",
            ),
        ];
        for (text, says) in wrong {
            let error = told(&text).unwrap_err();
            assert!(error.contains(says), "{error} does not say {says}");
        }
    }
}
