//! Reading the log as an auditor does: all of it, believing nothing.
//!
//! # Layout
//!
//! * [`scan`]: rows, chain-checked and strictly decoded · [`replay`]: applied to a state, with every check at every row
//! * [`accounts`]: a second set of books, kept from the facts alone
//! * [`check`]: the audit: all of it together, with a verdict · [`remote`]: what can be asked of a running server
//! * [`explain`]: the story of a hold, a key, a buyer, a reference or a seat, in one pass: [`glance`] keeps names and counts, [`wanted`]
//!   picks the facts, [`standing`] and [`seat`] say how things ended, [`summary`] sums attempts up
//! * [`sentence`]: a fact as a sentence, with [`naming`]: what it may see
//!
//! Everything here reads; nothing writes.

pub mod accounts;
pub mod check;
pub mod explain;
pub mod glance;
pub mod naming;
pub mod remote;
pub mod replay;
pub mod scan;
pub mod seat;
pub mod sentence;
pub mod standing;
pub mod summary;
pub mod wanted;

pub use check::{AuditError, Progress, Verdict, audit};
pub use replay::Replay;
pub use scan::{Scan, ScanError, Scanned};
