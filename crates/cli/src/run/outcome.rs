//! What a run came to, told at its end: the output, or the run as JSON, or why it failed.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;
use steadfast::graph::Graphs;
use steadfast_core::failure::Failure;
use steadfast_core::graph::protocol::Outcome;
use steadfast_core::graph::token::Status;
use steadfast_core::graph::view::{RunView, TokenView};

use super::Arguments;
use crate::definitions::counted;
use crate::json;
use crate::screen::{self, Mark};

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    run: &'a RunView,
    tokens: &'a [TokenView],
}

/// A run that is over.
pub(super) struct Over {
    pub(super) run: RunView,
    pub(super) outcome: Outcome,
    /// How long this command has followed it. None for one that was over before.
    pub(super) followed: Option<Duration>,
}

/// Prints the result, and a summary for whoever sits at a terminal. An error when the run did not complete.
pub(super) fn tell(arguments: &Arguments, graphs: &Graphs, over: &Over) -> anyhow::Result<()> {
    let Over { run, outcome, .. } = over;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let tokens = graphs.tokens(&run.id)?;
        let document = serde_json::to_string(&Shown { run, tokens: &tokens })?;
        // Among lines of events it is one more line.
        let shown = if arguments.events { document } else { json::indented(&document) };
        writeln!(out, "{shown}")?;
    } else if let Outcome::Completed(output) = outcome
        && !arguments.events
    {
        writeln!(out, "{}", json::indented(output.as_str()))?;
    }
    out.flush()?;
    if std::io::stderr().is_terminal() {
        let mark = if matches!(outcome, Outcome::Completed(_)) { Mark::Good } else { Mark::Bad };
        screen::print_summary(&summary(over), mark);
    }
    match outcome {
        Outcome::Completed(_) => Ok(()),
        Outcome::Failed(failure) => Err(anyhow::anyhow!(failed(graphs, run, failure))),
        Outcome::Cancelled { reason: None } => Err(anyhow::anyhow!("`{}` was cancelled", run.workflow)),
        Outcome::Cancelled { reason: Some(reason) } => {
            Err(anyhow::anyhow!("`{}` was cancelled: {reason}", run.workflow))
        }
    }
}

fn summary(Over { run, outcome, followed }: &Over) -> String {
    let (ended, after) = match outcome {
        Outcome::Completed(_) => ("completed", "in"),
        Outcome::Failed(_) => ("failed", "after"),
        Outcome::Cancelled { .. } => ("was cancelled", "after"),
    };
    let tokens = counted(run.token_count, "token");
    match followed {
        Some(elapsed) => format!("{} {ended} {after} {}, {tokens}", run.workflow, screen::time(*elapsed)),
        None => format!("{} {ended} before, {tokens}", run.workflow),
    }
}

fn failed(graphs: &Graphs, run: &RunView, failure: &Failure) -> String {
    let node = node_of(graphs, run, failure);
    told_failure(&run.workflow, node.as_deref(), failure.kind.name(), &failure.message)
}

/// What is said of a run that has failed.
pub(crate) fn told_failure(workflow: &str, node: Option<&str>, kind: &str, message: &str) -> String {
    let at = node.map(|node| format!(" at node `{node}`")).unwrap_or_default();
    format!("`{workflow}` failed{at} ({kind}): {message}")
}

/// The node that the details of a failure name.
pub(crate) fn node_in(details: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Details {
        node: Option<String>,
    }
    serde_json::from_str::<Details>(details).ok()?.node
}

/// Where it failed: as the failure says, or where the token is that failed last. A failure without details is the run's own, and names its place.
fn node_of(graphs: &Graphs, run: &RunView, failure: &Failure) -> Option<String> {
    let details = failure.details.as_ref()?;
    if let Some(node) = node_in(details.as_str()) {
        return Some(node);
    }
    let tokens = graphs.tokens(&run.id).ok()?;
    let failed = tokens.into_iter().filter(|token| matches!(token.status, Status::Failed | Status::TimedOut));
    failed.max_by(|a, b| a.updated_at.cmp(&b.updated_at)).map(|token| token.node.to_string())
}
