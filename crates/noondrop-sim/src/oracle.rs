//! A second opinion on every decision: the rules again, as naively as they can be written.
//!
//! Nothing is counted ahead, nothing is indexed: an item's held units are the sum over all holds, a buyer's units the
//! sum over his. It follows the written rules (RULES R5 to R11), not the code that it judges, and shares nothing with
//! that code but the types of commands and outcomes.
//!
//! - `act`: what can be asked of a hold, and new holds · `define`: shops, sales, items

mod act;
mod define;

use std::collections::BTreeMap;

use noondrop_core::{
    Act, Actor, Command, Counts, Digest16, Fact, HoldId, HoldNo, HoldNow, HoldState, HoldView,
    ItemIx, ItemView, KeyUse, Line, Lines, Outcome, Refusal, SaleIx, SaleState, SaleTerms,
    Settings, ShopIx, Timestamp,
};

/// What the oracle knows.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub(crate) shops: Vec<Shop>,
    pub(crate) sales: Vec<Sale>,
    pub(crate) items: Vec<Item>,
    /// By running number.
    pub(crate) holds: Vec<Hold>,
    /// The public ids, by running number: chance makes them, so they are told from outside.
    pub(crate) ids: Vec<HoldId>,
    keys: BTreeMap<Digest16, KeyRecord>,
    /// What keys were used for before they were let go and used again.
    forgotten: Vec<(Digest16, KeyRecord)>,
    settings: Settings,
    last_fence: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Shop {
    pub(crate) name: String,
    pub(crate) live: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Sale {
    pub(crate) shop: ShopIx,
    pub(crate) name: String,
    pub(crate) terms: SaleTerms,
    pub(crate) version: u32,
    pub(crate) state: SaleState,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) sale: SaleIx,
    pub(crate) name: String,
    pub(crate) total: u32,
    pub(crate) oversell_limit: u32,
    pub(crate) version: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) sale: SaleIx,
    pub(crate) buyer: Digest16,
    pub(crate) reference: Option<Digest16>,
    pub(crate) created_at: u64,
    pub(crate) expires_at: u64,
    pub(crate) ttl_seconds: u32,
    pub(crate) extensions: u8,
    pub(crate) extensions_used: u8,
    pub(crate) state: HoldState,
    pub(crate) lines: Vec<Line>,
    /// Per line, what was held when its time ran out; empty before.
    pub(crate) lapsed: Vec<u32>,
    pub(crate) fence: u64,
    pub(crate) supersedes: Option<HoldNo>,
    pub(crate) superseded_by: Option<HoldNo>,
    /// When the first hold of its chain was made.
    pub(crate) chain_from: u64,
    pub(crate) payment: Option<Digest16>,
    /// When it stopped to claim units for a while, or was made.
    pub(crate) settled_at: u64,
    /// Whether its shop sold for real when it was made.
    pub(crate) live: bool,
}

/// What a key was used for.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Of the command.
    pub fingerprint: u64,
    /// What was answered, or must be: [`canonical`] bytes.
    pub answer: Vec<u8>,
    /// When it was decided.
    pub at: u64,
    refused: bool,
    hold: Option<HoldNo>,
}

/// What must come of a command that is decided now.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The answer.
    pub outcome: Outcome,
    /// It leaves facts, under its key if it has one.
    pub recorded: bool,
}

/// Why a command is refused, before it is known whether that is recorded.
pub(crate) type Judged = Result<Outcome, Refusal>;

impl Oracle {
    /// Whether the hold's id is known; ids arrive with the rows.
    pub fn learn_id(&mut self, id: HoldId) {
        self.ids.push(id);
    }

