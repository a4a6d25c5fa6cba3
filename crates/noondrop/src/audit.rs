//! Reading the log as an auditor does: all of it, believing nothing.
//!
//! # Layout
//!
//! * [`scan`]: rows, chain-checked and strictly decoded · [`replay`]: applied to a state, with every check at every row
//! * [`accounts`]: a second set of books, kept from the facts alone
//! * [`check`]: the audit: all of it together, with a verdict · [`remote`]: what can be asked of a running server
//! * [`sentence`]: a fact as a sentence · [`explain`]: the story of a hold, a key, a buyer, a reference
//!
//! Everything here reads; nothing writes.

pub mod accounts;
pub mod check;
pub mod explain;
pub mod remote;
pub mod replay;
pub mod scan;
pub mod sentence;

pub use check::{AuditError, Progress, Verdict, audit};
pub use replay::Replay;
pub use scan::{Scan, ScanError, Scanned};
