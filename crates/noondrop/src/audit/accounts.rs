//! A second set of books, kept from the facts alone and sharing no code with the state that decides.
//!
//! Two independent countings that agree on every item say more than one that agrees with itself.

use std::collections::BTreeMap;
use std::fmt;

use noondrop_core::{CancelTo, Counts, Draw, Fact, ItemIx};

/// What one item had and has, by its facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    total: i64,
    held: i64,
    sold: i64,
    cap_max: i64,
    claimed: bool,
}

/// A fact that the books cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imbalance {
    /// A fact is about an item that no fact defined.
    Unknown(ItemIx),
    /// More units come back than went out.
    Negative(ItemIx),
    /// More units are claimed than the item may give.
    SoldTwice {
        /// The item.
        item: ItemIx,
        /// Units claimed and owned.
        taken: i64,
        /// Units that it may give.
        cap: i64,
    },
    /// The state counts otherwise.
    Differs {
        /// The item.
        item: ItemIx,
        /// By the facts: total, held, sold.
        facts: (i64, i64, i64),
        /// By the state.
        state: (u32, u32, u32),
    },
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(item) => write!(f, "item #{item} has units and was never defined"),
            Self::Negative(item) => write!(f, "item #{item}: more units came back than went out"),
            Self::SoldTwice { item, taken, cap } => {
                write!(f, "item #{item}: {taken} units are claimed where there are {cap}")
            }
            Self::Differs { item, facts, state } => write!(
                f,
                "item #{item}: its facts add up to total {}, held {}, sold {}, its account says {}, {} and {}",
                facts.0, facts.1, facts.2, state.0, state.1, state.2
            ),
        }
    }
}

impl std::error::Error for Imbalance {}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    items: BTreeMap<ItemIx, Account>,
    oversell: BTreeMap<ItemIx, i64>,
    touched: Vec<ItemIx>,
}

/// Units that a fact moves: into held, into sold.
#[derive(Clone, Copy)]
struct Signs {
    held: i64,
    sold: i64,
    total: i64,
}

impl Accounts {
    /// Books one fact.
    pub fn book(&mut self, fact: &Fact) -> Result<(), Imbalance> {
        match fact {
            Fact::ItemDefined(defined) => {
                self.oversell.insert(defined.item, i64::from(defined.oversell_limit));
                self.items.entry(defined.item).or_default().total = i64::from(defined.total);
                self.touch(defined.item)
            }
            Fact::ItemAdjusted(adjusted) => {
                self.account(adjusted.item)?.total = i64::from(adjusted.total);
                self.touch(adjusted.item)
            }
            Fact::HoldCreated(created) => {
                let signs = Signs { held: 1, sold: 0, total: 0 };
                created.lines.iter().try_for_each(|line| self.shift(&line.draws, signs))
            }
            Fact::HoldConfirmed(fact) => {
                self.shift(&fact.moves, Signs { held: -1, sold: 1, total: 0 })
            }
            Fact::HoldReleased(fact) => {
                self.shift(&fact.moves, Signs { held: -1, sold: 0, total: 0 })
            }
            Fact::HoldsExpired(fact) => {
                self.shift(&fact.moves, Signs { held: -1, sold: 0, total: 0 })
            }
            Fact::HoldCancelled(fact) => {
                let total = if fact.to == CancelTo::Destroyed { -1 } else { 0 };
                self.shift(&fact.moves, Signs { held: 0, sold: -1, total })
            }
            Fact::LogStarted(_)
            | Fact::ShopDefined(_)
            | Fact::ActorSeen(_)
            | Fact::SaleDefined(_)
            | Fact::SaleMoved(_)
            | Fact::HoldRefused(_)
            | Fact::HoldConfirmedAgain(_)
            | Fact::HoldExtended(_)
            | Fact::HoldActRefused(_)
            | Fact::KeyRepeated(_)
            | Fact::LossAccepted(_)
            | Fact::LogRestored(_)
            | Fact::SettingsChanged(_) => Ok(()),
        }
    }

    /// Ends a row: nothing may be below zero, and no claim of this row above what the item may give.
    pub fn close_row(&mut self) -> Result<(), Imbalance> {
        for item in std::mem::take(&mut self.touched) {
            let account = self.account(item)?;
            let (taken, cap, claimed) =
                (account.held + account.sold, account.cap_max, account.claimed);
            (account.cap_max, account.claimed) = (0, false);
            if account.held < 0 || account.sold < 0 || account.total < 0 {
                return Err(Imbalance::Negative(item));
            }
            if claimed && taken > cap {
                return Err(Imbalance::SoldTwice { item, taken, cap });
            }
        }
        Ok(())
    }

