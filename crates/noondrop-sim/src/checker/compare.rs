//! The second state against the oracle, and everything once more from the log alone.

use noondrop_core::{HoldNo, ItemIx, Outcome};
use noondrop_log::LogReader;

use super::{Checker, Finding};
use crate::oracle::canonical;

impl Checker {
    /// The second state and the oracle must see the same world.
    pub(super) fn compare(&self, everything: bool) -> Result<(), Finding> {
        let items: Vec<_> = self.state.all_items().collect();
        if items.len() != self.oracle.items_len() {
            return Err("the log has other items than were defined".into());
        }
        for (item, view) in (0..).map(ItemIx).zip(&items) {
            let counts = view.counts;
            if counts != self.oracle.counts(item) {
                let own = self.oracle.counts(item);
                return Err(format!("item #{item} has {counts:?}, and should have {own:?}"));
            }
            let [available, oversold] = [counts.available(), counts.oversold()];
            if available + counts.taken() != u64::from(counts.total) + oversold
                || (available > 0 && oversold > 0)
            {
                return Err(format!("item #{item} does not conserve: {counts:?}"));
            }
        }
        if self.state.next_hold_no().0 != self.oracle.holds_len() as u64 {
            return Err("the log has other holds than were made".into());
        }
        let first = if everything { 0 } else { self.oracle.holds_len().saturating_sub(4) };
        for no in (first as u64..self.oracle.holds_len() as u64).map(HoldNo) {
            self.compare_hold(no)?;
        }
        if everything {
            self.state.recount().map_err(|found| format!("recount: {found:?}"))?;
        }
        Ok(())
    }

    fn compare_hold(&self, no: HoldNo) -> Result<(), Finding> {
        let view = self.state.hold_by_no(no).ok_or("a hold is not in memory")?;
        let own = self.oracle.view(no);
        let (a, b) = (Outcome::Hold(view), Outcome::Hold(own));
        if canonical(&a) == canonical(&b) {
            Ok(())
        } else {
            Err(format!("hold #{no} is {a:?}, and should be {b:?}"))
        }
    }

    /// Everything once more, from the log alone: each answer that was given must follow from it.
    pub fn check_all(&self, reader: &mut dyn LogReader) -> Result<(), Finding> {
        self.compare(true)?;
        let fresh = self.from_the_log(reader, self.position().seq)?;
        for ((hash, fingerprint), said) in &self.said {
            let mut known = fresh
                .oracle
                .key_history(*hash)
                .filter(|known| known.fingerprint == *fingerprint)
                .peekable();
            if known.peek().is_none() {
                return Err(format!("what was answered at row {} is not in the log", said.seq));
            }
            if known.all(|known| known.answer != said.answer) {
                return Err(format!("what was answered at row {} is another thing now", said.seq));
            }
        }
        Ok(())
    }
}
