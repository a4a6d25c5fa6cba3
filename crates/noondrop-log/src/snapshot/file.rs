//! Snapshots as files in a directory of their own, written gently and made visible by a rename.
//!
//! Bulk bytes must not stand in the way of the log: they go out in pieces of 1 MiB, each synced
//! and followed by the shared throttle's pause.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{SnapshotMeta, Snapshots, read_header, verified_payload, warn_damaged, write_whole};
use crate::{LogError, PIECE_BYTES, Throttle};

const EXTENSION: &str = "snap";
const EXTENSION_UNFINISHED: &str = "unfinished";
const NAME_UNFINISHED: &str = "next.unfinished";

/// A directory of snapshot files. It is created with the first snapshot.
#[derive(Debug)]
pub struct FileSnapshots {
    directory: PathBuf,
    throttle: Arc<Throttle>,
    /// One write or prune at a time, so that no prune deletes what is being written.
    changing: Mutex<()>,
}

impl FileSnapshots {
    /// The snapshots in `directory`, written no faster than `throttle` allows.
    pub fn new(directory: impl Into<PathBuf>, throttle: Arc<Throttle>) -> Self {
        Self { directory: directory.into(), throttle, changing: Mutex::new(()) }
    }

    /// Where a snapshot lies. Its name says its position; what counts is the header.
    pub fn path(&self, meta: &SnapshotMeta) -> PathBuf {
        let digest = blake3::Hash::from_bytes(meta.position.digest).to_hex();
        let name = format!("{}-{}.{EXTENSION}", meta.position.seq, &digest[..8]);
        self.directory.join(name)
    }

    fn create_directory(&self) -> io::Result<()> {
        if self.directory.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&self.directory)?;
        sync_parent(&self.directory)
    }

    fn write_file(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.create_directory()?;
        let unfinished = self.directory.join(NAME_UNFINISHED);
        let written = self
            .write_unfinished(&unfinished, meta, fill)
            .and_then(|()| fs::rename(&unfinished, self.path(meta)))
            .and_then(|()| sync_directory(&self.directory));
        if written.is_err() {
            // It takes room that a full disk needs. If this fails too, `prune` finds it later.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_unfinished(
        &self,
        path: &Path,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let created = File::create(path)?;
        let mut gentle = Gentle { file: created, throttle: &self.throttle, piece: Vec::new() };
        write_whole(meta, fill, &mut gentle)?;
        gentle.file.sync_all()
    }

    fn files(&self, extension: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.filter(|path| !matches!(path, Ok(path) if !has(path, extension))).collect()
    }

    /// Every file that looks like a snapshot, with what its header says if it can be read.
    fn found(&self) -> io::Result<Vec<(PathBuf, io::Result<SnapshotMeta>)>> {
        let files = self.files(EXTENSION)?;
        Ok(files.into_iter().map(|path| (path.clone(), self.read_meta(&path))).collect())
    }

    fn read_meta(&self, path: &Path) -> io::Result<SnapshotMeta> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let meta = read_header(&mut file, bytes)?;
        if self.path(&meta) == path {
            return Ok(meta);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "its name is not that of its position"))
    }
}

impl Snapshots for FileSnapshots {
    fn list(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        let found = self.found().map_err(|e| LogError::io("could not list the snapshots", e))?;
        let mut metas = Vec::new();
        for (path, meta) in found {
            match meta {
                Ok(meta) => metas.push(meta),
                Err(error) => warn_damaged(&path.display(), &error),
            }
        }
        metas.sort_by_key(|meta| std::cmp::Reverse(meta.position.seq));
        Ok(metas)
    }

    fn open(&self, meta: &SnapshotMeta) -> Result<Box<dyn Read + Send>, LogError> {
        let payload =
            File::open(self.path(meta)).and_then(|file| verified_payload(file, meta)).map_err(
                |e| LogError::io(format!("could not open the snapshot at {}", meta.position), e),
            )?;
        Ok(Box::new(io::BufReader::with_capacity(PIECE_BYTES, payload)))
    }

    fn write(
        &self,
        meta: &SnapshotMeta,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        self.write_file(meta, fill).map_err(|e| {
            LogError::io(format!("could not write the snapshot at {}", meta.position), e)
        })
    }

    fn prune(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> Result<(), LogError> {
        self.prune_files(keep, wanted)
            .map_err(|e| LogError::io("could not delete old snapshots", e))
    }
}

impl FileSnapshots {
    /// Damaged files go first: they do not count as kept, and they help nobody.
    fn prune_files(
        &self,
        keep: usize,
        wanted: &mut dyn FnMut(&SnapshotMeta) -> bool,
    ) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut doomed = self.files(EXTENSION_UNFINISHED)?;
        let mut whole = Vec::new();
        for (path, meta) in self.found()? {
            match meta {
                Ok(meta) if wanted(&meta) => whole.push((meta.position.seq, path)),
                Ok(_) => doomed.push(path),
                Err(error) if is_damage(&error) => doomed.push(path),
                Err(_unreadable_now) => {}
            }
        }
        whole.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        doomed.extend(whole.into_iter().skip(keep).map(|(_, path)| path));
        doomed.into_iter().try_for_each(fs::remove_file)
    }
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn has(path: &Path, extension: &str) -> bool {
    path.extension() == Some(OsStr::new(extension))
}

/// Makes a rename or a new file in `directory` survive a power failure.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// As [`sync_directory`], for the directory that `path` lies in.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Writes a file piece by piece, each synced and paid for before the next.
struct Gentle<'a> {
    file: File,
    throttle: &'a Throttle,
    piece: Vec<u8>,
}

impl Gentle<'_> {
    fn write_piece(&mut self) -> io::Result<()> {
        self.file.write_all(&self.piece)?;
        self.file.sync_data()?;
        self.throttle.wait(self.piece.len());
        self.piece.clear();
        Ok(())
    }
}

impl Write for Gentle<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let taken = buffer.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&buffer[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.write_piece()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() { Ok(()) } else { self.write_piece() }
    }
}
