//! Noondrop, the program: sells every unit exactly once and can explain every outcome.
//!
//! # Layout
//!
//! * [`cli`]: the verbs of the command line, one file each
//! * [`config`]: settings, their defaults, bounds and origins
//! * [`auth`]: who is calling · [`http`]: the API · [`ledger`]: facts as people read them
//! * [`rehearse`]: a sale with a crowd and kills · [`audit`]: whether a log holds · [`client`]: HTTP for load
//! * [`backup`]: copies of a log, logs made of copies, orders compared with a log
//! * [`sale`]: a whole sale from a file, compared with a server and applied
//! * [`serve`]: the server, put together · [`bench`]: how fast it is
//! * [`logging`] · [`time`] · [`entropy`] · [`environment`]: the program's edges to its machine, each in one place
//!
//! What decides who gets the last unit is in `noondrop-core`; nothing here may.

pub mod audit;
pub mod auth;
pub mod backup;
pub mod bench;
pub mod cli;
pub mod client;
pub mod config;
pub mod entropy;
pub mod environment;
pub mod http;
pub mod ledger;
pub mod logging;
pub mod rehearse;
pub mod sale;
pub mod serve;
pub mod tasks;
pub mod time;
