//! What an answer becomes: a result, or a failure that says whether to try again.

use std::collections::BTreeMap;

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;
use steadfast_core::limits::VALUE_BYTES_MAX;

use super::super::excerpt;
use super::super::secrets::{Used, base64};
use super::retry_after::retry_after_ms;
use crate::threads::clock;

/// What an answer gives.
#[derive(Serialize)]
struct Answer {
    status: u16,
    /// By name in small letters; several of one name are joined by `, `.
    headers: BTreeMap<String, String>,
    /// A value when it is JSON, text when it is text, `{ "base64": … }` when it is neither, `null` when it is empty.
    body: Json,
}

/// The result of an answer that is as it should be.
pub(super) async fn result(name: &str, mut response: Response) -> Result<Json, Failure> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let read = read(&mut response, VALUE_BYTES_MAX).await.map_err(|error| cut_off(name, &error))?;
    if read.is_cut {
        let message =
            format!("{name} answered with more than {VALUE_BYTES_MAX} bytes, which is the limit (`VALUE_BYTES_MAX`)");
        return Err(Failure::last(FailureKind::InvalidOutput, &message));
    }
    let answer = Answer { status, body: body(&headers, &read.bytes), headers: texts(&headers) };
    Json::encode(&answer).map_err(|error| Failure::last(FailureKind::Internal, &error.to_string()))
}

/// The failure of an answer that is not.
pub(super) async fn failure(name: &str, mut response: Response, used: &Used) -> Failure {
    let status = response.status();
    let wait_ms = response.headers().get(RETRY_AFTER).and_then(|value| retry_after_ms(value.to_str().ok()?, clock()));
    // What the server says besides is nice to have: if it breaks off, so be it.
    // One more than is looked at, so that it is seen to be cut.
    let body = read(&mut response, excerpt::LOOKED_AT_BYTES + 1).await.map(|read| read.bytes).unwrap_or_default();
    let mut details = Map::from_iter([("status".to_owned(), json!(status.as_u16()))]);
    if !body.is_empty() {
        details.insert("body".to_owned(), Value::String(excerpt::beginning(&body, used)));
    }
    if let Some(wait_ms) = wait_ms {
        details.insert("retry_after_ms".to_owned(), json!(wait_ms));
    }
    let message = format!("{name} answered {status}");
    let failure = if is_retryable(status) {
        Failure::retryable(FailureKind::TaskFailed, &message)
    } else {
        Failure::last(FailureKind::TaskFailed, &message)
    };
    Failure { details: Json::encode(&details).ok(), ..failure }
}

fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

fn cut_off(name: &str, error: &reqwest::Error) -> Failure {
    let message = format!("the answer to {name} broke off: {}", super::chain(error));
    Failure::retryable(FailureKind::TaskFailed, &message)
}

struct Read {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// Reads up to `bytes_max`; a byte more and it is cut there.
async fn read(response: &mut Response, bytes_max: usize) -> Result<Read, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        let room = bytes_max - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok(Read { bytes, is_cut: true });
        }
    }
    Ok(Read { bytes, is_cut: false })
}

fn body(headers: &HeaderMap, bytes: &[u8]) -> Json {
    let encoded = |value: &Value| Json::encode(value).unwrap_or_else(|_| Json::null());
    if bytes.is_empty() {
        return Json::null();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return encoded(&json!({ "base64": base64(bytes) })) };
    let may_be_json = headers.get(CONTENT_TYPE).is_none_or(|value| is_json(value.to_str().unwrap_or_default()));
    match Json::parse(text) {
        Ok(value) if may_be_json => value,
        Ok(_) | Err(_) => encoded(&Value::String(text.to_owned())),
    }
}

/// `application/json`, and everything that ends in `+json`.
fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let text = texts.entry(name.as_str().to_owned()).or_default();
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&value);
    }
    texts
}
