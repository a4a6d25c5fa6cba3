//! What became of all attempts of a buyer, of a reference or under a key, in a paragraph: how many, how many repeats collapsed
//! into them, and, for who got nothing, how far each came behind the last unit.

use std::collections::BTreeMap;

use noondrop_core::{
    Counts, Digest16, Fact, HoldRefused, ItemIx, LabelIx, LineRefusal, Refusal, SeatStanding,
    StockCode, Timestamp,
};
use serde_json::{Value, json};

use super::glance::Glance;
use super::naming::{Naming, joined, were};
use crate::http::render::time_text;

/// A line that could not be had, with the pool that it failed at as it stood then.
#[derive(Clone, Debug)]
struct Lack {
    line: LineRefusal,
    /// The attempt, from 1.
    attempt: u64,
    at: Timestamp,
    counts: Counts,
    gone_at: Option<Timestamp>,
    sold_at: Option<Timestamp>,
    /// When each seat that was not free had been taken.
    seats_at: Vec<Option<Timestamp>>,
}

impl Lack {
    fn pool(&self) -> ItemIx {
        self.line.limited_by.unwrap_or(self.line.item)
    }

    /// Whether nothing at all was left, and since when.
    fn gone(&self) -> Option<(&'static str, Timestamp)> {
        match self.line.code {
            _ if self.line.from.is_some() => None,
            StockCode::SoldOut => self.sold_at.map(|at| ("sold", at)),
            StockCode::AllHeld => self.gone_at.map(|at| ("taken", at)),
            StockCode::NotEnoughFree | StockCode::SeatTaken | StockCode::NotTogether => None,
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    granted: u64,
    refused: u64,
    first_at: Timestamp,
    last_at: Timestamp,
    lacks: Vec<Lack>,
    /// Attempts that failed for another reason than stock.
    others: Vec<(u64, String)>,
    repeats: BTreeMap<Digest16, u32>,
    repeated_at: Option<Timestamp>,
    /// When something of a pool was free again after the last attempt at it.
    free_again: BTreeMap<ItemIx, Option<Timestamp>>,
}

impl Summary {
    /// Notes a fact of the story; `before` stands right before it, and `why` says why it was refused.
    pub fn note(&mut self, fact: &Fact, before: &Glance, why: impl FnOnce() -> String) {
        match fact {
            Fact::HoldCreated(_) => {
                self.attempt(before.at());
                self.granted += 1;
            }
            Fact::HoldRefused(refused) => {
                self.attempt(before.at());
                self.refused += 1;
                self.refused(refused, before, why);
            }
            Fact::KeyRepeated(repeated) => {
                let count = self.repeats.entry(repeated.key).or_default();
                *count = repeated.count.max(*count);
                self.repeated_at = Some(before.at());
            }
            _ => {}
        }
    }

    fn attempt(&mut self, at: Timestamp) {
        if self.attempts() == 0 {
            self.first_at = at;
        }
        self.last_at = at;
    }

    fn refused(&mut self, refused: &HoldRefused, before: &Glance, why: impl FnOnce() -> String) {
        let attempt = self.attempts();
        let Refusal::Stock { lines, .. } = &refused.refusal else {
            self.others.push((attempt, why()));
            return;
        };
        for line in lines {
            let pool = line.limited_by.unwrap_or(line.item);
            let known = before.pool(pool).copied().unwrap_or_default();
            let seats = line.seats.iter().flatten();
            let seats_at = seats.map(|lack| {
                let seat = before.seat_no(line.item, lack.seat.as_str())?;
                before.seat_taken_at(line.item, seat)
            });
            let lack = Lack {
                line: line.clone(),
                attempt,
                at: before.at(),
                counts: known.counts,
                gone_at: known.gone_at,
                sold_at: known.sold_at,
                seats_at: seats_at.collect(),
            };
            if lack.gone().is_some() {
                self.free_again.insert(pool, None);
            }
            self.lacks.push(lack);
        }
    }

    /// Looks whether something came back after the attempts; to be asked after every fact.
    pub fn watch(&mut self, after: &Glance) {
        for (pool, free_at) in &mut self.free_again {
            if free_at.is_none() && after.pool(*pool).is_some_and(|pool| pool.gone_at.is_none()) {
                *free_at = Some(after.at());
            }
        }
    }

    fn attempts(&self) -> u64 {
        self.granted + self.refused
    }

    /// Whether there is something to sum up: an attempt that failed, or one that came again.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.attempts() > 0 && (self.refused > 0 || !self.repeats.is_empty())
    }

    /// Repeats are noted at the 1st, 2nd, 4th, 8th …: so many there were at least, and at most.
    fn repeats(&self) -> (u64, u64) {
        let bounds = |count: &u32| (u64::from(*count), u64::from(*count) * 2 - 1);
        let bounds = self.repeats.values().filter(|count| **count > 0).map(bounds);
        bounds.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    }

    /// The paragraph, sentence by sentence.
    #[must_use]
    pub fn sentences(&self, who: &str, naming: Naming<'_>) -> Vec<String> {
        let mut told = vec![self.course(who)];
        told.extend(self.collapsed());
        if self.granted == 0 {
            told.extend(self.items().into_iter().flat_map(|lacks| self.about(&lacks, naming)));
            if let Some((attempt, why)) = self.others.last() {
                told.push(format!("your {} attempt was refused: {why}", nth(*attempt)));
            }
        }
        told
    }

    fn course(&self, who: &str) -> String {
        let when = if self.attempts() == 1 {
            format!("once, at {}", time_text(self.first_at))
        } else {
            let (first, last) = (time_text(self.first_at), time_text(self.last_at));
            format!("{} times, first at {first} and last at {last}", self.attempts())
        };
        let end = match (self.granted, self.refused) {
            (0, _) => "and got nothing".to_owned(),
            (_, 0) => "and was given it".to_owned(),
            (granted, refused) => format!("{granted} granted, {refused} refused"),
        };
        format!("{who} asked {when}, {end}")
    }

    fn collapsed(&self) -> Option<String> {
        let (least, most) = self.repeats();
        let requests = match (least, most) {
            (0, _) => return None,
            (1, 1) => "1 repeat of a request was".to_owned(),
            (least, most) if most == least => format!("{least} repeats of requests were"),
            (least, most) if most == least + 1 => {
                format!("{least} or {most} repeats of requests were")
            }
            (least, most) => format!("{least} to {most} repeats of requests were"),
        };
        let noted = self.repeated_at.map(|at| format!(" (last noted at {})", time_text(at)));
        Some(format!("{requests} given the first answer again{}", noted.unwrap_or_default()))
    }

    /// What was lacking, by what was asked for and what it failed at, in the order in which it came up.
    fn items(&self) -> Vec<Vec<&Lack>> {
        let mut items: Vec<Vec<&Lack>> = Vec::new();
        for lack in &self.lacks {
            let place = |lack: &Lack| (lack.line.item, lack.pool(), lack.line.from);
            match items.iter_mut().find(|known| place(known[0]) == place(lack)) {
                Some(known) => known.push(lack),
                None => items.push(vec![lack]),
            }
        }
        items
    }

    /// The first and the last attempt at one thing.
    fn about(&self, lacks: &[&Lack], naming: Naming<'_>) -> Vec<String> {
        let mut told = Vec::new();
        let (Some(first), Some(last)) = (lacks.first(), lacks.last()) else { return told };
        let limited = if first.pool() == first.line.item {
            String::new()
        } else {
            let (item, pool) = (naming.item(first.line.item), naming.item(first.pool()));
            format!("{item} is limited by {pool}: ")
        };
        let (one, other) = (clause(first, naming), clause(last, naming));
        let same = first.attempt == last.attempt;
        match (one, other) {
            (one, _) if same => told.push(format!("{limited}{}; {}", one.0, one.1)),
            (one, other) if one.0 == other.0 && first.gone() == last.gone() => {
                let came = format!("your {} attempt came {}", nth(first.attempt), behind(first));
                told.push(format!("{limited}{}; {came} and {}", one.0, other.1));
            }
            (one, other) => {
                told.push(format!("{limited}{}; {}", one.0, one.1));
                told.push(format!("{limited}{}; {}", other.0, other.1));
            }
        }
        if let (Some(_), Some(Some(at))) = (last.gone(), self.free_again.get(&last.pool())) {
            let pool = naming.item(last.pool());
            let after = duration(last.at, *at);
            told.push(format!("some of {pool} came back {after} after your last attempt at it"));
        }
        told
    }

    /// The same for programs.
    #[must_use]
    pub fn value(&self, who: &str, naming: Naming<'_>) -> Value {
        let (least, most) = self.repeats();
        let lacks = self.lacks.iter().map(|lack| self.lack_value(lack, naming));
        let time = |at: Option<Timestamp>| at.map(time_text);
        json!({
            "attempts": self.attempts(),
            "granted": self.granted,
            "refused": self.refused,
            "first_at": time_text(self.first_at),
            "last_at": time_text(self.last_at),
            "repeats_min": least,
            "repeats_max": most,
            "repeats_noted_at": time(self.repeated_at),
            "lacks": lacks.collect::<Vec<_>>(),
            "sentences": self.sentences(who, naming),
        })
    }

    fn lack_value(&self, lack: &Lack, naming: Naming<'_>) -> Value {
        let gone = lack.gone();
        let seconds = gone.map(|(_, since)| lack.at.0.saturating_sub(since.0) / 1_000);
        let free_again = self.free_again.get(&lack.pool()).copied().flatten();
        json!({
            "attempt": lack.attempt,
            "at": time_text(lack.at),
            "item": naming.item(lack.line.item),
            "limited_by": lack.line.limited_by.map(|pool| naming.item(pool)),
            "code": lack.line.code.as_str(),
            "requested": lack.line.requested,
            "available": lack.line.available,
            "total": lack.counts.total,
            "held": lack.counts.held,
            "sold": lack.counts.sold,
            "blocked": lack.counts.blocked,
            "last_unit": gone.map(|(how, _)| how),
            "last_unit_at": gone.map(|(_, since)| time_text(since)),
            "seconds_after": seconds,
            "free_again_at": free_again.map(time_text),
        })
    }
}

/// How things stood at an attempt, and how it stood to them.
fn clause(lack: &Lack, naming: Naming<'_>) -> (String, String) {
    let (nth, line) = (nth(lack.attempt), &lack.line);
    let pool = naming.item(lack.pool());
    let asked = format!("your {nth} attempt asked for {}", line.requested);
    if let Some(seats) = seats(lack, naming) {
        let newest = lack.seats_at.iter().flatten().max();
        let came = newest.map_or_else(
            || format!("it was your {nth} attempt"),
            |at| format!("your {nth} attempt came {} later", duration(*at, lack.at)),
        );
        return (seats, came);
    }
    if line.from.is_some() {
        let block = block(naming, line.item, line.from);
        return (
            format!("{} of {pool}{block} {} left", line.available, were(line.available)),
            asked,
        );
    }
    match line.code {
        StockCode::SoldOut | StockCode::AllHeld => {
            let (all, stood) = (lack.counts.cap(), whereabouts(&lack.counts));
            let came = format!("your {nth} attempt came {}", behind(lack));
            (format!("all {all} of {pool} were {stood}"), came)
        }
        StockCode::NotTogether => (
            format!("{} of {pool} {} free", line.available, were(line.available)),
            format!("{asked} next to each other"),
        ),
        StockCode::NotEnoughFree | StockCode::SeatTaken => {
            (format!("{} of {pool} {} free", line.available, were(line.available)), asked)
        }
    }
}

fn block(naming: Naming<'_>, item: ItemIx, label: Option<LabelIx>) -> String {
    naming.out_of(item, label)
}

/// "sold or in other baskets"
fn whereabouts(counts: &Counts) -> String {
    let parts =
        [(counts.sold, "sold"), (counts.held, "in other baskets"), (counts.blocked, "set aside")];
    let parts: Vec<&str> =
        parts.iter().filter(|(units, _)| *units > 0).map(|(_, how)| *how).collect();
    match parts.as_slice() {
        [] => "gone".to_owned(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// "72 s after the last was sold"
fn behind(lack: &Lack) -> String {
    match lack.gone() {
        Some((how, since)) => format!("{} after the last was {how}", duration(since, lack.at)),
        None => format!("at {}", time_text(lack.at)),
    }
}

/// "A-1-7 of hall was already held"
fn seats(lack: &Lack, naming: Naming<'_>) -> Option<String> {
    let item = naming.item(lack.line.item);
    let seats = lack.line.seats.iter().flatten();
    let seats = seats.map(|lack| {
        let stood = match lack.standing {
            SeatStanding::Held => "already held",
            SeatStanding::Sold => "already sold",
            SeatStanding::Blocked => "set aside",
            SeatStanding::Removed => "removed",
            SeatStanding::Free => "free, but not in that block",
        };
        format!("{} of {item} was {stood}", lack.seat)
    });
    Some(joined(seats)).filter(|told| !told.is_empty())
}

/// Which of several.
fn nth(number: u64) -> String {
    const WORDS: [&str; 10] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
        "tenth",
    ];
    let word = usize::try_from(number).ok().and_then(|number| WORDS.get(number.checked_sub(1)?));
    word.map_or_else(|| format!("{number}th"), |word| (*word).to_owned())
}

/// A time that passed, as people say it.
fn duration(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.0.saturating_sub(from.0) / 1_000;
    match seconds {
        0 => "less than a second".to_owned(),
        1..=599 => format!("{seconds} s"),
        600..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
