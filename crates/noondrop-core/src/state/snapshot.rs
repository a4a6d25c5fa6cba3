//! The state to bytes and back.
//!
//! A header in CBOR for what is small, then the dense records as they lie in memory, a chunk at a time. What follows
//! from the rest (indexes, queues, usage) is built again, and so is `state_sum`, which must come out as it was.
//! A snapshot is a cache of the log, never the truth: another format version is simply not read.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use minicbor::{Decode, Encode};
use smallvec::SmallVec;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

mod seats;

use self::seats::write_map;
use super::books::{ActorEntry, Books, Item, Sale, Shop};
use super::erase::Erasure;
use super::hold::{Extra, Payment};
use super::holds::{CreatingTurn, Record};
use super::keys::{KeyEntry, KeyStore, Keys};
use super::recount::rest_of_sum;
use super::texts::Texts;
use super::turn::Moment;
use super::{Buyer, LogIdentity, State};
use crate::chunked::Chunked;
use crate::fact::Settings;
use crate::ids::Digest16;
use crate::outcome::{Counts, HoldState, Line};
use crate::units::{HoldNo, ItemIx, LabelIx, SaleIx, Seq, ShopIx, Timestamp};

/// Rises with every change of what follows.
const VERSION: u32 = 3;
/// Records read or written at once.
const BATCH: usize = 4_096;
/// Longest texts of one hold, and longest recorded outcome; both are far shorter.
const SHORT_MAX: usize = 1 << 20;

/// Why a snapshot could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// Of another version of the program.
    Version,
    /// It ends early, or is damaged.
    Damaged,
    /// It was read, but is not the state that it says it is.
    Sum,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the snapshot is of another version",
            Self::Damaged => "the snapshot is damaged",
            Self::Sum => "the snapshot does not add up to the state that it names",
        })
    }
}

impl core::error::Error for SnapshotError {}

#[derive(Encode, Decode)]
struct Header {
    #[n(0)]
    version: u32,
    #[n(1)]
    log_id: Digest16,
    #[cbor(n(2), with = "minicbor::bytes")]
    secret: [u8; 32],
    #[n(3)]
    level: u16,
    #[n(4)]
    settings: Settings,
    #[n(5)]
    seq: Seq,
    #[n(6)]
    at: Timestamp,
    #[cbor(n(7), with = "minicbor::bytes")]
    sum: [u8; 16],
    #[cbor(n(8), with = "minicbor::bytes")]
    keys_sum: [u8; 16],
    #[n(9)]
    shops: Vec<Shop>,
    #[n(10)]
    sales: Vec<Sale>,
    #[n(11)]
    items: Vec<Item>,
    #[n(12)]
    counts: Vec<Counts>,
    #[n(13)]
    actors: Vec<ActorEntry>,
    #[n(14)]
    sizes: Sizes,
    #[n(15)]
    blocks: Vec<(ItemIx, LabelIx, u32)>,
    #[n(16)]
    sold_out_since: Vec<Option<Timestamp>>,
    #[n(17)]
    erased: Vec<(Digest16, Erasure)>,
}

impl Header {
    /// Whether what was read from outside points only to what is there.
    fn is_whole(&self) -> bool {
        let (shops, sales, items) = (self.shops.len(), self.sales.len(), self.items.len());
        let knows = |item: &Item| {
            let mut pools = item.draws.iter().chain(item.counts_against());
            pools.all(|pool| (pool.0 as usize) < items)
                && !item.draws.is_empty()
                && (item.sale.0 as usize) < sales
        };
        let labels = |item: ItemIx| {
            let sale = self.items.get(item.0 as usize).map(|item| item.sale.0 as usize);
            sale.and_then(|sale| self.sales.get(sale)).map_or(0, |sale| sale.labels().len())
        };
        let mut blocks = self.blocks.iter();
        let since = self.sold_out_since.iter().map(Option::is_some);
        self.counts.len() == items
            && since.eq(self.counts.iter().map(Counts::is_sold_out))
            && self.sales.iter().all(|sale| (sale.shop.0 as usize) < shops)
            && self.items.iter().all(knows)
            && blocks.all(|&(item, label, units)| units > 0 && usize::from(label.0) < labels(item))
    }
}

