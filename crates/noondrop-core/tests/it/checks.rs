//! What must hold in any world: checks that the small worlds, the random ones and the planted bugs share.

use noondrop_core::{BuyerLimit, CancelTo, Digest16, HoldNo, Returns, SaleTerms};

use crate::oracle::Oracle;
use crate::world::{
    Create, ItemAsked, Sent, Step, What, Which, World, at, item, name, plain_items, plain_terms,
};

/// The real state and the oracle, side by side.
#[derive(Clone)]
pub struct Pair {
    pub world: World,
    pub oracle: Oracle,
}

impl Pair {
    pub fn selling(terms: &SaleTerms, items: &[(&str, u32, u32)]) -> Self {
        Self::offering(terms, &plain_items(items))
    }

    pub fn offering(terms: &SaleTerms, items: &[ItemAsked]) -> Self {
        let world = World::offering(terms.clone(), items);
        Self { world, oracle: Oracle::offering(terms.clone(), items) }
    }

    /// One turn on both; every answer and every count must agree.
    pub fn turn(&mut self, wait: u64, steps: &[Step]) {
        self.world.wait(wait);
        self.oracle.wait_until(self.world.now);
        let mut entries = self.world.open(&[]);
        for step in steps {
            let command = self.world.command(step);
            let answer = self.world.decide(&command, &mut entries);
            let (said, expected) = (self.world.tell(&answer), self.oracle.step(step));
            assert_eq!(said, expected, "the answer to {step:?}");
        }
        self.world.close(&entries);
        self.compare();
    }

    /// Every count and every hold, and a recount from scratch.
    pub fn compare(&mut self) {
        for item in self.oracle.items() {
            let seen = self.world.state.item("main", "noon", item).expect("an item of the sale");
            let told = crate::world::tell_item(&seen);
            assert_eq!(told, self.oracle.tell_item(item), "the counts of {item}");
        }
        assert_eq!(self.world.state.next_hold_no().0, self.oracle.holds() as u64);
        for no in 0..self.oracle.holds() {
            let view = self.world.state.hold_by_no(HoldNo(no as u64)).expect("holds are dense");
            assert_eq!(self.world.tell_hold(&view), self.oracle.tell_hold(no));
        }
        let totals = self.world.state.recount().expect("a recount finds every count right");
        assert_eq!(totals.holds, self.oracle.holds() as u64);
    }
}

pub fn create(buyer: &str, lines: &[(&str, u32)]) -> Create {
    Create {
        sale: "noon".into(),
        lines: lines.iter().map(|&(item, quantity)| (item.into(), quantity, None)).collect(),
        buyer: buyer.into(),
        ttl: None,
        reference: None,
        supersedes: None,
        retake: None,
        payment: None,
        overrides: Vec::new(),
    }
}

pub fn creates(create: Create) -> Step {
    Step::new(What::Create(Box::new(create)))
}

pub fn confirm(hold: Which, payment: &str) -> Step {
    Step::new(What::Confirm { hold, fence: Sent::Own, payment: payment.into() })
}

pub fn extend(hold: Which, seconds: u32) -> Step {
    Step::new(What::Extend { hold, fence: Sent::Own, seconds, reason: None })
}

pub fn release(hold: Which, parts: Option<Vec<(u8, Option<u32>)>>) -> Step {
    Step::new(What::Release { hold, fence: Sent::Own, parts, reason: false })
}

pub fn cancel(hold: Which, parts: Option<Vec<(u8, Option<u32>)>>, to: CancelTo) -> Step {
    Step::new(What::Cancel { hold, fence: Sent::Own, parts, to: Some(to) })
}

pub fn adjust(item: &str, by: i64) -> Step {
    Step::new(What::Adjust { item: item.into(), by, if_total: None })
}

