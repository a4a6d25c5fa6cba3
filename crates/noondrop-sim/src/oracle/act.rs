//! Holds: made, confirmed, extended, released, cancelled.

use noondrop_core::{
    Actor, CancelTo, Command, Fence, HoldCancel, HoldConfirm, HoldCreate, HoldExtend, HoldNo,
    HoldRelease, HoldState, HoldView, ItemIx, Line, LinePart, LineRefusal, Outcome, Refusal, Role,
    SaleIx, SaleState, StockCode, Timestamp, limits,
};

use super::{Hold, Judged, Oracle, at_no, invalid};

fn is_privileged(command: &Command) -> bool {
    match &command.actor {
        Actor::Buyer { .. } => false,
        Actor::Principal { role, .. } => {
            matches!(role, Role::Operator | Role::Admin | Role::Seller)
        }
    }
}

impl Oracle {
    pub(super) fn judge_create(
        &mut self,
        command: &Command,
        create: &HoldCreate,
        at: u64,
    ) -> Judged {
        let sale = self.sale_of(command, create.sale.as_str())?;
        self.check_door(sale, create.retake.is_some())?;
        let retaken = self.retaken(command, create, sale)?;
        let wanted = self.wanted(sale, create, retaken)?;
        let ttl_seconds = self.ttl(command, create, sale)?;
        let old = self.replaced(command, create, sale)?;
        self.check_competition(create, sale, &wanted, old)?;

        let new = HoldNo(self.holds.len() as u64);
        let mut end = at + u64::from(ttl_seconds) * 1_000;
        let mut chain_from = at;
        if let Some(old) = old {
            let chain_max = self.sales[sale.0 as usize].terms.hold_chain_seconds_max;
            let replaced = &mut self.holds[at_no(old)];
            chain_from = replaced.chain_from;
            if !is_privileged(command) {
                let chain_end = chain_from + u64::from(chain_max) * 1_000;
                end = end.min(chain_end.max(replaced.expires_at));
            }
            replaced.superseded_by = Some(new);
            replaced.settled_at = at;
            replaced.give_back_all();
        }
        if let Some(lapsed) = retaken {
            self.holds[at_no(lapsed)].superseded_by = Some(new);
        }
        let fence = self.next_fence(at);
        let line = |(item, quantity): &(ItemIx, u32)| Line {
            item: *item,
            held: *quantity,
            sold: 0,
            released: 0,
            cancelled: 0,
            from: None,
        };
        let mut hold = Hold {
            sale,
            buyer: create.buyer.digest,
            reference: create.reference.as_ref().map(|reference| reference.digest),
            created_at: at,
            expires_at: end,
            ttl_seconds,
            extensions: self.sales[sale.0 as usize].terms.extensions_max,
            extensions_used: 0,
            state: HoldState::Active,
            lines: wanted.iter().map(line).collect(),
            lapsed: Vec::new(),
            fence,
            supersedes: old,
            superseded_by: None,
            chain_from,
            payment: None,
            settled_at: at,
            live: self.shops[self.sales[sale.0 as usize].shop.0 as usize].live,
        };
        if let Some(payment) = &create.confirm {
            hold.sell(payment.digest);
        }
        self.holds.push(hold);
        Ok(Outcome::Hold(self.view(new)))
    }

    fn check_door(&self, sale: SaleIx, late_money: bool) -> Result<(), Refusal> {
        let sale = &self.sales[sale.0 as usize];
        match sale.state {
            SaleState::Open => Ok(()),
            SaleState::Paused | SaleState::Closed if late_money => Ok(()),
            SaleState::Paused => Err(Refusal::SalePaused),
            SaleState::Draft => Err(Refusal::SaleNotOpen { opens_at: None }),
            SaleState::Scheduled => Err(Refusal::SaleNotOpen { opens_at: sale.terms.opens_at }),
            SaleState::Closed => Err(Refusal::SaleClosed),
            SaleState::Archived => Err(Refusal::SaleArchived),
        }
    }

    fn retaken(
        &self,
        command: &Command,
        create: &HoldCreate,
        sale: SaleIx,
    ) -> Result<Option<HoldNo>, Refusal> {
        if (create.retake.is_some() || create.confirm.is_some()) && !is_privileged(command) {
            return Err(invalid("retake"));
        }
        let Some(id) = create.retake else { return Ok(None) };
        let no = self.hold_of(command, id)?;
        let hold = &self.holds[at_no(no)];
        if hold.sale != sale || hold.buyer != create.buyer.digest {
            return Err(Refusal::HoldNotFound);
        }
        if hold.state != HoldState::Expired {
            return Err(invalid("retake"));
        }
        match hold.superseded_by {
            Some(by) => Err(Refusal::HoldReleased { superseded_by: Some(self.id(by)) }),
            None => Ok(Some(no)),
        }
    }

