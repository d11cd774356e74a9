//! `steadfast start`: a run on a server, and if wanted its end.
//!
//! Owns the course of the command: start, wait or follow, tell. The run goes on whatever becomes of this process. Start reading at [`run`].

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use steadfast_api::v1::runs::{Failure, Run, RunStatus, StartRun};
use steadfast_client::{Client, Reading};
use steadfast_core::duration;
use tokio::time::{Instant, MissedTickBehavior};

use crate::connection::{Connection, Form};
use crate::definitions::counted;
use crate::progress::Signalling;
use crate::run::interruption::Interruption;
use crate::run::outcome::{node_in, told_failure};
use crate::runs::event_line;
use crate::screen::{self, Mark, Screen};
use crate::usage::{WrongUsage, note};
use crate::{clock, json, value};

/// The options of `start`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The workflow: `NAME`, or `NAME@3` for a certain version
    #[arg(value_name = "NAME")]
    workflow: String,
    /// What the workflow is given, as JSON; `@FILE` reads it from there, `@-` from stdin [default: {}]
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    input: Option<String>,
    /// The run's id. Starting the same again starts nothing [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Wait for the end of the run, but no longer than DURATION, and print its output
    #[arg(long, value_name = "DURATION", num_args = 0..=1)]
    wait: Option<Option<String>>,
    /// Print the run's events while they happen, until its end
    #[arg(long)]
    follow: bool,
    /// Make every decision an event
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast start greet --input '{\"names\": [\"Ada\"]}'            prints the id of the run
  steadfast start greet --input @names.json --wait               prints the output
  steadfast start greet --id order-42 --wait 30s
  steadfast start greet --follow --json                          events as JSON lines, the run as the last one

Exit codes: 0 started, or with --wait and --follow completed; 1 failed, cancelled, or not over in time; 2 wrong usage, which includes an
input that does not fit; 129, 130 and 143 interrupted by SIGHUP, Ctrl-C and SIGTERM: the run goes on.";

/// The longest that a server waits with an answer. Longer waits are made of several.
const WAIT_AT_ONCE_MAX: Duration = Duration::from_secs(60);

/// How long a server that was there may be away, and how often it is looked for meanwhile.
const AWAY_MAX: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How often progress is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// What is waited for.
#[derive(Clone, Copy)]
enum Until {
    Begun,
    Over { within: Option<Duration> },
}

/// How the command ends.
enum End {
    Begun { run: Box<Run>, is_new: bool },
    Over(Box<Run>),
    OutOfTime(Box<Run>),
    Interrupted { code: u8 },
}

/// Starts a run.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = value::given("input", "--input", arguments.input.as_deref().unwrap_or("{}"))?;
    let until = until(arguments)?;
    let id = arguments.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let start = StartRun { input: Some(value::raw(&input)?), id: Some(id.clone()), wait: None, trace: arguments.trace };
    let end = arguments.connection.ask(async |client| {
        let mut interruption = Interruption::listen()?;
        tokio::select! {
            end = course(arguments, client, start, until) => end,
            code = interruption.next() => Ok(End::Interrupted { code }),
        }
    })?;
    tell(arguments, &id, end)
}

fn until(arguments: &Arguments) -> Result<Until, WrongUsage> {
    match &arguments.wait {
        None if arguments.follow => Ok(Until::Over { within: None }),
        None => Ok(Until::Begun),
        Some(None) => Ok(Until::Over { within: None }),
        Some(Some(text)) => {
            let ms = duration::parse_ms(text).map_err(|error| WrongUsage(format!("--wait: {error}")))?;
            Ok(Until::Over { within: Some(Duration::from_millis(ms)) })
        }
    }
}

async fn course(arguments: &Arguments, client: &Client, start: StartRun, until: Until) -> anyhow::Result<End> {
    let within = match until {
        Until::Over { within } => within,
        Until::Begun => {
            let started = client.start(&arguments.workflow, &start, Duration::ZERO).await?;
            return Ok(End::Begun { run: Box::new(started.run), is_new: started.is_new });
        }
    };
    let deadline = within.map(|within| Instant::now() + within);
    let is_terminal = std::io::stderr().is_terminal() && screen::is_capable();
    let shows_progress = is_terminal && arguments.connection.form() == Form::Text;
    if arguments.follow || shows_progress {
        let run = client.start(&arguments.workflow, &start, Duration::ZERO).await?.run;
        followed(arguments, client, run, deadline).await
    } else {
        waited(client, &arguments.workflow, start, deadline).await
    }
}

