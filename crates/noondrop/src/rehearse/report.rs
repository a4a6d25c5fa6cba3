//! Figures of a rehearsal: while it runs, as a table, as JSON with stable names.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Plan;
use super::rush::Rush;
use super::verify::{Audited, Disagreements, Units, compare};
use crate::bench::figures::{Durations, rounded};
use crate::time::steady;

/// Redraws one line of standard error on a terminal; elsewhere it writes a line now and then.
pub struct Progress {
    begun: Instant,
    shown: Option<Instant>,
    answered: u64,
    terminal: bool,
}

impl Progress {
    /// Nothing shown yet.
    #[must_use]
    pub fn begin() -> Self {
        let terminal = io::stderr().is_terminal();
        Self { begun: steady(), shown: None, answered: 0, terminal }
    }

    /// Shows how far it is, if it is time to.
    pub fn show(&mut self, rush: &Rush, kills: u32) {
        let every = Duration::from_millis(if self.terminal { 200 } else { 2_000 });
        let since = self.shown.unwrap_or(self.begun).elapsed();
        if since < every {
            return;
        }
        let answered = rush.answered.get();
        let per_second = (answered - self.answered) as f64 / since.as_secs_f64();
        let (start, end) = if self.terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        let (stock, held, sold) = rush.counts.get().unwrap_or_default();
        let seconds = self.begun.elapsed().as_secs_f64();
        eprint!(
            "{start}{seconds:5.1} s   stock {stock}   holds {held}   sold {sold}   {per_second:.0} req/s   kills {kills}{end}"
        );
        self.shown = Some(steady());
        self.answered = answered;
    }

    /// Leaves the line.
    pub fn end(&self) {
        if self.terminal {
            eprintln!();
        }
    }
}

/// What came of a rehearsal. The names of the fields are stable.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// On sale.
    pub tickets: u32,
    /// Attempts that were decided, each with a key of its own.
    pub attempts: u64,
    /// Holds that were acknowledged.
    pub holds: u64,
    /// Confirms that were acknowledged.
    pub confirmed: u64,
    /// Attempts that were told that all is sold.
    pub sold_out: u64,
    /// Attempts that were told that all is held at the moment.
    pub all_held: u64,
    /// Answers from the record.
    pub replays: u64,
    /// Times that the server was killed.
    pub kills: u32,
    /// Answered requests a second, from the opening until every buyer had an answer; outages included.
    pub requests_per_second: f64,
    /// From sending a request to its answer, where no outage touched it: median.
    pub p50_ms: f64,
    /// The same, 99 of 100.
    pub p99_ms: f64,
    /// The same, the longest.
    pub max_ms: f64,
    /// Units sold beyond what there was.
    pub oversold: u64,
    /// Acknowledged holds and confirms that are not there.
    pub lost_acknowledged: u64,
    /// Tickets that nobody has although enough buyers wanted them.
    pub lost_units: u64,
    /// `available + held + sold + blocked == total + oversold`, at every row.
    pub conserved: bool,
    /// Every check passed, those above and the others in the list.
    pub audit_ok: bool,
    #[serde(skip)]
    lines: Vec<(String, String)>,
    #[serde(skip)]
    checks: Vec<Check>,
}

/// One line of the verdict.
#[derive(Clone, Debug)]
struct Check {
    well: bool,
    what: String,
}

/// What is there at the end.
pub struct End {
    /// As the server told it.
    pub told: super::verify::Ledger,
    /// As its log has it, where that can be read; or why the audit failed.
    pub log: Option<Result<Audited, String>>,
    /// Times that the server was killed.
    pub kills: u32,
    /// From the start to the last buyer.
    pub seconds: f64,
}

impl Report {
    /// From what was seen and what there is.
    #[must_use]
    pub fn new(plan: &Plan, rush: &Rush, end: &End) -> Self {
        let crowd = rush.crowd.borrow();
        let (tally, record) = (&crowd.tally, &crowd.record);
        let mut exchanges = rush.exchanges.borrow().clone();
        let (answers, seconds) = rush.storm.get().unwrap_or((rush.answered.get(), end.seconds));
        let judged = Judged::of(plan, rush, end);
        let units = judged.units;
        let mut report = Self {
            tickets: plan.tickets,
            attempts: tally.attempts,
            holds: record.promises().len() as u64,
            confirmed: record.confirmed(),
            sold_out: tally.outcome("sold_out"),
            all_held: tally.outcome("all_held"),
            replays: tally.replays,
            kills: end.kills,
            requests_per_second: (answers as f64 / seconds.max(1e-9)).round(),
            p50_ms: exchanges.per_mille_ms(500),
            p99_ms: exchanges.per_mille_ms(990),
            max_ms: exchanges.per_mille_ms(1_000),
            oversold: units.oversold,
            lost_acknowledged: judged.found.lost_acknowledged(),
            lost_units: judged.lost_units,
            conserved: judged.conserved,
            audit_ok: false,
            lines: Vec::new(),
            checks: judged.checks(plan, rush, end),
        };
        report.audit_ok = report.checks.iter().all(|check| check.well);
        let mut waits = tally.waits.clone();
        report.lines = vec![
            ("seconds, all of it".into(), rounded(end.seconds).to_string()),
            ("requests sent, of them unanswered".into(), {
                let sent = rush.sent.get();
                format!("{sent}, {}", sent.saturating_sub(rush.answered.get()))
            }),
            latency("ms p50 / p99 / max without outages", &mut exchanges),
            latency("ms p50 / p99 / max with outages", &mut waits),
        ];
        let outcomes = tally.outcomes.iter();
        report.lines.extend(outcomes.map(|(code, count)| (format!("  {code}"), count.to_string())));
        report
    }

