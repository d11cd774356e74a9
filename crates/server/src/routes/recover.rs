//! Taking up again what is stuck of a run.

use axum::extract::State;
use steadfast::graph::Recovery;
use steadfast_api::problem::Problem;
use steadfast_api::v1::recover::{RECOVER, Recover, Recovered};

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Body, Named, checked_duration, checked_run_id};
use crate::{limits, wire};

/// Takes up again what is stuck of a run: begins retries that wait for their time, dispatches tasks that are lost, tries parked ones again, and takes back those
/// of workers that are silent. Up to a thousand of each; what is not stuck is left as it is.
#[utoipa::path(
    post, path = RECOVER, tag = "runs", params(("id" = String, Path)), request_body = Option<Recover>,
    responses((status = 200, body = Recovered), (status = 404, body = Problem), (status = 409, body = Problem, description = "the run is over"))
)]
pub(crate) async fn recover_run(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Recovered>, Refusal> {
    checked_run_id(&id)?;
    let Recover { reason: _, silent_for } = body.document_or_default()?;
    let silent_for = silent_for.as_deref().map(|text| checked_duration("silent_for", text, 0, limits::LEASE_MS_MAX));
    let silent_for = silent_for.transpose()?.unwrap_or(limits::SILENT_DEFAULT);
    match app.graphs.recover(&id, silent_for).await? {
        Ok(Recovery { status, retried, dispatched, unparked, taken_back }) => {
            let status = wire::status(status);
            Ok(Answer(Recovered { id, status, retried, dispatched, unparked, taken_back }))
        }
        Err(status) => Err(Refusal::run_ended(&id, status.name())),
    }
}
