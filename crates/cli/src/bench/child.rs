//! Parts of a benchmark in processes of their own: to measure a start, a peak of memory, or a death.
//!
//! Owns both ends of the pipe between them. The binary runs itself with a hidden command; the child says one JSON line, its report or why
//! there is none. A child ends with its parent, however that ends. Never measures: see [`Job`] for who does.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::machine::us_since_1970;
use super::{fanout, http, nest, recover, runs, sleepers};
use crate::usage::{WrongUsage, is_wrong_usage};

/// What a child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Runs a chain.
    Nest { store: PathBuf, of: nest::Levels, depth: u64 },
    /// Runs a fan-out.
    FanOut { store: PathBuf, width: u64 },
    /// Serves HTTP, and says where.
    ServeHttp { store: PathBuf },
    /// Makes sleepers.
    MakeSleepers { store: PathBuf, count: u64 },
    /// Makes runs that end.
    FillRuns { store: PathBuf, count: u64 },
    /// Looks at them.
    LookAtRuns { store: PathBuf, count: u64 },
    /// Starts on whatever is in the store, and serves one request.
    ServeFirst { store: PathBuf },
    /// Starts tasks that never end, and says when all run.
    HangErrands(recover::Errands),
    /// Ends them all.
    FinishErrands(recover::Errands),
}

/// A job with the moment at which its process was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    job: Job,
    spawned_at_us: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Report(serde_json::Value),
    Failed { message: String, is_wrong_usage: bool },
}

/// A process at work. Dropping it kills it.
pub(crate) struct Child {
    process: std::process::Child,
    said: BufReader<ChildStdout>,
}

impl Order {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Child {
    pub(crate) fn start(job: Job) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program cannot be started a second time")?;
        let order = serde_json::to_string(&Order { job, spawned_at_us: us_since_1970() })?;
        let mut process = Command::new(program)
            .args(["bench-child", &order])
            // Held open and never written to: its end tells the child that we are gone.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("this program cannot be started a second time")?;
        let said = process.stdout.take().context("a child process has no output")?;
        Ok(Self { process, said: BufReader::new(said) })
    }

    /// Waits for what it has to say.
    pub(crate) fn report<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        if line.is_empty() {
            bail!("a child process ended without a report ({})", self.process.wait()?);
        }
        match serde_json::from_str(&line)? {
            Said::Report(report) => Ok(serde_json::from_value(report)?),
            Said::Failed { message, is_wrong_usage: true } => Err(WrongUsage(message).into()),
            Said::Failed { message, is_wrong_usage: false } => bail!(message),
        }
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) -> std::io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    fn wait(mut self) -> std::io::Result<()> {
        self.process.wait().map(drop)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already, which is what we want.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Does a job in a process of its own and waits for its report and its end.
pub(crate) fn ask<T: DeserializeOwned>(job: Job) -> anyhow::Result<T> {
    let mut child = Child::start(job)?;
    let report = child.report()?;
    child.wait()?;
    Ok(report)
}

/// The child's side.
pub(crate) fn work(order: &Order) -> anyhow::Result<()> {
    std::thread::Builder::new().name("parent".to_owned()).spawn(end_with_parent)?;
    let Order { job, spawned_at_us } = order;
    let reported = match job {
        Job::Nest { store, of, depth } => nest::measure(store, *of, *depth).and_then(|measured| say(&measured)),
        Job::FanOut { store, width } => fanout::measure(store, *width).and_then(|measured| say(&measured)),
        Job::ServeHttp { store } => http::serve(store.clone(), |address| say(&address)),
        Job::MakeSleepers { store, count } => sleepers::make(store, *count).and_then(|made| say(&made)),
        Job::FillRuns { store, count } => runs::fill(store, *count).and_then(|filled| say(&filled)),
        Job::LookAtRuns { store, count } => runs::look(store, *count, *spawned_at_us).and_then(|looked| say(&looked)),
        Job::ServeFirst { store } => sleepers::serve_first(store, *spawned_at_us).and_then(|served| say(&served)),
        Job::HangErrands(errands) => recover::hang(errands, || say(&())),
        Job::FinishErrands(errands) => recover::finish(errands, *spawned_at_us).and_then(|finished| say(&finished)),
    };
    // The parent says it to the user.
    reported.or_else(|error| {
        let (message, is_wrong_usage) = (format!("{error:#}"), is_wrong_usage(&error));
        print(&Said::Failed { message, is_wrong_usage })
    })
}

fn say(report: &impl Serialize) -> anyhow::Result<()> {
    print(&Said::Report(serde_json::to_value(report)?))
}

fn print(said: &Said) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string(said)?)?;
    Ok(())
}

fn end_with_parent() {
    // Nothing is ever sent; that it ends is the message.
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
    std::process::exit(1);
}
