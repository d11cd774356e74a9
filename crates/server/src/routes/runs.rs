//! Runs: started, listed, read.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use steadfast::graph::Run as NewRun;
use steadfast_api::problem::Problem;
use steadfast_api::v1::runs::{ListParameters, RUN, RUNS, Run, Runs, StartRun, WORKFLOW_RUNS};
use steadfast_core::graph::protocol::{RunStatus, Started, Tracing};
use steadfast_core::ids::Sequence;
use steadfast_core::json::Json;
use steadfast_store::rows::RunFilter;

use super::{Answer, existing};
use crate::app::App;
use crate::error::Refusal;
use crate::request::{
    Body, Named, Parameters, checked_duration, checked_id, checked_limit, checked_run_id, place_number, shown,
    wrong_cursor,
};
use crate::{limits, wire};

/// Starts a run, unless there is one of its id with the same workflow and input.
#[utoipa::path(
    post, path = WORKFLOW_RUNS, tag = "runs", request_body = StartRun,
    params(("name" = String, Path, description = "the workflow: `name`, or `name@3`")),
    responses(
        (status = 201, body = Run, description = "it has begun"),
        (status = 200, body = Run, description = "it was there already"),
        (status = 404, body = Problem, description = "there is no such workflow"),
        (status = 409, body = Problem, description = "the id has another workflow or input"),
        (status = 422, body = Problem, description = "the input does not fit"),
    )
)]
pub(crate) async fn start_run(
    State(app): State<App>,
    Named(workflow): Named<String>,
    body: Body,
) -> Result<Response, Refusal> {
    checked_id("workflow", workflow.split_once('@').map_or(&*workflow, |(name, _)| name))?;
    let StartRun { input, id, wait, trace } = body.document()?;
    let wait = wait.as_deref().map(|wait| checked_duration("wait", wait, 0, limits::WAIT_MS_MAX)).transpose()?;
    let input = match input {
        Some(input) => Json::from_stored(input.get()),
        None => Json::from_stored("{}"),
    };
    let tracing = if trace { Tracing::On } else { Tracing::Off };
    let mut run = NewRun { tracing, ..NewRun::new(&workflow, input) };
    if let Some(id) = id {
        checked_id("run id", &id)?;
        run = run.with_id(&id);
    }
    let (id, started) = match wait {
        Some(wait) => {
            let patience = async { drop(tokio::time::timeout(wait, app.stopping()).await) };
            app.graphs.start_and_wait(run, patience).await?
        }
        None => app.graphs.start(run).await?,
    };
    let status = match started {
        Started::Created { .. } => StatusCode::CREATED,
        Started::Existing | Started::Conflict { .. } => StatusCode::OK,
    };
    let location = RUN.replace("{id}", &id);
    let view = app.read(move |graphs| existing(graphs, &id)).await?;
    Ok((status, [(LOCATION, location)], Answer(wire::run(view)?)).into_response())
}

/// Runs that fit, the newest first. Runs that begin meanwhile do not change what comes on later pages.
#[utoipa::path(
    get, path = RUNS, params(ListParameters), tag = "runs",
    responses((status = 200, body = Runs), (status = 400, body = Problem))
)]
pub(crate) async fn list_runs(
    State(app): State<App>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Answer<Runs>, Refusal> {
    let ListParameters { workflow, status, root, limit, cursor } = parameters;
    let page = Page::new(limit, cursor.as_deref())?;
    let status = status.as_deref().map(status_of).transpose()?;
    if let Some(root) = &root {
        checked_run_id(root)?;
    }
    let read = app.read(move |graphs| {
        let status = status.map(RunStatus::name);
        let filter = RunFilter { workflow: workflow.as_deref(), status, root: root.as_deref(), parent: None };
        graphs.list(filter, page.before, page.limit)
    });
    read.await.map(runs).map(Answer)
}

/// Which part of a list of runs.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub(super) before: Option<Sequence>,
    pub(super) limit: usize,
}

impl Page {
    pub(super) fn new(limit: Option<usize>, cursor: Option<&str>) -> Result<Self, Refusal> {
        let read = |text: &str| place_number(text, 16).map(Sequence).ok_or_else(|| wrong_cursor("cursor", text));
        Ok(Self { limit: checked_limit(limit)?, before: cursor.map(read).transpose()? })
    }
}

pub(super) fn runs(listed: steadfast::graph::Listed) -> Runs {
    let next_cursor = listed.next.map(|next| format!("{:x}", next.0));
    Runs { items: listed.runs.into_iter().map(wire::listed).collect(), next_cursor }
}

fn status_of(text: &str) -> Result<RunStatus, Refusal> {
    let all = [RunStatus::Running, RunStatus::Paused, RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];
    all.into_iter().find(|status| status.name() == text).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|status| format!("`{}`", status.name())).collect();
        let shown = shown(text);
        Refusal::invalid_parameter(format!("`{shown}` is not a status: there are {}", names.join(", ")))
    })
}

/// A run, as it is on disk.
#[utoipa::path(
    get, path = RUN, tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Run), (status = 404, body = Problem))
)]
pub(crate) async fn read_run(State(app): State<App>, Named(id): Named<String>) -> Result<Answer<Run>, Refusal> {
    checked_run_id(&id)?;
    let view = app.read(move |graphs| existing(graphs, &id)).await?;
    wire::run(view).map(Answer)
}
