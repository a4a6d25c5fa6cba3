//! Erased buyers' texts leave the log: beside the turns, a page at a time, again after a crash (RULES R13).
//!
//! The fact is durable and memory is clean by then. A thread of its own reads the log from the first row on, slowly; what is to
//! be overwritten goes to the sequencer, which owns the log, and is written between two turns. Then the snapshots from before
//! the fact go, and the write-ahead log is emptied; only after that it is noted, durably, that it is done. A start does
//! again whatever is not noted.

use std::error::Error;
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use noondrop_core::codec::CodecError;
use noondrop_core::{Eraser, Seq};
use noondrop_log::{GENESIS, Log, LogError, LogReader, Position, Row};
use tracing::{info, warn};

use crate::error::Causes;
use crate::handle::Handle;
use crate::queue::lock;
use crate::shared::Shared;

const PAGE_ROWS: usize = 1_024;
const PAGE_BYTES: usize = 1 << 20;
/// What is written between two turns at most: a few dozen pages of a disk, as a turn of its own would.
const REWRITE_ROWS: usize = 64;
/// How soon to try again what a reader was in the way of, or what failed.
const BUSY_WAIT: Duration = Duration::from_millis(20);
const FAILED_WAIT: Duration = Duration::from_secs(2);

/// How the erasing of texts from the log is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasureStatus {
    /// Buyers whose texts may still be in rows of the log or in snapshots.
    pub pending: u64,
    /// The row up to which the log was looked through, of the one that says what is pending.
    pub scanned: u64,
    /// Rows that were overwritten since the start.
    pub rows_rewritten: u64,
    /// The row up to which all that was erased is gone; 0: none was, or it is not known yet.
    pub done: u64,
    /// How often it failed; it is tried again.
    pub failed: u64,
}

#[derive(Default)]
struct Plan {
    /// The row of the newest erasure.
    newest: Seq,
    done: Seq,
    stopping: bool,
    status: ErasureStatus,
}

/// What the thread is told, and what it tells.
#[derive(Default)]
pub(crate) struct Erasures {
    plan: Mutex<Plan>,
    changed: Condvar,
}

impl Erasures {
    /// The state's newest erasure is that of this row, and durable.
    pub(crate) fn erased(&self, newest: Seq) {
        let mut plan = lock(&self.plan);
        if plan.newest == newest {
            return;
        }
        // A history that changed may have an earlier one, or another one in the same place.
        plan.done = plan.done.min(Seq(newest.0.saturating_sub(1)));
        plan.newest = newest;
        plan.status.pending = plan.status.pending.max(u64::from(newest > plan.done));
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        lock(&self.plan).stopping = true;
        self.changed.notify_all();
    }

    pub(crate) fn status(&self) -> ErasureStatus {
        lock(&self.plan).status.clone()
    }

    fn note(&self, change: impl FnOnce(&mut ErasureStatus)) {
        change(&mut lock(&self.plan).status);
    }

    /// Waits for an erasure whose texts are not gone. None: the engine stops.
    fn wait(&self) -> Option<Seq> {
        let mut plan = lock(&self.plan);
        while !plan.stopping && plan.newest <= plan.done {
            plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
        }
        (!plan.stopping).then_some(plan.newest)
    }

    /// Waits a little. False: the engine stops.
    fn pause(&self, pause: Duration) -> bool {
        let plan = lock(&self.plan);
        let waited = self.changed.wait_timeout_while(plan, pause, |plan| !plan.stopping);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    fn is_stopping(&self) -> bool {
        lock(&self.plan).stopping
    }

    fn finish(&self, through: Seq) {
        let mut plan = lock(&self.plan);
        plan.done = through;
        plan.status.done = through.0;
        plan.status.pending = u64::from(plan.newest > through);
    }
}

/// Work on the log for its owner, with its way back.
type Job = Box<dyn FnOnce(&mut dyn Log) -> Result<(), LogError> + Send>;

#[derive(Default)]
struct Desk {
    job: Option<Job>,
    closed: bool,
}

/// Where the sequencer finds work on the log. One at a time: only one thread gives it.
#[derive(Default)]
pub(crate) struct Upkeep {
    desk: Mutex<Desk>,
}

impl Upkeep {
    /// Between turns, on the sequencer's thread.
    pub(crate) fn work(&self, work: impl FnOnce(Job)) {
        let job = lock(&self.desk).job.take();
        if let Some(job) = job {
            work(job);
        }
    }

    /// Nobody works any more: who waits for it hears that.
    pub(crate) fn close(&self) {
        let mut desk = lock(&self.desk);
        desk.closed = true;
        let job = desk.job.take();
        drop(desk);
        drop(job);
    }

    fn give(&self, job: Job) {
        let mut desk = lock(&self.desk);
        if !desk.closed {
            desk.job = Some(job);
        }
    }
}

/// Why the texts are not gone yet.
#[derive(Debug)]
enum Unfinished {
    /// The engine is stopping: the next start goes on.
    Stopping,
    /// The log could not be read, or does not know its snapshots.
    Log(LogError),
    /// The log could not be written; the sequencer told why.
    NotWritten,
    /// A row is not understood.
    Row { row: Position, cause: CodecError },
    /// The log is not the one any more that the state came from.
    Changed,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopping => f.write_str("the engine is stopping"),
            Self::Log(_) => f.write_str("the log could not be read"),
            Self::NotWritten => f.write_str("the log could not be written"),
            Self::Row { row, .. } => write!(f, "row {row} could not be read"),
            Self::Changed => f.write_str("the log changed meanwhile"),
        }
    }
}

impl Error for Unfinished {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Log(cause) => Some(cause),
            Self::Row { cause, .. } => Some(cause),
            Self::Stopping | Self::NotWritten | Self::Changed => None,
        }
    }
}

