//! A second set of books, kept from the facts alone and sharing no code with the state that decides.
//!
//! Two independent countings that agree on every item say more than one that agrees with itself.

use std::collections::BTreeMap;
use std::fmt;

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    BlockMoved, CancelTo, Counts, Draw, Fact, HoldNo, ItemIx, LabelIx, Name, SaleIx, SeatOut,
};

/// What one item had and has, by its facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    total: i64,
    held: i64,
    sold: i64,
    blocked: i64,
    /// Seats beyond the total: somebody has them, and they are not planned any more.
    unplanned: i64,
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
    /// A seat is given to a hold while another one has it, or comes back from one that does not.
    Seat {
        /// The item.
        item: ItemIx,
        /// The seat's number in its map.
        seat: SeatNo,
        /// Who has it, by the facts before.
        owner: Option<HoldNo>,
    },
    /// The state counts otherwise.
    Differs {
        /// The item.
        item: ItemIx,
        /// By the facts: total, held, sold, set aside.
        facts: [i64; 4],
        /// By the state.
        state: [u32; 4],
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
            Self::Seat { item, seat, owner } => {
                let owner = owner.map_or("nobody".to_owned(), |no| format!("hold #{no}"));
                write!(f, "item #{item}: seat #{seat} changes hands while {owner} has it")
            }
            Self::Differs { item, facts, state } => write!(
                f,
                "item #{item}: its facts add up to total, held, sold and blocked {facts:?}, its account says {state:?}"
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
    /// Units set aside, by the label's place in its sale's list.
    blocks: BTreeMap<(ItemIx, LabelIx), i64>,
    /// Each sale's labels as they came, and each item's sale.
    labels: BTreeMap<SaleIx, Vec<Name>>,
    sales: BTreeMap<ItemIx, SaleIx>,
    hold_sales: Vec<SaleIx>,
    /// Who has which seat.
    seats: BTreeMap<(ItemIx, SeatNo), HoldNo>,
    touched: Vec<ItemIx>,
}

/// Units that a fact moves: into held, into sold, into a block where a draw names one.
#[derive(Clone, Copy)]
struct Signs {
    held: i64,
    sold: i64,
    total: i64,
    blocked: i64,
}

const NOTHING: Signs = Signs { held: 0, sold: 0, total: 0, blocked: 0 };

impl Accounts {
    /// Books one fact.
    pub fn book(&mut self, fact: &Fact) -> Result<(), Imbalance> {
        match fact {
            Fact::ItemDefined(defined) => {
                self.sales.insert(defined.item, defined.sale);
                self.oversell.insert(defined.item, i64::from(defined.oversell_limit));
                self.items.entry(defined.item).or_default().total = i64::from(defined.total);
                self.touch(defined.item)
            }
            Fact::ItemAdjusted(adjusted) => {
                self.account(adjusted.item)?.total = i64::from(adjusted.total);
                self.touch(adjusted.item)
            }
            Fact::SeatsChanged(changed) => {
                let account = self.account(changed.item)?;
                account.total = i64::from(changed.total);
                account.unplanned = i64::from(changed.unplanned);
                let unblocked = changed.unblocked.as_deref().unwrap_or_default();
                self.shift(unblocked, Signs { blocked: -1, ..NOTHING })?;
                self.touch(changed.item)
            }
            Fact::HoldCreated(created) => {
                self.hold_sales.push(created.sale);
                for line in created.lines.iter() {
                    for &seat in line.seats.iter().flatten() {
                        self.seat_taken(line.item, seat, created.hold)?;
                    }
                }
                let signs = Signs { held: 1, blocked: -1, ..NOTHING };
                created.lines.iter().try_for_each(|line| self.shift(&line.draws, signs))
            }
            Fact::HoldConfirmed(fact) => {
                self.shift(&fact.moves, Signs { held: -1, sold: 1, ..NOTHING })
            }
            Fact::HoldReleased(fact) => {
                self.shift(&fact.moves, Signs { held: -1, blocked: 1, ..NOTHING })?;
                self.seats_back(fact.seats.as_deref(), Some(fact.touched.hold), false)
            }
            Fact::HoldsExpired(fact) => {
                self.shift(&fact.moves, Signs { held: -1, blocked: 1, ..NOTHING })?;
                self.seats_back(fact.seats.as_deref(), None, false)
            }
            Fact::HoldCancelled(fact) => {
                let destroyed = fact.to == CancelTo::Destroyed;
                // Of an item of seats the total goes with each seat.
                let total = if destroyed && fact.seats.is_none() { -1 } else { 0 };
                if let CancelTo::Block(label) = &fact.to {
                    let no = usize::try_from(fact.touched.hold.0).unwrap_or(usize::MAX);
                    let sale = self.hold_sales.get(no).copied().unwrap_or_default();
                    self.label(sale, label);
                }
                self.shift(&fact.moves, Signs { sold: -1, total, blocked: 1, ..NOTHING })?;
                if destroyed && let Some(seats) = &fact.seats {
                    self.shrink_others(&fact.moves, seats)?;
                }
                self.seats_back(fact.seats.as_deref(), Some(fact.touched.hold), destroyed)
            }
            Fact::ItemBlocked(moved) => self.set_aside(moved, 1),
            Fact::ItemUnblocked(moved) => self.set_aside(moved, -1),
            Fact::SaleDefined(defined) => {
                if let Some(returns) = &defined.terms.returns_to {
                    self.label(defined.sale, &returns.label);
                }
                Ok(())
            }
            Fact::LogStarted(_)
            | Fact::ShopDefined(_)
            | Fact::ActorSeen(_)
            | Fact::SaleMoved(_)
            | Fact::HoldRefused(_)
            | Fact::BlockRefused(_)
            | Fact::HoldConfirmedAgain(_)
            | Fact::HoldExtended(_)
            | Fact::HoldActRefused(_)
            | Fact::KeyRepeated(_)
            | Fact::LossAccepted(_)
            | Fact::LogRestored(_)
            | Fact::BuyerErased(_)
            | Fact::SettingsChanged(_) => Ok(()),
        }
    }

    /// Ends a row: nothing may be below zero, and no claim of this row above what the item may give.
    pub fn close_row(&mut self) -> Result<(), Imbalance> {
        for item in std::mem::take(&mut self.touched) {
            let account = self.account(item)?;
            let (taken, cap, claimed) =
                (account.held + account.sold + account.blocked, account.cap_max, account.claimed);
            (account.cap_max, account.claimed) = (0, false);
            let Account { held, sold, total, blocked, unplanned, .. } = *account;
            let all = (item, LabelIx(0))..=(item, LabelIx(u16::MAX));
            let labels = self.blocks.range(all).map(|(_, units)| *units);
            if [held, sold, total, blocked, unplanned]
                .into_iter()
                .chain(labels)
                .any(|units| units < 0)
            {
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
        let facts = [own.total, own.held, own.sold, own.blocked];
        let state = [counts.total, counts.held, counts.sold, counts.blocked];
        if facts == state.map(i64::from) {
            Ok(())
        } else {
            Err(Imbalance::Differs { item, facts, state })
        }
    }

    fn seat_taken(&mut self, item: ItemIx, seat: SeatNo, hold: HoldNo) -> Result<(), Imbalance> {
        match self.seats.insert((item, seat), hold) {
            None => Ok(()),
            owner => Err(Imbalance::Seat { item, seat, owner }),
        }
    }

    fn seats_back(
        &mut self,
        seats: Option<&[SeatOut]>,
        hold: Option<HoldNo>,
        destroyed: bool,
    ) -> Result<(), Imbalance> {
        for &SeatOut { item, seat, gone, .. } in seats.unwrap_or_default() {
            let owner = self.seats.remove(&(item, seat));
            if owner.is_none() || hold.is_some_and(|hold| owner != Some(hold)) {
                return Err(Imbalance::Seat { item, seat, owner });
            }
            let account = self.account(item)?;
            if gone.unwrap_or(false) {
                account.unplanned -= 1;
            } else if destroyed {
                account.total -= 1;
            }
            self.touch(item)?;
        }
        Ok(())
    }

    /// The pools that destroyed seats also count against lose units as any other pool does.
    fn shrink_others(&mut self, moves: &[Draw], seats: &[SeatOut]) -> Result<(), Imbalance> {
        for draw in moves.iter().filter(|draw| !seats.iter().any(|out| out.item == draw.pool)) {
            let account = self.account(draw.pool)?;
            account.total = (account.total - i64::from(draw.quantity)).max(0);
        }
        Ok(())
    }

    fn account(&mut self, item: ItemIx) -> Result<&mut Account, Imbalance> {
        self.items.get_mut(&item).ok_or(Imbalance::Unknown(item))
    }

    /// The place of a label; a new one is its sale's next.
    fn label(&mut self, sale: SaleIx, label: &Name) -> LabelIx {
        let labels = self.labels.entry(sale).or_default();
        let place = labels.iter().position(|known| known == label).unwrap_or_else(|| {
            labels.push(label.clone());
            labels.len() - 1
        });
        LabelIx(u16::try_from(place).unwrap_or(u16::MAX))
    }

    fn set_aside(&mut self, moved: &BlockMoved, sign: i64) -> Result<(), Imbalance> {
        let sale = self.sales.get(&moved.item).copied();
        let label = self.label(sale.ok_or(Imbalance::Unknown(moved.item))?, &moved.label);
        let units = sign * i64::from(moved.quantity);
        self.account(moved.item)?.blocked += units;
        *self.blocks.entry((moved.item, label)).or_default() += units;
        self.touch(moved.item)
    }

    fn shift(&mut self, draws: &[Draw], signs: Signs) -> Result<(), Imbalance> {
        for draw in draws {
            let units = i64::from(draw.quantity);
            let account = self.account(draw.pool)?;
            account.held += signs.held * units;
            account.sold += signs.sold * units;
            account.total = (account.total + signs.total * units).max(0);
            account.claimed |= signs.held > 0 && draw.label.is_none();
            if let Some(label) = draw.label {
                account.blocked += signs.blocked * units;
                *self.blocks.entry((draw.pool, label)).or_default() += signs.blocked * units;
            }
            self.touch(draw.pool)?;
        }
        Ok(())
    }

    /// A claim may come before a shrink in one row, so what counts is the most that the item could give within it.
    fn touch(&mut self, item: ItemIx) -> Result<(), Imbalance> {
        let oversell = self.oversell.get(&item).copied().unwrap_or_default();
        let account = self.account(item)?;
        account.cap_max = account.cap_max.max(account.total + account.unplanned + oversell);
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
        Seq,
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
            seated: None,
            counts_against: None,
        })
    }

    fn draws(quantity: u32) -> noondrop_core::Draws {
        [Draw { pool: ITEM, quantity, label: None }].into_iter().collect()
    }

    fn created(quantity: u32) -> Fact {
        let line = LineTaken { item: ITEM, quantity, draws: draws(quantity), seats: None };
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
            overridden: None,
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
    fn units_set_aside_are_claimed_and_come_back_under_their_label() {
        let moved = |quantity, blocked| BlockMoved {
            item: ITEM,
            label: Name::parse("sponsor").unwrap(),
            quantity,
            blocked,
            by: ActorIx::SYSTEM,
            key: None,
            seats: None,
        };
        let out = Draw { pool: ITEM, quantity: 2, label: Some(LabelIx(0)) };
        let from = |quantity| {
            let Fact::HoldCreated(mut hold) = created(quantity) else { unreachable!() };
            hold.lines.0[0].draws.0[0].label = out.label;
            Fact::HoldCreated(hold)
        };
        let facts = [defined(3), Fact::ItemBlocked(moved(3, 3)), from(2)];
        let accounts = booked(&facts).unwrap();
        let counts = Counts { total: 3, held: 2, blocked: 1, ..Counts::default() };
        assert_eq!(accounts.compare(ITEM, &counts), Ok(()));
        let twice = booked(&[&facts[..], &[from(2)]].concat()).unwrap_err();
        assert_eq!(twice, Imbalance::Negative(ITEM), "more than was set aside");
        let sold = booked(&[&facts[..], &[created(1)]].concat()).unwrap_err();
        assert_eq!(sold, Imbalance::SoldTwice { item: ITEM, taken: 4, cap: 3 });
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
