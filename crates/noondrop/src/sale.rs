//! A whole sale from a file: read, compared with what a running server has, shown, applied.
//!
//! [`mod@file`] reads the description and [`seats`] its seats; [`standing`] asks the server what there is; [`plan`] is the
//! difference, as lines for people and as requests, ([`hall`] and [`blocks`] are parts of it), and decides without asking anybody; [`apply`] sends them.
//! [`teller`] is the conversation, [`show`] prints. Nothing here knows a rule of the core: what the server refuses, it says.

pub mod apply;
pub mod blocks;
pub mod file;
pub mod hall;
pub mod plan;
pub mod seats;
pub mod show;
pub mod standing;
pub mod teller;
