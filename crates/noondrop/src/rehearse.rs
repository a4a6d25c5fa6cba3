//! `noondrop rehearse`: the dress rehearsal of a sale, with a crowd, over real HTTP, while the server is killed under it.
//!
//! # Layout
//!
//! * [`server`]: the throw-away server, a child process · [`crowd`]: buyers, what they do and what they saw
//! * [`verify`]: what they saw against what the log says · [`report`]: the figures and the table
//!
//! Everything is bounded, and the same seed makes the same crowd (not the same timing: that is the machine's).

pub mod crowd;
pub mod report;
pub mod server;
pub mod verify;

use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use noondrop_log::LogOpener;
use noondrop_log::sqlite::SqliteOpener;

use crate::cli::Failure;
use crate::client::{Connection, Request};
use crate::serve::LOG_FILE;
use crate::time::{now_ms, steady};
use crowd::{Crowd, World};
use report::{Progress, Report};
use server::ChildServer;

/// How long before the opening the crowd gathers.
const OPENS_IN: Duration = Duration::from_millis(1_500);

/// What to rehearse.
#[derive(Clone, Debug)]
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
}

/// Rehearses against a throw-away server in this directory.
pub fn run(plan: &Plan, data: &Path, out: &mut dyn Write) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let mut server = ChildServer::start(data)?;
    let (world, seconds) = local.block_on(&runtime, async {
        server.ready().await?;
        let token = server.admin_secret()?;
        let opens_at_ms = open_sale(plan, server.address(), &token).await?;
        let world = World::new(plan.clone(), server.address(), token, opens_at_ms);
        rush(plan, world, &mut server, out).await
    })?;
    writeln!(out, "\nstopping the server and auditing its log")?;
    server.stop()?;
    let opener = SqliteOpener::at(data.join(LOG_FILE), std::sync::Arc::default())?;
    let verdict = verify::verify(&mut *opener.reader()?, plan, &world.seen.borrow());
    Ok(Report::new(plan, &world.seen.borrow(), seconds, &verdict))
}

/// Rehearses against a staging system. It is not killed, and its log is not read: what it answers is what counts.
pub fn run_target(
    plan: &Plan,
    target: std::net::SocketAddr,
    token: &str,
    out: &mut dyn Write,
) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        refuse_live(target, token).await?;
        let opens_at_ms = open_sale(plan, target, token).await?;
        let world = World::new(plan.clone(), target, token.to_owned(), opens_at_ms);
        let begun = steady();
        watch(&world, Crowd::gather(&world), None, out).await?;
        let verdict = verify::ask(&world).await;
        let seen = world.seen.borrow();
        Ok(Report::new(plan, &seen, begun.elapsed().as_secs_f64(), &verdict))
    })
}

async fn refuse_live(target: std::net::SocketAddr, token: &str) -> Result<(), Failure> {
    let request =
        Request { method: "GET", path: "/v1/shops/main", token, key: None, body: "" }.bytes();
    let answer = Connection::new(target, Duration::from_secs(10)).request(&request).await?;
    let shop: serde_json::Value = serde_json::from_slice(&answer.body)?;
    if answer.status != 200 {
        return Err(format!("the target answered {}: {shop}", answer.status).into());
    }
    if shop["live"] == true {
        return Err("the target's shop is live: rehearse on a staging system".into());
    }
    Ok(())
}

/// Puts the tickets on sale; when it opens, in the server's wall-clock milliseconds.
async fn open_sale(
    plan: &Plan,
    address: std::net::SocketAddr,
    token: &str,
) -> Result<u64, Failure> {
    let mut connection = Connection::new(address, Duration::from_secs(10));
    let opens_at_ms = now_ms() + u64::try_from(OPENS_IN.as_millis())?;
    let opens_at = crate::http::render::time_text(noondrop_core::Timestamp(opens_at_ms));
    let ttl = plan.hold_ttl_seconds;
    let sale = crowd::sale_name(plan.seed);
    let terms = format!(
        "{{\"title\":\"Rehearsal\",\"opens_at\":\"{opens_at}\",\"hold_seconds\":{ttl},\"hold_seconds_max\":{ttl},\"live_holds_per_buyer\":1,\"limits\":[{{\"name\":\"one-each\",\"per_buyer\":1}}]}}"
    );
    let item = format!("{{\"total\":{}}}", plan.tickets);
    let steps = [
        ("PUT", format!("/v1/sales/{sale}"), terms),
        ("PUT", format!("/v1/sales/{sale}/items/ticket"), item),
        ("POST", format!("/v1/sales/{sale}/publish"), String::new()),
    ];
    for (method, path, body) in steps {
        let request = Request { method, path: &path, token, key: None, body: &body };
        let answer = connection.request(&request.bytes()).await?;
        if !(200..300).contains(&answer.status) {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(format!("{method} {path} was answered {}: {body}", answer.status).into());
        }
    }
    Ok(opens_at_ms)
}

async fn rush(
    plan: &Plan,
    world: Rc<World>,
    server: &mut ChildServer,
    out: &mut dyn Write,
) -> Result<(Rc<World>, f64), Failure> {
    let crowd = Crowd::gather(&world);
    let begun = steady();
    let killer = Killer { kills: plan.kills, done: 0, tickets: plan.tickets };
    watch(&world, crowd, Some((server, killer)), out).await?;
    Ok((world, begun.elapsed().as_secs_f64()))
}

/// Kills by progress, not by the clock: in the thick of the rush on any machine.
struct Killer {
    kills: u32,
    done: u32,
    tickets: u32,
}

impl Killer {
    fn is_due(&self, holds: u64) -> bool {
        let next = u64::from(self.tickets) * u64::from(self.done + 1) / u64::from(self.kills + 1);
        self.done < self.kills && holds >= next
    }
}

async fn watch(
    world: &Rc<World>,
    crowd: Crowd,
    mut server: Option<(&mut ChildServer, Killer)>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut progress = Progress::new();
    while !crowd.is_done() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let holds = world.seen.borrow().holds_acknowledged();
        if let Some((server, killer)) = &mut server
            && killer.is_due(holds)
        {
            killer.done += 1;
            world.outage(true);
            server.kill()?;
            server.restart()?;
            server.ready().await?;
            world.outage(false);
            world.seen.borrow_mut().kills += 1;
        }
        progress.show(&world.plan, &world.seen.borrow(), out)?;
    }
    progress.end(out)?;
    Ok(())
}
