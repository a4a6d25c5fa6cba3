//! The bounds of a page of rows: one rule for when a page is full, shared by all stores.

use crate::Row;

/// What one row is counted with beside its two blobs: its fixed fields, rounded up.
const ROW_BYTES_FIXED: usize = 128;

/// No page grows beyond these, whatever is asked for: a read must stay short, because a read
/// transaction that stays open keeps a store from cleaning up behind itself.
const PAGE_ROWS_MAX: usize = 16_384;
const PAGE_BYTES_MAX: usize = 32 << 20;

/// How many foreign rows a turn learns at once.
const BEGIN_ROWS_MAX: usize = 256;
const BEGIN_BYTES_MAX: usize = 8 << 20;

/// A page that is being filled.
#[derive(Debug)]
pub(crate) struct Page {
    rows: Vec<Row>,
    rows_max: usize,
    bytes_left: usize,
}

impl Page {
    pub(crate) fn new(max_rows: usize, max_bytes: usize) -> Self {
        Self {
            rows: Vec::new(),
            rows_max: max_rows.clamp(1, PAGE_ROWS_MAX),
            bytes_left: max_bytes.min(PAGE_BYTES_MAX),
        }
    }

    /// The page of foreign rows that a turn begins with.
    pub(crate) fn for_begin() -> Self {
        Self::new(BEGIN_ROWS_MAX, BEGIN_BYTES_MAX)
    }

    /// Whether a row with blobs of this size still belongs on the page. The first always does.
    pub(crate) fn has_room(&self, blob_bytes: usize) -> bool {
        let fits = blob_bytes.saturating_add(ROW_BYTES_FIXED) <= self.bytes_left;
        self.rows.is_empty() || (fits && self.rows.len() < self.rows_max)
    }

    pub(crate) fn push(&mut self, row: Row) {
        let bytes = row.facts.len() + row.private.len() + ROW_BYTES_FIXED;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.rows.push(row);
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}
