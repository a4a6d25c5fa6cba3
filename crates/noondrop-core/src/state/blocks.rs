//! Units set aside under labels: how many, in which pool; read, written, undone.
//!
//! An entry is there while it has units. The sum over a pool's labels is what its account calls blocked.

use alloc::vec::Vec;

use super::apply::Fits;
use super::books::{Books, Sale};
use super::keys::{KeyOutcome, Recorded};
use super::turn::Change;
use super::{State, sum};
use crate::fact::{BlockAct, BlockMoved, Draw};
use crate::ids::Name;
use crate::outcome::{BlockView, Counts};
use crate::planted::{self, Bug};
use crate::units::{ItemIx, LabelIx, SaleIx};

impl Sale {
    /// Labels, by place.
    pub(super) fn labels(&self) -> &[Name] {
        self.labels.as_deref().unwrap_or_default()
    }

    pub(super) fn label(&self, label: &Name) -> Option<LabelIx> {
        let place = self.labels().iter().position(|known| known == label)?;
        Some(LabelIx(u16::try_from(place).expect("a sale has at most a thousand labels")))
    }

    /// The place of a label that is known, or the next one.
    pub(super) fn label_or_next(&self, label: &Name) -> LabelIx {
        let next = || u16::try_from(self.labels().len()).expect("a sale has at most a thousand");
        self.label(label).unwrap_or_else(|| LabelIx(next()))
    }

    /// The label under which units go that ordinary holds give back; none: they are on sale again.
    pub(super) fn lapsed_to(&self) -> Option<LabelIx> {
        let returns = self.terms.returns_to.as_ref().filter(|returns| returns.lapsed)?;
        self.label(&returns.label)
    }
}

impl Books {
    /// Where units of a line go that are given back before they are sold.
    pub(super) fn back_to(&self, sale: SaleIx, from: Option<LabelIx>) -> Option<LabelIx> {
        if planted::is(Bug::BlockToStock) {
            return None;
        }
        from.or_else(|| self.sales[sale.0 as usize].lapsed_to())
    }

    /// Units of a pool under a label.
    pub(super) fn blocked(&self, pool: ItemIx, label: LabelIx) -> u32 {
        self.blocks.get(&(pool, label)).copied().unwrap_or(0)
    }

    /// A pool's labels that have units.
    pub(super) fn blocks_of(&self, pool: ItemIx) -> impl Iterator<Item = (LabelIx, u32)> + '_ {
        let all = (pool, LabelIx(0))..=(pool, LabelIx(u16::MAX));
        self.blocks.range(all).map(|(&(_, label), &units)| (label, units))
    }

    pub(super) fn block_views(&self, pool: ItemIx, sale: SaleIx) -> Vec<BlockView> {
        let labels = self.sales[sale.0 as usize].labels();
        let view = |(label, quantity): (LabelIx, u32)| BlockView {
            label: labels[usize::from(label.0)].clone(),
            quantity,
        };
        self.blocks_of(pool).map(view).collect()
    }

    pub(super) fn block_sum(pool: ItemIx, label: LabelIx, units: u32) -> u128 {
        let id = u64::from(pool.0) << 16 | u64::from(label.0);
        sum::entry(sum::BLOCK, id, &units.to_le_bytes())
    }
}

impl State {
    /// Moves units in or out of a block, within the open turn.
    pub(super) fn change_block(
        &mut self,
        pool: ItemIx,
        label: LabelIx,
        change: impl FnOnce(u32) -> Option<u32>,
    ) -> Fits {
        let before = self.books.blocked(pool, label);
        let after = change(before).ok_or("a block would give more than it has")?;
        self.turn.journal.push(Change::Block(pool, label, before));
        self.write_block(pool, label, after);
        Ok(())
    }

    pub(super) fn write_block(&mut self, pool: ItemIx, label: LabelIx, units: u32) {
        let old = match units {
            0 => self.books.blocks.remove(&(pool, label)),
            _ => self.books.blocks.insert((pool, label), units),
        };
        self.subtract(old.map_or(0, |old| Books::block_sum(pool, label, old)));
        if units > 0 {
            self.add(Books::block_sum(pool, label, units));
        }
    }

    /// Units were set aside, or put on sale again.
    pub(super) fn apply_blocked(&mut self, fact: &BlockMoved, act: BlockAct) -> Fits {
        let item = self.books.items.get(fact.item.0 as usize).ok_or("no such item")?;
        let label = self.intern_label(item.sale, &fact.label);
        let moved = |units: u32| match act {
            BlockAct::Block => units.checked_add(fact.quantity),
            BlockAct::Unblock => units.checked_sub(fact.quantity),
        };
        self.change_block(fact.item, label, |units| moved(units).filter(|&n| n == fact.blocked))?;
        self.change_counts(fact.item, |counts| {
            Some(Counts { blocked: moved(counts.blocked)?, ..counts })
        })?;
        self.block_seats(fact, label, act)?;
        let view = self.books.item_view(fact.item);
        self.record_key(fact.key, || KeyOutcome::Recorded(Recorded::Item(view)));
        Ok(())
    }

    /// The other side of units that come out of a block, or go to one.
    pub(super) fn move_blocked(
        &mut self,
        moves: &[Draw],
        change: impl Fn(u32, u32) -> Option<u32> + Copy,
    ) -> Fits {
        for draw in moves {
            let Some(label) = draw.label else {
                continue;
            };
            let q = draw.quantity;
            let item = self.books.items.get(draw.pool.0 as usize).ok_or("no such item")?;
            if usize::from(label.0) >= self.books.sales[item.sale.0 as usize].labels().len() {
                return Err("no such label");
            }
            self.change_block(draw.pool, label, |units| change(units, q))?;
            self.change_counts(draw.pool, |counts| {
                Some(Counts { blocked: change(counts.blocked, q)?, ..counts })
            })?;
        }
        Ok(())
    }

    /// The place of a label in its sale's list; a new one is added to it.
    pub(super) fn intern_label(&mut self, sale: SaleIx, label: &Name) -> LabelIx {
        let entry = &self.books.sales[sale.0 as usize];
        let place = entry.label_or_next(label);
        if usize::from(place.0) == entry.labels().len() {
            let mut entry = entry.clone();
            let old = entry.clone();
            entry.labels.get_or_insert_default().push(label.clone());
            self.turn.journal.push(Change::Sale(sale, Some(alloc::boxed::Box::new(old))));
            self.write_sale(sale, Some(entry));
        }
        place
    }
}
