//! Removing a run that is over.

use axum::extract::State;
use steadfast::graph;
use steadfast_api::problem::Problem;
use steadfast_api::v1::runs::{PURGE, Purged};

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Named, checked_run_id};

/// Removes a run that is over, with its whole tree. Its id is free afterwards. One that is not there is no mistake: it may have been removed before.
#[utoipa::path(
    post, path = PURGE, tag = "runs", params(("id" = String, Path)),
    responses(
        (status = 200, body = Purged),
        (status = 409, body = Problem, description = "the run or one below it is not over, or it is itself below another")
    )
)]
pub(crate) async fn purge_run(State(app): State<App>, Named(id): Named<String>) -> Result<Answer<Purged>, Refusal> {
    checked_run_id(&id)?;
    let purged = match app.graphs.purge(&id).await? {
        graph::Purged::Now => true,
        graph::Purged::Before => false,
    };
    Ok(Answer(Purged { id, purged }))
}
