//! The end of a world: faults stop, and then everything must come right. Everyone gets an answer, all holds lapse, and
//! each item can be sold to exactly what it has: no lost unit, no false "sold out".

use noondrop_core::{Command, Outcome, SaleState};
use noondrop_log::memory::FaultPlan;

use crate::checker::Finding;
use crate::plant::Plant;
use crate::process::locked;
use crate::workload::{ITEMS, SALES, SHOP};
use crate::world::{World, event};

/// Rounds in which everyone must be answered, and milliseconds in each.
const ROUNDS: u64 = 600;
const ROUND_MS: u64 = 500;
/// Idle turns in which all holds must lapse.
const IDLE_TURNS: u64 = 3_000;
/// Answered commands that are asked once more.
const ASKED_AGAIN: usize = 8;

impl World {
    pub(crate) fn finish(&mut self) -> Result<(), Finding> {
        self.heal();
        self.answer_all()?;
        for _ in 0..ASKED_AGAIN {
            self.callers.ask_again(self.time.elapsed_ms());
        }
        self.answer_all()?;
        self.lapse_all()?;
        self.sell_all()?;
        for process in 0..self.processes.len() {
            self.die(process);
            self.start_well(process)?;
        }
        self.checker.check_all(&mut *self.reader)?;
        if self.checker.losses_told > self.losses_accepted {
            return Err("the log tells of a loss that nobody accepted".into());
        }
        event!(self, "the end");
        Ok(())
    }

    fn heal(&mut self) {
        event!(self, "faults stop");
        self.healed = true;
        self.disk.memory.set_full(false);
        self.callers.manners.lost = 0;
        self.callers.manners.hurried = 0;
        self.callers.manners.gives_up_when_full = self.profile.keys_max.is_some();
        for process in &mut self.processes {
            process.paused_until = 0;
            if let Some(running) = &mut process.running {
                running.faults.follow(FaultPlan::default());
                locked(&running.wires).crash = None;
            }
        }
    }

    fn start_well(&mut self, process: usize) -> Result<(), Finding> {
        // Once it may be refused; an operator then accepts the loss.
        for _ in 0..2 {
            if self.processes[process].running.is_none() {
                self.start(process, None)?;
            }
        }
        match self.processes[process].running {
            Some(_) => Ok(()),
            None => Err(format!("host {process} does not start any more")),
        }
    }

    fn answer_all(&mut self) -> Result<(), Finding> {
        for _ in 0..ROUNDS {
            if self.callers.are_done() {
                return Ok(());
            }
            self.round()?;
        }
        Err(match self.callers.first_unanswered() {
            Some((intent, operation)) => {
                format!("{operation} of intention {intent} was not answered in {ROUNDS} rounds")
            }
            None => "somebody who asked again was not answered".into(),
        })
    }

    fn round(&mut self) -> Result<(), Finding> {
        self.step += 1;
        self.pass(ROUND_MS);
        for process in 0..self.processes.len() {
            self.start_well(process)?;
        }
        self.send_calls();
        self.take_turns()
    }

    /// Nobody calls; the processes wake by themselves, and every hold ends.
    fn lapse_all(&mut self) -> Result<(), Finding> {
        let idle_turns = self.options.plant != Some(Plant::NoIdleTurn);
        for _ in 0..IDLE_TURNS {
            if self.checker.state().counters().live_holds == 0 {
                return Ok(());
            }
            self.step += 1;
            let now = self.time.elapsed_ms();
            let wakes = self.processes.iter().filter_map(|process| process.running.as_ref());
            let wakes = wakes.filter_map(|running| running.sequencer.next_deadline_ms()).min();
            let wakes = wakes.filter(|_| idle_turns);
            let wakes = wakes.ok_or("holds are live, and nothing would wake to end them")?;
            self.pass(wakes.saturating_sub(now));
            self.take_turns()?;
        }
        let live = self.checker.state().counters().live_holds;
        Err(format!("{live} holds did not lapse in {IDLE_TURNS} turns"))
    }

    /// Each item sells to exactly T + L.
    fn sell_all(&mut self) -> Result<(), Finding> {
        let digester = self.digester.clone().expect("the log has its first row");
        for sale in SALES {
            for command in self.workload.reopening(&digester, sale) {
                self.ask(command)?;
            }
            let view = self.checker.state().sale(SHOP, sale);
            let is_open = |view: noondrop_core::SaleView| {
                view.state == SaleState::Open && view.terms.limits.is_empty()
            };
            if !view.is_some_and(is_open) {
                // There was no room for another key, or its definition was lost with the log's tail.
                continue;
            }
            for item in ITEMS {
                self.sell(sale, item)?;
            }
        }
        Ok(())
    }

    fn sell(&mut self, sale: &str, item: &str) -> Result<(), Finding> {
        let digester = self.digester.clone().expect("the log has its first row");
        let Some(view) = self.checker.state().item(SHOP, sale, item) else { return Ok(()) };
        let counts = view.counts;
        let cap = counts.cap();
        let rest = u32::try_from(cap.saturating_sub(u64::from(counts.sold))).expect("small");
        if counts.held > 0 {
            return Err(format!("{sale}/{item}: every hold lapsed, and {counts:?}"));
        }
        if rest > 0 {
            let command = self.workload.purchase(&digester, sale, item, rest);
            match self.ask(command)? {
                Some(Outcome::Hold(_)) => {}
                // There was no room for another key.
                None => return Ok(()),
                Some(other) => {
                    return Err(format!("{sale}/{item}: {rest} are left, and it says {other:?}"));
                }
            }
        }
        let command = self.workload.purchase(&digester, sale, item, 1);
        match self.ask(command)? {
            Some(Outcome::Refused(refusal)) if refusal.code() == "sold_out" => Ok(()),
            None => Ok(()),
            Some(other) => Err(format!("{sale}/{item}: nothing is left, and it says {other:?}")),
        }
    }

    /// Asks and waits for the answer; none if there is no room for another key.
    fn ask(&mut self, command: Command) -> Result<Option<Outcome>, Finding> {
        let key = command.key;
        self.want(command);
        self.answer_all()?;
        let key = key.expect("every command of the workload has a key");
        Ok(self.checker.said_outcome(key))
    }
}
