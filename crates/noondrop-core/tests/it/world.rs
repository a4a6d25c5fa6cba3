//! A state with a log in memory, driven a turn at a time as an engine would, and the words its answers are told in.

use noondrop_core::codec::{decode_row, encode_fact, encode_private};
use noondrop_core::{
    Act, Actor, CancelTo, Command, Counts, Decision, Digest16, Digested, Digester, Entry, Fact,
    Fence, HoldCancel, HoldConfirm, HoldCreate, HoldExtend, HoldId, HoldNo, HoldRef, HoldRelease,
    HoldView, ItemAdjust, ItemBlock, ItemIx, ItemPut, ItemUnblock, ItemView, KeyScope, KeyUse,
    Level, Line, LineAsked, LinePart, LogStarted, Moment, Name, Outcome, Override, Overriding,
    Refusal, Role, SalePut, SaleStep, SaleTerms, Seq, Settings, ShopPut, State, Timestamp,
};

/// The time at which every world begins; times in steps and answers count from here.
pub const EPOCH: u64 = 1_800_000_000_000;
const SECRET: [u8; 32] = [7; 32];

/// A row of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub moment: Moment,
    pub facts: Vec<u8>,
    pub private: Vec<u8>,
    pub sum: [u8; 16],
}

/// What a caller is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done(Outcome),
    Replay { outcome: Outcome, durable: bool },
    Door(Refusal),
}

/// A hold as tests name it: by its running number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Which {
    No(u64),
    Newest,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    Seller,
    Admin,
    Auditor,
    Buyer(String),
}

/// The fence that a caller sends along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sent {
    Own,
    Of(Which),
    Nothing,
}

/// An item's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemAsked {
    pub sale: String,
    pub item: String,
    pub total: Option<u32>,
    pub oversell: u32,
    pub if_version: Option<u32>,
    pub against: Vec<String>,
}

/// An item of the sale `noon`; without a total it has no units of its own.
pub fn item(name: &str, total: Option<u32>, against: &[&str]) -> ItemAsked {
    ItemAsked {
        sale: "noon".into(),
        item: name.into(),
        total,
        oversell: 0,
        if_version: None,
        against: against.iter().map(|&other| other.into()).collect(),
    }
}

/// Items that share nothing: name, total, units that may be oversold.
pub fn plain_items(items: &[(&str, u32, u32)]) -> Vec<ItemAsked> {
    let plain = |&(name, total, oversell): &(&str, u32, u32)| ItemAsked {
        oversell,
        ..item(name, Some(total), &[])
    };
    items.iter().map(plain).collect()
}

/// Item, units, and the label of the block that they come out of.
pub type LineOf = (String, u32, Option<String>);

/// A new hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Create {
    pub sale: String,
    pub lines: Vec<LineOf>,
    pub buyer: String,
    pub ttl: Option<u32>,
    pub reference: Option<String>,
    pub supersedes: Option<(Which, Sent)>,
    pub retake: Option<Which>,
    pub payment: Option<String>,
    /// Refusals that are to be passed over.
    pub overrides: Vec<Override>,
}

/// One thing asked.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Shop {
        name: String,
        live: bool,
    },
    Sale {
        sale: String,
        terms: Box<SaleTerms>,
        if_version: Option<u32>,
    },
    Move {
        sale: String,
        to: SaleStep,
    },
    Item(ItemAsked),
    /// Set units aside under a label, or put them on sale again.
    Block {
        item: String,
        quantity: u32,
        label: String,
        back: bool,
    },
    Adjust {
        item: String,
        by: i64,
        if_total: Option<u32>,
    },
    Create(Box<Create>),
    Confirm {
        hold: Which,
        fence: Sent,
        payment: String,
    },
    Extend {
        hold: Which,
        fence: Sent,
        seconds: u32,
        reason: Option<String>,
    },
    Release {
        hold: Which,
        fence: Sent,
        parts: Option<Vec<(u8, Option<u32>)>>,
        reason: bool,
    },
    Cancel {
        hold: Which,
        fence: Sent,
        parts: Option<Vec<(u8, Option<u32>)>>,
        to: Option<CancelTo>,
    },
}

/// One command, as tests write it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub who: Who,
    pub shop: String,
    pub key: Option<String>,
    /// The key without its scope: so that two operations can meet on one.
    pub bare_key: bool,
    pub what: What,
}

