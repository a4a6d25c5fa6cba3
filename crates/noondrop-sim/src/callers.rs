//! Those who wait for answers: they double-click, give up, lose answers on the way, and ask again with the same key until
//! they know.

use std::collections::BTreeMap;

use noondrop_core::{Command, Outcome};
use noondrop_engine::{Answered, Call, Fault, Pending, Ticket};

use crate::checker::{Checker, Finding, IntentNo};
use crate::dice::Dice;

/// One thing that somebody wants.
#[derive(Debug)]
struct Intent {
    command: Command,
    in_flight: u32,
    /// When he asks (again); none: he does not.
    ask_at: Option<u64>,
    answered: bool,
    /// An attempt ended without anybody saying how.
    in_doubt: bool,
    /// He was told that it was surely not done, and did not ask since.
    told_not_done: bool,
}

/// How much patience and luck callers have.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// Of a thousand answers, so many are lost on the way.
    pub lost: u64,
    /// Of a thousand calls, so many are made twice at once.
    pub doubled: u64,
    /// Of a thousand calls, so many have a deadline.
    pub hurried: u64,
    /// A command that finds no room for its key counts as answered.
    pub gives_up_when_full: bool,
}

/// What a caller made of an answer.
pub struct Heard {
    /// Whose.
    pub intent: IntentNo,
    /// It arrived, and is what he wanted to know.
    pub news: Option<(Command, Outcome)>,
}

/// All callers.
pub struct Callers {
    dice: Dice,
    intents: Vec<Intent>,
    tickets: BTreeMap<u64, (IntentNo, usize)>,
    next_ticket: u64,
    /// How they behave.
    pub manners: Manners,
}

impl Callers {
    /// Nobody wants anything yet.
    #[must_use]
    pub fn new(dice: Dice, manners: Manners) -> Self {
        Self { dice, intents: Vec::new(), tickets: BTreeMap::new(), next_ticket: 0, manners }
    }

    /// Somebody wants something.
    pub fn want(&mut self, command: Command, now: u64) -> IntentNo {
        self.intents.push(Intent {
            command,
            in_flight: 0,
            ask_at: Some(now),
            answered: false,
            in_doubt: false,
            told_not_done: false,
        });
        self.intents.len() - 1
    }

    /// What somebody wants, or wanted.
    #[must_use]
    pub fn command(&self, intent: IntentNo) -> &Command {
        &self.intents[intent].command
    }

    /// Who asks now.
    #[must_use]
    pub fn due(&self, now: u64) -> Vec<IntentNo> {
        let intents = self.intents.iter().enumerate();
        let due = intents.filter(|(_, intent)| intent.ask_at.is_some_and(|at| at <= now));
        due.map(|(no, _)| no).collect()
    }

    /// Whether nobody waits, nor wants to ask.
    #[must_use]
    pub fn are_done(&self) -> bool {
        self.tickets.is_empty()
            && self.intents.iter().all(|intent| intent.answered && intent.ask_at.is_none())
    }

    /// The first who has no answer.
    #[must_use]
    pub fn first_unanswered(&self) -> Option<(IntentNo, &'static str)> {
        let mut intents = self.intents.iter().enumerate();
        let found = intents.find(|(_, intent)| !intent.answered);
        found.map(|(no, intent)| (no, intent.command.act.operation()))
    }

    /// Somebody asks once more, though he knows; the answer must be the same.
    pub fn ask_again(&mut self, now: u64) {
        if !self.intents.is_empty() {
            let no = self.dice.index(self.intents.len());
            self.intents[no].ask_at = Some(now);
        }
    }

    /// Sends a command, perhaps twice, to a process.
    pub fn send(&mut self, no: IntentNo, process: usize, now: u64) -> Vec<Pending> {
        let twice = self.dice.chance(self.manners.doubled);
        (0..=usize::from(twice)).map(|_| self.send_once(no, process, now)).collect()
    }

