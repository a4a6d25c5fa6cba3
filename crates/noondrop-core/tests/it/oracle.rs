//! The rules once more, as plainly as they can be written: a list of holds, and everything counted from it each time.
//!
//! Written from the rules (R5 to R10), not from the code that it judges. No index, no running count, no queue.

use std::collections::BTreeMap;

use noondrop_core::{CancelTo, SaleStep, SaleTerms};

use crate::world::{Create, EPOCH, Sent, Step, What, Which, Who};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Active,
    Confirmed,
    Released,
    Expired,
    Cancelled,
}

#[derive(Clone, Debug)]
struct Part {
    item: String,
    held: u32,
    sold: u32,
    released: u32,
    /// Of the released ones, those that lapsed.
    lapsed: u32,
    cancelled: u32,
}

#[derive(Clone, Debug)]
struct OldHold {
    buyer: String,
    is: Is,
    ends: u64,
    parts: Vec<Part>,
    reference: Option<String>,
    payment: Option<String>,
    extensions_left: u8,
    chain_from: u64,
    supersedes: Option<usize>,
    superseded_by: Option<usize>,
}

#[derive(Clone, Debug)]
struct Pool {
    total: u32,
    oversell: u32,
}

/// A line's number from 1, and how many of its units; none: all.
type Asked = (u8, Option<u32>);

/// What a key was used for, and what was said.
#[derive(Clone, Debug)]
struct Used {
    asked: String,
    said: String,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    now: u64,
    terms: SaleTerms,
    sale: &'static str,
    pools: BTreeMap<String, Pool>,
    holds: Vec<OldHold>,
    keys: BTreeMap<String, Used>,
}

/// Whether an answer is kept under its key.
fn is_kept(said: &str) -> bool {
    const COMPETED: [&str; 13] = [
        "sold_out",
        "all_held",
        "not_enough_free",
        "units_gone",
        "limit_per_buyer",
        "buyer_has_hold",
        "reference_in_use",
        "stale_fence",
        "hold_expired",
        "hold_released",
        "hold_confirmed",
        "hold_cancelled",
        "confirmed_with_other_payment",
    ];
    let code = said.split_whitespace().next().expect("an answer has words");
    code.starts_with('#') || said.contains(" total=") || COMPETED.contains(&code)
}

impl Oracle {
    pub fn selling(terms: SaleTerms, items: &[(&str, u32, u32)]) -> Self {
        let pools =
            items.iter().map(|&(item, total, oversell)| (item.into(), Pool { total, oversell }));
        let (holds, keys) = (Vec::new(), BTreeMap::new());
        Self { now: 0, terms, sale: "open", pools: pools.collect(), holds, keys }
    }

    /// The clock is at this time: what is past its end has lapsed.
    pub fn wait_until(&mut self, now: u64) {
        self.now = now;
        for hold in self.holds.iter_mut().filter(|hold| hold.is == Is::Active && hold.ends <= now) {
            hold.is = Is::Expired;
            for part in &mut hold.parts {
                part.lapsed = part.held;
                part.released += part.held;
                part.held = 0;
            }
        }
    }

    pub fn step(&mut self, step: &Step) -> String {
        let Some(key) = &step.key else {
            return self.said(step);
        };
        let target = match &step.what {
            What::Confirm { hold, .. }
            | What::Extend { hold, .. }
            | What::Release { hold, .. }
            | What::Cancel { hold, .. } => format!("{:?}", self.find(*hold)),
            _ => String::new(),
        };
        let kind = std::mem::discriminant(&step.what);
        let scope = format!("{:?} {kind:?} {target} {key}", step.who);
        let asked = self.asked(step);
        if let Some(used) = self.keys.get(&scope) {
            let same = used.asked == asked;
            return if same { format!("replay {}", used.said) } else { "key_reused".into() };
        }
        let said = self.said(step);
        if is_kept(&said) {
            self.keys.insert(scope, Used { asked, said: said.clone() });
        }
        said
    }