    fn wanted(
        &self,
        sale: SaleIx,
        create: &HoldCreate,
        retaken: Option<HoldNo>,
    ) -> Result<Vec<(ItemIx, u32)>, Refusal> {
        if let Some(no) = retaken.filter(|_| create.lines.is_empty()) {
            let old = &self.holds[at_no(no)];
            let lines = old.lines.iter().zip(&old.lapsed);
            let lapsed = lines.map(|(line, units)| (line.item, *units));
            return Ok(lapsed.filter(|(_, units)| *units > 0).collect());
        }
        let mut wanted = Vec::new();
        for (line, number) in create.lines.iter().zip(1..) {
            let item = self.item_of(sale, line.item.as_str());
            let item = item
                .ok_or_else(|| Refusal::ItemNotFound { line: number, item: line.item.clone() })?;
            if line.quantity == 0 || line.quantity > limits::TOTAL_MAX {
                return Err(invalid("quantity"));
            }
            wanted.push((item, line.quantity));
        }
        if wanted.is_empty() || wanted.len() > limits::HOLD_LINES_MAX {
            return Err(invalid("lines"));
        }
        Ok(wanted)
    }

    fn ttl(&self, command: &Command, create: &HoldCreate, sale: SaleIx) -> Result<u32, Refusal> {
        let terms = &self.sales[sale.0 as usize].terms;
        if let Actor::Buyer { digest } = &command.actor
            && *digest != create.buyer.digest
        {
            return Err(invalid("buyer"));
        }
        let most =
            if is_privileged(command) { limits::TTL_SECONDS_MAX } else { terms.hold_seconds_max };
        let seconds = create.ttl_seconds.unwrap_or(terms.hold_seconds);
        if seconds == 0 || seconds > most {
            return Err(invalid("ttl_seconds"));
        }
        Ok(seconds)
    }

    fn replaced(
        &self,
        command: &Command,
        create: &HoldCreate,
        sale: SaleIx,
    ) -> Result<Option<HoldNo>, Refusal> {
        let Some(named) = create.supersedes else { return Ok(None) };
        let no = self.hold_of(command, named.hold)?;
        let hold = &self.holds[at_no(no)];
        if hold.sale != sale || hold.buyer != create.buyer.digest {
            return Err(Refusal::HoldNotFound);
        }
        if hold.fence != named.fence.0 {
            return Err(Refusal::StaleFence);
        }
        self.check_active(no)?;
        Ok(Some(no))
    }

    fn check_competition(
        &self,
        create: &HoldCreate,
        sale: SaleIx,
        wanted: &[(ItemIx, u32)],
        old: Option<HoldNo>,
    ) -> Result<(), Refusal> {
        if let Some(reference) = &create.reference
            && let Some(taken) = self.reference_taken(reference.digest, old)
        {
            return Err(Refusal::ReferenceInUse { hold: self.id(taken) });
        }
        let terms = &self.sales[sale.0 as usize].terms;
        let numbered = || (0..).map(HoldNo).zip(&self.holds);
        let mine = || {
            numbered().filter(|(no, hold)| {
                hold.sale == sale && hold.buyer == create.buyer.digest && Some(*no) != old
            })
        };
        let live: Vec<HoldNo> =
            mine().filter(|(_, hold)| hold.state == HoldState::Active).map(|(no, _)| no).collect();
        if terms.live_holds_per_buyer.is_some_and(|most| live.len() >= most as usize) {
            return Err(Refusal::BuyerHasHold { hold: live.last().map(|no| self.id(*no)) });
        }
        for limit in &terms.limits {
            let counts = |item: ItemIx| {
                let name = &self.items[item.0 as usize].name;
                limit.items.is_empty() || limit.items.iter().any(|of| of.as_str() == name)
            };
            let lines = mine().flat_map(|(_, hold)| &hold.lines);
            let used: u32 =
                lines.filter(|line| counts(line.item)).map(|line| line.held + line.sold).sum();
            let asked: u32 =
                wanted.iter().filter(|(item, _)| counts(*item)).map(|(_, units)| units).sum();
            if asked > 0 && used + asked > limit.per_buyer {
                return Err(Refusal::LimitPerBuyer {
                    limit: limit.name.clone(),
                    limit_max: limit.per_buyer,
                    used,
                });
            }
        }
        self.check_stock(create, wanted, old)
    }