/// Terms with everything that a buyer can run into.
pub fn strict_terms() -> SaleTerms {
    SaleTerms {
        hold_seconds: 20,
        hold_seconds_max: 40,
        hold_chain_seconds_max: 70,
        live_holds_per_buyer: Some(3),
        limits: vec![
            BuyerLimit { name: name("four"), items: vec![name("a"), name("b")], per_buyer: 4 },
            BuyerLimit { name: name("all"), items: Vec::new(), per_buyer: 6 },
        ],
        ..plain_terms()
    }
}

/// The acts of a small world: two items, three units, two buyers.
fn alphabet() -> Vec<(u64, Step)> {
    let first = Which::No(0);
    let of =
        |reference: &str, create: Create| Create { reference: Some(reference.into()), ..create };
    let instead = Create { supersedes: Some((first, Sent::Own)), ..create("ann", &[("a", 2)]) };
    let again = create("ann", &[]);
    let again = Create { retake: Some(first), payment: Some("late".into()), ..again };
    vec![
        (0, creates(of("r1", create("ann", &[("a", 1)])))),
        (0, creates(create("bob", &[("a", 1), ("b", 1)])).key("k")),
        (0, creates(of("r1", create("bob", &[("a", 1), ("a", 1)])))),
        (0, creates(create("ann", &[("b", 1)])).key("k")),
        (0, confirm(first, "p")),
        (0, confirm(Which::Newest, "q").key("k")),
        (0, release(first, None)),
        (0, release(Which::Newest, Some(vec![(1, Some(1))])).key("k")),
        (
            0,
            Step::new(What::Extend { hold: first, fence: Sent::Own, seconds: 30, reason: None })
                .by("ann"),
        ),
        (0, cancel(first, None, CancelTo::Stock)),
        (0, cancel(Which::Newest, Some(vec![(1, Some(1))]), CancelTo::Destroyed)),
        (0, adjust("a", -1)),
        (0, adjust("a", 1).key("k")),
        (12_000, creates(create("ann", &[("a", 2), ("b", 1)]))),
        (20_000, confirm(first, "p")),
        (0, extend(first, 5)),
        (0, release(Which::Newest, Some(vec![(2, None)]))),
        (0, creates(instead)),
        (0, creates(again)),
        (
            0,
            Step::new(What::Confirm {
                hold: first,
                fence: Sent::Of(Which::Newest),
                payment: "p".into(),
            }),
        ),
    ]
}

/// A small world, and what is done in it.
pub struct Scene {
    pub terms: SaleTerms,
    pub items: Vec<ItemAsked>,
    pub acts: Vec<(u64, Step)>,
}

/// The small worlds: items that share nothing; two tickets out of one hall; units set aside.
pub fn scenes() -> [Scene; 3] {
    let plain = Scene {
        terms: strict_terms(),
        items: plain_items(&[("a", 2, 0), ("b", 1, 0)]),
        acts: alphabet(),
    };
    [plain, one_hall(), set_aside()]
}

fn put(asked: ItemAsked) -> Step {
    Step::new(What::Item(asked))
}

pub fn block(item: &str, quantity: u32, label: &str) -> Step {
    let (item, label) = (item.into(), label.into());
    Step::new(What::Block { item, quantity, label, back: false })
}

pub fn unblock(item: &str, quantity: u32, label: &str) -> Step {
    let (item, label) = (item.into(), label.into());
    Step::new(What::Block { item, quantity, label, back: true })
}

/// A new hold whose first line comes out of a block.
pub fn create_from(label: &str, buyer: &str, lines: &[(&str, u32)]) -> Create {
    let mut create = create(buyer, lines);
    create.lines[0].2 = Some(label.into());
    create
}

