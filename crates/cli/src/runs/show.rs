//! `steadfast runs show`: a run with all that it is made of, as far as people can take it in.
//!
//! Owns what is asked of the server, which is bounded however large the run is, and the facts that are printed. How the rest is drawn is in
//! [`super::tree`]. Start reading at [`run`].

use std::io::Write;

use clap::Args;
use serde::Serialize;
use steadfast_api::v1::Value;
use steadfast_api::v1::runs::{ListedRun, PageParameters, Run, Runs, Token, Tokens};
use steadfast_client::Client;

use super::{tree, word};
use crate::connection::{Connection, Form};
use crate::table::one_line;
use crate::{clock, json};

/// The options of `runs show`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Nodes are in the order in which the run came to them. Many branches and many runs of one kind are counted, and of those the ones that
failed or are under way are shown. With --json: the run with its `tokens` and `children`, and whether some were left out.";

/// Rows of one answer; a server gives no more.
const PAGE_ROWS_MAX: usize = 1_000;

/// Tokens that are read of the run, and of each run below it.
const TOKENS_MAX: usize = 10_000;
const TOKENS_BELOW_MAX: usize = 1_000;

/// Runs below one run that are read, in one answer, to be counted.
const CHILDREN_MAX: usize = 200;

/// Of them those that are opened, and how many altogether.
const OPENED_MAX: usize = 4;
const OPENED_IN_ALL_MAX: usize = 20;

/// How much of a value is shown.
const VALUE_CHARS_MAX: usize = 200;

/// A run, and what it is made of.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) run: Run,
    pub(super) tokens: Vec<Token>,
    /// Whether there are more tokens than these.
    pub(super) tokens_are_all: bool,
    /// The runs below it that are not opened.
    pub(super) children: Vec<ListedRun>,
    pub(super) children_are_all: bool,
    #[serde(skip)]
    pub(super) opened: Vec<Shown>,
}

/// Prints a run.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { run, connection } = arguments;
    let shown = connection.ask(async |client| {
        let mut left = match connection.form() {
            Form::Json => 0,
            Form::Text => OPENED_IN_ALL_MAX,
        };
        read(client, run, TOKENS_MAX, &mut left).await
    })?;
    let mut out = std::io::stdout().lock();
    match connection.form() {
        Form::Json => json::print(&mut out, &shown),
        Form::Text => Ok(write!(out, "{}\n{}", facts(&shown.run), tree::drawn(&shown))?),
    }
}

async fn read(client: &Client, id: &str, tokens_max: usize, left: &mut usize) -> anyhow::Result<Shown> {
    let run = client.run(id).await?;
    let (tokens, tokens_are_all) = tokens(client, id, tokens_max).await?;
    let page = PageParameters { limit: Some(CHILDREN_MAX), cursor: None };
    let Runs { items: mut children, next_cursor } = client.children(id, &page).await?;
    children.reverse();
    let mut opened = Vec::new();
    for place in worth_opening(&children, OPENED_MAX.min(*left)) {
        *left = left.saturating_sub(1);
        opened.push((place, Box::pin(read(client, &children[place].id, TOKENS_BELOW_MAX, left)).await?));
    }
    let is_opened = |place: usize| opened.iter().any(|(opened, _)| *opened == place);
    let closed = children.iter().enumerate().filter(|(place, _)| !is_opened(*place)).map(|(_, child)| child.clone());
    Ok(Shown {
        run,
        tokens,
        tokens_are_all,
        children: closed.collect(),
        children_are_all: next_cursor.is_none(),
        opened: opened.into_iter().map(|(_, shown)| shown).collect(),
    })
}

/// Which runs are looked into, in their order: first those that failed, then those under way, then others.
fn worth_opening(children: &[ListedRun], max: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..children.len()).collect();
    places.sort_by_key(|place| match &*children[*place].status {
        "failed" => 0,
        "running" | "paused" => 1,
        _ => 2,
    });
    places.truncate(max);
    places.sort_unstable();
    places
}

async fn tokens(client: &Client, id: &str, max: usize) -> anyhow::Result<(Vec<Token>, bool)> {
    let mut found = Vec::new();
    let mut page = PageParameters { limit: Some(PAGE_ROWS_MAX), cursor: None };
    loop {
        let Tokens { items, next_cursor } = client.tokens(id, &page).await?;
        found.extend(items);
        if next_cursor.is_none() || found.len() >= max {
            return Ok((found, next_cursor.is_none()));
        }
        page.cursor = next_cursor;
    }
}

/// What there is to say of a run, a line for each.
fn facts(run: &Run) -> String {
    let value = |value: &Value| one_line(value.get(), VALUE_CHARS_MAX);
    let took = clock::took(&run.started_at, run.ended_at.as_deref());
    let error = run.error.as_ref().map(|error| format!("{}: {}", error.failure_type, error.message));
    let facts = [
        ("run", Some(run.id.clone())),
        ("workflow", Some(format!("{}, version {}", run.workflow, run.version))),
        ("status", Some(word(run.status).to_owned())),
        ("reason", run.reason.clone()),
        ("error", error),
        ("started", Some(run.started_at.clone())),
        ("ended", run.ended_at.clone()),
        ("duration", Some(took)),
        ("parent", run.parent.clone()),
        ("root", Some(run.root.clone()).filter(|root| *root != run.id)),
        ("input", Some(value(&run.input))),
        ("output", run.output.as_ref().map(value)),
    ];
    let line = |(name, fact): (&str, Option<String>)| {
        fact.map(|fact| format!("{name:<8}  {}\n", one_line(&fact, FACT_CHARS_MAX)))
    };
    facts.into_iter().filter_map(line).collect()
}

/// How long a fact may be: an error says what to do, which is worth more than a short line.
const FACT_CHARS_MAX: usize = 500;
