//! What a run waits for.

use axum::extract::State;
use steadfast_api::problem::Problem;
use steadfast_api::v1::why::{WHY, Why};

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Named, checked_run_id};
use crate::waits;

/// What a run waits for, down the chain: tasks, workers, signals, times, branches, and runs below with what those wait for.
///
/// Of each group of branches the first five that are not over are told, five hundred things altogether, and of a hundred runs below. What is left out is
/// counted.
#[utoipa::path(
    get, path = WHY, tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Why), (status = 404, body = Problem))
)]
pub(crate) async fn explain_run(State(app): State<App>, Named(id): Named<String>) -> Result<Answer<Why>, Refusal> {
    checked_run_id(&id)?;
    app.read(move |graphs| graphs.why(&id)).await.map(waits::why).map(Answer)
}