    /// What is asked, with every hold by its number.
    fn asked(&self, step: &Step) -> String {
        let fence = |hold: Which, sent: &Sent| match sent {
            Sent::Own => format!("{:?}", self.find(hold)),
            Sent::Of(other) => format!("{:?}", self.find(*other)),
            Sent::Nothing => "nothing".into(),
        };
        match &step.what {
            What::Create(create) => {
                let old = create.supersedes.map(|(old, sent)| (self.find(old), fence(old, &sent)));
                let retake = create.retake.map(|old| self.find(old));
                let rest = Create { supersedes: None, retake: None, ..(**create).clone() };
                format!("{rest:?} {old:?} {retake:?}")
            }
            What::Confirm { hold, fence: sent, payment } => {
                format!("{} {payment}", fence(*hold, sent))
            }
            What::Extend { hold, fence: sent, seconds, reason } => {
                format!("{} {seconds} {reason:?}", fence(*hold, sent))
            }
            What::Release { hold, fence: sent, parts, reason } => {
                format!("{} {parts:?} {reason}", fence(*hold, sent))
            }
            What::Cancel { hold, fence: sent, parts, to } => {
                format!("{} {parts:?} {to:?}", fence(*hold, sent))
            }
            other => format!("{other:?}"),
        }
    }

    fn said(&mut self, step: &Step) -> String {
        let answer = match &step.what {
            What::Create(create) => self.create(&step.who, create),
            What::Confirm { hold, fence, payment } => self.confirm(step, *hold, *fence, payment),
            What::Extend { hold, fence, seconds, reason } => {
                self.extend(step, *hold, (*fence, reason.is_some()), *seconds)
            }
            What::Release { hold, fence, parts, reason } => {
                self.release(step, *hold, (*fence, *reason), parts.as_deref())
            }
            What::Cancel { hold, fence, parts, to } => {
                self.cancel(step, *hold, *fence, (parts.as_deref(), *to))
            }
            What::Adjust { item, by, if_total } => self.adjust(item, *by, *if_total),
            What::Move { to, .. } => self.walk(*to),
            other => panic!("the oracle does not know {other:?}"),
        };
        answer.unwrap_or_else(|no| no)
    }

    fn find(&self, which: Which) -> Option<usize> {
        match which {
            Which::No(no) => usize::try_from(no).ok().filter(|no| *no < self.holds.len()),
            Which::Newest => self.holds.len().checked_sub(1),
        }
    }

    // Counting.

    fn count(&self, item: &str, except: Option<usize>, of: impl Fn(&Part) -> u32) -> u64 {
        let others = self.holds.iter().enumerate().filter(|(no, _)| Some(*no) != except);
        let parts = others.flat_map(|(_, hold)| &hold.parts).filter(|part| part.item == item);
        parts.map(|part| u64::from(of(part))).sum()
    }

    fn held(&self, item: &str, except: Option<usize>) -> u64 {
        self.count(item, except, |part| part.held)
    }

    fn sold(&self, item: &str) -> u64 {
        self.count(item, None, |part| part.sold)
    }

    pub fn tell_counts(&self, item: &str) -> String {
        let total = i128::from(self.pools[item].total);
        let (held, sold) = (self.held(item, None), self.sold(item));
        let left = total - i128::from(held) - i128::from(sold);
        format!(
            "total={total} held={held} sold={sold} available={} oversold={}",
            left.max(0),
            (-left).max(0)
        )
    }

    pub fn items(&self) -> impl Iterator<Item = &String> {
        self.pools.keys()
    }

    pub fn holds(&self) -> usize {
        self.holds.len()
    }

