//! The commands that benchmarks are made of: one sale, one hot item, a new buyer and a new key each time.

use noondrop_core::limits::TOTAL_MAX;
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

fn name(text: &str) -> Name {
    Name::parse(text).expect("a constant that is a name")
}

fn seller(act: Act, key: Option<KeyUse>) -> Command {
    let actor = Actor::Principal { name: name(SELLER), role: Role::Seller };
    Command { shop: name(SHOP), actor, key, origin: None, act }
}

/// Puts the item on sale.
#[must_use]
pub fn opening(hold_seconds: u32) -> Vec<Command> {
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
    let item = ItemPut {
        sale: name(SALE),
        item: name(ITEM),
        total: Some(TOTAL_MAX),
        oversell_limit: 0,
        if_version: None,
        seats: None,
        counts_against: None,
    };
    let sale = SalePut { sale: name(SALE), terms, if_version: None };
    [
        Act::SalePut(sale),
        Act::SaleMove(SaleMove { sale: name(SALE), to: SaleStep::Publish }),
        Act::ItemPut(item),
    ]
    .map(|act| seller(act, None))
    .to_vec()
}

/// The attempt of one buyer to hold one unit, under a key of its own.
#[must_use]
pub fn hold(digester: &Digester, number: u64) -> Command {
    let act = Act::HoldCreate(HoldCreate {
        sale: name(SALE),
        buyer: digester.digested_buyer(SHOP, &format!("buyer-{number}")),
        reference: None,
        lines: smallvec::smallvec![LineAsked::units(name(ITEM), 1)],
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
