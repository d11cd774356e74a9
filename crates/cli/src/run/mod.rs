//! `steadfast run`: a workflow file, here and now, on an embedded store.
//!
//! Owns the course of the command: read, apply, start, follow, tell. What was asked for is in [`asked`], what it takes in [`means`], where the store is
//! in [`place`], what is watched meanwhile in [`follow`], what is told at the end in [`outcome`]. Whatever happens in between is the engine's. Start reading
//! at [`run`].

mod asked;
mod follow;
pub(crate) mod interruption;
mod means;
pub(crate) mod outcome;
mod place;
mod waits;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use steadfast::Engine;
use steadfast::effects::{self, Commands};
use steadfast::graph::{Graphs, RunError};
use steadfast_core::catalog::{Applied, AppliedStatus};
use steadfast_core::definition::workflow::Reference;
use steadfast_core::definition::{Definition, DefinitionKind};
use steadfast_core::graph::protocol::{RunStatus, Started};
use steadfast_core::graph::view::RunView;
use steadfast_core::schema::Violation;

use crate::definitions::Files;
use crate::progress::Signalling;
use crate::screen::{self, Screen};
use crate::usage::{WrongUsage, note};
use asked::Asked;
use follow::{Follower, Watch};
use interruption::Interruption;
use outcome::Over;
use place::Place;
use waits::{Telling, Waits};

/// The options of `run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of definitions, a folder of them, or `-` for stdin
    file: PathBuf,
    /// The workflow to run [default: the only one, or the only one that no other runs]
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// What the workflow is given, as JSON; `@FILE` reads it from there, `@-` from stdin [default: {}]
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    input: Option<String>,
    /// A signal for the run, sent at its start; may be repeated
    #[arg(long = "signal", value_name = "NAME=JSON")]
    signals: Vec<String>,
    /// A store to use and to keep [default: a temporary one, removed at the end]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The run's id. The same id on the same store goes on where it was [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Print the run with its tokens as JSON, however it ends, instead of its output
    #[arg(long)]
    json: bool,
    /// Print the run's events as JSON lines while they happen, instead of its output; with --json, the run is the last line
    #[arg(long)]
    events: bool,
    /// Let tasks run programs on this machine
    #[arg(long)]
    allow_command: bool,
    /// Make every decision an event
    #[arg(long)]
    trace: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast run examples/graphs/hello.yaml --input '{\"name\": \"Ada\"}'
  steadfast run examples/graphs/approval.yaml --signal 'approval={\"ok\": true}'
  steadfast run examples/graphs/big-fan-out.yaml --input '{\"count\": 10000}' --json
  steadfast run flow.yaml --store flow.db --id first   goes on where it was when it is killed and run again

The output goes to stdout. Progress, problems and errors go to stderr, progress only when that is a terminal.
Exit codes: 0 completed; 1 failed, cancelled, or the definitions have errors; 2 wrong usage, which includes an input that does not fit;
129, 130 and 143 interrupted by SIGHUP, Ctrl-C and SIGTERM.";

/// How long tasks have to end when the command does. What is not done by then is done again after the next start.
const GRACE: Duration = Duration::from_millis(500);

/// How the command ends.
enum End {
    /// The run is over, now or since an earlier time.
    Over(Box<Over>),
    /// The definitions do not fit the store; told already.
    Problems,
    /// By a signal to the process.
    Interrupted { code: u8 },
}

/// Runs a workflow.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    asked::check_stdin(arguments)?;
    let mut files = Files::read(std::slice::from_ref(&arguments.file))?;
    let place = Place::at(arguments.store.as_deref())?;
    // What a store that exists already knows is looked up there, later.
    if place.is_new() {
        files.check_references(&|_, _| false);
    }
    if files.counts().errors > 0 {
        files.tell(&mut std::io::stderr().lock())?;
        return Ok(ExitCode::FAILURE);
    }
    let asked = Asked::new(arguments, &files)?;
    means::check(arguments, &files, &asked.run.workflow)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(session(arguments, files, asked, &place));
    // Whatever a task left on it is not waited for.
    runtime.shutdown_background();
    ended
}

/// Opens the store, and closes it whatever happens in between.
async fn session(arguments: &Arguments, files: Files, asked: Asked, place: &Place) -> anyhow::Result<ExitCode> {
    let mut interruption = Interruption::listen()?;
    let commands = if arguments.allow_command { Commands::Allowed } else { Commands::Refused };
    let settings = effects::Settings { commands, ..effects::Settings::default() };
    let engine = Engine::open(place.file())?.effects(settings).graphs().start()?;
    let mut id = None;
    let end = tokio::select! {
        end = course(arguments, files, asked, &engine, &mut id) => end,
        code = interruption.next() => Ok(End::Interrupted { code }),
    };
    let told = match end {
        Ok(End::Over(over)) => outcome::tell(arguments, &Graphs::of(&engine), &over).map(|()| ExitCode::SUCCESS),
        Ok(End::Problems) => Ok(ExitCode::FAILURE),
        Ok(End::Interrupted { code }) => {
            interruption::tell(arguments, place, id.as_deref());
            Ok(ExitCode::from(code))
        }
        Err(error) => Err(error),
    };
    tokio::select! {
        () = engine.stop(GRACE) => {}
        // Asked twice: the store is as after a crash, which is no harm to it.
        _ = interruption.next() => {}
    }
    told
}

