//! Between callers and the sequencer: where calls are gathered before they are submitted, and
//! answers before callers are woken.
//!
//! A **desk** serves the callers of one thread. While a task attends it ([`RuntimeTask`], one per
//! runtime thread), calls that became ready in one round of the executor go to the sequencer
//! together, with one lock; and all answers of a turn come back with one wake of that task, which
//! then wakes the callers on its own thread. The wakes between threads are what a turn of a
//! thousand small calls would else be spent on. A desk that nobody attends works call by call.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::call::{Answered, Fault, Pending, Reply, Ticket};
use crate::queue::{Queue, lock};
use crate::shared::Shared;

type Verdict = Result<Reply, Fault>;

const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 12;
const DESK_BITS: u32 = 64 - SLOT_BITS - GENERATION_BITS;

/// A ticket, read: which desk, which place at it, and which of the callers that had this place one
/// after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) desk: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u16,
}

impl Seat {
    pub(crate) fn ticket(self) -> Ticket {
        let desk = u64::from(self.desk) << (SLOT_BITS + GENERATION_BITS);
        Ticket(desk | u64::from(self.generation) << SLOT_BITS | u64::from(self.slot))
    }

    #[expect(clippy::cast_possible_truncation, reason = "each part is masked to its bits")]
    pub(crate) fn of(Ticket(bits): Ticket) -> Self {
        Self {
            desk: (bits >> (SLOT_BITS + GENERATION_BITS)) as u32,
            generation: (bits >> SLOT_BITS) as u16 & generation_mask(),
            slot: bits as u32 & ((1 << SLOT_BITS) - 1),
        }
    }
}

const fn generation_mask() -> u16 {
    (1 << GENERATION_BITS) - 1
}

#[expect(
    clippy::large_enum_variant,
    reason = "a place is used again and again; boxing is an allocation a call"
)]
enum Occupant {
    Nobody,
    Waiting(Option<Waker>),
    /// The future was dropped; the command goes on.
    Gone,
    Answered(Verdict),
    /// Answered, and the answer taken.
    Read,
}

struct Slot {
    generation: u16,
    occupant: Occupant,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    fn occupy(&mut self) -> Option<(u32, u16)> {
        let occupant = Occupant::Waiting(None);
        if let Some(slot) = self.free.pop() {
            let taken = &mut self.slots[slot as usize];
            taken.occupant = occupant;
            return Some((slot, taken.generation));
        }
        let slot = u32::try_from(self.slots.len()).ok().filter(|slot| *slot < 1 << SLOT_BITS)?;
        self.slots.push(Slot { generation: 0, occupant });
        Some((slot, 0))
    }

    fn free(&mut self, slot: u32) {
        let freed = &mut self.slots[slot as usize];
        freed.occupant = Occupant::Nobody;
        freed.generation = (freed.generation + 1) & generation_mask();
        self.free.push(slot);
    }

    /// Lays an answer on its place. Whom to wake, if he waits.
    fn settle(&mut self, seat: Seat, verdict: Verdict) -> Option<Waker> {
        let slot = self.slots.get_mut(seat.slot as usize)?;
        if slot.generation != seat.generation {
            return None;
        }
        match std::mem::replace(&mut slot.occupant, Occupant::Nobody) {
            Occupant::Waiting(waker) => {
                slot.occupant = Occupant::Answered(verdict);
                waker
            }
            Occupant::Gone => {
                self.free(seat.slot);
                None
            }
            known @ (Occupant::Nobody | Occupant::Answered(_) | Occupant::Read) => {
                slot.occupant = known;
                None
            }
        }
    }

    /// Ends the waiting of everyone: their answers are lost with the turn that had them.
    fn settle_all(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for slot in 0..self.slots.len() {
            let waiting =
                matches!(self.slots[slot].occupant, Occupant::Waiting(_) | Occupant::Gone);
            if waiting {
                let slot = u32::try_from(slot).expect("slots are numbered in 24 bits");
                let generation = self.slots[slot as usize].generation;
                let seat = Seat { desk: 0, slot, generation };
                wakers.extend(self.settle(seat, Err(Fault::OutcomeUnknown)));
            }
        }
        wakers
    }
}

