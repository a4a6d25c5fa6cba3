//! Up to which row erased texts are surely gone from this database, in a small file beside it.
//!
//! It is about the file and not about the history: a copy of the log from before has the same rows and the texts. A
//! restored or copied log comes without it, and its erasures are done again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::snapshot::sync_parent;
use crate::{GENESIS, LogError, Position};

const MAGIC: [u8; 8] = *b"NOONERA1";
/// Magic 8 · seq 8 · digest 32 · checksum 16.
const BYTES: usize = 64;
const CHECKED: usize = 48;

/// What the file says; genesis where there is none or it is not whole: then all is done again.
pub(super) fn read(path: &Path) -> Result<Position, LogError> {
    match fs::read(path) {
        Ok(bytes) => Ok(decode(&bytes).unwrap_or(GENESIS)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(GENESIS),
        Err(error) => Err(LogError::io(format!("could not read {}", path.display()), error)),
    }
}

/// Notes a position, durably, in place of the one before.
pub(super) fn write(path: &Path, through: Position) -> Result<(), LogError> {
    let unfinished = path.with_extension("erased-unfinished");
    let written = || -> io::Result<()> {
        let mut file = File::create(&unfinished)?;
        file.write_all(&encode(through))?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        sync_parent(path)
    };
    written().map_err(|error| LogError::io(format!("could not write {}", path.display()), error))
}

fn encode(position: Position) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&position.seq.to_le_bytes());
    bytes[16..CHECKED].copy_from_slice(&position.digest);
    let checksum = blake3::hash(&bytes[..CHECKED]);
    bytes[CHECKED..].copy_from_slice(&checksum.as_bytes()[..BYTES - CHECKED]);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Position> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let seq = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
    let position = Position { seq, digest: bytes[16..CHECKED].try_into().ok()? };
    (*bytes == encode(position)).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_noted_over_the_one_before_and_a_torn_file_means_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.sqlite.erased");
        assert_eq!(read(&path).unwrap(), GENESIS);
        for seq in [3, 9] {
            let position = Position { seq, digest: [7; 32] };
            write(&path, position).unwrap();
            assert_eq!(read(&path).unwrap(), position);
        }
        fs::write(&path, &fs::read(&path).unwrap()[..40]).unwrap();
        assert_eq!(read(&path).unwrap(), GENESIS);
    }
}