    pub fn tell_hold(&self, no: usize) -> String {
        let hold = &self.holds[no];
        let is = format!("{:?}", hold.is).to_lowercase();
        let mut words = vec![format!("#{no}"), is, format!("end={}", tell(hold.ends))];
        words.push(format!("ext={}", hold.extensions_left));
        for (part, number) in hold.parts.iter().zip(1..) {
            let counts = [
                ("held", part.held),
                ("sold", part.sold),
                ("released", part.released),
                ("cancelled", part.cancelled),
            ];
            let some = counts.iter().filter(|(_, units)| *units > 0);
            let some: Vec<_> = some.map(|(what, units)| format!("{what}{units}")).collect();
            words.push(format!("{number}:{}={}", part.item, some.join(",")));
        }
        words.extend(hold.supersedes.map(|old| format!("supersedes=#{old}")));
        words.extend(hold.superseded_by.map(|new| format!("superseded_by=#{new}")));
        words.join(" ")
    }

    // What can be asked.

    /// The hold, or the first of: not found, stale fence, its state.
    fn may_touch(
        &self,
        who: &Who,
        named: Which,
        sent: Sent,
        reason: bool,
    ) -> Result<usize, String> {
        let no = self.find(named).ok_or("hold_not_found")?;
        if matches!(who, Who::Buyer(buyer) if *buyer != self.holds[no].buyer) {
            return Err("hold_not_found".into());
        }
        match sent {
            Sent::Own => Ok(no),
            Sent::Of(other) if self.find(other) == Some(no) => Ok(no),
            Sent::Of(_) => Err("stale_fence".into()),
            Sent::Nothing if reason && *who == Who::Seller => Ok(no),
            Sent::Nothing => Err("invalid_field fence".into()),
        }
    }

    fn must_be(&self, no: usize, wanted: Is) -> Result<(), String> {
        let hold = &self.holds[no];
        if hold.is == wanted {
            return Ok(());
        }
        Err(match hold.is {
            Is::Active => "invalid_field hold".into(),
            Is::Confirmed => "hold_confirmed".into(),
            Is::Expired => "hold_expired".into(),
            Is::Cancelled => "hold_cancelled".into(),
            Is::Released => match hold.superseded_by {
                Some(by) => format!("hold_released by=#{by}"),
                None => "hold_released".into(),
            },
        })
    }

    fn create(&mut self, who: &Who, create: &Create) -> Result<String, String> {
        let retakes = create.retake.is_some();
        match self.sale {
            "open" => {}
            "paused" | "closed" if retakes => {}
            "paused" => return Err("sale_paused".into()),
            _ => return Err("sale_closed".into()),
        }
        let privileged = *who == Who::Seller;
        if (retakes || create.payment.is_some()) && !privileged {
            return Err("invalid_field retake, confirm".into());
        }
        let mut lines = create.lines.clone();
        if let Some(named) = create.retake {
            let no = self.find(named).ok_or("hold_not_found")?;
            let lapsed = &self.holds[no];
            if lapsed.buyer != create.buyer {
                return Err("hold_not_found".into());
            }
            if lapsed.is != Is::Expired {
                return Err("invalid_field retake".into());
            }
            if let Some(by) = lapsed.superseded_by {
                return Err(format!("hold_released by=#{by}"));
            }
            if lines.is_empty() {
                let lapsed = lapsed.parts.iter().filter(|part| part.lapsed > 0);
                lines = lapsed.map(|part| (part.item.clone(), part.lapsed)).collect();
            }
        }
        for ((item, _), number) in lines.iter().zip(1..) {
            if !self.pools.contains_key(item) {
                return Err(format!("item_not_found {number}:{item}"));
            }
        }
        let most = if privileged { u32::MAX } else { self.terms.hold_seconds_max };
        let ttl = create.ttl.unwrap_or(self.terms.hold_seconds);
        if ttl > most {
            return Err("invalid_field ttl_seconds".into());
        }
        let old = self.replaced(who, create)?;
        self.competes(create, &lines, old, retakes)?;

        let no = self.holds.len();
        let mut ends = self.now + u64::from(ttl) * 1_000;
        let mut chain_from = self.now;
        if let Some(old) = old {
            chain_from = self.holds[old].chain_from;
            if !privileged {
                ends = ends.min(self.chain_end(chain_from).max(self.holds[old].ends));
            }
            let replaced = &mut self.holds[old];
            replaced.is = Is::Released;
            replaced.superseded_by = Some(no);
            for part in &mut replaced.parts {
                part.released += part.held;
                part.held = 0;
            }
        }
        if let Some(lapsed) = create.retake.and_then(|named| self.find(named)) {
            self.holds[lapsed].superseded_by = Some(no);
        }
        let parts = lines.into_iter().map(|(item, quantity)| {
            let (held, sold) = if create.payment.is_some() { (0, quantity) } else { (quantity, 0) };
            Part { item, held, sold, released: 0, lapsed: 0, cancelled: 0 }
        });
        self.holds.push(OldHold {
            buyer: create.buyer.clone(),
            is: if create.payment.is_some() { Is::Confirmed } else { Is::Active },
            ends,
            parts: parts.collect(),
            reference: create.reference.clone(),
            payment: create.payment.clone(),
            extensions_left: self.terms.extensions_max,
            chain_from,
            supersedes: old,
            superseded_by: None,
        });
        Ok(self.tell_hold(no))
    }

