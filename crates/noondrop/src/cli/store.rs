//! What the verbs that read a store or ask a server share: finding the log, reading a secret, waiting for an answer.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use noondrop_log::sqlite::SqliteOpener;
use noondrop_log::{LogOpener, LogReader};

use super::{ConfigArguments, Failure};
use crate::auth::Secret;
use crate::config::{Flag, load};
use crate::serve::LOG_FILE;

/// Where the store is.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreArguments {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Data directory, instead of store.path
    #[arg(long, value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,
}

impl StoreArguments {
    /// A reader of the log; its server may run.
    pub fn reader(&self) -> Result<Box<dyn LogReader>, Failure> {
        Ok(SqliteOpener::at(self.log()?, Arc::default())?.reader()?)
    }

    /// The file of the log, which must exist.
    pub fn log(&self) -> Result<PathBuf, Failure> {
        let data = self.data.as_ref().map(|data| Flag {
            flag: "--data",
            setting: "store.path",
            value: data.to_string_lossy().into_owned(),
        });
        let loaded = load::load(&self.config.sources(data.into_iter().collect()))?;
        let log = loaded.settings.store.path.join(LOG_FILE);
        if log.exists() {
            Ok(log)
        } else {
            Err(format!("there is no log at {}; --data names the data directory", log.display())
                .into())
        }
    }
}

/// Reads a secret out of a file; the end of the line does not count.
pub fn read_token(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("could not read {}: {error}", path.display()))?;
    let text = text.trim();
    match Secret::parse(text) {
        Some(secret) => Ok(secret.reveal().to_owned()),
        None => Err(format!("{} holds no secret of a principal", path.display()).into()),
    }
}

/// The address of a server, from `http://host:port` or `host:port`.
pub fn address(url: &str) -> Result<SocketAddr, Failure> {
    if url.starts_with("https://") {
        return Err(
            "no TLS here: name the server itself, http://host:port, not the proxy before it".into(),
        );
    }
    let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    let found = host.to_socket_addrs().map(|mut addresses| addresses.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(format!("{host} has no address").into()),
        Err(error) => Err(format!("{host} is not of the form host:port: {error}").into()),
    }
}

/// Waits for a few requests, on a runtime of its own.
pub fn block_on<T>(asking: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(asking))
}