#[derive(Clone, Copy, Encode, Decode)]
struct Sizes {
    #[n(0)]
    records: u64,
    #[n(1)]
    turns: u64,
    #[n(2)]
    buyers: u64,
    #[n(3)]
    lines: u64,
    #[n(4)]
    extras: u64,
    #[n(5)]
    payments: u64,
    #[n(6)]
    successes: u64,
    #[n(7)]
    refusals: u64,
    #[n(8)]
    seat_maps: u64,
}

#[derive(Encode, Decode)]
struct PaymentEntry {
    #[n(0)]
    hold: HoldNo,
    #[n(1)]
    digest: Digest16,
    #[n(2)]
    text: String,
}

type Sink<'a> = &'a mut dyn FnMut(&[u8]);
type Source<'a> = &'a mut dyn FnMut(&mut [u8]) -> bool;

fn write_framed<T: Encode<()>>(sink: Sink<'_>, value: &T) {
    let bytes = minicbor::to_vec(value).expect("writing to a vector cannot fail");
    sink(&(bytes.len() as u64).to_le_bytes());
    sink(&bytes);
}

fn read_bytes(source: Source<'_>, most: u64) -> Result<Vec<u8>, SnapshotError> {
    let mut length = [0; 8];
    read_exact(source, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > most {
        return Err(SnapshotError::Damaged);
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| SnapshotError::Damaged)?];
    read_exact(source, &mut bytes)?;
    Ok(bytes)
}

fn read_exact(source: Source<'_>, bytes: &mut [u8]) -> Result<(), SnapshotError> {
    if source(bytes) { Ok(()) } else { Err(SnapshotError::Damaged) }
}

