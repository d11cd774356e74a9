//! A checkup: is there something that nothing will wake?

use axum::extract::State;
use steadfast::graph::{Checkup as Found, CheckupPlace, Stuck as FoundStuck};
use steadfast_api::problem::Problem;
use steadfast_api::v1::doctor::{Checkup, DOCTOR, Stuck, StuckThing};
use steadfast_api::v1::runs::PageParameters;
use steadfast_core::graph::doctor::Problem as FoundProblem;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Parameters, checked_limit, wrong_cursor};

/// Looks at runs that are not over, `limit` of them or fewer, and proves for each part of them what will wake it next: the alarm, a task, a message, a
/// run below, a signal from outside, or somebody who resumes it. Lists what nothing will wake.
#[utoipa::path(
    get, path = DOCTOR, tag = "operations", params(PageParameters),
    responses((status = 200, body = Checkup), (status = 400, body = Problem))
)]
pub(crate) async fn check_runs(
    State(app): State<App>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Answer<Checkup>, Refusal> {
    let limit = checked_limit(limit)?;
    let read = |text: &String| text.parse::<CheckupPlace>().map_err(|()| wrong_cursor("cursor", text));
    let from = cursor.as_ref().map(read).transpose()?;
    app.read(move |graphs| graphs.check_runs(from, limit)).await.map(checkup).map(Answer)
}

/// A checkup as it is on the wire.
#[must_use]
pub fn checkup(found: Found) -> Checkup {
    let Found { runs, wakers, stuck: found, next } = found;
    Checkup {
        items: found.into_iter().map(stuck).collect(),
        runs_checked: runs,
        wakers: wakers.into_iter().map(|(waker, count)| (waker.name().to_owned(), count)).collect(),
        next_cursor: next.map(|next| next.to_string()),
    }
}

fn stuck(FoundStuck { run, workflow, problems, left_out }: FoundStuck) -> Stuck {
    let thing = |FoundProblem { token, node, missing }: FoundProblem| StuckThing {
        token: token.map(|token| token.0),
        node: node.map(|node| node.to_string()),
        missing,
    };
    let problems = problems.into_iter().map(thing).collect();
    Stuck { id: run, workflow: workflow.to_string(), problems, left_out }
}
