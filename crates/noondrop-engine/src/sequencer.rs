//! The pure step: one turn after another, without threads, timers or waiting. The thread and the
//! simulator share it.
//!
//! Its parts: [`crate::decide`] has the commands of a turn and its append; [`crate::settle`] stands
//! the sequencer at the head of the log again after anything that went wrong, and looks after those
//! who wait meanwhile.

use std::collections::VecDeque;

use noondrop_core::{
    ActorIx, Digest16, Entry, LEVEL, Name, ShopIx, State, Timestamp,
    fact::{Fact, LogStarted, ShopDefined},
};
use noondrop_log::{BeginError, Log, LogError, Position};
use tracing::info;

use crate::call::{Answered, Fault, Pending};
use crate::clock::{Clock, Entropy, LogTime, Reading};
use crate::draft::Draft;
use crate::error::StartError;
use crate::options::EngineOptions;
use crate::recent::Recent;
use crate::replay::{Replayed, replay};
use crate::settle::{Tried, Trouble};
use crate::tally::Tally;

/// The shop that every log has from its first row on.
const FIRST_SHOP: &str = "main";

/// How often a start's first row may lose its place to other writers.
const FIRST_ROW_ATTEMPTS: usize = 100;

/// Decides commands in turns, and makes each turn one durable row of the log.
///
/// Between two calls of [`Sequencer::turn`] its state is the one at [`Sequencer::position`],
/// durable; whatever a turn could not make durable is undone before the call returns.
pub struct Sequencer<L: Log, C: Clock, E: Entropy> {
    pub(crate) log: L,
    pub(crate) clock: C,
    pub(crate) entropy: E,
    pub(crate) options: EngineOptions,
    pub(crate) writer: [u8; 16],
    pub(crate) attempt: u32,
    pub(crate) state: State,
    pub(crate) position: Position,
    pub(crate) time: LogTime,
    pub(crate) draft: Draft,
    /// Calls that were heard and have no answer yet: they come before new ones.
    pub(crate) waiting: VecDeque<Pending>,
    /// How many of the waiting were already looked at for an answer from the record.
    pub(crate) looked_at: usize,
    /// A row that the store did not tell about.
    pub(crate) tried: Option<Tried>,
    pub(crate) trouble: Option<Trouble>,
    /// The state in memory is not the log's; it is read again before anything else.
    pub(crate) distrusted: bool,
    /// Facts of the engine itself, for the next row.
    pub(crate) own_entries: Vec<Entry>,
    /// Facts about repeated keys, for the next row that is written anyway. Losing them is allowed.
    pub(crate) repeats: Vec<Entry>,
    pub(crate) recent: Recent,
    pub(crate) tally: Tally,
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    /// The durable position after the turn.
    pub position: Position,
    /// Whether the log moved: by this turn, or by what it learned.
    pub moved: bool,
}

impl<L: Log, C: Clock, E: Entropy> Sequencer<L, C, E> {
    /// Recovers the state from the log, begins the log if it is empty, and writes what this start
    /// has to say: changed settings, an accepted loss.
    pub fn recover(
        mut log: L,
        clock: C,
        mut entropy: E,
        options: EngineOptions,
    ) -> Result<Self, StartError> {
        let started_ms = clock.elapsed_ms();
        let mut replayed = replay(&*log.opener())?;
        let source_ms = catch_up(&mut log, &mut replayed)?;
        let Replayed { state, position } = replayed;
        let took_ms = clock.elapsed_ms() - started_ms;
        info!(%position, took_ms, holds = state.counters().holds, "the state is recovered");
        let reading = Reading {
            source_ms: source_ms.unwrap_or_else(|| clock.wall_ms()),
            elapsed_ms: clock.elapsed_ms(),
        };
        let mut time = LogTime::new(reading);
        // Where the last row is ahead of the clock, time goes on from it right away.
        time.fix(reading, state.last_at());
        let mut sequencer = Self {
            writer: entropy.nonce(),
            attempt: 0,
            time,
            draft: Draft::default(),
            waiting: VecDeque::new(),
            looked_at: 0,
            tried: None,
            trouble: None,
            distrusted: false,
            own_entries: Vec::new(),
            repeats: Vec::new(),
            recent: Recent::default(),
            tally: Tally::default(),
            log,
            clock,
            entropy,
            options,
            state,
            position,
        };
        sequencer.own_entries = sequencer.first_entries();
        sequencer.write_first_row()?;
        sequencer.come_to_rest_after_loss()?;
        Ok(sequencer)
    }

    /// What this start tells the log.
    fn first_entries(&mut self) -> Vec<Entry> {
        if !self.state.is_started() {
            let started = LogStarted {
                log_id: Digest16(self.entropy.nonce()),
                key_secret: self.entropy.secret(),
                level: LEVEL,
                settings: self.options.settings,
            };
            let shop = ShopDefined {
                shop: ShopIx(0),
                name: Name::parse(FIRST_SHOP).expect("a constant that is a name"),
                live: false,
                by: ActorIx::SYSTEM,
            };
            return vec![Fact::LogStarted(started).into(), Fact::ShopDefined(shop).into()];
        }
        let restored = self.options.restored.map(|restored| Fact::LogRestored(restored).into());
        let loss = self.options.accepted_loss.map(|loss| Fact::LossAccepted(loss).into());
        let changed = self.state.settings() != self.options.settings;
        let settings = changed.then(|| Fact::SettingsChanged(self.options.settings).into());
        let erased = self.options.erased.iter();
        let erased = erased.map(|buyer| Fact::BuyerErased(self.state.erased_again(*buyer)).into());
        restored.into_iter().chain(loss).chain(settings).chain(erased).collect()
    }

