//! The statements about rows. All of them are prepared once per connection and used again.

use rusqlite::{Connection, OptionalExtension, Rows, Transaction, TransactionBehavior, params};

use crate::page::Page;
use crate::{GENESIS, Position, Row};

const INSERT: &str = "INSERT INTO log
    (seq, at, writer, attempt, nonce, level, state_sum, digest, facts, private)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

const SELECT_FROM: &str = "SELECT
    seq, at, writer, attempt, nonce, level, state_sum, digest, facts, private
    FROM log WHERE seq >= ?1 ORDER BY seq";

const SELECT_HEAD: &str = "SELECT seq, digest FROM log ORDER BY seq DESC LIMIT 1";

/// A blob of the same length takes its old place, byte for byte.
const REWRITE: &str = "UPDATE log SET private = ?1
    WHERE seq = ?2 AND digest = ?3 AND length(private) = length(?1)";

const SELECT_POSITION: &str = "SELECT seq, digest FROM log WHERE seq = ?1";

/// Inserts one row as a transaction of its own, which is durable when this returns.
pub(super) fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    connection.prepare_cached(INSERT)?.execute(params![
        to_sql(row.seq)?,
        to_sql(row.at)?,
        row.writer,
        row.attempt,
        row.nonce,
        row.level,
        row.state_sum,
        row.digest,
        row.facts,
        row.private,
    ])?;
    Ok(())
}

/// Overwrites private blobs in one transaction; durable when this returns. False, and nothing done:
/// one of the rows is not there, or its blob has another length.
pub(super) fn rewrite_private(
    connection: &Connection,
    rows: &[(Position, Vec<u8>)],
) -> rusqlite::Result<bool> {
    let behavior = TransactionBehavior::Immediate;
    let transaction = Transaction::new_unchecked(connection, behavior)?;
    {
        let mut statement = transaction.prepare_cached(REWRITE)?;
        for (position, private) in rows {
            if statement.execute(params![private, to_sql(position.seq)?, position.digest])? != 1 {
                return Ok(false);
            }
        }
    }
    transaction.commit()?;
    Ok(true)
}

/// The last position of the log.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Position> {
    let mut statement = connection.prepare_cached(SELECT_HEAD)?;
    Ok(statement.query_row([], position).optional()?.unwrap_or(GENESIS))
}

/// What the log has at this number, or its last position if it ends before.
pub(super) fn position_at(connection: &Connection, seq: u64) -> rusqlite::Result<Position> {
    if seq == GENESIS.seq {
        return Ok(GENESIS);
    }
    let Ok(number) = i64::try_from(seq) else { return head(connection) };
    let mut statement = connection.prepare_cached(SELECT_POSITION)?;
    match statement.query_row([number], position).optional()? {
        Some(position) => Ok(position),
        None => head(connection),
    }
}

/// The rows after a number, as one short read.
pub(super) fn page_after(
    connection: &Connection,
    after_seq: u64,
    mut page: Page,
) -> rusqlite::Result<Vec<Row>> {
    let Some(first) = after_seq.checked_add(1).and_then(|seq| i64::try_from(seq).ok()) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(SELECT_FROM)?;
    fill(&mut statement.query([first])?, &mut page)?;
    Ok(page.into_rows())
}

/// What stands at `after`, and the rows after it, both from the same moment.
pub(super) struct Tail {
    pub(super) at: Option<Position>,
    pub(super) rows: Vec<Row>,
}

/// Reads from the row at `after` on, in one statement, so that nothing can come between.
pub(super) fn tail(
    connection: &Connection,
    after_seq: u64,
    mut page: Page,
) -> rusqlite::Result<Tail> {
    if after_seq == GENESIS.seq {
        let rows = page_after(connection, after_seq, page)?;
        return Ok(Tail { at: Some(GENESIS), rows });
    }
    let mut statement = connection.prepare_cached(SELECT_FROM)?;
    let mut rows = statement.query([to_sql(after_seq)?])?;
    let at = rows.next()?.map(head_of).transpose()?.filter(|at| at.seq == after_seq);
    if at.is_some() {
        fill(&mut rows, &mut page)?;
    }
    Ok(Tail { at, rows: page.into_rows() })
}

/// One row by its number.
pub(super) fn row(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Row>> {
    let Some(before) = seq.checked_sub(1) else { return Ok(None) };
    let rows = page_after(connection, before, Page::new(1, 0))?;
    Ok(rows.into_iter().next().filter(|row| row.seq == seq))
}

/// Fills the page. Blobs are measured before they are copied.
fn fill(rows: &mut Rows<'_>, page: &mut Page) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        if !page.has_room(blob_bytes(row, 8)? + blob_bytes(row, 9)?) {
            break;
        }
        page.push(read_row(row)?);
    }
    Ok(())
}

fn blob_bytes(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<usize> {
    Ok(row.get_ref(column)?.as_blob()?.len())
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: from_sql(row, 0)?,
        at: from_sql(row, 1)?,
        writer: row.get(2)?,
        attempt: row.get(3)?,
        nonce: row.get(4)?,
        level: row.get(5)?,
        state_sum: row.get(6)?,
        digest: row.get(7)?,
        facts: row.get(8)?,
        private: row.get(9)?,
    })
}

fn position(row: &rusqlite::Row<'_>) -> rusqlite::Result<Position> {
    Ok(Position { seq: from_sql(row, 0)?, digest: row.get(1)? })
}

fn head_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Position> {
    Ok(Position { seq: from_sql(row, 0)?, digest: row.get(7)? })
}

/// SQLite's integers are signed. No number of ours comes near the difference.
fn to_sql(number: u64) -> rusqlite::Result<i64> {
    i64::try_from(number).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_sql(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}
