//! Watches the log and every answer: what was said must be in the log, and what is in the log must be right.
//!
//! Each row is replayed into a second state, whose sum must be the writer's; the oracle judges each command of the row
//! in the order in which it was decided, by its answer where there was one, and by its facts where the answer was lost.
//!
//! - `slot`: the commands of a row · `compare`: both states, and everything once more

mod compare;
mod slot;

use std::collections::{BTreeMap, BTreeSet};

use noondrop_core::{
    Act, Command, Digest16, Entry, Fact, HoldId, HoldNo, KeyUse, Moment, Outcome, Refusal, Seq,
    State, Timestamp, codec,
};
use noondrop_engine::Reply;
use noondrop_log::{GENESIS, LogReader, Position, Row, verify_chain};

use crate::oracle::{KeyRecord, Oracle, canonical};
use slot::{Slot, SlotKind, agrees, differs, owns, slot_of};

/// How many rows come between two looks at everything.
const RECOUNT_EVERY: u64 = 8;

/// What is wrong, in words.
pub type Finding = String;

/// An intention of a caller: however often he asks, it is done once.
pub type IntentNo = usize;

/// A command that may be found in the log.
#[derive(Clone, Debug)]
pub struct Registered {
    /// As it was sent.
    pub command: Command,
    /// Whose.
    pub intent: IntentNo,
}

/// What was said under a key.
#[derive(Clone, Debug)]
struct Said {
    answer: Vec<u8>,
    seq: u64,
    outcome: Outcome,
}

/// What was seen so far.
#[derive(Default)]
pub struct Checker {
    state: State,
    oracle: Oracle,
    /// The position of each row, in order.
    seen: Vec<Position>,
    last_at: u64,
    /// All commands with a key that were ever sent.
    registered: BTreeMap<(Digest16, u64), Registered>,
    said: BTreeMap<(Digest16, u64), Said>,
    /// The hold that each intention made, and by which key.
    made: BTreeMap<IntentNo, Digest16>,
    ids: BTreeSet<HoldId>,
    /// Facts that tell of an accepted loss.
    pub losses_told: u64,
    /// The latest time at which any process ever thought to be.
    pub latest: u64,
    /// Keys are let go early, for want of room.
    pub keys_scarce: bool,
    /// Answers that were judged.
    pub judged: u64,
}

/// What a turn of a process gave.
#[derive(Clone, Copy, Default)]
pub struct Given<'a> {
    /// Its answers, in their order.
    pub replies: &'a [&'a Reply],
    /// The store failed before it: some answers may be of a row of unknown end, which another process read before.
    pub after_trouble: bool,
    /// How many rows of its own it wrote, or found written.
    pub own_rows: u64,
}

