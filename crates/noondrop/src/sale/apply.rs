//! Sends what a plan has, and looks again until the server has what the file says.
//!
//! An answer from the record means that a request with this very key was decided before: by a run that was cut off, whose
//! work is then there, or long ago, and somebody undid it since. So after such an answer the server is asked again, and what
//! still differs is sent under the next key. What differs though nothing was replayed, somebody else changed meanwhile.

use std::error::Error;
use std::fmt;

use super::file::SaleFile;
use super::plan::{Guard, Plan, Step, plan};
use super::standing;
use super::teller::{Call, Teller, TellerError};

/// How often a change may have been made and undone by others before, within the memory of keys.
const ROUNDS_MAX: u32 = 100;

/// Why a file was not applied, or not all of it.
#[derive(Debug)]
pub enum ApplyError {
    /// The server could not be asked what it has.
    Look(TellerError),
    /// The plan says why not; nothing was done.
    Impossible(usize),
    /// A request was refused or not answered.
    Stopped {
        /// What it was to do.
        does: String,
        /// Those before it that were done.
        done: Vec<String>,
        /// Why.
        source: TellerError,
    },
    /// Somebody else changed the same thing; that change stands.
    Meanwhile {
        /// What was to be done, or what differs now.
        what: String,
        /// What was done before.
        done: Vec<String>,
    },
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let so_far = |done: &[String]| match done {
            [] => "nothing was changed".to_owned(),
            done => format!("done before that: {}", done.join("; ")),
        };
        match self {
            Self::Look(_) => f.write_str("could not ask what the server has"),
            Self::Impossible(1) => f.write_str("nothing was changed, because of what is marked !"),
            Self::Impossible(many) => {
                write!(f, "nothing was changed, because of the {many} lines marked !")
            }
            Self::Stopped { does, done, source: TellerError::Unanswered { .. } } => write!(
                f,
                "could not {does}, or does not know ({}); run it again, it goes on from there",
                so_far(done)
            ),
            Self::Stopped { does, done, .. } => write!(f, "could not {does} ({})", so_far(done)),
            Self::Meanwhile { what, done } => write!(
                f,
                "somebody else made changes meanwhile, and they stand: {what} ({}); run it again to see the difference",
                so_far(done)
            ),
        }
    }
}

impl Error for ApplyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Look(source) | Self::Stopped { source, .. } => Some(source),
            Self::Impossible(_) | Self::Meanwhile { .. } => None,
        }
    }
}

/// Compares, and does nothing.
pub async fn compare(teller: &mut Teller, file: &SaleFile) -> Result<Plan, ApplyError> {
    let standing = standing::read(teller, file).await.map_err(ApplyError::Look)?;
    Ok(plan(file, &standing))
}

/// Makes the server have what the file says. `show` gets the difference before anything is done.
pub async fn apply(
    teller: &mut Teller,
    file: &SaleFile,
    show: &mut dyn FnMut(&Plan),
) -> Result<(), ApplyError> {
    let mut run = Run { teller, done: Vec::new(), look_again: false, contested: None };
    let mut sent = Sent { definitions: false, publish: false };
    for round in 0..ROUNDS_MAX {
        let plan = compare(run.teller, file).await?;
        if round == 0 {
            show(&plan);
        }
        if !plan.refusals.is_empty() {
            return Err(run.refused(&plan));
        }
        if let Some(contested) = run.contested.take()
            && plan.steps.iter().any(|step| step.path == contested.path)
        {
            return Err(run.meanwhile(&format!("could not {}", contested.does)));
        }
        // Nothing is published before everything else was seen to be there.
        let (steps, was_sent) = match &plan.publish {
            Some(publish) if plan.steps.is_empty() => {
                (std::slice::from_ref(publish), &mut sent.publish)
            }
            _ if plan.steps.is_empty() => return Ok(()),
            _ => (plan.steps.as_slice(), &mut sent.definitions),
        };
        if *was_sent && !run.look_again {
            return Err(run.meanwhile(plan.differences.first().map_or("", |d| d.says.as_str())));
        }
        *was_sent = true;
        run.look_again = false;
        run.send(steps, round).await?;
    }
    Err(run.meanwhile("the same change was undone too often"))
}

struct Sent {
    definitions: bool,
    publish: bool,
}

struct Run<'a> {
    teller: &'a mut Teller,
    done: Vec<String>,
    /// An answer told of earlier work, so that what differs next is nobody's fault.
    look_again: bool,
    /// What somebody changed in between: an error if it still differs from the file.
    contested: Option<Step>,
}

impl Run<'_> {
    async fn send(&mut self, steps: &[Step], round: u32) -> Result<(), ApplyError> {
        for step in steps {
            let key = match &step.guard {
                Guard::Key(key) => Some(format!("{key}.{round}")),
                Guard::Version(_) | Guard::Harmless => None,
            };
            let if_match = match &step.guard {
                Guard::Version(version) => Some(*version),
                Guard::Key(_) | Guard::Harmless => None,
            };
            let Step { method, path, body, does, .. } = step;
            let call = Call { method, path, body, if_match, key: key.as_deref() };
            match self.teller.ask(call).await {
                Ok(told) => {
                    self.look_again |= told.replayed;
                    if !told.replayed || told.repeated {
                        self.done.push(does.clone());
                    }
                }
                Err(TellerError::Refused(refused)) if refused.replayed => {
                    self.look_again = true;
                    return Ok(());
                }
                Err(TellerError::Refused(refused)) if refused.code() == "version_mismatch" => {
                    // Perhaps by this program: by a first try without an answer, or by a run that was killed.
                    self.look_again = true;
                    self.contested = Some(step.clone());
                    return Ok(());
                }
                Err(source) => {
                    let (does, done) = (does.clone(), self.done.clone());
                    return Err(ApplyError::Stopped { does, done, source });
                }
            }
        }
        Ok(())
    }

    fn meanwhile(&self, what: &str) -> ApplyError {
        ApplyError::Meanwhile { what: what.to_owned(), done: self.done.clone() }
    }

    fn refused(&self, plan: &Plan) -> ApplyError {
        match self.done[..] {
            [] => ApplyError::Impossible(plan.refusals.len()),
            _ => self.meanwhile(&plan.refusals[0]),
        }
    }
}