impl Step {
    pub fn new(what: What) -> Self {
        Self { who: Who::Seller, shop: "main".into(), key: None, bare_key: false, what }
    }

    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    pub fn by(self, buyer: &str) -> Self {
        Self { who: Who::Buyer(buyer.into()), ..self }
    }
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("tests use good names")
}

/// Terms without any bound that could get in the way.
pub fn plain_terms() -> SaleTerms {
    SaleTerms {
        title: String::new(),
        opens_at: None,
        closes_at: None,
        hold_seconds: 60,
        hold_seconds_max: 600,
        hold_chain_seconds_max: 1_200,
        extensions_max: 2,
        live_holds_per_buyer: None,
        limits: Vec::new(),
        returns_to: None,
    }
}

pub fn at(milliseconds: u64) -> Timestamp {
    Timestamp(EPOCH + milliseconds)
}

pub fn log_started(settings: Settings) -> Entry {
    let log_id = Digest16([1; 16]);
    Fact::LogStarted(LogStarted { log_id, key_secret: SECRET, level: 1, settings }).into()
}

#[derive(Clone)]
pub struct World {
    pub state: State,
    pub log: Vec<Row>,
    /// Milliseconds since the beginning.
    pub now: u64,
    pub digester: Digester,
}

impl World {
    /// A log with its first fact, and a shop.
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        let (state, log) = (State::new(), Vec::new());
        let mut world = Self { state, log, now: 0, digester: Digester::new(SECRET) };
        world.turn_of(&[log_started(settings)], &[]);
        world.step(&Step::new(What::Shop { name: "main".into(), live: false }));
        world
    }

    /// With a sale `noon` that is open, and items with totals.
    pub fn selling(terms: SaleTerms, items: &[(&str, u32, u32)]) -> Self {
        Self::offering(terms, &plain_items(items))
    }

    /// With a sale `noon` that is open, and items that may share units.
    pub fn offering(terms: SaleTerms, items: &[ItemAsked]) -> Self {
        let mut world = Self::new();
        let sale = || "noon".to_owned();
        world.step(&Step::new(What::Sale {
            sale: sale(),
            terms: Box::new(terms),
            if_version: None,
        }));
        for item in items {
            world.step(&Step::new(What::Item(item.clone())));
        }
        world.step(&Step::new(What::Move { sale: sale(), to: SaleStep::Publish }));
        world
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now += milliseconds;
    }

    pub fn next_moment(&self, at: Timestamp) -> Moment {
        let seq = Seq(self.log.len() as u64 + 1);
        let mut nonce = [0x5a; 16];
        nonce[..8].copy_from_slice(&seq.0.to_le_bytes());
        Moment { seq, at, nonce }
    }

    /// One turn: time, commands, checks, row.
    pub fn turn(&mut self, commands: &[Command]) -> Vec<Answer> {
        self.turn_of(&[], commands)
    }

    /// A turn that begins with facts that no command makes.
    pub fn turn_of(&mut self, given: &[Entry], commands: &[Command]) -> Vec<Answer> {
        let mut entries = self.open(given);
        let answers = commands.iter().map(|command| self.decide(command, &mut entries)).collect();
        self.close(&entries);
        answers
    }

    /// Opens a turn and applies what the clock does; what was applied.
    pub fn open(&mut self, given: &[Entry]) -> Vec<Entry> {
        let plan = self.state.plan_time(at(self.now));
        self.state.open_turn(self.next_moment(plan.at));
        let entries: Vec<Entry> = plan.entries.into_iter().chain(given.iter().cloned()).collect();
        for entry in &entries {
            self.state.apply(entry).expect("the clock's facts fit");
        }
        entries
    }

    /// Decides one command in the open turn and applies what it makes true.
    pub fn decide(&mut self, command: &Command, entries: &mut Vec<Entry>) -> Answer {
        match self.state.decide(command) {
            Decision::Refuse(refusal) => Answer::Door(refusal),
            Decision::Replay { outcome, durable } => {
                let key = command.key.expect("only a key replays").hash;
                if let Some(repeated) = self.state.note_repeat(key, command.origin) {
                    self.state.apply(&repeated).expect("a repeat fits");
                    entries.push(repeated);
                }
                Answer::Replay { outcome, durable }
            }
            Decision::Done { outcome, entries: made } => {
                for entry in made {
                    self.state.apply(&entry).expect("what was decided fits");
                    entries.push(entry);
                }
                self.assert_true_now(&outcome);
                Answer::Done(outcome)
            }
        }
    }

    /// What was decided is what is there once the facts are applied.
    fn assert_true_now(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Hold(told) => {
                let seen = self.state.hold_by_no(told.no).expect("a hold that was told of");
                assert_eq!(self.state.hold(told.id).as_ref(), Some(&seen), "found by its id");
                let seen = HoldView { texts: told.texts.clone(), already: told.already, ..seen };
                assert_eq!(&seen, told, "the hold after the decision is what was decided");
            }
            Outcome::Item(told) => {
                let seen = self.state.all_items().nth(told.item.0 as usize);
                let seen =
                    seen.map(|seen| noondrop_core::ItemView { created: told.created, ..seen });
                assert_eq!(seen.as_ref(), Some(told));
            }
            Outcome::Sale(told) => {
                let seen = self.state.sale(told.shop.as_str(), told.name.as_str());
                let seen =
                    seen.map(|seen| noondrop_core::SaleView { created: told.created, ..seen });
                assert_eq!(seen.as_ref(), Some(told));
            }
            Outcome::Shop(told) => {
                let seen = self.state.shop(told.name.as_str()).map(|seen| seen.live);
                assert_eq!(seen, Some(told.live));
            }
            Outcome::Erased(told) => {
                assert_eq!(self.state.erased_at(told.buyer), Some(told.at));
            }
            Outcome::Refused(_) => {}
        }
    }

    /// Checks the open turn, writes its row and commits it.
    pub fn close(&mut self, entries: &[Entry]) {
        self.state.check_touched().expect("nothing that a turn touched is wrong");
        let moment = self.next_moment(self.state.last_at());
        let (mut facts, mut private) = (Vec::new(), Vec::new());
        for (entry, index) in entries.iter().zip(0..) {
            encode_fact(&entry.fact, &mut facts);
            if let Some(texts) = &entry.private {
                encode_private(index, texts, &mut private);
            }
        }
        let sum = self.state.sum();
        self.state.commit_turn();
        assert_eq!(self.state.sum(), sum, "committing changes nothing");
        for item in self.state.all_items() {
            let offer = self.state.offer(item.item, self.state.last_at());
            let sold_out = offer.level == Level::SoldOut;
            assert_eq!(offer.sold_out_at.is_some(), sold_out, "{item:?} {offer:?}");
        }
        self.log.push(Row { moment, facts, private, sum });
    }

    /// One step as a turn of its own, told in words.
    pub fn step(&mut self, step: &Step) -> String {
        let command = self.command(step);
        let answers = self.turn(&[command]);
        self.tell(&answers[0])
    }

    fn digested(&self, digest: Digest16, text: &str) -> Digested {
        let _ = self;
        Digested { digest, text: text.into() }
    }

    fn id_of(&self, which: Which) -> (HoldId, Fence) {
        let no = match which {
            Which::No(no) => Some(HoldNo(no)),
            Which::Newest => self.state.next_hold_no().0.checked_sub(1).map(HoldNo),
        };
        let hold = no.and_then(|no| self.state.hold_by_no(no));
        let nobody = HoldId { seq: Seq(9_999), index: 3, tag: [9; 10] };
        hold.map_or((nobody, Fence(1)), |hold| (hold.id, hold.fence))
    }

    fn fence(&self, hold: Which, sent: Sent) -> Option<Fence> {
        match sent {
            Sent::Own => Some(self.id_of(hold).1),
            Sent::Of(other) => Some(self.id_of(other).1),
            Sent::Nothing => None,
        }
    }

    pub fn command(&self, step: &Step) -> Command {
        let act = self.act(step);
        let actor = match &step.who {
            Who::Seller => Actor::Principal { name: name("till"), role: Role::Seller },
            Who::Admin => Actor::Principal { name: name("office"), role: Role::Admin },
            Who::Auditor => Actor::Principal { name: name("books"), role: Role::Auditor },
            Who::Buyer(buyer) => Actor::Buyer { digest: self.digester.buyer(&step.shop, buyer) },
        };
        let principal = match &step.who {
            Who::Seller => "till",
            Who::Admin => "office",
            Who::Auditor => "books",
            Who::Buyer(buyer) => buyer,
        };
        let key = step.key.as_ref().map(|key| {
            let target = match &act {
                Act::HoldConfirm(act) => act.hold.to_string(),
                Act::HoldExtend(act) => act.hold.to_string(),
                Act::HoldRelease(act) => act.hold.to_string(),
                Act::HoldCancel(act) => act.hold.to_string(),
                _ => String::new(),
            };
            let (operation, target) =
                if step.bare_key { ("", "") } else { (act.operation(), target.as_str()) };
            let scope = KeyScope { shop: &step.shop, principal, operation, target };
            KeyUse { hash: self.digester.key(scope, key), fingerprint: act.fingerprint() }
        });
        Command { shop: name(&step.shop), actor, key, origin: None, act }
    }

    fn new_hold(&self, shop: &str, create: &Create) -> HoldCreate {
        let payment = |text: &str| self.digested(self.digester.payment(shop, text), text);
        HoldCreate {
            sale: name(&create.sale),
            buyer: self.digester.digested_buyer(shop, &create.buyer),
            reference: create
                .reference
                .as_ref()
                .map(|text| self.digested(self.digester.reference(shop, text), text)),
            lines: create
                .lines
                .iter()
                .map(|(item, quantity, from)| LineAsked {
                    from: from.as_ref().map(|label| Box::new(name(label))),
                    ..LineAsked::units(name(item), *quantity)
                })
                .collect(),
            ttl_seconds: create.ttl,
            metadata: None,
            supersedes: create.supersedes.map(|(hold, sent)| HoldRef {
                hold: self.id_of(hold).0,
                fence: self.fence(hold, sent).expect("a replaced hold is named with a fence"),
            }),
            retake: create.retake.map(|hold| self.id_of(hold).0),
            confirm: create.payment.as_deref().map(payment),
            overriding: (!create.overrides.is_empty()).then(|| {
                let codes = create.overrides.clone();
                Box::new(Overriding { codes, reason: "at the counter".into() })
            }),
        }
    }

    fn act(&self, step: &Step) -> Act {
        let shop = step.shop.as_str();
        let parts = |parts: &Option<Vec<(u8, Option<u32>)>>| {
            parts.as_ref().map(|parts| {
                let parts = parts.iter();
                parts.map(|&(line, quantity)| LinePart::units(line, quantity)).collect()
            })
        };
        let payment = |text: &str| self.digested(self.digester.payment(shop, text), text);
        match &step.what {
            What::Shop { name: shop, live } => {
                Act::ShopPut(ShopPut { name: name(shop), live: *live })
            }
            What::Sale { sale, terms, if_version } => Act::SalePut(SalePut {
                sale: name(sale),
                terms: (**terms).clone(),
                if_version: *if_version,
            }),
            What::Move { sale, to } => {
                Act::SaleMove(noondrop_core::SaleMove { sale: name(sale), to: *to })
            }
            What::Item(asked) => Act::ItemPut(ItemPut {
                sale: name(&asked.sale),
                item: name(&asked.item),
                total: asked.total,
                oversell_limit: asked.oversell,
                if_version: asked.if_version,
                counts_against: (!asked.against.is_empty())
                    .then(|| asked.against.iter().map(|item| name(item)).collect()),
                seats: None,
            }),
            What::Block { item, quantity, label, back } => {
                let (sale, item, label) = (name("noon"), name(item), name(label));
                let (quantity, reason) = (*quantity, "sponsor".into());
                if *back {
                    Act::ItemUnblock(ItemUnblock {
                        sale,
                        item,
                        quantity,
                        label,
                        reason,
                        seats: None,
                    })
                } else {
                    Act::ItemBlock(ItemBlock { sale, item, quantity, label, reason, seats: None })
                }
            }
            What::Adjust { item, by, if_total } => Act::ItemAdjust(ItemAdjust {
                sale: name("noon"),
                item: name(item),
                by: *by,
                reason: "counted".into(),
                if_total: *if_total,
            }),
            What::Create(create) => Act::HoldCreate(self.new_hold(shop, create)),
            What::Confirm { hold, fence, payment: text } => Act::HoldConfirm(HoldConfirm {
                hold: self.id_of(*hold).0,
                fence: self.fence(*hold, *fence).expect("a confirm has a fence"),
                payment_ref: payment(text),
            }),
            What::Extend { hold, fence, seconds, reason } => Act::HoldExtend(HoldExtend {
                hold: self.id_of(*hold).0,
                fence: self.fence(*hold, *fence),
                seconds: *seconds,
                reason: reason.clone(),
            }),
            What::Release { hold, fence, parts: some, reason } => Act::HoldRelease(HoldRelease {
                hold: self.id_of(*hold).0,
                fence: self.fence(*hold, *fence),
                lines: parts(some),
                reason: reason.then(|| "asked on the phone".into()),
            }),
            What::Cancel { hold, fence, parts: some, to } => Act::HoldCancel(HoldCancel {
                hold: self.id_of(*hold).0,
                fence: self.fence(*hold, *fence).expect("a cancel has a fence"),
                lines: parts(some),
                to: to.clone(),
                reason: "rain".into(),
            }),
        }
    }

    // In words.

    pub fn tell(&mut self, answer: &Answer) -> String {
        match answer {
            Answer::Done(outcome) => self.tell_outcome(outcome),
            Answer::Replay { outcome, .. } => format!("replay {}", self.tell_outcome(outcome)),
            Answer::Door(refusal) => self.tell_refusal(refusal),
        }
    }

    fn tell_outcome(&mut self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Hold(view) => self.tell_hold(view),
            Outcome::Item(view) => {
                let item = self.item_name(view.item);
                let created = if view.created { " created" } else { "" };
                format!("{item} {} v{}{created}", tell_item(view), view.version)
            }
            Outcome::Sale(view) => {
                let created = if view.created { " created" } else { "" };
                format!("{} {} v{}{created}", view.name, view.state.as_str(), view.version)
            }
            Outcome::Shop(view) => {
                let created = if view.created { " created" } else { "" };
                format!("{} {}{created}", view.name, if view.live { "live" } else { "rehearsal" })
            }
            Outcome::Erased(view) => {
                let again = if view.before.is_some() { " again" } else { "" };
                format!("erased {} holds{again}", view.holds)
            }
            Outcome::Refused(refusal) => self.tell_refusal(refusal),
        }
    }

    pub fn item_name(&mut self, item: ItemIx) -> String {
        self.state.catalog().items[item.0 as usize].name.to_string()
    }

    pub fn tell_hold(&mut self, view: &HoldView) -> String {
        let mut words = vec![
            format!("#{}", view.no),
            view.state.as_str().to_owned(),
            tell_end(view.expires_at),
        ];
        words.push(format!("ext={}", view.extensions_left));
        for (line, number) in view.lines.0.iter().zip(1..) {
            let from = line.from.map(|label| {
                format!(
                    "<{}",
                    self.state.catalog().sales[view.sale.0 as usize].labels[usize::from(label.0)]
                )
            });
            let item = self.item_name(line.item) + &from.unwrap_or_default();
            words.push(format!("{number}:{item}={}", tell_line(line)));
        }
        let no =
            |id: HoldId| self.state.hold_no(id).expect("a hold that is pointed to").to_string();
        words.extend(view.supersedes.map(|old| format!("supersedes=#{}", no(old))));
        words.extend(view.superseded_by.map(|new| format!("superseded_by=#{}", no(new))));
        words.extend(view.already.then(|| "already".to_owned()));
        words.extend(view.live.then(|| "live".to_owned()));
        words.join(" ")
    }

    fn tell_refusal(&mut self, refusal: &Refusal) -> String {
        let no =
            |id: &HoldId| self.state.hold_no(*id).expect("a hold that is pointed to").to_string();
        let more = match refusal {
            Refusal::SaleNotOpen { opens_at } => {
                opens_at.map(|time| format!("opens={}", tell(time)))
            }
            Refusal::ItemNotFound { line, item } => Some(format!("{line}:{item}")),
            Refusal::ReferenceInUse { hold } => Some(format!("#{}", no(hold))),
            Refusal::LimitPerBuyer { limit, limit_max, used } => {
                Some(format!("{limit}={used}/{limit_max}"))
            }
            Refusal::HoldReleased { superseded_by: Some(new) } => Some(format!("by=#{}", no(new))),
            Refusal::ConfirmedWithOtherPayment { hold } => {
                let no = self.state.hold_no(*hold).expect("the confirmed hold");
                self.state.payment_ref(no).map(|text| format!("payment={text}"))
            }
            Refusal::UseAdjust { total } => Some(format!("total={total}")),
            Refusal::VersionMismatch { now } => Some(format!("now={now}")),
            Refusal::InvalidField { field, .. } => Some(field.clone()),
            Refusal::BuyerHasLiveHolds { holds } => Some(holds.to_string()),
            Refusal::Stock { lines, .. } => {
                let lines = lines.iter().map(|lack| {
                    let at = lack.may_free_at.map_or("-".to_owned(), tell);
                    let item = self.item_name(lack.item);
                    let within = lack.limited_by.map(|pool| format!("@{}", self.item_name(pool)));
                    let item = item + &within.unwrap_or_default();
                    let block = if lack.from.is_some() { "<" } else { "" };
                    format!(
                        "{}:{item}{block}={},asked{},free{},held{},most{},at{at}",
                        lack.line,
                        lack.code.as_str(),
                        lack.requested,
                        lack.available,
                        lack.held,
                        lack.most,
                    )
                });
                Some(lines.collect::<Vec<_>>().join(" "))
            }
            _ => None,
        };
        more.map_or(refusal.code().to_owned(), |more| format!("{} {more}", refusal.code()))
    }

    /// Everything that can be seen, one thing a line.
    pub fn dump(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for no in (0..self.state.next_hold_no().0).map(HoldNo) {
            let view = self.state.hold_by_no(no).expect("holds are dense");
            let told = self.tell_hold(&view);
            let texts = view.texts.as_deref().cloned().unwrap_or_default();
            let (paid, last) = (self.state.payment_ref(no), self.state.hold_last_seq(no));
            let reference = self.state.hold_reference(no);
            let owner = reference.and_then(|reference| self.state.hold_of_reference(reference));
            let buyer = self.state.hold_buyer(no).expect("a hold has a buyer");
            let line = self.state.holds_of_buyer(buyer, None, 1_000);
            lines.push(format!(
                "{told} {} f{} {texts:?} {paid:?} {last:?} {owner:?} {line:?}",
                view.id, view.fence
            ));
        }
        let items: Vec<_> = self.state.all_items().collect();
        lines.extend(items.iter().map(|item| format!("{item:?}")));
        for shop in self.state.shops() {
            lines.push(format!("{shop:?}"));
            lines.extend(
                self.state.sales(shop.name.as_str()).iter().map(|sale| format!("{sale:?}")),
            );
        }
        let offer = |item: &ItemView| self.state.offer(item.item, self.state.last_at());
        lines.extend(items.iter().map(|item| format!("{:?}", offer(item))));
        let counters = noondrop_core::Counters { memory_bytes: 0, ..self.state.counters() };
        lines.push(format!("{counters:?} {:?} {:?}", self.state.sum(), self.state.last_at()));
        lines.push(format!("{:?}", self.state.catalog().actors));
        lines
    }

    /// The same log read into a fresh state, row by row, with every sum compared and every byte written again.
    pub fn replayed(&self) -> Self {
        let mut again = Self {
            state: State::new(),
            log: Vec::new(),
            now: self.now,
            digester: self.digester.clone(),
        };
        for row in &self.log {
            let entries = decode_row(1, &row.facts, &row.private).expect("a row that was written");
            again.state.open_turn(row.moment);
            for entry in &entries {
                again.state.apply(entry).expect("a fact of the log fits");
            }
            again.close(&entries);
            assert_eq!(again.log.last(), Some(row), "the same bytes and sum");
        }
        again
    }

    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.state.write_snapshot(&mut |part| bytes.extend_from_slice(part));
        bytes
    }

    /// The state read back from a snapshot, with the same log.
    pub fn read_back(&self, bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let state = State::read_snapshot(&mut |part: &mut [u8]| {
            let Some((now, after)) = rest.split_at_checked(part.len()) else {
                return false;
            };
            part.copy_from_slice(now);
            rest = after;
            true
        });
        Self { state: state.expect("a snapshot that was written"), ..self.clone() }
    }
}

pub fn tell(time: Timestamp) -> String {
    let ms = i128::from(time.0) - i128::from(EPOCH);
    if ms % 1_000 == 0 {
        (ms / 1_000).to_string()
    } else {
        format!("{}.{:03}", ms / 1_000, ms % 1_000)
    }
}

fn tell_end(time: Timestamp) -> String {
    format!("end={}", tell(time))
}

fn tell_line(line: &Line) -> String {
    let counts = [
        ("held", line.held),
        ("sold", line.sold),
        ("released", line.released),
        ("cancelled", line.cancelled),
    ];
    let some = counts.iter().filter(|(_, units)| *units > 0);
    some.map(|(what, units)| format!("{what}{units}")).collect::<Vec<_>>().join(",")
}

/// An item's counts and, if it has any, its blocks.
pub fn tell_item(view: &ItemView) -> String {
    let mut words = vec![tell_counts(&view.counts)];
    words.extend(view.blocks.iter().map(|block| format!("{}:{}", block.label, block.quantity)));
    words.join(" ")
}

pub fn tell_counts(counts: &Counts) -> String {
    format!(
        "total={} held={} sold={} available={} oversold={}",
        counts.total,
        counts.held,
        counts.sold,
        counts.available(),
        counts.oversold()
    )
}