    fn send_once(&mut self, no: IntentNo, process: usize, now: u64) -> Pending {
        let hurried = self.dice.chance(self.manners.hurried);
        let deadline_ms = hurried.then(|| now + self.dice.between(0, 4_000));
        let intent = &mut self.intents[no];
        intent.in_flight += 1;
        intent.told_not_done = false;
        // He gets impatient, and asks again while the first attempt is on its way.
        let patience = self.dice.between(2_000, 20_000);
        intent.ask_at = (!intent.answered).then_some(now + patience);
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, (no, process));
        let call = Call { command: Box::new(intent.command.clone()), deadline_ms };
        Pending { ticket: Ticket(self.next_ticket), call }
    }

    /// Somebody does not know whether it was done.
    pub fn doubt(&mut self, no: IntentNo) {
        self.intents[no].in_doubt = true;
    }

    /// What a call is about.
    #[must_use]
    pub fn intent(&self, Ticket(ticket): Ticket) -> Option<IntentNo> {
        self.tickets.get(&ticket).map(|(no, _)| *no)
    }

    /// A process died: whoever called it knows nothing.
    pub fn hung_up(&mut self, process: usize, now: u64) {
        let lost: Vec<u64> = self
            .tickets
            .iter()
            .filter(|(_, (_, of))| *of == process)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in lost {
            let (no, _) = self.tickets.remove(&ticket).expect("it was just found");
            let pause = self.dice.between(50, 3_000);
            let intent = &mut self.intents[no];
            intent.in_flight -= 1;
            intent.in_doubt = true;
            intent.ask_at = (!intent.answered).then_some(now + pause);
        }
    }

    /// An answer comes back.
    pub fn hear(&mut self, answered: Answered, now: u64) -> Result<Heard, Finding> {
        let Ticket(ticket) = answered.ticket;
        let known = self.tickets.remove(&ticket);
        let (no, _) = known.ok_or("somebody was answered who did not call, or twice")?;
        let lost = self.dice.chance(self.manners.lost);
        let pause = self.dice.between(50, 3_000);
        let intent = &mut self.intents[no];
        intent.in_flight -= 1;
        match answered.answer {
            // But for the key: there is a planted bug that changes it on the way.
            Ok(reply) if reply.command.act != intent.command.act => {
                Err(format!("a caller of {} got another's answer", intent.command.act.operation()))
            }
            Ok(_) if lost && !intent.answered => {
                intent.in_doubt = true;
                intent.ask_at = Some(now + pause);
                Ok(Heard { intent: no, news: None })
            }
            Ok(reply) => {
                intent.in_doubt = true;
                intent.answered = true;
                intent.ask_at = None;
                Ok(Heard { intent: no, news: Some((*reply.command, reply.outcome)) })
            }
            Err(Fault::Internal(what)) => Err(format!("a command met a bug: {what}")),
            Err(Fault::KeysFull) if self.manners.gives_up_when_full => {
                intent.answered = true;
                intent.ask_at = None;
                Ok(Heard { intent: no, news: None })
            }
            Err(fault) => {
                intent.in_doubt |= fault == Fault::OutcomeUnknown;
                intent.told_not_done =
                    fault != Fault::OutcomeUnknown && intent.in_flight == 0 && !intent.in_doubt;
                intent.ask_at = (!intent.answered).then_some(now + pause);
                Ok(Heard { intent: no, news: None })
            }
        }
    }

    /// Whoever was told "surely not done" must not find it done.
    pub fn check_not_done(&self, checker: &Checker) -> Result<(), Finding> {
        let told = self.intents.iter().filter(|intent| intent.told_not_done);
        for intent in told {
            if intent.command.key.is_some_and(|key| checker.has_outcome(key)) {
                let operation = intent.command.act.operation();
                return Err(format!("{operation} was said to be surely not done, and is done"));
            }
        }
        Ok(())
    }

    /// A retry with a new key, which no caller should make.
    pub fn change_command(&mut self, no: IntentNo, command: Command) {
        self.intents[no].command = command;
    }

    /// Whether this is not his first attempt.
    #[must_use]
    pub fn is_retry(&self, no: IntentNo) -> bool {
        self.intents[no].in_doubt
    }

    /// How many things were ever wanted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.intents.len()
    }

    /// Whether nobody ever wanted anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intents.is_empty()
    }
}
