//! From what the engine says of a waiting run to what is on the wire.
//!
//! Owns the translation, as [`crate::wire`] does for everything else.

use steadfast_api::v1::runs::Branch;
use steadfast_api::v1::why::{TaskState, Wait, WaitKind, Why};
use steadfast_core::graph::why::{self, Cause, GroupWait, Standing, TaskStanding, TokenWait};
use steadfast_core::time::Timestamp;

pub(crate) fn why(why: why::Why) -> Why {
    let says = why.to_string();
    let why::Why { run: id, workflow, version, standing, waits, left_out } = why;
    let status = match standing {
        Standing::Running => "running",
        Standing::Paused => "paused",
        Standing::Ending(_) => "ending",
        Standing::Ended { status, .. } => status.name(),
    };
    let (workflow, status, waits) = (workflow.to_string(), status.to_owned(), all(waits));
    Why { id, workflow, version, status, says, waits, left_out }
}

fn all(waits: Vec<why::Wait>) -> Vec<Wait> {
    waits.into_iter().map(wait).collect()
}

fn wait(wait: why::Wait) -> Wait {
    let says = wait.to_string();
    let branch = wait.branch().map(|place| Branch { index: place.index, total: place.total });
    let blank = Wait { says, branch, ..blank() };
    match wait {
        why::Wait::Group(group) => of_group(group, blank),
        why::Wait::Token(token) => of_token(token, blank),
    }
}

fn blank() -> Wait {
    Wait {
        kind: WaitKind::Turn,
        says: String::new(),
        branch: None,
        token: None,
        node: None,
        attempt: None,
        since: None,
        until: None,
        task: None,
        queue: None,
        worker: None,
        signal: None,
        run: None,
        group: None,
        arrived: None,
        branches: None,
        waits: Vec::new(),
        left_out: 0,
    }
}

fn of_group(group: GroupWait, blank: Wait) -> Wait {
    let GroupWait { name, total, arrived, until, waits, left_out, .. } = group;
    Wait {
        kind: WaitKind::Group,
        group: name.map(|name| name.to_string()),
        arrived: Some(arrived),
        branches: Some(total),
        until: until.map(Timestamp::rfc3339),
        waits: all(waits),
        left_out,
        ..blank
    }
}

fn of_token(token: TokenWait, blank: Wait) -> Wait {
    let TokenWait { token, node, attempt, since, cause, .. } = token;
    let (token, node, attempt) = (Some(token.0), Some(node.to_string()), Some(attempt));
    let blank = Wait { token, node, attempt, since: Some(since.rfc3339()), ..blank };
    let time = |at: Option<Timestamp>| at.map(Timestamp::rfc3339);
    match cause {
        Cause::Turn => blank,
        Cause::Task(standing) => of_task(standing, Wait { kind: WaitKind::Task, ..blank }),
        Cause::Signal { name, until } => {
            Wait { kind: WaitKind::Signal, signal: Some(name), until: time(until), ..blank }
        }
        Cause::Sleep { until } => Wait { kind: WaitKind::Sleep, until: time(until), ..blank },
        Cause::Retry { due } => Wait { kind: WaitKind::Retry, until: time(due), ..blank },
        Cause::Run { run, until, why } => {
            let run = Some(run.name().to_owned());
            // One that was not looked into has left out itself.
            let (waits, left_out) = why.map_or((Vec::new(), 1), |why| (all(why.waits), why.left_out));
            Wait { kind: WaitKind::Run, run, until: time(until), waits, left_out, ..blank }
        }
    }
}

fn of_task(standing: TaskStanding, blank: Wait) -> Wait {
    match standing {
        TaskStanding::Dispatched | TaskStanding::Queued => Wait { task: Some(TaskState::Waiting), ..blank },
        TaskStanding::Running => Wait { task: Some(TaskState::Running), ..blank },
        TaskStanding::Leased { queue, worker, until } => Wait {
            task: Some(TaskState::Leased),
            queue: Some(queue),
            worker: Some(worker),
            until: Some(until.rfc3339()),
            ..blank
        },
        TaskStanding::Unleased { queue, .. } => Wait { task: Some(TaskState::Waiting), queue: Some(queue), ..blank },
        TaskStanding::Parked { .. } => Wait { task: Some(TaskState::Parked), ..blank },
        TaskStanding::Settled => Wait { task: Some(TaskState::Settled), ..blank },
    }
}
