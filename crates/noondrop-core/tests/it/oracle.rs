//! The rules once more, as plainly as they can be written: a list of holds, and everything counted from it each time.
//!
//! Written from the rules (R5 to R10), not from the code that it judges. No index, no running count, no queue.

use std::collections::BTreeMap;

use noondrop_core::{CancelTo, Override, SaleStep, SaleTerms};

use crate::world::{Create, EPOCH, ItemAsked, LineOf, Sent, Step, What, Which, Who};

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
    /// What it took of, as its item was defined then.
    draws: Vec<String>,
    /// The block that it came out of.
    from: Option<String>,
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
    total: Option<u32>,
    oversell: u32,
    against: Vec<String>,
    version: u32,
}

/// A pool, or one of its blocks.
type Place = (String, Option<String>);

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
    /// Labels in the order in which they came.
    labels: Vec<String>,
    blocks: BTreeMap<(String, String), u32>,
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
    pub fn offering(terms: SaleTerms, items: &[ItemAsked]) -> Self {
        let pool = |asked: &ItemAsked| {
            let ItemAsked { total, oversell, against, .. } = asked.clone();
            (asked.item.clone(), Pool { total, oversell, against, version: 1 })
        };
        let labels = terms.returns_to.iter().map(|returns| returns.label.to_string());
        Self {
            now: 0,
            labels: labels.collect(),
            terms,
            sale: "open",
            pools: items.iter().map(pool).collect(),
            blocks: BTreeMap::new(),
            holds: Vec::new(),
            keys: BTreeMap::new(),
        }
    }

    /// The pools of an item: its own if it has units, then those of what it counts against.
    fn draws(&self, item: &str) -> Vec<String> {
        fn visit(pools: &BTreeMap<String, Pool>, item: &str, seen: &mut Vec<String>) {
            if seen.iter().any(|known| known == item) {
                return;
            }
            seen.push(item.into());
            for other in &pools[item].against {
                visit(pools, other, seen);
            }
        }
        let mut seen = Vec::new();
        visit(&self.pools, item, &mut seen);
        seen.retain(|pool| self.pools[pool].total.is_some());
        seen
    }

    fn counts_against(&self, item: &str, other: &str) -> bool {
        item == other
            || self.pools[item].against.iter().any(|next| self.counts_against(next, other))
    }

    /// Where units go that are given back before they are sold.
    fn back_to(&self, part: &Part) -> Option<String> {
        let returns = self.terms.returns_to.as_ref().filter(|returns| returns.lapsed);
        part.from.clone().or(returns.map(|returns| returns.label.to_string()))
    }

    /// The block in which a lapsed part still is.
    fn lapsed_into(&self, part: &Part) -> Option<String> {
        let label = self.back_to(part)?;
        let there = self.blocks.get(&(part.draws[0].clone(), label.clone())).copied();
        if there.unwrap_or(0) >= part.lapsed { Some(label) } else { part.from.clone() }
    }

    fn set_aside(&mut self, pool: &str, label: &str, units: u32) {
        if !self.labels.iter().any(|known| known == label) {
            self.labels.push(label.into());
        }
        *self.blocks.entry((pool.into(), label.into())).or_default() += units;
    }

    /// Lines that name a block take from it.
    fn take_out(&mut self, parts: &[Part]) {
        for part in parts {
            if let Some(label) = &part.from {
                let block = (part.draws[0].clone(), label.clone());
                let units = self.blocks.get_mut(&block).expect("a block that had enough");
                *units -= part.held + part.sold;
            }
        }
    }

    /// Units leave a hold before they are sold.
    fn give_back(&mut self, no: usize, line: usize, units: u32) {
        let part = &mut self.holds[no].parts[line];
        part.held -= units;
        part.released += units;
        let part = part.clone();
        if let Some(label) = self.back_to(&part) {
            self.set_aside(&part.draws[0], &label, units);
        }
    }

    /// The clock is at this time: what is past its end has lapsed.
    pub fn wait_until(&mut self, now: u64) {
        self.now = now;
        for no in 0..self.holds.len() {
            if self.holds[no].is == Is::Active && self.holds[no].ends <= now {
                self.holds[no].is = Is::Expired;
                for line in 0..self.holds[no].parts.len() {
                    let held = self.holds[no].parts[line].held;
                    self.holds[no].parts[line].lapsed = held;
                    self.give_back(no, line, held);
                }
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
            // One question here, two operations there.
            What::Block { back, .. } => back.to_string(),
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
                self.cancel(step, *hold, *fence, (parts.as_deref(), to.as_ref()))
            }
            What::Adjust { item, by, if_total } => self.adjust(item, *by, *if_total),
            What::Move { to, .. } => self.walk(*to),
            What::Item(asked) => self.put_item(asked),
            What::Block { item, quantity, label, back } => {
                self.block(item, *quantity, label, *back)
            }
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

    fn count(&self, pool: &str, of: impl Fn(&Part) -> u32) -> u64 {
        let parts = self.holds.iter().flat_map(|hold| &hold.parts);
        let drawing = parts.filter(|part| part.draws.iter().any(|drawn| drawn == pool));
        drawing.map(|part| u64::from(of(part))).sum()
    }

    /// Units of a place that a hold claims: the block that a part came out of, else its pools.
    fn claims(hold: &OldHold, place: &Place) -> u64 {
        let parts = hold
            .parts
            .iter()
            .filter(|part| places(&part.draws, part.from.as_ref()).contains(place));
        parts.map(|part| u64::from(part.held)).sum()
    }

    /// Held units of a pool without those that a replaced hold gives back there.
    fn held(&self, pool: &str, except: Option<usize>) -> u64 {
        let back = except.map_or(0, |no| Self::claims(&self.holds[no], &(pool.into(), None)));
        self.count(pool, |part| part.held) - back
    }

    fn sold(&self, pool: &str) -> u64 {
        self.count(pool, |part| part.sold)
    }

    fn blocked(&self, pool: &str) -> u64 {
        let own = self.blocks.iter().filter(|((of, _), _)| of == pool);
        own.map(|(_, units)| u64::from(*units)).sum()
    }

    fn left(&self, pool: &str) -> i128 {
        let total = i128::from(self.pools[pool].total.unwrap_or(0));
        let taken = self.held(pool, None) + self.sold(pool) + self.blocked(pool);
        total - i128::from(taken)
    }

    pub fn tell_item(&self, item: &str) -> String {
        let (held, sold) = (self.held(item, None), self.sold(item));
        let left = self.left(item);
        let counts = format!(
            "total={} held={held} sold={sold} available={} oversold={}",
            self.pools[item].total.unwrap_or(0),
            left.max(0),
            (-left).max(0)
        );
        let blocks = self.labels.iter().filter_map(|label| {
            let units = self.blocks.get(&(item.into(), label.clone()))?;
            (*units > 0).then(|| format!("{label}:{units}"))
        });
        std::iter::once(counts).chain(blocks).collect::<Vec<_>>().join(" ")
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
            let from = part.from.as_ref().map(|label| format!("<{label}")).unwrap_or_default();
            words.push(format!("{number}:{}{from}={}", part.item, some.join(",")));
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
            Sent::Nothing if reason && matches!(who, Who::Seller | Who::Admin) => Ok(no),
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
        if !create.overrides.is_empty() && *who != Who::Admin {
            return Err("invalid_field override".into());
        }
        match self.sale {
            "open" => {}
            "paused" | "closed" if retakes => {}
            "paused" if create.overrides.contains(&Override::SalePaused) => {}
            "closed" if create.overrides.contains(&Override::SaleClosed) => {}
            "paused" => return Err("sale_paused".into()),
            _ => return Err("sale_closed".into()),
        }
        let privileged = matches!(who, Who::Seller | Who::Admin);
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
                let again = lapsed.parts.iter().filter(|part| part.lapsed > 0);
                lines = again
                    .map(|part| (part.item.clone(), part.lapsed, self.lapsed_into(part)))
                    .collect();
            }
        }
        for ((item, _, from), place) in lines.iter().zip(0..) {
            if !self.pools.contains_key(item) {
                return Err(format!("item_not_found {}:{item}", place + 1));
            }
            if from.as_ref().is_some_and(|label| !privileged || !self.labels.contains(label)) {
                return Err(format!("invalid_field lines[{place}].from"));
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
            // To the blocks they came out of, or on sale: never where other units go that come back.
            let mut back = Vec::new();
            for part in &mut replaced.parts {
                back.extend(
                    part.from.clone().map(|label| (part.draws[0].clone(), label, part.held)),
                );
                part.released += part.held;
                part.held = 0;
            }
            for (pool, label, units) in back {
                self.set_aside(&pool, &label, units);
            }
        }
        if let Some(lapsed) = create.retake.and_then(|named| self.find(named)) {
            self.holds[lapsed].superseded_by = Some(no);
        }
        let parts: Vec<Part> = lines
            .into_iter()
            .map(|(item, quantity, from)| {
                let (held, sold) =
                    if create.payment.is_some() { (0, quantity) } else { (quantity, 0) };
                let draws = self.draws(&item);
                Part { item, draws, from, held, sold, released: 0, lapsed: 0, cancelled: 0 }
            })
            .collect();
        self.take_out(&parts);
        self.holds.push(OldHold {
            buyer: create.buyer.clone(),
            is: if create.payment.is_some() { Is::Confirmed } else { Is::Active },
            ends,
            parts,
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
        lines: &[LineOf],
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
            if live + 1 > most as usize && !create.overrides.contains(&Override::BuyerHasHold) {
                return Err("buyer_has_hold".into());
            }
        }
        for limit in &self.terms.limits {
            let names = |item: &String| limit.items.iter().any(|named| named.as_str() == item);
            let counts = |item: &String, draws: &[String]| {
                limit.items.is_empty() || names(item) || draws.iter().any(names)
            };
            let parts = mine().flat_map(|hold| &hold.parts);
            let parts = parts.filter(|part| counts(&part.item, &part.draws));
            let used: u32 = parts.map(|part| part.held + part.sold).sum();
            let counted = lines.iter().filter(|(item, _, _)| counts(item, &self.draws(item)));
            let asked: u32 = counted.map(|(_, units, _)| units).sum();
            let over = asked > 0 && used + asked > limit.per_buyer;
            if over && !create.overrides.contains(&Override::LimitPerBuyer) {
                return Err(format!("limit_per_buyer {}={used}/{}", limit.name, limit.per_buyer));
            }
        }
        self.fits(lines, old, retakes)
    }

    fn fits(&self, lines: &[LineOf], old: Option<usize>, retakes: bool) -> Result<(), String> {
        let mut wanted: Vec<(Place, u64)> = Vec::new();
        for (item, units, from) in lines {
            for place in places(&self.draws(item), from.as_ref()) {
                match wanted.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, all)) => *all += u64::from(*units),
                    None => wanted.push((place, u64::from(*units))),
                }
            }
        }
        let order = ["sold_out", "all_held", "not_enough_free"];
        let rank = |code: &str| order.iter().position(|known| *known == code).expect("a code");
        let mut failing = Vec::new();
        let mut worst = order.len();
        for ((item, asked, from), number) in lines.iter().zip(1..) {
            let own = places(&self.draws(item), from.as_ref());
            let lacks = wanted.iter().filter(|(place, _)| own.contains(place));
            let lacks = lacks.filter_map(|(place, wanted)| {
                let (code, counts) = self.lacks(place, *wanted, old)?;
                Some((rank(code), code, place, counts))
            });
            let Some((code_rank, code, place, counts)) = lacks.min_by_key(|lack| lack.0) else {
                continue;
            };
            worst = worst.min(code_rank);
            let within = if place.0 == *item { String::new() } else { format!("@{}", place.0) };
            let block = if place.1.is_some() { "<" } else { "" };
            failing.push(format!("{number}:{item}{within}{block}={code},asked{asked},{counts}"));
        }
        if failing.is_empty() {
            return Ok(());
        }
        let code = if retakes { "units_gone" } else { order[worst] };
        Err(format!("{code} {}", failing.join(" ")))
    }

    /// Why a place does not have so many units, and its counts.
    fn lacks(
        &self,
        place: &Place,
        wanted: u64,
        old: Option<usize>,
    ) -> Option<(&'static str, String)> {
        let (pool, label) = place;
        if let Some(label) = label {
            let there = self.blocks.get(&(pool.clone(), label.clone())).copied().unwrap_or(0);
            let has = u64::from(there) + old.map_or(0, |no| Self::claims(&self.holds[no], place));
            let counts = format!("free{has},held0,most{has},at-");
            return (wanted > has).then_some(("not_enough_free", counts));
        }
        let cap = self.cap(pool);
        let held = self.held(pool, old);
        let settled = self.sold(pool) + self.blocked(pool);
        let free = cap.saturating_sub(held + settled);
        if wanted <= free {
            return None;
        }
        let most = cap.saturating_sub(settled);
        let code = if settled >= cap {
            "sold_out"
        } else if free == 0 && wanted <= most {
            "all_held"
        } else {
            "not_enough_free"
        };
        let at = self.may_free_at(pool, wanted, old).map_or("-".into(), tell);
        Some((code, format!("free{free},held{held},most{most},at{at}")))
    }

    fn cap(&self, pool: &str) -> u64 {
        let entry = &self.pools[pool];
        u64::from(entry.total.expect("a pool has units")) + u64::from(entry.oversell)
    }

    /// The first time at which enough of this pool's holds will have lapsed; nobody looks beyond 64.
    fn may_free_at(&self, pool: &str, wanted: u64, old: Option<usize>) -> Option<u64> {
        let cap = self.cap(pool);
        let mut taken = self.held(pool, old) + self.sold(pool) + self.blocked(pool);
        if taken + wanted > cap + self.held(pool, old) {
            return None;
        }
        let units = |hold: &OldHold| -> u64 {
            let goes = |part: &&Part| {
                places(&part.draws, self.back_to(part).as_ref()).contains(&(pool.into(), None))
            };
            hold.parts.iter().filter(goes).map(|part| u64::from(part.held)).sum()
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
        for (line, units) in moved {
            self.give_back(no, line, units);
        }
        if self.holds[no].parts.iter().all(|part| part.held == 0) {
            self.holds[no].is = Is::Released;
        }
        Ok(self.tell_hold(no))
    }

    fn cancel(
        &mut self,
        step: &Step,
        hold: Which,
        sent: Sent,
        (parts, to): (Option<&[Asked]>, Option<&CancelTo>),
    ) -> Result<String, String> {
        let no = self.may_touch(&step.who, hold, sent, false)?;
        self.must_be(no, Is::Confirmed)?;
        let moved = pick(&self.holds[no].parts, parts, |part| part.sold)?;
        let returns = self.terms.returns_to.as_ref().map(|returns| returns.label.to_string());
        for (line, units) in moved {
            let part = &mut self.holds[no].parts[line];
            part.sold -= units;
            part.cancelled += units;
            let draws = part.draws.clone();
            let label = match to {
                Some(CancelTo::Block(label)) => Some(label.to_string()),
                Some(_) => None,
                None => returns.clone(),
            };
            if let Some(label) = label {
                self.set_aside(&draws[0], &label, units);
            }
            for pool in draws.iter().filter(|_| to == Some(&CancelTo::Destroyed)) {
                let total = &mut self.pools.get_mut(pool).expect("a pool").total;
                *total = total.map(|total| total - units.min(total));
            }
        }
        if self.holds[no].parts.iter().all(|part| part.sold == 0) {
            self.holds[no].is = Is::Cancelled;
        }
        Ok(self.tell_hold(no))
    }

    fn block(&mut self, item: &str, units: u32, label: &str, back: bool) -> Result<String, String> {
        let pool = self.pools.get(item).ok_or(format!("item_not_found 0:{item}"))?;
        if pool.total.is_none() {
            return Err("invalid_field item".into());
        }
        let (held, version) = (self.held(item, None), pool.version);
        let under = (item.to_owned(), label.to_owned());
        let there = self.blocks.get(&under).copied().unwrap_or(0);
        let has = if back { i128::from(there) } else { self.left(item).max(0) };
        if i128::from(units) > has {
            let known = self.labels.iter().any(|known| known == label);
            let block = if back && known { "<" } else { "" };
            return Err(format!(
                "not_enough_free 0:{item}{block}=not_enough_free,asked{units},free{has},held{held},most{has},at-"
            ));
        }
        if back {
            self.blocks.insert(under, there - units);
        } else {
            self.set_aside(item, label, units);
        }
        Ok(format!("{item} {} v{version}", self.tell_item(item)))
    }

    /// An item that is there gets another definition.
    fn put_item(&mut self, asked: &ItemAsked) -> Result<String, String> {
        let old = self.pools.get(&asked.item).expect("the oracle knows only items that are there");
        match (asked.total, old.total) {
            (Some(new), Some(old)) if new != old => return Err(format!("use_adjust total={old}")),
            (Some(_), Some(_)) => {}
            (None, None) if !asked.against.is_empty() => {}
            _ => return Err("invalid_field total".into()),
        }
        for (other, place) in asked.against.iter().zip(0..) {
            let again = asked.against[..place].contains(other);
            let known = self.pools.contains_key(other) && !again;
            if !known || self.counts_against(other, &asked.item) {
                return Err(format!("invalid_field counts_against[{place}]"));
            }
        }
        if old.against != asked.against {
            let live = |part: &Part| {
                part.held + part.sold > 0 && self.counts_against(&part.item, &asked.item)
            };
            if self.holds.iter().flat_map(|hold| &hold.parts).any(live) {
                return Err("invalid_field counts_against".into());
            }
        }
        let changes = old.against != asked.against || old.oversell != asked.oversell;
        let pool = self.pools.get_mut(&asked.item).expect("it is there");
        pool.version += u32::from(changes);
        pool.against.clone_from(&asked.against);
        pool.oversell = asked.oversell;
        Ok(format!(
            "{} {} v{}",
            asked.item,
            self.tell_item(&asked.item),
            self.pools[&asked.item].version
        ))
    }

    fn adjust(&mut self, item: &str, by: i64, if_total: Option<u32>) -> Result<String, String> {
        let pool = self.pools.get_mut(item).ok_or(format!("item_not_found 0:{item}"))?;
        let version = pool.version;
        let Some(now) = pool.total else {
            return Err("invalid_field item".into());
        };
        if if_total.is_some_and(|seen| seen != now) {
            return Err(format!("version_mismatch now={now}"));
        }
        let total = i64::from(now) + by;
        if by == 0 || !(0..=1_000_000_000).contains(&total) {
            return Err("invalid_field by".into());
        }
        pool.total = Some(u32::try_from(total).expect("it was just bounded"));
        Ok(format!("{item} {} v{version}", self.tell_item(item)))
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

/// Where a line's units are: in a block of the first pool, or on sale there, and on sale in the others.
fn places(draws: &[String], label: Option<&String>) -> Vec<Place> {
    let mut places: Vec<Place> = draws.iter().map(|pool| (pool.clone(), None)).collect();
    places[0].1 = label.cloned();
    places
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
