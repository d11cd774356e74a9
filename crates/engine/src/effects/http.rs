//! The executor `http`: one request, one answer.
//!
//! Owns what goes out and which answers are failures. Where a request may go is in `guard.rs`, what an answer becomes in `answer.rs`. Proxies that the
//! environment names are used, as everywhere; then the proxy finds the address, and only addresses written as numbers are checked here.
//! Start reading at [`Http`].

mod answer;
mod guard;
mod retry_after;

pub use guard::LinkLocal;

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Url};
use serde::Deserialize;
use serde_json::{Map, Value};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;
use steadfast_core::limits;

use super::{Call, Carries, Effect};
use crate::tasks::NotDone;
use guard::{Guard, Refusal};

/// By which a server recognises a request that it has had before.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(super) struct Http {
    guard: Guard,
    /// Made with the first request: reading the system's certificates takes longer than starting the rest of the engine.
    clients: OnceLock<Result<Clients, String>>,
}

/// Two of them, because a request with secrets follows no redirect to another place.
struct Clients {
    plain: Client,
    with_secrets: Client,
    /// Why nobody can be trusted over HTTPS, if so.
    without_certificates: Option<String>,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, Copy)]
enum Roots {
    System,
    Nobody,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    query: Map<String, Value>,
    body: Option<Value>,
    ok: Option<Vec<u16>>,
}

impl Http {
    pub(super) fn new(link_local: LinkLocal) -> Self {
        Self { guard: Guard { link_local }, clients: OnceLock::new() }
    }

    fn client(&self, url: &Url, carries: Carries) -> Result<&Client, Failure> {
        let unable = |reason: &str| {
            let message = format!("{} requests cannot be made here: {reason}", url.scheme().to_uppercase());
            Failure::last(FailureKind::Internal, &message)
        };
        let made = self.clients.get_or_init(|| Clients::new(self.guard).map_err(|error| chain(&error)));
        let clients = made.as_ref().map_err(|reason| unable(reason))?;
        match &clients.without_certificates {
            Some(reason) if url.scheme() == "https" => Err(unable(reason)),
            Some(_) | None => Ok(match carries {
                Carries::Nothing => &clients.plain,
                Carries::Secrets => &clients.with_secrets,
            }),
        }
    }
}

impl Clients {
    fn new(guard: Guard) -> Result<Self, reqwest::Error> {
        let both = |roots| Ok((client(guard, Carries::Nothing, roots)?, client(guard, Carries::Secrets, roots)?));
        let (plain, with_secrets, without_certificates) = match both(Roots::System) {
            Ok((plain, with_secrets)) => (plain, with_secrets, None),
            // A small container may have no certificates, and no need of any.
            Err(error) => {
                let (plain, with_secrets) = both(Roots::Nobody)?;
                (plain, with_secrets, Some(chain(&error)))
            }
        };
        Ok(Self { plain, with_secrets, without_certificates })
    }
}

impl Effect for Http {
    const TIMEOUT_MS: Option<u64> = Some(limits::TASK_TIMEOUT_MS_DEFAULT);

    async fn run(&self, mut call: Call) -> Result<Json, NotDone> {
        let specification: Specification = call.specification()?;
        let request = request(&specification, &call.key)?;
        let name = format!("{} {}", request.method(), shown(request.url(), &call));
        self.guard.check_literal(request.url()).map_err(|refusal| refused(&name, &refusal))?;
        let client = self.client(request.url(), call.carries)?;
        let sent = client.execute(request).await;
        let response = sent.map_err(|error| unsent(&name, error))?;
        if is_ok(&specification, response.status().as_u16()) {
            Ok(answer::result(&name, response).await?)
        } else {
            Err(answer::failure(&name, response, &call.used).await.into())
        }
    }
}

