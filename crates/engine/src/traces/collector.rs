//! Where traces go: OTLP over HTTP, in JSON.
//!
//! Owns one request, and which answers are worth another try. Start reading at [`Collector::send`].

use std::fmt;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use steadfast_core::limits;

use super::span::{self, Span};
use crate::effects;

/// Where spans are posted, below the URL of a collector.
const PATH: &str = "v1/traces";

/// How long a request may take with its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is read of an answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// A collector of traces.
#[derive(Debug, Clone)]
pub struct Collector {
    url: Url,
    client: Client,
}

/// Why no traces can be sent to what was given as a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// It cannot be read.
    #[error("{0}; give the URL of a collector that takes OTLP over HTTP, as in `http://127.0.0.1:4318`")]
    NotHttp(String),
    /// It holds what is no part of a place.
    #[error(
        "the URL has a name, a password, a query or a fragment; give only where the collector is, as in `http://127.0.0.1:4318`"
    )]
    Surplus,
    /// It ends with what is put behind it.
    #[error("the URL ends with `/{PATH}`, which is put behind it anyway; leave that out")]
    Path,
    /// There is no HTTPS here.
    #[error("requests cannot be made here: {0}")]
    Client(String),
}

/// What became of spans that a collector has answered to.
pub(super) enum Sent {
    All,
    /// It will never take these.
    Without {
        count: u64,
        reason: String,
    },
}

/// Why spans are to be sent again.
pub(super) struct NotSent(pub(super) String);

/// The answer of a collector that leaves out some.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    partial_success: PartialSuccess,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    rejected_spans: serde_json::Value,
    error_message: String,
}

impl Collector {
    /// The collector at a URL, to which `/v1/traces` is added.
    pub fn at(url: &str) -> Result<Self, InvalidUrl> {
        let mut url = Url::parse(url).map_err(|error| InvalidUrl::NotHttp(format!("`{url}` is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidUrl::NotHttp(format!("`{}:` is neither `http:` nor `https:`", url.scheme())));
        }
        let has_key = !url.username().is_empty() || url.password().is_some();
        if has_key || url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidUrl::Surplus);
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if path.ends_with(PATH) {
            return Err(InvalidUrl::Path);
        }
        url.set_path(&format!("{path}/{PATH}"));
        let client = client(&url).map_err(|error| InvalidUrl::Client(effects::chain(&error)))?;
        Ok(Self { url, client })
    }

    /// Sends spans, once.
    pub(super) async fn send(&self, spans: &[Span]) -> Result<Sent, NotSent> {
        let body = span::document(spans);
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let answered = request.send().await;
        let response = answered.map_err(|error| NotSent(effects::chain(&error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(sent(&beginning(response).await));
        }
        match status {
            // It will not like them better the next time.
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(Sent::Without { count: spans.len() as u64, reason: status.to_string() })
            }
            // Also what a person has to mend first: a wrong path, a key that is missing.
            _ => Err(NotSent(format!("it answered {status}"))),
        }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, f)
    }
}

/// What an answer says that is as it should be. One that cannot be read says nothing.
fn sent(body: &[u8]) -> Sent {
    let Answer { partial_success } = serde_json::from_slice(body).unwrap_or_default();
    let PartialSuccess { rejected_spans, error_message } = partial_success;
    // A number, or a text of one.
    let count = rejected_spans.as_u64().or_else(|| rejected_spans.as_str()?.parse().ok()).unwrap_or(0);
    match count {
        0 => Sent::All,
        _ => {
            let reason = error_message[..error_message.floor_char_boundary(limits::EXCERPT_BYTES_MAX)].to_owned();
            Sent::Without { count, reason }
        }
    }
}

async fn beginning(mut response: Response) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < ANSWER_BYTES_MAX
        && let Ok(Some(part)) = response.chunk().await
    {
        read.extend_from_slice(&part);
    }
    read
}

fn client(url: &Url) -> Result<Client, reqwest::Error> {
    // The first in the process to say so decides; which one it is makes no difference here.
    drop(rustls::crypto::ring::default_provider().install_default());
    // Certificates are read only where they are needed.
    let builder = match url.scheme() {
        "https" => Client::builder(),
        _ => Client::builder().tls_certs_only([]),
    };
    builder
        .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_millis(limits::HTTP_CONNECT_TIMEOUT_MS))
        .timeout(PATIENCE)
        .redirect(Policy::none())
        .build()
}
