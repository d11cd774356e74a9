//! Who is let in.
//!
//! Owns what each request needs, and the refusing of those that lack it, before anything of a request is read. What it does not know needs most.
//! Start reading at [`watch`].

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use steadfast_api::v1::operations;

use crate::app::App;
use crate::error::Refusal;
use crate::keys::{Keys, Need};
use crate::request::shown;

/// Who may use the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Who has a key.
    Keys(Keys),
    /// Every program on this machine, but no web page that a browser on it shows.
    Loopback,
    /// Everybody who reaches it.
    Insecure,
}

/// Lets a request through, or refuses it.
pub(crate) async fn watch(State(app): State<App>, request: Request, next: Next) -> Response {
    let allowed = match &*app.access {
        Access::Keys(keys) => check_key(keys, request.headers(), needed(request.method(), request.uri().path())),
        Access::Loopback => check_origin(request.headers()),
        Access::Insecure => Ok(()),
    };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began = Instant::now();
    let response = match allowed {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            tracing::warn!(%method, path = %shown(&path), "a request was refused: {}", refusal.detail());
            refusal.into_response()
        }
    };
    app.traffic.answered(route.as_ref().map(MatchedPath::as_str), response.status());
    let (status, ms) = (response.status().as_u16(), began.elapsed().as_millis());
    tracing::debug!(%method, path = %shown(&path), status, ms, "a request was answered");
    response
}

/// What a request needs. Paths are as they were sent, as the router takes them.
fn needed(method: &Method, path: &str) -> Need {
    if [operations::HEALTH, operations::READY, operations::OPENAPI].contains(&path) {
        return Need::Nothing;
    }
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match (method.as_str(), &segments[..]) {
        ("GET" | "HEAD", _) => Need::Read,
        ("POST", ["v1", "workflows", _, "runs"] | ["v1", "runs", _, "signals", _]) => Need::Start,
        ("POST", ["v1", "tasks", "lease"] | ["v1", "tasks", _, "heartbeat" | "complete" | "fail"]) => Need::Work,
        (
            "POST",
            ["v1", "runs", _, "cancel" | "pause" | "resume" | "recover"] | ["v1", "dead-letters", _, "redrive"],
        )
        | ("DELETE", ["v1", "dead-letters", _]) => Need::Operate,
        _ => Need::Define,
    }
}

fn check_key(keys: &Keys, headers: &HeaderMap, need: Need) -> Result<(), Refusal> {
    if need == Need::Nothing {
        return Ok(());
    }
    let Some(shown) = text(headers, AUTHORIZATION).and_then(bearer) else {
        return Err(Refusal::unauthorized("this server wants a key: send the header `Authorization: Bearer KEY`"));
    };
    let Some(key) = keys.find(shown) else {
        return Err(Refusal::unauthorized("this key is not known here; ask whoever runs the server for one"));
    };
    if key.role.may(need) {
        return Ok(());
    }
    let (has, wanted) = (key.role.name(), need.role().name());
    let named = if key.name.is_empty() { "this key".to_owned() } else { format!("the key `{}`", key.name) };
    Err(Refusal::forbidden(format!("{named} has the role `{has}`; this needs at least `{wanted}`")))
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, key) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Without keys, being on this machine is what lets a program in. A web page runs on it too, and is kept out: by its origin, and by
/// the name it has for us, which another's name server may have led here.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(host) = text(headers, HOST) else { return Ok(()) };
    let is_ours = host.parse::<Authority>().is_ok_and(|authority| is_loopback(authority.host()));
    if !is_ours {
        let detail = "without keys, this server answers only to `localhost` and to loopback addresses; use one, or start it with `--api-key-file`";
        return Err(Refusal::forbidden(detail));
    }
    let is_foreign = headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")) != Some(host));
    if is_foreign {
        return Err(Refusal::forbidden("without keys, this server does not answer to pages of other origins"));
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_needs_most() {
        let check = |method: Method, path: &str, need: Need| assert_eq!(needed(&method, path), need, "{path}");
        check(Method::GET, "/healthz", Need::Nothing);
        check(Method::GET, "/metrics", Need::Read);
        check(Method::GET, "/v1/runs/a/events", Need::Read);
        check(Method::POST, "/v1/workflows/hello/runs", Need::Start);
        check(Method::POST, "/v1/runs/a/signals/go", Need::Start);
        check(Method::POST, "/v1/runs/a/cancel", Need::Operate);
        check(Method::POST, "/v1/runs/a/recover", Need::Operate);
        check(Method::DELETE, "/v1/dead-letters/1-2-3", Need::Operate);
        check(Method::POST, "/v1/runs/a/purge", Need::Define);
        check(Method::PUT, "/v1/definitions", Need::Define);
        check(Method::POST, "/v1/something/new", Need::Define);
        check(Method::POST, "/v1/runs/a/cancel/", Need::Define);
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        let ours = ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"];
        assert!(ours.iter().all(|host| is_loopback(host)));
        let others = ["example.com", "127.0.0.1.example.com", "10.0.0.1", "localhost.example.com", ""];
        assert!(!others.iter().any(|host| is_loopback(host)));
    }
}
