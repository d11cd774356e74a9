//! Tasks for workers outside: lent, kept, handed in.

use std::time::Duration;

use axum::extract::State;
use steadfast::tasks::{Ask, Lent, OutsideTask};
use steadfast_api::problem::Problem;
use steadfast_api::v1::tasks::{
    COMPLETE, Complete, Extended, FAIL, Fail, HEARTBEAT, Heartbeat, LEASE, Lease, Leased, Settled, Task, TaskError,
};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Body, Named, checked_duration, checked_id};
use crate::{limits, wire};

/// Lends tasks to a worker, and waits for the first if there is none.
#[utoipa::path(
    post, path = LEASE, tag = "tasks", request_body = Lease,
    responses((status = 200, body = Leased), (status = 400, body = Problem))
)]
pub(crate) async fn lease_tasks(State(app): State<App>, body: Body) -> Result<Answer<Leased>, Refusal> {
    let Lease { queue, worker, max, wait, visibility } = body.document()?;
    checked_id("queue", &queue)?;
    checked_id("worker", &worker)?;
    let max = max.unwrap_or(1);
    if !(1..=limits::LEASES_AT_ONCE_MAX).contains(&max) {
        let allowed = limits::LEASES_AT_ONCE_MAX;
        return Err(Refusal::invalid_body(format!("`max` is {max}, allowed are 1 to {allowed}")));
    }
    let wait = wait.as_deref().map(|wait| checked_duration("wait", wait, 0, limits::WAIT_MS_MAX)).transpose()?;
    let lease = visibility
        .as_deref()
        .map(|lease| checked_duration("visibility", lease, limits::LEASE_MS_MIN, limits::LEASE_MS_MAX));
    let ask = Ask {
        queue,
        worker,
        max,
        lease: lease.transpose()?.unwrap_or(limits::LEASE_DEFAULT),
        wait: wait.unwrap_or(Duration::ZERO),
    };
    let lent = tokio::select! {
        lent = app.workers.lease(&ask) => lent?,
        () = app.stopping() => return Err(Refusal::unavailable("the server stops; ask again when it has started")),
    };
    let tasks = lent.into_iter().map(task).collect::<Result<_, _>>()?;
    Ok(Answer(Leased { tasks }))
}

fn task(lent: Lent) -> Result<Task, Refusal> {
    let Lent { id, lease, lent_for, queue, node, attempt, input } = lent;
    Ok(Task {
        lease,
        lease_ms: milliseconds(lent_for),
        queue,
        run_id: id.actor.name().to_owned(),
        id: id.to_string(),
        node,
        attempt,
        input: wire::value(&input)?,
    })
}

/// Lends a task for as long again, from now.
#[utoipa::path(
    post, path = HEARTBEAT, tag = "tasks", params(("id" = String, Path)), request_body = Heartbeat,
    responses((status = 200, body = Extended), (status = 409, body = Problem, description = "the lease is lost"))
)]
pub(crate) async fn heartbeat_task(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Extended>, Refusal> {
    let Heartbeat { lease, progress } = body.document()?;
    let progress = progress.map(|progress| Json::from_stored(progress.get()));
    if progress.as_ref().is_some_and(|progress| progress.bytes() > limits::PROGRESS_BYTES_MAX) {
        let max = limits::PROGRESS_BYTES_MAX;
        return Err(Refusal::invalid_body(format!("`progress` is longer than {max} bytes; say less")));
    }
    let left = app.workers.heartbeat(&checked_task(&id)?, &lease, progress)?;
    Ok(Answer(Extended { lease_ms: milliseconds(left) }))
}

/// Takes a result. It is on disk when this is answered; under the same lease again it changes nothing.
#[utoipa::path(
    post, path = COMPLETE, tag = "tasks", params(("id" = String, Path)), request_body = Complete,
    responses((status = 200, body = Settled), (status = 409, body = Problem, description = "the lease is lost"))
)]
pub(crate) async fn complete_task(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Settled>, Refusal> {
    let Complete { lease, result } = body.document()?;
    let result = result.map_or_else(Json::null, |result| Json::from_stored(result.get()));
    app.workers.complete(&checked_task(&id)?, &lease, result).await?;
    Ok(Answer(Settled { id }))
}

/// Takes a failure. Whether the task is tried again is up to its retry policy, and to `retryable`.
#[utoipa::path(
    post, path = FAIL, tag = "tasks", params(("id" = String, Path)), request_body = Fail,
    responses((status = 200, body = Settled), (status = 409, body = Problem, description = "the lease is lost"))
)]
pub(crate) async fn fail_task(
    State(app): State<App>,
    Named(id): Named<String>,
    body: Body,
) -> Result<Answer<Settled>, Refusal> {
    let Fail { lease, error: TaskError { message, retryable, details } } = body.document()?;
    let details = details.map(|details| Json::from_stored(details.get()));
    let retryable = retryable.unwrap_or(true);
    let failure = Failure { kind: FailureKind::TaskFailed, message, retryable, details };
    app.workers.fail(&checked_task(&id)?, &lease, failure).await?;
    Ok(Answer(Settled { id }))
}

fn checked_task(id: &str) -> Result<OutsideTask, Refusal> {
    let wrong = || Refusal::invalid_id("this is not the id of a task; take it from the task as it is");
    OutsideTask::parse(id).ok_or_else(wrong)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
