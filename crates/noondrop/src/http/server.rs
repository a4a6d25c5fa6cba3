//! One current-thread runtime per core, each with a listener of its own on the same address (`SO_REUSEPORT`).
//!
//! A connection stays on its core. The commands of one runtime go to the sequencer together, and their answers come
//! back together, with one wake per runtime and turn.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use noondrop_engine::Handle;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

/// Bounds of the connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Runtimes; each has a thread.
    pub threads: usize,
    /// A connection that has not sent a whole request head by then is closed.
    pub header_timeout: Duration,
    /// Connections at one time, of all threads together.
    pub connections_max: usize,
    /// How long a stopping server works on requests that it has begun.
    pub shutdown_grace: Duration,
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves on threads of its own.
    pub fn start(handle: &Handle, router: &Router, options: ServerOptions) -> io::Result<Self> {
        refuse_shared_port(options.listen)?;
        let first = listen(options.listen)?;
        let address = first.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let open = Arc::new(AtomicUsize::new(0));
        let mut listeners = vec![first];
        for _ in 1..options.threads.max(1) {
            listeners.push(listen(address)?);
        }
        let mut threads = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            let core = Core {
                router: router.clone(),
                handle: handle.clone(),
                options,
                stopped: stopped.clone(),
                open: open.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("http-{number}"));
            threads.push(thread.spawn(move || core.run(listener))?);
        }
        Ok(Self { address, stop, threads })
    }

    /// Where it listens: the port that it was given, if it asked for any.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, finishes what has begun within the grace, and ends.
    pub fn stop(self) {
        // Nobody listening any more is as good as told.
        let _ = self.stop.send(true);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread that served HTTP panicked");
            }
        }
    }
}

/// Our threads share a port; two servers must not. A plain bind fails where anybody listens already.
fn refuse_shared_port(address: SocketAddr) -> io::Result<()> {
    match std::net::TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("could not listen on {address}: {error}")))
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// How every h2 connection begins (RFC 9113, section 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until a caller has said which protocol he speaks; `false`: he left. The protocol's own time-outs begin only
/// after that, so somebody must bound this wait: the caller of this function does.
async fn says_which(stream: &TcpStream) -> bool {
    let mut begun = [0; H2_PREFACE.len()];
    loop {
        match stream.peek(&mut begun).await {
            Ok(0) | Err(_) => return false,
            Ok(length) if length == begun.len() || !H2_PREFACE.starts_with(&begun[..length]) => {
                return true;
            }
            // A part of the preface stays readable; look again a little later.
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// What one thread serves with.
struct Core {
    router: Router,
    handle: Handle,
    options: ServerOptions,
    stopped: watch::Receiver<bool>,
    open: Arc<AtomicUsize>,
}

/// Counts a connection for as long as it lives.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Core {
    fn run(self, listener: std::net::TcpListener) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs only a few file descriptors");
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            let task = self.handle.runtime_task();
            crate::tasks::spawn_here(task);
            if let Err(error) = self.serve(listener).await {
                tracing::error!(%error, "a listener failed");
            }
        });
    }

    async fn serve(mut self, listener: std::net::TcpListener) -> io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let graceful = GracefulShutdown::new();
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.header_timeout)
            // A caller that hangs up does not stop what he asked for.
            .half_close(true)
            .pipeline_flush(true);
        builder.http2().timer(TokioTimer::new());
        loop {
            tokio::select! {
                biased;
                _ = self.stopped.changed() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.connection(stream, &builder, &graceful),
                    Err(error) => {
                        // Out of file descriptors, mostly: others will be closed.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
            }
        }
        drop(listener);
        let _ = tokio::time::timeout(self.options.shutdown_grace, graceful.shutdown()).await;
        Ok(())
    }

    fn connection(
        &self,
        stream: TcpStream,
        builder: &Builder<TokioExecutor>,
        graceful: &GracefulShutdown,
    ) {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let counted = Open(self.open.clone());
        if open >= self.options.connections_max {
            // Closed at once: a client that is told nothing tries elsewhere or again.
            return;
        }
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(self.router.clone());
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        let (patience, mut stopped) = (self.options.header_timeout, self.stopped.clone());
        crate::tasks::spawn_here(async move {
            let _counted = counted;
            let spoke = tokio::select! {
                biased;
                _ = stopped.changed() => false,
                spoke = tokio::time::timeout(patience, says_which(&stream)) => spoke == Ok(true),
            };
            if !spoke {
                return;
            }
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let graceful = watcher.watch(connection.into_owned());
            if let Err(error) = graceful.await {
                tracing::debug!(error, "a connection ended early");
            }
        });
    }
}
