//! A router on a real engine on a real SQLite file, called in process; and a real server, called over TCP.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use noondrop::auth::{Authenticator, Role, Secret};
use noondrop::config::{Settings, Sources, load};
use noondrop::http::{App, AppLimits, Extra, router};
use noondrop::serve::{Running, StartOptions};
use noondrop_engine::{Clock, Engine, EngineOptions, SystemEntropy};
use noondrop_log::Log;
use noondrop_log::sqlite::{SqliteLog, SqliteOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

const SHARED: &str = "0123456789abcdef0123456789abcdef";
/// The log's time when a world begins: 2026-06-15T12:00:00Z.
const NOON_MS: u64 = 1_781_524_800_000;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Without a credential.
    Nobody,
    /// Of no shop.
    Operator,
    /// Of shop main.
    Admin,
    /// Of shop main.
    Seller,
    /// Of shop main.
    Auditor,
    /// Of shop main.
    Worker,
    /// Admin of shop other.
    OtherAdmin,
    /// Seller of shop other, with the name that the seller of shop main has.
    OtherSeller,
    /// With a token of his own, in shop main.
    Buyer(&'static str),
    /// With a token of his own, in shop other.
    OtherBuyer(&'static str),
}

/// Secrets of everybody.
pub struct Keyring {
    secrets: Vec<(Who, Secret)>,
}

const PRINCIPALS: [(Who, &str, Role, &str); 7] = [
    (Who::Operator, "house", Role::Operator, ""),
    (Who::Admin, "office", Role::Admin, "main"),
    (Who::Seller, "app", Role::Seller, "main"),
    (Who::Auditor, "books", Role::Auditor, "main"),
    (Who::Worker, "hands", Role::Worker, "main"),
    (Who::OtherAdmin, "elsewhere", Role::Admin, "other"),
    (Who::OtherSeller, "app", Role::Seller, "other"),
];

impl Keyring {
    fn new() -> Self {
        let secret = |role| Secret::generate(role).expect("the machine has random bits");
        let secrets = PRINCIPALS.iter().map(|(who, _, role, _)| (*who, secret(*role)));
        Self { secrets: secrets.collect() }
    }

    /// The configuration that knows them all.
    fn toml(&self, limits: &str) -> String {
        let mut text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nthreads = 2\n\n[limits]\n{limits}\n\n[[jwt]]\nissuer = \"shop\"\n\
             audience = \"noondrop\"\nkeys = [{{ kid = \"1\", alg = \"HS256\", secret = \"{SHARED}\" }}]\n"
        );
        for ((_, name, role, shop), (_, secret)) in PRINCIPALS.iter().zip(&self.secrets) {
            let shop = if shop.is_empty() { String::new() } else { format!("shop = \"{shop}\"\n") };
            write!(
                text,
                "\n[[principals]]\nname = \"{name}\"\nrole = \"{role}\"\n{shop}secrets = [{{ hash = \"{}\" }}]\n",
                secret.hash()
            )
            .expect("writing to a string");
        }
        text
    }

    /// What somebody sends in `Authorization`.
    pub fn authorization(&self, who: Who) -> Option<String> {
        match who {
            Who::Nobody => None,
            Who::Buyer(subject) => Some(format!("Bearer {}", token(subject, "main"))),
            Who::OtherBuyer(subject) => Some(format!("Bearer {}", token(subject, "other"))),
            other => {
                let found = self.secrets.iter().find(|(known, _)| *known == other);
                let (_, secret) = found.expect("every principal has a secret");
                Some(format!("Bearer {}", secret.reveal()))
            }
        }
    }
}

fn token(subject: &str, shop: &str) -> String {
    let claims = json!({
        "iss": "shop", "aud": "noondrop", "exp": 4_000_000_000_u64, "sub": subject, "shop": shop,
    });
    let header = Header { kid: Some("1".into()), ..Header::new(Algorithm::HS256) };
    let key = EncodingKey::from_secret(SHARED.as_bytes()).expect("a secret of 32 bytes");
    jsonwebtoken::encode(&header, &claims, &key).expect("claims are JSON")
}

fn settings(home: &Path, keyring: &Keyring, limits: &str) -> Settings {
    let path = home.join("noondrop.toml");
    std::fs::write(&path, keyring.toml(limits)).expect("a directory of our own");
    let loaded = load::load(&Sources { file: Some(path), ..Sources::default() });
    let mut settings = loaded.expect("the configuration is within its bounds").settings;
    settings.store.path = home.join("data");
    settings
}

fn authenticator(settings: &Settings) -> Authenticator {
    Authenticator::new(settings, None).expect("every secret and key is given")
}

/// A clock that a test moves.
#[derive(Debug, Default)]
pub struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn wall_ms(&self) -> u64 {
        NOON_MS + self.elapsed_ms()
    }

    fn elapsed_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// One request in the making.
#[derive(Clone, Debug)]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// A request without a body.
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With an idempotency key.
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// With a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").raw(body.to_string())
    }

    /// With these bytes.
    pub fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// As it goes over a connection.
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: test\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            write!(text, "{name}: {value}\r\n").expect("writing to a string");
        }
        write!(text, "content-length: {}\r\nconnection: close\r\n\r\n", self.body.len())
            .expect("writing to a string");
        [text.as_bytes(), &self.body].concat()
    }
}

