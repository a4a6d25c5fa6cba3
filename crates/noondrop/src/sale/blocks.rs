//! Units set aside: as a file wants them, and what has to be done where a server has them otherwise.
//!
//! Only labels that the file names are compared: what somebody set aside by hand, and what came back under the label of
//! `returns_to`, is not put on sale because a file does not know of it. Units that a hold took *from* a block count as
//! set aside, else each sale from it would make it grow again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use noondrop_core::limits::{TEXT_BYTES_MAX, TOTAL_MAX};
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::file::{FileError, Source, Units};
use super::standing::{ItemStanding, SeatTold};

/// Why units are set aside, where the file gives no reason.
const REASON: &str = "a sale from a file";

/// Units to be set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockWanted {
    /// For whom.
    pub label: String,
    /// Which ones.
    pub units: BlockUnits,
    /// Why, for the ledger.
    pub reason: String,
}

/// Which units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockUnits {
    /// So many; of seats the best.
    Quantity(u32),
    /// These seats.
    Seats(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockTable {
    label: Spanned<String>,
    quantity: Option<Spanned<i64>>,
    seats: Option<Vec<Spanned<String>>>,
    reason: Option<Spanned<String>>,
}

/// A label; two words mean something else.
pub(super) fn label(
    source: &Source<'_>,
    field: &str,
    label: &Spanned<String>,
) -> Result<String, FileError> {
    if ["stock", "destroyed"].contains(&label.get_ref().as_str()) {
        let what = format!("{field}: a label; stock and destroyed mean something else");
        return Err(source.at(&label.span(), what));
    }
    source.name(field, label)
}

/// The blocks of an item.
pub(super) fn wanted(
    source: &Source<'_>,
    tables: &[BlockTable],
    units: &Units,
) -> Result<Vec<BlockWanted>, FileError> {
    let seats: HashSet<&str> = match units {
        Units::Seats(seats) => seats.iter().map(|seat| seat.seat.as_str()).collect(),
        Units::None | Units::Total(_) => HashSet::new(),
    };
    let mut labels = BTreeSet::new();
    let mut taken = HashSet::new();
    let mut blocks = Vec::with_capacity(tables.len());
    for table in tables {
        let error = |what: &str| source.at(&table.label.span(), what.to_owned());
        let label = label(source, "label", &table.label)?;
        if !labels.insert(label.clone()) {
            return Err(error("label: each label once in an item"));
        }
        if *units == Units::None {
            return Err(error("blocks: only on an item with units of its own"));
        }
        let units = match (&table.quantity, &table.seats) {
            (Some(quantity), None) => {
                BlockUnits::Quantity(source.number("quantity", quantity, 0..=TOTAL_MAX)?)
            }
            (None, Some(named)) => {
                for seat in named {
                    let name = seat.get_ref().as_str();
                    if !seats.contains(name) {
                        let what = format!("seats: {name} is no seat of this item");
                        return Err(source.at(&seat.span(), what));
                    }
                    if !taken.insert(name) {
                        let what = format!("seats: {name} is set aside already; each seat once");
                        return Err(source.at(&seat.span(), what));
                    }
                }
                BlockUnits::Seats(named.iter().map(|seat| seat.get_ref().clone()).collect())
            }
            _ => return Err(error("a block has either a quantity or seats")),
        };
        let reason = table.reason.as_ref();
        if let Some(reason) = reason.filter(|r| !(1..=TEXT_BYTES_MAX).contains(&r.get_ref().len()))
        {
            let what = format!("reason: 1 to {TEXT_BYTES_MAX} bytes");
            return Err(source.at(&reason.span(), what));
        }
        let reason = reason.map_or_else(|| REASON.to_owned(), |reason| reason.get_ref().clone());
        blocks.push(BlockWanted { label, units, reason });
    }
    Ok(blocks)
}

/// One request about a block, and how a person says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMove {
    /// Set aside, or put on sale again.
    pub aside: bool,
    /// The label.
    pub label: String,
    /// What changes.
    pub says: String,
    /// The body of the request.
    pub body: Value,
    /// What was there; part of the idempotency key.
    pub seen: String,
}

/// What has to be done, unblocking first, and what cannot be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMoves {
    /// Requests.
    pub moves: Vec<BlockMove>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A few names, and how many more there are.