    fn write_first_row(&mut self) -> Result<(), StartError> {
        if self.own_entries.is_empty() {
            return Ok(());
        }
        for _ in 0..FIRST_ROW_ATTEMPTS {
            self.turn(&mut VecDeque::new(), &mut Vec::new());
            if let Some(trouble) = self.trouble.take() {
                return Err(trouble.cause.into());
            }
            if self.own_entries.is_empty() {
                return Ok(());
            }
        }
        Err(StartError::Unwritten)
    }

    /// Lets all lapse that is due, where rows are known to be lost. Fences were given out in them at
    /// times up to now; while log time lags, a new one could be below (RULES R6).
    fn come_to_rest_after_loss(&mut self) -> Result<(), StartError> {
        if self.options.accepted_loss.is_none() && self.options.restored.is_none() {
            return Ok(());
        }
        while self.turn(&mut VecDeque::new(), &mut Vec::new()).moved {}
        self.trouble.take().map_or(Ok(()), |trouble| Err(trouble.cause.into()))
    }

    /// One turn: learns what others wrote, fixes the time, expires what is due, decides the calls
    /// in order, makes it all durable in one row, and answers (RULES R2).
    ///
    /// Takes calls from the front, as many as one turn holds. `answers` receives what is durable or
    /// surely not done. Calls that can not be answered yet, because the store fails, stay inside
    /// and come first in the next turn.
    pub fn turn(&mut self, calls: &mut VecDeque<Pending>, answers: &mut Vec<Answered>) -> TurnEnd {
        let before = self.position;
        if self.may_try() {
            match self.stand(answers) {
                Ok(reading) => self.take_turn(reading, calls, answers),
                Err(cause) => self.fail(cause),
            }
        }
        if self.trouble.is_some() {
            self.wait_out(calls, answers);
        }
        TurnEnd { position: self.position, moved: self.position != before }
    }

    /// Ends the waiting of all whom the sequencer still holds: the engine stops.
    pub fn give_up(&mut self, answers: &mut Vec<Answered>) {
        if let Some(tried) = self.tried.take() {
            answers.extend(tried.into_answers(|| Fault::OutcomeUnknown));
        }
        let waiting = self.waiting.drain(..);
        answers.extend(waiting.map(|pending| Answered::fault(&pending, Fault::StoreFailing)));
        self.looked_at = 0;
    }

    /// When the next turn is worth taking without a new call, on the scale of
    /// [`Clock::elapsed_ms`].
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let now = self.clock.elapsed_ms();
        if let Some(trouble) = &self.trouble {
            return Some(trouble.retry_at_ms.max(now));
        }
        if self.distrusted || !self.waiting.is_empty() || !self.own_entries.is_empty() {
            return Some(now);
        }
        self.state.next_deadline().map(|at| now.saturating_add(self.time.wait_ms(at, now)))
    }

    /// The durable state, or none while it is being read again from a log whose history changed.
    pub fn state(&self) -> Option<&State> {
        (!self.distrusted).then_some(&self.state)
    }

    /// Where the state stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Now, in log time: the time that a query is answered at.
    pub fn now(&self) -> Timestamp {
        self.time.estimate(self.clock.elapsed_ms()).max(self.state.last_at())
    }

    /// Calls that were heard and are not answered.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.tried.as_ref().map_or(0, Tried::len)
    }

    /// Counts since the start.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Since when and why the store fails, if it does.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Maintenance of the store, for when nobody waits.
    pub fn between_turns(&mut self) {
        if self.trouble.is_none()
            && let Err(error) = self.log.between_turns()
        {
            self.fail(error.into());
        }
    }

    /// Work on the log that somebody else prepared. A failure is one of the log, as in a turn.
    pub(crate) fn upkeep(&mut self, job: impl FnOnce(&mut L) -> Result<(), LogError>) {
        if self.trouble.is_none()
            && let Err(error) = job(&mut self.log)
        {
            self.fail(error.into());
        }
    }

    /// An operator says that the clock is right after a step.
    pub fn accept_clock_step(&mut self) {
        let reading =
            Reading { source_ms: self.clock.wall_ms(), elapsed_ms: self.clock.elapsed_ms() };
        self.time.accept_step(reading);
    }

    /// After a panic that got past all guards: nothing in memory is trusted any more, and nobody is
    /// waited for.
    pub(crate) fn distrust(&mut self) {
        self.distrusted = true;
        self.tried = None;
        self.waiting.clear();
        self.looked_at = 0;
        self.draft = Draft::default();
    }
}

/// Learns what others wrote while this process recovered. The store's clock, if it has one.
fn catch_up<L: Log>(log: &mut L, replayed: &mut Replayed) -> Result<Option<u64>, StartError> {
    loop {
        let begun = log.begin(replayed.position).map_err(begin_failed)?;
        if begun.rows.is_empty() {
            return Ok(begun.clock);
        }
        begun.rows.iter().try_for_each(|row| replayed.apply(row))?;
    }
}

fn begin_failed(error: BeginError) -> StartError {
    match error {
        BeginError::Failed(error) => StartError::Log(error),
        changed @ BeginError::HistoryChanged { .. } => StartError::Begin(changed),
    }
}
