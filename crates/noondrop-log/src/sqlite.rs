//! The log as one SQLite file with one owner.
//!
//! SQLite is trusted with what it is good at: an atomic, durable append. Around it stand the
//! guards that this project needs and SQLite does not have:
//!
//! - `owner`: one process owns the file, by a lock on a file beside it.
//! - `acknowledged`: the last position that was answered, in a file beside it. SQLite drops a
//!   damaged tail of its write-ahead log without a word; this file notices.
//! - `connection`: how every connection is set up, and how the file is told from a stranger's.
//! - `checkpoint`: moves rows from the write-ahead log to the main file between turns.
//! - `rows`: the statements. All SQL about rows.
//! - `scrubbed`: up to where erased texts are surely gone, in a file beside it.
//! - `reader`: reading beside the owner, from this process or another.
//! - `copy`: what a backup writes: the same rows, under a mark that no owner opens.
//!
//! **Invariant.** Nothing but SQLite opens the database file. A second open and close in one
//! process would silently drop the locks that SQLite holds on it.
//!
//! **Invariant.** After an error that leaves an outcome open, nothing is answered from the old
//! connections. They may show what is not durable and hide what is. A
//! [recovery](crate::Log::recover) closes all of them, opens anew, and counts only what a complete
//! checkpoint has made durable.

mod acknowledged;
mod checkpoint;
mod connection;
mod copy;
mod error;
mod log;
mod open;
mod options;
mod owner;
mod reader;
mod rows;
mod scrubbed;

pub use copy::SqliteCopy;
pub use error::OpenError;
pub use log::{Loss, SqliteLog};
pub use options::SqliteOptions;
pub use reader::SqliteOpener;
