//! The bytes of a stored snapshot: a header, the payload, and a trailer that seals both.
//!
//! ```text
//! header   magic 8 · format 2 · level 2 · seq 8 · digest 32 · state_sum 16 · checksum 8
//! payload  any number of bytes
//! trailer  length of the payload 8 · blake3 over all bytes before the trailer 32
//! ```
//!
//! Numbers are little-endian. The header has a checksum of its own, so that a list can be made
//! without reading payloads. The length stands behind the payload, because it is not known before.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::SnapshotMeta;
use crate::Position;

const MAGIC: [u8; 8] = *b"NOONSNAP";
const FORMAT: u16 = 1;

/// The size of the header, its checksum included.
const HEADER_BYTES: usize = 76;
const HEADER_CHECKED_BYTES: usize = 68;
const TRAILER_BYTES: u64 = 40;

/// How much of a payload is checked at a time.
const CHECK_BYTES: usize = 256 << 10;

/// Writes header, payload and trailer.
pub(crate) fn write_whole(
    meta: &SnapshotMeta,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sealing = Sealing { out, hasher: blake3::Hasher::new(), bytes: 0 };
    sealing.write_all(&header(meta))?;
    fill(&mut sealing)?;
    let payload_bytes = sealing.bytes - HEADER_BYTES as u64;
    let checksum = sealing.hasher.finalize();
    out.write_all(&payload_bytes.to_le_bytes())?;
    out.write_all(checksum.as_bytes())?;
    out.flush()
}

fn header(meta: &SnapshotMeta) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend(FORMAT.to_le_bytes());
    header.extend(meta.level.to_le_bytes());
    header.extend(meta.position.seq.to_le_bytes());
    header.extend(meta.position.digest);
    header.extend(meta.state_sum);
    header.extend(header_checksum(&header));
    header
}

fn header_checksum(checked: &[u8]) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(checked).as_bytes()[..8]);
    first
}

/// Reads the header of a stored snapshot that is `total_bytes` long, and checks that alone.
pub(crate) fn read_header(from: &mut dyn Read, total_bytes: u64) -> io::Result<SnapshotMeta> {
    let overhead = HEADER_BYTES as u64 + TRAILER_BYTES;
    let bytes = total_bytes.checked_sub(overhead).ok_or_else(|| damaged("it is cut short"))?;
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let (checked, checksum) = header.split_at(HEADER_CHECKED_BYTES);
    if header_checksum(checked) != checksum {
        return Err(damaged("its header has a wrong checksum"));
    }
    parse_header(checked, bytes)
}

fn parse_header(mut rest: &[u8], bytes: u64) -> io::Result<SnapshotMeta> {
    let rest = &mut rest;
    if take::<8>(rest)? != MAGIC {
        return Err(damaged("it is not a snapshot"));
    }
    if u16::from_le_bytes(take(rest)?) != FORMAT {
        // Not damage in truth, but to be treated alike: pass over it and replay more.
        return Err(damaged("its format is not known to this version"));
    }
    let level = u16::from_le_bytes(take(rest)?);
    let seq = u64::from_le_bytes(take(rest)?);
    let position = Position { seq, digest: take(rest)? };
    Ok(SnapshotMeta { position, level, state_sum: take(rest)?, bytes })
}

fn take<const N: usize>(rest: &mut &[u8]) -> io::Result<[u8; N]> {
    let (first, others) = rest.split_first_chunk().ok_or_else(|| damaged("it is cut short"))?;
    *rest = others;
    Ok(*first)
}

/// Checks a stored snapshot from its first byte to its last, then hands out its payload.
pub(crate) fn verified_payload<S>(mut stored: S, expected: &SnapshotMeta) -> io::Result<io::Take<S>>
where
    S: Read + Seek,
{
    let total_bytes = stored.seek(SeekFrom::End(0))?;
    stored.rewind()?;
    let meta = read_header(&mut stored, total_bytes)?;
    if meta != *expected {
        return Err(damaged("it is not the snapshot that was asked for"));
    }
    stored.rewind()?;
    check_seal(&mut stored, total_bytes)?;
    stored.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
    Ok(stored.take(meta.bytes))
}

fn check_seal(stored: &mut dyn Read, total_bytes: u64) -> io::Result<()> {
    let sealed_bytes = total_bytes - TRAILER_BYTES;
    let checksum = hash_exactly(stored, sealed_bytes)?;
    let mut length = [0; 8];
    let mut seal = [0; 32];
    stored.read_exact(&mut length)?;
    stored.read_exact(&mut seal)?;
    if u64::from_le_bytes(length) != sealed_bytes - HEADER_BYTES as u64 {
        return Err(damaged("its length is not the one it was written with"));
    }
    if checksum.as_bytes() != &seal {
        return Err(damaged("it has a wrong checksum"));
    }
    Ok(())
}

fn hash_exactly(stored: &mut dyn Read, bytes: u64) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; CHECK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(CHECK_BYTES).min(CHECK_BYTES);
        stored.read_exact(&mut piece[..wanted])?;
        hasher.update(&piece[..wanted]);
        left -= wanted as u64;
    }
    Ok(hasher.finalize())
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Passes bytes on and keeps their checksum.
struct Sealing<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Write for Sealing<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    /// Nothing to do before the trailer: whoever fills the payload must not be able to force
    /// small pieces, each with a sync of its own.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn meta(bytes: u64) -> SnapshotMeta {
        let position = Position { seq: 7, digest: [3; 32] };
        SnapshotMeta { position, level: 2, state_sum: [5; 16], bytes }
    }

    fn stored(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_whole(&meta(0), &mut |out| out.write_all(payload), &mut out).unwrap();
        out
    }

    #[test]
    fn a_payload_comes_back_as_it_was() {
        for payload in [&b""[..], b"x", &vec![9; 300_000]] {
            let expected = meta(payload.len() as u64);
            let mut reader = verified_payload(Cursor::new(stored(payload)), &expected).unwrap();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, payload);
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let whole = stored(b"the state");
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            assert!(verified_payload(Cursor::new(flipped), &meta(9)).is_err(), "flipped at {at}");
            let cut = whole[..at].to_vec();
            assert!(verified_payload(Cursor::new(cut), &meta(9)).is_err(), "cut at {at}");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(verified_payload(Cursor::new(longer), &meta(10)).is_err());
    }
}
