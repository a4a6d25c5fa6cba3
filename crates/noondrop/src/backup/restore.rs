//! From a copy to a log that goes on.
//!
//! The log is made under another name, checked as a whole, told by a fact that it was restored, and only then given its
//! name. So whatever interrupts it, there is a restored log or there is none.
//!
//! Ids and fences stay fresh (RULES R6): an id carries random bits of its turn, so no hold of the lost rows has the id of
//! a new one; and log time, from which fences come, stands at the restore or after before anything else is decided.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noondrop_core::{Digest16, LogRestored, Seq, Settings, State};
use noondrop_engine::{EngineOptions, Sequencer, SystemClock, SystemEntropy};
use noondrop_log::sqlite::{SqliteCopy, SqliteLog, SqliteOpener, SqliteOptions};
use noondrop_log::{LogOpener, Position, PositionRef, Throttle};

use super::{copy as copy_rows, place};
use crate::audit::{Progress, Verdict, audit};
use crate::cli::Failure;
use crate::serve::LOG_FILE;

/// What the directory begins with in which the log is made before it has its name.
const UNFINISHED: &str = ".noondrop-restore-";

/// What a restore did.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The file of the log.
    pub path: PathBuf,
    /// What the audit of the copy found; its head is the last row that was restored.
    pub verdict: Verdict,
    /// Where the log stands now: after the fact about it, and after what lapsed since.
    pub to: Position,
}

/// Checks a copy as a whole and makes a log of it in a data directory that has none. Who was `erased` is erased again: the fact
/// of it may be among the rows that the copy does not have.
pub fn restore(
    from: &Path,
    data: &Path,
    expect: Option<PositionRef>,
    erased: Vec<Digest16>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, Failure> {
    let copy = place::find(from)?;
    SqliteCopy::mend(&copy)?;
    refuse_what_is_there(data)?;
    let (verdict, state) = check(&copy, expect, progress)?;
    if !state.is_started() {
        return Err(format!("the backup in {} is empty", from.display()).into());
    }
    fs::create_dir_all(data).map_err(|error| could_not("make", data, &error))?;
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(data)
        .map_err(|error| could_not("write to", data, &error))?;
    let made = unfinished.path().join(LOG_FILE);
    fill(&copy, &made, verdict.head)?;
    let to = go_on(&made, verdict.head, state.settings(), erased)?;
    let path = data.join(LOG_FILE);
    give_its_name(&made, &path)?;
    Ok(Restored { path, verdict, to })
}

fn could_not(what: &str, path: &Path, error: &io::Error) -> Failure {
    format!("could not {what} {}: {error}", path.display()).into()
}

/// Not only the log: a write-ahead log or a last answered position of another history would be worse than none.
fn refuse_what_is_there(data: &Path) -> Result<(), Failure> {
    let entries = match fs::read_dir(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| could_not("read", data, &error))?,
    };
    for entry in entries {
        let name = entry.map_err(|error| could_not("read", data, &error))?.file_name();
        if name.to_string_lossy().starts_with(LOG_FILE) {
            return Err(format!(
                "{} has {} already; a restore needs a data directory without a log: move the old one away and keep it",
                data.display(),
                name.to_string_lossy()
            )
            .into());
        }
    }
    Ok(())
}

fn check(
    copy: &Path,
    expect: Option<PositionRef>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Verdict, State), Failure> {
    let mut reader = SqliteOpener::at(copy, Arc::default())?.reader()?;
    Ok(audit(&mut *reader, expect, progress)?)
}

/// The rows that were checked, chained once more, in a file that then is a log.
fn fill(copy: &Path, made: &Path, checked: Position) -> Result<(), Failure> {
    let mut reader = SqliteOpener::at(copy, Arc::default())?.reader()?;
    let mut log = SqliteCopy::open(made)?;
    let throttle = Throttle::with_pause(Duration::ZERO);
    copy_rows::copy(&mut *reader, &mut log, &throttle, &mut |_| {})?;
    if log.head() != checked {
        return Err("the backup changed while it was restored; is one running?".into());
    }
    Ok(log.into_log()?)
}

/// Writes that the log was restored. This also lets everything lapse that is due by now: after it no turn is at a time
/// before the restore, and no fence below those that the lost rows gave out.
fn go_on(
    made: &Path,
    checked: Position,
    settings: Settings,
    erased: Vec<Digest16>,
) -> Result<Position, Failure> {
    let log = SqliteLog::open(SqliteOptions::new(made))?;
    let options = EngineOptions {
        settings,
        restored: Some(LogRestored { after: Seq(checked.seq) }),
        erased,
        ..EngineOptions::default()
    };
    let sequencer = Sequencer::recover(log, SystemClock, SystemEntropy::default(), options)?;
    Ok(sequencer.position())
}

/// The log is one file by now. A link never replaces what somebody else made meanwhile.
fn give_its_name(made: &Path, path: &Path) -> Result<(), Failure> {
    let mut tail = made.as_os_str().to_owned();
    tail.push("-wal");
    if fs::metadata(&tail).is_ok_and(|tail| tail.len() > 0) {
        return Err("the restored log is not whole in its main file; is the disk full?".into());
    }
    fs::hard_link(made, path).map_err(|error| could_not("make", path, &error))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| could_not("sync", directory, &error))
}