/// Waits without looking: the server answers when the run is over. The same start again starts nothing, and waits on; also on a server that was away for a
/// while and started again.
async fn waited(
    client: &Client,
    workflow: &str,
    mut start: StartRun,
    deadline: Option<Instant>,
) -> anyhow::Result<End> {
    let mut run = client.start(workflow, &start, Duration::ZERO).await?.run;
    let mut away_since = None;
    loop {
        if is_over(run.status) {
            return Ok(End::Over(Box::new(run)));
        }
        let left = deadline.map_or(WAIT_AT_ONCE_MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(End::OutOfTime(Box::new(run)));
        }
        let wait = left.min(WAIT_AT_ONCE_MAX);
        start.wait = Some(duration::format_ms(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
        match client.start(workflow, &start, wait).await {
            Ok(started) => (run, away_since) = (started.run, None),
            Err(error) if error.may_pass() => {
                if away_since.get_or_insert_with(Instant::now).elapsed() > AWAY_MAX {
                    return Err(error.into());
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads the events until the end, and prints or draws them.
async fn followed(arguments: &Arguments, client: &Client, run: Run, deadline: Option<Instant>) -> anyhow::Result<End> {
    let signalling = Signalling::Command { run: run.id.clone() };
    let mut screen = (!arguments.follow).then(|| Screen::new(&run.workflow, signalling));
    let mut events = client.follow(&run.id, Reading::Run, None);
    let mut ticks = tokio::time::interval(DRAW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_in_time = true;
    while is_in_time {
        tokio::select! {
            event = events.next() => match (event?, &mut screen) {
                (None, _) => break,
                (Some(event), Some(screen)) => screen.take(&event.event_type, event.data.get()),
                (Some(event), None) => event_line::print(&[event], Reading::Run, arguments.connection.form())?,
            },
            _ = ticks.tick() => if let Some(screen) = &mut screen { screen.draw_if_due() },
            () = passed(deadline) => is_in_time = false,
        }
    }
    drop(screen);
    let run = Box::new(client.run(&run.id).await?);
    Ok(if is_over(run.status) { End::Over(run) } else { End::OutOfTime(run) })
}

/// Waits for a deadline, if there is one.
async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn is_over(status: RunStatus) -> bool {
    match status {
        RunStatus::Running | RunStatus::Paused => false,
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => true,
    }
}

/// Prints what came of it. An error when the run did not complete.
fn tell(arguments: &Arguments, id: &str, end: End) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let is_json = arguments.connection.form() == Form::Json;
    match end {
        End::Begun { run, is_new } => {
            if is_json {
                json::print(&mut out, &run)?;
            } else {
                writeln!(out, "{}", run.id)?;
            }
            if !is_new {
                note(&format!("run `{}` was there already; it is {}", run.id, crate::runs::word(run.status)));
            }
            Ok(ExitCode::SUCCESS)
        }
        End::Over(run) => {
            match (is_json, arguments.follow, &run.output) {
                (true, true, _) => json::print_line(&mut out, &run)?,
                (true, false, _) => json::print(&mut out, &run)?,
                (false, false, Some(output)) => writeln!(out, "{}", json::indented(output.get()))?,
                (false, _, _) => {}
            }
            out.flush()?;
            over(&run)
        }
        End::OutOfTime(run) => {
            if is_json && !arguments.follow {
                json::print(&mut out, &run)?;
            }
            let status = crate::runs::word(run.status);
            Err(anyhow::anyhow!(
                "run `{id}` is still {status}; it goes on, and `steadfast runs show {id}` shows how far it is"
            ))
        }
        End::Interrupted { code } => {
            note(&format!("interrupted; what has begun goes on, and `steadfast runs show {id}` shows how far it is"));
            Ok(ExitCode::from(code))
        }
    }
}

fn over(run: &Run) -> anyhow::Result<ExitCode> {
    let Run { id, workflow, .. } = run;
    let (ended, mark) = match run.status {
        RunStatus::Completed => ("completed in", Mark::Good),
        RunStatus::Failed => ("failed after", Mark::Bad),
        RunStatus::Cancelled => ("was cancelled after", Mark::Bad),
        RunStatus::Running | RunStatus::Paused => ("goes on after", Mark::Bad),
    };
    if std::io::stderr().is_terminal() {
        let took = clock::took(&run.started_at, run.ended_at.as_deref());
        screen::print_summary(
            &format!("{workflow} {ended} {took}, {}, run {id}", counted(run.token_count, "token")),
            mark,
        );
    }
    if mark == Mark::Good {
        return Ok(ExitCode::SUCCESS);
    }
    let more = format!("`steadfast runs show {id}` shows more");
    match (&run.error, &run.reason) {
        (Some(Failure { failure_type, message, details, .. }), _) => {
            let node = details.as_ref().and_then(|details| node_in(details.get()));
            Err(anyhow::anyhow!("{}\n{more}", told_failure(workflow, node.as_deref(), failure_type, message)))
        }
        (None, Some(reason)) => Err(anyhow::anyhow!("`{workflow}` was cancelled: {reason}\n{more}")),
        (None, None) => Err(anyhow::anyhow!("`{workflow}` was cancelled\n{more}")),
    }
}
