//! The commands of one turn, and its append (RULES R2, steps 3 to 7).

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use noondrop_core::{Command, Decision, Entry, Moment, Outcome, Seq, State, Timestamp};
use noondrop_log::{AppendError, GENESIS, Log, Position, Row, Unsealed};
use tracing::{error, warn};

use crate::call::{Answered, Call, Fault, Pending, Reply};
use crate::clock::{Clock, Entropy, Reading};
use crate::draft::{Draft, Repeat};
use crate::options::{Planted, Probe};
use crate::sequencer::Sequencer;
use crate::settle::{Tried, TroubleCause};

/// Facts about repeated keys that may wait for a row to be written.
const REPEATS_MAX: usize = 1_024;

/// Commands whose look-ups are loaded at once: few enough that nothing is pushed out of the cache before it is used
/// (measured at 3 M keys: 64 took 10 % less than 1,000 at once).
const WARMED_TOGETHER: usize = 64;

/// When invariants are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Once, before the row is written.
    Turn,
    /// After each command, to find the one that breaks them.
    EachCommand,
}

/// Why the turn so far can not be kept. All of it is undone, and its commands are decided again.
enum Spoilt {
    /// One command spoilt it: the turn is taken again at once, without it or with a closer look.
    Command,
    /// Another writer was first: the next turn learns that one's row.
    Overtaken,
    /// The store fails, or what no command did is wrong.
    Trouble(TroubleCause),
}

/// A command that was decided and applied.
struct Made {
    outcome: Outcome,
    replayed: bool,
}

/// Why a command was not decided.
enum NotMade {
    KeysFull,
    Bug(String),
}

impl<L: Log, C: Clock, E: Entropy> Sequencer<L, C, E> {
    pub(crate) fn take_turn(
        &mut self,
        reading: Reading,
        calls: &mut VecDeque<Pending>,
        answers: &mut Vec<Answered>,
    ) {
        let started_us = self.clock.elapsed_us();
        let first = answers.len();
        let replays_before = self.tally.replays;
        let rows_before = self.tally.rows;
        let mut asked_at = self.time.fix(reading, self.state.last_at());
        if self.options.probe.plants(Planted::ClockStepTaken) {
            asked_at = Timestamp(reading.source_ms).max(self.state.last_at());
        }
        if self.options.probe.plants(Planted::ClockFrozen) {
            asked_at = self.time.estimate(reading.elapsed_ms).max(self.state.last_at());
        }
        self.tally.clock_steps = self.time.steps_total();
        let mut check = Check::Turn;
        while let Err(spoilt) = self.make_turn(asked_at, reading, check, calls, answers) {
            self.undo_open_turn();
            let undone = std::mem::take(&mut self.draft.answers);
            self.wait_again(undone, answers);
            match spoilt {
                Spoilt::Command => check = Check::EachCommand,
                Spoilt::Overtaken => break,
                Spoilt::Trouble(cause) => {
                    self.fail(cause);
                    break;
                }
            }
            if self.distrusted {
                // The state is read again before anything else is decided.
                break;
            }
        }
        let answered = answers.len() - first;
        if answered > 0 || self.tally.rows > rows_before {
            let took_us = self.clock.elapsed_us().saturating_sub(started_us);
            self.tally.turn(took_us, answered, self.tally.replays - replays_before);
        }
    }

    fn make_turn(
        &mut self,
        asked_at: Timestamp,
        reading: Reading,
        check: Check,
        calls: &mut VecDeque<Pending>,
        answers: &mut Vec<Answered>,
    ) -> Result<(), Spoilt> {
        let at = self.open_turn(asked_at)?;
        if check == Check::EachCommand {
            self.check_the_clock()?;
        }
        self.decide_calls(reading.elapsed_ms, check, calls, answers)?;
        let repeats = self.add_repeats();
        if check == Check::Turn && self.is_violated() {
            return Err(Spoilt::Command);
        }
        if self.draft.entries > 0 {
            return self.append(at, repeats, answers);
        }
        // Nothing to record: replays of durable keys, refusals at the door, faults.
        self.undo_open_turn();
        self.answer(at, answers);
        Ok(())
    }

    /// Whether what was applied before any command breaks a rule. Then no command is to blame, but
    /// this state.
    fn check_the_clock(&mut self) -> Result<(), Spoilt> {
        self.state.check_touched().map_err(|violation| {
            self.distrusted = true;
            let what = format!("what the clock does breaks an invariant: {violation}");
            Spoilt::Trouble(TroubleCause::Rules(what))
        })
    }

    /// Fixes the turn's time and applies what the clock does, and what the engine itself has to
    /// tell.
    fn open_turn(&mut self, asked_at: Timestamp) -> Result<Timestamp, Spoilt> {
        self.draft.clear();
        let plan = self.state.plan_time(asked_at);
        let seq = Seq(self.position.seq + 1);
        self.draft.nonce = self.entropy.nonce();
        self.state.open_turn(Moment { seq, at: plan.at, nonce: self.draft.nonce });
        for entry in plan.entries.iter().chain(&self.own_entries) {
            if let Err(misfit) = apply(&mut self.state, &mut self.draft, entry) {
                // Not even these fit: it is the state that is wrong.
                self.distrusted = self.state.is_started();
                return Err(Spoilt::Trouble(TroubleCause::Rules(misfit)));
            }
        }
        Ok(plan.at)
    }

