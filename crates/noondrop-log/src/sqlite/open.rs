//! From files to a log that may be answered from: the steps of a start and of a recovery.
//!
//! The order matters. The last answered position is compared before anything is changed, so that
//! a refused log is left as it was found, damaged tail and all, for a person to look at.

use rusqlite::Connection;

use super::acknowledged::{Acknowledged, Remembered};
use super::error::failed;
use super::log::Loss;
use super::options::Files;
use super::{OpenError, checkpoint, connection, rows};
use crate::{GENESIS, LogError, Position};

/// A database of which all that can be read is durable.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) head: Position,
    pub(super) loss: Option<Loss>,
}

/// What must still be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The last answered position, if one is remembered.
    pub(super) acknowledged: Position,
    /// Whether to go on without it.
    pub(super) accept_loss: bool,
}

/// Opens the database, checks that nothing answered is lost, and makes everything durable.
pub(super) fn open_durable(files: &Files, expected: Expected) -> Result<Opened, OpenError> {
    let connection = connection::open_owner(&files.database)?;
    let loss = find_loss(&connection, files, expected)?;
    checkpoint::complete(&connection)?;
    let head = rows::head(&connection).map_err(|e| failed("could not read the last row", e))?;
    Ok(Opened { connection, head, loss })
}

fn find_loss(
    connection: &Connection,
    files: &Files,
    expected: Expected,
) -> Result<Option<Loss>, OpenError> {
    let acknowledged = expected.acknowledged;
    let found = rows::position_at(connection, acknowledged.seq)
        .map_err(|e| failed("could not read the last answered row", e))?;
    if found == acknowledged {
        return Ok(None);
    }
    if expected.accept_loss {
        return Ok(Some(Loss { acknowledged, found }));
    }
    Err(OpenError::AcknowledgedLost { path: files.database.clone(), acknowledged, found })
}

/// Opens the file of the last answered position, and says what the log must contain.
pub(super) fn remember(
    files: &Files,
    accept_loss: bool,
) -> Result<(Acknowledged, Expected), OpenError> {
    let path = files.acknowledged();
    let (file, remembered) = Acknowledged::open(&path)
        .map_err(|e| LogError::io(format!("could not open {}", path.display()), e))?;
    let acknowledged = match remembered {
        Remembered::Position(position) => position,
        // A new log, or a copy of one that came without this file.
        Remembered::Nothing => GENESIS,
        Remembered::Unreadable if accept_loss => GENESIS,
        Remembered::Unreadable => return Err(OpenError::AcknowledgedUnreadable { path }),
    };
    Ok((file, Expected { acknowledged, accept_loss }))
}