/// `GET`
pub fn get(path: impl Into<String>) -> Ask {
    Ask::new("GET", path)
}

/// `POST` of JSON.
pub fn post(path: impl Into<String>, body: &Value) -> Ask {
    Ask::new("POST", path).json(body)
}

/// `PUT` of JSON.
pub fn put(path: impl Into<String>, body: &Value) -> Ask {
    Ask::new("PUT", path).json(body)
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Seen {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Status, code and retry.
    pub fn verdict(&self) -> (u16, String, String) {
        let body = self.json();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (self.status, text("code"), text("retry"))
    }

    /// Fails unless it is this refusal; also looks at what every problem has.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str, retry: &str) -> Value {
        assert_eq!(self.verdict(), (status, code.into(), retry.into()), "{}", self.text());
        let body = self.json();
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(body["status"], status);
        assert!(body["type"].as_str().is_some_and(|page| page.ends_with(&format!("/{code}"))));
        assert!(body["detail"].as_str().is_some_and(|text| !text.is_empty()));
        body
    }

    /// Fails unless it is a success with this status.
    #[track_caller]
    pub fn done(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A router on an engine with a clock that stands still until it is moved.
pub struct World {
    engine: Option<Engine>,
    /// What handlers share.
    pub app: Arc<App>,
    router: Router,
    runtime: tokio::runtime::Runtime,
    /// Everybody's secrets.
    pub keyring: Keyring,
    clock: Arc<TestClock>,
    _home: TempDir,
}

impl World {
    /// With the sale `noon` open, and the item `floor` with some units.
    pub fn with_floor(total: u32) -> Self {
        let world = Self::empty();
        world.open_sale("noon", &json!({}));
        world.item("noon", "floor", total);
        world
    }

    /// With nothing defined.
    pub fn empty() -> Self {
        Self::limited("")
    }

    /// With settings of `[limits]`.
    pub fn limited(limits: &str) -> Self {
        let open = |data: &Path| {
            let log = SqliteOptions::new(data.join("log.sqlite"));
            Box::new(SqliteLog::open(log).expect("a new log")) as Box<dyn Log>
        };
        Self::on(open, limits)
    }

    /// On a log of the test's own.
    pub fn on(open: impl FnOnce(&Path) -> Box<dyn Log>, limits: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory for the test");
        let keyring = Keyring::new();
        let settings = settings(home.path(), &keyring, limits);
        std::fs::create_dir_all(&settings.store.path).expect("a directory of our own");
        let log = open(&settings.store.path);
        let clock = Arc::new(TestClock::default());
        let entropy = Box::new(SystemEntropy::default());
        let options = EngineOptions::default();
        let engine = Engine::start_with(log, options, clock.clone(), entropy)
            .expect("an empty log recovers");
        let limits = AppLimits {
            request_timeout: Duration::from_secs(10),
            body_bytes_max: 65_536,
            refusals_per_minute_per_buyer: u32::try_from(
                settings.limits.refusals_per_minute_per_buyer,
            )
            .expect("a small number"),
            refusals_per_minute_per_principal: u32::try_from(
                settings.limits.refusals_per_minute_per_principal,
            )
            .expect("a small number"),
            live_holds_per_buyer: 3,
            public_metrics: false,
        };
        let app = App::new(engine.handle(), authenticator(&settings), limits);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self {
            engine: Some(engine),
            router: router(&app, Extra::None),
            app,
            runtime: runtime.expect("a runtime needs only a few file descriptors"),
            keyring,
            clock,
            _home: home,
        }
    }

    fn request(&self, who: Who, ask: &Ask) -> Request<Body> {
        let mut request = Request::new(Body::from(ask.body.clone()));
        *request.method_mut() = ask.method.parse().expect("a method");
        *request.uri_mut() = ask.path.parse().expect("a path");
        let credential = self.keyring.authorization(who);
        let credential = credential.map(|text| ("authorization".to_owned(), text));
        for (name, value) in ask.headers.iter().cloned().chain(credential) {
            let name: HeaderName = name.parse().expect("a header's name");
            request.headers_mut().append(name, HeaderValue::from_str(&value).expect("a value"));
        }
        request
    }

    /// Sends a request, and hangs up without an answer once something has come to pass.
    pub fn send_and_hang_up(&self, who: Who, ask: &Ask, until: impl Fn() -> bool) {
        let request = self.request(who, ask);
        let begun = noondrop::time::steady();
        self.runtime.block_on(async {
            let mut answer = std::pin::pin!(self.router.clone().oneshot(request));
            while !until() {
                assert!(begun.elapsed() < Duration::from_secs(20), "it does not come to pass");
                tokio::select! {
                    biased;
                    seen = &mut answer => panic!("it was answered: {seen:?}"),
                    () = tokio::task::yield_now() => {}
                }
            }
        });
    }

    /// The engine.
    pub fn handle(&self) -> noondrop_engine::Handle {
        self.app.handle.clone()
    }

    /// Sends a request and waits for the whole answer.
    pub fn send(&self, who: Who, ask: &Ask) -> Seen {
        let request = self.request(who, ask);
        self.runtime.block_on(async {
            let answer = self.router.clone().oneshot(request).await;
            let (head, body) = answer.expect("a router cannot fail").into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body in memory");
            Seen { status: head.status.as_u16(), headers: head.headers, body: body.to_vec() }
        })
    }

    /// Lets time pass, for the log.
    pub fn pass(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).expect("a short time");
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// A sale that is open.
    pub fn open_sale(&self, sale: &str, terms: &Value) {
        self.send(Who::Admin, &put(format!("/v1/sales/{sale}"), terms)).done(201);
        self.send(Who::Admin, &Ask::new("POST", format!("/v1/sales/{sale}/publish"))).done(200);
    }

    /// An item.
    pub fn item(&self, sale: &str, item: &str, total: u32) {
        let path = format!("/v1/sales/{sale}/items/{item}");
        self.send(Who::Admin, &put(path, &json!({"total": total}))).done(201);
    }

    /// The answer to a seller's hold of `floor`.
    pub fn try_hold(&self, key: &str, buyer: &str, quantity: u32) -> Seen {
        self.send(Who::Seller, &post("/v1/holds", &floor(buyer, quantity)).key(key))
    }

    /// A seller's hold of `floor` that is given.
    pub fn hold(&self, key: &str, buyer: &str, quantity: u32) -> Value {
        self.try_hold(key, buyer, quantity).done(201).json()
    }

    /// Something that a seller asks of a hold, with its fence.
    pub fn act(&self, hold: &Value, act: &str, mut body: Value) -> Seen {
        body["fence"] = hold["fence"].clone();
        let ask = post(path_of(hold, act), &body).key(&format!("{act}-{}", hold["id"]));
        self.send(Who::Seller, &ask)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            // A test that failed says more than this could.
            let _ = engine.stop();
        }
    }
}

/// The body of a hold of `floor` in `noon`.
pub fn floor(buyer: &str, quantity: u32) -> Value {
    json!({"sale": "noon", "buyer": buyer, "lines": [{"item": "floor", "quantity": quantity}]})
}

/// The path of something that is asked of a hold.
pub fn path_of(hold: &Value, act: &str) -> String {
    format!("/v1/holds/{}/{act}", hold["id"].as_str().expect("a hold has an id"))
}

/// A server on a port of its own, over TCP.
pub struct Served {
    running: Option<Running>,
    /// Everybody's secrets.
    pub keyring: Keyring,
    address: SocketAddr,
    _home: TempDir,
}

impl Served {
    /// With the sale `noon` open, and the item `floor` with some units.
    pub fn with_floor(total: u32) -> Self {
        let served = Self::empty();
        served.send(Who::Admin, &put("/v1/sales/noon", &json!({}))).done(201);
        served.send(Who::Admin, &Ask::new("POST", "/v1/sales/noon/publish")).done(200);
        let total = json!({"total": total});
        served.send(Who::Admin, &put("/v1/sales/noon/items/floor", &total)).done(201);
        served
    }

    /// With nothing defined.
    pub fn empty() -> Self {
        Self::start(|_| {})
    }

    /// With settings of its own.
    pub fn start(change: impl FnOnce(&mut Settings)) -> Self {
        let home = tempfile::tempdir().expect("a directory for the test");
        let keyring = Keyring::new();
        let mut settings = settings(home.path(), &keyring, "");
        change(&mut settings);
        let options = StartOptions { accept_loss: false, extra: Extra::None };
        let running = Running::start(&settings, authenticator(&settings), options);
        let running = running.expect("a port and a directory of its own");
        let address = running.address();
        Self { running: Some(running), keyring, address, _home: home }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn connect(&self, who: Who, ask: &Ask) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("a timeout above zero");
        let mut ask = ask.clone();
        if let Some(credential) = self.keyring.authorization(who) {
            ask = ask.header("authorization", credential);
        }
        stream.write_all(&ask.bytes()).expect("the server reads");
        stream
    }

    /// Sends a request on a connection of its own, and reads the whole answer.
    pub fn send(&self, who: Who, ask: &Ask) -> Seen {
        let mut bytes = Vec::new();
        self.connect(who, ask).read_to_end(&mut bytes).expect("the server answers and closes");
        parse(&bytes)
    }

    /// Sends a request, and hangs up without waiting for anything.
    pub fn send_and_hang_up(&self, who: Who, ask: &Ask) {
        drop(self.connect(who, ask));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // A test that failed says more than this could.
            let _ = running.stop();
        }
    }
}

fn parse(bytes: &[u8]) -> Seen {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut fields);
    let end = head.parse(bytes).expect("an answer in HTTP/1.1");
    let httparse::Status::Complete(end) = end else { panic!("half an answer: {bytes:?}") };
    let mut headers = HeaderMap::new();
    for field in head.headers.iter() {
        let name: HeaderName = field.name.parse().expect("a header's name");
        headers.append(name, HeaderValue::from_bytes(field.value).expect("a value"));
    }
    Seen { status: head.code.expect("a status"), headers, body: bytes[end..].to_vec() }
}