impl Checker {
    /// Where it stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.seen.last().copied().unwrap_or(GENESIS)
    }

    /// Its own state, from the log alone.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The judge.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Notes a command that is about to be sent.
    pub fn register(&mut self, command: &Command, intent: IntentNo) {
        if let Some(key) = command.key {
            let entry = Registered { command: command.clone(), intent };
            self.registered.entry((key.hash, key.fingerprint)).or_insert(entry);
        }
    }

    /// Whether the log has an outcome of this very command.
    #[must_use]
    pub fn has_outcome(&self, key: KeyUse) -> bool {
        self.oracle.key(&key.hash).is_some_and(|known| known.fingerprint == key.fingerprint)
    }

    /// What was answered under a key.
    #[must_use]
    pub fn said_outcome(&self, key: KeyUse) -> Option<Outcome> {
        self.said.get(&(key.hash, key.fingerprint)).map(|said| said.outcome.clone())
    }

    /// Whether a key may be forgotten by now. A process may have let it go at a time that no row tells of, and that
    /// an operator took back by accepting a step of the clock.
    fn may_forget(&self, record: &KeyRecord, at: u64) -> bool {
        self.oracle.may_forget(record, at.max(self.latest), self.keys_scarce)
    }

    /// Whether the log still has all rows that were seen.
    pub fn stands(&self, reader: &mut dyn LogReader) -> bool {
        let Some(last) = self.seen.last() else { return true };
        row_at(reader, last.seq).is_some_and(|row| row.position() == *last)
    }

    /// Follows a log that went back: forgets what it lost. How many answers were lost with it.
    pub fn rewind(&mut self, reader: &mut dyn LogReader) -> Result<usize, Finding> {
        let common = self.seen.iter().take_while(|known| {
            row_at(reader, known.seq).is_some_and(|row| row.position() == **known)
        });
        let kept = common.count() as u64;
        let before = self.said.len();
        let mut said = std::mem::take(&mut self.said);
        said.retain(|_, said| said.seq <= kept);
        let lost = before - said.len();
        let fresh = self.from_the_log(reader, kept)?;
        *self = Self { said, judged: self.judged, ..fresh };
        Ok(lost)
    }

    /// A checker that has seen the rows up to `until`, and no answers.
    pub fn from_the_log(&self, reader: &mut dyn LogReader, until: u64) -> Result<Self, Finding> {
        let registered = self.registered.clone();
        let (latest, keys_scarce) = (self.latest, self.keys_scarce);
        let mut fresh = Self { registered, latest, keys_scarce, ..Self::default() };
        fresh.follow(reader, until, Given::default())?;
        Ok(fresh)
    }

    /// Reads on to row `until`, and judges the answers that came with it, in the order in which they were given.
    pub fn follow(
        &mut self,
        reader: &mut dyn LogReader,
        until: u64,
        given: Given<'_>,
    ) -> Result<(), Finding> {
        let mut left = given.replies;
        // Answers to rows that were seen before: from the record, or of a row that another process read first.
        let late = left.iter().take_while(|reply| reply.position.seq <= self.position().seq);
        let late = late.count();
        for reply in &left[..late] {
            self.judge_without_row(reply, given.after_trouble)?;
        }
        left = &left[late..];
        while self.position().seq < until {
            let rows = reader.page(self.position().seq, 64, 1 << 20);
            let rows = rows.map_err(|error| format!("the checker could not read: {error}"))?;
            if rows.is_empty() {
                return Err(format!(
                    "a process stands at row {until}, and the log ends at {}",
                    self.position()
                ));
            }
            for row in rows.iter().take_while(|row| row.seq <= until) {
                let here = left.iter().take_while(|reply| reply.position.seq <= row.seq).count();
                if given.own_rows == 0 {
                    // Somebody else's row: what was answered at it came after it.
                    self.absorb(row, &[])?;
                    for reply in &left[..here] {
                        self.judge_without_row(reply, false)?;
                    }
                } else {
                    self.absorb(row, &left[..here])?;
                }
                left = &left[here..];
            }
        }
        match left.first() {
            None => Ok(()),
            Some(early) => Err(format!(
                "an answer for {} was given, and the log ends at {}",
                early.position,
                self.position()
            )),
        }
    }

    /// One row with the answers that were given from it.
    fn absorb(&mut self, row: &Row, replies: &[&Reply]) -> Result<(), Finding> {
        let what = |finding: Finding| format!("row {}: {finding}", row.position());
        verify_chain(&self.position(), std::slice::from_ref(row))
            .map_err(|error| what(error.to_string()))?;
        if row.at < self.last_at {
            return Err(what(format!("log time went back from {} to {}", self.last_at, row.at)));
        }
        let entries = codec::decode_row(row.level, &row.facts, &row.private)
            .map_err(|error| what(error.to_string()))?;
        self.replay(row, &entries).map_err(what)?;
        self.last_at = row.at;
        self.seen.push(row.position());
        self.check_clock(row, &entries).map_err(what)?;
        self.judge_row(row, &entries, replies).map_err(what)?;
        self.compare(row.seq.is_multiple_of(RECOUNT_EVERY)).map_err(what)
    }

    fn replay(&mut self, row: &Row, entries: &[Entry]) -> Result<(), Finding> {
        let before = self.state.next_hold_no();
        let moment = Moment { seq: Seq(row.seq), at: Timestamp(row.at), nonce: row.nonce };
        self.state.open_turn(moment);
        for entry in entries {
            self.state.apply(entry).map_err(|misfit| misfit.to_string())?;
        }
        if self.state.sum() != row.state_sum {
            return Err("a second state that replays the log has another sum".into());
        }
        self.state.commit_turn();
        for no in (before.0..self.state.next_hold_no().0).map(HoldNo) {
            let view = self.state.hold_by_no(no).ok_or("a new hold is not in memory")?;
            if view.id.seq.0 != row.seq || !self.ids.insert(view.id) {
                return Err(format!("hold id {} is of another row, or used again", view.id));
            }
            if view.fence.0 >= 1 << 53 {
                return Err(format!("fence {} is beyond 2^53", view.fence));
            }
            self.oracle.learn_id(view.id);
        }
        Ok(())
    }

    /// What the clock does comes first in a row, and is exactly what is due.
    fn check_clock(&mut self, row: &Row, entries: &[Entry]) -> Result<(), Finding> {
        for entry in entries {
            match &entry.fact {
                Fact::LogStarted(_) | Fact::SettingsChanged(_) => self.oracle.apply(&entry.fact),
                Fact::ShopDefined(_) if row.seq == 1 => self.oracle.apply(&entry.fact),
                Fact::LossAccepted(_) => self.losses_told += 1,
                _ => {}
            }
        }
        let due = self.oracle.pass_to(row.at);
        let told: Vec<HoldNo> = entries
            .iter()
            .filter_map(|entry| match &entry.fact {
                Fact::HoldsExpired(expired) => Some(expired),
                _ => None,
            })
            .flat_map(|expired| expired.holds().map(|(no, _)| no))
            .collect();
        if due == told {
            Ok(())
        } else {
            Err(format!("holds {due:?} are due at {}, and {told:?} lapse", row.at))
        }
    }

    fn judge_row(
        &mut self,
        row: &Row,
        entries: &[Entry],
        replies: &[&Reply],
    ) -> Result<(), Finding> {
        let mut slots: Vec<Slot<'_>> = entries
            .iter()
            .filter(|_| row.seq > 1)
            .filter_map(|entry| slot_of(&entry.fact).map(|kind| Slot { kind, fact: &entry.fact }))
            .collect();
        slots.reverse();
        let mut some_unanswered = false;
        for (at, reply) in replies.iter().enumerate() {
            while let Some(slot) = slots.last()
                && !replies[at..]
                    .iter()
                    .any(|reply| reply.at.0 == row.at && owns(reply, &slot.kind))
            {
                some_unanswered = true;
                let slot = slots.pop().expect("it was just looked at");
                self.judge_slot(row, &slot)?;
            }
            self.judge(reply, &mut slots, some_unanswered)?;
        }
        while let Some(slot) = slots.pop() {
            self.judge_slot(row, &slot)?;
        }
        Ok(())
    }

    /// A command whose answer was lost: its facts tell what was decided.
    fn judge_slot(&mut self, row: &Row, slot: &Slot<'_>) -> Result<(), Finding> {
        let SlotKind::Keyed(hash, fingerprint) = &slot.kind else {
            self.oracle.apply(slot.fact);
            return Ok(());
        };
        let known = self.registered.get(&(*hash, *fingerprint)).cloned();
        let known = known.ok_or("a fact has a key that nobody used")?;
        self.check_once(&known.command, row.at)?;
        let verdict = self.oracle.decide(&known.command, row.at);
        if !agrees(slot.fact, &verdict.outcome) {
            return Err(differs(&known.command, &format!("{:?}", slot.fact), &verdict.outcome));
        }
        self.note_made(&known.command, &verdict.outcome, row.at)
    }

    /// An answer, at its place among the row's facts.
    fn judge(
        &mut self,
        reply: &Reply,
        slots: &mut Vec<Slot<'_>>,
        lenient: bool,
    ) -> Result<(), Finding> {
        self.judged += 1;
        if lenient && is_door(&reply.outcome) {
            // Decided before or after a command that was not answered: nobody can tell, and it left nothing behind.
            return Ok(());
        }
        if self.judge_known_key(reply)? {
            // What was not answered may have moved the hold before or after this.
            if reply.replayed && !lenient {
                self.check_standing(reply)?;
            }
            return Ok(());
        }
        self.define_first(reply, slots);
        let command = &reply.command;
        let at = reply.at.0;
        let before = self.defined(command);
        let verdict = self.oracle.decide(command, at);
        if canonical(&verdict.outcome) != canonical(&reply.outcome) {
            return Err(differs(command, &format!("{:?}", reply.outcome), &verdict.outcome));
        }
        let changed = self.defined(command) != before;
        if verdict.recorded || changed {
            let slot = slots.pop().ok_or_else(|| {
                format!("{} was answered as done, and no fact says so", command.act.operation())
            })?;
            if !owns(reply, &slot.kind) || !agrees(slot.fact, &reply.outcome) {
                let outcome = &verdict.outcome;
                return Err(differs(command, &format!("the fact {:?}", slot.fact), outcome));
            }
        }
        self.say(reply, verdict.recorded);
        self.check_standing(reply)?;
        self.note_made(command, &reply.outcome, at)
    }

    /// The same definition was asked for twice, and the first was not answered: its fact comes first.
    fn define_first(&mut self, reply: &Reply, slots: &mut Vec<Slot<'_>>) {
        let Some(Slot { kind: SlotKind::Defined(..), fact }) = slots.last() else { return };
        let first = self.oracle.clone().decide(&reply.command, reply.at.0);
        if canonical(&first.outcome) != canonical(&reply.outcome) {
            self.oracle.apply(fact);
            slots.pop();
        }
    }

    /// An answer that needed no row: from the record, or turned away at the door.
    fn judge_without_row(&mut self, reply: &Reply, after_trouble: bool) -> Result<(), Finding> {
        let known = self.seen.get(usize::try_from(reply.position.seq).map_or(0, |seq| seq - 1));
        if known != Some(&reply.position) {
            return Err(format!("an answer names {}, which the log does not have", reply.position));
        }
        let maybe_late = after_trouble && reply.at.0 == self.last_at;
        if reply.position == self.position() && !maybe_late && !self.is_recorded(reply) {
            return self.judge(reply, &mut Vec::new(), false);
        }
        self.judged += 1;
        // Of a row that was read before the answer came: the record must say the same. What left no record was
        // decided on a state that is past.
        let Some(key) = reply.command.key else { return Ok(()) };
        match self.oracle.key(&key.hash) {
            Some(known) if known.fingerprint == key.fingerprint => {
                let answered = canonical(&reply.outcome);
                let same = self.oracle.key_history(key.hash).any(|known| known.answer == answered);
                let answer = format!("{:?}", reply.outcome);
                let newer = self.may_forget(known, reply.at.0);
                if same || newer || is_door(&reply.outcome) {
                    self.say(reply, same);
                    Ok(())
                } else {
                    Err(format!("{answer} was answered, and the log says something else"))
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether the answer is the first one of a recorded outcome, given after its row was read.
    fn is_recorded(&self, reply: &Reply) -> bool {
        let known = reply.command.key.and_then(|key| self.oracle.key(&key.hash));
        !reply.replayed && known.is_some_and(|known| known.answer == canonical(&reply.outcome))
    }

    /// Judges an answer to a key that was used before. False: it must be decided anew.
    fn judge_known_key(&mut self, reply: &Reply) -> Result<bool, Finding> {
        let Some(key) = reply.command.key else { return Ok(false) };
        let operation = reply.command.act.operation();
        let Some(known) = self.oracle.key(&key.hash) else {
            return if reply.replayed {
                Err(format!("{operation}: a replay of a key that was never used"))
            } else {
                Ok(false)
            };
        };
        let may_forget = self.may_forget(known, reply.at.0);
        if reply.outcome == Outcome::Refused(Refusal::KeyReused) {
            return if known.fingerprint == key.fingerprint {
                Err(format!("{operation}: the same command under the same key is key_reused"))
            } else {
                Ok(true)
            };
        }
        if reply.replayed {
            if known.fingerprint != key.fingerprint || known.answer != canonical(&reply.outcome) {
                let outcome = &reply.outcome;
                return Err(format!(
                    "{operation}: a replay is not what was answered first: {outcome:?}"
                ));
            }
            self.say(reply, true);
            return Ok(true);
        }
        if may_forget { Ok(false) } else { Err(format!("{operation}: a key was decided twice")) }
    }

    /// Facts of a key that was used before are wrong, unless the key was old enough to be forgotten.
    fn check_once(&self, command: &Command, at: u64) -> Result<(), Finding> {
        let known = command.key.and_then(|key| self.oracle.key(&key.hash));
        match known {
            Some(known) if !self.may_forget(known, at) => {
                Err(format!("{}: a key was decided twice", command.act.operation()))
            }
            _ => Ok(()),
        }
    }

    /// Notes what was said; what was said before must be the same.
    fn say(&mut self, reply: &Reply, recorded: bool) {
        if let Some(key) = reply.command.key.filter(|_| recorded) {
            let said = Said {
                answer: canonical(&reply.outcome),
                seq: reply.position.seq,
                outcome: reply.outcome.clone(),
            };
            self.said.insert((key.hash, key.fingerprint), said);
        }
    }

    /// The headers of an answer: where the hold stands now; and its private texts, if it has them.
    fn check_standing(&self, reply: &Reply) -> Result<(), Finding> {
        let Outcome::Hold(view) = &reply.outcome else { return Ok(()) };
        let standing = self.oracle.standing(view.no);
        if view.now != standing {
            let operation = reply.command.act.operation();
            return Err(format!(
                "{operation}: the hold stands at {standing:?}, and {:?} was answered",
                view.now
            ));
        }
        let digester = self.state.digester().expect("the log has its first row");
        if let Some(texts) = &view.texts
            && self.state.hold_buyer(view.no)
                != Some(digester.buyer(reply.command.shop.as_str(), &texts.buyer))
        {
            return Err(format!("hold {} was answered with another buyer's name", view.id));
        }
        Ok(())
    }

    /// One intention makes one hold, whatever its caller has to do to get an answer.
    fn note_made(&mut self, command: &Command, outcome: &Outcome, at: u64) -> Result<(), Finding> {
        let (Act::HoldCreate(_), Outcome::Hold(_), Some(key)) =
            (&command.act, outcome, command.key)
        else {
            return Ok(());
        };
        let Some(known) = self.registered.get(&(key.hash, key.fingerprint)) else {
            return Ok(());
        };
        let intent = known.intent;
        let before = self.made.insert(intent, key.hash).and_then(|hash| self.oracle.key(&hash));
        match before {
            Some(before) if before.at != at && !self.may_forget(before, at) => {
                Err(format!("intention {intent} made two holds"))
            }
            _ => Ok(()),
        }
    }

    /// What a defining command is about, before and after.
    fn defined(&self, command: &Command) -> String {
        match &command.act {
            Act::ShopPut(_) => format!("{:?}", self.oracle.shops),
            Act::SalePut(_) | Act::SaleMove(_) => format!("{:?}", self.oracle.sales),
            Act::ItemPut(_) => format!("{:?}", self.oracle.items),
            _ => String::new(),
        }
    }
}

fn row_at(reader: &mut dyn LogReader, seq: u64) -> Option<Row> {
    reader.row(seq).expect("the checker's own reader does not fail")
}

/// A refusal that leaves no record.
fn is_door(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(refusal) if !refusal.competed())
}