    /// What the log's first facts, its settings and its clock say; other facts come as commands.
    pub fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::LogStarted(started) => self.settings = started.settings,
            // What was let go under other settings does not come back: the shortest ones count.
            Fact::SettingsChanged(new) => {
                let old = &mut self.settings;
                old.success_key_hours = old.success_key_hours.min(new.success_key_hours);
                old.refusal_key_seconds = old.refusal_key_seconds.min(new.refusal_key_seconds);
            }
            Fact::ShopDefined(shop) => {
                self.put_shop(shop.name.as_str(), shop.live);
            }
            Fact::SaleDefined(fact) => self.put_sale(fact),
            Fact::ItemDefined(fact) => self.put_item(fact),
            Fact::SaleMoved(fact) => self.sales[fact.sale.0 as usize].state = fact.state,
            _ => {}
        }
    }

    /// Lets time come: what lapses, opens and closes by itself up to `at`. The holds that lapsed.
    pub fn pass_to(&mut self, at: u64) -> Vec<HoldNo> {
        let mut lapsed = Vec::new();
        for (no, hold) in (0..).zip(&mut self.holds) {
            if hold.state == HoldState::Active && hold.expires_at <= at {
                hold.state = HoldState::Expired;
                hold.settled_at = hold.expires_at;
                hold.lapsed = hold.lines.iter().map(|line| line.held).collect();
                for line in &mut hold.lines {
                    line.released += line.held;
                    line.held = 0;
                }
                lapsed.push(HoldNo(no));
            }
        }
        for sale in &mut self.sales {
            sale.pass_to(at);
        }
        lapsed
    }

    /// Judges a command that no key answers, and does what it does.
    pub fn decide(&mut self, command: &Command, at: u64) -> Verdict {
        let judged = match &command.act {
            Act::ShopPut(put) => Ok(self.judge_shop(put)),
            Act::SalePut(put) => self.judge_sale(command, put),
            Act::SaleMove(step) => self.judge_move(command, step, at),
            Act::ItemPut(put) => self.judge_item(command, put),
            Act::ItemAdjust(adjust) => self.judge_adjust(command, adjust),
            // Nobody has seats or sets units aside here yet.
            Act::ItemSeats(_) | Act::ItemBlock(_) | Act::ItemUnblock(_) => Err(invalid("item")),
            Act::HoldCreate(create) => self.judge_create(command, create, at),
            Act::HoldConfirm(confirm) => self.judge_confirm(command, confirm, at),
            Act::HoldExtend(extend) => self.judge_extend(command, extend, at),
            Act::HoldRelease(release) => self.judge_release(command, release, at),
            Act::HoldCancel(cancel) => self.judge_cancel(command, cancel),
            // Nobody is forgotten here yet.
            Act::BuyerErase(_) => Err(invalid("buyer")),
        };
        let (outcome, recorded) = match judged {
            Ok(outcome) => {
                let defines = matches!(
                    command.act,
                    Act::ShopPut(_) | Act::SalePut(_) | Act::SaleMove(_) | Act::ItemPut(_)
                );
                (outcome, !defines)
            }
            Err(refusal) => {
                let recorded = competed(&refusal);
                (Outcome::Refused(refusal), recorded)
            }
        };
        if let Some(key) = command.key.filter(|_| recorded) {
            self.record(key, &outcome, at);
        }
        Verdict { outcome, recorded }
    }

    fn record(&mut self, key: KeyUse, outcome: &Outcome, at: u64) {
        let hold = match outcome {
            Outcome::Hold(view) => Some(view.no),
            _ => None,
        };
        let record = KeyRecord {
            fingerprint: key.fingerprint,
            answer: canonical(outcome),
            at,
            refused: matches!(outcome, Outcome::Refused(_)),
            hold,
        };
        if let Some(old) = self.keys.insert(key.hash, record) {
            self.forgotten.push((key.hash, old));
        }
    }

    /// What a key was used for, if it ever was.
    #[must_use]
    pub fn key(&self, hash: &Digest16) -> Option<&KeyRecord> {
        self.keys.get(hash)
    }

    /// All that a key was ever used for, oldest last.
    pub fn key_history(&self, hash: Digest16) -> impl Iterator<Item = &KeyRecord> {
        let old = self.forgotten.iter().rev().filter(move |(of, _)| *of == hash);
        self.keys.get(&hash).into_iter().chain(old.map(|(_, record)| record))
    }

    /// Whether a key may be forgotten by now (RULES R7).
    #[must_use]
    pub fn may_forget(&self, record: &KeyRecord, at: u64, keys_scarce: bool) -> bool {
        if record.refused {
            let kept = if keys_scarce { 60 } else { self.settings.refusal_key_seconds };
            return at > record.at + u64::from(kept) * 1_000;
        }
        let settled = match record.hold.map(|no| &self.holds[at_no(no)]) {
            Some(hold) if hold.state == HoldState::Active => return false,
            Some(hold) => hold.settled_at.max(record.at),
            None => record.at,
        };
        at > settled + u64::from(self.settings.success_key_hours) * 3_600_000
    }

    /// An item's counts, from its holds.
    #[must_use]
    pub fn counts(&self, item: ItemIx) -> Counts {
        let lines = || self.holds.iter().flat_map(|hold| &hold.lines);
        let of = |count: fn(&Line) -> u32| lines().filter(|l| l.item == item).map(count).sum();
        let entry = &self.items[item.0 as usize];
        Counts {
            total: entry.total,
            held: of(|line| line.held),
            sold: of(|line| line.sold),
            blocked: 0,
            oversell_limit: entry.oversell_limit,
            unplanned: 0,
        }
    }

    /// How many items there are.
    #[must_use]
    pub fn items_len(&self) -> usize {
        self.items.len()
    }

    /// How many holds there are.
    #[must_use]
    pub fn holds_len(&self) -> usize {
        self.holds.len()
    }

    /// Where a hold stands.
    #[must_use]
    pub fn standing(&self, no: HoldNo) -> HoldNow {
        let hold = &self.holds[at_no(no)];
        HoldNow { state: hold.state, expires_at: Timestamp(hold.expires_at) }
    }

    /// A hold's lines.
    #[must_use]
    pub fn lines(&self, no: HoldNo) -> &[Line] {
        &self.holds[at_no(no)].lines
    }

    /// The largest fence so far.
    #[must_use]
    pub fn last_fence(&self) -> u64 {
        self.last_fence
    }

    pub(crate) fn next_fence(&mut self, at: u64) -> u64 {
        self.last_fence = (self.last_fence + 1).max(at * 1_024);
        self.last_fence
    }

    /// The public id of a hold. One that the log does not have gets an id that nothing has.
    pub(crate) fn id(&self, no: HoldNo) -> HoldId {
        let nobody = HoldId { seq: noondrop_core::Seq(0), index: 0, tag: [0; 10] };
        self.ids.get(at_no(no)).copied().unwrap_or(nobody)
    }

    pub(crate) fn shop_of(&self, command: &Command) -> Result<ShopIx, Refusal> {
        let found = self.shops.iter().position(|shop| shop.name == command.shop.as_str());
        found.map(|at| ShopIx(narrow(at))).ok_or(Refusal::ShopNotFound)
    }

    pub(crate) fn sale_of(&self, command: &Command, name: &str) -> Result<SaleIx, Refusal> {
        let shop = self.shop_of(command)?;
        let found = self.sales.iter().position(|sale| sale.shop == shop && sale.name == name);
        found.map(|at| SaleIx(narrow(at))).ok_or(Refusal::SaleNotFound)
    }

    pub(crate) fn item_of(&self, sale: SaleIx, name: &str) -> Option<ItemIx> {
        let found = self.items.iter().position(|item| item.sale == sale && item.name == name);
        found.map(|at| ItemIx(narrow(at)))
    }

    pub(crate) fn hold_of(&self, command: &Command, id: HoldId) -> Result<HoldNo, Refusal> {
        let shop = self.shop_of(command)?;
        let found = self.ids.iter().position(|known| *known == id).filter(|&at| {
            at < self.holds.len() && {
                let hold = &self.holds[at];
                self.sales[hold.sale.0 as usize].shop == shop
                    && match &command.actor {
                        Actor::Principal { .. } => true,
                        Actor::Buyer { digest } => hold.buyer == *digest,
                    }
            }
        });
        found.map(|at| HoldNo(at as u64)).ok_or(Refusal::HoldNotFound)
    }

    pub(crate) fn view(&self, no: HoldNo) -> HoldView {
        let hold = &self.holds[at_no(no)];
        let shop = self.sales[hold.sale.0 as usize].shop;
        HoldView {
            id: self.id(no),
            no,
            fence: noondrop_core::Fence(hold.fence),
            state: hold.state,
            shop,
            sale: hold.sale,
            created_at: Timestamp(hold.created_at),
            expires_at: Timestamp(hold.expires_at),
            ttl_seconds: hold.ttl_seconds,
            extensions_left: hold.extensions - hold.extensions_used.min(hold.extensions),
            supersedes: hold.supersedes.map(|no| self.id(no)),
            superseded_by: hold.superseded_by.map(|no| self.id(no)),
            lines: Lines(hold.lines.iter().copied().collect()),
            already: false,
            live: hold.live,
            now: self.standing(no),
            texts: None,
            seats: Vec::new(),
        }
    }

    pub(crate) fn item_view(&self, item: ItemIx) -> ItemView {
        let entry = &self.items[item.0 as usize];
        ItemView {
            item,
            sale: entry.sale,
            counts: self.counts(item),
            version: entry.version,
            quarantined: false,
            created: false,
            seated: false,
            is_view: false,
            counts_against: Vec::new(),
            blocks: Vec::new(),
        }
    }
}