#[derive(Default)]
struct Inbox {
    answers: Vec<Answered>,
    /// All who wait are to be told that their outcome is unknown.
    lost: bool,
    /// Who looks after this desk; none: nobody, and whoever brings answers wakes the callers
    /// himself.
    attendant: Option<Waker>,
}

/// A place where callers wait.
pub(crate) struct Desk {
    id: u32,
    slots: Mutex<Slots>,
    /// Calls to be submitted together; none: nobody attends, so each is submitted at once.
    outbox: Mutex<Option<Vec<Pending>>>,
    inbox: Mutex<Inbox>,
}

/// All desks of an engine.
#[derive(Default)]
pub(crate) struct Desks {
    inner: Mutex<DesksInner>,
}

#[derive(Default)]
struct DesksInner {
    next_id: u32,
    by_id: HashMap<u32, Arc<Desk>>,
}

/// Answers of one turn, by desk. Kept by the sequencer's thread, for its buffers.
#[derive(Default)]
pub(crate) struct Post {
    piles: Vec<(Arc<Desk>, Vec<Answered>)>,
    spare: Vec<Vec<Answered>>,
}

impl Desks {
    /// A new desk, unattended.
    pub(crate) fn open(&self) -> Arc<Desk> {
        let mut inner = lock(&self.inner);
        // Numbers come round again only after hundreds of millions of desks.
        let id = loop {
            let id = inner.next_id;
            inner.next_id = (id + 1) & ((1 << DESK_BITS) - 1);
            if !inner.by_id.contains_key(&id) {
                break id;
            }
        };
        let desk = Arc::new(Desk {
            id,
            slots: Mutex::default(),
            outbox: Mutex::new(None),
            inbox: Mutex::default(),
        });
        inner.by_id.insert(id, Arc::clone(&desk));
        desk
    }

    pub(crate) fn close(&self, desk: &Desk) {
        lock(&self.inner).by_id.remove(&desk.id);
    }

    /// Brings the answers of a turn to their desks, with one lock and one wake for each.
    pub(crate) fn deliver(&self, answers: &mut Vec<Answered>, post: &mut Post) {
        self.sort(answers, post);
        for (desk, mut pile) in post.piles.drain(..) {
            desk.receive(&mut pile);
            pile.clear();
            post.spare.push(pile);
        }
    }

    fn sort(&self, answers: &mut Vec<Answered>, post: &mut Post) {
        let Some(first) = answers.first() else { return };
        let first = Seat::of(first.ticket).desk;
        let inner = lock(&self.inner);
        if answers.iter().all(|answered| Seat::of(answered.ticket).desk == first) {
            let pile = std::mem::replace(answers, post.spare.pop().unwrap_or_default());
            post.piles.extend(inner.by_id.get(&first).map(|desk| (Arc::clone(desk), pile)));
            return;
        }
        for answered in answers.drain(..) {
            let id = Seat::of(answered.ticket).desk;
            let known = post.piles.iter().position(|(desk, _)| desk.id == id);
            let pile = known.or_else(|| {
                let desk = inner.by_id.get(&id)?;
                post.piles.push((Arc::clone(desk), post.spare.pop().unwrap_or_default()));
                Some(post.piles.len() - 1)
            });
            if let Some(pile) = pile {
                post.piles[pile].1.push(answered);
            }
        }
    }

    fn all(&self) -> Vec<Arc<Desk>> {
        lock(&self.inner).by_id.values().cloned().collect()
    }

    /// Tells everyone who waits anywhere that his outcome is unknown.
    pub(crate) fn lose_all(&self) {
        for desk in self.all() {
            desk.lose();
        }
    }

    /// Lets every attendant look whether the engine stopped.
    pub(crate) fn wake_all(&self) {
        for desk in self.all() {
            let attendant = lock(&desk.inbox).attendant.clone();
            if let Some(attendant) = attendant {
                attendant.wake();
            }
        }
    }
}

impl Desk {
    pub(crate) fn seat(&self, slot: u32, generation: u16) -> Seat {
        Seat { desk: self.id, slot, generation }
    }

