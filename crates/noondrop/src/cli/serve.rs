//! `noondrop serve`: the server, and a demo sale to play with.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{ConfigArguments, Failure};
use crate::auth::{
    Authenticator, BootstrapAdmin, bootstrap, refuse_non_loopback_without_principals,
};
use noondrop_core::{
    Act, Actor, Command, Counts, ItemPut, Name, Role, SaleMove, SalePut, SaleState, SaleStep,
    SaleTerms, Timestamp,
};

use crate::config::{Flag, Loaded, load};
use crate::http::Extra;
use crate::serve::{Running, StartOptions, wait_for_signal};

/// Options of `serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Address and port, instead of server.listen
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Data directory, instead of store.path
    #[arg(long, value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,
    /// Start with a demo sale that opens in 20 seconds, and print three requests to paste
    #[arg(long)]
    pub dev: bool,
    /// Go on although rows that were answered are gone from the log; the log keeps a fact about it
    #[arg(long)]
    pub accept_loss: bool,
    /// Mount a route that only parses and answers, for benchmarks
    #[arg(long, hide = true)]
    pub bench_routes: bool,
}

/// Everything that is ready before the store is opened.
#[derive(Debug)]
pub struct Prepared {
    /// The configuration, within its bounds.
    pub loaded: Loaded,
    /// Who may call.
    pub authenticator: Authenticator,
    /// The admin of a start without principals; its file's place is for printing.
    pub admin: Option<BootstrapAdmin>,
}

impl Options {
    fn flags(&self) -> Vec<Flag> {
        let listen = self.listen.as_ref().map(|listen| Flag {
            flag: "--listen",
            setting: "server.listen",
            value: listen.clone(),
        });
        let data = self.data.as_ref().map(|data| Flag {
            flag: "--data",
            setting: "store.path",
            value: data.to_string_lossy().into_owned(),
        });
        listen.into_iter().chain(data).collect()
    }
}

/// Loads the configuration, refuses an address that nobody guards, and reads every secret and key.
///
/// Only where no principal is configured, the data directory and its admin secret are made.
pub fn prepare(options: &Options) -> Result<Prepared, Failure> {
    let loaded = load::load(&options.config.sources(options.flags()))?;
    refuse_non_loopback_without_principals(&loaded.settings)?;
    let admin = match loaded.settings.principals.as_slice() {
        [] => Some(bootstrap(&loaded.settings.store.path)?),
        _ => None,
    };
    let authenticator = Authenticator::new(&loaded.settings, admin.as_ref())?;
    Ok(Prepared { loaded, authenticator, admin })
}

/// Runs the server until it is asked to stop.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let prepared = prepare(options)?;
    crate::logging::init(&prepared.loaded.settings.log)?;
    let extra = if options.bench_routes { Extra::Bench } else { Extra::None };
    let start = StartOptions { accept_loss: options.accept_loss, extra };
    let running = Running::start(&prepared.loaded.settings, prepared.authenticator, start)?;
    if let Some(admin) = &prepared.admin {
        let age = if admin.is_new() { "made now" } else { "made by an earlier start" };
        writeln!(out, "admin secret ({age}): {}", admin.path().display())?;
    }
    writeln!(out, "listening on http://{}", running.address())?;
    if options.dev {
        let admin = prepared.admin.as_ref().map(BootstrapAdmin::path);
        demo(&running, admin, out)?;
    }
    out.flush()?;
    wait_for_signal()?;
    tracing::info!("stopping: finishing what has begun");
    running.stop()
}

/// How long a developer has to read the lines before the demo sale opens.
const DEMO_OPENS_IN_SECONDS: u64 = 20;

/// A sale to play with, and three requests to paste.
fn demo(running: &Running, admin: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let opens_at = Timestamp(crate::time::now_ms()).plus_seconds(DEMO_OPENS_IN_SECONDS);
    for command in demo_commands(opens_at) {
        running.handle().execute_blocking(command.into())?;
    }
    let url = format!("http://{}/v1", running.address());
    let token = admin.map_or_else(
        || "$(cat YOUR-SECRET-FILE)".to_owned(),
        |path| format!("$(cat {})", path.display()),
    );
    let auth = format!("-H \"Authorization: Bearer {token}\"");
    let json = "-H 'Content-Type: application/json'";
    let found = running.handle().query_blocking(|state, now| {
        (state.sale("main", "demo"), state.item("main", "demo", "ticket"), now)
    })?;
    let (sale, item, now) = found.value;
    if let (Some(sale), Some(item)) = (sale, item) {
        let there = demo_line(&item.counts, sale.state, sale.terms.opens_at, now);
        writeln!(out, "\n{there} Paste, and paste again:\n")?;
    }
    writeln!(
        out,
        "curl -i {url}/holds {auth} {json} -H 'Idempotency-Key: cart-1.v1' \\\n  \
         -d '{{\"sale\":\"demo\",\"buyer\":\"ann\",\"lines\":[{{\"item\":\"ticket\",\"quantity\":2}}]}}'"
    )?;
    writeln!(out, "curl {url}/sales/demo/items/ticket {auth}")?;
    writeln!(out, "curl {url}/ledger {auth}\n")?;
    Ok(())
}

/// What is there: an older directory keeps its tickets, sold ones and all.
fn demo_line(
    counts: &Counts,
    state: SaleState,
    opens_at: Option<Timestamp>,
    now: Timestamp,
) -> String {
    let opens = match (state, opens_at) {
        (SaleState::Scheduled, Some(at)) => {
            format!("opens in {} s", at.0.saturating_sub(now.0).div_ceil(1_000))
        }
        _ => format!("is {}", state.as_str()),
    };
    let (total, free) = (counts.total, counts.available());
    let free = if free == u64::from(total) { String::new() } else { format!(", {free} free,") };
    format!("The sale `demo` has {total} tickets{free} and {opens}.")
}

fn demo_commands(opens_at: Timestamp) -> Vec<Command> {
    let name = |text: &str| Name::parse(text).expect("a constant that is a name");
    let command = |act: Act| {
        let actor = Actor::Principal { name: name("dev"), role: Role::Admin };
        Command { shop: name("main"), actor, key: None, origin: None, act }
    };
    let terms = SaleTerms {
        title: "A demo".into(),
        opens_at: Some(opens_at),
        closes_at: None,
        hold_seconds: 60,
        hold_seconds_max: 300,
        hold_chain_seconds_max: 900,
        extensions_max: 2,
        live_holds_per_buyer: None,
        limits: Vec::new(),
        returns_to: None,
    };
    let sale = name("demo");
    let item = ItemPut {
        sale: sale.clone(),
        item: name("ticket"),
        total: Some(100),
        oversell_limit: 0,
        if_version: None,
        seats: None,
        counts_against: None,
    };
    [
        Act::SalePut(SalePut { sale: sale.clone(), terms, if_version: None }),
        Act::ItemPut(item),
        Act::SaleMove(SaleMove { sale, to: SaleStep::Publish }),
    ]
    .map(command)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_says_what_is_there() {
        let mut counts = Counts { total: 100, ..Counts::default() };
        let at = |state, counts: &Counts| {
            demo_line(counts, state, Some(Timestamp(20_000)), Timestamp(500))
        };
        assert_eq!(
            at(SaleState::Scheduled, &counts),
            "The sale `demo` has 100 tickets and opens in 20 s."
        );
        (counts.total, counts.sold) = (40, 3);
        assert_eq!(
            at(SaleState::Open, &counts),
            "The sale `demo` has 40 tickets, 37 free, and is open."
        );
    }
}
