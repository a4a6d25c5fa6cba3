//! How a story's holds stand, kept up from the facts.

use std::collections::BTreeMap;

use noondrop_core::seats::SeatNo;
use noondrop_core::{
    Entry, Fact, Fence, HoldCreated, HoldId, HoldNo, HoldState, ItemIx, LabelIx, SaleIx, SeatOut,
    Timestamp,
};
use serde_json::{Value, json};

use super::glance::Glance;
use super::naming::Naming;
use crate::http::render::time_text;
use crate::ledger::touched;

/// One line of a hold.
#[derive(Clone, Debug)]
struct Line {
    item: ItemIx,
    quantity: u32,
    held: u32,
    sold: u32,
    from: Option<LabelIx>,
    seats: Vec<SeatNo>,
}

/// A hold as it stands.
#[derive(Clone, Debug)]
pub struct Standing {
    no: HoldNo,
    id: HoldId,
    fence: Fence,
    sale: SaleIx,
    state: HoldState,
    created_at: Timestamp,
    expires_at: Timestamp,
    buyer: String,
    reference: Option<String>,
    lines: Vec<Line>,
}

/// The holds of a story.
#[derive(Clone, Debug, Default)]
pub struct Standings(BTreeMap<HoldNo, Standing>);

impl Standings {
    /// In the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.0.values()
    }

    /// Whether one of the holds has a seat.
    #[must_use]
    pub fn have_seat(&self, item: ItemIx, seat: SeatNo) -> bool {
        let mut lines = self.iter().flat_map(|hold| &hold.lines);
        lines.any(|line| line.item == item && line.seats.contains(&seat))
    }

    /// Adds the hold that a fact makes; `before` stands right before it.
    pub fn add(&mut self, entry: &Entry, before: &Glance) {
        let Fact::HoldCreated(created) = &entry.fact else { return };
        let (no, id, fence) = before.next_hold();
        let texts = entry.private.as_ref();
        let buyer = texts.and_then(|texts| texts.buyer.clone()).unwrap_or_default();
        let usual = before.at().plus_seconds(u64::from(created.ttl_seconds));
        let standing = Standing {
            no,
            id,
            fence,
            sale: created.sale,
            state: HoldState::Active,
            created_at: before.at(),
            expires_at: created.expires_at.unwrap_or(usual),
            buyer,
            reference: texts.and_then(|texts| texts.reference.clone()),
            lines: lines(created),
        };
        self.0.insert(no, standing);
    }

    /// Notes what became of the holds.
    pub fn note(&mut self, fact: &Fact) {
        if self.0.is_empty() {
            return;
        }
        if let Fact::HoldsExpired(expired) = fact {
            for (no, _) in expired.holds() {
                if let Some(hold) = self.0.get_mut(&no) {
                    hold.state = HoldState::Expired;
                    hold.seats_out(expired.seats.as_deref());
                    hold.lines.iter_mut().for_each(|line| line.held = 0);
                }
            }
        } else if let Some(hold) = touched(fact).and_then(|about| self.0.get_mut(&about.hold)) {
            hold.note(fact);
        }
    }
}

fn lines(created: &HoldCreated) -> Vec<Line> {
    let lines = created.lines.iter().map(|line| Line {
        item: line.item,
        quantity: line.quantity,
        held: line.quantity,
        sold: 0,
        from: line.draws.first().and_then(|draw| draw.label),
        seats: line.seats.clone().unwrap_or_default(),
    });
    lines.collect()
}

impl Standing {
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::HoldConfirmed(_) => {
                self.state = HoldState::Confirmed;
                for line in &mut self.lines {
                    line.sold += std::mem::take(&mut line.held);
                }
            }
            Fact::HoldExtended(fact) => self.expires_at = fact.expires_at,
            Fact::HoldReleased(fact) => {
                for part in fact.lines.iter() {
                    if let Some(line) = self.line(part.line) {
                        line.held = line.held.saturating_sub(part.quantity);
                    }
                }
                self.seats_out(fact.seats.as_deref());
                self.ends(HoldState::Released);
            }
            Fact::HoldCancelled(fact) => {
                for part in fact.lines.iter() {
                    if let Some(line) = self.line(part.line) {
                        line.sold = line.sold.saturating_sub(part.quantity);
                    }
                }
                self.seats_out(fact.seats.as_deref());
                self.ends(HoldState::Cancelled);
            }
            _ => {}
        }
    }

    fn line(&mut self, number: u8) -> Option<&mut Line> {
        self.lines.get_mut(usize::from(number).checked_sub(1)?)
    }

    fn ends(&mut self, state: HoldState) {
        if self.lines.iter().all(|line| line.held + line.sold == 0) {
            self.state = state;
        }
    }

    fn seats_out(&mut self, seats: Option<&[SeatOut]>) {
        for out in seats.unwrap_or_default() {
            for line in self.lines.iter_mut().filter(|line| line.item == out.item) {
                line.seats.retain(|seat| *seat != out.seat);
            }
        }
    }

    /// How it stands, on one line.
    #[must_use]
    pub fn sentence(&self, naming: Naming<'_>) -> String {
        let lines = self.lines.iter().map(|line| {
            let block = naming.out_of(line.item, line.from);
            let left = line.held + line.sold;
            let units = if line.seats.is_empty() {
                format!("{} of {}{block}", line.quantity, naming.item(line.item))
            } else {
                format!("{}{block}", naming.seats(line.item, &line.seats))
            };
            let gone = line.quantity - left.min(line.quantity);
            let over = matches!(self.state, HoldState::Active | HoldState::Confirmed);
            if over && gone > 0 {
                format!("{units} ({gone} of {} given back)", line.quantity)
            } else {
                units
            }
        });
        let lines: Vec<String> = lines.collect();
        let end = match self.state {
            HoldState::Active => format!(", until {}", time_text(self.expires_at)),
            _ => String::new(),
        };
        let reference = self.reference.as_ref().map(|text| format!(", reference {text}"));
        format!(
            "{} is {}{end}: {} of sale {}, buyer {}{}, fence {}",
            self.id,
            self.state.as_str(),
            lines.join(", "),
            naming.sale(self.sale),
            if self.buyer.is_empty() { "(erased)" } else { &self.buyer },
            reference.unwrap_or_default(),
            self.fence
        )
    }

    /// The same for programs.
    #[must_use]
    pub fn value(&self, naming: Naming<'_>) -> Value {
        let line = |line: &Line| {
            let seats = line.seats.iter().map(|seat| naming.seat(line.item, *seat));
            json!({
                "item": naming.item(line.item),
                "quantity": line.quantity,
                "held": line.held,
                "sold": line.sold,
                "seats": seats.collect::<Vec<_>>(),
            })
        };
        json!({
            "id": self.id.to_string(),
            "number": self.no.0,
            "state": self.state.as_str(),
            "fence": self.fence.0,
            "created_at": time_text(self.created_at),
            "expires_at": time_text(self.expires_at),
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
            "sentence": self.sentence(naming),
        })
    }
}
