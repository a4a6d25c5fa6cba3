//! The log: an append-only, gap-free chain of rows, one row per turn, and the stores that keep it.
//!
//! A row's place in the chain is the one conditional write that everything else rests on: two
//! writers can not both take a position, and a row that was answered is never lost without a word.
//! The bytes inside a row mean nothing here. No rule about stock lives in this crate, and no SQL
//! lives outside of it.
//!
//! # Layout
//!
//! - [`Row`], [`Position`], [`verify_chain`]: what a log holds, and how to check it.
//! - [`Log`], [`LogOpener`], [`LogReader`], [`Snapshots`]: what every store offers.
//! - [`sqlite`]: one file, one owner. The default.
//! - [`memory`]: a shared "disk" with faults on command, for simulation and tests.
//! - [`snapshot`]: the format of a snapshot and its directory of files.
//! - [`Throttle`]: the one brake for all bulk reading and writing.
//! - `conformance` (behind the feature of that name): the suite that each store must pass.
//!
//! # Example
//!
//! ```
//! use noondrop_log::{GENESIS, Log, Row, Unsealed, memory::SharedMemory};
//!
//! let mut log = SharedMemory::new().log();
//! let begun = log.begin(GENESIS)?;
//! assert!(begun.rows.is_empty());
//!
//! let row = Row::seal(&GENESIS.digest, Unsealed { seq: 1, facts: b"opened".to_vec(), ..Unsealed::default() });
//! log.append(&row)?;
//! assert_eq!(log.head()?, row.position());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::doc_markdown, reason = "SQLite is a name")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may stop where it stands"))]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
pub mod memory;
mod page;
mod position;
mod row;
pub mod snapshot;
pub mod sqlite;
mod store;
mod throttle;

pub use error::{AppendError, BeginError, LogError, LogErrorKind};
pub use position::{GENESIS, ParsePositionError, Position, PositionRef};
pub use row::{ChainError, Row, Unsealed, verify_chain};
pub use snapshot::{OpenedSnapshot, SnapshotMeta, Snapshots};
pub use store::{Begun, Log, LogOpener, LogReader};
pub use throttle::{PIECE_BYTES, Throttle};