    fn replaced(&self, who: &Who, create: &Create) -> Result<Option<usize>, String> {
        let Some((named, sent)) = create.supersedes else {
            return Ok(None);
        };
        let no = self.find(named).ok_or("hold_not_found")?;
        if self.holds[no].buyer != create.buyer {
            return Err("hold_not_found".into());
        }
        self.may_touch(who, named, sent, false)?;
        self.must_be(no, Is::Active)?;
        Ok(Some(no))
    }

    fn competes(
        &self,
        create: &Create,
        lines: &[(String, u32)],
        old: Option<usize>,
        retakes: bool,
    ) -> Result<(), String> {
        let others = || self.holds.iter().enumerate().filter(move |(no, _)| Some(*no) != old);
        if create.reference.is_some() {
            let claims = |hold: &OldHold| matches!(hold.is, Is::Active | Is::Confirmed);
            let mut users = others();
            let user = users.find(|(_, hold)| claims(hold) && hold.reference == create.reference);
            if let Some((no, _)) = user {
                return Err(format!("reference_in_use #{no}"));
            }
        }
        let mine = || others().map(|(_, hold)| hold).filter(|hold| hold.buyer == create.buyer);
        if let Some(most) = self.terms.live_holds_per_buyer {
            let live = mine().filter(|hold| hold.is == Is::Active).count();
            if live + 1 > most as usize {
                return Err("buyer_has_hold".into());
            }
        }
        for limit in &self.terms.limits {
            let counts = |item: &str| {
                limit.items.is_empty() || limit.items.iter().any(|named| named.as_str() == item)
            };
            let parts = mine().flat_map(|hold| &hold.parts).filter(|part| counts(&part.item));
            let used: u32 = parts.map(|part| part.held + part.sold).sum();
            let asked: u32 = lines.iter().filter(|(item, _)| counts(item)).map(|(_, q)| q).sum();
            if asked > 0 && used + asked > limit.per_buyer {
                return Err(format!("limit_per_buyer {}={used}/{}", limit.name, limit.per_buyer));
            }
        }
        self.fits(lines, old, retakes)
    }