    fn check_stock(
        &self,
        create: &HoldCreate,
        wanted: &[(ItemIx, u32)],
        old: Option<HoldNo>,
    ) -> Result<(), Refusal> {
        let mut lines = Vec::new();
        for ((item, quantity), number) in wanted.iter().zip(1..) {
            let of_item = wanted.iter().filter(|(of, _)| of == item);
            let asked: u64 = of_item.map(|(_, units)| u64::from(*units)).sum();
            let counts = self.counts(*item);
            let given_back = old.map_or(0, |old| self.holds[at_no(old)].held(*item));
            let held = u64::from(counts.held) - given_back;
            let cap = u64::from(counts.total) + u64::from(counts.oversell_limit);
            let settled = u64::from(counts.sold) + u64::from(counts.blocked);
            let free = cap.saturating_sub(held + settled);
            if asked <= free {
                continue;
            }
            let most = cap.saturating_sub(settled);
            let code = if settled >= cap {
                StockCode::SoldOut
            } else if free == 0 && asked <= most {
                StockCode::AllHeld
            } else {
                StockCode::NotEnoughFree
            };
            let small = |units: u64| u32::try_from(units).expect("small worlds");
            lines.push(LineRefusal {
                line: number,
                item: *item,
                code,
                limited_by: None,
                requested: *quantity,
                available: small(free),
                held: small(held),
                most: small(most),
                may_free_at: self.may_free_at(*item, asked + held + settled - cap, old),
                seats: None,
                from: None,
            });
        }
        if lines.is_empty() {
            Ok(())
        } else {
            Err(Refusal::Stock { lines, retake: create.retake.is_some() })
        }
    }

    /// The first time at which enough of an item's holds will have lapsed, if 64 of them are enough.
    fn may_free_at(&self, item: ItemIx, missing: u64, old: Option<HoldNo>) -> Option<Timestamp> {
        let mut ends: Vec<(u64, u64)> = (0..)
            .map(HoldNo)
            .zip(&self.holds)
            .filter(|(no, hold)| {
                hold.state == HoldState::Active && hold.held(item) > 0 && Some(*no) != old
            })
            .map(|(_, hold)| (hold.expires_at, hold.held(item)))
            .collect();
        ends.sort_unstable();
        let mut freed = 0;
        for (end, units) in ends.into_iter().take(limits::MAY_FREE_HOLDS_MAX) {
            freed += units;
            if freed >= missing {
                return Some(Timestamp(end));
            }
        }
        None
    }

    pub(super) fn judge_confirm(
        &mut self,
        command: &Command,
        confirm: &HoldConfirm,
        at: u64,
    ) -> Judged {
        let no = self.hold_of(command, confirm.hold)?;
        self.check_fence(no, Some(confirm.fence), command, None)?;
        let hold = &mut self.holds[at_no(no)];
        if hold.state == HoldState::Confirmed {
            if hold.payment != Some(confirm.payment_ref.digest) {
                return Err(Refusal::ConfirmedWithOtherPayment { hold: confirm.hold });
            }
            return Ok(Outcome::Hold(HoldView { already: true, ..self.view(no) }));
        }
        self.check_active(no)?;
        let hold = &mut self.holds[at_no(no)];
        hold.sell(confirm.payment_ref.digest);
        hold.settled_at = at;
        Ok(Outcome::Hold(self.view(no)))
    }

    pub(super) fn judge_extend(
        &mut self,
        command: &Command,
        extend: &HoldExtend,
        at: u64,
    ) -> Judged {
        let no = self.hold_of(command, extend.hold)?;
        self.check_fence(no, extend.fence, command, extend.reason.as_deref())?;
        self.check_active(no)?;
        let sale = self.holds[at_no(no)].sale;
        let terms = self.sales[sale.0 as usize].terms.clone();
        let hold = &mut self.holds[at_no(no)];
        let privileged = is_privileged(command);
        let most = if privileged { limits::TTL_SECONDS_MAX } else { terms.hold_seconds_max };
        if extend.seconds == 0 || extend.seconds > most {
            return Err(invalid("seconds"));
        }
        let mut end = (at + u64::from(extend.seconds) * 1_000).max(hold.expires_at);
        if end > hold.expires_at && !privileged {
            let chain_end = hold.chain_from + u64::from(terms.hold_chain_seconds_max) * 1_000;
            end = end.min(chain_end);
            if hold.extensions_used >= hold.extensions || end <= hold.expires_at {
                return Err(invalid("seconds"));
            }
            hold.extensions_used += 1;
        }
        hold.expires_at = end;
        Ok(Outcome::Hold(self.view(no)))
    }

