//! The commands of a row, as its facts tell of them, and which answer is about which.

use noondrop_core::{Act, Command, Digest16, Fact, KeyUse, Outcome, Refusal};
use noondrop_engine::Reply;

use super::Finding;
use crate::oracle::canonical;

/// A command of a row, as its facts tell of it.
pub(super) struct Slot<'a> {
    pub(super) kind: SlotKind,
    pub(super) fact: &'a Fact,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotKind {
    Keyed(Digest16, u64),
    /// What kind of thing, and its index.
    Defined(&'static str, u32),
}

pub(super) fn slot_of(fact: &Fact) -> Option<SlotKind> {
    let keyed = |key: &Option<KeyUse>| key.map(|key| SlotKind::Keyed(key.hash, key.fingerprint));
    match fact {
        Fact::HoldCreated(fact) => keyed(&fact.key),
        Fact::HoldRefused(fact) => keyed(&fact.key),
        Fact::HoldConfirmed(fact) => keyed(&fact.touched.key),
        Fact::HoldConfirmedAgain(touched) => keyed(&touched.key),
        Fact::HoldExtended(fact) => keyed(&fact.touched.key),
        Fact::HoldReleased(fact) => keyed(&fact.touched.key),
        Fact::HoldCancelled(fact) => keyed(&fact.touched.key),
        Fact::HoldActRefused(fact) => keyed(&fact.touched.key),
        Fact::ItemAdjusted(fact) => keyed(&fact.key),
        Fact::ItemBlocked(fact) | Fact::ItemUnblocked(fact) => keyed(&fact.key),
        Fact::BlockRefused(fact) => keyed(&fact.key),
        Fact::ShopDefined(fact) => Some(SlotKind::Defined("shop", fact.shop.0)),
        Fact::SaleDefined(fact) => Some(SlotKind::Defined("sale", fact.sale.0)),
        Fact::ItemDefined(fact) => Some(SlotKind::Defined("item", fact.item.0)),
        Fact::SaleMoved(fact) if fact.by != noondrop_core::ActorIx::SYSTEM => {
            Some(SlotKind::Defined("move", fact.sale.0))
        }
        _ => None,
    }
}

/// Whether an answer is the one of the command that a slot tells of.
pub(super) fn owns(reply: &Reply, kind: &SlotKind) -> bool {
    match (kind, &reply.command.act) {
        _ if reply.replayed => false,
        (SlotKind::Keyed(hash, fingerprint), _) => {
            let key = reply.command.key;
            key.is_some_and(|key| key.hash == *hash && key.fingerprint == *fingerprint)
        }
        (SlotKind::Defined("shop", index), Act::ShopPut(_)) => {
            matches!(&reply.outcome, Outcome::Shop(view) if view.shop.0 == *index)
        }
        (SlotKind::Defined("sale", index), Act::SalePut(_))
        | (SlotKind::Defined("move", index), Act::SaleMove(_)) => {
            matches!(&reply.outcome, Outcome::Sale(view) if view.sale.0 == *index)
        }
        (SlotKind::Defined("item", index), Act::ItemPut(_)) => {
            matches!(&reply.outcome, Outcome::Item(view) if view.item.0 == *index)
        }
        _ => false,
    }
}

/// Whether a fact tells of this outcome.
pub(super) fn agrees(fact: &Fact, outcome: &Outcome) -> bool {
    let refused =
        |refusal: &Refusal| canonical(&Outcome::Refused(refusal.clone())) == canonical(outcome);
    match (fact, outcome) {
        (Fact::HoldRefused(fact), Outcome::Refused(_)) => refused(&fact.refusal),
        (Fact::HoldActRefused(fact), Outcome::Refused(_)) => refused(&fact.refusal),
        (Fact::BlockRefused(fact), Outcome::Refused(_)) => refused(&fact.refusal),
        (_, Outcome::Refused(_))
        | (Fact::HoldRefused(_) | Fact::HoldActRefused(_) | Fact::BlockRefused(_), _) => false,
        _ => true,
    }
}

pub(super) fn differs(command: &Command, found: &str, expected: &Outcome) -> Finding {
    format!("{:?}\n    came to  {found}\n    and is   {expected:?}", command.act)
}