fn one_hall() -> Scene {
    let first = Which::No(0);
    let instead = Create { supersedes: Some((first, Sent::Own)), ..create("ann", &[("adult", 2)]) };
    let again = Create { retake: Some(first), ..create("ann", &[]) };
    let acts = vec![
        (0, creates(create("ann", &[("adult", 1)])).key("k")),
        (0, creates(create("bob", &[("vip", 1), ("adult", 1)]))),
        (0, creates(create("bob", &[("hall", 1), ("adult", 1)]))),
        (0, confirm(first, "p")),
        (0, release(Which::Newest, Some(vec![(1, Some(1))]))),
        (0, cancel(first, None, CancelTo::Stock)),
        (0, cancel(Which::Newest, Some(vec![(1, Some(1))]), CancelTo::Destroyed)),
        (0, adjust("hall", -1)),
        (0, put(item("vip", Some(1), &[]))),
        (0, put(item("adult", None, &["vip"]))),
        (0, put(item("hall", Some(2), &["vip"]))),
        (20_000, creates(create("ann", &[("vip", 1)]))),
        (0, creates(instead)),
        (0, creates(again)),
    ];
    let limits = vec![BuyerLimit { name: name("two"), items: vec![name("hall")], per_buyer: 2 }];
    Scene {
        terms: SaleTerms { live_holds_per_buyer: None, limits, ..strict_terms() },
        items: vec![
            item("hall", Some(2), &[]),
            item("adult", None, &["hall"]),
            item("vip", Some(1), &["hall"]),
        ],
        acts,
    }
}

fn set_aside() -> Scene {
    let first = Which::No(0);
    let replaces = |create| Create { supersedes: Some((first, Sent::Own)), ..create };
    let default = What::Cancel { hold: first, fence: Sent::Own, parts: None, to: None };
    let again = Create { retake: Some(first), ..create("ann", &[]) };
    let acts = vec![
        (0, block("a", 2, "x").key("k")),
        (0, unblock("a", 1, "x").key("k")),
        (0, unblock("a", 1, "returns")),
        (0, creates(create_from("x", "ann", &[("a", 1)]))),
        (0, creates(create_from("x", "bob", &[("v", 1), ("a", 1)]))),
        (0, creates(create("ann", &[("v", 1)])).key("k")),
        (0, confirm(first, "p")),
        (0, release(Which::Newest, Some(vec![(1, Some(1))]))),
        (0, Step::new(default)),
        (0, cancel(Which::Newest, None, CancelTo::Block(name("y")))),
        (0, adjust("a", -2)),
        (20_000, creates(create("ann", &[("a", 2)]))),
        (0, creates(replaces(create_from("x", "ann", &[("a", 2)])))),
        (0, creates(replaces(create("ann", &[("a", 3)])))),
        (0, creates(again)),
    ];
    let returns_to = Some(Returns { label: name("returns"), lapsed: true });
    let terms = SaleTerms { limits: Vec::new(), returns_to, ..strict_terms() };
    let items = vec![item("a", Some(3), &[]), item("v", None, &["a"])];
    Scene { terms, items, acts }
}

/// All sequences of so many acts in a small world, from this act for the first; how many there were.
pub fn try_all(scene: &Scene, first: usize, depth: usize) -> usize {
    let pair = Pair::offering(&scene.terms, &scene.items);
    let mut path = Vec::new();
    go_on(&scene.acts, &pair, first..=first, depth, &mut path)
}

struct Told<'a>(&'a [(u64, Step)], Vec<usize>);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let steps = self.1.iter().map(|&act| format!("  {:?}\n", self.0[act]));
            eprintln!("after these acts:\n{}", steps.collect::<String>());
        }
    }
}

fn go_on(
    acts: &[(u64, Step)],
    pair: &Pair,
    which: std::ops::RangeInclusive<usize>,
    depth: usize,
    path: &mut Vec<usize>,
) -> usize {
    let mut tried = 0;
    for act in which {
        path.push(act);
        let told = Told(acts, path.clone());
        let mut next = pair.clone();
        let (wait, step) = &acts[act];
        next.turn(*wait, std::slice::from_ref(step));
        drop(told);
        tried += 1;
        if depth > 1 {
            tried += go_on(acts, &next, 0..=acts.len() - 1, depth - 1, path);
        }
        path.pop();
    }
    tried
}

