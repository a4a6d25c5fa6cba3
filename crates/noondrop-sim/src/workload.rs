//! What callers want: buyers and sellers of a few small sales, who make holds and settle them, and an admin who changes
//! things under them. Some of what they ask for is wrong, late, or somebody else's.

use noondrop_core::{
    Act, Actor, BuyerLimit, CancelTo, Command, Digested, Digester, Fence, HoldCancel, HoldConfirm,
    HoldCreate, HoldExtend, HoldId, HoldRef, HoldRelease, ItemAdjust, ItemPut, KeyScope, KeyUse,
    LineAsked, LinePart, Name, Outcome, Role, SaleMove, SalePut, SaleStep, SaleTerms, ShopPut,
    Timestamp,
};
use smallvec::SmallVec;

use crate::dice::Dice;

/// The shop that every log begins with.
pub const SHOP: &str = "main";
/// Its sales.
pub const SALES: [&str; 2] = ["noon", "late"];
/// The items of each sale; small enough that they are fought over.
pub const ITEMS: [&str; 3] = ["floor", "balcony", "box"];

/// A hold that somebody was told of.
#[derive(Clone, Debug)]
struct Known {
    id: HoldId,
    fence: Fence,
    sale: &'static str,
    buyer: String,
    lines: u8,
    payment: Option<String>,
}

/// Thinks up commands.
#[derive(Debug)]
pub struct Workload {
    dice: Dice,
    buyers: u64,
    keys: u64,
    known: Vec<Known>,
}

/// How many of the newest holds callers still care about.
const KNOWN_MAX: usize = 24;

fn name(text: &str) -> Name {
    Name::parse(text).expect("the workload's names are names")
}

fn principal(called: &str, role: Role) -> Actor {
    Actor::Principal { name: name(called), role }
}

impl Workload {
    /// A workload of its own stream of chance.
    pub fn new(mut dice: Dice) -> Self {
        let buyers = dice.between(2, 12);
        Self { dice, buyers, keys: 0, known: Vec::new() }
    }

    /// The commands that set the sales up.
    pub fn opening(&mut self, digester: &Digester, now: u64) -> Vec<Command> {
        let mut acts = Vec::new();
        for sale in SALES {
            acts.push(Act::SalePut(SalePut {
                sale: name(sale),
                terms: self.terms(now),
                if_version: None,
            }));
            for item in ITEMS {
                acts.push(Act::ItemPut(ItemPut {
                    sale: name(sale),
                    item: name(item),
                    total: Some(u32::try_from(self.dice.below(9)).expect("small")),
                    oversell_limit: u32::try_from(self.dice.below(3)).expect("small"),
                    if_version: None,
                    seats: None,
                    counts_against: None,
                }));
            }
            acts.push(Act::SaleMove(SaleMove { sale: name(sale), to: SaleStep::Publish }));
        }
        let office = || principal("office", Role::Admin);
        acts.into_iter().map(|act| self.sealed(digester, office(), act)).collect()
    }

    fn terms(&mut self, now: u64) -> SaleTerms {
        let dice = &mut self.dice;
        let seconds = |low, high, dice: &mut Dice| {
            u32::try_from(dice.between(low, high)).expect("seconds are few")
        };
        let hold_seconds = seconds(5, 90, dice);
        let hold_seconds_max = hold_seconds + seconds(0, 120, dice);
        let opens_at = dice.chance(200).then(|| Timestamp(now + dice.below(60_000)));
        let closes_at = dice.chance(100).then(|| Timestamp(now + 60_000 + dice.below(600_000)));
        let mut limits = Vec::new();
        if dice.chance(500) {
            limits.push(BuyerLimit {
                name: name("each"),
                items: Vec::new(),
                per_buyer: seconds(2, 9, dice),
            });
        }
        if dice.chance(300) {
            let items = vec![name(dice.text(&ITEMS)), name("nothing-like-it")];
            limits.push(BuyerLimit { name: name("some"), items, per_buyer: seconds(1, 4, dice) });
        }
        SaleTerms {
            title: "A sale".into(),
            opens_at,
            closes_at,
            hold_seconds,
            hold_seconds_max,
            hold_chain_seconds_max: hold_seconds_max + seconds(0, 200, dice),
            extensions_max: u8::try_from(dice.below(3)).expect("small"),
            live_holds_per_buyer: dice.chance(300).then(|| seconds(1, 3, dice)),
            limits,
            returns_to: None,
        }
    }

