//! The story of a hold, a key, a buyer, a reference or a seat: every fact about it, in order, as sentences.
//!
//! One pass over the log, without a state: names and counts are kept from the facts ([`Glance`]), and only what belongs to
//! the story ([`Wanted`]) is read with its texts. So millions of facts take seconds.

use noondrop_core::codec::{decode_row, glance_at_row};
use noondrop_core::seats::SeatNo;
use noondrop_core::{Catalog, Counts, Entry, Fact, HoldId, HoldNo, ItemIx, Timestamp};
use noondrop_log::{LogReader, Position, Row};
use serde_json::Value;

use super::glance::Glance;
use super::naming::{Naming, Sees};
use super::scan::{ScanError, Skim};
use super::sentence::{sentence, why};
use super::standing::Standings;
use super::summary::Summary;
pub use super::wanted::{KeyText, Question, SeatName, Wanted};
use crate::cli::Failure;
use crate::http::render::time_text;
use crate::ledger::{Names, Whole, fact_value};

/// One fact of a story.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When, in log time.
    pub at: Timestamp,
    /// Its row.
    pub position: Position,
    /// Its kind.
    pub kind: &'static str,
    /// What happened.
    pub sentence: String,
    /// The same for programs.
    pub value: Value,
}

impl Told {
    /// The fact for programs, with its place.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = self.value.clone();
        if let Value::Object(members) = &mut value {
            members.insert("at".into(), time_text(self.at).into());
            members.insert("position".into(), self.position.to_string().into());
            members.insert("sentence".into(), self.sentence.as_str().into());
        }
        value
    }

    /// The fact on one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{}  {}  {:<16} {}", time_text(self.at), self.position, self.kind, self.sentence)
    }
}

/// A story.
pub struct Story {
    /// What happened, oldest first.
    pub facts: Vec<Told>,
    /// All attempts in a paragraph, where the question is for a buyer, a reference or a key.
    pub summary: Option<Summary>,
    /// The holds that it is about, as they stand now.
    pub holds: Standings,
    /// The seat that it is about.
    pub seat: Option<super::seat::SeatTold>,
    /// What was known at the end.
    pub glance: Glance,
}

impl Story {
    /// The names at the end.
    #[must_use]
    pub fn naming(&self) -> Naming<'_> {
        Naming { catalog: self.glance.catalog(), sees: &self.glance }
    }
}

/// Which rows of a story are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Only rows after this one.
    pub after: u64,
    /// At most so many facts.
    pub limit: usize,
}

/// Reads the log for an answer.
pub fn explain(
    reader: &mut dyn LogReader,
    question: &Question,
    bounds: Bounds,
) -> Result<Story, Failure> {
    let sums = matches!(
        question,
        Question::Buyer { .. }
            | Question::Reference { .. }
            | Question::Key(_)
            | Question::KeyHash(_)
    );
    let mut telling = Telling {
        wanted: Wanted::new(question),
        glance: Glance::default(),
        holds: Standings::default(),
        summary: sums.then(Summary::default),
        facts: Vec::new(),
        bounds,
    };
    for row in Skim::all(reader)? {
        telling.row(&row?)?;
        if telling.facts.len() >= bounds.limit {
            break;
        }
    }
    let Telling { wanted, glance, holds, summary, facts, .. } = telling;
    let summary = summary.filter(Summary::is_telling);
    Ok(Story { facts, summary, holds, seat: wanted.seat().cloned(), glance })
}

struct Telling<'a> {
    wanted: Wanted<'a>,
    glance: Glance,
    holds: Standings,
    summary: Option<Summary>,
    facts: Vec<Told>,
    bounds: Bounds,
}

impl Telling<'_> {
    fn row(&mut self, row: &Row) -> Result<(), ScanError> {
        let position = row.position();
        let unreadable = |cause| ScanError::Unreadable { row: position, cause };
        self.glance.begin(row);
        let (mut place, mut entries, mut failed) = (0, None, None);
        let mut see = |fact: &Fact| {
            if self.wanted.takes(fact, &self.glance) && failed.is_none() {
                // With its texts, and strictly: once for the row.
                let read = || decode_row(row.level, &row.facts, &row.private);
                match entries.get_or_insert_with(read) {
                    Ok(entries) => self.fact(&entries[place], position),
                    Err(cause) => failed = Some(*cause),
                }
            }
            self.holds.note(fact);
            self.glance.note(fact);
            if let Some(summary) = &mut self.summary {
                summary.watch(&self.glance);
            }
            place += 1;
        };
        glance_at_row(row.level, &row.facts, &mut see).map_err(unreadable)?;
        failed.map_or(Ok(()), |cause| Err(unreadable(cause)))
    }

    fn fact(&mut self, entry: &Entry, position: Position) {
        if !self.wanted.is_all() {
            self.holds.add(entry, &self.glance);
        }
        let own = Own { wanted: &self.wanted, glance: &self.glance, holds: &self.holds };
        let catalog: &Catalog = self.glance.catalog();
        let naming = Naming { catalog, sees: &own };
        let at = self.glance.at();
        if let Some(summary) = &mut self.summary {
            summary.note(&entry.fact, &self.glance, || why(entry, at, naming));
        }
        let shown = position.seq > self.bounds.after && self.facts.len() < self.bounds.limit;
        if shown {
            let sentence = sentence(entry, at, naming);
            let mut value = fact_value(entry, Names { catalog, sight: &Whole });
            let hold = value["hold"].as_u64().and_then(|no| own.hold(HoldNo(no)));
            if let Some(id) = hold {
                value["hold_id"] = id.to_string().into();
            }
            self.facts.push(Told { at, position, kind: entry.fact.kind(), sentence, value });
        }
    }
}

/// What a story tells of facts about many holds: its own.
struct Own<'a> {
    wanted: &'a Wanted<'a>,
    glance: &'a Glance,
    holds: &'a Standings,
}

impl Sees for Own<'_> {
    fn hold(&self, hold: HoldNo) -> Option<HoldId> {
        self.glance.hold(hold)
    }

    fn counts(&self, item: ItemIx) -> Option<Counts> {
        self.glance.counts(item)
    }

    fn lapse(&self, hold: HoldNo) -> bool {
        self.wanted.is_all() || self.wanted.has_hold(hold)
    }

    fn seat(&self, item: ItemIx, seat: SeatNo) -> bool {
        match self.wanted.seat() {
            _ if self.wanted.is_all() => true,
            Some(told) => told.is(item, seat),
            None => self.holds.have_seat(item, seat),
        }
    }
}
