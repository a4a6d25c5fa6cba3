//! The story of one seat: who named it, who had it, and where it went.

use std::collections::BTreeSet;

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    BlockMoved, CancelTo, Fact, HoldNo, ItemIx, LabelIx, Name, Refusal, SeatOut, SeatsChanged,
};
use serde_json::{Value, json};

use super::naming::Naming;
use crate::ledger::touched;

/// Where a seat stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    Held,
    Sold,
    SetAside(Place),
    Removed,
}

/// A block, as facts name it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Named(Name),
    Numbered(LabelIx),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SeatTold {
    item: ItemIx,
    seat: SeatNo,
    name: String,
    standing: Standing,
    /// Who has it.
    owner: Option<HoldNo>,
    /// Who had it.
    past: BTreeSet<HoldNo>,
    /// It is not on the plan any more.
    unplanned: bool,
}

impl SeatTold {
    /// A seat that nobody is known to have had.
    #[must_use]
    pub fn new(item: ItemIx, seat: SeatNo, name: &str) -> Self {
        let (standing, owner, past) = (Standing::Free, None, BTreeSet::new());
        Self { item, seat, name: name.to_owned(), standing, owner, past, unplanned: false }
    }

    /// The seat of this name, if it is added by this fact to an item that has had `known` seats.
    #[must_use]
    pub fn added(changed: &SeatsChanged, known: usize, name: &str) -> Option<Self> {
        let place = changed.added.iter().position(|seat| seat.name.as_str() == name)?;
        let seat = SeatNo(u32::try_from(known + place).ok()?);
        Some(Self::new(changed.item, seat, name))
    }

    /// The same, when somebody is known to have it.
    #[must_use]
    pub fn owned_by(mut self, owner: Option<HoldNo>) -> Self {
        self.owner = owner;
        self
    }

    /// The item, and the seat's number in it.
    #[must_use]
    pub const fn place(&self) -> (ItemIx, SeatNo) {
        (self.item, self.seat)
    }

    /// Who has it.
    #[must_use]
    pub const fn owner(&self) -> Option<HoldNo> {
        self.owner
    }

    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, item: ItemIx, seat: SeatNo) -> bool {
        (self.item, self.seat) == (item, seat)
    }

    /// Whether it is told of a hold that it had the seat.
    #[must_use]
    pub fn has_hold(&self, no: HoldNo) -> bool {
        self.owner == Some(no) || self.past.contains(&no)
    }

    /// Whether a fact is about the seat. To be asked in the order of the log.
    pub fn takes(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::HoldCreated(created) => {
                let mut lines = created.lines.iter();
                let named = lines.any(|line| self.is_among(line.item, line.seats.as_deref()));
                if named {
                    self.past.extend(self.owner.replace(created.hold));
                    self.standing = Standing::Held;
                }
                named
            }
            Fact::HoldRefused(refused) => {
                let mut lines = refused.lines.iter();
                lines.any(|line| self.is_among(line.item, line.seats.as_deref()))
                    || self.is_lacked(&refused.refusal)
            }
            Fact::BlockRefused(refused) => self.is_lacked(&refused.refusal),
            Fact::ItemBlocked(moved) => {
                self.moved(moved, Standing::SetAside(Place::Named(moved.label.clone())))
            }
            Fact::ItemUnblocked(moved) => self.moved(moved, Standing::Free),
            Fact::SeatsChanged(changed) => self.changed(changed),
            Fact::HoldReleased(fact) => self.left(fact.seats.as_deref(), false),
            Fact::HoldsExpired(fact) => self.left(fact.seats.as_deref(), false),
            Fact::HoldCancelled(fact) => {
                self.left(fact.seats.as_deref(), fact.to == CancelTo::Destroyed)
            }
            Fact::HoldConfirmed(fact) => {
                let own = self.owner == Some(fact.touched.hold);
                if own {
                    self.standing = Standing::Sold;
                }
                own
            }
            Fact::HoldActRefused(fact) => {
                self.has_hold(fact.touched.hold) || self.is_lacked(&fact.refusal)
            }
            other => touched(other).is_some_and(|about| self.owner == Some(about.hold)),
        }
    }

    fn is_among(&self, item: ItemIx, seats: Option<&[SeatNo]>) -> bool {
        item == self.item && seats.is_some_and(|seats| seats.contains(&self.seat))
    }

    fn is_lacked(&self, refusal: &Refusal) -> bool {
        let Refusal::Stock { lines, .. } = refusal else { return false };
        lines.iter().filter(|line| line.item == self.item).any(|line| {
            let mut lacks = line.seats.iter().flatten();
            lacks.any(|lack| lack.seat.as_str() == self.name)
        })
    }

    fn moved(&mut self, moved: &BlockMoved, to: Standing) -> bool {
        let named = self.is_among(moved.item, moved.seats.as_deref());
        if named {
            self.standing = to;
        }
        named
    }

    fn changed(&mut self, changed: &SeatsChanged) -> bool {
        if changed.item != self.item {
            return false;
        }
        let added = changed.added.iter().any(|seat| seat.name.as_str() == self.name);
        let planned = changed.planned.contains(&self.seat);
        let removed = changed.removed.contains(&self.seat);
        if removed || planned {
            self.unplanned = removed;
        }
        if self.owner.is_none() && (removed || planned) {
            self.standing = if removed { Standing::Removed } else { Standing::Free };
        }
        added || planned || removed
    }

    fn left(&mut self, seats: Option<&[SeatOut]>, destroyed: bool) -> bool {
        let mut seats = seats.unwrap_or_default().iter();
        let Some(out) = seats.find(|out| self.is(out.item, out.seat)) else { return false };
        self.past.extend(self.owner.take());
        self.standing = match out.to {
            _ if destroyed || out.gone.unwrap_or(false) => Standing::Removed,
            Some(label) => Standing::SetAside(Place::Numbered(label)),
            None => Standing::Free,
        };
        true
    }

    /// Where it stands, in a sentence.
    #[must_use]
    pub fn sentence(&self, naming: Naming<'_>) -> String {
        let seat = format!("{} of {}", self.name, naming.item(self.item));
        let with = self.owner.map(|no| format!(" with {}", naming.hold(no))).unwrap_or_default();
        let gone = if self.unplanned && self.owner.is_some() {
            ", and is removed as soon as it comes back"
        } else {
            ""
        };
        match &self.standing {
            Standing::Free => format!("{seat} is free"),
            Standing::Held => format!("{seat} is held{with}{gone}"),
            Standing::Sold => format!("{seat} is sold{with}{gone}"),
            Standing::SetAside(Place::Named(label)) => format!("{seat} is in the block {label}"),
            Standing::SetAside(Place::Numbered(label)) => {
                let block = naming.out_of(self.item, Some(*label));
                format!("{seat} is in{}", block.trim_start_matches(" out of"))
            }
            Standing::Removed => format!("{seat} is removed"),
        }
    }

    /// The same for programs.
    #[must_use]
    pub fn value(&self, naming: Naming<'_>) -> Value {
        let state = match &self.standing {
            Standing::Free => "free",
            Standing::Held => "held",
            Standing::Sold => "sold",
            Standing::SetAside(_) => "blocked",
            Standing::Removed => "removed",
        };
        json!({
            "item": naming.item(self.item),
            "seat": self.name,
            "state": state,
            "hold": self.owner.map(|no| naming.hold(no)),
            "sentence": self.sentence(naming),
        })
    }
}
