//! `steadfast bench`: what this machine does, beside what it could do at most.
//!
//! Owns the options and the order of the suite. Each benchmark has a file: [`turns`], [`nest`], [`http`], [`sleepers`], [`runs`], [`recover`]. Around
//! them: [`limit`] is the raw speed they are compared with, [`place`] where files go, [`child`] work in other processes, [`machine`]
//! the facts and [`report`] the printing. Durability is never weaker than the default. Start reading at [`Name`].

pub(crate) mod child;
mod fanout;
mod graph;
mod graphs;
mod http;
mod limit;
mod machine;
mod nest;
pub(crate) mod place;
mod raw_http;
mod recover;
mod report;
mod runs;
mod sleepers;
mod statistics;
mod turns;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use steadfast::{Engine, Health};

use machine::Machine;
use place::Place;
use report::{Form, Report};

/// The options of `bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    name: Name,
    /// Print one JSON line per measurement instead of a table
    #[arg(long, global = true)]
    json: bool,
    /// Where files go: a folder, or a store file to use and to keep [default: a folder here, removed at the end]
    #[arg(long, global = true, value_name = "FOLDER_OR_FILE")]
    store: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Name {
    /// Durable one-row turns a second, beside raw SQLite
    Turns(turns::Options),
    /// A chain of actors, each of which calls the next and waits for its answer
    Nest(nest::Options),
    /// One run with many branches, joined
    Fanout(fanout::Options),
    /// Whole runs of five tasks in a line, a second
    Graph(graph::Options),
    /// Runs started over HTTP, a second, beside requests that do nothing
    Http(http::Options),
    /// Start-up and memory with many sleeping actors
    Sleepers(sleepers::Options),
    /// Looking, starting and restarting with many finished runs, beside few
    Runs(runs::Options),
    /// Tasks in flight when the process is killed: how soon they are done, and whether any is lost
    Recover(recover::Options),
    /// All of them, one after the other
    All(Suite),
}

#[derive(Args)]
struct Suite {
    /// In half a minute, with smaller numbers
    #[arg(long)]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast bench all --short
  steadfast bench turns --concurrency 1,64,1024 --seconds 5
  steadfast bench nest --depth 1000 --depth 100000 --json
  steadfast bench nest --depth 1000000 --store chain.db   goes on where it was when it is killed and run again
  steadfast bench http --connections 1,64,256
  steadfast bench sleepers --count 1000000
  steadfast bench runs --count 1000000
  steadfast bench recover --count 1000

Every figure is compared with a limit measured in the same run on the same disk; ratio = figure ÷ limit.";

/// Runs the benchmarks that were asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let place = match &arguments.name {
        // Each benchmark of a suite needs a store of its own, or it would measure what the others left.
        Name::All(_) => Place::in_folder(arguments.store.as_deref())?,
        Name::Turns(_)
        | Name::Nest(_)
        | Name::Fanout(_)
        | Name::Graph(_)
        | Name::Http(_)
        | Name::Sleepers(_)
        | Name::Runs(_)
        | Name::Recover(_) => Place::at(arguments.store.as_deref())?,
    };
    let form = if arguments.json { Form::JsonLines } else { Form::Tables };
    let report = Report::new(form, Machine::look(&place)?);
    report.begin(&place)?;
    match &arguments.name {
        Name::Turns(options) => turns::run(options, &place, &report),
        Name::Nest(options) => nest::run(options, &place, &report),
        Name::Fanout(options) => fanout::run(options, &place, &report),
        Name::Graph(options) => graph::run(options, &place, &report),
        Name::Http(options) => http::run(options, &place, &report),
        Name::Sleepers(options) => sleepers::run(options, &place, &report),
        Name::Runs(options) => runs::run(options, &place, &report),
        Name::Recover(options) => recover::run(options, &place, &report),
        Name::All(Suite { short }) => {
            let size = if *short { Size::Short } else { Size::Full };
            turns::run(&turns::Options::of(size), &place, &report)?;
            nest::run(&nest::Options::of(size), &place, &report)?;
            nest::run(&nest::Options::of_workflows(), &place, &report)?;
            fanout::run(&fanout::Options::of(size), &place, &report)?;
            graph::run(&graph::Options::of(size), &place, &report)?;
            http::run(&http::Options::of(size), &place, &report)?;
            sleepers::run(&sleepers::Options::of(size), &place, &report)?;
            runs::run(&runs::Options::of(size), &place, &report)?;
            recover::run(&recover::Options::of(size), &place, &report)
        }
    }
}

/// How much of the suite.
#[derive(Clone, Copy)]
enum Size {
    /// As each benchmark runs by default.
    Full,
    /// Half a minute in all.
    Short,
}

/// How long an engine has to end when a measurement is over. Nothing is under way then.
const GRACE: Duration = Duration::from_secs(1);

/// A runtime for clients that cost little: one thread, so that the engine keeps the other cores, and no sockets, so that an answer
/// wakes it without a system call each.
fn client_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

/// Looks at the store's health so often, and gives up after so many looks at a store that is not well.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const UNWELL_LOOKS_MAX: u32 = 6;

/// Waits for `work`, unless the store stops taking writes: the engine would wait until somebody frees some space, but here is
/// nobody who would.
async fn unless_unwell<T>(engine: &Engine, work: impl Future<Output = T>) -> anyhow::Result<T> {
    let gives_up = async {
        let mut unwell_looks = 0;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match engine.health() {
                Health::Well => unwell_looks = 0,
                Health::Unwell(reason) if unwell_looks == UNWELL_LOOKS_MAX => return reason,
                Health::Unwell(_) => unwell_looks += 1,
            }
        }
    };
    tokio::select! {
        done = work => Ok(done),
        reason = gives_up => Err(anyhow::anyhow!("{reason}")),
    }
}
