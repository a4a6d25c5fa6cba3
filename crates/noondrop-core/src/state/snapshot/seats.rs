//! Seat maps to bytes and back: each seat as it was added, and its state.

use minicbor::{Decode, Encode};

use super::{Sink, SnapshotError, Source, read_framed, write_framed};
use crate::seats::{SeatDef, SeatMap, SeatNo, SeatState};
use crate::state::State;
use crate::state::seating::Seated;
use crate::units::{HoldNo, ItemIx, LabelIx};

#[derive(Encode, Decode)]
struct SeatEntry {
    #[n(0)]
    def: SeatDef,
    #[n(1)]
    planned: bool,
    #[n(2)]
    owner: Option<HoldNo>,
    #[n(3)]
    block: Option<LabelIx>,
}

impl State {
    pub(super) fn read_map(&mut self, source: Source<'_>) -> Result<(), SnapshotError> {
        let (item, seats): (ItemIx, u32) = read_framed(source)?;
        let mut map = SeatMap::new();
        for _ in 0..seats {
            let SeatEntry { def, planned, owner, block } = read_framed(source)?;
            let seat = map.add(&def).map_err(|_| SnapshotError::Damaged)?;
            if planned && owner.is_none() && block.is_none() {
                continue;
            }
            let stored = owner.is_none_or(|no| no.0 != u64::MAX)
                && block.is_none_or(|label| label.0 != u16::MAX);
            if !stored {
                return Err(SnapshotError::Damaged);
            }
            map.set(seat, SeatState { planned, owner, block });
        }
        let known = self.books.items.get(item.0 as usize).is_some_and(|item| item.seated);
        if !known {
            return Err(SnapshotError::Damaged);
        }
        let at = self.turn.moment.seq;
        self.seating.maps.insert(item, Seated::read(map, at));
        Ok(())
    }
}

pub(super) fn write_map(sink: Sink<'_>, item: ItemIx, map: &SeatMap) {
    let seats = u32::try_from(map.len()).expect("an item has few enough seats");
    write_framed(sink, &(item, seats));
    for seat in (0..seats).map(SeatNo) {
        let def = map.def(seat).expect("seats are dense");
        let SeatState { planned, owner, block } = map.state(seat).expect("seats are dense");
        write_framed(sink, &SeatEntry { def, planned, owner, block });
    }
}
