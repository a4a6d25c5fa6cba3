//! Seats: which ones a line gets, which ones a hold gives back, and which ones are set aside.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::create::{Wanted, WantedLines};
use super::invalid;
use crate::command::{LinePart, SeatsAsked};
use crate::fact::{LineMoved, SeatOut};
use crate::ids::Name;
use crate::limits::{HOLD_SEATS_MAX, SEAT_LACKS_MAX};
use crate::planted::{self, Bug};
use crate::refusal::{LineRefusal, Refusal, SeatLack, StockCode};
use crate::seats::{Found, NotFound, SeatMap, SeatNo, SeatState, Wish};
use crate::state::State;
use crate::state::hold::{From, Hold};
use crate::state::wishes::wish_of;
use crate::units::{ItemIx, LabelIx};

/// Which seats a line wants.
#[derive(Clone, Debug)]
pub(super) enum WantedSeats {
    /// None: its item has none.
    None,
    /// These.
    Named(Vec<SeatNo>),
    /// The best for a wish; none where nothing can match it.
    Best(Option<Box<Wish>>),
}

/// The seats of each line that gets some.
pub(super) type Picked = SmallVec<[Option<Found>; 1]>;

/// Parts of a hold, and the seats of theirs.
pub(super) type Parts = (SmallVec<[LineMoved; 1]>, Option<Vec<SeatOut>>);

/// Seats that are in a hold already, with their items.
type InHold = SmallVec<[(ItemIx, SeatNo); 8]>;

fn of_item(seats: &InHold, item: ItemIx) -> Found {
    seats.iter().filter(|(of, _)| *of == item).map(|(_, seat)| *seat).collect()
}

impl State {
    /// What a line asks for, with the names looked up.
    pub(super) fn wanted_seats(
        &self,
        item: ItemIx,
        number: u8,
        quantity: u32,
        asked: Option<&SeatsAsked>,
    ) -> Result<WantedSeats, Refusal> {
        let place = number - 1;
        let Some(map) = self.seating.map(item) else {
            return match asked {
                None => Ok(WantedSeats::None),
                Some(_) => {
                    Err(invalid(format!("lines[{place}]"), "a quantity: its item has no seats"))
                }
            };
        };
        if quantity as usize > HOLD_SEATS_MAX {
            return Err(invalid(
                format!("lines[{place}].quantity"),
                format!("1 to {HOLD_SEATS_MAX} seats"),
            ));
        }
        let Some(named) = asked.and_then(|asked| asked.named.as_ref()) else {
            return Ok(WantedSeats::Best(wish_of(map, asked, None).map(Box::new)));
        };
        let mut seats = Vec::with_capacity(named.len());
        for name in named {
            let seat = map.find(name.as_str());
            let seat =
                seat.ok_or_else(|| Refusal::SeatNotFound { line: number, seat: name.clone() })?;
            seats.push(seat);
        }
        if seats.len() != quantity as usize {
            return Err(invalid(
                format!("lines[{place}].quantity"),
                "the number of seats, or absent",
            ));
        }
        Ok(WantedSeats::Named(seats))
    }

