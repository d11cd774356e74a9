//! One request and its answer.
//!
//! Owns URLs, headers, time limits, the size of an answer, and asking again. Only what may be asked twice is asked twice: the connection can break after the
//! server has done what it was told. Start reading at [`Client::ask`].

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, Request, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_api::problem::Problem;

use crate::error::{Error, InvalidUrl};
use crate::key::Key;

/// A client of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    url: Url,
    key: Option<Key>,
}

/// Whether a request may reach the server more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It does the same as once.
    Harmless,
    /// It might do more, or be answered as if somebody else had done it.
    Refused,
}

/// A request to be sent.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Its type, and itself.
    pub(crate) body: Option<(&'static str, String)>,
    pub(crate) header: Option<(&'static str, String)>,
    pub(crate) repeat: Repeat,
    /// How long the server may take on purpose.
    pub(crate) wait: Duration,
}

/// For a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// For an answer to arrive, besides what the server was asked to wait: 8 MiB over a slow line.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers beyond this are refused: a run with the largest input and output, or a thousand rows of a list, has far less.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// After how long what may be repeated is asked again. People wait for it.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

pub(crate) const JSON: &str = "application/json";

impl Client {
    /// A client of the server at `url`. Connects to nobody yet.
    pub fn new(url: &str, key: Option<Key>) -> Result<Self, InvalidUrl> {
        let parsed = Url::parse(url.trim()).ok().filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| InvalidUrl::Form(url.to_owned()))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(InvalidUrl::Credentials);
        }
        let http = http(&parsed).map_err(|error| InvalidUrl::Certificates(chain(&error)))?;
        Ok(Self { http, url: parsed, key })
    }

    /// Where the server is.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// The URL of a path of the API, with a name for each `{…}` in it.
    pub(crate) fn path(&self, template: &str, names: &[&str]) -> Result<Url, Error> {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let mut names = names.iter().copied();
        let mut segments = Vec::new();
        for part in template.split('/').filter(|part| !part.is_empty()) {
            let name = if part.starts_with('{') { names.next() } else { None };
            segments.push(name.map_or(Ok(part), checked)?);
        }
        url.path_segments_mut().map_err(|()| Error::InvalidName(template.to_owned()))?.pop_if_empty().extend(segments);
        Ok(url)
    }

    /// Sends a call and reads the document that answers it.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let (_, bytes) = self.answer(call).await?;
        self.decoded(&bytes)
    }

    /// The same, with the status of the answer.
    pub(crate) async fn answer(&self, call: Call) -> Result<(StatusCode, Vec<u8>), Error> {
        let mut pauses = ASK_AGAIN.iter();
        loop {
            let error = match self.once(&call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Who is not there is not waited for: that is said at once.
            let is_worth_it = error.may_pass() && !matches!(error, Error::Unreachable { .. });
            match pauses.next().filter(|_| call.repeat == Repeat::Harmless && is_worth_it) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(error),
            }
        }
    }

    async fn once(&self, call: &Call) -> Result<(StatusCode, Vec<u8>), Error> {
        let mut request = self.request(call)?;
        *request.timeout_mut() = Some(ANSWER_TIMEOUT + call.wait);
        let response = self.http.execute(request).await.map_err(|error| self.unsent(&error, call.repeat))?;
        let status = response.status();
        let bytes = self.whole(response, call.repeat).await?;
        if status.is_success() { Ok((status, bytes)) } else { Err(self.refusal(status, &bytes)) }
    }

    /// Begins an answer of a type that is read as it comes.
    pub(crate) async fn begin(&self, call: &Call, media_type: &'static str) -> Result<Response, Error> {
        let mut request = self.request(call)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(media_type));
        let response = self.http.execute(request).await.map_err(|error| self.unsent(&error, call.repeat))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = self.whole(response, call.repeat).await?;
        Err(self.refusal(status, &bytes))
    }

    fn request(&self, call: &Call) -> Result<Request, Error> {
        let mut builder = self.http.request(call.method.clone(), call.url.clone());
        if let Some(key) = &self.key {
            builder = builder.header(AUTHORIZATION, key.header());
        }
        if let Some((name, value)) = &call.header {
            builder = builder.header(*name, value);
        }
        if let Some((media_type, body)) = &call.body {
            builder = builder.header(CONTENT_TYPE, *media_type).body(body.clone());
        }
        builder.build().map_err(|error| self.foreign(chain(&error.without_url())))
    }

    async fn whole(&self, mut response: Response, repeat: Repeat) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.lost(&error, repeat))? {
            if bytes.len() + part.len() > ANSWER_BYTES_MAX {
                return Err(Error::TooLarge { bytes_max: ANSWER_BYTES_MAX });
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    pub(crate) fn decoded<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(bytes).map_err(|error| self.foreign(error.to_string()))
    }

    fn refusal(&self, status: StatusCode, bytes: &[u8]) -> Error {
        match serde_json::from_slice::<Problem>(bytes) {
            Ok(problem) => Error::Refused(Box::new(problem)),
            Err(_) => self.foreign(format!("status {}", status.as_u16())),
        }
    }

    pub(crate) fn foreign(&self, reason: String) -> Error {
        Error::Foreign { url: self.url().to_owned(), reason }
    }

    fn unsent(&self, error: &reqwest::Error, repeat: Repeat) -> Error {
        if error.is_connect() {
            return Error::Unreachable { url: self.url().to_owned(), reason: cause(error) };
        }
        self.lost(error, repeat)
    }

    pub(crate) fn lost(&self, error: &reqwest::Error, repeat: Repeat) -> Error {
        let reason = if error.is_timeout() { "no answer in time".to_owned() } else { cause(error) };
        self.lost_because(reason, repeat)
    }

    pub(crate) fn lost_because(&self, reason: String, repeat: Repeat) -> Error {
        let advice = match repeat {
            Repeat::Harmless => "ask again; nothing is done twice",
            Repeat::Refused => "look whether it was done before it is tried again",
        };
        Error::Lost { url: self.url().to_owned(), reason, advice }
    }
}

impl Call {
    /// A question: it changes nothing.
    pub(crate) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, body: None, header: None, repeat: Repeat::Harmless, wait: Duration::ZERO }
    }

    /// A wish with a document.
    pub(crate) fn post<T: Serialize>(url: Url, document: &T, repeat: Repeat) -> Result<Self, Error> {
        let body = Some((JSON, serde_json::to_string(document)?));
        Ok(Self { method: Method::POST, body, repeat, ..Self::get(url) })
    }
}

/// What stands behind the `?`: every field that is there.
pub(crate) fn with_query<T: Serialize>(mut url: Url, parameters: &T) -> Result<Url, Error> {
    let serde_json::Value::Object(fields) = serde_json::to_value(parameters)? else { return Ok(url) };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        url.query_pairs_mut().append_pair(name, &text);
    }
    Ok(url)
}

fn http(url: &Url) -> Result<reqwest::Client, reqwest::Error> {
    // The first in the process to say so decides; which one it is makes no difference here.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        // A key goes where it was meant to go.
        .redirect(Policy::none());
    if url.scheme() == "http" {
        // Certificates of the system take a while to be read, and are of no use here.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.parse::<std::net::IpAddr>().map_or(host == "localhost", |address| address.is_loopback())
}

/// A name that stays a part of its own in a path.
fn checked(name: &str) -> Result<&str, Error> {
    if matches!(name, "" | "." | "..") { Err(Error::InvalidName(name.to_owned())) } else { Ok(name) }
}

/// What lies at the bottom of an error, which is what the system said.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

fn chain(error: &reqwest::Error) -> String {
    format!("{error}: {}", cause(error))
}
