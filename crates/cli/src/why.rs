//! `steadfast why`: what a run of a server waits for, down the chain.
//!
//! Owns how it is drawn, and what a person can do about each wait. What is said comes from the server. Start reading at [`run`].

use std::io::Write;

use clap::Args;
use steadfast_api::v1::why::{TaskState, Wait, WaitKind, Why};

use crate::connection::{Connection, Form};
use crate::json;
use crate::table::one_line;

/// The options of `why`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Example:
  steadfast why order-42

Branches are counted from 0, as `runs show` does. Of many, the first five are named. A run that is over says how it ended.";

/// How long a line may be: what is lacking, and what to do about it, is worth more than a short one.
const LINE_CHARS_MAX: usize = 500;

/// Prints what the run waits for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { run, connection } = arguments;
    let why = connection.ask(async |client| Ok(client.why(run).await?))?;
    let mut out = std::io::stdout().lock();
    match connection.form() {
        Form::Json => json::print(&mut out, &why),
        Form::Text => Ok(write!(out, "{}", drawn(&why))?),
    }
}

fn drawn(why: &Why) -> String {
    let mut text = format!("{}\n", one_line(&why.says, LINE_CHARS_MAX));
    if why.status == "paused" {
        text.push_str(&format!("go on: steadfast runs resume {}\n", why.id));
    }
    draw(&why.waits, why.left_out, &why.id, "", &mut text);
    text
}

/// Draws what the run `run` waits for, behind `indent`.
fn draw(waits: &[Wait], left_out: u64, run: &str, indent: &str, text: &mut String) {
    for (number, wait) in waits.iter().enumerate() {
        let is_last = number + 1 == waits.len() && left_out == 0;
        let (own, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.push_str(&format!("{indent}{own}{}\n", one_line(&wait.says, LINE_CHARS_MAX)));
        let below = format!("{indent}{below}");
        if let Some(remedy) = remedy(wait, run) {
            text.push_str(&format!("{below}{remedy}\n"));
        }
        let is_unopened = wait.kind == WaitKind::Run && wait.waits.is_empty();
        let left_out = if is_unopened { 0 } else { wait.left_out };
        draw(&wait.waits, left_out, wait.run.as_deref().unwrap_or(run), &below, text);
    }
    if left_out > 0 {
        text.push_str(&format!("{indent}└─ … and {left_out} more\n"));
    }
}

/// What a person can do about it.
fn remedy(wait: &Wait, run: &str) -> Option<String> {
    match (wait.kind, wait.task) {
        (WaitKind::Signal, _) => Some(format!("send it: steadfast signal {run} {} JSON", wait.signal.as_ref()?)),
        (WaitKind::Task, Some(TaskState::Waiting)) => {
            Some(format!("start a worker that asks for queue `{}`", wait.queue.as_ref()?))
        }
        (WaitKind::Run, _) if wait.left_out > 0 && wait.waits.is_empty() => {
            Some(format!("go on there: steadfast why {}", wait.run.as_ref()?))
        }
        (WaitKind::Group | WaitKind::Turn | WaitKind::Task | WaitKind::Sleep | WaitKind::Retry | WaitKind::Run, _) => {
            None
        }
    }
}