#[must_use]
pub fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// Compares the blocks of one item, without the seats that it loses. `returns` is the label under which units come back
/// by themselves.
pub(super) fn compare(
    wanted: &[BlockWanted],
    now: Option<&ItemStanding>,
    lost: &HashSet<&str>,
    returns: Option<&str>,
) -> BlockMoves {
    let mut found = BlockMoves::default();
    let told = now.and_then(|now| now.seats.as_ref()).into_iter().flatten();
    let told = told.map(|seat| (seat.seat.seat.as_str(), seat));
    let told: HashMap<&str, &SeatTold> =
        told.filter(|(name, seat)| seat.planned && !lost.contains(name)).collect();
    for block in wanted {
        let is_returns = returns == Some(block.label.as_str());
        match &block.units {
            BlockUnits::Quantity(quantity) => {
                let aside = match now {
                    Some(now) if now.seats.is_some() => aside_of(&told, &block.label),
                    Some(now) => now.aside(&block.label),
                    None => Aside::default(),
                };
                by_number(block, u64::from(*quantity), aside, is_returns, &mut found);
            }
            BlockUnits::Seats(names) => by_name(block, names, &told, is_returns, &mut found),
        }
    }
    // What a label loses another one may get.
    found.moves.sort_by_key(|one| one.aside);
    let labels: BTreeMap<&str, u64> = now.map(ItemStanding::blocks).unwrap_or_default();
    let unnamed = labels.iter().filter(|(label, _)| {
        returns != Some(**label) && !wanted.iter().any(|block| block.label == **label)
    });
    found.notes.extend(unnamed.map(|(label, quantity)| {
        format!("{quantity} set aside for {label} stay: the file does not name that label (quantity = 0 puts them on sale)")
    }));
    found
}

/// Units under a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Set aside now.
    pub left: u64,
    /// Held or sold out of it.
    pub taken: u64,
}

fn aside_of(told: &HashMap<&str, &SeatTold>, label: &str) -> Aside {
    let mut aside = Aside::default();
    for seat in told.values().filter(|seat| seat.block.as_deref() == Some(label)) {
        *(if seat.state == "blocked" { &mut aside.left } else { &mut aside.taken }) += 1;
    }
    aside
}

fn by_number(
    block: &BlockWanted,
    wanted: u64,
    Aside { left, taken }: Aside,
    is_returns: bool,
    found: &mut BlockMoves,
) {
    let aside = left + taken;
    let BlockWanted { label, reason, .. } = block;
    let mut push = |is_aside, quantity: u64, says: String| {
        let body = json!({"quantity": quantity, "label": label, "reason": reason});
        let seen = format!("{left}+{taken}");
        found.moves.push(BlockMove { aside: is_aside, label: label.clone(), says, body, seen });
    };
    if wanted > aside {
        let says = format!("{} set aside (now {aside})", wanted - aside);
        push(true, wanted - aside, if aside == 0 { format!("{wanted} set aside") } else { says });
    } else if wanted < aside && !is_returns {
        let goes = (aside - wanted).min(left);
        if goes > 0 {
            push(false, goes, format!("{goes} put on sale again (of {aside})"));
        }
        if goes < aside - wanted {
            let others = aside - wanted - goes;
            found.notes.push(format!("{others} set aside for {label} are held or sold already"));
        }
    }
}

fn by_name(
    block: &BlockWanted,
    names: &[String],
    told: &HashMap<&str, &SeatTold>,
    is_returns: bool,
    found: &mut BlockMoves,
) {
    let BlockWanted { label, reason, .. } = block;
    let is_there = |seat: &SeatTold| seat.block.as_ref() == Some(label);
    let comes: Vec<String> = names
        .iter()
        .filter(|name| !told.get(name.as_str()).is_some_and(|seat| is_there(seat)))
        .cloned()
        .collect();
    let kept: HashSet<&str> = names.iter().map(String::as_str).collect();
    let others =
        told.values().filter(|seat| is_there(seat) && !kept.contains(seat.seat.seat.as_str()));
    let (mut goes, mut taken) = (Vec::new(), Vec::new());
    for seat in others.filter(|_| !is_returns) {
        let list = if seat.state == "blocked" { &mut goes } else { &mut taken };
        list.push(seat.seat.seat.clone());
    }
    goes.sort_unstable();
    taken.sort_unstable();
    let mut push = |aside, seats: Vec<String>, what: &str| {
        if !seats.is_empty() {
            let says = format!("{} {what}: {}", seats.len(), some_of(&seats));
            let body = json!({"seats": seats, "label": label, "reason": reason});
            let label = label.clone();
            found.moves.push(BlockMove { aside, label, says, body, seen: String::new() });
        }
    };
    push(false, goes, "put on sale again");
    push(true, comes, "set aside");
    if !taken.is_empty() {
        found.notes.push(format!("of {label}, held or sold already: {}", some_of(&taken)));
    }
}
