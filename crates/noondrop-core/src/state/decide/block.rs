//! Units set aside: put there, put back, taken from there, and what goes there when it comes back.

use alloc::format;

use super::act::line_of;
use super::{By, Decided, Entries, invalid};
use crate::command::{CancelTo, Command, ItemBlock, ItemUnblock, KeyUse};
use crate::fact::{BlockAct, BlockMoved, BlockRefused, Entry, Fact, LineMoved, Private};
use crate::ids::Name;
use crate::limits::{ITEM_LABELS_MAX, SALE_LABELS_MAX, TOTAL_MAX};
use crate::outcome::{BlockView, Outcome, SaleState};
use crate::planted::{self, Bug};
use crate::refusal::{LineRefusal, Refusal, StockCode};
use crate::state::State;
use crate::state::books::Sale;
use crate::state::hold::Hold;
use crate::units::{ItemIx, LabelIx, SaleIx};

/// What is asked of a block.
struct Asked<'a> {
    act: BlockAct,
    item: ItemIx,
    label: &'a Name,
    quantity: u32,
    reason: &'a str,
    key: Option<KeyUse>,
    named: Option<&'a [Name]>,
}

impl State {
    pub(super) fn decide_block(
        &self,
        by: &By,
        key: Option<KeyUse>,
        act: &ItemBlock,
        out: &mut Entries,
    ) -> Decided {
        let item = self.pool_of(by, &act.sale, &act.item, act.quantity)?;
        let sale = &self.books.sales[self.books.items[item.0 as usize].sale.0 as usize];
        check_label("label", sale, &act.label)?;
        self.check_labels("label", item, sale.label_or_next(&act.label))?;
        let ItemBlock { label, quantity, reason, seats, .. } = act;
        let (act, quantity, named) = (BlockAct::Block, *quantity, seats.as_deref());
        self.move_block(by, &Asked { act, item, label, quantity, reason, key, named }, out)
    }

    pub(super) fn decide_unblock(
        &self,
        by: &By,
        key: Option<KeyUse>,
        act: &ItemUnblock,
        out: &mut Entries,
    ) -> Decided {
        let item = self.pool_of(by, &act.sale, &act.item, act.quantity)?;
        let ItemUnblock { label, quantity, reason, seats, .. } = act;
        let (act, quantity, named) = (BlockAct::Unblock, *quantity, seats.as_deref());
        self.move_block(by, &Asked { act, item, label, quantity, reason, key, named }, out)
    }

    /// The item whose units are to be set aside, or put back.
    fn pool_of(&self, by: &By, sale: &Name, item: &Name, quantity: u32) -> Result<ItemIx, Refusal> {
        let sale = self.books.sale(by.shop, sale.as_str()).ok_or(Refusal::SaleNotFound)?;
        if self.books.sales[sale.0 as usize].state == SaleState::Archived {
            return Err(Refusal::SaleArchived);
        }
        let found = self.books.item(sale, item.as_str());
        let found = found.ok_or_else(|| Refusal::ItemNotFound { line: 0, item: item.clone() })?;
        if self.books.items[found.0 as usize].is_view(found) {
            return Err(invalid("item", "one with a total of its own"));
        }
        if !(1..=TOTAL_MAX).contains(&quantity) {
            return Err(invalid("quantity", format!("1 to {TOTAL_MAX}")));
        }
        Ok(found)
    }

    fn move_block(&self, by: &By, asked: &Asked<'_>, out: &mut Entries) -> Decided {
        let &Asked { act, item, quantity, .. } = asked;
        let mut view = self.books.item_view(item);
        let sale = &self.books.sales[view.sale.0 as usize];
        let place = sale.label(asked.label);
        let now = place.map_or(0, |label| self.books.blocked(item, label));
        let has = match act {
            BlockAct::Block => u32::try_from(view.counts.available()).unwrap_or(u32::MAX),
            BlockAct::Unblock => now,
        };
        if quantity > has {
            let from = place.filter(|_| act == BlockAct::Unblock);
            return Ok(Self::refuse_block(by, asked, self.lack_of(asked, has, from), out));
        }
        let from = place.filter(|_| act == BlockAct::Unblock);
        let seats = match self.seats_to_block(item, from, quantity, asked.named)? {
            Some(Err(lack)) => return Ok(Self::refuse_block(by, asked, lack, out)),
            Some(Ok(seats)) => Some(seats),
            None => None,
        };
        let (blocked, all) = match act {
            BlockAct::Block => (now + quantity, view.counts.blocked + quantity),
            BlockAct::Unblock => (now - quantity, view.counts.blocked - quantity),
        };
        view.counts.blocked = all;
        let label = asked.label.clone();
        view.blocks.retain(|block| block.label != label);
        let before =
            |block: &BlockView| sale.label(&block.label) < Some(sale.label_or_next(&label));
        let at = view.blocks.iter().take_while(|block| before(block)).count();
        if blocked > 0 {
            view.blocks.insert(at, BlockView { label: label.clone(), quantity: blocked });
        }
        let fact =
            BlockMoved { item, label, quantity, blocked, by: by.actor, key: asked.key, seats };
        let fact = match act {
            BlockAct::Block => Fact::ItemBlocked(fact),
            BlockAct::Unblock => Fact::ItemUnblocked(fact),
        };
        out.push(Entry { fact, private: Some(reason(asked)) });
        Ok(Outcome::Item(view))
    }

