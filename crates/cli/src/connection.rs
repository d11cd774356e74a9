//! The server that a command talks to: where it is, with which key, and what is said when it does not do what was asked.
//!
//! Owns the options that all those commands share, and the exit code and the advice for each thing that goes wrong. Start reading at
//! [`Connection::ask`].

use std::fs;
use std::path::PathBuf;

use clap::Args;
use steadfast_api::problem::{self, Problem};
use steadfast_client::{Client, Error, Key};

use crate::usage::{WrongUsage, note};

/// Where a server listens if nobody says otherwise.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7400";

const URL_VARIABLE: &str = "STEADFAST_URL";
const KEY_VARIABLE: &str = "STEADFAST_KEY";

/// The options of every command that talks to a server.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Connection {
    /// The server [default: STEADFAST_URL, or http://127.0.0.1:7400]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file with the key, for a server that wants one [default: what STEADFAST_KEY holds]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// How a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Whether a key was given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyGiven {
    Yes,
    No,
}

impl Connection {
    /// Does something with a client, and tells what goes wrong in words for people at a command line.
    pub(crate) fn ask<T>(&self, course: impl AsyncFnOnce(&Client) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let key = self.key()?;
        let given = if key.is_some() { KeyGiven::Yes } else { KeyGiven::No };
        let url = self.url.clone().or_else(|| variable(URL_VARIABLE)).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let client = Client::new(&url, key).map_err(|error| WrongUsage(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let done = runtime.block_on(course(&client));
        // What stdin or a lookup of a name still holds is not waited for.
        runtime.shutdown_background();
        done.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => told(error, given),
            Err(other) => other,
        })
    }

    /// How the command prints.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Never on the command line: everybody on a machine can read those.
    fn key(&self) -> Result<Option<Key>, WrongUsage> {
        let (text, place) = match &self.key_file {
            Some(file) => {
                let shown = file.display();
                let text = fs::read_to_string(file)
                    .map_err(|error| WrongUsage(format!("the file of the key `{shown}` cannot be read: {error}")))?;
                (text, format!("the file of the key `{shown}`"))
            }
            None => match variable(KEY_VARIABLE) {
                Some(text) => (text, KEY_VARIABLE.to_owned()),
                None => return Ok(None),
            },
        };
        Key::new(&text).map(Some).map_err(|error| WrongUsage(format!("{place} does not hold a key: {error}")))
    }
}

/// Does something with each of several things, also after one was refused. What was refused is told; the last of it as the error.
pub(crate) async fn each(ids: &[String], mut one: impl AsyncFnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut last = None;
    for id in ids {
        let Err(error) = one(id).await else { continue };
        // Without a server it is the same for all.
        if !matches!(error.downcast_ref::<Error>(), Some(Error::Refused(_) | Error::InvalidName(_))) {
            return Err(error);
        }
        if let Some(before) = last.replace(error).and_then(|error| error.downcast::<Error>().ok()) {
            note(&told(before, KeyGiven::No).to_string());
        }
    }
    last.map_or(Ok(()), Err)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn told(error: Error, key: KeyGiven) -> anyhow::Error {
    match error {
        Error::Refused(problem) => refused(*problem, key),
        Error::InvalidName(_) => WrongUsage(error.to_string()).into(),
        Error::Unreachable { .. }
        | Error::Lost { .. }
        | Error::Foreign { .. }
        | Error::TooLarge { .. }
        | Error::Unwritable(_) => error.into(),
    }
}

/// Problems that another command line mends.
const USAGE: [problem::Kind; 13] = [
    problem::INVALID_BODY,
    problem::INVALID_PARAMETER,
    problem::INVALID_ID,
    problem::UNAUTHORIZED,
    problem::FORBIDDEN,
    problem::RUN_NOT_FOUND,
    problem::WORKFLOW_NOT_FOUND,
    problem::DEFINITION_NOT_FOUND,
    problem::DEAD_LETTER_NOT_FOUND,
    problem::RUN_EXISTS,
    problem::TOO_LARGE,
    problem::INVALID_INPUT,
    problem::MISSING_DEFINITION,
];

/// How to do here what a server advises its clients to do.
const COMMANDS: [(&str, &str); 3] = [
    ("`GET /v1/runs`", "`steadfast runs list`"),
    ("`PUT /v1/definitions`", "`steadfast apply FILE`"),
    ("send the header `Authorization: Bearer KEY`", "put it into STEADFAST_KEY, or into a file named by `--key-file`"),
];

fn refused(mut problem: Problem, key: KeyGiven) -> anyhow::Error {
    let is = |kind: &problem::Kind| problem.problem_type == kind.problem_type;
    let (is_usage, is_about_key) = (USAGE.iter().any(is), is(&problem::UNAUTHORIZED) || is(&problem::FORBIDDEN));
    for (call, command) in COMMANDS {
        problem.detail = problem.detail.replace(call, command);
    }
    if is_about_key && key == KeyGiven::Yes {
        problem.detail.push_str("; another key can be given in STEADFAST_KEY or with `--key-file`");
    }
    let told = Error::Refused(Box::new(problem)).to_string();
    if is_usage { WrongUsage(told).into() } else { anyhow::anyhow!(told) }
}
