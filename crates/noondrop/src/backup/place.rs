//! The directory of a copy: `noondrop.sqlite` in it, which every reading verb finds by `--data`, and its lock.
//!
//! That it is a copy stands in the file itself (see `noondrop_log::sqlite::SqliteCopy`); `serve` refuses it there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use noondrop_log::sqlite::{OpenError, SqliteCopy};

use crate::cli::Failure;
use crate::serve::LOG_FILE;

/// What becomes of a copy that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// It is gone on with.
    GoOn,
    /// It is moved into a directory of its own beside the new one.
    SetAside,
}

/// A copy that is ready to be written.
#[derive(Debug)]
pub struct Opened {
    /// The copy.
    pub copy: SqliteCopy,
    /// Where an earlier one was put.
    pub set_aside: Option<PathBuf>,
}

/// Opens the copy in a directory, which is made if it is not there.
pub fn open(directory: &Path, store: &Path, present: Present) -> Result<Opened, Failure> {
    make(directory)?;
    refuse_the_store(directory, store)?;
    let copy = open_copy(directory)?;
    let is_empty = copy.head().seq == 0;
    if present == Present::GoOn || is_empty {
        return Ok(Opened { copy, set_aside: None });
    }
    let aside = directory.join(format!("until-{}", copy.head()));
    fs::create_dir(&aside)
        .map_err(|error| format!("could not make {}: {error}", aside.display()))?;
    let copy = copy.begin_another(&aside.join(LOG_FILE))?;
    Ok(Opened { copy, set_aside: Some(aside) })
}

/// The file of the copy in a directory, for who reads it.
pub fn find(directory: &Path) -> Result<PathBuf, Failure> {
    let file = directory.join(LOG_FILE);
    if file.is_file() {
        return Ok(file);
    }
    Err(format!("there is no backup in {}: it has no {LOG_FILE}", directory.display()).into())
}

fn make(directory: &Path) -> Result<(), Failure> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("could not make {}: {error}", directory.display()).into())
        }
        _ if directory.is_dir() => Ok(()),
        _ => Err(format!("{} is not a directory", directory.display()).into()),
    }
}

fn refuse_the_store(directory: &Path, store: &Path) -> Result<(), Failure> {
    let true_name = |path: &Path| {
        path.canonicalize().map_err(|error| format!("could not find {}: {error}", path.display()))
    };
    let (directory, store) = (true_name(directory)?, true_name(store)?);
    if store.parent() == Some(&directory) {
        let place = directory.display();
        return Err(format!("{place} is the store itself; a backup needs a place elsewhere").into());
    }
    Ok(())
}

fn open_copy(directory: &Path) -> Result<SqliteCopy, Failure> {
    SqliteCopy::open(directory.join(LOG_FILE)).map_err(|error| match error {
        OpenError::Owned { .. } => {
            format!("somebody writes to {} already", directory.display()).into()
        }
        OpenError::Failed(error) => format!(
            "could not open or begin a copy in {}: {}",
            directory.display(),
            crate::cli::chain(&error)
        )
        .into(),
        error => error.into(),
    })
}
