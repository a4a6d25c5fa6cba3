//! The commands that benchmarks are made of: one sale, one hot item, a new buyer and a new key each time.

use noondrop_core::limits::TOTAL_MAX;
use noondrop_core::seats::SeatDef;
use noondrop_core::{
    Act, Actor, Command, Digester, HoldCreate, ItemPut, KeyScope, KeyUse, LineAsked, Name, Role,
    SaleMove, SalePut, SaleStep, SaleTerms,
};

/// The shop of every log.
pub const SHOP: &str = "main";
/// The sale on offer.
pub const SALE: &str = "bench";
/// The hot item.
pub const ITEM: &str = "ticket";
/// Who asks.
pub const SELLER: &str = "bench";

/// A name from a text that is one.
pub(super) fn name(text: &str) -> Name {
    Name::parse(text).expect("a constant that is a name")
}

fn seller(act: Act, key: Option<KeyUse>) -> Command {
    let actor = Actor::Principal { name: name(SELLER), role: Role::Seller };
    Command { shop: name(SHOP), actor, key, origin: None, act }
}

/// Seats of a row of the hall.
pub const ROW_SEATS: u32 = 100;
/// Rows of a section of it.
const SECTION_ROWS: u32 = 200;

/// Puts the item on sale.
#[must_use]
pub fn opening(hold_seconds: u32) -> Vec<Command> {
    shared(hold_seconds, 1)
}

/// Puts an item on sale that takes from so many pools: its own, and others that it counts against.
#[must_use]
pub fn shared(hold_seconds: u32, draws: u8) -> Vec<Command> {
    let others: Vec<Name> = (1..draws).map(|number| name(&format!("pool-{number}"))).collect();
    let mut commands = on_sale(hold_seconds);
    commands.extend(others.iter().map(|other| seller(Act::ItemPut(pool(other.clone())), None)));
    let counts_against = (!others.is_empty()).then_some(others);
    let item = ItemPut { counts_against, ..pool(name(ITEM)) };
    commands.push(seller(Act::ItemPut(item), None));
    commands
}

/// Puts a hall of seats on sale, in rows of [`ROW_SEATS`], better in front.
#[must_use]
pub fn hall(hold_seconds: u32, seats: u32) -> Vec<Command> {
    let seat = |number: u32| {
        let row = number / ROW_SEATS;
        let section = row / SECTION_ROWS;
        SeatDef {
            name: name(&format!("{section}-{row}-{}", number % ROW_SEATS)),
            section: name(&section.to_string()),
            row: name(&row.to_string()),
            number: number % ROW_SEATS,
            rank: row,
            tags: Vec::new(),
            zone: None,
        }
    };
    let seats = (0..seats).map(seat).collect();
    let item = ItemPut { total: None, seats: Some(seats), ..pool(name(ITEM)) };
    let mut commands = on_sale(hold_seconds);
    commands.push(seller(Act::ItemPut(item), None));
    commands
}

fn pool(item: Name) -> ItemPut {
    ItemPut {
        sale: name(SALE),
        item,
        total: Some(TOTAL_MAX),
        oversell_limit: 0,
        if_version: None,
        seats: None,
        counts_against: None,
    }
}

fn on_sale(hold_seconds: u32) -> Vec<Command> {
    let terms = SaleTerms {
        title: "Benchmark".into(),
        opens_at: None,
        closes_at: None,
        hold_seconds,
        hold_seconds_max: hold_seconds,
        hold_chain_seconds_max: hold_seconds,
        extensions_max: 0,
        live_holds_per_buyer: None,
        limits: Vec::new(),
        returns_to: None,
    };
    let sale = SalePut { sale: name(SALE), terms, if_version: None };
    let publish = SaleMove { sale: name(SALE), to: SaleStep::Publish };
    [Act::SalePut(sale), Act::SaleMove(publish)].map(|act| seller(act, None)).to_vec()
}

/// The attempt of one buyer to hold one unit, under a key of its own.
#[must_use]
pub fn hold(digester: &Digester, number: u64) -> Command {
    hold_of(digester, number, LineAsked::units(name(ITEM), 1))
}

/// The attempt of one buyer, under a key of its own.
#[must_use]
pub fn hold_of(digester: &Digester, number: u64, line: LineAsked) -> Command {
    let act = Act::HoldCreate(HoldCreate {
        sale: name(SALE),
        buyer: digester.digested_buyer(SHOP, &format!("buyer-{number}")),
        reference: None,
        lines: smallvec::smallvec![line],
        ttl_seconds: None,
        metadata: None,
        supersedes: None,
        retake: None,
        confirm: None,
        overriding: None,
    });
    let scope = KeyScope { shop: SHOP, principal: SELLER, operation: act.operation(), target: "" };
    let hash = digester.key(scope, &format!("key-{number}"));
    let fingerprint = act.fingerprint();
    seller(act, Some(KeyUse { hash, fingerprint }))
}
