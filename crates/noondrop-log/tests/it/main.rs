//! The tests of this crate as another crate sees it: both stores against the one suite, and the
//! SQLite store against real crashes, full disks and damaged files.

#![allow(clippy::doc_markdown, reason = "SQLite is a name")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod broken;
mod copy;
mod crash;
mod damage;
mod disk_full;
mod erasing;
mod failing_disk;
mod memory;
mod recovery;
mod sqlite;
mod support;
