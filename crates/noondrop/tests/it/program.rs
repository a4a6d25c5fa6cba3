//! The real binary, for tests that run it.

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use noondrop::rehearse::server::ChildServer;

/// The binary under test.
pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_noondrop"))
}

/// What a run of the program printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub success: bool,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("we print UTF-8");
        Self {
            success: output.status.success(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// Runs the program to its end, in a directory of its own so that no configuration is found.
pub fn noondrop(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    let nowhere = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(nowhere.path()).stdin(Stdio::null());
    command.output().expect("the program can be started").into()
}

/// Starts a server on a free port and waits until it is ready.
pub fn server(data: &Path) -> ChildServer {
    let mut server = ChildServer::start_program(binary(), data, &[]).expect("it starts");
    wait_until_ready(&mut server);
    server
}

pub fn wait_until_ready(server: &mut ChildServer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.ready()).expect("it gets ready");
}

/// The file with the secret that a first start made.
pub fn admin_secret(data: &Path) -> PathBuf {
    let path = data.join("admin.secret");
    assert!(fs::exists(&path).unwrap(), "a first start makes a secret");
    path
}

/// Whether the slow tests were asked for.
#[expect(clippy::disallowed_methods, reason = "only tests read this variable")]
pub fn slow_tests() -> bool {
    std::env::var_os(noondrop::environment::SLOW_TESTS).is_some_and(|value| value == "1")
}
