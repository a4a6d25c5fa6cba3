//! Watches the processes: where each stands, what a query would see, its time, and that it notices what the log lost.

use std::path::Path;

use noondrop_core::{Outcome, Refusal};
use noondrop_engine::Reply;
use noondrop_log::{Position, Row};

use crate::checker::{Finding, Given};
use crate::world::{World, event};

impl World {
    /// The checker reads on to where a process stands.
    pub(crate) fn follow(&mut self, process: usize, replies: &[&Reply]) -> Result<(), Finding> {
        let Some(running) = &self.processes[process].running else { return Ok(()) };
        let position = running.sequencer.position();
        if running.sequencer.state().is_none() {
            // It knows that it does not know, and reads the log again as soon as it can.
            return match replies.first() {
                None => Ok(()),
                Some(reply) => Err(format!("answered at {} without a state", reply.position)),
            };
        }
        if !running.unnoticed.is_empty() {
            // It cannot reach the log, and so cannot know what that lost. What it answered before, it may repeat.
            let new = replies.iter().find(|reply| !reply.replayed && !is_key_reused(reply));
            return match new {
                None => Ok(()),
                Some(reply) => Err(format!("answered at {}, which is lost", reply.position)),
            };
        }
        if !self.checker.stands(&mut *self.reader) {
            return Err(format!(
                "{} and what came before it were answered for, and vanished from the log",
                self.checker.position()
            ));
        }
        let before = self.checker.position().seq;
        let rows_written = running.sequencer.tally().rows;
        let given = Given {
            replies,
            after_trouble: running.was_in_trouble,
            own_rows: rows_written - running.rows_written,
        };
        self.checker.follow(&mut *self.reader, position.seq, given)?;
        let running = self.processes[process].running.as_mut().expect("it just took a turn");
        running.rows_written = rows_written;
        let rows = self.reader.page(before, 1_000, 1 << 24).map_err(|error| error.to_string())?;
        for row in rows.iter().filter(|row| row.seq <= position.seq) {
            self.trace.bytes(&row.digest);
            self.check_time(process, row)?;
        }
        let found = self.reader.row(position.seq).map_err(|error| error.to_string())?;
        if found.is_none_or(|row| row.position() != position) {
            return Err(format!("host {process} stands at {position}; the log has another row"));
        }
        self.check_live_state(process)
    }

    /// What a query would see must be what the log says.
    fn check_live_state(&self, process: usize) -> Result<(), Finding> {
        let running = self.processes[process].running.as_ref().expect("it just took a turn");
        let at_head = running.sequencer.position() == self.checker.position();
        let Some(state) = running.sequencer.state().filter(|_| at_head) else { return Ok(()) };
        if !state.all_items().eq(self.checker.state().all_items()) {
            return Err(format!("host {process} shows other counts than the log says"));
        }
        if self.step.is_multiple_of(16) {
            state.recount().map_err(|found| format!("host {process}, recount: {found:?}"))?;
        }
        Ok(())
    }

    /// A row's time is that of its writer's clock at his start, and what passed since: no step of the clock moves it,
    /// and nothing stops it.
    fn check_time(&mut self, process: usize, row: &Row) -> Result<(), Finding> {
        let elapsed = self.time.elapsed_ms();
        let alone = self.processes.len() == 1;
        let running = self.processes[process].running.as_mut().expect("it just took a turn");
        let newest_at = running.anchor.newest_at;
        let since_newest = elapsed - running.anchor.last_row_ms;
        if row.at > newest_at {
            running.anchor.newest_at = row.at;
            if !running.was_in_trouble {
                running.anchor.last_row_ms = elapsed;
            }
        }
        if !alone || row.seq <= running.knows_after || running.was_in_trouble {
            return Ok(());
        }
        let anchor = &mut running.anchor;
        let since = elapsed - anchor.elapsed_ms;
        let latest = (anchor.source_ms + since + since / 900 + 2).max(newest_at + since_newest + 2);
        if row.at > latest {
            return Err(format!("row {} is at {}, ahead of time ({latest})", row.seq, row.at));
        }
        let (first_elapsed, first_at) = *anchor.first_row.get_or_insert((elapsed, row.at));
        let earliest = first_at + (elapsed - first_elapsed) / 2;
        if row.at + 2 < earliest {
            return Err(format!("row {} is at {}, behind time ({earliest})", row.seq, row.at));
        }
        Ok(())
    }

    /// The log lost rows under a process: it must notice before it does anything else.
    pub(crate) fn check_notice(&mut self, process: usize) -> Result<(), Finding> {
        let evidence = self.evidence.as_ref().map(|dir| dir.path().to_owned());
        let running = self.processes[process].running.as_mut().expect("it just took a turn");
        let changes = running.sequencer.tally().history_changes;
        let noticed = changes > running.history_changes;
        running.history_changes = changes;
        let unnoticed = std::mem::take(&mut running.unnoticed);
        if noticed {
            if unnoticed.is_empty() {
                return Err(format!("host {process}: the history changed, and nothing was lost"));
            }
            let known = unnoticed.iter().filter(|row| row.seq > running.knows_after);
            let known: Vec<Position> = known.map(Row::position).collect();
            running.knows_after = running.sequencer.position().seq;
            running.anchor.first_row = None;
            self.must_refuse = false;
            event!(self, "host {process}: noticed that the history changed");
            return evidence.map_or(Ok(()), |dir| check_evidence(&dir, &known));
        }
        if unnoticed.is_empty() {
            return Ok(());
        }
        if running.sequencer.trouble().is_none() {
            return Err(format!("host {process}: answered rows are gone, and it went on"));
        }
        running.unnoticed = unnoticed;
        Ok(())
    }
}

/// Every lost row that the process knew is in an evidence file.
fn check_evidence(dir: &Path, lost: &[Position]) -> Result<(), Finding> {
    let mut all = String::new();
    if let Ok(files) = std::fs::read_dir(dir) {
        for file in files.flatten() {
            all += &std::fs::read_to_string(file.path()).unwrap_or_default();
        }
    }
    match lost.iter().find(|row| !all.contains(&format!("\"position\":\"{row}\""))) {
        None => Ok(()),
        Some(row) => Err(format!("no evidence was kept of {row}, which the log lost")),
    }
}

fn is_key_reused(reply: &Reply) -> bool {
    reply.outcome == Outcome::Refused(Refusal::KeyReused)
}
