//! `steadfast simulate`: a user's own workflow under random crashes, delays and repeats.
//!
//! Owns what may be typed, how the file and the input are taken, and the report. What happens in a simulation is in
//! [`steadfast_sim::graphs`]. Start reading at [`run`].

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use steadfast_core::definition::{self, Definition, DefinitionKind, Parsed, Severity};
use steadfast_core::expression::Value;
use steadfast_core::json::Json;
use steadfast_sim::graphs::{Book, Subject, simulate_workflow};
use steadfast_sim::plan::Plan;

use crate::usage::WrongUsage;
use report::Report;

/// What is to be simulated.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file with the workflow and all that it names
    pub(crate) file: PathBuf,
    /// How many random histories to try
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) first: u64,
    /// Which workflow of the file; the one that no other names when this is not given
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// What the run is given: JSON, or @ and a file with it
    #[arg(long, value_name = "JSON|@FILE", default_value = "{}")]
    pub(crate) input: String,
    /// What a signal brings; an empty object when nothing is said
    #[arg(long = "signal", value_name = "NAME=JSON")]
    pub(crate) signals: Vec<String>,
    /// One line of JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Mocks give what they say. What would be done outside (http, command, function) is stood in for: its result is made up from the task's
`output` schema, or plain without one, and some fail their first attempt. Signals come at random moments.

Examples:
  steadfast simulate flow.yaml --seeds 1000
  steadfast simulate flow.yaml --workflow research --input '{\"topic\":\"rust\"}' --signal approval='{\"ok\":true}'
  steadfast simulate flow.yaml --seeds 1 --first 4711     replays a seed exactly

Exit codes: 0 every promise was kept, 1 one was broken or the file has errors, 2 wrong usage.";

/// Simulates every seed, and prints what came of it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let subject = subject(arguments)?;
    let mut report = Report::new(&subject.workflow, arguments.first);
    for seed in arguments.first..arguments.first.saturating_add(arguments.seeds) {
        match simulate_workflow(&subject, seed, Plan::of_workflow(seed)) {
            Ok(ended) => report.add(seed, &ended),
            Err(violation) => {
                let replay = report::replay(arguments, seed);
                if arguments.json {
                    report.print_json(Some((seed, &violation, &replay)))?;
                    bail!("seed {seed} breaks a promise");
                }
                report.print(None)?;
                bail!("seed {seed} breaks a promise: {violation}replay it with: {replay}");
            }
        }
    }
    if arguments.json { report.print_json(None) } else { report.print(Some("every promise was kept")) }
}

fn subject(arguments: &Arguments) -> anyhow::Result<Subject> {
    let definitions = read(&arguments.file)?;
    let workflow = chosen(&definitions, arguments)?;
    let input = input(&arguments.input)?;
    let signals = signals(&arguments.signals)?;
    let book = Arc::new(Book::of(definitions));
    if let Some(Definition::Workflow(definition)) =
        book.find(DefinitionKind::Workflow, &workflow).map(|definition| &**definition)
        && let Some(schema) = &definition.input
        && let Err(violations) = schema.check(&Value::from_json(&input)?)
    {
        let explained = steadfast_core::graph::planning::completion::explained(&violations);
        return Err(
            WrongUsage(format!("the input of the workflow `{workflow}` {explained}; give one with --input")).into()
        );
    }
    Ok(Subject { book, workflow: workflow.into(), input, signals })
}

/// Reads the file and prints every problem in it. An error when one of them must be mended.
fn read(file: &Path) -> anyhow::Result<Vec<Parsed>> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| WrongUsage(format!("cannot read `{shown}`: {error}")))?;
    let mut read = definition::read(&shown, &text);
    definition::check_references(std::slice::from_mut(&mut read), &|_, _| false);
    for problem in &read.problems {
        eprintln!("{problem}");
    }
    match read.problems.iter().filter(|problem| problem.severity == Severity::Error).count() {
        0 => Ok(read.definitions),
        1 => bail!("`{shown}` has an error"),
        count => bail!("`{shown}` has {count} errors"),
    }
}

/// The workflow that is meant: the one that is named, or the one that no other starts.
fn chosen(definitions: &[Parsed], arguments: &Arguments) -> anyhow::Result<String> {
    let workflows = || definitions.iter().filter(|parsed| parsed.kind == DefinitionKind::Workflow);
    let names = || workflows().map(|parsed| format!("`{}`", parsed.name)).collect::<Vec<_>>().join(", ");
    let shown = arguments.file.display();
    if let Some(name) = &arguments.workflow {
        return match workflows().any(|parsed| parsed.name == *name) {
            true => Ok(name.clone()),
            false => {
                Err(WrongUsage(format!("there is no workflow `{name}` in `{shown}`; there is {}", names())).into())
            }
        };
    }
    let is_started_by = |name: &str, other: &Parsed| {
        let references = other.definition.references();
        other.name != name && references.iter().any(|(kind, by)| *kind == DefinitionKind::Workflow && &*by.name == name)
    };
    let is_first = |parsed: &&Parsed| !workflows().any(|other| is_started_by(&parsed.name, other));
    let first: Vec<&Parsed> = workflows().filter(is_first).collect();
    match first[..] {
        [only] => Ok(only.name.clone()),
        _ if workflows().next().is_none() => Err(WrongUsage(format!("there is no workflow in `{shown}`")).into()),
        _ => {
            Err(WrongUsage(format!("`{shown}` has several workflows; choose one with --workflow: {}", names())).into())
        }
    }
}

fn input(text: &str) -> anyhow::Result<Json> {
    let text = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| WrongUsage(format!("cannot read the input `{file}`: {error}")))?,
    };
    json(&text).context("--input").map_err(|error| WrongUsage(format!("{error:#}")).into())
}

fn signals(given: &[String]) -> anyhow::Result<BTreeMap<String, Json>> {
    let mut signals = BTreeMap::new();
    for signal in given {
        let Some((name, payload)) = signal.split_once('=') else {
            return Err(WrongUsage(format!("`{signal}` is not a signal: expected NAME=JSON")).into());
        };
        let payload = json(payload).context(format!("--signal {name}"));
        signals.insert(name.to_owned(), payload.map_err(|error| WrongUsage(format!("{error:#}")))?);
    }
    Ok(signals)
}

/// A value in the form in which it is compared: numbers and fields as every other part of the system writes them.
fn json(text: &str) -> anyhow::Result<Json> {
    let value: serde_json::Value = serde_json::from_str(text).context("is not JSON")?;
    Ok(Json::encode(&value)?)
}