/// An undone turn, and one undone half-way, leave nothing behind; the same turn can then be done again.
pub fn undoes(world: &World, wait: u64, steps: &[Step], kept: usize) {
    let mut world = world.clone();
    let before = world.dump();
    let snapshot = world.snapshot();
    world.wait(wait);
    let mut entries = world.open(&[]);
    let mut answers = Vec::new();
    let mut half = None;
    for (step, place) in steps.iter().zip(0..) {
        if place == kept {
            half = Some((world.state.savepoint(), world.dump()));
        }
        let command = world.command(step);
        answers.push(world.decide(&command, &mut entries));
    }
    let after = world.dump();
    if let Some((savepoint, dump)) = half {
        world.state.rollback_to(savepoint);
        assert_eq!(world.dump(), dump, "half of the turn was undone");
        for (step, answer) in steps.iter().zip(&answers).skip(kept) {
            let command = world.command(step);
            let again = world.decide(&command, &mut Vec::new());
            if !matches!(answer, crate::world::Answer::Replay { .. }) {
                assert_eq!(&again, answer, "the same again, after going back half-way");
            }
        }
        assert_eq!(world.dump(), after, "the same turn again");
    }
    world.state.undo_turn().expect("the sum comes back");
    assert_eq!(world.dump(), before, "the whole turn was undone");
    world.state.recount().expect("nothing is left of an undone turn");
    let again = world.read_back(&world.snapshot()).dump();
    assert_eq!(again, world.read_back(&snapshot).dump(), "nothing hides in a snapshot");
    let mut entries = world.open(&[]);
    for (step, answer) in steps.iter().zip(&answers) {
        let command = world.command(step);
        let again = world.decide(&command, &mut entries);
        if !matches!(answer, crate::world::Answer::Replay { .. }) {
            assert_eq!(&again, answer, "the same again, after an undone turn");
        }
    }
    assert_eq!(world.dump(), after, "the same turn again");
    world.close(&entries);
}

/// Two states that differ in anything that was decided have different sums.
pub fn sums_tell_apart() {
    let references = [None, Some("r1"), Some("r2")].map(|reference| {
        let mut world = World::selling(plain_terms(), &[("a", 5, 0)]);
        let reference = reference.map(str::to_owned);
        world.step(&creates(Create { reference, ..create("ann", &[("a", 1)]) }));
        world.state.sum()
    });
    assert!(references[0] != references[1] && references[1] != references[2], "references");
    let parts = [1, 2].map(|units| {
        let mut world = World::selling(plain_terms(), &[("a", 5, 0)]);
        world.step(&creates(create("ann", &[("a", 1), ("a", 2)])));
        world.step(&release(Which::No(0), Some(vec![(units, Some(1))])));
        world.state.sum()
    });
    assert_ne!(parts[0], parts[1], "which line gave units back");
}

/// Keys live as long as was promised: successes 72 hours, refusals ten minutes; then they are let go.
pub fn keys_live_as_long_as_promised() {
    const HOUR: u64 = 3_600_000;
    let mut world = World::selling(plain_terms(), &[("a", 1, 0)]);
    let won = creates(create("ann", &[("a", 1)])).key("k1");
    let lost = creates(create("bob", &[("a", 1)])).key("k2");
    let first = world.step(&won);
    let refused = world.step(&lost);
    world.wait(599_000);
    assert_eq!(world.step(&won), format!("replay {first}"));
    assert_eq!(world.step(&lost), format!("replay {refused}"));
    world.wait(2_000);
    // Which the sweep of this turn lets go: the refusal, not the success.
    let second = world.step(&lost);
    assert!(second.starts_with("#1 active"), "a forgotten refusal is decided anew: {second}");
    assert_eq!(world.step(&won), format!("replay {first}"));
    for hour in (1..=71).step_by(5) {
        world.now = hour * HOUR;
        assert_eq!(world.step(&won), format!("replay {first}"), "after {hour} hours");
    }
    world.now = 72 * HOUR + 62_000;
    world.turn(&[]);
    world.now += 602_000 + HOUR;
    world.turn(&[]);
    assert_eq!(world.state.counters().success_keys, 0, "three days after both are final");
}

