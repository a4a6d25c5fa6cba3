//! Whether there are enough units, and if not, why, and when there may be (RULES R8, R10).

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::create::{Wanted, WantedLines};
use super::seats::{Picked, WantedSeats};
use crate::fact::Draw;
use crate::limits::{MAY_FREE_HOLDS_MAX, MAY_FREE_SCAN_MAX};
use crate::outcome::{Counts, Line};
use crate::planted::{self, Bug};
use crate::refusal::{LineRefusal, Refusal, StockCode};
use crate::state::State;
use crate::state::hold::{Hold, fresh_line};
use crate::units::{HoldNo, ItemIx, LabelIx, Timestamp};

/// What all lines together take from one pool or block, and what the replaced hold gives back there.
struct Demand {
    pool: ItemIx,
    label: Option<LabelIx>,
    wanted: u64,
    given_back: u32,
}

impl Demand {
    fn is_for(&self, draw: &Draw) -> bool {
        self.pool == draw.pool && self.label == draw.label
    }
}

impl State {
    /// Sums first: two lines that draw on one pool are one demand (all lines or none).
    fn demands(&self, wanted: &WantedLines, old: Option<&Hold>) -> SmallVec<[Demand; 2]> {
        let mut demands: SmallVec<[Demand; 2]> = SmallVec::new();
        for line in wanted {
            for draw in self.books.draws_from(line.item, line.quantity, line.from) {
                let wanted = u64::from(draw.quantity);
                let alone = planted::is(Bug::LinesAlone)
                    || planted::is(Bug::SharesAlone) && draw.pool != line.item;
                match demands.iter_mut().find(|known| known.is_for(&draw)) {
                    Some(known) if !alone => known.wanted += wanted,
                    _ => {
                        let Draw { pool, label, .. } = draw;
                        demands.push(Demand { pool, label, wanted, given_back: 0 });
                    }
                }
            }
        }
        for line in old.iter().flat_map(|old| &old.lines) {
            for draw in self.books.draws_from(line.item, line.held, line.from) {
                if let Some(known) = demands.iter_mut().find(|known| known.is_for(&draw)) {
                    let times = 1 + u32::from(planted::is(Bug::ReplacedFreedTwice));
                    let freed = times - u32::from(planted::is(Bug::ReplacedNotFreed));
                    known.given_back += freed * draw.quantity;
                }
            }
        }
        demands
    }

    pub(super) fn check_stock(
        &self,
        wanted: &WantedLines,
        old: Option<&Hold>,
        retake: bool,
    ) -> Result<Picked, Refusal> {
        let demands = self.demands(wanted, old);
        let counts = |demand: &Demand| {
            let counts = self.books.counts[demand.pool.0 as usize];
            Counts { held: counts.held.saturating_sub(demand.given_back), ..counts }
        };
        let in_block = |demand: &Demand, label| {
            u64::from(self.books.blocked(demand.pool, label)) + u64::from(demand.given_back)
        };
        let lacking = |demand: &Demand| match demand.label {
            None => demand.wanted > counts(demand).free(),
            Some(label) => demand.wanted > in_block(demand, label),
        };
        if !demands.iter().any(lacking) {
            let has_seats = wanted.iter().any(|line| !matches!(line.seats, WantedSeats::None));
            if !has_seats {
                return Ok(wanted.iter().map(|_| None).collect());
            }
            let picked = self.pick_seats(wanted, old);
            return picked.map_err(|lines| Refusal::Stock { lines, retake });
        }
        let mut lines = Vec::new();
        for (line, number) in wanted.iter().zip(1u8..) {
            let takes = |demand: &&Demand| {
                let mut draws = self.books.draws_from(line.item, line.quantity, line.from);
                lacking(demand) && draws.any(|draw| demand.is_for(&draw))
            };
            let lack = |demand: &Demand| match demand.label {
                None => self.lack((number, line), demand, counts(demand), old),
                Some(label) => lack_in_block((number, line), demand, in_block(demand, label)),
            };
            let worst = demands.iter().filter(takes).map(lack).min_by_key(|lack| lack.code);
            lines.extend(worst);
        }
        Err(Refusal::Stock { lines, retake })
    }

