//! What the sequencer relies on: a chain without gaps, an honest answer about each append, and a
//! word when the history is not the one it knows.

use super::{
    Subject, Verdict, chain_after, ensure, ensure_equal, fill, last_of, list_checks, next_row,
    read_all,
};
use crate::{AppendError, BeginError, GENESIS, Log, Position, Row, Unsealed};

list_checks!(
    an_empty_log_stands_at_genesis,
    appended_rows_are_the_log,
    a_taken_position_is_a_conflict,
    a_gap_is_refused,
    a_row_that_does_not_chain_is_refused,
    a_refused_row_changes_nothing,
    begin_at_the_head_has_nothing_to_learn,
    begin_hands_over_what_follows,
    begin_learns_long_tails_in_pages,
    begin_notices_another_branch,
    begin_notices_a_branch_of_the_same_length,
    begin_notices_a_history_that_went_back,
    begin_notices_a_position_that_never_was,
    recover_is_harmless_and_repeatable,
    appending_goes_on_after_recover,
    reopening_sees_everything_acknowledged,
);

fn an_empty_log_stands_at_genesis(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    ensure_equal("head", &log.head()?, &GENESIS)?;
    ensure_equal("rows", &log.begin(GENESIS)?.rows, &Vec::new())?;
    ensure_equal("recovered head", &log.recover()?, &GENESIS)
}

fn appended_rows_are_the_log(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 20)?;
    ensure_equal("head", &log.head()?, &last_of(&rows))?;
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)
}

fn ensure_conflict(outcome: Result<(), AppendError>) -> Verdict {
    match outcome {
        Err(AppendError::Conflict) => Ok(()),
        other => Err(format!("expected a conflict, found {other:?}").into()),
    }
}

fn ensure_not_written(outcome: Result<(), AppendError>) -> Verdict {
    match outcome {
        Err(AppendError::NotWritten(_)) => Ok(()),
        other => Err(format!("expected a refusal, found {other:?}").into()),
    }
}

fn a_taken_position_is_a_conflict(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    let previous = rows[1].position();
    let unsealed = Unsealed { seq: 3, facts: b"another".to_vec(), ..Unsealed::default() };
    ensure_conflict(log.append(&Row::seal(&previous.digest, unsealed)))?;
    ensure_conflict(log.append(&rows[0]))?;
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)?;
    // And a conflict leaves the log usable.
    log.begin(last_of(&rows))?;
    Ok(log.append(&next_row(&last_of(&rows)))?)
}

fn a_gap_is_refused(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 2)?;
    let far = chain_after(&last_of(&rows), 2).remove(1);
    ensure_not_written(log.append(&far))?;
    ensure_equal("head", &log.head()?, &last_of(&rows))
}

fn a_row_that_does_not_chain_is_refused(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 2)?;
    let elsewhere = Position { seq: 2, digest: [0xee; 32] };
    ensure_not_written(log.append(&next_row(&elsewhere)))?;
    let mut changed = next_row(&last_of(&rows));
    changed.facts.push(b'!');
    ensure_not_written(log.append(&changed))?;
    ensure_equal("head", &log.head()?, &last_of(&rows))
}

fn a_refused_row_changes_nothing(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 2)?;
    let mut further = chain_after(&last_of(&rows), 2);
    ensure_not_written(log.append(&further.remove(1)))?;
    log.append(&further.remove(0))?;
    drop(log);
    let mut again = subject.open();
    ensure_equal("head", &again.head()?, &last_of(&chain_after(&GENESIS, 3)))
}

fn begin_at_the_head_has_nothing_to_learn(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 3)?;
    ensure_equal("rows", &log.begin(last_of(&rows))?.rows, &Vec::new())
}

fn begin_hands_over_what_follows(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 5)?;
    ensure_equal("from row 2", &log.begin(rows[1].position())?.rows, &rows[2..].to_vec())?;
    ensure_equal("from genesis", &log.begin(GENESIS)?.rows, &rows)
}

