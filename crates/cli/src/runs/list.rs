//! `steadfast runs list`.

use std::io::Write;

use clap::Args;
use steadfast_api::v1::runs::{ListParameters, ListedRun, Runs};
use steadfast_client::Client;

use crate::connection::{Connection, Form};
use crate::table::{Table, one_line};
use crate::usage::note;
use crate::{clock, json};

/// The options of `runs list`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Those of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Those that are so
    #[arg(long, value_parser = ["running", "paused", "completed", "failed", "cancelled"])]
    status: Option<String>,
    /// Those of the tree below this run
    #[arg(long, value_name = "RUN")]
    root: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Rows of one answer; a server gives no more.
const PAGE_ROWS_MAX: usize = 1_000;

/// Failed runs whose error is asked for: a question for each.
const ERRORS_MAX: usize = 100;

/// How much of an error is shown.
const ERROR_CHARS_MAX: usize = 60;

/// Prints the list, as it comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.connection.ask(async |client| {
        let mut left = if arguments.all { usize::MAX } else { arguments.limit as usize };
        let mut wanted = ListParameters {
            workflow: arguments.workflow.clone(),
            status: arguments.status.clone(),
            root: arguments.root.clone(),
            limit: None,
            cursor: None,
        };
        let mut printer = Printer::new(arguments.connection.form())?;
        loop {
            wanted.limit = Some(left.min(PAGE_ROWS_MAX));
            let Runs { items, next_cursor } = client.runs(&wanted).await?;
            left = left.saturating_sub(items.len());
            printer.take(client, &items).await?;
            wanted.cursor = next_cursor;
            if wanted.cursor.is_none() || left == 0 {
                return printer.end(wanted.cursor.as_deref());
            }
        }
    })
}

enum Printer {
    Json(json::List),
    Table { table: Table<6>, errors_left: usize, rows: usize },
}

impl Printer {
    fn new(form: Form) -> anyhow::Result<Self> {
        if form == Form::Json {
            return Ok(Self::Json(json::List::begin(&mut std::io::stdout().lock())?));
        }
        let table = Table::new(["ID", "WORKFLOW", "STATUS", "STARTED", "DURATION", "ERROR"]);
        Ok(Self::Table { table, errors_left: ERRORS_MAX, rows: 0 })
    }

    async fn take(&mut self, client: &Client, runs: &[ListedRun]) -> anyhow::Result<()> {
        match self {
            Self::Json(list) => {
                let mut out = std::io::stdout().lock();
                runs.iter().try_for_each(|run| list.item(&mut out, run))
            }
            Self::Table { table, errors_left, rows } => {
                let mut lines = Vec::with_capacity(runs.len());
                for run in runs {
                    lines.push(row(run, error(client, run, errors_left).await?));
                }
                *rows += lines.len();
                if *rows > 0 {
                    write!(std::io::stdout().lock(), "{}", table.part(&lines))?;
                }
                Ok(())
            }
        }
    }

    fn end(self, next_cursor: Option<&str>) -> anyhow::Result<()> {
        match self {
            Self::Json(list) => list.end(&mut std::io::stdout().lock(), next_cursor),
            Self::Table { rows: 0, .. } => {
                note("there are no such runs");
                Ok(())
            }
            Self::Table { .. } => {
                if next_cursor.is_some() {
                    note("there are more; `--limit COUNT` or `--all` lists them");
                }
                Ok(())
            }
        }
    }
}

fn row(run: &ListedRun, error: String) -> [String; 6] {
    [
        run.id.clone(),
        run.workflow.clone(),
        run.status.clone(),
        clock::to_the_second(&run.started_at),
        clock::took(&run.started_at, run.ended_at.as_deref()),
        error,
    ]
}

/// Why a run failed, in short. A list does not say.
async fn error(client: &Client, run: &ListedRun, left: &mut usize) -> anyhow::Result<String> {
    if run.status != "failed" {
        return Ok(String::new());
    }
    if *left == 0 {
        return Ok("see `runs show`".to_owned());
    }
    *left -= 1;
    let error = client.run(&run.id).await?.error;
    Ok(error
        .map(|error| one_line(&format!("{}: {}", error.failure_type, error.message), ERROR_CHARS_MAX))
        .unwrap_or_default())
}
