//! What buyers saw, against what the log says.

use noondrop_core::{HoldId, HoldState, State};
use noondrop_log::LogReader;

use super::Plan;
use super::crowd::{Seen, World, sale_name};
use crate::audit::{Verdict, audit};

/// Whether everything that was promised holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Acknowledged holds and confirms that the log does not have.
    pub lost_acknowledged: u64,
    /// Tickets that were left although buyers wanted them.
    pub lost_units: u64,
    /// Units sold beyond what there was.
    pub oversold: u64,
    /// `available + held + sold + blocked == total + oversold`, at every row.
    pub conserved: bool,
    /// The audit's own words, where it failed.
    pub wrong: Option<String>,
    /// The head of the audited log.
    pub head: Option<String>,
    /// Tickets sold at the end.
    pub sold: u64,
}

impl Findings {
    /// Whether all is well.
    #[must_use]
    pub fn all_well(&self, seen: &Seen) -> bool {
        self.conserved
            && self.wrong.is_none()
            && self.lost_acknowledged + self.lost_units + self.oversold == 0
            && seen.differing + seen.gave_up == 0
    }
}

/// Audits the log and looks every acknowledged answer up in it.
#[must_use]
pub fn verify(reader: &mut dyn LogReader, plan: &Plan, seen: &Seen) -> Findings {
    match audit(reader, None, &mut |_| {}) {
        Ok((verdict, state)) => compare(&verdict, &state, plan, seen),
        Err(error) => Findings { wrong: Some(crate::cli::chain(&error)), ..Findings::default() },
    }
}

/// Looks every acknowledged answer up in an audited state.
#[must_use]
pub fn compare(verdict: &Verdict, state: &State, plan: &Plan, seen: &Seen) -> Findings {
    let standing = |id: &str| {
        let id: HoldId = id.parse().ok()?;
        state.hold(id).map(|hold| hold.state)
    };
    let lost_holds = seen.holds.values().filter(|id| standing(id).is_none()).count();
    let unpaid = |id: &&String| standing(id) != Some(HoldState::Confirmed);
    let lost_confirms = seen.confirmed.iter().filter(unpaid).count();
    let item = state.item("main", &sale_name(plan.seed), "ticket");
    let counts = item.map(|item| item.counts).unwrap_or_default();
    Findings {
        lost_acknowledged: (lost_holds + lost_confirms) as u64,
        lost_units: lost_units(plan, seen, u64::from(counts.sold)),
        oversold: counts.oversold(),
        conserved: true,
        wrong: None,
        head: Some(verdict.head.to_string()),
        sold: u64::from(counts.sold),
    }
}

/// Tickets that nobody has although somebody was sent away, or is still there.
fn lost_units(plan: &Plan, seen: &Seen, sold: u64) -> u64 {
    let sent_away = seen.outcome("sold_out");
    if sent_away > 0 { u64::from(plan.tickets).saturating_sub(sold) } else { 0 }
}

/// Asks a staging system for every acknowledged answer.
pub async fn ask(world: &World) -> Findings {
    let (ids, confirmed) = {
        let seen = world.seen.borrow();
        (seen.holds.values().cloned().collect::<Vec<_>>(), seen.confirmed.clone())
    };
    let mut lost = 0;
    for id in &ids {
        let answer = world.get(&format!("/v1/holds/{id}")).await;
        let body = answer.filter(|answer| answer.status == 200).map(|answer| answer.body);
        let state = body.and_then(|body| serde_json::from_slice::<serde_json::Value>(&body).ok());
        let is_confirmed = state.as_ref().is_some_and(|hold| hold["state"] == "confirmed");
        lost += u64::from(state.is_none() || confirmed.contains(id) && !is_confirmed);
    }
    let path = format!("/v1/sales/{}/items/ticket", sale_name(world.plan.seed));
    let item = world.get(&path).await.map(|answer| answer.body).unwrap_or_default();
    let item: serde_json::Value = serde_json::from_slice(&item).unwrap_or_default();
    let count = |name: &str| item[name].as_u64().unwrap_or(0);
    let left = count("available") + count("held") + count("sold") + count("blocked");
    Findings {
        lost_acknowledged: lost,
        lost_units: lost_units(&world.plan, &world.seen.borrow(), count("sold")),
        oversold: count("oversold"),
        conserved: left == count("total") + count("oversold") && count("total") > 0,
        wrong: None,
        head: None,
        sold: count("sold"),
    }
}
