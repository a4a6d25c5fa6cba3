//! What every handler has: the engine, who may call, and how a command goes in and an answer comes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use moka::sync::Cache;
use noondrop_core::{
    Act, Actor, Command, Digest16, HoldView, KeyScope, KeyUse, Name, Outcome, Refusal, State,
    Timestamp,
};
use noondrop_engine::{Answer, Call, Fault, Handle, Reply, WaitError};
use noondrop_log::{Position, PositionRef};

use super::error::{Context, fault_problem, refusal_problem};
use super::keys::{KeyPolicy, idempotency_key};
use super::origin::cut_origin;
use super::problem::Problem;
use super::render::{Texts, erased_value, hold_body, item_value, sale_value, shop_value};
use crate::auth::{Authenticator, Identity, Role};

/// How long a read waits for `at_least`.
const AT_LEAST_WAIT: Duration = Duration::from_secs(5);

const POSITION: HeaderName = HeaderName::from_static("noondrop-position");
const HOLD_STATE: HeaderName = HeaderName::from_static("noondrop-hold-state");
const EXPIRES_IN: HeaderName = HeaderName::from_static("noondrop-expires-in");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const SHOP: &str = "noondrop-shop";
const ORIGIN: &str = "noondrop-origin";
/// Longest `Noondrop-Origin`, in bytes.
const ORIGIN_BYTES_MAX: usize = 256;

/// Bounds of the HTTP side.
#[derive(Clone, Copy, Debug)]
pub struct AppLimits {
    /// A request that took longer is answered "outcome unknown".
    pub request_timeout: Duration,
    /// Largest body, in bytes.
    pub body_bytes_max: usize,
    /// Refusals of one buyer in a minute, 0: no bound.
    pub refusals_per_minute_per_buyer: u32,
    /// Refusals of one principal in a minute, 0: no bound.
    pub refusals_per_minute_per_principal: u32,
    /// Live holds of a buyer who calls with a token of his own, 0: no bound.
    pub live_holds_per_buyer: usize,
    /// Whether `/metrics` is open.
    pub public_metrics: bool,
}

/// Shared by all handlers.
pub struct App {
    /// The engine.
    pub handle: Handle,
    authenticator: Authenticator,
    /// Bounds.
    pub limits: AppLimits,
    /// One scan of the log at a time; the turn belongs to the thread that scans.
    pub scans: Arc<tokio::sync::Semaphore>,
    /// Refusals in the last minute, by buyer or principal; bounded, forgets the oldest.
    refusals: Cache<Digest16, Arc<AtomicU32>>,
    requests: AtomicU64,
    run: u32,
}

impl App {
    /// Ready to be served.
    #[must_use]
    pub fn new(handle: Handle, authenticator: Authenticator, limits: AppLimits) -> Arc<Self> {
        let refusals =
            Cache::builder().max_capacity(100_000).time_to_live(Duration::from_secs(60)).build();
        let run = std::process::id();
        let scans = Arc::new(tokio::sync::Semaphore::new(1));
        Arc::new(Self {
            handle,
            authenticator,
            limits,
            scans,
            refusals,
            requests: AtomicU64::new(0),
            run,
        })
    }

    fn request_id(&self) -> HeaderValue {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let text = format!("{:x}-{number:x}", self.run);
        HeaderValue::from_str(&text).expect("hexadecimal is a header value")
    }