    /// No seat twice in a hold, and not too many of them.
    pub(super) fn check_named(wanted: &WantedLines) -> Result<(), Refusal> {
        let mut named: Vec<(ItemIx, SeatNo)> = Vec::new();
        let mut seats = 0usize;
        for line in wanted {
            if !matches!(line.seats, WantedSeats::None) {
                seats += line.quantity as usize;
            }
            if let WantedSeats::Named(these) = &line.seats {
                named.extend(these.iter().map(|seat| (line.item, *seat)));
            }
        }
        if seats > HOLD_SEATS_MAX {
            return Err(invalid("lines", format!("at most {HOLD_SEATS_MAX} seats in a hold")));
        }
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(invalid("lines", "each seat once"));
        }
        Ok(())
    }

    /// Picks the seats of every line that wants some; or says of each line that cannot have them why not.
    ///
    /// Seats that are asked for by name come first, so that no other line of the hold takes one of them.
    pub(super) fn pick_seats(
        &self,
        wanted: &WantedLines,
        old: Option<&Hold>,
    ) -> Result<Picked, Vec<LineRefusal>> {
        let freed: InHold = old.iter().flat_map(|old| old.kept_seats()).collect();
        let mut taken = InHold::new();
        let mut picked: Picked = wanted.iter().map(|_| None).collect();
        let mut lacks = Vec::new();
        for by_name in [true, false] {
            for (place, line) in wanted.iter().enumerate() {
                let found = match &line.seats {
                    WantedSeats::Named(seats) if by_name => self.named_seats(line, seats, &freed),
                    WantedSeats::Best(wish) if !by_name => {
                        self.best_seats(line, wish.as_deref(), &freed, &taken)
                    }
                    _ => continue,
                };
                match found {
                    Ok(found) => {
                        taken.extend(found.iter().map(|seat| (line.item, *seat)));
                        picked[place] = Some(found);
                    }
                    Err(mut lack) => {
                        lack.line = u8::try_from(place + 1).expect("few lines");
                        lacks.push(*lack);
                    }
                }
            }
        }
        lacks.sort_by_key(|lack| lack.line);
        if lacks.is_empty() { Ok(picked) } else { Err(lacks) }
    }

    fn named_seats(
        &self,
        line: &Wanted,
        seats: &[SeatNo],
        freed: &InHold,
    ) -> Result<Found, Box<LineRefusal>> {
        let map = self.map_of(line.item);
        let mut lacks: Vec<SeatLack> = Vec::new();
        let mut free = 0;
        for &seat in seats {
            let state = map.state(seat).expect("it was found by its name");
            let in_old = freed.contains(&(line.item, seat));
            let state = if in_old { SeatState { owner: None, ..state } } else { state };
            let standing = self.standing(state);
            let is_owned = state.owner.is_some();
            let is_free = state == SeatState { block: line.from, ..SeatState::FREE }
                || (is_owned && planted::is(Bug::SeatGivenTwice));
            if is_free {
                free += 1;
            } else if lacks.len() < SEAT_LACKS_MAX {
                lacks.push(SeatLack { seat: map.name_of(seat), standing });
            }
        }
        if lacks.is_empty() {
            return Ok(seats.iter().copied().collect());
        }
        let mut lack = self.seat_refusal(line, StockCode::SeatTaken, free);
        lack.seats = Some(lacks);
        Err(Box::new(lack))
    }

    fn best_seats(
        &self,
        line: &Wanted,
        wish: Option<&Wish>,
        freed: &InHold,
        taken: &InHold,
    ) -> Result<Found, Box<LineRefusal>> {
        let map = self.map_of(line.item);
        let (freed, taken) = (of_item(freed, line.item), of_item(taken, line.item));
        let wish = wish.map(|wish| Wish { from_block: line.from, ..wish.clone() });
        let found = match &wish {
            None => Err(NotFound::NotEnough { free: 0 }),
            Some(wish) if taken.is_empty() || planted::is(Bug::SeatPickedTwice) => {
                map.best(wish, line.quantity, &freed)
            }
            Some(wish) => map.best_beside(wish, line.quantity, &freed, &taken),
        };
        found.map_err(|not| {
            let (code, free) = match not {
                NotFound::NotEnough { free } => (StockCode::NotEnoughFree, free),
                NotFound::NotTogether { free } => (StockCode::NotTogether, free),
            };
            Box::new(self.seat_refusal(line, code, free))
        })
    }

    fn map_of(&self, item: ItemIx) -> &SeatMap {
        self.seating.map(item).expect("the line was found to be on an item of seats")
    }

    fn seat_refusal(&self, line: &Wanted, code: StockCode, free: u32) -> LineRefusal {
        let counts = self.books.counts[line.item.0 as usize];
        let most = counts.cap().saturating_sub(u64::from(counts.sold) + u64::from(counts.blocked));
        LineRefusal {
            line: 0,
            item: line.item,
            code,
            limited_by: None,
            requested: line.quantity,
            available: free,
            held: counts.held,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            may_free_at: None,
            from: line.from,
            seats: None,
        }
    }

    /// The parts of a hold that a caller names, with the seats that go: all that there are where none are named.
    pub(super) fn parts_of(
        &self,
        hold: &Hold,
        asked: Option<&[LinePart]>,
        from: From,
    ) -> Result<Parts, Refusal> {
        if hold.seats().is_empty() {
            if let Some(at) = asked.iter().copied().flatten().position(|part| part.seats.is_some())
            {
                return Err(invalid(
                    format!("lines[{at}].seats"),
                    "absent: this line has no seats",
                ));
            }
            return Ok((hold.parts(asked, from)?, None));
        }
        let mut asked: Option<Vec<LinePart>> = asked.map(<[LinePart]>::to_vec);
        let mut out = Vec::new();
        for (place, part) in asked.iter_mut().flatten().enumerate() {
            out.extend(self.seats_out(hold, place, part)?);
        }
        if asked.is_none() {
            out = hold.seats_out();
        }
        let parts = hold.parts(asked.as_deref(), from)?;
        Ok((parts, Some(out).filter(|out| !out.is_empty())))
    }

    /// The seats of one part; the part's quantity becomes their number.
    fn seats_out(
        &self,
        hold: &Hold,
        place: usize,
        part: &mut LinePart,
    ) -> Result<Vec<SeatOut>, Refusal> {
        let all = all_of(hold, part.line);
        let has_seats = hold.seats().iter().any(|held| held.line == part.line);
        let field = || format!("lines[{place}].seats");
        let Some(named) = &part.seats else {
            let whole = part.quantity.is_none_or(|quantity| quantity as usize == all.len());
            if has_seats && !whole {
                return Err(invalid(field(), "the seats that go, by name"));
            }
            return Ok(all);
        };
        if !has_seats {
            return Err(invalid(field(), "absent: this line has no seats"));
        }
        let map = self.map_of(hold.lines[usize::from(part.line) - 1].item);
        let mut out: Vec<SeatOut> = Vec::new();
        for name in named {
            let seat = map.find(name.as_str());
            let own = all.iter().find(|one| Some(one.seat) == seat && !out.contains(one));
            out.push(*own.ok_or_else(|| {
                invalid(field(), format!("seats that the line has, each once; not {name}"))
            })?);
        }
        let quantity = u32::try_from(out.len()).expect("few seats");
        if part.quantity.is_some_and(|asked| asked != quantity) {
            return Err(invalid(
                format!("lines[{place}].quantity"),
                "the number of seats, or absent",
            ));
        }
        part.quantity = Some(quantity);
        Ok(out)
    }
}

