//! Standing at the head of the log again: after a failed append, an unknown one, a log that went
//! another way.
//!
//! While that takes time, those who wait are looked after: replays are answered from the record,
//! and whose time is over is told the truth: surely not done, or not known yet.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use noondrop_core::{Command, Decision, Moment, Outcome, Refusal, Seq};
use noondrop_log::{AppendError, BeginError, Log, LogError, Position, Row, verify_chain};
use tracing::{error, info, warn};

use crate::call::{Answered, Call, Fault, Pending, Reply};
use crate::clock::{Clock, Entropy, Reading};
use crate::error::{Causes, StartError};
use crate::options::Planted;
use crate::recent::Evidence;
use crate::replay::{ReplayError, apply_row, replay};
use crate::sequencer::Sequencer;

const BACKOFF_MS_FIRST: u64 = 5;
const BACKOFF_MS_MAX: u64 = 1_000;

/// Why no turn can be taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum TroubleCause {
    /// A row could not be appended.
    Append(AppendError),
    /// The store could not be read, opened or kept.
    Log(LogError),
    /// The log's rows do not lead to a state.
    Replay(ReplayError),
    /// The log became empty under us. It is not begun anew by itself.
    LogEmptied,
    /// The log's history keeps changing.
    HistoryUnsettled,
    /// The log shows less than it was found to have.
    OldView {
        /// Where its rows end for us.
        ours: Position,
        /// Where they end.
        head: Position,
    },
    /// The clock's own facts, or the engine's, do not fit.
    Rules(String),
}

impl fmt::Display for TroubleCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(_) => f.write_str("could not append a row"),
            Self::Log(_) => f.write_str("the log fails"),
            Self::Replay(_) => f.write_str("could not read the state again from the log"),
            Self::LogEmptied => {
                f.write_str("the log lost all its rows; restart to begin a new one")
            }
            Self::HistoryUnsettled => f.write_str("the log's history keeps changing"),
            Self::OldView { ours, head } => {
                write!(f, "the log shows its rows up to {ours} only, and has them up to {head}")
            }
            Self::Rules(what) => f.write_str(what),
        }
    }
}

impl Error for TroubleCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Append(cause) => Some(cause),
            Self::Log(cause) => Some(cause),
            Self::Replay(cause) => Some(cause),
            Self::LogEmptied | Self::HistoryUnsettled | Self::OldView { .. } | Self::Rules(_) => {
                None
            }
        }
    }
}

impl From<LogError> for TroubleCause {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<ReplayError> for TroubleCause {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

impl From<TroubleCause> for StartError {
    fn from(cause: TroubleCause) -> Self {
        match cause {
            TroubleCause::Append(error) => Self::Append(error),
            TroubleCause::Log(error) => Self::Log(error),
            TroubleCause::Replay(error) => Self::Replay(error),
            TroubleCause::Rules(what) => Self::Misfit(what),
            TroubleCause::LogEmptied
            | TroubleCause::HistoryUnsettled
            | TroubleCause::OldView { .. } => Self::Unwritten,
        }
    }
}

/// A store that fails: since when, why, and when it is tried again. Times are
/// [`Clock::elapsed_ms`].
#[derive(Debug)]
pub struct Trouble {
    /// The first failure.
    pub since_ms: u64,
    /// The next attempt.
    pub retry_at_ms: u64,
    /// The newest failure.
    pub cause: TroubleCause,
    backoff_ms: u64,
}

/// A turn that is undone in memory and may be durable all the same.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) row: Row,
    /// Complete but for the knowledge that they are true.
    pub(crate) answers: Vec<Answered>,
}

impl Tried {
    pub(crate) fn len(&self) -> usize {
        self.answers.len()
    }

    /// The callers, each with the same fault. Faults that were decided stay what they are.
    pub(crate) fn into_answers(self, fault: impl Fn() -> Fault) -> impl Iterator<Item = Answered> {
        self.answers.into_iter().map(move |mut answered| {
            if answered.answer.is_ok() {
                answered.answer = Err(fault());
            }
            answered
        })
    }
}

impl<L: Log, C: Clock, E: Entropy> Sequencer<L, C, E> {
    /// Whether a failing store is left alone for now.
    pub(crate) fn may_try(&self) -> bool {
        self.trouble.as_ref().is_none_or(|trouble| trouble.retry_at_ms <= self.clock.elapsed_ms())
    }

    pub(crate) fn fail(&mut self, cause: TroubleCause) {
        let now = self.clock.elapsed_ms();
        let (since_ms, backoff_ms) = if let Some(known) = &self.trouble {
            (known.since_ms, (known.backoff_ms * 2).min(BACKOFF_MS_MAX))
        } else {
            error!(error = %Causes(&cause), "the log fails; commands wait, reads go on");
            (now, BACKOFF_MS_FIRST)
        };
        self.tally.store_failures += 1;
        self.trouble = Some(Trouble { since_ms, retry_at_ms: now + backoff_ms, cause, backoff_ms });
    }

