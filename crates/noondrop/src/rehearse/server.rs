//! The throw-away server of a rehearsal: a child process of this very program, to be killed and started again.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cli::Failure;
use crate::client::{Connection, Request};
use crate::time::steady;

/// How long a start may take.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a stop may take; longer than the grace that the server gives its connections.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A child that serves.
#[derive(Debug)]
pub struct ChildServer {
    program: PathBuf,
    data: PathBuf,
    address: SocketAddr,
    more: &'static [&'static str],
    child: Child,
}

impl ChildServer {
    /// Starts it on a free port, on this directory.
    pub fn start(data: &Path) -> Result<Self, Failure> {
        Self::start_with(data, &[])
    }

    /// The same, with the route that benchmarks compare with.
    pub fn start_for_bench(data: &Path) -> Result<Self, Failure> {
        Self::start_with(data, &["--bench-routes"])
    }

    fn start_with(data: &Path, more: &'static [&'static str]) -> Result<Self, Failure> {
        Self::start_program(&std::env::current_exe()?, data, more)
    }

    /// Starts a given program of ours, for whoever is another one himself.
    pub fn start_program(
        program: &Path,
        data: &Path,
        more: &'static [&'static str],
    ) -> Result<Self, Failure> {
        // Somebody could take the port between here and the start; then the start says so.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = spawn(program, data, address, more)?;
        Ok(Self { program: program.to_owned(), data: data.to_owned(), address, more, child })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it with SIGKILL: nothing is finished, nothing flushed.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Starts it again on the same data and port.
    pub fn restart(&mut self) -> io::Result<()> {
        self.child = spawn(&self.program, &self.data, self.address, self.more)?;
        Ok(())
    }

    /// Waits until it can decide.
    pub async fn ready(&mut self) -> Result<(), Failure> {
        let begun = steady();
        let request =
            Request { method: "GET", path: "/readyz", token: "", key: None, body: "" }.bytes();
        let mut connection = Connection::new(self.address, Duration::from_secs(1));
        while begun.elapsed() < READY_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the server ended by itself: {status}").into());
            }
            if connection.request(&request).await.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("the server was not ready in time".into())
    }

    /// The secret that its first start made.
    pub fn admin_secret(&self) -> io::Result<String> {
        let text = std::fs::read_to_string(self.data.join("admin.secret"))?;
        Ok(text.trim().to_owned())
    }

    /// Asks it to stop, and waits.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id())?;
        if let Some(process) = rustix::process::Pid::from_raw(id) {
            rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        }
        let begun = steady();
        while begun.elapsed() < STOPPED_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                let well = status.success();
                return if well {
                    Ok(())
                } else {
                    Err(format!("the server ended with {status}").into())
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("the server did not stop in time".into())
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, data: &Path, address: SocketAddr, more: &[&str]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", &address.to_string(), "--data"]).arg(data).args(more);
    let settings = crate::environment::variables().into_iter().map(|variable| variable.name);
    for name in settings.filter(|name| name.starts_with("NOONDROP_")) {
        command.env_remove(name);
    }
    command.env("NOONDROP_LOG__LEVEL", "error").current_dir(data);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn()
}
