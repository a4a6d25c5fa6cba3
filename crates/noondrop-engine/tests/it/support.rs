//! What the tests share: a world with one sale and one item, commands in one line, clocks that
//! stand still.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use noondrop_core::{
    Act, Actor, Command, Counts, Digested, Digester, HoldConfirm, HoldCreate, HoldView, ItemPut,
    KeyScope, KeyUse, LineAsked, Name, Outcome, Role, SaleMove, SalePut, SaleStep, SaleTerms,
    State, Timestamp,
};
use noondrop_engine::{
    Answered, Call, Clock, Engine, EngineOptions, Entropy, Fault, Handle, Pending, Reply,
    Sequencer, Ticket, TurnEnd,
};
use noondrop_log::memory::{Faults, MemoryLog, SharedMemory};
use noondrop_log::{
    AppendError, BeginError, Begun, Log, LogError, LogOpener, LogReader, Position, Row,
    SnapshotMeta, Snapshots,
};

pub const NOON_MS: u64 = 1_800_000_000_000;
pub const ITEM: &str = "floor";

/// A clock that moves when it is told to.
#[derive(Debug)]
pub struct TestClock {
    wall_ms: AtomicU64,
    elapsed_ms: AtomicU64,
}

impl TestClock {
    pub fn at(wall_ms: u64) -> Arc<Self> {
        Arc::new(Self { wall_ms: AtomicU64::new(wall_ms), elapsed_ms: AtomicU64::new(1_000) })
    }

