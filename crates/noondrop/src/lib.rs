//! Noondrop, the program: sells every unit exactly once and can explain every outcome.
//!
//! # Layout
//!
//! * [`cli`]: the verbs of the command line, one file each
//! * [`config`]: settings, their defaults, bounds and origins
//! * [`auth`]: who is calling
//! * [`logging`] · [`time`] · [`entropy`] · [`environment`]: the program's edges to its machine, each in one place
//!
//! What decides who gets the last unit is in `noondrop-core`; nothing here may.

pub mod auth;
pub mod cli;
pub mod config;
pub mod entropy;
pub mod environment;
pub mod logging;
pub mod time;
