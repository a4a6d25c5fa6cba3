//! From bytes to a wire type, with an error that names the field.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use noondrop_core::limits::TEXT_BYTES_MAX;
use noondrop_core::{HoldId, Name};
use serde::de::DeserializeOwned;

use super::app::App;
use super::problem::Problem;
use super::strict::Strict;

/// A body's bytes, or why there are none: to be said after who asks is known to be allowed to.
pub struct Raw(Result<Bytes, Problem>);

/// Largest body of a list of seats, in bytes.
pub const LARGE_BODY_BYTES_MAX: usize = 16 << 20;

/// [`Raw`], for lists of seats.
pub struct LargeRaw(Raw);

impl From<LargeRaw> for Raw {
    fn from(large: LargeRaw) -> Self {
        large.0
    }
}

impl FromRequest<Arc<App>> for LargeRaw {
    type Rejection = Infallible;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self(read_raw(request, app, LARGE_BODY_BYTES_MAX).await))
    }
}

impl FromRequest<Arc<App>> for Raw {
    type Rejection = Infallible;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(read_raw(request, app, app.limits.body_bytes_max).await)
    }
}

async fn read_raw(request: Request, app: &Arc<App>, most: usize) -> Raw {
    let bytes = Bytes::from_request(request, app).await;
    Raw(bytes.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let detail = format!("The body is larger than {most} bytes.");
            Problem::new("too_large", detail).with("bound", most)
        }
        _ => Problem::field("body", "sent whole"),
    }))
}

/// A query, whose errors are problems that name the parameter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|rejection| {
            let source = std::error::Error::source(&rejection).map(ToString::to_string);
            query_problem(&source.unwrap_or_else(|| rejection.body_text()))
        })
    }
}

/// From `name: what is wrong with it`.
fn query_problem(text: &str) -> Problem {
    let (field, why) = text.split_once(": ").unwrap_or(("query", text));
    if why.starts_with("unknown field") {
        return Problem::new("unknown_field", format!("{field} is not known here."))
            .with("field", field);
    }
    Problem::new("invalid_field", format!("{field}: {why}."))
        .with("field", field)
        .with("bound", why)
}

/// The named parts of a path. One that is no text names nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0))
            .map_err(|_| Problem::new("not_found", "The path is not UTF-8."))
    }
}

/// Reads a JSON body.
pub fn read<T: DeserializeOwned>(headers: &HeaderMap, raw: Raw) -> Result<T, Problem> {
    let bytes = raw.0?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let media_type = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Err(Problem::new("unsupported_media_type", "Send Content-Type: application/json."));
    }
    // The fast reader first; only a body that fails is read again, to say where.
    let read = serde_json::from_slice::<Strict<T>>(&bytes);
    read.map(|body| body.0).map_err(|_| explain::<Strict<T>>(&bytes))
}

fn explain<T: DeserializeOwned>(bytes: &[u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return Problem::field("body", "one JSON object and nothing after it");
    };
    let path = error.path().to_string();
    let why = error.inner().to_string();
    let why = why.split(" at line ").next().unwrap_or(&why);
    if let Some(rest) = why.strip_prefix("unknown field `") {
        let (field, known) = rest.split_once("`, ").unwrap_or((rest, ""));
        // The path ends with the field itself: `lines[0].colour`.
        let field = if path == "." { field } else { &path };
        return Problem::new("unknown_field", format!("{field} is not known here; {known}."))
            .with("field", field);
    }
    let field = if path == "." { "body" } else { &path };
    Problem::new("invalid_field", format!("{field}: {why}."))
        .with("field", field)
        .with("bound", why)
}

/// A name in a field.
pub fn name(field: &str, text: &str) -> Result<Name, Problem> {
    Name::parse(text).map_err(|error| Problem::field(field, &error.to_string()))
}

/// The name of a shop, sale or item in the path: one that could not exist does not exist.
pub fn path_name(kind: &str, text: &str) -> Result<Name, Problem> {
    Name::parse(text).map_err(|_| Problem::missing(kind, text))
}

/// A hold in the path.
pub fn path_hold(text: &str) -> Result<HoldId, Problem> {
    text.parse().map_err(|_| Problem::missing("hold", text))
}

/// A free text.
pub fn text(field: &str, text: &str) -> Result<String, Problem> {
    if (1..=TEXT_BYTES_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(Problem::field(field, &format!("1 to {TEXT_BYTES_MAX} bytes")))
    }
}