    pub fn advance(&self, ms: u64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.elapsed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn set_wall(&self, ms: u64) {
        self.wall_ms.store(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms.load(Ordering::SeqCst)
    }
}

/// Random bits that are the same in each run.
pub struct TestEntropy(u64);

impl TestEntropy {
    pub fn new(seed: u64) -> Self {
        Self(seed << 32)
    }
}

impl Entropy for TestEntropy {
    fn nonce(&mut self) -> [u8; 16] {
        self.0 += 1;
        u128::from(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes()
    }

    fn secret(&mut self) -> [u8; 32] {
        let (left, right) = (self.nonce(), self.nonce());
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(&left);
        secret[16..].copy_from_slice(&right);
        secret
    }
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name in a test")
}

/// Makes commands.
#[derive(Clone)]
pub struct Shop(pub Digester);

impl Shop {
    pub fn command(&self, key: Option<&str>, act: Act) -> Command {
        let scope = KeyScope {
            shop: "main",
            principal: "box-office",
            operation: act.operation(),
            target: "",
        };
        let key =
            key.map(|key| KeyUse { hash: self.0.key(scope, key), fingerprint: act.fingerprint() });
        let actor = Actor::Principal { name: name("box-office"), role: Role::Admin };
        Command { shop: name("main"), actor, key, origin: None, act }
    }

    /// A sale named `noon` that is open, with one item.
    pub fn open_sale(&self, total: u32) -> Vec<Command> {
        let item = ItemPut {
            sale: name("noon"),
            item: name(ITEM),
            total: Some(total),
            oversell_limit: 0,
            if_version: None,
            seats: None,
            counts_against: None,
        };
        let mut commands = self.published_sale("noon", None);
        commands.push(self.command(None, Act::ItemPut(item)));
        commands
    }

    pub fn published_sale(&self, sale: &str, opens_at: Option<Timestamp>) -> Vec<Command> {
        let terms = SaleTerms {
            title: sale.into(),
            opens_at,
            closes_at: None,
            hold_seconds: 60,
            hold_seconds_max: 600,
            hold_chain_seconds_max: 900,
            extensions_max: 2,
            live_holds_per_buyer: None,
            limits: Vec::new(),
            returns_to: None,
        };
        let put = SalePut { sale: name(sale), terms, if_version: None };
        let publish = SaleMove { sale: name(sale), to: SaleStep::Publish };
        [Act::SalePut(put), Act::SaleMove(publish)].map(|act| self.command(None, act)).into()
    }

    pub fn hold(&self, key: &str, buyer: &str) -> Command {
        let create = HoldCreate {
            sale: name("noon"),
            buyer: self.0.digested_buyer("main", buyer),
            reference: None,
            lines: [LineAsked::units(name(ITEM), 1)].into_iter().collect(),
            ttl_seconds: None,
            metadata: None,
            supersedes: None,
            retake: None,
            confirm: None,
            overriding: None,
        };
        self.command(Some(key), Act::HoldCreate(create))
    }

    pub fn confirm(&self, hold: &HoldView) -> Command {
        let text = String::from("pi_1");
        let payment_ref = Digested { digest: self.0.payment("main", &text), text };
        let act = HoldConfirm { hold: hold.id, fence: hold.fence, payment_ref };
        self.command(None, Act::HoldConfirm(act))
    }
}

pub fn hold_of(reply: &Reply) -> &HoldView {
    match &reply.outcome {
        Outcome::Hold(hold) => hold,
        other => panic!("no hold but {other:?}"),
    }
}

pub fn is_hold(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Hold(_))
}

pub fn counts(state: &State) -> Counts {
    state.item("main", "noon", ITEM).expect("the item is defined").counts
}

pub fn sum(state: &State) -> [u8; 16] {
    state.clone().sum()
}

/// What was answered, by number in the order of all calls.
pub type Answers = Vec<(u64, Result<Reply, Fault>)>;

/// The pure step on a log in memory.
pub struct World {
    pub memory: SharedMemory,
    pub faults: Faults,
    pub clock: Arc<TestClock>,
    pub sequencer: Sequencer<MemoryLog, Arc<TestClock>, TestEntropy>,
    pub shop: Shop,
    next_ticket: u64,
}

impl World {
    pub fn new(total: u32) -> Self {
        Self::with(total, EngineOptions::default())
    }

    pub fn with(total: u32, options: EngineOptions) -> Self {
        let memory = SharedMemory::new();
        let mut world = Self::on(memory, options, TestClock::at(NOON_MS), 1);
        let opening = world.shop.open_sale(total);
        let replies = world.turn(opening);
        assert!(replies.iter().all(|(_, answer)| answer.is_ok()), "{replies:?}");
        world
    }

    /// Starts on a disk that may have rows already.
    pub fn on(
        memory: SharedMemory,
        options: EngineOptions,
        clock: Arc<TestClock>,
        seed: u64,
    ) -> Self {
        let log = memory.log();
        let faults = log.faults();
        let entropy = TestEntropy::new(seed);
        let sequencer = Sequencer::recover(log, Arc::clone(&clock), entropy, options)
            .expect("the log is whole");
        let digester = sequencer.state().expect("trusted").digester().expect("started");
        Self { memory, faults, clock, sequencer, shop: Shop(digester), next_ticket: 0 }
    }

    /// One turn with these commands: what was answered, by number in the order of all calls so far.
    pub fn turn(&mut self, commands: Vec<Command>) -> Answers {
        self.turn_until(commands, None)
    }

    pub fn turn_until(&mut self, commands: Vec<Command>, deadline_ms: Option<u64>) -> Answers {
        let mut calls = VecDeque::new();
        for command in commands {
            let ticket = Ticket(self.next_ticket);
            self.next_ticket += 1;
            calls.push_back(Pending {
                ticket,
                call: Call { command: Box::new(command), deadline_ms },
            });
        }
        let (answers, _) = self.turn_of(&mut calls);
        assert!(calls.is_empty(), "the turn took all calls");
        answers
    }

    pub fn turn_of(&mut self, calls: &mut VecDeque<Pending>) -> (Answers, TurnEnd) {
        let mut answers: Vec<Answered> = Vec::new();
        let end = self.sequencer.turn(calls, &mut answers);
        (answers.into_iter().map(|a| (a.ticket.0, a.answer)).collect(), end)
    }

    /// Turns until nothing waits, moving the clock as needed.
    pub fn settle(&mut self) -> Answers {
        let mut answers = Vec::new();
        for _ in 0..1_000 {
            answers.extend(self.turn(Vec::new()));
            if self.sequencer.waiting() == 0 && self.sequencer.trouble().is_none() {
                return answers;
            }
            self.clock.advance(50);
        }
        panic!("still waiting: {:?}", self.sequencer.trouble());
    }

    pub fn state(&self) -> &State {
        self.sequencer.state().expect("the state is trusted")
    }

    pub fn check(&self) {
        self.state().recount().expect("every invariant holds");
        let rows = self.memory.rows();
        noondrop_log::verify_chain(&noondrop_log::GENESIS, &rows).expect("one chain");
        let last = rows.last().expect("at least the first row");
        assert_eq!(self.sequencer.position(), last.position());
        assert_eq!(sum(self.state()), last.state_sum);
        assert!(rows.is_sorted_by_key(|row| row.at), "log time never goes back");
    }
}

/// The one answer of a turn.
pub fn only<T>(mut answers: Vec<(u64, T)>) -> T {
    assert_eq!(answers.len(), 1, "one answer");
    answers.remove(0).1
}

pub fn reply(answers: Answers) -> Reply {
    only(answers).expect("a reply")
}

/// A whole engine with an open sale.
pub fn engine(log: impl Log + 'static, options: EngineOptions, total: u32) -> (Engine, Shop) {
    let engine = Engine::start(Box::new(log), options).expect("the engine starts");
    let shop = Shop(engine.handle().digester());
    for command in shop.open_sale(total) {
        engine.handle().execute_blocking(command.into()).expect("the sale opens");
    }
    (engine, shop)
}

/// What a [`HookedLog`] is told to do.
#[derive(Default)]
pub struct Hooks {
    /// The next append panics: a bug that no guard of a command can see.
    pub append_panics: AtomicBool,
    /// Locked by a test, it holds up whoever writes a snapshot.
    pub snapshot_gate: Mutex<()>,
    /// A snapshot is being written.
    pub writing_snapshot: AtomicBool,
}

/// A log in memory with hooks that a store does not have.
pub struct HookedLog {
    pub inner: MemoryLog,
    pub hooks: Arc<Hooks>,
}

impl Log for HookedLog {
    fn head(&mut self) -> Result<Position, LogError> {
        self.inner.head()
    }

    fn begin(&mut self, after: Position) -> Result<Begun, BeginError> {
        self.inner.begin(after)
    }

    fn append(&mut self, row: &Row) -> Result<(), AppendError> {
        assert!(!self.hooks.append_panics.swap(false, Ordering::SeqCst), "a planted bug");
        self.inner.append(row)
    }

    fn recover(&mut self) -> Result<Position, LogError> {
        self.inner.recover()
    }

    fn between_turns(&mut self) -> Result<(), LogError> {
        self.inner.between_turns()
    }

    fn rewrite_private(&mut self, rows: &[(Position, Vec<u8>)]) -> Result<(), LogError> {
        self.inner.rewrite_private(rows)
    }

    fn scrub(&mut self, through: Position) -> Result<bool, LogError> {
        self.inner.scrub(through)
    }

    fn opener(&self) -> Arc<dyn LogOpener> {
        Arc::new(HookedOpener { inner: self.inner.opener(), hooks: Arc::clone(&self.hooks) })
    }
}

struct HookedOpener {
    inner: Arc<dyn LogOpener>,
    hooks: Arc<Hooks>,
}

impl LogOpener for HookedOpener {
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        self.inner.reader()
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        let inner = self.inner.snapshots();
        Arc::new(HookedSnapshots { inner, hooks: Arc::clone(&self.hooks) })
    }

    fn scrubbed(&self) -> Result<Position, LogError> {
        self.inner.scrubbed()
    }
}

struct HookedSnapshots {
    inner: Arc<dyn Snapshots>,
    hooks: Arc<Hooks>,
}

impl Snapshots for HookedSnapshots {
    fn list(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        self.inner.list()
    }

