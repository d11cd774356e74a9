//! What a run is told: to end, to pause, to go on; and signals. The same once more does no more.

use axum::extract::State;
use axum::http::HeaderMap;
use sha2::{Digest, Sha256};
use steadfast_api::problem::Problem;
use steadfast_api::v1::runs::{CANCEL, Control, Controlled as Told, IDEMPOTENCY_KEY, PAUSE, RESUME, SIGNAL};
use steadfast_core::graph::protocol::Controlled;
use steadfast_core::ids::RequestId;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Body, Named, checked_id, checked_run_id};
use crate::wire;

/// Ends a run. One that is over stays as it is, and is told as such.
#[utoipa::path(
    post, path = CANCEL, tag = "runs", params(("id" = String, Path)), request_body = Option<Control>,
    responses((status = 200, body = Told), (status = 404, body = Problem))
)]
pub(crate) async fn cancel_run(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Told>, Refusal> {
    checked_run_id(&id)?;
    let Control { reason } = body.document_or_default()?;
    match app.graphs.cancel(&id, reason.as_deref()).await? {
        Controlled::Done(status) | Controlled::Ended(status) => Ok(Answer(Told { id, status: wire::status(status) })),
        Controlled::NotFound => Err(Refusal::run_not_found(&id)),
    }
}

/// Lets what runs finish and begins nothing new.
#[utoipa::path(
    post, path = PAUSE, tag = "runs", params(("id" = String, Path)), request_body = Option<Control>,
    responses((status = 200, body = Told), (status = 404, body = Problem), (status = 409, body = Problem, description = "the run is over"))
)]
pub(crate) async fn pause_run(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Told>, Refusal> {
    checked_run_id(&id)?;
    let Control { reason: _ } = body.document_or_default()?;
    let controlled = app.graphs.pause(&id).await?;
    told(id, &controlled)
}

/// Goes on after a pause.
#[utoipa::path(
    post, path = RESUME, tag = "runs", params(("id" = String, Path)), request_body = Option<Control>,
    responses((status = 200, body = Told), (status = 404, body = Problem), (status = 409, body = Problem, description = "the run is over"))
)]
pub(crate) async fn resume_run(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Told>, Refusal> {
    checked_run_id(&id)?;
    let Control { reason: _ } = body.document_or_default()?;
    let controlled = app.graphs.resume(&id).await?;
    told(id, &controlled)
}

/// Sends a signal, with the body as what it brings. The same `Idempotency-Key` again sends nothing, and gets the same answer.
#[utoipa::path(
    post, path = SIGNAL, tag = "runs", request_body(content = serde_json::Value, content_type = "application/json"),
    params(
        ("id" = String, Path),
        ("name" = String, Path, description = "the signal"),
        ("Idempotency-Key" = Option<String>, Header, description = "of this signal among those of its name to the run"),
    ),
    responses((status = 200, body = Told), (status = 404, body = Problem), (status = 409, body = Problem, description = "the run is over"))
)]
pub(crate) async fn signal_run(
    State(app): State<App>,
    Named((id, name)): Named<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer<Told>, Refusal> {
    checked_run_id(&id)?;
    checked_id("signal", &name)?;
    let key = idempotency_key(&name, &headers)?;
    let controlled = app.graphs.signal(&id, &name, body.value()?, key.as_ref()).await?;
    told(id, &controlled)
}

/// A key is one of a signal: another signal under the same key is another request. Hashed, because the two together may be longer than an id.
fn idempotency_key(signal: &str, headers: &HeaderMap) -> Result<Option<RequestId>, Refusal> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = key.to_str().map_err(|_| Refusal::invalid_id("the header `Idempotency-Key` is not plain text"))?;
    checked_id("`Idempotency-Key`", text)?;
    let digest = Sha256::digest(format!("{signal}/{text}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    checked_id("request id", &format!("signal:{digest}")).map(Some)
}

fn told(id: String, controlled: &Controlled) -> Result<Answer<Told>, Refusal> {
    match controlled {
        Controlled::Done(status) => Ok(Answer(Told { id, status: wire::status(*status) })),
        Controlled::Ended(status) => Err(Refusal::run_ended(&id, status.name())),
        Controlled::NotFound => Err(Refusal::run_not_found(&id)),
    }
}