/// A refusal at the door is decided anew each time.
pub fn doors_are_not_recorded() {
    let mut pair = Pair::selling(&plain_terms(), &[("a", 1, 0)]);
    let walk = |to| Step::new(What::Move { sale: "noon".into(), to });
    let held = creates(create("ann", &[("a", 1)])).key("k");
    pair.turn(0, &[walk(noondrop_core::SaleStep::Pause), held.clone()]);
    assert_eq!(pair.world.state.counters().refusal_keys, 0);
    pair.turn(1_000, &[walk(noondrop_core::SaleStep::Resume), held]);
    assert_eq!(pair.world.state.counters().success_keys, 1);
}

/// A replay is the first answer, whatever became of the hold since.
pub fn replays_are_the_first_answer() {
    let mut pair = Pair::selling(&plain_terms(), &[("a", 5, 0)]);
    let made = creates(create("ann", &[("a", 2), ("a", 1)])).key("k");
    let hold = Which::No(0);
    pair.turn(0, std::slice::from_ref(&made));
    let all = [
        release(hold, Some(vec![(2, None)])).key("r"),
        extend(hold, 100).key("x"),
        confirm(hold, "p").key("c"),
        cancel(hold, Some(vec![(1, Some(1))]), CancelTo::Stock).key("b"),
        cancel(hold, None, CancelTo::Destroyed).key("g"),
    ];
    for done in 1..=all.len() {
        pair.turn(1_000, &all[done - 1..done]);
        let again: Vec<Step> = std::iter::once(&made).chain(&all[..done]).cloned().collect();
        pair.turn(1_000, &again);
    }
}

/// Where more is due than one turn takes, log time lags, and no lapsed hold is ever counted.
pub fn time_lags_where_too_much_is_due() {
    const HOLDS: u64 = 9_000;
    let mut world = World::selling(plain_terms(), &[("a", 20_000, 0)]);
    let one = creates(Create { ttl: Some(10), ..create("ann", &[("a", 1)]) });
    let one = world.command(&one);
    for _ in 0..HOLDS / 30 {
        world.wait(1);
        world.turn(&vec![one.clone(); 30]);
    }
    let live = |world: &World| world.state.counters().live_holds;
    assert_eq!(live(&world), HOLDS);
    world.wait(20_000);
    let asked = at(world.now);
    let mut turns = 0;
    while live(&world) > 0 {
        world.turn(&[]);
        turns += 1;
        let last = world.state.last_at();
        let ends = (0..HOLDS).map(|no| world.state.hold_by_no(HoldNo(no)).expect("a hold"));
        assert!(
            ends.filter(|hold| hold.state == noondrop_core::HoldState::Active)
                .all(|hold| hold.expires_at > last),
            "no decision at a time at which a lapsed hold still counts"
        );
        assert_eq!(last < asked, live(&world) > 0, "time lags only while more is due");
        assert!(turns < 5, "the clock goes on");
    }
    assert_eq!(turns, 2);
    let counts = world.state.item("main", "noon", "a").expect("the item").counts;
    assert_eq!((counts.held, counts.available()), (0, 20_000));
}

/// Running numbers, ids and fences are never used twice, and fences rise.
pub fn names_are_used_once(world: &World) {
    let holds: Vec<_> = (0..world.state.next_hold_no().0)
        .map(|no| world.state.hold_by_no(HoldNo(no)).expect("holds are dense"))
        .collect();
    assert!(holds.windows(2).all(|two| two[0].fence < two[1].fence), "fences rise");
    let mut ids: Vec<_> = holds.iter().map(|hold| hold.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), holds.len(), "ids are used once");
    assert_eq!(world.state.hold_buyer(HoldNo(holds.len() as u64)), None);
    let nobody = Digest16([3; 16]);
    assert!(world.state.holds_of_buyer(nobody, None, 9).is_empty());
}