impl State {
    /// The seats that are to be set aside, or put on sale again: those that are named, or the best.
    pub(super) fn seats_to_block(
        &self,
        item: ItemIx,
        from: Option<LabelIx>,
        quantity: u32,
        named: Option<&[Name]>,
    ) -> Result<Option<Result<Vec<SeatNo>, LineRefusal>>, Refusal> {
        let Some(map) = self.seating.map(item) else {
            return match named {
                None => Ok(None),
                Some(_) => Err(invalid("seats", "absent: this item has only a total")),
            };
        };
        let seats = match named {
            None => WantedSeats::None,
            Some(wanted) => {
                let mut seats = Vec::with_capacity(wanted.len());
                for name in wanted {
                    let seat = map.find(name.as_str());
                    let seat =
                        seat.ok_or_else(|| Refusal::SeatNotFound { line: 0, seat: name.clone() })?;
                    seats.push(seat);
                }
                let mut sorted = seats.clone();
                sorted.sort_unstable();
                if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(invalid("seats", "each seat once"));
                }
                if seats.len() != quantity as usize {
                    return Err(invalid("quantity", "the number of seats, or absent"));
                }
                WantedSeats::Named(seats)
            }
        };
        let line = Wanted { item, quantity, from, seats };
        let (none, wish) = (InHold::new(), Wish { from_block: from, ..Wish::default() });
        let found = match &line.seats {
            WantedSeats::Named(seats) => self.named_seats(&line, seats, &none),
            _ => self.best_seats(&line, Some(&wish), &none, &none),
        };
        Ok(Some(found.map(|found| found.to_vec()).map_err(|lack| *lack)))
    }
}

fn all_of(hold: &Hold, line: u8) -> Vec<SeatOut> {
    hold.seats_out().into_iter().filter(|out| out.line == line).collect()
}
