//! When holds lapse: per pool, runs of hold numbers under the time of their end.
//!
//! The runs are hints, never the truth: a hold that was confirmed, released or extended stays in its old run and is
//! passed over when that comes up, because the hold itself says when it lapses. Holds of one turn have consecutive
//! numbers, so a storm on one item costs a few bytes for all of it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::units::{HoldNo, ItemIx, Timestamp};

/// Consecutive hold numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    count: u32,
}

type Runs = SmallVec<[Run; 2]>;

/// The queues of all pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Lapses {
    pools: Vec<BTreeMap<Timestamp, Runs>>,
    /// The first time of each queue that is not empty.
    heads: BTreeSet<(Timestamp, ItemIx)>,
}

impl Lapses {
    pub(super) fn add_pool(&mut self) {
        self.pools.push(BTreeMap::new());
    }

    pub(super) fn remove_last_pool(&mut self) {
        let queue = self.pools.pop().expect("the pool that is undone was added");
        let pool = ItemIx(u32::try_from(self.pools.len()).expect("pools are counted in 32 bits"));
        if let Some((&head, _)) = queue.first_key_value() {
            self.heads.remove(&(head, pool));
        }
    }

    pub(super) fn push(&mut self, pool: ItemIx, at: Timestamp, no: HoldNo) {
        let queue = &mut self.pools[pool.0 as usize];
        let head = queue.first_key_value().map(|(&head, _)| head);
        let runs = queue.entry(at).or_default();
        match runs.last_mut() {
            Some(run) if run.first + u64::from(run.count) == no.0 => run.count += 1,
            Some(run) if run.first <= no.0 && no.0 < run.first + u64::from(run.count) => {}
            _ => runs.push(Run { first: no.0, count: 1 }),
        }
        if head.is_none_or(|head| at < head) {
            if let Some(head) = head {
                self.heads.remove(&(head, pool));
            }
            self.heads.insert((at, pool));
        }
    }

    /// Undoes the newest [`Self::push`] of this pool and time.
    pub(super) fn unpush(&mut self, pool: ItemIx, at: Timestamp, no: HoldNo) {
        let queue = &mut self.pools[pool.0 as usize];
        let Some(runs) = queue.get_mut(&at) else {
            return;
        };
        if let Some(run) = runs.last_mut()
            && run.first + u64::from(run.count) == no.0 + 1
        {
            run.count -= 1;
            if run.count == 0 {
                runs.pop();
            }
        }
        if runs.is_empty() {
            self.drop_bucket(pool, at);
        }
    }

    /// The earliest time at which a hold may lapse.
    pub(super) fn head(&self) -> Option<(Timestamp, ItemIx)> {
        self.heads.first().copied()
    }

    /// Takes the numbers under one pool and time out of the queue.
    pub(super) fn take(
        &mut self,
        pool: ItemIx,
        at: Timestamp,
    ) -> impl Iterator<Item = HoldNo> + use<> {
        let runs = self.drop_bucket(pool, at);
        runs.into_iter().flat_map(|run| (run.first..run.first + u64::from(run.count)).map(HoldNo))
    }

    /// The numbers of a pool with their times, earliest first.
    pub(super) fn upcoming(&self, pool: ItemIx) -> impl Iterator<Item = (Timestamp, HoldNo)> + '_ {
        self.pools[pool.0 as usize].iter().flat_map(|(&at, runs)| {
            runs.iter().flat_map(move |run| {
                (run.first..run.first + u64::from(run.count)).map(move |no| (at, HoldNo(no)))
            })
        })
    }

    fn drop_bucket(&mut self, pool: ItemIx, at: Timestamp) -> Runs {
        let queue = &mut self.pools[pool.0 as usize];
        let runs = queue.remove(&at).unwrap_or_default();
        if self.heads.remove(&(at, pool))
            && let Some((&head, _)) = queue.first_key_value()
        {
            self.heads.insert((head, pool));
        }
        runs
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pools.iter().map(|queue| queue.len() * 72).sum()
    }
}