    fn open(&self, meta: &SnapshotMeta) -> Result<Box<dyn Read + Send>, LogError> {
        self.inner.open(meta)
    }

    fn write(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        self.hooks.writing_snapshot.store(true, Ordering::SeqCst);
        let _gate = self.hooks.snapshot_gate.lock().expect("no panic behind the gate");
        self.inner.write(meta, fill)
    }

    fn prune(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<(), LogError> {
        self.inner.prune(keep, wanted)
    }
}

/// Waits for a condition; a bound only for when the test fails.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if condition() {
            return;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    panic!("it never happened: {what}");
}

/// Stops the sequencer's thread until it is released, so that what is called meanwhile waits
/// together.
pub struct Paused {
    release: std::sync::mpsc::Sender<()>,
    query: thread::JoinHandle<()>,
}

impl Paused {
    pub fn engine(handle: &Handle) -> Self {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (entered, inside) = std::sync::mpsc::channel();
        let handle = handle.clone();
        let query = thread::spawn(move || {
            let ask = move |_: &State, _| {
                entered.send(()).expect("the test waits for it");
                let _ = released.recv();
            };
            handle.query_blocking(ask).expect("the engine runs");
        });
        inside.recv().expect("the query is asked");
        Self { release, query }
    }

    pub fn release(self) {
        self.release.send(()).expect("the query waits for it");
        self.query.join().expect("the query ended well");
    }
}

/// A small single-threaded executor: polls what was woken, first come, first served.
pub fn run_together<T>(futures: Vec<Pin<Box<dyn Future<Output = T>>>>) -> Vec<T> {
    struct Task {
        index: usize,
        ready: Arc<Mutex<VecDeque<usize>>>,
        thread: Thread,
    }
    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            let mut ready = self.ready.lock().expect("no panic in here");
            if !ready.contains(&self.index) {
                ready.push_back(self.index);
            }
            drop(ready);
            self.thread.unpark();
        }
    }
    let ready = Arc::new(Mutex::new((0..futures.len()).collect::<VecDeque<_>>()));
    let wakers: Vec<Waker> = (0..futures.len())
        .map(|index| {
            let task = Task { index, ready: Arc::clone(&ready), thread: thread::current() };
            Waker::from(Arc::new(task))
        })
        .collect();
    let mut futures: Vec<_> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    while results.iter().any(Option::is_none) {
        let next = ready.lock().expect("no panic in here").pop_front();
        let Some(index) = next else {
            thread::park();
            continue;
        };
        let Some(future) = &mut futures[index] else { continue };
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&wakers[index]))
        {
            results[index] = Some(result);
            futures[index] = None;
        }
    }
    results.into_iter().map(|result| result.expect("all are done")).collect()
}