    fn fits(
        &self,
        lines: &[(String, u32)],
        old: Option<usize>,
        retakes: bool,
    ) -> Result<(), String> {
        let mut failing = Vec::new();
        let mut codes = Vec::new();
        for ((item, asked), number) in lines.iter().zip(1..) {
            let same = lines.iter().filter(|(other, _)| other == item);
            let wanted: u64 = same.map(|(_, quantity)| u64::from(*quantity)).sum();
            let cap = u64::from(self.pools[item].total) + u64::from(self.pools[item].oversell);
            let (held, sold) = (self.held(item, old), self.sold(item));
            let free = cap.saturating_sub(held + sold);
            if wanted <= free {
                continue;
            }
            let most = cap.saturating_sub(sold);
            let code = if sold >= cap {
                "sold_out"
            } else if free == 0 && wanted <= most {
                "all_held"
            } else {
                "not_enough_free"
            };
            codes.push(code);
            let at = self.may_free_at(item, wanted, old).map_or("-".into(), tell);
            failing.push(format!(
                "{number}:{item}={code},asked{asked},free{free},held{held},most{most},at{at}"
            ));
        }
        if failing.is_empty() {
            return Ok(());
        }
        let order = ["sold_out", "all_held", "not_enough_free"];
        let worst = order.into_iter().find(|code| codes.contains(code)).expect("a line fails");
        Err(format!("{} {}", if retakes { "units_gone" } else { worst }, failing.join(" ")))
    }

    /// The first time at which enough of this item's holds will have lapsed; nobody looks beyond 64.
    fn may_free_at(&self, item: &str, wanted: u64, old: Option<usize>) -> Option<u64> {
        let cap = u64::from(self.pools[item].total) + u64::from(self.pools[item].oversell);
        let mut taken = self.held(item, old) + self.sold(item);
        let units = |hold: &OldHold| -> u64 {
            let parts = hold.parts.iter().filter(|part| part.item == item);
            parts.map(|part| u64::from(part.held)).sum()
        };
        let mut ends: Vec<(u64, u64)> = self
            .holds
            .iter()
            .enumerate()
            .filter(|(no, hold)| Some(*no) != old && hold.is == Is::Active && units(hold) > 0)
            .map(|(_, hold)| (hold.ends, units(hold)))
            .collect();
        ends.sort_unstable();
        ends.into_iter().take(64).find_map(|(ends, units)| {
            taken -= units;
            (taken + wanted <= cap).then_some(ends)
        })
    }

    fn confirm(
        &mut self,
        step: &Step,
        hold: Which,
        sent: Sent,
        payment: &str,
    ) -> Result<String, String> {
        let no = self.may_touch(&step.who, hold, sent, false)?;
        if self.holds[no].is == Is::Confirmed {
            let paid = self.holds[no].payment.clone().expect("a confirmed hold is paid");
            if paid != payment {
                return Err(format!("confirmed_with_other_payment payment={paid}"));
            }
            return Ok(format!("{} already", self.tell_hold(no)));
        }
        self.must_be(no, Is::Active)?;
        let hold = &mut self.holds[no];
        hold.is = Is::Confirmed;
        hold.payment = Some(payment.into());
        for part in &mut hold.parts {
            part.sold += part.held;
            part.held = 0;
        }
        Ok(self.tell_hold(no))
    }

    fn chain_end(&self, from: u64) -> u64 {
        from + u64::from(self.terms.hold_chain_seconds_max) * 1_000
    }

    fn extend(
        &mut self,
        step: &Step,
        hold: Which,
        (sent, reason): (Sent, bool),
        seconds: u32,
    ) -> Result<String, String> {
        let no = self.may_touch(&step.who, hold, sent, reason)?;
        self.must_be(no, Is::Active)?;
        let wanted = self.now + u64::from(seconds) * 1_000;
        let latest = self.chain_end(self.holds[no].chain_from);
        let is_buyer = matches!(step.who, Who::Buyer(_));
        if is_buyer && seconds > self.terms.hold_seconds_max {
            return Err("invalid_field seconds".into());
        }
        let hold = &mut self.holds[no];
        if wanted > hold.ends {
            if is_buyer {
                if hold.extensions_left == 0 || latest <= hold.ends {
                    return Err("invalid_field seconds".into());
                }
                hold.extensions_left -= 1;
                hold.ends = wanted.min(latest);
            } else {
                hold.ends = wanted;
            }
        }
        Ok(self.tell_hold(no))
    }

