//! The part of a plan that is about seats: which come, which go, in how many requests.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::blocks::some_of;
use super::file::ItemWanted;
use super::plan::{Kind, Plan, REASON, counted};
use super::seats::Seat;
use super::standing::SeatTold;

/// Largest body of seats; the server takes 16 MiB.
const SEATS_BYTES_MAX: usize = 15 << 20;

impl Plan {
    /// More and fewer seats; which ones the item loses.
    pub(super) fn seats<'a>(
        &mut self,
        path: &str,
        wanted: &ItemWanted,
        seats: &[Seat],
        told: &'a [SeatTold],
    ) -> HashSet<&'a str> {
        let of = format!("item {}", wanted.name);
        let known: HashMap<&str, &SeatTold> =
            told.iter().map(|told| (told.seat.seat.as_str(), told)).collect();
        let mut comes = Vec::new();
        for seat in seats {
            match known.get(seat.seat.as_str()) {
                Some(known) if known.seat != *seat => self.refusals.push(format!(
                    "{of}: seat {} is as it was added for ever ({}): add one of another name and leave this one out",
                    seat.seat,
                    known.seat.difference(seat)
                )),
                Some(known) if known.planned => {}
                _ => comes.push(seat.clone()),
            }
        }
        let kept: HashSet<&str> = seats.iter().map(|seat| seat.seat.as_str()).collect();
        let goes =
            told.iter().filter(|told| told.planned && !kept.contains(told.seat.seat.as_str()));
        let goes: Vec<&SeatTold> = goes.collect();
        let names = |list: Vec<String>| (list.len() as u64, some_of(&list));
        if !comes.is_empty() {
            let (count, some) = names(comes.iter().map(|seat| seat.seat.clone()).collect());
            let says = format!("{} more: {some}", counted(count, "seat"));
            self.differs(Kind::Add, of.clone(), says);
        }
        if !goes.is_empty() {
            let (count, some) = names(goes.iter().map(|told| told.seat.seat.clone()).collect());
            let says = format!("{} fewer: {some}", counted(count, "seat"));
            self.differs(Kind::Remove, of, says);
        }
        let owned = goes.iter().filter(|told| matches!(told.state.as_str(), "held" | "sold"));
        let (count, some) = names(owned.map(|told| told.seat.seat.clone()).collect());
        if count > 0 {
            self.notes.push(format!(
                "{} that the file leaves out stay with their buyers, beyond the total: {some}",
                counted(count, "seat")
            ));
        }
        let goes: Vec<&'a str> = goes.iter().map(|told| told.seat.seat.as_str()).collect();
        self.seat_steps(path, &wanted.name, &comes, &goes);
        goes.into_iter().collect()
    }

    /// As few requests as their size allows.
    pub(super) fn seat_steps(
        &mut self,
        path: &str,
        item: &str,
        mut comes: &[Seat],
        mut goes: &[&str],
    ) {
        while !comes.is_empty() || !goes.is_empty() {
            // A name takes a small part of what a seat takes, so those that go have a request of their own only if
            // both together do not fit.
            let add = comes.split_at(fitting(comes));
            let is_room = goes.len() * 40 + size(add.0) <= SEATS_BYTES_MAX;
            let remove = goes.split_at(if is_room || add.0.is_empty() { goes.len() } else { 0 });
            let body = json!({"add": add.0, "remove": remove.0, "reason": REASON});
            let does = format!("change the seats of {item}");
            self.keyed(does, format!("{path}/seats"), body.to_string(), "");
            (comes, goes) = (add.1, remove.1);
        }
    }
}

fn size(seats: &[Seat]) -> usize {
    seats.iter().map(bytes).sum()
}

/// How many bytes of a body a seat takes.
fn bytes(seat: &Seat) -> usize {
    serde_json::to_string(seat).expect("a seat is JSON").len() + ",".len()
}

/// How many of the first seats fit into one request.
pub(super) fn fitting(seats: &[Seat]) -> usize {
    let mut left = SEATS_BYTES_MAX;
    let fits = |seat: &&Seat| left.checked_sub(bytes(seat)).map(|rest| left = rest).is_some();
    seats.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// As many as an item may have, with names of this length.
    fn full_hall(length: usize) -> Vec<Seat> {
        let seat = |no: u32| Seat {
            seat: format!("{no:0length$}"),
            section: "s".repeat(length),
            row: (no / 100).to_string(),
            number: no % 100,
            rank: no,
            tags: Vec::new(),
            zone: None,
        };
        (0..200_000).map(seat).collect()
    }

    /// The seats that are added and removed by each request.
    fn requests(comes: &[Seat], goes: &[&str]) -> Vec<[usize; 2]> {
        let mut plan = Plan::default();
        plan.seat_steps("/v1/sales/s/items/i", "i", comes, goes);
        let sizes = plan.steps.iter().map(|step| {
            assert!(step.body.len() < 16 << 20, "{} bytes", step.body.len());
            let body: Value = serde_json::from_str(&step.body).unwrap();
            ["add", "remove"].map(|list| body[list].as_array().unwrap().len())
        });
        sizes.collect()
    }

    #[test]
    fn a_full_hall_is_one_request_if_it_fits_and_few_if_not() {
        assert_eq!(requests(&full_hall(6), &[]), [[200_000, 0]]);
        let long = requests(&full_hall(32), &["x"]);
        assert!(long.len() == 2 && long[0][1] + long[1][1] == 1, "{long:?}");
        assert_eq!(long[0][0] + long[1][0], 200_000);
        let gone = full_hall(32);
        let gone: Vec<&str> = gone.iter().map(|seat| seat.seat.as_str()).collect();
        assert_eq!(requests(&full_hall(6), &gone), [[200_000, 0], [0, 200_000]]);
    }
}