    /// The next thing that somebody wants.
    pub fn next(&mut self, digester: &Digester, now: u64) -> Command {
        let kind = self.dice.below(100);
        let command = match kind {
            0..40 => self.create(digester),
            40..60 => self.confirm(digester),
            60..68 => self.extend(digester),
            68..78 => self.release(digester),
            78..86 => self.cancel(digester),
            86..92 => self.retake(digester),
            92..95 => self.adjust(digester),
            _ => self.office(digester, now),
        };
        command.unwrap_or_else(|| self.create(digester).expect("a hold can always be asked for"))
    }

    /// Remembers a hold that a caller was told of.
    pub fn heard(&mut self, command: &Command, outcome: &Outcome) {
        let Outcome::Hold(view) = outcome else { return };
        match &command.act {
            Act::HoldCreate(create) if self.known.iter().all(|known| known.id != view.id) => {
                if self.known.len() == KNOWN_MAX {
                    let oldest = self.dice.index(KNOWN_MAX / 2);
                    self.known.remove(oldest);
                }
                let sale = SALES.into_iter().find(|sale| *sale == create.sale.as_str());
                self.known.push(Known {
                    id: view.id,
                    fence: view.fence,
                    sale: sale.expect("one of the workload's"),
                    buyer: create.buyer.text.clone(),
                    lines: u8::try_from(view.lines.0.len()).expect("few lines"),
                    payment: create.confirm.as_ref().map(|payment| payment.text.clone()),
                });
            }
            Act::HoldConfirm(confirm) => {
                if let Some(known) = self.known.iter_mut().find(|known| known.id == view.id) {
                    known.payment = Some(confirm.payment_ref.text.clone());
                }
            }
            _ => {}
        }
    }

    fn sealed(&mut self, digester: &Digester, actor: Actor, act: Act) -> Command {
        self.keys += 1;
        let key = format!("key-{}", self.keys);
        Self::with_key(digester, actor, act, &key)
    }

    /// The same command under another key.
    pub fn with_new_key(&mut self, digester: &Digester, command: &Command) -> Command {
        self.sealed(digester, command.actor.clone(), command.act.clone())
    }

    /// Another command of the same kind under the same key, if there is one.
    pub fn with_other_body(&mut self, command: &Command) -> Option<Command> {
        let mut other = command.clone();
        match &mut other.act {
            Act::HoldCreate(create) if create.retake.is_none() => {
                create.lines[0].quantity += 1;
            }
            Act::ItemAdjust(adjust) => adjust.by += 1,
            _ => return None,
        }
        let fingerprint = other.act.fingerprint();
        other.key = command.key.map(|key| KeyUse { fingerprint, ..key });
        Some(other)
    }

    fn with_key(digester: &Digester, actor: Actor, act: Act, key: &str) -> Command {
        let principal = match &actor {
            Actor::Principal { name, .. } => name.to_string(),
            Actor::Buyer { digest } => digest.to_string(),
        };
        let target = target_of(&act);
        let scope = KeyScope {
            shop: SHOP,
            principal: &principal,
            operation: act.operation(),
            target: &target,
        };
        let hash = digester.key(scope, key);
        let key = KeyUse { hash, fingerprint: act.fingerprint() };
        Command { shop: name(SHOP), actor, key: Some(key), origin: None, act }
    }

    fn buyer(&mut self) -> String {
        format!("buyer-{}", self.dice.below(self.buyers))
    }

    fn actor(&mut self, digester: &Digester, buyer: &str) -> Actor {
        match self.dice.below(10) {
            0 => Actor::Buyer { digest: digester.buyer(SHOP, "somebody-else") },
            1..4 => principal("till", Role::Seller),
            _ => Actor::Buyer { digest: digester.buyer(SHOP, buyer) },
        }
    }

    fn lines(&mut self) -> SmallVec<[LineAsked; 1]> {
        let count = *self.dice.pick(&[1, 1, 1, 2, 3]);
        let unknown = self.dice.chance(15);
        let line = |dice: &mut Dice| {
            let item = name(if unknown { "no-such-item" } else { dice.text(&ITEMS) });
            LineAsked::units(item, u32::try_from(dice.between(1, 4)).expect("small"))
        };
        (0..count).map(|_| line(&mut self.dice)).collect()
    }

