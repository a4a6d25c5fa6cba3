//! Figures of a rehearsal: while it runs, as a table, as JSON with stable names.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Plan;
use super::crowd::Seen;
use super::verify::Findings;
use crate::bench::figures::rounded;
use crate::time::steady;

/// Redraws one line on a terminal; elsewhere it writes a line now and then.
pub struct Progress {
    begun: Instant,
    shown: Option<Instant>,
    requests: u64,
    terminal: bool,
}

impl Progress {
    /// Nothing shown yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        Self { begun: steady(), shown: None, requests: 0, terminal }
    }

    /// Shows how far it is, if it is time to.
    pub fn show(&mut self, plan: &Plan, seen: &Seen, out: &mut dyn Write) -> io::Result<()> {
        let every = Duration::from_millis(if self.terminal { 200 } else { 2_000 });
        let since = self.shown.unwrap_or(self.begun).elapsed();
        if since < every {
            return Ok(());
        }
        let per_second = (seen.requests - self.requests) as f64 / since.as_secs_f64();
        let (start, end) = if self.terminal { ("\r\x1b[2K", "") } else { ("", "\n") };
        write!(
            out,
            "{start}{:5.1} s  tickets {}  held {}  sold {}  {:.0} requests/s  kills {}{end}",
            self.begun.elapsed().as_secs_f64(),
            plan.tickets,
            seen.holds_acknowledged(),
            seen.confirmed.len(),
            per_second,
            seen.kills,
        )?;
        out.flush()?;
        self.shown = Some(steady());
        self.requests = seen.requests;
        Ok(())
    }

    /// Leaves the line.
    pub fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.terminal { writeln!(out) } else { Ok(()) }
    }
}

/// What came of a rehearsal. The names of the fields are stable.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// On sale.
    pub tickets: u32,
    /// Attempts, each with a key of its own.
    pub attempts: u64,
    /// Holds that were acknowledged.
    pub holds: u64,
    /// Confirms that were acknowledged.
    pub confirmed: u64,
    /// Buyers who were told that all is sold.
    pub sold_out: u64,
    /// Answers that all is held at the moment.
    pub all_held: u64,
    /// Answers from the record.
    pub replays: u64,
    /// Times that the server was killed.
    pub kills: u32,
    /// Answered requests a second, outages included.
    pub requests_per_second: f64,
    /// Of single exchanges, without outages.
    pub p50_ms: f64,
    /// The same, 99 of 100.
    pub p99_ms: f64,
    /// From a buyer's first sending to a decisive answer, outages included: the longest.
    pub max_ms: f64,
    /// Units sold beyond what there was.
    pub oversold: u64,
    /// Acknowledged answers that the log does not have.
    pub lost_acknowledged: u64,
    /// Tickets left although buyers were sent away.
    pub lost_units: u64,
    /// Conservation at every row.
    pub conserved: bool,
    /// Everything above is as it must be, and duplicates were answered alike.
    pub audit_ok: bool,
    #[serde(skip)]
    lines: Vec<(String, String)>,
    #[serde(skip)]
    checks: Vec<(bool, String)>,
}

impl Report {
    /// From what was seen and found.
    #[must_use]
    pub fn new(plan: &Plan, seen: &Seen, seconds: f64, found: &Findings) -> Self {
        let (mut exchanges, mut waits) = (seen.exchanges.clone(), seen.waits.clone());
        let answered = seen.requests - seen.lost_answers;
        let mut report = Self {
            tickets: plan.tickets,
            attempts: seen.attempts,
            holds: seen.holds_acknowledged(),
            confirmed: seen.confirmed.len() as u64,
            sold_out: seen.outcome("sold_out"),
            all_held: seen.outcome("all_held"),
            replays: seen.replays,
            kills: seen.kills,
            requests_per_second: rounded(answered as f64 / seconds),
            p50_ms: exchanges.per_mille_ms(500),
            p99_ms: exchanges.per_mille_ms(990),
            max_ms: waits.per_mille_ms(1_000),
            oversold: found.oversold,
            lost_acknowledged: found.lost_acknowledged,
            lost_units: found.lost_units,
            conserved: found.conserved,
            audit_ok: found.all_well(seen),
            lines: Vec::new(),
            checks: Vec::new(),
        };
        report.lines = vec![
            ("seconds".into(), format!("{seconds:.1}")),
            ("answers lost or cut".into(), seen.lost_answers.to_string()),
            (
                "exchange p50 / p99, no outage".into(),
                format!("{} / {} ms", report.p50_ms, report.p99_ms),
            ),
            (
                "buyer's wait p50 / p99 / max".into(),
                format!(
                    "{} / {} / {} ms",
                    waits.per_mille_ms(500),
                    waits.per_mille_ms(990),
                    report.max_ms
                ),
            ),
        ];
        let outcomes = seen.outcomes.iter();
        report.lines.extend(outcomes.map(|(code, count)| (format!("  {code}"), count.to_string())));
        report.checks = checks(plan, seen, found);
        report
    }

    /// The table.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let figures = [
            ("tickets", self.tickets.to_string()),
            ("attempts", self.attempts.to_string()),
            ("holds acknowledged", self.holds.to_string()),
            ("confirms acknowledged", self.confirmed.to_string()),
            ("answers from the record", self.replays.to_string()),
            ("kills survived", self.kills.to_string()),
            ("answered requests a second", format!("{:.0}", self.requests_per_second)),
        ];
        writeln!(out)?;
        for (name, value) in figures {
            writeln!(out, "{name:<34}{value:>24}")?;
        }
        for (name, value) in &self.lines {
            writeln!(out, "{name:<34}{value:>24}")?;
        }
        writeln!(out)?;
        for (well, what) in &self.checks {
            writeln!(out, "{} {what}", if *well { "✓" } else { "✗" })?;
        }
        Ok(())
    }
}

fn checks(plan: &Plan, seen: &Seen, found: &Findings) -> Vec<(bool, String)> {
    let mut checks = vec![
        (
            found.conserved,
            "conserved: available + held + sold + blocked == total + oversold, at every row".into(),
        ),
        (
            found.oversold == 0,
            format!("no unit sold twice: {} of {} sold", found.sold, plan.tickets),
        ),
        (
            found.lost_acknowledged == 0,
            format!(
                "every acknowledged hold and confirm is in the log ({} missing)",
                found.lost_acknowledged
            ),
        ),
        (
            seen.differing == 0,
            format!("every repeat of a key was answered alike ({} were not)", seen.differing),
        ),
        (
            found.lost_units == 0,
            format!("no ticket lost, no false sold-out ({} left over)", found.lost_units),
        ),
        (seen.gave_up == 0, format!("every buyer got an answer ({} gave up)", seen.gave_up)),
    ];
    if let Some(wrong) = &found.wrong {
        checks.push((false, format!("the audit failed: {wrong}")));
    }
    if let Some(head) = &found.head {
        checks.push((found.wrong.is_none(), format!("audited from the first row to {head}")));
    }
    checks
}
