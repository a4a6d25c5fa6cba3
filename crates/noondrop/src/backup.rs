//! Backup and restore: a copy of the log beside a running server, and a log made of such a copy.
//!
//! # Layout
//!
//! * [`copy`]: rows after the copy's last one, read in short pages, chained, throttled
//! * [`place`]: the directory of a copy: what is there, what is refused, how an old copy is set aside
//! * [`restore`]: from a copy to a log that goes on, by a fact
//! * [`compare`]: a list of orders against the log
//!
//! Nothing here opens the database of a running server for writing.

pub mod compare;
pub mod copy;
pub mod place;
pub mod restore;

pub use copy::{BackupError, Copied, copy};
pub use restore::{Restored, restore};
