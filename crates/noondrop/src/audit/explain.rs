//! The story of a hold, a key, a buyer or a reference: every fact about it, in order, as sentences.
//!
//! One pass over the log. What a hold becomes comes after what made it, so the facts that are wanted widen as the pass
//! goes on: the holds of a buyer, then all that happened to them, then the repeats of the keys that were used.

use std::collections::BTreeSet;

use noondrop_core::{
    Digest16, Digester, Entry, Fact, HoldId, HoldNo, HoldView, KeyScope, State, Timestamp,
};
use noondrop_log::{LogReader, Position};
use serde_json::{Value, json};

use super::replay::{Naming, Replay};
use super::scan::Scan;
use super::sentence::sentence as sentence_of;
use crate::cli::Failure;
use crate::http::render::time_text;
use crate::ledger::{Names, Whole, fact_value, key_of, touched};

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A hold.
    Hold(HoldId),
    /// A buyer of a shop.
    Buyer {
        /// The shop.
        shop: String,
        /// The buyer, as the shop names him.
        buyer: String,
    },
    /// A reference of a shop.
    Reference {
        /// The shop.
        shop: String,
        /// The reference.
        reference: String,
    },
    /// A key, as the ledger shows it.
    KeyHash(Digest16),
    /// A key, as the caller sent it.
    Key(KeyText),
    /// Everything.
    All,
}

/// A key as it was sent, and in which scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyText {
    /// The shop.
    pub shop: String,
    /// The principal's name; none: any that ever acted.
    pub principal: Option<String>,
    /// The operation's stable name.
    pub operation: String,
    /// The id in the path, or empty.
    pub target: String,
    /// The key.
    pub key: String,
}

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
    /// The holds that it is about, as they stand now.
    pub holds: Vec<HoldView>,
    /// The state up to which the log was read.
    pub replay: Replay,
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
    let mut replay = Replay::default();
    let mut wanted = Wanted::new(question);
    let mut facts: Vec<Told> = Vec::new();
    for scanned in Scan::all(reader)? {
        let scanned = scanned?;
        let (at, position) = (Timestamp(scanned.row.at), scanned.row.position());
        let shown = position.seq > bounds.after;
        let before = facts.len();
        wanted.begin_row(position.seq);
        replay.apply_telling(&scanned, &mut |place, state| {
            let entry = &scanned.entries[place];
            if !wanted.takes(entry) || !shown || facts.len() >= bounds.limit {
                return;
            }
            let catalog = state.catalog();
            let naming = Naming { catalog: &catalog, state };
            let sentence = wanted.own_lapse(entry, naming);
            let sentence = sentence.unwrap_or_else(|| sentence_of(entry, at, naming));
            let value = fact_value(entry, Names { catalog: &catalog, sight: &Whole });
            facts.push(Told { at, position, kind: entry.fact.kind(), sentence, value });
        })?;
        facts[before..].iter_mut().for_each(|fact| name_new_hold(fact, replay.state()));
        if facts.len() >= bounds.limit {
            break;
        }
    }
    if let Question::Hold(id) = question
        && replay.state().hold(*id).is_none()
    {
        // Its place in the log was another hold's, or there is no such place.
        facts.clear();
        wanted.holds.clear();
    }
    let holds = wanted.holds.iter().filter_map(|&no| replay.state().hold_by_no(no)).collect();
    Ok(Story { facts, holds, replay })
}

/// A hold has its id once its row is applied, which is after its sentence was made.
fn name_new_hold(fact: &mut Told, state: &State) {
    let number = fact.value["hold"].as_u64().map(HoldNo);
    if let Some(id) = number.and_then(|no| state.hold_by_no(no)).map(|hold| hold.id.to_string()) {
        if let Some(no) = number {
            fact.sentence =
                fact.sentence.replace(&format!("hold #{no} until"), &format!("{id} until"));
        }
        fact.value["hold_id"] = id.into();
    }
}

/// Which facts belong to the story; widens as the log is read.
struct Wanted<'a> {
    question: &'a Question,
    /// The digest of the buyer or the reference, once the log has told its secret.
    digest: Option<Digest16>,
    digester: Option<Digester>,
    holds: BTreeSet<HoldNo>,
    keys: BTreeSet<Digest16>,
    row: u64,
    created_in_row: u16,
}

impl<'a> Wanted<'a> {
    fn new(question: &'a Question) -> Self {
        let keys = match question {
            Question::KeyHash(hash) => BTreeSet::from([*hash]),
            _ => BTreeSet::new(),
        };
        Self {
            question,
            digest: None,
            digester: None,
            holds: BTreeSet::new(),
            keys,
            row: 0,
            created_in_row: 0,
        }
    }

    fn begin_row(&mut self, seq: u64) {
        (self.row, self.created_in_row) = (seq, 0);
    }

    fn takes(&mut self, entry: &Entry) -> bool {
        self.learn(&entry.fact);
        let taken = *self.question == Question::All || self.is_about(&entry.fact);
        if let (true, Fact::HoldCreated(created)) = (taken, &entry.fact) {
            self.holds.insert(created.hold);
            self.holds.extend(created.retakes);
        }
        if let (true, Some(key)) = (taken, key_of(&entry.fact)) {
            self.keys.insert(key.hash);
        }
        if matches!(entry.fact, Fact::HoldCreated(_)) {
            self.created_in_row += 1;
        }
        taken
    }