impl Sale {
    fn pass_to(&mut self, at: u64) {
        let due = |time: Option<Timestamp>| time.is_some_and(|time| time.0 <= at);
        let published =
            matches!(self.state, SaleState::Scheduled | SaleState::Open | SaleState::Paused);
        if published && due(self.terms.closes_at) {
            self.state = SaleState::Closed;
        } else if self.state == SaleState::Scheduled
            && (self.terms.opens_at.is_none() || due(self.terms.opens_at))
        {
            self.state = SaleState::Open;
        }
    }
}

pub(crate) fn at_no(no: HoldNo) -> usize {
    usize::try_from(no.0).expect("a simulated log is short")
}

pub(crate) fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("a simulated log is small")
}

pub(crate) fn invalid(field: &str) -> Refusal {
    Refusal::InvalidField { field: field.into(), bound: String::new() }
}

/// Whether a refusal competed and lost (RULES R7): spelled out again.
fn competed(refusal: &Refusal) -> bool {
    let code = refusal.code();
    [
        "sold_out",
        "all_held",
        "not_enough_free",
        "units_gone",
        "limit_per_buyer",
        "buyer_has_hold",
        "reference_in_use",
        "stale_fence",
        "confirmed_with_other_payment",
    ]
    .contains(&code)
        || (code.starts_with("hold_") && code != "hold_not_found")
}