impl From<LogError> for Unfinished {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// The body of the thread.
pub(crate) fn run(shared: &Arc<Shared>, handle: &Handle) {
    let erasures = &shared.erasures;
    while erasures.wait().is_some() {
        match (Pass { shared, handle }).run() {
            Ok(()) => {}
            Err(Unfinished::Stopping) => return,
            Err(error) => {
                warn!(error = %Causes(&error), "erased texts are not all gone yet; trying again");
                erasures.note(|status| status.failed += 1);
                if !erasures.pause(FAILED_WAIT) {
                    return;
                }
            }
        }
    }
}

/// Once through the log.
struct Pass<'a> {
    shared: &'a Arc<Shared>,
    handle: &'a Handle,
}

impl Pass<'_> {
    fn run(&self) -> Result<(), Unfinished> {
        let mut reader = self.shared.opener.reader()?;
        let done = self.noted(&mut *reader)?;
        let query = self.handle.query_blocking(move |state, _| state.erased_after(done));
        let erased = query.map_err(|_| Unfinished::Stopping)?.value;
        let buyers = erased.len() as u64;
        let mut finder = Eraser::new(erased);
        let Some(last) = finder.last() else {
            self.shared.erasures.finish(done);
            return Ok(());
        };
        self.shared.erasures.note(|status| status.pending = buyers);
        info!(buyers, through = last.0, "taking erased texts out of the log");
        let rewritten = self.rewrite(&mut *reader, &mut finder, last)?;
        let through = reader.row(last.0)?.ok_or(Unfinished::Changed)?.position();
        drop(reader);
        self.drop_snapshots(last)?;
        self.scrub(through)?;
        self.shared.erasures.finish(last);
        info!(buyers, rewritten, %through, "erased texts are gone from the log and its snapshots");
        Ok(())
    }

    /// Up to where all is done, as far as this log knows it.
    fn noted(&self, reader: &mut dyn LogReader) -> Result<Seq, Unfinished> {
        let noted = self.shared.opener.scrubbed()?;
        let known =
            noted == GENESIS || reader.row(noted.seq)?.is_some_and(|row| row.position() == noted);
        Ok(if known { Seq(noted.seq) } else { Seq(0) })
    }

    fn rewrite(
        &self,
        reader: &mut dyn LogReader,
        eraser: &mut Eraser,
        last: Seq,
    ) -> Result<u64, Unfinished> {
        let throttle = self.shared.opener.throttle();
        let (mut at, mut total) = (0, 0);
        while at < last.0 {
            if self.shared.erasures.is_stopping() {
                return Err(Unfinished::Stopping);
            }
            let room = usize::try_from(last.0 - at).unwrap_or(usize::MAX);
            let rows = reader.page(at, PAGE_ROWS.min(room), PAGE_BYTES)?;
            at = rows.last().ok_or(Unfinished::Changed)?.seq;
            let changes = changes(eraser, &rows)?;
            for some in changes.chunks(REWRITE_ROWS) {
                let (some, rows) = (some.to_vec(), some.len() as u64);
                self.have_done(move |log| log.rewrite_private(&some))?;
                self.shared.erasures.note(|status| status.rows_rewritten += rows);
            }
            total += changes.len() as u64;
            self.shared.erasures.note(|status| status.scanned = at);
            let bytes = rows.iter().map(|row| row.facts.len() + row.private.len());
            throttle.wait(bytes.sum());
        }
        Ok(total)
    }

    /// Older snapshots hold the texts. A new one comes first, so that a start has one; the builder makes one after the other, so
    /// that none of an older state can be stored after this.
    fn drop_snapshots(&self, last: Seq) -> Result<(), Unfinished> {
        let snapshots = self.shared.opener.snapshots();
        if let Err(error) = self.handle.snapshot_now_blocking() {
            warn!(error = %Causes(&*error), "there is no new snapshot; the older ones go all the same");
        }
        snapshots.prune(usize::MAX, &mut |meta| meta.position.seq >= last.0)?;
        Ok(())
    }

    fn scrub(&self, through: Position) -> Result<(), Unfinished> {
        loop {
            let (sender, receiver) = sync_channel(1);
            self.have_done(move |log| {
                let scrubbed = log.scrub(through)?;
                let _ = sender.send(scrubbed);
                Ok(())
            })?;
            if receiver.recv().is_ok_and(|scrubbed| scrubbed) {
                return Ok(());
            }
            if !self.shared.erasures.pause(BUSY_WAIT) {
                return Err(Unfinished::Stopping);
            }
        }
    }

    /// Has the owner of the log do something with it between two turns.
    fn have_done(
        &self,
        work: impl FnOnce(&mut dyn Log) -> Result<(), LogError> + Send + 'static,
    ) -> Result<(), Unfinished> {
        let (sender, receiver) = sync_channel(1);
        self.shared.upkeep.give(Box::new(move |log| {
            let done = work(log);
            if done.is_ok() {
                let _ = sender.send(());
            }
            done
        }));
        self.shared.queue.bell().ring();
        let stopping = || self.shared.erasures.is_stopping();
        receiver
            .recv()
            .map_err(|_| if stopping() { Unfinished::Stopping } else { Unfinished::NotWritten })
    }
}

fn changes(eraser: &mut Eraser, rows: &[Row]) -> Result<Vec<(Position, Vec<u8>)>, Unfinished> {
    let mut changes = Vec::new();
    for row in rows {
        let position = row.position();
        let rewritten = eraser.rewritten(Seq(row.seq), row.level, &row.facts, &row.private);
        let rewritten = rewritten.map_err(|cause| Unfinished::Row { row: position, cause })?;
        changes.extend(rewritten.map(|private| (position, private)));
    }
    Ok(changes)
}