    fn create(&mut self, digester: &Digester) -> Option<Command> {
        let replaced = self.dice.chance(250).then(|| self.known()).flatten();
        let buyer = match &replaced {
            Some(known) if self.dice.chance(950) => known.buyer.clone(),
            _ => self.buyer(),
        };
        let actor = match self.dice.below(10) {
            0..3 => principal("till", Role::Seller),
            _ => Actor::Buyer { digest: digester.buyer(SHOP, &buyer) },
        };
        let seller = matches!(actor, Actor::Principal { .. });
        let sale = replaced.as_ref().map_or_else(|| self.dice.text(&SALES), |known| known.sale);
        let ttl_seconds = self.dice.chance(300).then(|| self.dice.between(1, 200));
        let reference = self.dice.chance(250).then(|| format!("cart-{}", self.dice.below(8)));
        let payment = (seller && self.dice.chance(150)).then(|| self.payment());
        let act = Act::HoldCreate(HoldCreate {
            sale: name(sale),
            buyer: digester.digested_buyer(SHOP, &buyer),
            reference: reference
                .map(|text| Digested { digest: digester.reference(SHOP, &text), text }),
            lines: self.lines(),
            ttl_seconds: ttl_seconds.map(|seconds| u32::try_from(seconds).expect("small")),
            metadata: self.dice.chance(50).then(|| "{\"note\":1}".into()),
            supersedes: replaced.map(|known| HoldRef { hold: known.id, fence: self.fence(&known) }),
            retake: None,
            confirm: payment.map(|text| paid(digester, text)),
            overriding: None,
        });
        Some(self.sealed(digester, actor, act))
    }

    fn known(&mut self) -> Option<Known> {
        if self.known.is_empty() {
            return None;
        }
        // Mostly the newest ones: old ones are settled.
        let len = self.known.len();
        let from = if self.dice.chance(700) { len.saturating_sub(6) } else { 0 };
        Some(self.known[from + self.dice.index(len - from)].clone())
    }

    fn fence(&mut self, known: &Known) -> Fence {
        if self.dice.chance(40) { Fence(known.fence.0 - 1) } else { known.fence }
    }

    fn payment(&mut self) -> String {
        format!("pay-{}", self.dice.below(1_000))
    }

    fn confirm(&mut self, digester: &Digester) -> Option<Command> {
        let known = self.known()?;
        let text = match &known.payment {
            Some(before) if self.dice.chance(600) => before.clone(),
            _ => self.payment(),
        };
        let act = Act::HoldConfirm(HoldConfirm {
            hold: known.id,
            fence: self.fence(&known),
            payment_ref: paid(digester, text),
        });
        Some(self.sealed(digester, principal("till", Role::Seller), act))
    }

    fn extend(&mut self, digester: &Digester) -> Option<Command> {
        let known = self.known()?;
        let actor = self.actor(digester, &known.buyer);
        let (fence, reason) = self.fence_or_reason(&known);
        let seconds = u32::try_from(self.dice.between(1, 150)).expect("small");
        let act = Act::HoldExtend(HoldExtend { hold: known.id, fence, seconds, reason });
        Some(self.sealed(digester, actor, act))
    }

    fn fence_or_reason(&mut self, known: &Known) -> (Option<Fence>, Option<String>) {
        if self.dice.chance(100) {
            (None, self.dice.chance(700).then(|| "asked on the phone".into()))
        } else {
            (Some(self.fence(known)), None)
        }
    }

    fn release(&mut self, digester: &Digester) -> Option<Command> {
        let known = self.known()?;
        let actor = self.actor(digester, &known.buyer);
        let (fence, reason) = self.fence_or_reason(&known);
        let lines = self.parts(&known);
        let act = Act::HoldRelease(HoldRelease { hold: known.id, fence, lines, reason });
        Some(self.sealed(digester, actor, act))
    }

    fn parts(&mut self, known: &Known) -> Option<Vec<LinePart>> {
        let named = self.dice.chance(500);
        named.then(|| {
            let line = u8::try_from(self.dice.between(1, u64::from(known.lines))).expect("few");
            let quantity = self.dice.chance(700).then(|| self.dice.between(1, 3));
            let quantity = quantity.map(|units| u32::try_from(units).expect("small"));
            vec![LinePart::units(line, quantity)]
        })
    }

    fn cancel(&mut self, digester: &Digester) -> Option<Command> {
        let paid: Vec<usize> =
            (0..self.known.len()).filter(|at| self.known[*at].payment.is_some()).collect();
        let known = if paid.is_empty() || self.dice.chance(100) {
            self.known()?
        } else {
            self.known[*self.dice.pick(&paid)].clone()
        };
        let act = Act::HoldCancel(HoldCancel {
            hold: known.id,
            fence: self.fence(&known),
            lines: self.parts(&known),
            to: Some(if self.dice.chance(250) { CancelTo::Destroyed } else { CancelTo::Stock }),
            reason: "refund".into(),
        });
        Some(self.sealed(digester, principal("till", Role::Seller), act))
    }

    /// Money came late: the units again, if they are there.
    fn retake(&mut self, digester: &Digester) -> Option<Command> {
        let known = self.known()?;
        let text = self.payment();
        let act = Act::HoldCreate(HoldCreate {
            sale: name(known.sale),
            buyer: digester.digested_buyer(SHOP, &known.buyer),
            reference: None,
            lines: SmallVec::new(),
            ttl_seconds: None,
            metadata: None,
            supersedes: None,
            retake: Some(known.id),
            confirm: Some(paid(digester, text)),
            overriding: None,
        });
        Some(self.sealed(digester, principal("till", Role::Seller), act))
    }

