//! What those who run a server ask it: whether it is well, and what it has done.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use steadfast::Health;
use steadfast_api::problem::Problem;
use steadfast_api::v1::operations::{HEALTH, METRICS, OPENAPI, READY, Well};

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::exposition::exposition;

/// Whether the process answers.
#[utoipa::path(get, path = HEALTH, tag = "operations", responses((status = 200, body = Well)))]
pub(crate) async fn health() -> Answer<Well> {
    Answer(Well { status: "ok".to_owned() })
}

/// Whether it can take work: turns are acknowledged.
#[utoipa::path(
    get, path = READY, tag = "operations",
    responses((status = 200, body = Well), (status = 503, body = Problem))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Answer<Well>, Refusal> {
    match app.engine.health() {
        Health::Well => Ok(Answer(Well { status: "ok".to_owned() })),
        Health::Unwell(reason) => {
            // It names files. Whoever may see the log may see them.
            tracing::warn!("not ready: {reason}");
            Err(Refusal::unavailable("the store does not take writes now; the server's log says why"))
        }
    }
}

/// Counts, as Prometheus reads them.
#[utoipa::path(
    get, path = METRICS, tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"))
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Refusal> {
    let runs = app.read(|graphs| graphs.counts()).await?;
    let engine = &app.engine;
    let text = exposition(&engine.metrics(), &engine.load(), &engine.health(), &runs, &app.traffic);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

/// This API, as OpenAPI 3.1.
#[utoipa::path(get, path = OPENAPI, tag = "operations", responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn description(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], app.openapi.to_string())
}