    fn decide_calls(
        &mut self,
        now_ms: u64,
        check: Check,
        calls: &mut VecDeque<Pending>,
        answers: &mut Vec<Answered>,
    ) -> Result<(), Spoilt> {
        let commands_max = self.options.turn_commands();
        let mut warmed = 0;
        while self.draft.answers.len() < commands_max
            && self.draft.bytes() < self.options.turn_bytes_max
        {
            if warmed == 0 {
                let upcoming = self.waiting.iter().chain(calls.iter()).take(WARMED_TOGETHER);
                self.state.warm(&upcoming.map(|pending| &*pending.call.command));
                warmed = WARMED_TOGETHER;
            }
            warmed -= 1;
            // A call is decided where it lies, and moved once: calls and answers are large.
            let queue = if self.waiting.is_empty() { &mut *calls } else { &mut self.waiting };
            let Some(pending) = queue.front() else { break };
            if pending.call.deadline_ms.is_some_and(|deadline| deadline <= now_ms) {
                self.tally.fault(&Fault::Overloaded);
                answers.push(Answered::fault(pending, Fault::Overloaded));
                queue.pop_front();
                continue;
            }
            let (state, draft) = (&mut self.state, &mut self.draft);
            let made = decide(state, draft, &self.options.probe, check, &pending.call.command);
            let Pending { ticket, call: Call { command, deadline_ms } } =
                queue.pop_front().expect("it was looked at above");
            let (position, at) = (GENESIS, Timestamp(0));
            let answer = made.map(|Made { outcome, replayed }| Reply {
                command,
                outcome,
                replayed,
                position,
                at,
            });
            draft.answers.push(Answered { ticket, deadline_ms, answer });
            if std::mem::take(&mut draft.applying) {
                // A panic while facts were applied: not even the undo journal need be right.
                return Err(Spoilt::Command);
            }
        }
        Ok(())
    }

    fn is_violated(&mut self) -> bool {
        let probed = self.options.probe.violates.is_some_and(|violates| {
            let mut replies = self.draft.answers.iter().filter_map(|a| a.answer.as_ref().ok());
            replies.any(|reply| violates(&reply.command))
        });
        let violation = self.state.check_touched().err();
        if !probed && violation.is_none() {
            return false;
        }
        self.tally.violations += 1;
        let violation = violation.map(|violation| violation.to_string());
        error!(violation, "a turn breaks an invariant; its commands are decided one by one");
        true
    }

    /// Counts this turn's repeats, and adds what there is to tell about them if a row is written
    /// anyway. How many of the facts that wait are in the draft.
    fn add_repeats(&mut self) -> usize {
        for Repeat { key, origin } in self.draft.repeats.drain(..) {
            if let Some(entry) = self.state.note_repeat(key, origin)
                && self.repeats.len() < REPEATS_MAX
            {
                self.repeats.push(entry);
            }
        }
        if self.draft.entries == 0 {
            return 0;
        }
        for entry in &self.repeats {
            let savepoint = self.state.savepoint();
            let mark = self.draft.mark();
            if apply(&mut self.state, &mut self.draft, entry).is_err() {
                // The key was let go meanwhile: there is nothing left to tell about.
                self.state.rollback_to(savepoint);
                self.draft.cut(mark);
            }
        }
        self.repeats.len()
    }

    fn append(
        &mut self,
        at: Timestamp,
        repeats: usize,
        answers: &mut Vec<Answered>,
    ) -> Result<(), Spoilt> {
        let row = self.seal(at);
        let appended = self.log.append(&row);
        if self.options.probe.plants(Planted::AnswerBeforeAppend) && appended.is_err() {
            self.answer(at, answers);
        }
        match appended {
            Err(AppendError::Unknown(_))
                if self.options.probe.plants(Planted::UnknownIsWritten) =>
            {
                self.answer(at, answers);
                Err(Spoilt::Overtaken)
            }
            Ok(()) => {
                self.state.commit_turn();
                self.position = row.position();
                self.own_entries.clear();
                self.repeats.drain(..repeats);
                self.count_row(&row);
                self.recycle(row);
                self.answer(at, answers);
                Ok(())
            }
            Err(AppendError::Unknown(error)) => {
                self.tally.appends_unknown += 1;
                warn!(row = row.seq, "it is not known whether a row was written; finding out");
                self.place_answers(row.position(), at);
                self.tried = Some(Tried { row, answers: std::mem::take(&mut self.draft.answers) });
                Err(Spoilt::Trouble(TroubleCause::Append(AppendError::Unknown(error))))
            }
            Err(AppendError::Conflict) => Err(Spoilt::Overtaken),
            Err(error @ AppendError::NotWritten(_)) => {
                self.tally.appends_not_written += 1;
                Err(Spoilt::Trouble(TroubleCause::Append(error)))
            }
        }
    }