    fn adjust(&mut self, digester: &Digester) -> Option<Command> {
        let act = Act::ItemAdjust(ItemAdjust {
            sale: name(self.dice.text(&SALES)),
            item: name(self.dice.text(&ITEMS)),
            by: i64::try_from(self.dice.below(7)).expect("small") - 3,
            reason: "stock-taking".into(),
            if_total: self.dice.chance(150).then_some(4),
        });
        Some(self.sealed(digester, principal("office", Role::Admin), act))
    }

    fn office(&mut self, digester: &Digester, now: u64) -> Option<Command> {
        let sale = name(self.dice.text(&SALES));
        let act = match self.dice.below(12) {
            0 => Act::ShopPut(ShopPut { name: name("side"), live: self.dice.chance(500) }),
            1 => Act::ShopPut(ShopPut { name: name(SHOP), live: self.dice.chance(500) }),
            2 | 3 => Act::SalePut(SalePut { sale, terms: self.terms(now), if_version: None }),
            4 => Act::ItemPut(ItemPut {
                sale,
                item: name(self.dice.text(&ITEMS)),
                total: Some(u32::try_from(self.dice.below(9)).expect("small")),
                oversell_limit: u32::try_from(self.dice.below(3)).expect("small"),
                if_version: None,
                seats: None,
                counts_against: None,
            }),
            n => {
                use SaleStep::{Close, Pause, Publish, Reopen, Resume};
                let steps = [Publish, Pause, Resume, Resume, Close, Reopen, Reopen];
                let at = usize::try_from(n - 5).expect("small");
                Act::SaleMove(SaleMove { sale, to: steps[at] })
            }
        };
        Some(self.sealed(digester, principal("office", Role::Admin), act))
    }

    /// Puts a sale into a state in which anyone may buy anything, step by step.
    pub fn reopening(&mut self, digester: &Digester, sale: &str) -> Vec<Command> {
        let terms = SaleTerms {
            title: "The rest".into(),
            opens_at: None,
            closes_at: None,
            hold_seconds: 60,
            hold_seconds_max: 60,
            hold_chain_seconds_max: 60,
            extensions_max: 0,
            live_holds_per_buyer: None,
            limits: Vec::new(),
            returns_to: None,
        };
        let step = |to| Act::SaleMove(SaleMove { sale: name(sale), to });
        let put = Act::SalePut(SalePut { sale: name(sale), terms, if_version: None });
        [put, step(SaleStep::Publish), step(SaleStep::Resume), step(SaleStep::Reopen)]
            .map(|act| self.sealed(digester, principal("office", Role::Admin), act))
            .into()
    }

    /// A new buyer buys so many at once.
    pub fn purchase(
        &mut self,
        digester: &Digester,
        sale: &str,
        item: &str,
        quantity: u32,
    ) -> Command {
        let act = Act::HoldCreate(HoldCreate {
            sale: name(sale),
            buyer: digester.digested_buyer(SHOP, "the-last-buyer"),
            reference: None,
            lines: SmallVec::from_elem(LineAsked::units(name(item), quantity), 1),
            ttl_seconds: None,
            metadata: None,
            supersedes: None,
            retake: None,
            confirm: Some(paid(digester, "none".into())),
            overriding: None,
        });
        self.sealed(digester, principal("till", Role::Seller), act)
    }
}

fn paid(digester: &Digester, text: String) -> Digested {
    Digested { digest: digester.payment(SHOP, &text), text }
}

fn target_of(act: &Act) -> String {
    match act {
        Act::HoldConfirm(act) => act.hold.to_string(),
        Act::HoldExtend(act) => act.hold.to_string(),
        Act::HoldRelease(act) => act.hold.to_string(),
        Act::HoldCancel(act) => act.hold.to_string(),
        Act::ItemAdjust(act) => format!("{}/{}", act.sale, act.item),
        Act::ItemBlock(act) => format!("{}/{}", act.sale, act.item),
        Act::ItemUnblock(act) => format!("{}/{}", act.sale, act.item),
        Act::ItemPut(act) => format!("{}/{}", act.sale, act.item),
        Act::ItemSeats(act) => format!("{}/{}", act.sale, act.item),
        Act::SalePut(act) => act.sale.to_string(),
        Act::SaleMove(act) => act.sale.to_string(),
        Act::ShopPut(_) | Act::HoldCreate(_) | Act::BuyerErase(_) => String::new(),
    }
}