fn client(guard: Guard, carries: Carries, roots: Roots) -> Result<Client, reqwest::Error> {
    // The first in the process to say so decides; which one it is makes no difference here.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = match roots {
        Roots::System => Client::builder(),
        Roots::Nobody => Client::builder().tls_certs_only([]),
    };
    builder
        .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_millis(limits::HTTP_CONNECT_TIMEOUT_MS))
        // What a URL says (it may be a secret) is nobody else's business.
        .referer(false)
        .dns_resolver(guard)
        .redirect(guard.redirects(carries))
        .build()
}

fn is_ok(specification: &Specification, status: u16) -> bool {
    match &specification.ok {
        Some(ok) => ok.contains(&status),
        None => (200..300).contains(&status),
    }
}

fn request(specification: &Specification, key: &str) -> Result<Request, Failure> {
    let mut url = Url::parse(&specification.url).map_err(|error| invalid(&format!("the URL is not one: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        // What it begins with may be a part of a secret, so it is not shown.
        return Err(invalid("the URL must begin with `http:` or `https:`"));
    }
    for (name, value) in fields(&specification.query) {
        url.query_pairs_mut().append_pair(name, &value);
    }
    let default = if specification.body.is_some() { "POST" } else { "GET" };
    let method = specification.method.as_deref().unwrap_or(default);
    let method = Method::from_bytes(method.to_uppercase().as_bytes())
        .map_err(|_| invalid(&format!("`{method}` is not a method")))?;
    let mut request = Request::new(method, url);
    let mut headers = headers(&specification.headers)?;
    if !headers.contains_key(&IDEMPOTENCY_KEY) {
        let key = HeaderValue::from_str(key).map_err(|_| invalid("the task's id cannot be sent as a header"))?;
        headers.insert(IDEMPOTENCY_KEY, key);
    }
    if let Some(body) = &specification.body {
        let (content_type, text) = match body {
            Value::String(text) => ("text/plain; charset=utf-8", text.clone()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                ("application/json", body.to_string())
            }
        };
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        *request.body_mut() = Some(text.into());
    }
    *request.headers_mut() = headers;
    Ok(request)
}

fn headers(given: &Map<String, Value>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields(given) {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid(&format!("`{name}` is not the name of a header")))?;
        // The value may be a secret, so it is not shown, neither here nor in anybody's log.
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| invalid(&format!("the value of header `{name}` has characters that no header may have")))?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

/// Names with their texts: a list is its name several times, `null` is not there at all.
fn fields(object: &Map<String, Value>) -> Vec<(&str, String)> {
    let mut fields = Vec::new();
    for (name, value) in object {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        fields.extend(values.iter().filter_map(|value| Some((name.as_str(), field_text(value)?))));
    }
    fields
}

fn field_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

/// A URL as messages show it: without who asks and what for. A URL writes things in its own way, so with secrets only the place is shown,
/// and not even that when a secret is a part of it.
fn shown(url: &Url, call: &Call) -> String {
    let place = url.origin().ascii_serialization();
    match call.carries {
        Carries::Nothing => format!("{place}{}", url.path()),
        Carries::Secrets if call.used.is_in(&place) => format!("{}://…", url.scheme()),
        Carries::Secrets => place,
    }
}

fn invalid(message: &str) -> Failure {
    Failure::last(FailureKind::InvalidInput, message)
}

fn refused(name: &str, refusal: &Refusal) -> Failure {
    Failure::last(FailureKind::InvalidInput, &format!("{name} is refused: {refusal}"))
}

/// A request that got no answer.
fn unsent(name: &str, error: reqwest::Error) -> Failure {
    let error = error.without_url();
    if let Some(refusal) = refusal_in(&error) {
        return refused(name, refusal);
    }
    let message = format!("{name} failed: {}", chain(&error));
    if error.is_builder() {
        Failure::last(FailureKind::InvalidInput, &message)
    } else {
        Failure::retryable(FailureKind::TaskFailed, &message)
    }
}

/// Our own refusal, if that is what is behind an error.
fn refusal_in(error: &reqwest::Error) -> Option<&Refusal> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// What went wrong, and why, and why that.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}