    fn release(
        &mut self,
        step: &Step,
        hold: Which,
        (sent, reason): (Sent, bool),
        parts: Option<&[Asked]>,
    ) -> Result<String, String> {
        let no = self.may_touch(&step.who, hold, sent, reason)?;
        self.must_be(no, Is::Active)?;
        let moved = pick(&self.holds[no].parts, parts, |part| part.held)?;
        let hold = &mut self.holds[no];
        for (line, units) in moved {
            hold.parts[line].held -= units;
            hold.parts[line].released += units;
        }
        if hold.parts.iter().all(|part| part.held == 0) {
            hold.is = Is::Released;
        }
        Ok(self.tell_hold(no))
    }

    fn cancel(
        &mut self,
        step: &Step,
        hold: Which,
        sent: Sent,
        (parts, to): (Option<&[Asked]>, CancelTo),
    ) -> Result<String, String> {
        let no = self.may_touch(&step.who, hold, sent, false)?;
        self.must_be(no, Is::Confirmed)?;
        let moved = pick(&self.holds[no].parts, parts, |part| part.sold)?;
        let hold = &mut self.holds[no];
        for (line, units) in moved {
            hold.parts[line].sold -= units;
            hold.parts[line].cancelled += units;
            if to == CancelTo::Destroyed {
                let pool = self.pools.get_mut(&hold.parts[line].item).expect("the line's item");
                pool.total -= units.min(pool.total);
            }
        }
        if hold.parts.iter().all(|part| part.sold == 0) {
            hold.is = Is::Cancelled;
        }
        Ok(self.tell_hold(no))
    }

    fn adjust(&mut self, item: &str, by: i64, if_total: Option<u32>) -> Result<String, String> {
        let pool = self.pools.get_mut(item).ok_or(format!("item_not_found 0:{item}"))?;
        if if_total.is_some_and(|seen| seen != pool.total) {
            return Err(format!("version_mismatch now={}", pool.total));
        }
        let total = i64::from(pool.total) + by;
        if by == 0 || !(0..=1_000_000_000).contains(&total) {
            return Err("invalid_field by".into());
        }
        pool.total = u32::try_from(total).expect("it was just bounded");
        Ok(format!("{item} {} v1", self.tell_counts(item)))
    }

    fn walk(&mut self, to: SaleStep) -> Result<String, String> {
        self.sale = match (to, self.sale) {
            (SaleStep::Pause, "open" | "paused") => "paused",
            (SaleStep::Resume, "open" | "paused") | (SaleStep::Reopen, "open" | "closed") => "open",
            (SaleStep::Close, _) => "closed",
            (_, "closed") => return Err("sale_closed".into()),
            (_, "paused") => return Err("sale_paused".into()),
            (other, there) => panic!("the oracle does not know {other:?} from {there}"),
        };
        Ok(format!("noon {} v1", self.sale))
    }
}

/// Which units of which lines; each line once, no more than it has, at least one unit.
fn pick(
    parts: &[Part],
    asked: Option<&[Asked]>,
    has: impl Fn(&Part) -> u32,
) -> Result<Vec<(usize, u32)>, String> {
    let Some(asked) = asked else {
        return Ok(parts.iter().enumerate().map(|(line, part)| (line, has(part))).collect());
    };
    if asked.is_empty() {
        return Err("invalid_field lines".into());
    }
    let mut moved: Vec<(usize, u32)> = Vec::new();
    for (&(line, quantity), place) in asked.iter().zip(0..) {
        let known = usize::from(line).checked_sub(1).filter(|line| *line < parts.len());
        let line = known.filter(|line| moved.iter().all(|(seen, _)| seen != line));
        let line = line.ok_or(format!("invalid_field lines[{place}].line"))?;
        let quantity = quantity.unwrap_or(has(&parts[line]));
        if quantity == 0 || quantity > has(&parts[line]) {
            return Err(format!("invalid_field lines[{place}].quantity"));
        }
        moved.push((line, quantity));
    }
    Ok(moved)
}

fn tell(milliseconds: u64) -> String {
    crate::world::tell(noondrop_core::Timestamp(EPOCH + milliseconds))
}
