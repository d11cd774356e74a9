//! What a request brings: bodies, parameters, names in its path.
//!
//! Owns the reading of them and what is said when one is wrong. Start reading at [`Body`].

use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use steadfast_core::duration;
use steadfast_core::ids::RequestId;
use steadfast_core::json::Json;

use crate::app::App;
use crate::error::Refusal;
use crate::limits;

/// The body of a request, whole, and its type.
pub(crate) struct Body {
    bytes: Bytes,
    media_type: Option<String>,
}

impl FromRequest<App> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let media_type = media_type(request.headers())?;
        // Far too large is not waited for. What is a little too large is read as far as it may be, so that whoever sends it hears why it is refused
        // instead of finding the connection closed.
        if request.body().size_hint().lower() > 2 * app.limits.body_bytes as u64 {
            return Err(too_large(app));
        }
        let patience = app.limits.body_timeout;
        let Ok(read) = tokio::time::timeout(patience, Bytes::from_request(request, app)).await else {
            let seconds = patience.as_secs_f64();
            return Err(Refusal::timeout(format!("the body did not arrive within {seconds} seconds; send it again")));
        };
        match read {
            Ok(bytes) => Ok(Self { bytes, media_type }),
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_large(app)),
            Err(_) => Err(Refusal::bad_request("the body was cut off; send it again")),
        }
    }
}

impl Body {
    /// The text of definitions.
    pub(crate) fn definitions(self) -> Result<String, Refusal> {
        if let Some(media_type) = self.media_type.as_deref()
            && !DEFINITIONS.contains(&media_type)
        {
            let detail =
                format!("`{media_type}` is not a type of definitions; send `application/yaml` or `application/json`");
            return Err(Refusal::unsupported_media_type(detail));
        }
        String::from_utf8(self.bytes.into())
            .map_err(|error| Refusal::invalid_body(format!("the body is not UTF-8 text: {}", error.utf8_error())))
    }

    /// A document, or its default when there is no body.
    pub(crate) fn document_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Refusal> {
        if self.bytes.is_empty() { Ok(T::default()) } else { self.document() }
    }

    /// A document.
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        self.check_json()?;
        serde_json::from_slice(&self.bytes).map_err(|error| not_as_expected(&error))
    }

    /// A value of a user's, as it is; `null` when there is no body.
    pub(crate) fn value(&self) -> Result<Json, Refusal> {
        if self.bytes.is_empty() {
            return Ok(Json::null());
        }
        self.check_json()?;
        serde_json::from_slice(&self.bytes).map_err(|error| not_as_expected(&error))
    }

    fn check_json(&self) -> Result<(), Refusal> {
        match self.media_type.as_deref() {
            Some("application/json") => Ok(()),
            Some(other) => {
                let detail = format!("the body is `{other}`; send JSON, with `Content-Type: application/json`");
                Err(Refusal::unsupported_media_type(detail))
            }
            None => Err(Refusal::unsupported_media_type("send JSON, with `Content-Type: application/json`")),
        }
    }
}

/// The types in which definitions come. What has none is read too: YAML has had its own name only since 2024.
const DEFINITIONS: [&str; 6] =
    ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/json", "text/plain"];

fn media_type(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(header) = headers.get(header::CONTENT_TYPE) else { return Ok(None) };
    let text = header.to_str().map_err(|_| Refusal::bad_request("the header `Content-Type` is not text"))?;
    let essence = text.split(';').next().unwrap_or_default().trim();
    Ok(Some(essence.to_ascii_lowercase()))
}

fn too_large(app: &App) -> Refusal {
    let max = app.limits.body_bytes / 1024 / 1024;
    Refusal::too_large(format!("the body is larger than {max} MiB; send less, or in parts"))
}

fn not_as_expected(error: &serde_json::Error) -> Refusal {
    Refusal::invalid_body(format!("the body is not the JSON that is expected here: {error}"))
}

/// What stands behind the `?`.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(error) => Err(Refusal::invalid_parameter(error.body_text())),
        }
    }
}

/// Names in the path.
pub(crate) struct Named<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(error) => Err(Refusal::bad_request(error.body_text())),
        }
    }
}

/// An id as callers choose them: 1 to 200 of letters, digits, `.`, `_`, `-`, `:`.
pub(crate) fn checked_id(what: &str, id: &str) -> Result<RequestId, Refusal> {
    RequestId::given(id).map_err(|error| Refusal::invalid_id(error.to_string().replace("request id", what)))
}

/// The id of a run: one that a caller has chosen, or that of a sub-workflow, which has a dot and 32 hexadecimal digits more.
pub(crate) fn checked_run_id(id: &str) -> Result<(), Refusal> {
    let is_digest = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let chosen = id.rsplit_once('.').filter(|(_, digest)| is_digest(digest)).map_or(id, |(chosen, _)| chosen);
    checked_id("run id", chosen).map(drop)
}

/// A duration within bounds, as `30s`.
pub(crate) fn checked_duration(name: &str, text: &str, least_ms: u64, most_ms: u64) -> Result<Duration, Refusal> {
    let ms = duration::parse_ms(text).map_err(|error| Refusal::invalid_body(format!("`{name}` is wrong: {error}")))?;
    if (least_ms..=most_ms).contains(&ms) {
        return Ok(Duration::from_millis(ms));
    }
    let (least, most) = (duration::format_ms(least_ms), duration::format_ms(most_ms));
    Err(Refusal::invalid_body(format!("`{name}` is `{text}`, allowed are `{least}` to `{most}`")))
}

/// How many rows are wanted.
pub(crate) fn checked_limit(limit: Option<usize>) -> Result<usize, Refusal> {
    let max = limits::PAGE_ROWS_MAX;
    match limit.unwrap_or(limits::PAGE_ROWS_DEFAULT) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        limit => Err(Refusal::invalid_parameter(format!("`limit` is {limit}, allowed are 1 to {max}"))),
    }
}

/// What was sent, as a message shows it: not longer than a line.
pub(crate) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let is_short = text.chars().nth(CHARS_MAX).is_none();
    if is_short { text.to_owned() } else { text.chars().take(CHARS_MAX).chain("…".chars()).collect() }
}

/// What is said of a cursor that is none of ours.
pub(crate) fn wrong_cursor(name: &str, text: &str) -> Refusal {
    let shown = shown(text);
    Refusal::invalid_parameter(format!(
        "`{name}` is `{shown}`, which is no place here; take it from an answer as it is"
    ))
}

/// A number as stores hold them: signed, 64 bits.
pub(crate) fn place_number(text: &str, radix: u32) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(text, radix).ok().filter(|number| is_plain && i64::try_from(*number).is_ok())
}