/// From definitions to the end of the run. The run's id is put into `begun` as soon as there is one.
async fn course(
    arguments: &Arguments,
    mut files: Files,
    asked: Asked,
    engine: &Engine,
    begun: &mut Option<String>,
) -> anyhow::Result<End> {
    let began = Instant::now();
    let graphs = Graphs::of(engine);
    if !is_usable(&mut files, &graphs)? {
        return Ok(End::Problems);
    }
    let waits = files.definitions().any(|parsed| match &parsed.definition {
        Definition::Workflow(workflow) => asked::waits_for_signals(workflow),
        Definition::Task(_) => false,
    });
    let Asked { run, signals } = asked;
    let applied = graphs.apply(&files.into_definitions()).await?;
    let (id, started) = graphs.start(run).await.map_err(told_as_usage)?;
    *begun = Some(id.clone());
    let view = graphs.run(&id)?.ok_or(RunError::NotFound { run: id.clone() })?;
    if started == Started::Existing {
        tell_kept_versions(&view, &applied);
    }
    let was_over = view.status.is_over();
    if view.status == RunStatus::Paused {
        graphs.resume(&id).await?;
    }
    for signal in signals {
        graphs.signal(&id, &signal.name, signal.payload, Some(&signal.id)).await?;
    }
    let is_terminal = std::io::stderr().is_terminal() && screen::is_capable();
    let shows_progress = is_terminal && !arguments.json && !arguments.events && !was_over;
    let watch = Watch {
        lines: arguments.events,
        screen: shows_progress.then(|| Screen::new(&view.workflow, Signalling::Option)),
        waits: waits.then(|| Waits::new(&id, if shows_progress { Telling::Below } else { Telling::All })),
    };
    let (run, outcome) = Follower::new(engine, view, watch).until_the_end().await?;
    let followed = (!was_over).then(|| began.elapsed());
    Ok(End::Over(Box::new(Over { run, outcome, followed })))
}

/// Tells the problems of the definitions, if there are any. Whether they can be applied.
fn is_usable(files: &mut Files, graphs: &Graphs) -> anyhow::Result<bool> {
    files.check_references(&|kind, reference| is_stored(graphs, kind, reference));
    let counts = files.counts();
    if counts.errors + counts.warnings > 0 {
        files.tell(&mut std::io::stderr().lock())?;
    }
    Ok(counts.errors == 0)
}

/// Whether a store has what a definition names.
pub(crate) fn is_stored(graphs: &Graphs, kind: DefinitionKind, reference: &Reference) -> bool {
    match graphs.newest(kind, &reference.name) {
        Ok(Some(newest)) => reference.version.is_none_or(|version| (1..=newest).contains(&version)),
        Ok(None) | Err(_) => false,
    }
}

/// A run that exists keeps what it began with, also when the file has changed since.
fn tell_kept_versions(run: &RunView, applied: &[Applied]) {
    let is_other = |applied: &&Applied| {
        let is_its_workflow = applied.kind == DefinitionKind::Workflow && *applied.name == *run.workflow;
        applied.status == AppliedStatus::Created || (is_its_workflow && applied.version != run.version)
    };
    let changed: Vec<String> = applied.iter().filter(is_other).map(|applied| format!("`{}`", applied.name)).collect();
    if !changed.is_empty() {
        let changed = changed.join(", ");
        note(&format!("{changed} changed since run `{}` began; the run keeps the versions it began with", run.id));
    }
}

/// Which errors of a run another command line mends.
fn told_as_usage(error: RunError) -> anyhow::Error {
    match error {
        RunError::InvalidInput { workflow, violations } => {
            let shown = |Violation { pointer, message }: &Violation| match &**pointer {
                "" => format!("\n  {message}"),
                pointer => format!("\n  at `{pointer}`: {message}"),
            };
            let violations: String = violations.iter().map(shown).collect();
            WrongUsage(format!("the input does not fit the workflow `{workflow}`:{violations}")).into()
        }
        error @ (RunError::UnknownWorkflow { .. }
        | RunError::UnknownReference { .. }
        | RunError::Conflict { .. }
        | RunError::InvalidId { .. }) => WrongUsage(error.to_string()).into(),
        error @ (RunError::NotFound { .. }
        | RunError::NotOver { .. }
        | RunError::NotATop { .. }
        | RunError::Request(_)
        | RunError::Store(_)
        | RunError::Unreadable { .. }) => error.into(),
    }
}
