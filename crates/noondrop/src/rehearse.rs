//! `noondrop rehearse`: the dress rehearsal of a sale, with a crowd, over real HTTP, while the server is killed under it.
//!
//! # Layout
//!
//! * [`server`]: the throw-away server, a child process · [`stage`]: the sale, before and after
//! * [`crowd`]: buyers and what they do next, no IO · [`chances`]: what each is like · [`record`]: what they were told
//! * [`rush`]: the connections that they share
//! * [`verify`]: what they were told against what there is · [`report`]: the figures and the table
//!
//! Everything is bounded, and the same seed makes the same crowd (not the same timing: that is the machine's).

pub mod chances;
pub mod crowd;
pub mod record;
pub mod report;
pub mod rush;
pub mod server;
pub mod stage;
pub mod verify;

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use noondrop_log::LogOpener;
use noondrop_log::sqlite::SqliteOpener;
use tokio::task::{JoinSet, LocalSet};

use crate::audit::audit;
use crate::cli::Failure;
use crate::client::Desk;
use crate::serve::LOG_FILE;
use crate::time::steady;
use crowd::{Crowd, Times};
use report::{End, Progress, Report};
use rush::Rush;
use server::ChildServer;
use stage::Stage;
use verify::{Ledger, Units};

/// What to rehearse.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Tickets on sale.
    pub tickets: u32,
    /// Buyers who want one each.
    pub buyers: u32,
    /// Connections that they share.
    pub connections: usize,
    /// Share of buyers who double-click.
    pub duplicates: f64,
    /// Share of buyers who take a ticket and never pay.
    pub abandon: f64,
    /// How long a hold lives, in seconds.
    pub hold_ttl_seconds: u32,
    /// How often the server is killed during the rush.
    pub kills: u32,
    /// Makes the same crowd again.
    pub seed: u64,
    /// Audit the log after each kill too, before the server starts again.
    pub audit_each_kill: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            tickets: 50_000,
            buyers: 60_000,
            connections: 256,
            duplicates: 0.25,
            abandon: 0.1,
            hold_ttl_seconds: 3,
            kills: 2,
            seed: 1,
            audit_each_kill: false,
        }
    }
}

impl Plan {
    /// How long after the opening buyers go on trying. Abandoned units come back after a hold's life, are abandoned
    /// again in part, and so on: a dozen lives are plenty, beside the time for the requests themselves.
    fn patience(&self) -> Duration {
        let requests = f64::from(self.buyers) / 1_000.0;
        let lives = f64::from(self.hold_ttl_seconds) * 12.0;
        Duration::from_secs_f64(20.0 + requests + lives)
    }
}

/// Rehearses against a throw-away server of this program in this directory.
pub fn run(plan: &Plan, program: &Path, data: &Path) -> Result<Report, Failure> {
    let mut server = ChildServer::start_program(program, data, &[])?;
    let (stage, rush, mut end) = on_own_runtime(async {
        server.ready().await?;
        let token = server.admin_secret()?;
        let stage = Stage::set(plan, server.address(), &token).await?;
        let mut killer = Killer { server: &mut server, plan, log: data.join(LOG_FILE), kills: 0 };
        let rushed = rush(plan, &stage, Some(&mut killer)).await?;
        let told = told(&stage, plan).await?;
        let end = End { told, log: None, kills: killer.kills, seconds: rushed.seconds };
        Ok((stage, rushed.rush, end))
    })?;
    server.stop()?;
    let opener = SqliteOpener::at(data.join(LOG_FILE), std::sync::Arc::default())?;
    end.log = Some(verify::read_log(&mut *opener.reader()?, &stage.sale));
    Ok(Report::new(plan, &rush, &end))
}

/// Rehearses on a staging system. It is not killed and its log is not read: what it answers is what counts.
pub fn run_target(
    plan: &Plan,
    target: SocketAddr,
    token: &str,
    shop: &str,
) -> Result<Report, Failure> {
    on_own_runtime(async {
        stage::refuse_live(&mut Desk::new(target, token), shop).await?;
        let stage = Stage::set(plan, target, token).await?;
        let rushed = rush(plan, &stage, None).await?;
        let told = told(&stage, plan).await?;
        stage.close().await?;
        let end = End { told, log: None, kills: 0, seconds: rushed.seconds };
        Ok(Report::new(plan, &rushed.rush, &end))
    })
}

/// One thread is enough for the crowd, and leaves the other cores to the server. An interrupt ends it in order.
fn on_own_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            done = work => done,
        }
    })
}

async fn told(stage: &Stage, plan: &Plan) -> Result<Ledger, Failure> {
    let within = Duration::from_secs(u64::from(plan.hold_ttl_seconds) + 5);
    let item = stage.settled(within).await?;
    Ok(Ledger { holds: stage.holds().await?, units: Units::of(&item) })
}

struct Rushed {
    rush: Rc<Rush>,
    seconds: f64,
}

async fn rush(
    plan: &Plan,
    stage: &Stage,
    mut killer: Option<&mut Killer<'_>>,
) -> Result<Rushed, Failure> {
    let now = steady();
    let times = Times { now, opens: stage.opens, closes: stage.opens + plan.patience() };
    let rush = Rush::new(stage.clone(), Crowd::gather(plan, times));
    let mut all = JoinSet::new();
    all.spawn_local(Rc::clone(&rush).tick());
    all.spawn_local(Rc::clone(&rush).look());
    for _ in 0..plan.connections.max(1) {
        all.spawn_local(Rc::clone(&rush).serve());
    }
    let mut progress = Progress::begin();
    // Far behind the last moment at which the crowd goes home by itself.
    let last: Instant = times.closes + Duration::from_secs(60);
    while !rush.is_over() {
        if steady() >= last {
            return Err("the rehearsal did not come to its end".into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        if let Some(killer) = &mut killer {
            killer.kill_if_due(&rush).await?;
        }
        progress.show(&rush, killer.as_ref().map_or(0, |killer| killer.kills));
    }
    progress.end();
    let seconds = now.elapsed().as_secs_f64();
    while let Some(ended) = all.join_next().await {
        ended?;
    }
    Ok(Rushed { rush, seconds })
}

/// Kills by progress, not by the clock: in the thick of the rush on any machine.
struct Killer<'a> {
    server: &'a mut ChildServer,
    plan: &'a Plan,
    log: std::path::PathBuf,
    kills: u32,
}

impl Killer<'_> {
    async fn kill_if_due(&mut self, rush: &Rush) -> Result<(), Failure> {
        let holds = u64::from(self.plan.tickets.min(self.plan.buyers));
        let next = holds * u64::from(self.kills + 1) / u64::from(self.plan.kills + 1);
        let made = rush.crowd.borrow().record.promises().len() as u64;
        if self.kills >= self.plan.kills || made < next {
            return Ok(());
        }
        rush.outage(true);
        self.server.kill()?;
        if self.plan.audit_each_kill {
            let opener = SqliteOpener::at(&self.log, std::sync::Arc::default())?;
            audit(&mut *opener.reader()?, None, &mut |_| {})?;
        }
        self.server.restart()?;
        self.server.ready().await?;
        rush.outage(false);
        self.kills += 1;
        Ok(())
    }
}