fn begin_learns_long_tails_in_pages(subject: &dyn Subject) -> Verdict {
    let rows = chain_after(&GENESIS, 1000);
    let mut log = subject.open();
    subject.branch(0, &rows);
    let mut learned: Vec<Row> = Vec::new();
    loop {
        let page = log.begin(last_of(&learned))?.rows;
        ensure(page.len() < 1000, "a page of foreign rows is not bounded")?;
        if page.is_empty() {
            break;
        }
        learned.extend(page);
    }
    ensure_equal("learned", &learned, &rows)?;
    Ok(log.append(&next_row(&last_of(&rows)))?)
}

fn ensure_changed(log: &mut dyn Log, ours: Position, found: Position) -> Verdict {
    match log.begin(ours) {
        Err(BeginError::HistoryChanged { ours: o, found: f }) => {
            ensure_equal("ours", &o, &ours)?;
            ensure_equal("found", &f, &found)
        }
        other => Err(format!("expected a changed history, found {other:?}").into()),
    }
}

/// Rows after `previous` that are not those of [`chain_after`].
fn other_branch(previous: &Position, count: u64) -> Vec<Row> {
    let facts = b"another branch".to_vec();
    let unsealed = Unsealed { seq: previous.seq + 1, facts, ..Unsealed::default() };
    let first = Row::seal(&previous.digest, unsealed);
    let mut rows = vec![first];
    rows.extend(chain_after(&rows[0].position(), count - 1));
    rows
}

fn begin_notices_another_branch(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 5)?;
    let branch = other_branch(&rows[2].position(), 4);
    subject.branch(3, &branch);
    ensure_changed(&mut *log, last_of(&rows), branch[1].position())?;
    // The common prefix is still good, and from there the other branch can be learned.
    ensure_equal("branch", &log.begin(rows[2].position())?.rows, &branch)
}

/// The number of the last row alone would not show it.
fn begin_notices_a_branch_of_the_same_length(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 5)?;
    let branch = other_branch(&rows[3].position(), 1);
    subject.branch(4, &branch);
    ensure_changed(&mut *log, last_of(&rows), last_of(&branch))
}

fn begin_notices_a_history_that_went_back(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 5)?;
    subject.branch(2, &[]);
    ensure_changed(&mut *log, last_of(&rows), rows[1].position())?;
    subject.branch(0, &[]);
    ensure_changed(&mut *log, last_of(&rows), GENESIS)
}

fn begin_notices_a_position_that_never_was(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 2)?;
    let future = Position { seq: 3, digest: [1; 32] };
    ensure_changed(&mut *log, future, last_of(&rows))?;
    let other_genesis = Position { seq: 0, digest: [1; 32] };
    ensure_changed(&mut *log, other_genesis, GENESIS)
}

fn recover_is_harmless_and_repeatable(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let rows = fill(&mut *log, 7)?;
    for _ in 0..3 {
        ensure_equal("recovered head", &log.recover()?, &last_of(&rows))?;
        ensure_equal("head", &log.head()?, &last_of(&rows))?;
    }
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &rows)
}

fn appending_goes_on_after_recover(subject: &dyn Subject) -> Verdict {
    let mut log = subject.open();
    let mut last = last_of(&fill(&mut *log, 3)?);
    let mut reader = log.opener().reader()?;
    for _ in 0..3 {
        log.recover()?;
        let row = next_row(&last);
        log.append(&row)?;
        last = row.position();
        // A reader from before the recovery still reads, and sees what came after.
        ensure_equal("head of an old reader", &reader.head()?, &last)?;
    }
    Ok(())
}

fn reopening_sees_everything_acknowledged(subject: &dyn Subject) -> Verdict {
    let mut expected: Vec<Row> = Vec::new();
    for _ in 0..4 {
        let mut log = subject.open();
        ensure_equal("head", &log.head()?, &last_of(&expected))?;
        for row in chain_after(&last_of(&expected), 5) {
            log.append(&row)?;
            expected.push(row);
        }
    }
    let log = subject.open();
    ensure_equal("rows", &read_all(&mut *log.opener().reader()?)?, &expected)
}
