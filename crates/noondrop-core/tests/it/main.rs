//! The rules of the core, as behaviour: tables, small worlds tried whole, random worlds, the format of facts.

mod checks;
mod erasing;
mod exhaustive;
mod golden;
mod offers;
mod oracle;
mod properties;
mod script;
mod seating;
mod seats;
mod sharing;
mod tables;
mod world;
mod worlds;