    /// Compares an item with what the state says of it.
    pub fn compare(&self, item: ItemIx, counts: &Counts) -> Result<(), Imbalance> {
        let own = self.items.get(&item).ok_or(Imbalance::Unknown(item))?;
        let facts = (own.total, own.held, own.sold);
        let state = (counts.total, counts.held, counts.sold);
        if facts == (i64::from(state.0), i64::from(state.1), i64::from(state.2)) {
            Ok(())
        } else {
            Err(Imbalance::Differs { item, facts, state })
        }
    }

    fn account(&mut self, item: ItemIx) -> Result<&mut Account, Imbalance> {
        self.items.get_mut(&item).ok_or(Imbalance::Unknown(item))
    }

    fn shift(&mut self, draws: &[Draw], signs: Signs) -> Result<(), Imbalance> {
        for draw in draws {
            let units = i64::from(draw.quantity);
            let account = self.account(draw.pool)?;
            account.held += signs.held * units;
            account.sold += signs.sold * units;
            account.total = (account.total + signs.total * units).max(0);
            account.claimed |= signs.held > 0;
            self.touch(draw.pool)?;
        }
        Ok(())
    }

    /// A claim may come before a shrink in one row, so what counts is the most that the item could give within it.
    fn touch(&mut self, item: ItemIx) -> Result<(), Imbalance> {
        let oversell = self.oversell.get(&item).copied().unwrap_or_default();
        let account = self.account(item)?;
        account.cap_max = account.cap_max.max(account.total + oversell);
        if !self.touched.contains(&item) {
            self.touched.push(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noondrop_core::{
        ActorIx, Digest16, HoldConfirmed, HoldCreated, HoldNo, HoldTouched, ItemDefined, LineTaken,
        Name, SaleIx, Seq,
    };

    const ITEM: ItemIx = ItemIx(0);

    fn defined(total: u32) -> Fact {
        Fact::ItemDefined(ItemDefined {
            item: ITEM,
            sale: SaleIx(0),
            name: Name::parse("seat").unwrap(),
            total,
            oversell_limit: 0,
            draws: vec![ITEM],
            version: 1,
            by: ActorIx::SYSTEM,
        })
    }

    fn draws(quantity: u32) -> noondrop_core::Draws {
        [Draw { pool: ITEM, quantity }].into_iter().collect()
    }

    fn created(quantity: u32) -> Fact {
        let line = LineTaken { item: ITEM, quantity, draws: draws(quantity) };
        Fact::HoldCreated(HoldCreated {
            hold: HoldNo(0),
            sale: SaleIx(0),
            by: ActorIx::BUYER,
            buyer: Digest16::default(),
            ttl_seconds: 1,
            extensions: 0,
            lines: [line].into_iter().collect(),
            key: None,
            reference: None,
            expires_at: None,
            supersedes: None,
            retakes: None,
            origin: None,
        })
    }

    fn confirmed(quantity: u32) -> Fact {
        let touched =
            HoldTouched { hold: HoldNo(0), previous: Seq(1), by: ActorIx::BUYER, key: None };
        let moves = draws(quantity);
        Fact::HoldConfirmed(HoldConfirmed { touched, payment: Digest16::default(), moves })
    }

    fn booked(facts: &[Fact]) -> Result<Accounts, Imbalance> {
        let mut accounts = Accounts::default();
        facts.iter().try_for_each(|fact| accounts.book(fact))?;
        accounts.close_row().map(|()| accounts)
    }

    #[test]
    fn what_was_claimed_and_sold_is_what_the_account_says() {
        let accounts = booked(&[defined(3), created(2), confirmed(2)]).unwrap();
        let counts = Counts { total: 3, sold: 2, ..Counts::default() };
        assert_eq!(accounts.compare(ITEM, &counts), Ok(()));
        let forged = Counts { total: 3, sold: 1, held: 1, ..Counts::default() };
        assert!(matches!(accounts.compare(ITEM, &forged), Err(Imbalance::Differs { .. })));
    }

    #[test]
    fn a_unit_that_is_sold_twice_or_comes_back_twice_shows() {
        let twice = booked(&[defined(3), created(2), created(2)]).unwrap_err();
        assert_eq!(twice, Imbalance::SoldTwice { item: ITEM, taken: 4, cap: 3 });
        let back = booked(&[defined(3), created(1), confirmed(2)]).unwrap_err();
        assert_eq!(back, Imbalance::Negative(ITEM));
        assert_eq!(booked(&[created(1)]).unwrap_err(), Imbalance::Unknown(ITEM));
    }
}