    pub(super) fn judge_release(
        &mut self,
        command: &Command,
        release: &HoldRelease,
        at: u64,
    ) -> Judged {
        let no = self.hold_of(command, release.hold)?;
        self.check_fence(no, release.fence, command, release.reason.as_deref())?;
        self.check_active(no)?;
        let hold = &mut self.holds[at_no(no)];
        for (line, units) in parts(&hold.lines, release.lines.as_deref(), |line| line.held)? {
            hold.lines[line].held -= units;
            hold.lines[line].released += units;
        }
        if hold.lines.iter().all(|line| line.held == 0) {
            hold.state = HoldState::Released;
            hold.settled_at = at;
        }
        Ok(Outcome::Hold(self.view(no)))
    }

    pub(super) fn judge_cancel(&mut self, command: &Command, cancel: &HoldCancel) -> Judged {
        let no = self.hold_of(command, cancel.hold)?;
        self.check_fence(no, Some(cancel.fence), command, None)?;
        match self.holds[at_no(no)].state {
            HoldState::Confirmed => {}
            HoldState::Active => return Err(invalid("hold")),
            _ => self.check_active(no)?,
        }
        let hold = &mut self.holds[at_no(no)];
        for (line, units) in parts(&hold.lines, cancel.lines.as_deref(), |line| line.sold)? {
            let line = &mut hold.lines[line];
            line.sold -= units;
            line.cancelled += units;
            if cancel.to == Some(CancelTo::Destroyed) {
                let total = &mut self.items[line.item.0 as usize].total;
                *total -= units.min(*total);
            }
        }
        if hold.lines.iter().all(|line| line.sold == 0) {
            hold.state = HoldState::Cancelled;
        }
        Ok(Outcome::Hold(self.view(no)))
    }

    fn check_fence(
        &self,
        no: HoldNo,
        fence: Option<Fence>,
        command: &Command,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        match fence {
            Some(fence) if fence.0 == self.holds[at_no(no)].fence => Ok(()),
            Some(_) => Err(Refusal::StaleFence),
            None if is_privileged(command) && reason.is_some() => Ok(()),
            None => Err(invalid("fence")),
        }
    }

    fn check_active(&self, no: HoldNo) -> Result<(), Refusal> {
        let hold = &self.holds[at_no(no)];
        match hold.state {
            HoldState::Active => Ok(()),
            HoldState::Confirmed => Err(Refusal::HoldConfirmed),
            HoldState::Expired => Err(Refusal::HoldExpired),
            HoldState::Cancelled => Err(Refusal::HoldCancelled),
            HoldState::Released => {
                let superseded_by = hold.superseded_by.map(|no| self.id(no));
                Err(Refusal::HoldReleased { superseded_by })
            }
        }
    }
}

impl Hold {
    fn held(&self, item: ItemIx) -> u64 {
        let lines = self.lines.iter().filter(|line| line.item == item);
        lines.map(|line| u64::from(line.held)).sum()
    }

    fn sell(&mut self, payment: noondrop_core::Digest16) {
        for line in &mut self.lines {
            line.sold += line.held;
            line.held = 0;
        }
        self.state = HoldState::Confirmed;
        self.payment = Some(payment);
    }

    fn give_back_all(&mut self) {
        for line in &mut self.lines {
            line.released += line.held;
            line.held = 0;
        }
        self.state = HoldState::Released;
    }
}

/// Which units of which lines are named; all of them, where none are.
fn parts(
    lines: &[Line],
    asked: Option<&[LinePart]>,
    has: fn(&Line) -> u32,
) -> Result<Vec<(usize, u32)>, Refusal> {
    let Some(asked) = asked else {
        return Ok((0..).zip(lines).map(|(at, line)| (at, has(line))).collect());
    };
    let mut named: Vec<(usize, u32)> = Vec::new();
    for part in asked {
        let at = usize::from(part.line).wrapping_sub(1);
        if at >= lines.len() || named.iter().any(|(seen, _)| *seen == at) {
            return Err(invalid("lines"));
        }
        let units = part.quantity.unwrap_or(has(&lines[at]));
        if units == 0 || units > has(&lines[at]) {
            return Err(invalid("lines"));
        }
        named.push((at, units));
    }
    if named.is_empty() { Err(invalid("lines")) } else { Ok(named) }
}
