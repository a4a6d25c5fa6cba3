//! Private texts of holds, packed; outside `state_sum`, because they can be erased.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::holds::index;
use crate::chunked::Chunked;
use crate::fact::Private;
use crate::outcome::HoldTexts;
use crate::units::HoldNo;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Texts {
    chunks: Vec<Vec<u8>>,
    places: Chunked<u32>,
}

/// Holds whose texts share one buffer.
const TEXTS_PER_CHUNK: u64 = 1_024;

/// Three texts that are not there.
const ABSENT: [u8; 3] = [0; 3];

/// What an erasure took from one hold; to be put back if it is undone.
#[derive(Clone, Debug)]
pub(super) struct ErasedTexts {
    pub(super) no: HoldNo,
    pub(super) packed: Option<Vec<u8>>,
    pub(super) payment: Option<String>,
}

impl Texts {
    pub(super) fn push(&mut self, no: HoldNo, private: Option<&Private>) {
        let bytes = self.chunk_for(no);
        let place = u32::try_from(bytes.len()).expect("1,024 holds' texts fit 4 GiB");
        let parts = [
            private.and_then(|p| p.buyer.as_deref()),
            private.and_then(|p| p.reference.as_deref()),
            private.and_then(|p| p.metadata.as_deref()),
        ];
        for part in parts {
            // Length + 1, so that "absent" and "empty" differ; 7 bits a byte, because most are short.
            let mut length = part.map_or(0, |text| text.len() + 1);
            while length >= 128 {
                bytes.push(u8::try_from(length & 127).expect("seven bits") | 128);
                length >>= 7;
            }
            bytes.push(u8::try_from(length).expect("below 128"));
            bytes.extend_from_slice(part.unwrap_or_default().as_bytes());
        }
        self.places.push(place);
    }

    pub(super) fn packed(&self, no: HoldNo) -> &[u8] {
        let packed = &self.chunks[index(HoldNo(no.0 / TEXTS_PER_CHUNK))][self.place(no)];
        // Where texts were erased, zeros fill their place: three absent texts, and more.
        if packed.starts_with(&ABSENT) { &packed[..ABSENT.len()] } else { packed }
    }

    fn place(&self, no: HoldNo) -> Range<usize> {
        let chunk = &self.chunks[index(HoldNo(no.0 / TEXTS_PER_CHUNK))];
        let from = self.places[index(no)] as usize;
        let last = (no.0 + 1).is_multiple_of(TEXTS_PER_CHUNK);
        let next = self.places.get(index(no) + 1).filter(|_| !last);
        from..next.map_or(chunk.len(), |&next| next as usize)
    }

    /// Overwrites a hold's texts in their place. What was there, if there was something.
    pub(super) fn erase(&mut self, no: HoldNo) -> Option<Vec<u8>> {
        let place = self.place(no);
        let bytes = &mut self.chunks[index(HoldNo(no.0 / TEXTS_PER_CHUNK))][place];
        let known = !bytes.starts_with(&ABSENT);
        known.then(|| {
            let erased = bytes.to_vec();
            bytes.fill(0);
            erased
        })
    }

    /// Puts back what [`Self::erase`] gave.
    pub(super) fn restore(&mut self, no: HoldNo, packed: &[u8]) {
        let place = self.place(no);
        self.chunks[index(HoldNo(no.0 / TEXTS_PER_CHUNK))][place].copy_from_slice(packed);
    }

    pub(super) fn push_packed(&mut self, no: HoldNo, packed: &[u8]) {
        let bytes = self.chunk_for(no);
        let place = u32::try_from(bytes.len()).expect("1,024 holds' texts fit 4 GiB");
        bytes.extend_from_slice(packed);
        self.places.push(place);
    }

    fn chunk_for(&mut self, no: HoldNo) -> &mut Vec<u8> {
        let chunk = index(HoldNo(no.0 / TEXTS_PER_CHUNK));
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::new());
        }
        &mut self.chunks[chunk]
    }

    pub(super) fn pop(&mut self, no: HoldNo) {
        let place = self.places.pop().expect("each hold has a place for its texts");
        let chunk = index(HoldNo(no.0 / TEXTS_PER_CHUNK));
        self.chunks[chunk].truncate(place as usize);
    }

    pub(super) fn get(&self, no: HoldNo) -> HoldTexts {
        let chunk = &self.chunks[index(HoldNo(no.0 / TEXTS_PER_CHUNK))];
        let mut rest = &chunk[self.places[index(no)] as usize..];
        let mut next = || unpack(&mut rest).expect("three parts were written").map(String::from);
        HoldTexts { buyer: next().unwrap_or_default(), reference: next(), metadata: next() }
    }

    /// Whether what was read from outside is three texts, and nothing else.
    pub(super) fn are_whole(mut packed: &[u8]) -> bool {
        (0..3).all(|_| unpack(&mut packed).is_ok()) && packed.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum::<usize>() + self.places.memory_bytes()
    }
}

/// Bytes that are not what [`Texts::push`] writes.
#[derive(Debug)]
struct Torn;

/// The next text, or its absence.
fn unpack<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a str>, Torn> {
    let (mut length, mut shift) = (0usize, 0);
    loop {
        let (&byte, after) = rest.split_first().ok_or(Torn)?;
        *rest = after;
        length |= usize::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            break;
        }
        if shift > 28 {
            return Err(Torn);
        }
    }
    let Some(length) = length.checked_sub(1) else {
        return Ok(None);
    };
    let (text, after) = rest.split_at_checked(length).ok_or(Torn)?;
    *rest = after;
    core::str::from_utf8(text).map(Some).map_err(|_| Torn)
}
