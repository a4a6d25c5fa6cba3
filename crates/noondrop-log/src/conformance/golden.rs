//! Digests that were computed once, by another program, and may never change.
//!
//! A log outlives the program that wrote it. If this check fails, old logs no longer verify: it is
//! the code that is wrong, never the file.

use super::{Subject, Verdict, ensure_equal, list_checks, read_all};
use crate::{GENESIS, Position, Row, Unsealed};

list_checks!(digests_are_those_of_the_first_version);

/// One line per row: its digest in hex. The rows are those of [`golden_row`].
const DIGESTS: &str = include_str!("golden-digests.txt");

/// The fields of the golden row `seq`, by a rule that any language can repeat.
fn golden_row(previous: &Position) -> Row {
    let seq = previous.seq + 1;
    let n = u8::try_from(seq).unwrap_or(u8::MAX);
    let unsealed = Unsealed {
        seq,
        at: 1_000_000_007 * seq,
        writer: [n; 16],
        attempt: 65_537 * u32::from(n),
        nonce: [n ^ 0x55; 16],
        level: 257 * u16::from(n),
        state_sum: [n ^ 0xaa; 16],
        facts: (0..100 * (n - 1)).collect(),
        private: vec![n; 3],
    };
    Row::seal(&previous.digest, unsealed)
}

fn digests_are_those_of_the_first_version(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let mut last = GENESIS;
    for _ in DIGESTS.lines() {
        let row = golden_row(&last);
        log.append(&row)?;
        last = row.position();
    }
    let stored = read_all(&mut *log.opener().reader()?)?;
    let digests: Vec<String> = stored.iter().map(|row| hex(&row.digest)).collect();
    let golden: Vec<String> = DIGESTS.lines().map(String::from).collect();
    ensure_equal("digests", &digests, &golden)
}

fn hex(digest: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().to_string()
}