    fn lack(
        &self,
        (number, line): (u8, &Wanted),
        demand: &Demand,
        counts: Counts,
        old: Option<&Hold>,
    ) -> LineRefusal {
        let settled = u64::from(counts.sold) + u64::from(counts.blocked);
        let most = counts.cap().saturating_sub(settled);
        let free = counts.free();
        let code = if most == 0 {
            StockCode::SoldOut
        } else if free == 0 && demand.wanted <= most {
            StockCode::AllHeld
        } else {
            StockCode::NotEnoughFree
        };
        let reachable = demand.wanted <= most;
        let narrow = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        LineRefusal {
            line: number,
            item: line.item,
            code,
            limited_by: (demand.pool != line.item).then_some(demand.pool),
            requested: line.quantity,
            available: narrow(free),
            held: counts.held,
            most: narrow(most),
            may_free_at: reachable
                .then(|| {
                    // A shrunken pool must first get back what it is short of by itself.
                    let missing = (counts.taken() + demand.wanted).saturating_sub(counts.cap());
                    self.may_free_at(demand.pool, missing, old.map(|old| old.no))
                })
                .flatten(),
            from: None,
            seats: None,
        }
    }

    /// When enough of a pool's holds will have lapsed, if its next 64 tell. A hold that is to be replaced has given
    /// its units back already.
    fn may_free_at(&self, pool: ItemIx, units: u64, replaced: Option<HoldNo>) -> Option<Timestamp> {
        let mut missing = units;
        // The queue holds hints: what was undone may have left a hold in it twice.
        let mut seen: SmallVec<[HoldNo; MAY_FREE_HOLDS_MAX]> = SmallVec::new();
        for (at, no) in self.lapses.upcoming(pool).take(MAY_FREE_SCAN_MAX) {
            if self.holds.is_live_until(no) != Some(at)
                || replaced == Some(no)
                || seen.contains(&no)
            {
                continue;
            }
            seen.push(no);
            let freed = self.frees(no, pool);
            missing = missing.saturating_sub(u64::from(freed));
            if missing == 0 {
                return Some(at);
            }
            if seen.len() == MAY_FREE_HOLDS_MAX {
                return None;
            }
        }
        None
    }

    /// What a pool has on sale again when a hold lapses; what goes to a block is not.
    pub(in crate::state) fn frees(&self, no: HoldNo, pool: ItemIx) -> u32 {
        let on_sale = |draw: &Draw| draw.pool == pool && draw.label.is_none();
        let of = |sale, line: &Line| {
            let to = self.books.back_to(sale, line.from);
            let draws = self.books.draws_from(line.item, line.held, to);
            draws.filter(on_sale).map(|draw| draw.quantity).sum::<u32>()
        };
        if let Some((item, quantity)) = self.holds.simple_held(no) {
            return of(self.holds.sale_of(no), &fresh_line(item, quantity));
        }
        let hold = self.holds.load(no).expect("a queued hold is in memory");
        hold.lines.iter().map(|line| of(hold.sale, line)).sum()
    }
}

/// A block that has too few: what is on sale does not help, and what will lapse is not known.
fn lack_in_block((number, line): (u8, &Wanted), demand: &Demand, has: u64) -> LineRefusal {
    let has = u32::try_from(has).unwrap_or(u32::MAX);
    LineRefusal {
        line: number,
        item: line.item,
        code: StockCode::NotEnoughFree,
        limited_by: (demand.pool != line.item).then_some(demand.pool),
        requested: line.quantity,
        available: has,
        held: 0,
        most: has,
        may_free_at: None,
        from: demand.label,
        seats: None,
    }
}
