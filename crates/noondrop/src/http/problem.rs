//! An answer that is not a success: `application/problem+json` (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use noondrop_log::Position;
use serde_json::{Map, Value, json};

use super::app::position_header;
use super::codes::{CodeRow, code_row};

/// Where the pages of the codes are.
const TYPE_BASE: &str = "https://noondrop.dev/errors/";

/// One.
#[derive(Clone, Debug)]
pub struct Problem {
    row: &'static CodeRow,
    detail: String,
    more: Map<String, Value>,
    retry_after_seconds: Option<u64>,
    position: Option<Position>,
}

impl Problem {
    /// With a sentence for a person.
    #[must_use]
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        let row = code_row(code);
        let (more, retry_after_seconds, position) = (Map::new(), None, None);
        Self { row, detail: detail.into(), more, retry_after_seconds, position }
    }

    /// A field with a value that it may not have.
    #[must_use]
    pub fn field(field: &str, bound: &str) -> Self {
        Self::new("invalid_field", format!("{field} must be {bound}."))
            .with("field", field)
            .with("bound", bound)
    }

    /// A shop, sale, item or hold that is not there for this caller.
    #[must_use]
    pub fn missing(kind: &str, name: &str) -> Self {
        let code = format!("{kind}_not_found");
        Self::new(&code, format!("There is no such {kind}.")).with(kind, name)
    }

    /// A position that is of another history; with where this one is now.
    #[must_use]
    pub fn history_changed(asked: &str, now: Position) -> Self {
        let detail = format!("The log does not have {asked}: it went back and took another way.");
        let problem = Self::new("history_changed", detail).with("position", asked);
        Self { position: Some(now), ..problem }
    }

    /// With a further member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// With a `Retry-After` header.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.row.code
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.row.status).expect("the table holds statuses")
    }

    fn body(&self) -> Vec<u8> {
        let mut body = json!({
            "type": format!("{TYPE_BASE}{}", self.row.code),
            "title": self.row.title,
            "status": self.row.status,
            "code": self.row.code,
            "detail": self.detail,
            "retry": self.row.retry.as_str(),
        });
        if let Value::Object(members) = &mut body {
            members.extend(self.more.clone());
        }
        serde_json::to_vec(&body).expect("a value is always JSON")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.body().into());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(position) = self.position {
            position_header(headers, position);
        }
        if self.row.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