    fn receive(&self, pile: &mut Vec<Answered>) {
        let attendant = {
            let mut inbox = lock(&self.inbox);
            if let Some(attendant) = &inbox.attendant {
                let attendant = attendant.clone();
                if inbox.answers.is_empty() {
                    std::mem::swap(&mut inbox.answers, pile);
                } else {
                    inbox.answers.append(pile);
                }
                Some(attendant)
            } else {
                None
            }
        };
        match attendant {
            Some(attendant) => attendant.wake(),
            None => self.settle(pile),
        }
    }

    fn settle(&self, pile: &mut Vec<Answered>) {
        let mut wakers = Vec::with_capacity(pile.len());
        let mut slots = lock(&self.slots);
        for answered in pile.drain(..) {
            wakers.extend(slots.settle(Seat::of(answered.ticket), answered.answer));
        }
        drop(slots);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lose(&self) {
        let attendant = {
            let mut inbox = lock(&self.inbox);
            inbox.lost = true;
            inbox.attendant.clone()
        };
        match attendant {
            Some(attendant) => attendant.wake(),
            None => self.take_in(&mut Vec::new()),
        }
    }

    /// Gives the answers that were brought to those who wait at this desk.
    fn take_in(&self, spare: &mut Vec<Answered>) {
        let lost = {
            let mut inbox = lock(&self.inbox);
            std::mem::swap(&mut inbox.answers, spare);
            std::mem::take(&mut inbox.lost)
        };
        if !spare.is_empty() {
            self.settle(spare);
        }
        if lost {
            let wakers = lock(&self.slots).settle_all();
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Makes a thread or a task the attendant.
    pub(crate) fn attend(&self, waker: &Waker) {
        let mut inbox = lock(&self.inbox);
        if !inbox.attendant.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inbox.attendant = Some(waker.clone());
        }
    }

    /// Takes what was brought, for a thread that attends the desk without slots. Whether all else
    /// is lost.
    pub(crate) fn collect(&self, into: &mut Vec<Answered>) -> bool {
        let mut inbox = lock(&self.inbox);
        std::mem::swap(&mut inbox.answers, into);
        std::mem::take(&mut inbox.lost)
    }

    /// Takes a place for a call and sends it on its way.
    pub(crate) fn sit(
        self: &Arc<Self>,
        queue: &Queue,
        call: crate::call::Call,
    ) -> Result<Caller, Fault> {
        let (slot, generation) = lock(&self.slots).occupy().ok_or(Fault::Overloaded)?;
        let seat = self.seat(slot, generation);
        let pending = Pending { ticket: seat.ticket(), call };
        let caller = Caller { desk: Arc::clone(self), slot };
        let mut outbox = lock(&self.outbox);
        if let Some(gathered) = &mut *outbox {
            gathered.push(pending);
            let first = gathered.len() == 1;
            drop(outbox);
            if first {
                self.wake_attendant();
            }
        } else {
            drop(outbox);
            self.submit(queue, &mut vec![pending]);
        }
        Ok(caller)
    }

    fn wake_attendant(&self) {
        let attendant = lock(&self.inbox).attendant.clone();
        if let Some(attendant) = attendant {
            attendant.wake();
        }
    }

    fn submit(&self, queue: &Queue, calls: &mut Vec<Pending>) {
        let mut turned_away = Vec::new();
        queue.submit(calls, &mut turned_away);
        if !turned_away.is_empty() {
            self.settle(&mut turned_away);
        }
    }
}

/// A caller who waits at a desk. Going away does not take the command back.
pub(crate) struct Caller {
    desk: Arc<Desk>,
    slot: u32,
}

impl Future for Caller {
    type Output = Verdict;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let mut slots = lock(&self.desk.slots);
        let occupant = &mut slots.slots[self.slot as usize].occupant;
        match occupant {
            Occupant::Waiting(waker) => {
                if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                    *waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
            Occupant::Answered(_) => match std::mem::replace(occupant, Occupant::Read) {
                Occupant::Answered(verdict) => Poll::Ready(verdict),
                _ => unreachable!("it was an answer a line above"),
            },
            Occupant::Nobody | Occupant::Gone | Occupant::Read => {
                panic!("polled again after its answer")
            }
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut slots = lock(&self.desk.slots);
        let occupant = &mut slots.slots[self.slot as usize].occupant;
        match occupant {
            Occupant::Waiting(_) => *occupant = Occupant::Gone,
            Occupant::Answered(_) | Occupant::Read => slots.free(self.slot),
            Occupant::Nobody | Occupant::Gone => {}
        }
    }
}

thread_local! {
    /// The attended desks of this thread, by engine; hardly ever more than one.
    static ATTENDED: std::cell::RefCell<Vec<(u64, Arc<Desk>)>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

/// The attended desk of this thread, or the given one.
pub(crate) fn desk_of_this_thread(engine: u64, common: &Arc<Desk>) -> Arc<Desk> {
    ATTENDED.with_borrow(|desks| {
        let own = desks.iter().find(|(id, _)| *id == engine);
        Arc::clone(own.map_or(common, |(_, desk)| desk))
    })
}

/// Attends the desk of one runtime thread: to be spawned once on each, where it then stays. Ends
/// with the engine.
///
/// Without it everything works as well, call by call.
pub struct RuntimeTask {
    shared: Arc<Shared>,
    desk: Option<Arc<Desk>>,
    spare_calls: Vec<Pending>,
    spare_answers: Vec<Answered>,
}

impl RuntimeTask {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, desk: None, spare_calls: Vec::new(), spare_answers: Vec::new() }
    }

    fn open_desk(&mut self) -> Arc<Desk> {
        let engine = self.shared.id;
        let shared = &self.shared;
        Arc::clone(self.desk.get_or_insert_with(|| {
            let desk = shared.desks.open();
            *lock(&desk.outbox) = Some(Vec::new());
            ATTENDED.with_borrow_mut(|desks| {
                desks.retain(|(id, desk)| *id != engine && lock(&desk.outbox).is_some());
                desks.push((engine, Arc::clone(&desk)));
            });
            desk
        }))
    }

    fn send(&mut self, desk: &Desk) {
        if let Some(gathered) = &mut *lock(&desk.outbox) {
            std::mem::swap(gathered, &mut self.spare_calls);
        }
        if !self.spare_calls.is_empty() {
            desk.submit(&self.shared.queue, &mut self.spare_calls);
        }
    }
}

impl Future for RuntimeTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let desk = self.open_desk();
        desk.attend(context.waker());
        let stopped = self.shared.is_stopped();
        self.send(&desk);
        let mut spare = std::mem::take(&mut self.spare_answers);
        desk.take_in(&mut spare);
        self.spare_answers = spare;
        if stopped { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for RuntimeTask {
    fn drop(&mut self) {
        let Some(desk) = self.desk.take() else { return };
        // From here on each call goes its own way; what was gathered goes now.
        let mut gathered = lock(&desk.outbox).take().unwrap_or_default();
        desk.submit(&self.shared.queue, &mut gathered);
        lock(&desk.inbox).attendant = None;
        desk.take_in(&mut Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_carries_its_seat() {
        let seat = Seat {
            desk: (1 << DESK_BITS) - 1,
            slot: (1 << SLOT_BITS) - 1,
            generation: generation_mask(),
        };
        assert_eq!(Seat::of(seat.ticket()), seat);
        let seat = Seat { desk: 5, slot: 77, generation: 3 };
        assert_eq!(Seat::of(seat.ticket()), seat);
    }

    #[test]
    fn a_late_answer_does_not_reach_the_next_caller_of_a_place() {
        let mut slots = Slots::default();
        let (slot, generation) = slots.occupy().expect("room");
        let late = Seat { desk: 0, slot, generation };
        slots.settle_all();
        slots.free(slot);
        let (again, next) = slots.occupy().expect("room");
        assert_eq!(again, slot);
        assert_ne!(next, generation);
        slots.settle(late, Err(Fault::StoreFailing));
        assert!(matches!(slots.slots[slot as usize].occupant, Occupant::Waiting(_)));
    }
}
