//! The engine from outside: the pure step on a log that fails on command, and whole engines on real
//! files.

mod engine;
mod follow;
mod guards;
mod restart;
mod settle;
mod support;
mod time;

#[path = "../../examples/embedded.rs"]
mod embedded;

#[test]
fn the_example_sells_and_confirms() {
    embedded::main().expect("the example runs");
}
