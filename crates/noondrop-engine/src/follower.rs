//! Following the log: from any position to the end in pages, then row by row; and back, where the
//! log went back.
//!
//! A follower sees only rows that were answered or will be. It has a reader of its own, which
//! blocks for as long as a short read takes: on a runtime's thread, call [`Follower::try_next`]
//! where blocking is allowed.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;

use noondrop_log::{GENESIS, LogError, LogReader, Position, Row, verify_chain};

use crate::oneshot::block_on;
use crate::queue::lock;
use crate::shared::Shared;

const PAGE_ROWS: usize = 1_024;
const PAGE_BYTES: usize = 4 << 20;
/// Positions that a follower remembers, near ones densely and far ones sparsely, to find back to a
/// common one.
const LANDMARKS_MAX: usize = 64;

/// What a follower gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Followed {
    /// The next rows, in order, chained to what came before.
    Rows(Vec<Row>),
    /// The log's history changed. Everything after this position is to be forgotten; what comes
    /// next follows it.
    Rewound {
        /// A position that both histories have.
        to: Position,
    },
}

/// How far a follower is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerStatus {
    /// Who follows.
    pub name: &'static str,
    /// The last row that it was given.
    pub seq: u64,
    /// Rows between it and the log's head.
    pub rows_behind: u64,
}

struct Mark {
    name: &'static str,
    seq: AtomicU64,
}

/// All followers of an engine, for its status.
#[derive(Default)]
pub(crate) struct Followers {
    marks: Mutex<Vec<Weak<Mark>>>,
}

impl Followers {
    fn add(&self, mark: &Arc<Mark>) {
        let mut marks = lock(&self.marks);
        marks.retain(|known| known.strong_count() > 0);
        marks.push(Arc::downgrade(mark));
    }

    pub(crate) fn status(&self, head: Position) -> Vec<FollowerStatus> {
        let marks = lock(&self.marks);
        let living = marks.iter().filter_map(Weak::upgrade);
        living
            .map(|mark| {
                let seq = mark.seq.load(Ordering::Relaxed);
                FollowerStatus { name: mark.name, seq, rows_behind: head.seq.saturating_sub(seq) }
            })
            .collect()
    }
}

/// Reads the log from a position on.
pub struct Follower {
    shared: Arc<Shared>,
    reader: Option<Box<dyn LogReader>>,
    position: Position,
    landmarks: Vec<Position>,
    /// The history that `position` was last seen in.
    history: Option<u64>,
    mark: Arc<Mark>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("name", &self.mark.name)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Follower {
    pub(crate) fn new(shared: Arc<Shared>, name: &'static str, from: Position) -> Self {
        let mark = Arc::new(Mark { name, seq: AtomicU64::new(from.seq) });
        shared.followers.add(&mark);
        let landmarks = vec![from];
        Self { shared, reader: None, position: from, landmarks, history: None, mark }
    }

    /// The last row that was given out.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// What comes next, if there is something already. Blocks for a short read. After an error, the
    /// same call may succeed later.
    pub fn try_next(&mut self) -> Result<Option<Followed>, LogError> {
        let followed = self.read();
        if followed.is_err() {
            self.reader = None;
        }
        self.mark.seq.store(self.position.seq, Ordering::Relaxed);
        followed
    }

    /// What comes next, once there is something; none once the engine stopped and all of it was
    /// given out.
    pub fn next_blocking(&mut self) -> Result<Option<Followed>, LogError> {
        loop {
            if let Some(followed) = self.try_next()? {
                return Ok(Some(followed));
            }
            if self.shared.is_stopped() {
                return Ok(None);
            }
            block_on(self.changed());
        }
    }

    /// Waits until [`Follower::try_next`] has something new to look at, or the engine stopped.
    pub async fn changed(&self) {
        let position = self.position;
        poll_fn(|context| {
            let watching = self.shared.watch(position, context.waker());
            if watching && !self.shared.is_stopped() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    fn read(&mut self) -> Result<Option<Followed>, LogError> {
        let history = self.shared.history_changes();
        let head = self.shared.position();
        if self.history != Some(history) && !self.log_has(self.position)? {
            return self.rewind().map(Some);
        }
        self.history = Some(history);
        if head.seq <= self.position.seq {
            return Ok(None);
        }
        let room = usize::try_from(head.seq - self.position.seq).unwrap_or(usize::MAX);
        let after = self.position.seq;
        let rows = self.reader()?.page(after, PAGE_ROWS.min(room), PAGE_BYTES)?;
        match verify_chain(&self.position, &rows) {
            Ok(_) if rows.is_empty() => Ok(None),
            Ok(position) => {
                self.position = position;
                self.remember(position);
                Ok(Some(Followed::Rows(rows)))
            }
            Err(_) => self.rewind().map(Some),
        }
    }

    fn reader(&mut self) -> Result<&mut Box<dyn LogReader>, LogError> {
        if self.reader.is_none() {
            self.reader = Some(self.shared.opener.reader()?);
        }
        Ok(self.reader.as_mut().expect("opened a line above"))
    }

    fn log_has(&mut self, position: Position) -> Result<bool, LogError> {
        if position == GENESIS {
            return Ok(true);
        }
        let row = self.reader()?.row(position.seq)?;
        Ok(row.is_some_and(|row| row.position() == position))
    }

    /// Goes back to the newest remembered position that the log has.
    fn rewind(&mut self) -> Result<Followed, LogError> {
        let mut to = GENESIS;
        for landmark in self.landmarks.clone().into_iter().rev() {
            if self.log_has(landmark)? {
                to = landmark;
                break;
            }
        }
        self.landmarks.retain(|landmark| landmark.seq <= to.seq);
        self.position = to;
        Ok(Followed::Rewound { to })
    }

    fn remember(&mut self, position: Position) {
        self.landmarks.push(position);
        if self.landmarks.len() > LANDMARKS_MAX {
            // Every second one of the older half goes: the further back, the sparser.
            let half = LANDMARKS_MAX / 2;
            let mut index = 0;
            self.landmarks.retain(|_| {
                index += 1;
                index > half || index % 2 == 0
            });
        }
    }
}