    /// Comes to the head of the log, whatever happened before. Who waited for a row of unknown end
    /// is answered, or waits for the next turn.
    pub(crate) fn stand(&mut self, answers: &mut Vec<Answered>) -> Result<Reading, TroubleCause> {
        let durable = if self.trouble.is_some() { Some(self.log.recover()?) } else { None };
        if self.distrusted {
            self.reload(answers)?;
        }
        let source_ms = self.learn(answers)?;
        // What is durable was found out by recovering; a view that shows less tells nothing about a row of unknown end.
        if let Some(head) = durable.filter(|head| head.seq > self.position.seq) {
            return Err(TroubleCause::OldView { ours: self.position, head });
        }
        if let Some(tried) = self.tried.take() {
            info!(row = tried.row.seq, "a row of unknown end is not in the log; deciding again");
            self.wait_again(tried.answers, answers);
        }
        if let Some(trouble) = self.trouble.take() {
            let failed_ms = self.clock.elapsed_ms() - trouble.since_ms;
            info!(failed_ms, "the log works again");
        }
        self.looked_at = 0;
        Ok(Reading {
            source_ms: source_ms.unwrap_or_else(|| self.clock.wall_ms()),
            elapsed_ms: self.clock.elapsed_ms(),
        })
    }

    /// Applies what the log has after our position. The store's clock, if it has one.
    fn learn(&mut self, answers: &mut Vec<Answered>) -> Result<Option<u64>, TroubleCause> {
        let mut changed_before = false;
        loop {
            match self.log.begin(self.position) {
                Ok(begun) if begun.rows.is_empty() => return Ok(begun.clock),
                Ok(begun) => {
                    verify_chain(&self.position, &begun.rows).map_err(ReplayError::Chain)?;
                    begun.rows.into_iter().try_for_each(|row| self.learn_row(row, answers))?;
                }
                Err(BeginError::HistoryChanged { .. }) if changed_before => {
                    return Err(TroubleCause::HistoryUnsettled);
                }
                Err(BeginError::HistoryChanged { ours, found }) => {
                    changed_before = true;
                    self.history_changed(ours, found, answers)?;
                }
                Err(BeginError::Failed(error)) => return Err(error.into()),
            }
        }
    }

    fn learn_row(&mut self, row: Row, answers: &mut Vec<Answered>) -> Result<(), TroubleCause> {
        if let Err(error) = apply_row(&mut self.state, &row) {
            self.distrusted = true;
            return Err(error.into());
        }
        self.position = row.position();
        self.recent.keep(row);
        self.adopt_tried(self.position, answers);
        Ok(())
    }

    /// The log has the row whose end was unknown: its turn stands, and is answered.
    fn adopt_tried(&mut self, found: Position, answers: &mut Vec<Answered>) {
        if let Some(tried) = self.tried.take_if(|tried| tried.row.position() == found) {
            info!(row = %found, "a row of unknown end is in the log; its callers are answered");
            self.own_entries.clear();
            self.count_row(&tried.row);
            self.count_answers(&tried.answers);
            answers.extend(tried.answers);
        }
    }

    /// Drops the state and reads it again from the log.
    fn reload(&mut self, answers: &mut Vec<Answered>) -> Result<(), TroubleCause> {
        let opener = self.log.opener();
        let replayed = replay(&*opener)?;
        if !replayed.state.is_started() {
            return Err(TroubleCause::LogEmptied);
        }
        self.state = replayed.state;
        self.position = replayed.position;
        self.recent.clear();
        self.repeats.clear();
        self.tally.reloads += 1;
        if let Some(seq) = self.tried.as_ref().map(|tried| tried.row.seq)
            && let Some(row) = opener.reader()?.row(seq)?
        {
            self.adopt_tried(row.position(), answers);
        }
        self.distrusted = false;
        warn!(position = %self.position, "the state was read again from the log");
        Ok(())
    }

    /// The log went back or took another branch (RULES R1): keeps what it lost, tells, and starts
    /// over from it.
    fn history_changed(
        &mut self,
        ours: Position,
        found: Position,
        answers: &mut Vec<Answered>,
    ) -> Result<(), TroubleCause> {
        if self.options.probe.plants(Planted::HistoryIgnored) {
            self.position = found;
            return Ok(());
        }
        self.distrusted = true;
        self.tally.history_changes += 1;
        error!(%ours, log_has = %found, "the log's history changed: answered rows are gone from it");
        self.keep_evidence(ours, found);
        if let Some(tried) = self.tried.take() {
            answers.extend(tried.into_answers(|| Fault::OutcomeUnknown));
        }
        self.reload(answers)
    }

