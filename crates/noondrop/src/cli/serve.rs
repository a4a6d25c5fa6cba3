//! `noondrop serve`: what the server needs before it can listen. Listening itself is the server's.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{ConfigArguments, Failure};
use crate::auth::{
    Authenticator, BootstrapAdmin, bootstrap, refuse_non_loopback_without_principals,
};
use crate::config::{Flag, Loaded, load};

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

/// Runs the server.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let prepared = prepare(options)?;
    crate::logging::init(&prepared.loaded.settings.log)?;
    if let Some(admin) = &prepared.admin {
        let age = if admin.is_new() { "made now" } else { "made by an earlier start" };
        writeln!(out, "admin secret ({age}): {}", admin.path().display())?;
    }
    Err("this build can be configured but does not listen yet".into())
}
