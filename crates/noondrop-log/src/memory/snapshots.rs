//! Snapshots in memory, stored byte for byte as in a file, so that damage means the same.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::snapshot::{read_header, verified_payload, warn_damaged, write_whole};
use crate::{LogError, LogErrorKind, Position, SnapshotMeta, Snapshots};

type Key = (u64, [u8; 32]);

#[derive(Debug, Default)]
pub(super) struct MemorySnapshots {
    stored: Mutex<BTreeMap<Key, Vec<u8>>>,
}

impl MemorySnapshots {
    pub(super) fn damage(&self, position: Position, at: usize) {
        if let Some(stored) = self.lock().get_mut(&key(position)) {
            let at = at % stored.len();
            stored[at] ^= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<u8>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(position: Position) -> Key {
    (position.seq, position.digest)
}

fn read_meta(stored: &[u8]) -> io::Result<SnapshotMeta> {
    read_header(&mut &*stored, stored.len() as u64)
}

impl Snapshots for MemorySnapshots {
    fn list(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        let mut metas = Vec::new();
        for ((seq, digest), stored) in self.lock().iter().rev() {
            match read_meta(stored) {
                Ok(meta) => metas.push(meta),
                Err(error) => {
                    warn_damaged(&Position { seq: *seq, digest: *digest }, &error);
                }
            }
        }
        Ok(metas)
    }

    fn open(&self, meta: &SnapshotMeta) -> Result<Box<dyn Read + Send>, LogError> {
        let tried = format!("could not open the snapshot at {}", meta.position);
        let stored = self.lock().get(&key(meta.position)).cloned();
        let missing = || LogError::new(LogErrorKind::Failed, tried.clone());
        let stored = stored.ok_or_else(missing)?;
        let payload = verified_payload(Cursor::new(stored), meta);
        Ok(Box::new(payload.map_err(|error| LogError::io(tried, error))?))
    }

    fn write(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let mut stored = Vec::new();
        write_whole(meta, fill, &mut stored).map_err(|error| {
            LogError::io(format!("could not write the snapshot at {}", meta.position), error)
        })?;
        self.lock().insert(key(meta.position), stored);
        Ok(())
    }

    fn prune(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<(), LogError> {
        let mut stored = self.lock();
        stored.retain(|_, stored| read_meta(stored).is_ok_and(|meta| wanted(&meta)));
        while stored.len() > keep {
            stored.pop_first();
        }
        Ok(())
    }
}