/// The bytes of an answer's body: what must be the same, to the last one, whenever the same key asks. What moves (where
/// a hold stands by now) is not part of it, nor are texts that the caller may have from his own command.
#[must_use]
pub fn canonical(outcome: &Outcome) -> Vec<u8> {
    let fixed = HoldNow { state: HoldState::Active, expires_at: Timestamp(0) };
    match outcome {
        Outcome::Hold(view) => {
            let view = HoldView { now: fixed, texts: None, ..view.clone() };
            encoded(b'h', &view)
        }
        Outcome::Item(view) => encoded(b'i', view),
        // Its words are for people; what the oracle knows is that the value cannot be.
        Outcome::Refused(Refusal::InvalidField { .. }) => b"invalid_field".to_vec(),
        Outcome::Refused(refusal) => encoded(b'r', refusal),
        Outcome::Sale(view) => format!("{view:?}").into_bytes(),
        Outcome::Shop(view) => format!("{view:?}").into_bytes(),
        Outcome::Erased(view) => format!("{view:?}").into_bytes(),
    }
}

fn encoded(kind: u8, of: &impl minicbor::Encode<()>) -> Vec<u8> {
    let mut bytes = vec![kind];
    minicbor::encode(of, &mut bytes).expect("writing to a vector cannot fail");
    bytes
}