    /// Holds lapse by the thousand; a story tells of its own only.
    fn own_lapse(&self, entry: &Entry, naming: Naming<'_>) -> Option<String> {
        let Fact::HoldsExpired(expired) = &entry.fact else { return None };
        if *self.question == Question::All {
            return None;
        }
        let own = expired.holds().filter(|(no, _)| self.holds.contains(no));
        let own: Vec<String> = own.map(|(no, _)| naming.hold(no)).collect();
        Some(format!("time ran out for {}: what was held came back", own.join(", ")))
    }

    /// The log's first fact tells the secret behind every digest; each principal may have used the key.
    fn learn(&mut self, fact: &Fact) {
        match fact {
            Fact::LogStarted(log) => {
                let digester = Digester::new(log.key_secret);
                self.digest = match self.question {
                    Question::Buyer { shop, buyer } => Some(digester.buyer(shop, buyer)),
                    Question::Reference { shop, reference } => {
                        Some(digester.reference(shop, reference))
                    }
                    _ => None,
                };
                self.digester = Some(digester);
                if let Question::Key(KeyText { principal: Some(principal), .. }) = self.question {
                    self.add_key_of(principal);
                }
            }
            Fact::ActorSeen(actor) => {
                if let Question::Key(KeyText { principal: None, .. }) = self.question {
                    self.add_key_of(actor.name.as_str());
                }
            }
            _ => {}
        }
    }

    fn add_key_of(&mut self, principal: &str) {
        let (Question::Key(text), Some(digester)) = (self.question, &self.digester) else { return };
        let principal = principal_scope(principal);
        let scope = KeyScope {
            shop: &text.shop,
            principal: &principal,
            operation: &text.operation,
            target: &text.target,
        };
        self.keys.insert(digester.key(scope, &text.key));
    }

    fn is_about(&self, fact: &Fact) -> bool {
        let of_key = key_of(fact).is_some_and(|key| self.keys.contains(&key.hash));
        let by_key = matches!(self.question, Question::KeyHash(_) | Question::Key(_)) && of_key;
        let about = match fact {
            Fact::HoldCreated(created) => {
                self.is_attempt(created.buyer, created.reference)
                    || self.is_the_hold()
                    || created.supersedes.is_some_and(|old| self.holds.contains(&old.hold))
                    || created.retakes.is_some_and(|old| self.holds.contains(&old))
            }
            Fact::HoldRefused(refused) => self.is_attempt(refused.buyer, refused.reference),
            Fact::KeyRepeated(repeated) => self.keys.contains(&repeated.key),
            Fact::HoldsExpired(expired) => {
                !self.holds.is_empty() && expired.holds().any(|(no, _)| self.holds.contains(&no))
            }
            other => touched(other).is_some_and(|about| self.holds.contains(&about.hold)),
        };
        about || by_key
    }

    fn is_attempt(&self, buyer: Digest16, reference: Option<Digest16>) -> bool {
        match self.question {
            Question::Buyer { .. } => self.digest == Some(buyer),
            Question::Reference { .. } => self.digest.is_some() && self.digest == reference,
            _ => false,
        }
    }

    /// An id carries its row and its place among the holds that the row made.
    fn is_the_hold(&self) -> bool {
        matches!(self.question, Question::Hold(id) if id.seq.0 == self.row && id.index == self.created_in_row)
    }
}

/// How the name of a principal stands in a key's scope; a buyer's token has a scope of its own.
fn principal_scope(name: &str) -> String {
    if name.starts_with("token:") { name.to_owned() } else { format!("principal:{name}") }
}

/// How a hold stands, on one line.
#[must_use]
pub fn standing(hold: &HoldView, naming: Naming<'_>) -> String {
    let lines = hold.lines.0.iter().map(|line| {
        let item = naming.item(line.item);
        format!("{} of {item}", line.quantity())
    });
    let lines: Vec<String> = lines.collect();
    let end = match hold.state {
        noondrop_core::HoldState::Active => format!(", until {}", time_text(hold.expires_at)),
        _ => String::new(),
    };
    let texts = hold.texts.as_deref();
    let buyer = texts.map(|texts| texts.buyer.as_str()).filter(|buyer| !buyer.is_empty());
    let buyer = buyer.unwrap_or("(erased)");
    let reference = texts.and_then(|texts| texts.reference.as_deref());
    let reference = reference.map(|text| format!(", reference {text}")).unwrap_or_default();
    format!(
        "{} is {}{end}: {} of sale {}, buyer {buyer}{reference}, fence {}",
        hold.id,
        hold.state.as_str(),
        lines.join(", "),
        naming.sale(hold.sale),
        hold.fence
    )
}

/// The same for programs.
#[must_use]
pub fn standing_value(hold: &HoldView) -> Value {
    json!({
        "id": hold.id.to_string(),
        "number": hold.no.0,
        "state": hold.state.as_str(),
        "fence": hold.fence.0,
        "created_at": time_text(hold.created_at),
        "expires_at": time_text(hold.expires_at),
    })
}
