//! Connections: who may listen, and who is let go.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::http_world::{Served, Who, get};

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let served = Served::empty();
    let home = tempfile::tempdir().expect("a directory");
    let mut second = Command::new(env!("CARGO_BIN_EXE_noondrop"))
        .args(["serve", "--listen", &served.address().to_string(), "--data"])
        .arg(home.path().join("data"))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let begun = noondrop::time::steady();
    let ended = loop {
        if let Some(ended) = second.try_wait().expect("it is our child") {
            break ended;
        }
        if begun.elapsed() > Duration::from_secs(20) {
            second.kill().expect("it is our child");
            panic!("two servers share a port");
        }
        std::thread::yield_now();
    };
    let mut errors = String::new();
    let mut stderr = second.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut errors).expect("it is text");
    assert!(!ended.success() && errors.contains(&served.address().to_string()), "{errors}");
    served.send(Who::Seller, &get("/v1/sales")).done(200);
}

#[test]
fn a_caller_who_does_not_finish_his_head_is_let_go_and_others_are_served() {
    let served = Served::start(|settings| settings.server.header_timeout_ms = 200);
    let beginnings: [&[u8]; 5] =
        [b"", b"P", b"PRI * HTTP/2.0\r\n", b"GET /healthz HTTP/1.1\r\n", b"POST /v1/holds HT"];
    let waiting: Vec<TcpStream> = beginnings
        .iter()
        .map(|begun| {
            let mut stream = TcpStream::connect(served.address()).expect("the server listens");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("above zero");
            stream.write_all(begun).expect("the server reads");
            stream
        })
        .collect();
    served.send(Who::Seller, &get("/v1/sales")).done(200);
    for (mut stream, begun) in waiting.into_iter().zip(beginnings) {
        let begun = String::from_utf8_lossy(begun);
        let ended = stream.read_to_end(&mut Vec::new());
        // Closed in order, or reset; only silence for twenty seconds would be a failure.
        let silent = ended.is_err_and(|error| {
            matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
        });
        assert!(!silent, "{begun:?} was kept");
    }
}