    fn seal(&mut self, at: Timestamp) -> Row {
        self.attempt = self.attempt.wrapping_add(1);
        let unsealed = Unsealed {
            seq: self.position.seq + 1,
            at: at.0,
            writer: self.writer,
            attempt: self.attempt,
            nonce: self.draft.nonce,
            level: self.state.level(),
            state_sum: self.state.sum(),
            facts: std::mem::take(&mut self.draft.facts),
            private: std::mem::take(&mut self.draft.private),
        };
        Row::seal(&self.position.digest, unsealed)
    }

    /// Keeps the row for the evidence, and takes buffers back for the next one.
    fn recycle(&mut self, row: Row) {
        let (facts, private) = self.recent.keep(row);
        self.draft.facts = facts.unwrap_or_default();
        self.draft.private = private;
    }

    /// Answers everyone in the turn: what they are told is durable.
    fn answer(&mut self, at: Timestamp, answers: &mut Vec<Answered>) {
        self.place_answers(self.position, at);
        let mut decided = std::mem::take(&mut self.draft.answers);
        self.count_answers(&decided);
        if answers.is_empty() {
            // The caller's empty list becomes the next turn's.
            std::mem::swap(answers, &mut decided);
        } else {
            answers.append(&mut decided);
        }
        self.draft.answers = decided;
    }

    fn place_answers(&mut self, position: Position, at: Timestamp) {
        for answered in &mut self.draft.answers {
            if let Ok(reply) = &mut answered.answer {
                reply.position = position;
                reply.at = at;
            }
        }
    }

    pub(crate) fn count_row(&mut self, row: &Row) {
        self.tally.rows += 1;
        self.tally.row_bytes += (row.facts.len() + row.private.len()) as u64;
    }

    pub(crate) fn count_answers(&mut self, answers: &[Answered]) {
        for answered in answers {
            match &answered.answer {
                Ok(reply) => self.tally.reply(reply),
                Err(fault) => self.tally.fault(fault),
            }
        }
    }
}

/// Decides one command and applies its facts, or leaves everything as it was. After a panic in the
/// middle of applying the draft says so, and nothing is put back.
fn decide(
    state: &mut State,
    draft: &mut Draft,
    probe: &Probe,
    check: Check,
    command: &Command,
) -> Result<Made, Fault> {
    let (savepoint, mark) = (state.savepoint(), draft.mark());
    let made = catch_unwind(AssertUnwindSafe(|| make(state, draft, probe, command)));
    let made = made.unwrap_or_else(|panic| Err(NotMade::Bug(panic_text(&*panic))));
    let fault = match made {
        Ok(made) if check == Check::Turn || !violates(state, probe, command) => return Ok(made),
        Ok(_) => bug(command, "its facts break an invariant".into()),
        Err(NotMade::KeysFull) => Fault::KeysFull,
        Err(NotMade::Bug(what)) => bug(command, what),
    };
    if !draft.applying {
        state.rollback_to(savepoint);
        draft.cut(mark);
    }
    Err(fault)
}

fn violates(state: &State, probe: &Probe, command: &Command) -> bool {
    probe.violates.is_some_and(|violates| violates(command)) || state.check_touched().is_err()
}

fn bug(command: &Command, what: String) -> Fault {
    error!(operation = command.act.operation(), what, "a command met a bug");
    Fault::Internal(what)
}

/// Decides one command, applies its facts and encodes them.
fn make(
    state: &mut State,
    draft: &mut Draft,
    probe: &Probe,
    command: &Command,
) -> Result<Made, NotMade> {
    if let Some(key) = &command.key
        && state.keys_full()
        && !state.has_key(&key.hash)
    {
        return Err(NotMade::KeysFull);
    }
    state.prepare(command);
    if let Some(before_decide) = probe.before_decide {
        before_decide(command);
    }
    match state.decide(command) {
        Decision::Done { outcome, entries } => {
            draft.applying = true;
            if let Some(before_apply) = probe.before_apply {
                before_apply(command);
            }
            let fits = entries.iter().try_for_each(|entry| apply(state, draft, entry));
            draft.applying = false;
            fits.map_err(NotMade::Bug)?;
            Ok(Made { outcome, replayed: false })
        }
        Decision::Replay { outcome, .. } => {
            if let Some(key) = &command.key {
                draft.repeats.push(Repeat { key: key.hash, origin: command.origin });
            }
            Ok(Made { outcome, replayed: true })
        }
        Decision::Refuse(refusal) => {
            Ok(Made { outcome: Outcome::Refused(refusal), replayed: false })
        }
    }
}

fn apply(state: &mut State, draft: &mut Draft, entry: &Entry) -> Result<(), String> {
    state.apply(entry).map_err(|misfit| misfit.to_string())?;
    draft.push(entry);
    Ok(())
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