    fn keep_evidence(&self, ours: Position, found: Position) {
        let Some(directory) = &self.options.evidence_dir else { return };
        let Ok(mut reader) = self.log.opener().reader() else {
            warn!("no evidence is kept: the log can not be read beside the sequencer");
            return;
        };
        let lost = self.recent.lost(&mut *reader);
        let unanswered = self.tried.as_ref().map(|tried| &tried.row);
        let rows = lost.len();
        match (Evidence { ours, found, lost: &lost, unanswered }).write(directory) {
            Ok(path) => error!(path = %path.display(), rows, "the rows that the log lost are kept"),
            Err(error) => error!(%error, rows, "could not keep the rows that the log lost"),
        }
    }

    /// Calls of an undone turn wait for the next one, before all others. Faults are final.
    pub(crate) fn wait_again(&mut self, undone: Vec<Answered>, answers: &mut Vec<Answered>) {
        for answered in undone.into_iter().rev() {
            let Answered { ticket, deadline_ms, answer } = answered;
            match answer {
                Ok(reply) => {
                    let call = Call { command: reply.command, deadline_ms };
                    self.waiting.push_front(Pending { ticket, call });
                }
                Err(fault) => {
                    self.tally.fault(&fault);
                    answers.push(Answered { ticket, deadline_ms, answer: Err(fault) });
                }
            }
        }
        self.looked_at = 0;
    }

    /// Looks after everyone while no turn can be taken.
    pub(crate) fn wait_out(&mut self, calls: &mut VecDeque<Pending>, answers: &mut Vec<Answered>) {
        let now = self.clock.elapsed_ms();
        let first = answers.len();
        // Who set no deadline has one from here on: nobody waits for ever.
        let latest = now.saturating_add(self.options.wait_ms_max);
        self.waiting.extend(calls.drain(..));
        for pending in self.waiting.iter_mut().skip(self.looked_at) {
            pending.call.deadline_ms.get_or_insert(latest);
        }
        self.answer_from_record(answers);
        self.waiting.retain(|pending| {
            let in_time = pending.call.deadline_ms.is_none_or(|deadline| now < deadline);
            if !in_time {
                answers.push(Answered::fault(pending, Fault::StoreFailing));
            }
            in_time
        });
        let said_not_done = self.options.probe.plants(Planted::UnknownSaidNotDone);
        self.looked_at = self.waiting.len();
        if let Some(tried) = &mut self.tried {
            let late = tried
                .answers
                .extract_if(.., |answered| now >= *answered.deadline_ms.get_or_insert(latest));
            answers.extend(late.map(|mut answered| {
                if answered.answer.is_ok() {
                    answered.answer = Err(if said_not_done {
                        Fault::StoreFailing
                    } else {
                        Fault::OutcomeUnknown
                    });
                }
                answered
            }));
        }
        self.count_answers(&answers[first..]);
    }

    /// A key whose outcome is durable is answered also while nothing can be written.
    fn answer_from_record(&mut self, answers: &mut Vec<Answered>) {
        if self.distrusted || self.looked_at == self.waiting.len() {
            return;
        }
        let at = self.state.last_at();
        self.state.open_turn(Moment { seq: Seq(self.position.seq + 1), at, nonce: [0; 16] });
        for pending in self.waiting.split_off(self.looked_at) {
            let Some((outcome, replayed)) = self.recorded(&pending.call.command) else {
                self.waiting.push_back(pending);
                continue;
            };
            let Pending { ticket, call: Call { command, deadline_ms } } = pending;
            let reply = Reply { command, outcome, replayed, position: self.position, at };
            answers.push(Answered { ticket, deadline_ms, answer: Ok(reply) });
        }
        self.undo_open_turn();
    }

    /// What a durable key answers, and whether that is a replay.
    fn recorded(&self, command: &Command) -> Option<(Outcome, bool)> {
        let key = command.key?;
        if !self.state.has_key(&key.hash) {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(|| self.state.decide(command))).ok()? {
            Decision::Replay { outcome, durable: true } => Some((outcome, true)),
            Decision::Refuse(refusal @ Refusal::KeyReused) => {
                Some((Outcome::Refused(refusal), false))
            }
            Decision::Replay { .. } | Decision::Refuse(_) | Decision::Done { .. } => None,
        }
    }

    /// Undoes what the open turn did. Where that does not work, the state is read again from the
    /// log.
    pub(crate) fn undo_open_turn(&mut self) {
        if self.options.probe.plants(Planted::UndoSkipped) {
            self.state.commit_turn();
            return;
        }
        if let Err(violation) = self.state.undo_turn() {
            error!(%violation, "a turn could not be undone; the state is read again from the log");
            self.distrusted = true;
        }
    }
}