    fn lack_of(&self, asked: &Asked<'_>, has: u32, from: Option<LabelIx>) -> LineRefusal {
        let counts = self.books.counts[asked.item.0 as usize];
        LineRefusal {
            line: 0,
            item: asked.item,
            code: StockCode::NotEnoughFree,
            limited_by: None,
            requested: asked.quantity,
            available: has,
            held: counts.held,
            most: has,
            may_free_at: None,
            from,
            seats: None,
        }
    }

    fn refuse_block(by: &By, asked: &Asked<'_>, lack: LineRefusal, out: &mut Entries) -> Outcome {
        let refusal = Refusal::Stock { lines: alloc::vec![lack], retake: false };
        let fact = BlockRefused {
            item: asked.item,
            label: asked.label.clone(),
            quantity: asked.quantity,
            operation: asked.act,
            refusal: refusal.clone(),
            by: by.actor,
            key: asked.key,
        };
        out.push(Entry { fact: Fact::BlockRefused(fact), private: Some(reason(asked)) });
        Outcome::Refused(refusal)
    }

    /// The block that a line names, if the caller may take from it.
    pub(super) fn block_asked(
        &self,
        sale: SaleIx,
        command: &Command,
        label: &Name,
        line: u8,
    ) -> Result<LabelIx, Refusal> {
        let field = || format!("lines[{}].from", line - 1);
        if !command.actor.is_privileged() {
            return Err(invalid(field(), "sellers and admins only"));
        }
        let known = self.books.sales[sale.0 as usize].label(label);
        known.ok_or_else(|| {
            invalid(field(), "a label under which units of this sale were set aside")
        })
    }

    /// Where cancelled units go: where the caller says, else where the sale does, else on sale again.
    pub(super) fn cancelled_to(
        &self,
        hold: &Hold,
        parts: &[LineMoved],
        asked: Option<&CancelTo>,
    ) -> Result<(CancelTo, Option<LabelIx>), Refusal> {
        let sale = &self.books.sales[hold.sale.0 as usize];
        let returns = sale.terms.returns_to.as_ref();
        let returns = returns.filter(|_| !planted::is(Bug::ReturnsForgotten));
        match (asked, returns) {
            (Some(CancelTo::Block(label)), _) => {
                check_label("to", sale, label)?;
                let place = sale.label_or_next(label);
                for part in parts {
                    let item = line_of(hold, *part).item;
                    self.check_labels("to", self.books.items[item.0 as usize].draws[0], place)?;
                }
                Ok((CancelTo::Block(label.clone()), Some(place)))
            }
            (Some(to), _) => Ok((to.clone(), None)),
            (None, Some(returns)) => {
                let place = sale.label(&returns.label);
                Ok((CancelTo::Block(returns.label.clone()), place))
            }
            (None, None) => Ok((CancelTo::Stock, None)),
        }
    }

    /// One more label with units must still be within the bound.
    fn check_labels(&self, field: &str, pool: ItemIx, label: LabelIx) -> Result<(), Refusal> {
        let others = self.books.blocks_of(pool).filter(|(known, _)| *known != label).count();
        if others < ITEM_LABELS_MAX {
            Ok(())
        } else {
            Err(invalid(field, format!("at most {ITEM_LABELS_MAX} labels with units on one item")))
        }
    }
}

/// A label that a sale has, or may still get.
pub(super) fn check_label(field: &str, sale: &Sale, label: &Name) -> Result<(), Refusal> {
    if sale.label(label).is_some() || sale.labels().len() < SALE_LABELS_MAX {
        Ok(())
    } else {
        Err(invalid(field, format!("one of the {SALE_LABELS_MAX} labels that the sale has used")))
    }
}

fn reason(asked: &Asked<'_>) -> Private {
    Private { reason: Some(asked.reason.into()), ..Private::default() }
}
