//! The newest rows, kept in memory for the day on which the log no longer has them.
//!
//! A log can go back: a restore, a fail-over without a standby. Rows that were answered are then
//! known only to the processes that wrote them, and are put into an evidence file: facts, never
//! private texts, and never the log's secret, which is in its first row.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use noondrop_log::{LogReader, Position, Row};

const RECENT_ROWS_MAX: usize = 4_096;
const RECENT_BYTES_MAX: usize = 8 << 20;

/// The newest rows without their private texts.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    rows: VecDeque<Row>,
    bytes: usize,
}

impl Recent {
    /// Keeps a row. Gives back buffers that can be used again: the row's private one, and the facts
    /// of a row that had to make room.
    pub(crate) fn keep(&mut self, mut row: Row) -> (Option<Vec<u8>>, Vec<u8>) {
        let private = std::mem::take(&mut row.private);
        self.bytes += row.facts.len();
        self.rows.push_back(row);
        let mut free = None;
        while self.rows.len() > 1
            && (self.rows.len() > RECENT_ROWS_MAX || self.bytes > RECENT_BYTES_MAX)
        {
            let row = self.rows.pop_front().expect("more than one row");
            self.bytes -= row.facts.len();
            free = Some(row.facts);
        }
        (free, private)
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    /// The kept rows that the log does not have any more, oldest first.
    pub(crate) fn lost(&self, reader: &mut dyn LogReader) -> Vec<&Row> {
        let mut lost: Vec<&Row> = Vec::new();
        for row in self.rows.iter().rev() {
            // A log that can not be read now counts as having nothing: rather a row too many in the
            // file.
            let found = reader.row(row.seq).ok().flatten();
            if found.is_some_and(|found| found.digest == row.digest) {
                break;
            }
            lost.push(row);
        }
        lost.reverse();
        lost
    }
}

/// Where an engine stood when the log's history changed, and what it wrote there.
pub(crate) struct Evidence<'a> {
    pub(crate) ours: Position,
    pub(crate) found: Position,
    pub(crate) lost: &'a [&'a Row],
    /// A row whose append was never answered.
    pub(crate) unanswered: Option<&'a Row>,
}

impl Evidence<'_> {
    /// Writes a file of one JSON object a line, readable by its owner only.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(format!("history-changed-{}-{}.jsonl", self.ours, self.found));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let mut text = format!("{{\"ours\":\"{}\",\"log_has\":\"{}\"}}\n", self.ours, self.found);
        for row in self.lost {
            push_row(&mut text, row, "answered");
        }
        if let Some(row) = self.unanswered {
            push_row(&mut text, row, "not answered");
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(path)
    }
}

fn push_row(text: &mut String, row: &Row, fate: &str) {
    let facts =
        if row.seq == 1 { "withheld: they hold the log's secret".into() } else { hex(&row.facts) };
    writeln!(
        text,
        "{{\"position\":\"{}\",\"fate\":\"{fate}\",\"at_ms\":{},\"writer\":\"{}\",\"attempt\":{},\"nonce\":\"{}\",\
         \"level\":{},\"state_sum\":\"{}\",\"digest\":\"{}\",\"facts\":\"{facts}\"}}",
        row.position(),
        row.at,
        hex(&row.writer),
        row.attempt,
        hex(&row.nonce),
        row.level,
        hex(&row.state_sum),
        hex(&row.digest),
    )
    .expect("writing to a string cannot fail");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
