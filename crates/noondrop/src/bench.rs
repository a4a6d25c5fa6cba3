//! Benchmarks that anybody can run: throughput, latency and errors together, and each counts only if the audit of what
//! it wrote passes.
//!
//! # Layout
//!
//! * [`engine`]: the pure engine on a durable log · [`seats`]: the same, with the best seats of a hall ·
//!   [`recovery`]: a start with many holds
//! * [`http`]: holds over HTTP beside a handler that only parses and answers · [`storm`]: many duplicates of one key
//! * [`workload`]: the commands that all of them use · [`figures`]: percentiles

pub mod engine;
pub mod figures;
pub mod http;
pub mod recovery;
pub mod seats;
pub mod storm;
pub mod workload;