    /// Asks the state, after the durable point.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&State, Timestamp) -> T + Send + 'static,
    ) -> Result<Answer<T>, Problem> {
        let answer = tokio::time::timeout(self.limits.request_timeout, self.handle.query(ask));
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(fault)) => Err(fault_problem(&fault)),
            Err(_) => Err(Problem::new("overloaded", "The read took too long.").after(1)),
        }
    }

    /// Waits for the position that a reader wants to see at least.
    pub async fn at_least(&self, position: Option<&str>) -> Result<(), Problem> {
        match position {
            Some(text) => self.has_reached("at_least", text).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Waits for a position, and refuses one of another history.
    pub async fn has_reached(&self, field: &str, text: &str) -> Result<PositionRef, Problem> {
        let wanted: PositionRef =
            text.parse().map_err(|_| Problem::field(field, "a position such as 48112.9f3c2ab1"))?;
        match self.handle.wait_for(wanted, AT_LEAST_WAIT).await {
            Ok(()) => Ok(wanted),
            Err(WaitError::HistoryChanged) => {
                Err(Problem::history_changed(text, self.handle.position()))
            }
            Err(_) => {
                Err(Problem::new("not_ready", format!("{text} is not reached yet.")).after(1))
            }
        }
    }

    /// Has an act decided.
    pub async fn execute(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        act: Act,
        target: &str,
    ) -> Result<Reply, Problem> {
        let command = self.command(caller, headers, act, target)?;
        let quota = self.check_quota(caller, &command).await?;
        let call = Call {
            deadline_ms: Some(self.handle.deadline_in(self.limits.request_timeout)),
            command: Box::new(command),
        };
        let patience = self.limits.request_timeout + Duration::from_millis(250);
        // Dropping the future does not take the command back: its key will tell.
        let reply = match tokio::time::timeout(patience, self.handle.execute(call)).await {
            Ok(reply) => reply,
            Err(_) => Err(Fault::OutcomeUnknown),
        };
        let reply = reply.map_err(|fault| fault_problem(&fault))?;
        if let (Outcome::Refused(refusal), Some(quota)) = (&reply.outcome, quota)
            && !reply.replayed
        {
            self.note_refusal(refusal, quota);
        }
        Ok(reply)
    }

    fn command(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        act: Act,
        target: &str,
    ) -> Result<Command, Problem> {
        let digester = self.handle.digester();
        let shop = caller.shop.as_str();
        let key = idempotency_key(headers, KeyPolicy::of(&act))?;
        let key = key.map(|key| {
            let principal = caller.key_scope();
            let operation = act.operation();
            let scope = KeyScope { shop, principal: &principal, operation, target };
            KeyUse { hash: digester.key(scope, &key), fingerprint: act.fingerprint() }
        });
        let origin = headers.get(ORIGIN).map(|origin| {
            let text = origin.to_str().ok().filter(|text| text.len() <= ORIGIN_BYTES_MAX);
            let bound = format!("at most {ORIGIN_BYTES_MAX} printable characters");
            text.ok_or_else(|| Problem::field("Noondrop-Origin", &bound))
        });
        let origin = origin.transpose()?.map(|text| digester.origin(shop, &cut_origin(text)));
        Ok(Command { shop: caller.shop.clone(), actor: caller.actor(&digester), key, origin, act })
    }

    async fn check_quota(
        &self,
        caller: &Caller,
        command: &Command,
    ) -> Result<Option<Quota>, Problem> {
        let Act::HoldCreate(create) = &command.act else { return Ok(None) };
        let buyer = create.buyer.digest;
        let limits = self.limits;
        // Principals of two shops may have one name.
        let principal = format!("quota of {}", caller.key_scope());
        let principal = self.handle.digester().origin(caller.shop.as_str(), &principal);
        let counts = [
            (buyer, limits.refusals_per_minute_per_buyer, "refusals_per_minute_per_buyer"),
            (
                principal,
                limits.refusals_per_minute_per_principal,
                "refusals_per_minute_per_principal",
            ),
        ];
        let over = counts.into_iter().find(|(who, most, _)| {
            *most > 0
                && self.refusals.get(who).is_some_and(|seen| seen.load(Ordering::Relaxed) >= *most)
        });
        let mut broken = over.map(|(_, most, limit)| {
            (limit, format!("More than {most} refused attempts in a minute."))
        });
        if broken.is_none() && caller.role() == Role::Buyer && limits.live_holds_per_buyer > 0 {
            let most = limits.live_holds_per_buyer;
            let live = self.ask(move |state, _| live_holds(state, buyer, most)).await?.value;
            let detail = || format!("At most {most} live holds at once.");
            broken = (live >= most).then(|| ("live_holds_per_buyer", detail()));
        }
        // A quota bounds new attempts; who only asks again for an answer that he missed must get it.
        match broken {
            Some((limit, detail)) if !self.is_answered(command).await? => {
                Err(Problem::new("rate_limited", detail).with("limit", limit).after(30))
            }
            Some(_) => Ok(None),
            None => Ok(Some(Quota { buyer, principal })),
        }
    }

    async fn is_answered(&self, command: &Command) -> Result<bool, Problem> {
        let Some(key) = command.key else { return Ok(false) };
        Ok(self.ask(move |state, _| state.has_key(&key.hash)).await?.value)
    }

    fn note_refusal(&self, refusal: &Refusal, quota: Quota) {
        if !refusal.competed() {
            return;
        }
        let limits = self.limits;
        let counts = [
            (quota.buyer, limits.refusals_per_minute_per_buyer),
            (quota.principal, limits.refusals_per_minute_per_principal),
        ];
        for (who, most) in counts {
            if most > 0 {
                let count = self.refusals.get_with(who, || Arc::new(AtomicU32::new(0)));
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The response to a decided command.
    pub async fn respond(&self, reply: Reply, status: StatusCode) -> Response {
        let catalog = self.handle.catalog();
        let mut response = match &reply.outcome {
            Outcome::Hold(view) => {
                let body = match (&view.texts, &reply.command.act) {
                    (Some(texts), _) => hold_body(view, Texts::from(&**texts), &catalog),
                    (None, Act::HoldCreate(create)) => {
                        let texts = Texts {
                            buyer: &create.buyer.text,
                            reference: create.reference.as_ref().map(|r| r.text.as_str()),
                            metadata: create.metadata.as_deref(),
                        };
                        hold_body(view, texts, &catalog)
                    }
                    (None, _) => hold_body(view, Texts::default(), &catalog),
                };
                let mut response = json_response(status, body.into());
                hold_headers(response.headers_mut(), view, reply.at);
                response
            }
            Outcome::Item(view) => with_etag(
                value_response(created_or(status, view.created), &item_value(view, &catalog)),
                view.version,
            ),
            Outcome::Sale(view) => with_etag(
                value_response(created_or(status, view.created), &sale_value(view)),
                view.version,
            ),
            Outcome::Shop(view) => {
                value_response(created_or(status, view.created), &shop_value(view))
            }
            Outcome::Erased(view) => value_response(status, &erased_value(view)),
            Outcome::Refused(refusal) => {
                let payment_ref = self.payment_of(refusal).await;
                let payment_ref = payment_ref.as_deref();
                let command = &reply.command;
                let context = Context { catalog: &catalog, at: reply.at, command, payment_ref };
                axum::response::IntoResponse::into_response(refusal_problem(refusal, &context))
            }
        };
        position_header(response.headers_mut(), reply.position);
        if reply.replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// A second charge is told which payment was first.
    async fn payment_of(&self, refusal: &Refusal) -> Option<String> {
        let Refusal::ConfirmedWithOtherPayment { hold } = *refusal else { return None };
        // Empty once its buyer is erased.
        let asked = move |state: &State, _| {
            let known = state.payment_ref(state.hold_no(hold)?);
            known.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        self.ask(asked).await.ok()?.value
    }
}

#[derive(Clone, Copy, Debug)]
struct Quota {
    buyer: Digest16,
    principal: Digest16,
}

fn live_holds(state: &State, buyer: Digest16, most: usize) -> usize {
    // Live ones are among the newest, but for a buyer who keeps failing: twice the bound is looked at.
    let newest = state.holds_of_buyer(buyer, None, most * 2);
    let holds = newest.into_iter().filter_map(|no| state.hold_by_no(no));
    holds.filter(|hold| hold.state == noondrop_core::HoldState::Active).count()
}

fn created_or(status: StatusCode, created: bool) -> StatusCode {
    if created { StatusCode::CREATED } else { status }
}

/// A JSON response.
pub fn json_response(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON response of a value.
pub fn value_response(status: StatusCode, value: &serde_json::Value) -> Response {
    json_response(status, serde_json::to_vec(value).expect("a value is always JSON").into())
}

/// With the version of what it shows.
pub fn with_etag(mut response: Response, version: u32) -> Response {
    let tag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits in quotes");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

/// Whether a caller has what a tag stands for already (`If-None-Match`); an edge may have weakened it on its way.
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|known| known.to_str().ok()).flat_map(|all| all.split(','));
    known.any(|one| one.trim().trim_start_matches("W/") == tag || one.trim() == "*")
}

/// With the position that it shows.
pub fn position_header(headers: &mut HeaderMap, position: Position) {
    let text = HeaderValue::from_str(&position.to_string()).expect("digits and a point");
    headers.insert(POSITION, text);
}

/// How a hold stands now, while the body is as recorded.
pub fn hold_headers(headers: &mut HeaderMap, view: &HoldView, at: Timestamp) {
    headers.insert(HOLD_STATE, HeaderValue::from_static(view.now.state.as_str()));
    if view.now.state == noondrop_core::HoldState::Active {
        let seconds = view.now.expires_at.0.saturating_sub(at.0) / 1_000;
        headers.insert(EXPIRES_IN, seconds.into());
    }
}

/// Who calls, and for which shop.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The shop that the credential names, or that an operator picked.
    pub shop: Name,
    identity: Arc<Identity>,
}

impl Caller {
    /// What he may do.
    #[must_use]
    pub fn role(&self) -> Role {
        self.identity.role
    }

    /// Refuses a role that a route does not take. An operator may do what an admin may.
    pub fn needs(&self, roles: &[Role]) -> Result<(), Problem> {
        let role = self.role();
        let may = roles.contains(&role) || role == Role::Operator && roles.contains(&Role::Admin);
        if may {
            return Ok(());
        }
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let detail = format!("The role {role} may not do this; it takes {}.", names.join(" or "));
        Err(Problem::new("forbidden", detail).with("needs", names))
    }

    /// The subject of a buyer's own token.
    #[must_use]
    pub fn buyer(&self) -> Option<&str> {
        self.identity.buyer.as_deref()
    }

    /// Never the token: a retry with a fresh one finds its first answer.
    fn key_scope(&self) -> String {
        match &self.identity.issuer {
            Some(issuer) => format!("token:{}:{issuer}:{}", issuer.len(), self.identity.name),
            None => format!("principal:{}", self.identity.name),
        }
    }

    fn actor(&self, digester: &noondrop_core::Digester) -> Actor {
        if let Some(buyer) = self.buyer() {
            return Actor::Buyer { digest: digester.buyer(self.shop.as_str(), buyer) };
        }
        let role = match self.role() {
            Role::Operator => noondrop_core::Role::Operator,
            Role::Admin => noondrop_core::Role::Admin,
            Role::Seller => noondrop_core::Role::Seller,
            Role::Buyer => noondrop_core::Role::Buyer,
            Role::Auditor => noondrop_core::Role::Auditor,
            Role::Worker => noondrop_core::Role::Worker,
        };
        let name = Name::parse(&self.identity.name).expect("configured names were checked");
        Actor::Principal { name, role }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let identity = app.authenticator.authenticate(&parts.headers).map_err(|error| {
            tracing::debug!(%error, "a caller was not recognised");
            Problem::new("unauthenticated", error.detail())
        })?;
        let chosen = parts.headers.get(SHOP).map(|shop| shop.to_str().unwrap_or(""));
        let shop = match (&identity.shop, chosen) {
            (Some(own), Some(chosen)) if **own != *chosen => {
                return Err(Problem::missing("shop", chosen));
            }
            (Some(own), _) => own.as_ref(),
            (None, chosen) => chosen.unwrap_or("main"),
        };
        let shop = Name::parse(shop)
            .map_err(|error| Problem::field("Noondrop-Shop", &error.to_string()))?;
        Ok(Self { shop, identity })
    }
}

/// The layer around every route: an id for each request, and nothing that a cache between may keep.
pub async fn with_request_id(
    axum::extract::State(app): axum::extract::State<Arc<App>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let mut response = next.run(request).await;
    let id = app.request_id();
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("noondrop-request-id"), id);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
