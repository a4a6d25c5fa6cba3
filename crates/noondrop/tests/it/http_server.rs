//! Connections: who may listen, and who is let go.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::http_world::{Served, Who, floor, get};

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let served = Served::empty();
    let home = tempfile::tempdir().expect("a directory");
    let mut second = Command::new(env!("CARGO_BIN_EXE_noondrop"))
        .args(["serve", "--listen", &served.address().to_string(), "--data"])
        .arg(home.path().join("data"))
        // Of these tests alone; the program refuses what names no setting.
        .env_remove("NOONDROP_UPDATE")
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

type Client = h2::client::SendRequest<bytes::Bytes>;

/// One hold, twice under one key.
async fn ask_twice(client: Client, served: &Served) -> Vec<(http::response::Parts, Vec<u8>)> {
    let seller = served.keyring.authorization(Who::Seller).expect("a seller has a secret");
    let mut client = client.ready().await.expect("a stream is free");
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = http::Request::post(format!("http://{}/v1/holds", served.address()))
            .header("authorization", &seller)
            .header("content-type", "application/json")
            .header("idempotency-key", "cart-1")
            .body(());
        let request = request.expect("a request");
        let (answer, mut body) = client.send_request(request, false).expect("it is sent");
        body.send_data(floor("ada", 2).to_string().into(), true).expect("it is sent");
        let (head, mut body) = answer.await.expect("it is answered").into_parts();
        let mut bytes = Vec::new();
        while let Some(data) = body.data().await {
            bytes.extend_from_slice(&data.expect("the body comes whole"));
        }
        answers.push((head, bytes));
    }
    answers
}

/// Prior knowledge, as a proxy that speaks h2 to its back ends has it.
#[test]
fn a_hold_is_made_and_replayed_over_h2() {
    let served = Served::with_floor(5);
    let talk = async {
        let stream = tokio::net::TcpStream::connect(served.address()).await.expect("it listens");
        let (client, connection) = h2::client::handshake(stream).await.expect("it speaks h2");
        tokio::select! {
            biased;
            answers = ask_twice(client, &served) => answers,
            ended = connection => panic!("the connection ended: {ended:?}"),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs only a few file descriptors");
    let answers = runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(20), talk).await.expect("it is answered in time")
    });
    for (head, bytes) in &answers {
        assert_eq!((head.status.as_u16(), head.version), (201, http::Version::HTTP_2));
        assert_eq!(*bytes, answers[0].1);
    }
    assert!(!answers[0].0.headers.contains_key("idempotency-replayed"));
    assert!(answers[1].0.headers.contains_key("idempotency-replayed"));
    let hold: serde_json::Value = serde_json::from_slice(&answers[0].1).expect("a hold is JSON");
    assert_eq!((&hold["state"], &hold["lines"][0]["held"]), (&"active".into(), &2.into()));
}