    /// Whether everything is as it must be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.audit_ok
    }

    /// What is not, in words.
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        let bad = self.checks.iter().filter(|check| !check.well);
        bad.map(|check| check.what.as_str()).collect()
    }

    /// The table.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let figures = [
            ("attempts", self.attempts.to_string()),
            ("holds acknowledged", self.holds.to_string()),
            ("confirms acknowledged", self.confirmed.to_string()),
            ("answers from the record", self.replays.to_string()),
            ("kills survived", self.kills.to_string()),
            ("answers a second in the rush", self.requests_per_second.to_string()),
        ];
        writeln!(out)?;
        for (name, value) in figures {
            writeln!(out, "{name:<36}{value:>26}")?;
        }
        for (name, value) in &self.lines {
            writeln!(out, "{name:<36}{value:>26}")?;
        }
        writeln!(out)?;
        for check in &self.checks {
            writeln!(out, "{} {}", if check.well { "✓" } else { "✗" }, check.what)?;
        }
        Ok(())
    }
}

fn latency(name: &str, durations: &mut Durations) -> (String, String) {
    let [p50, p99, max] = [500, 990, 1_000].map(|part| durations.per_mille_ms(part));
    (name.to_owned(), format!("{p50:.1} / {p99:.1} / {max:.1}"))
}

/// The verdict, before it is put into words.
struct Judged {
    units: Units,
    found: Disagreements,
    conserved: bool,
    lost_units: u64,
    expected: u64,
}

impl Judged {
    fn of(plan: &Plan, rush: &Rush, end: &End) -> Self {
        let crowd = rush.crowd.borrow();
        let told = compare(&crowd.record, &end.told);
        let logged = match &end.log {
            Some(Ok(audited)) => {
                Some((compare(&crowd.record, &audited.ledger), audited.ledger.units))
            }
            Some(Err(_)) | None => None,
        };
        let (found, units) = match logged {
            // The worse of the two.
            Some((found, units)) if told.is_none() => (found, units),
            _ => (told, end.told.units),
        };
        let audit_failed = matches!(end.log, Some(Err(_)));
        let same = logged.is_none_or(|(_, units)| units == end.told.units);
        let expected = u64::from(plan.tickets).min(super::crowd::Crowd::willing(plan));
        let conserved = !audit_failed
            && same
            && units.total == u64::from(plan.tickets)
            && units.are_conserved();
        Self { units, found, conserved, lost_units: expected.saturating_sub(units.sold), expected }
    }

    fn checks(&self, plan: &Plan, rush: &Rush, end: &End) -> Vec<Check> {
        let crowd = rush.crowd.borrow();
        let (units, found) = (self.units, self.found);
        let check = |well, what: String| Check { well, what };
        let mut checks = vec![
            check(
                self.conserved,
                format!(
                    "conserved: {} available + {} held + {} sold + {} blocked = {} + {} oversold",
                    units.available,
                    units.held,
                    units.sold,
                    units.blocked,
                    units.total,
                    units.oversold
                ),
            ),
            check(
                units.oversold == 0 && found.too_many == 0 && found.miscounted == 0,
                format!(
                    "no unit sold twice: {} tickets, {} buyers with one each",
                    plan.tickets, units.sold
                ),
            ),
            check(
                found.lost_acknowledged() == 0,
                format!(
                    "every acknowledged hold and confirm is there: {} and {}, {} lost",
                    crowd.record.promises().len(),
                    crowd.record.confirmed(),
                    found.lost_acknowledged()
                ),
            ),
            check(
                found.unheard_of == 0,
                format!(
                    "every hold and sale that is there was acknowledged ({} were not)",
                    found.unheard_of
                ),
            ),
            check(
                crowd.record.differing() == 0,
                format!(
                    "every repeat of {} keys was answered to the byte like the first ({} were not)",
                    crowd.record.keys(),
                    crowd.record.differing()
                ),
            ),
            check(
                self.lost_units == 0 && units.held == 0,
                format!(
                    "no lost unit, no false sold-out: {} of {} sold that had a buyer, {} still held",
                    units.sold, self.expected, units.held
                ),
            ),
            check(
                crowd.tally.gave_up == 0,
                format!("every buyer was answered in time ({} gave up)", crowd.tally.gave_up),
            ),
            check(
                end.kills == plan.kills,
                format!("{} of {} kills survived", end.kills, plan.kills),
            ),
        ];
        for (what, count) in crowd.record.surprises() {
            checks.push(check(false, format!("{count} answers that nobody should get: {what}")));
        }
        checks.extend(audit_check(end));
        checks
    }
}

fn audit_check(end: &End) -> Option<Check> {
    let log = end.log.as_ref()?;
    Some(match log {
        Ok(Audited { verdict, .. }) => Check {
            well: true,
            what: format!(
                "audited: {} rows and {} facts, one chain, replayed and counted again up to {}",
                verdict.rows, verdict.facts, verdict.head
            ),
        },
        Err(why) => Check { well: false, what: format!("the audit failed: {why}") },
    })
}