/// Bytes behind a length of 32 bits; never much memory for a length that is damaged.
fn read_short(source: Source<'_>, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let mut length = [0; 4];
    read_exact(source, &mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > SHORT_MAX {
        return Err(SnapshotError::Damaged);
    }
    bytes.resize(length, 0);
    read_exact(source, bytes)
}

fn read_framed<T: for<'b> Decode<'b, ()>>(source: Source<'_>) -> Result<T, SnapshotError> {
    let bytes = read_bytes(source, 1 << 30)?;
    minicbor::decode(&bytes).map_err(|_| SnapshotError::Damaged)
}

fn write_records<T: IntoBytes + Immutable>(sink: Sink<'_>, records: &Chunked<T>) {
    for chunk in records.chunks() {
        sink(chunk.as_bytes());
    }
}

fn read_records<T: FromBytes + IntoBytes + Clone>(
    source: Source<'_>,
    count: u64,
) -> Result<Chunked<T>, SnapshotError> {
    let mut records = Chunked::new();
    let mut left = usize::try_from(count).map_err(|_| SnapshotError::Damaged)?;
    while left > 0 {
        let many = left.min(BATCH);
        let mut batch = vec![T::new_zeroed(); many];
        read_exact(source, batch.as_mut_slice().as_mut_bytes())?;
        for record in batch {
            records.push(record);
        }
        left -= many;
    }
    Ok(records)
}

impl State {
    /// Writes the state, between turns.
    pub fn write_snapshot(&self, sink: &mut dyn FnMut(&[u8])) {
        let log = self.log.as_ref().expect("a state without a log is not worth a snapshot");
        let books = &self.books;
        let header = Header {
            version: VERSION,
            log_id: log.log_id,
            secret: log.secret,
            level: log.level,
            settings: self.settings,
            seq: self.turn.moment.seq,
            at: self.turn.moment.at,
            sum: self.sum.to_le_bytes(),
            keys_sum: self.keys.sum.to_le_bytes(),
            shops: books.shops.clone(),
            sales: books.sales.clone(),
            items: books.items.clone(),
            counts: books.counts.clone(),
            actors: books.actors.clone(),
            sizes: self.sizes(),
            blocks: books.blocks.iter().map(|(&(item, label), &n)| (item, label, n)).collect(),
            sold_out_since: books.sold_out_since.clone(),
            erased: self.erased.iter().map(|(&buyer, &erasure)| (buyer, erasure)).collect(),
        };
        write_framed(sink, &header);
        write_records(sink, &self.holds.records);
        write_records(sink, &self.holds.turns);
        write_records(sink, &self.buyers);
        for (no, lines) in &self.holds.lines {
            write_framed(sink, &(no, lines.as_slice()));
        }
        for (no, extra) in &self.holds.extras {
            write_framed(sink, &(no, &**extra));
        }
        for (&hold, paid) in &self.holds.payments {
            write_framed(
                sink,
                &PaymentEntry { hold, digest: paid.digest, text: paid.text.clone() },
            );
        }
        for (item, seated) in &self.seating.maps {
            write_map(sink, *item, &seated.map);
        }
        for no in (0..self.holds.next_no().0).map(HoldNo) {
            self.write_texts(sink, no);
        }
        write_keys(sink, &self.keys.successes);
        write_keys(sink, &self.keys.refusals);
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            records: self.holds.records.len() as u64,
            turns: self.holds.turns.len() as u64,
            buyers: self.buyers.len() as u64,
            lines: self.holds.lines.len() as u64,
            extras: self.holds.extras.len() as u64,
            payments: self.holds.payments.len() as u64,
            successes: self.keys.successes.known().count() as u64,
            refusals: self.keys.refusals.known().count() as u64,
            seat_maps: self.seating.maps.len() as u64,
        }
    }

    fn write_texts(&self, sink: Sink<'_>, no: HoldNo) {
        let packed = self.holds.packed_texts(no);
        sink(&u32::try_from(packed.len()).expect("a hold's texts are small").to_le_bytes());
        sink(packed);
    }

    /// Reads a state that [`Self::write_snapshot`] wrote. `source` fills a whole buffer, or says `false`.
    ///
    /// # Errors
    ///
    /// The snapshot is of no use; the log still is.
    pub fn read_snapshot(source: &mut dyn FnMut(&mut [u8]) -> bool) -> Result<Self, SnapshotError> {
        let header: Header = read_framed(source)?;
        if header.version != VERSION {
            return Err(SnapshotError::Version);
        }
        if !header.is_whole() {
            return Err(SnapshotError::Damaged);
        }
        let sizes = header.sizes;
        let (sum, keys_sum) =
            (u128::from_le_bytes(header.sum), u128::from_le_bytes(header.keys_sum));
        let mut state = Self::from_header(header);
        state.holds.records = read_records::<Record>(source, sizes.records)?;
        state.holds.turns = read_records::<CreatingTurn>(source, sizes.turns)?;
        state.buyers = read_records::<Buyer>(source, sizes.buyers)?;
        for _ in 0..sizes.lines {
            let (no, lines): (HoldNo, Vec<Line>) = read_framed(source)?;
            state.holds.lines.insert(no, SmallVec::from_vec(lines));
        }
        for _ in 0..sizes.extras {
            let (no, extra): (HoldNo, Extra) = read_framed(source)?;
            state.holds.extras.insert(no, Box::new(extra));
        }
        for _ in 0..sizes.payments {
            let paid: PaymentEntry = read_framed(source)?;
            state
                .holds
                .payments
                .insert(paid.hold, Payment { digest: paid.digest, text: paid.text });
        }
        for _ in 0..sizes.seat_maps {
            state.read_map(source)?;
        }
        state.read_texts(source, sizes.records)?;
        read_keys(source, &mut state.keys.successes, sizes.successes)?;
        read_keys(source, &mut state.keys.refusals, sizes.refusals)?;
        state.keys.sum = keys_sum;
        state.keys.start_turn();
        state.sum = sum;
        state.build_again()?;
        Ok(state)
    }

    fn from_header(header: Header) -> Self {
        let mut state = Self {
            log: Some(LogIdentity {
                log_id: header.log_id,
                secret: header.secret,
                level: header.level,
            }),
            settings: header.settings,
            keys: Keys::default(),
            newest_erasure: header.erased.iter().map(|(_, one)| one.seq).max().unwrap_or_default(),
            erased: header.erased.into_iter().collect(),
            ..Self::default()
        };
        state.turn.moment = Moment { seq: header.seq, at: header.at, nonce: [0; 16] };
        let books: &mut Books = &mut state.books;
        for (ix, shop) in (0..).zip(header.shops) {
            books.set_shop(ShopIx(ix), Some(shop));
        }
        for (ix, sale) in (0..).zip(header.sales) {
            books.set_sale(SaleIx(ix), Some(sale));
        }
        for (ix, item) in (0..).zip(header.items) {
            books.set_item(ItemIx(ix), Some(item));
            state.lapses.add_pool();
        }
        for sale in (0..books.next_sale().0).map(SaleIx) {
            books.count_limits(sale);
        }
        books.counts = header.counts;
        books.sold_out_since = header.sold_out_since;
        books.blocks =
            header.blocks.into_iter().map(|(item, label, n)| ((item, label), n)).collect();
        for actor in header.actors {
            books.add_actor(actor);
        }
        state
    }

    fn read_texts(&mut self, source: Source<'_>, count: u64) -> Result<(), SnapshotError> {
        let mut packed = Vec::new();
        for no in (0..count).map(HoldNo) {
            read_short(source, &mut packed)?;
            if !Texts::are_whole(&packed) {
                return Err(SnapshotError::Damaged);
            }
            self.holds.add_packed_texts(no, &packed);
        }
        Ok(())
    }

    /// Indexes, queues and usage; and the sum, to compare.
    fn build_again(&mut self) -> Result<(), SnapshotError> {
        for (ix, buyer) in (0..).zip(self.buyers.iter()) {
            self.buyer_index.insert(Digest16(buyer.digest).hash64(), ix);
        }
        let mut holds_sum = 0u128;
        for no in (0..self.holds.next_no().0).map(HoldNo) {
            if !self.holds.is_whole(no, self.books.sales.len(), self.books.items.len()) {
                return Err(SnapshotError::Damaged);
            }
            holds_sum = holds_sum.wrapping_add(self.holds.sum(no));
            self.queue_again(no);
        }
        let sum = holds_sum.wrapping_add(rest_of_sum(self));
        if sum == self.sum { Ok(()) } else { Err(SnapshotError::Sum) }
    }

    fn queue_again(&mut self, no: HoldNo) {
        let sale = self.holds.sale_of(no);
        let live = self.holds.is_live_until(no);
        if live.is_some() {
            self.books.live[sale.0 as usize] += 1;
        }
        if let (Some(end), Some((item, quantity))) = (live, self.holds.simple_held(no)) {
            for draw in self.books.draws(item, quantity) {
                self.lapses.push(draw.pool, end, no);
            }
        }
        if let Some((item, units)) = self.holds.simple_claimed(no) {
            self.books.claimed[item.0 as usize] += u64::from(units);
        }
        let counts_buyers = self.books.sales[sale.0 as usize].counts_buyers();
        if self.holds.is_plain(no) && !counts_buyers {
            return;
        }
        let hold = self.holds.load(no).expect("it was just read");
        if self.holds.has_lines(no) {
            for line in &hold.lines {
                self.books.claimed[line.item.0 as usize] +=
                    u64::from(line.held) + u64::from(line.sold);
            }
        }
        if self.holds.has_lines(no) && hold.state == HoldState::Active {
            for line in &hold.lines {
                for draw in self.books.draws(line.item, line.held) {
                    self.lapses.push(draw.pool, hold.expires_at, no);
                }
            }
        }
        if counts_buyers {
            for (key, units) in self.usage_of(&hold) {
                *self.usage.entry(key).or_default() += units;
            }
        }
        if let Some(reference) = hold.reference().filter(|_| hold.keeps_reference()) {
            self.references.insert(reference, no);
        }
    }
}

fn write_keys(sink: Sink<'_>, store: &KeyStore) {
    for (entry, chunk) in store.known() {
        sink(entry.as_bytes());
        sink(&chunk.newest.0.to_le_bytes());
        let blob = entry.blob(chunk);
        sink(&u32::try_from(blob.len()).expect("a recorded outcome is small").to_le_bytes());
        sink(blob);
    }
}

fn read_keys(source: Source<'_>, store: &mut KeyStore, count: u64) -> Result<(), SnapshotError> {
    let mut blob = Vec::new();
    for _ in 0..count {
        let mut entry = KeyEntry::new_zeroed();
        read_exact(source, entry.as_mut_bytes())?;
        let mut newest = [0; 8];
        read_exact(source, &mut newest)?;
        read_short(source, &mut blob)?;
        let newest = Timestamp(u64::from_le_bytes(newest));
        store.restore(entry, &blob, newest).ok_or(SnapshotError::Damaged)?;
    }
    Ok(())
}

const _: () = assert!(core::mem::size_of::<Record>() == 50, "plan memory anew");
