//! The `noondrop` binary. Everything is in the library, so that tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    noondrop::cli::main()
}
