//! The server, put together: store, engine, authentication, HTTP; and taken apart again in order.

use std::path::Path;
use std::thread;
use std::time::Duration;

use noondrop_core::{LossAccepted, Seq, Settings as CoreSettings};
use noondrop_engine::{Engine, EngineOptions};
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};

use crate::auth::Authenticator;
use crate::cli::Failure;
use crate::config::Settings;
use crate::http::server::{Server, ServerOptions};
use crate::http::{App, AppLimits, Extra, router};

/// The file of the log within the data directory.
pub const LOG_FILE: &str = "noondrop.sqlite";

/// A program that serves.
pub struct Running {
    engine: Engine,
    server: Server,
}

/// What is asked of a start beyond the configuration.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions {
    /// Go on although answered rows are gone.
    pub accept_loss: bool,
    /// Routes beside the API.
    pub extra: Extra,
}

impl Running {
    /// Opens the store, recovers, and listens.
    pub fn start(
        settings: &Settings,
        authenticator: Authenticator,
        options: StartOptions,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(&settings.store.path)?;
        let engine = start_engine(settings, options.accept_loss)?;
        let app = App::new(engine.handle(), authenticator, limits(settings));
        let router = router(&app, options.extra);
        let server = Server::start(&engine.handle(), &router, server_options(settings))?;
        Ok(Self { engine, server })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> std::net::SocketAddr {
        self.server.address()
    }

    /// The engine, for a program that does more with it.
    #[must_use]
    pub fn handle(&self) -> noondrop_engine::Handle {
        self.engine.handle()
    }

    /// Stops accepting, finishes the turn, answers, flushes.
    pub fn stop(self) -> Result<(), Failure> {
        self.server.stop();
        self.engine.stop()?;
        Ok(())
    }
}

fn start_engine(settings: &Settings, accept_loss: bool) -> Result<Engine, Failure> {
    let path = settings.store.path.join(LOG_FILE);
    let options = SqliteOptions { accept_loss, ..SqliteOptions::new(&path) };
    let log = SqliteLog::open(options)?;
    let accepted_loss = log.loss().map(|loss| LossAccepted {
        acknowledged: Seq(loss.acknowledged.seq),
        found: Seq(loss.found.seq),
    });
    let options = engine_options(settings, &settings.store.path);
    Ok(Engine::start(Box::new(log), EngineOptions { accepted_loss, ..options })?)
}

fn engine_options(settings: &Settings, data: &Path) -> EngineOptions {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    EngineOptions {
        turn_commands_max: count(settings.engine.turn_commands_max),
        turn_bytes_max: count(settings.engine.turn_bytes_max),
        queue_max: count(settings.engine.queue_max),
        spin_us: settings.engine.spin_us,
        settings: CoreSettings {
            success_key_hours: narrow(settings.retention.success_keys_hours),
            refusal_key_seconds: narrow(settings.retention.refusal_keys_seconds),
            keys_max: narrow(settings.retention.keys_max),
        },
        snapshot_every_rows: settings.store.snapshot_every_rows,
        snapshot_every_seconds: settings.store.snapshot_every_seconds,
        evidence_dir: Some(data.join("evidence")),
        ..EngineOptions::default()
    }
}

fn limits(settings: &Settings) -> AppLimits {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = &settings.limits;
    AppLimits {
        request_timeout: Duration::from_millis(settings.server.request_timeout_ms),
        body_bytes_max: usize::try_from(settings.server.body_bytes_max).unwrap_or(usize::MAX),
        refusals_per_minute_per_buyer: narrow(limits.refusals_per_minute_per_buyer),
        refusals_per_minute_per_principal: narrow(limits.refusals_per_minute_per_principal),
        live_holds_per_buyer: usize::try_from(limits.live_holds_per_buyer).unwrap_or(usize::MAX),
        public_metrics: settings.server.public_metrics,
    }
}

fn server_options(settings: &Settings) -> ServerOptions {
    let server = &settings.server;
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = usize::try_from(server.threads).unwrap_or(cores);
    ServerOptions {
        listen: server.listen,
        threads: if threads == 0 { cores } else { threads },
        header_timeout: Duration::from_millis(server.header_timeout_ms),
        connections_max: usize::try_from(server.connections_max).unwrap_or(usize::MAX),
        shutdown_grace: Duration::from_millis(server.shutdown_grace_ms),
    }
}

/// Waits until the process is asked to stop.
pub fn wait_for_signal() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            biased;
            _ = terminate.recv() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::from),
        }
    })
}
