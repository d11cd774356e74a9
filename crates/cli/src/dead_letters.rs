//! `steadfast dead-letters`: inputs that a server has given up, looked at, tried again, thrown away.

use std::io::Write;

use clap::{Args, Subcommand};
use steadfast_api::v1::dead_letters::{DeadLetter, DeadLetters, ListParameters};
use steadfast_client::Client;

use crate::connection::{Connection, Form, each};
use crate::table::{Table, one_line};
use crate::usage::note;
use crate::{clock, json};

/// The options of `dead-letters`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List dead letters
    List(ListArguments),
    /// Show a dead letter with its input
    Show(ShowArguments),
    /// Give the inputs to their actors once more
    Redrive(SomeArguments),
    /// Throw dead letters away
    Delete(SomeArguments),
}

/// The options of `dead-letters list`.
#[derive(Args)]
struct ListArguments {
    /// Those of this run, or of this actor as KIND:NAME
    #[arg(long, value_name = "RUN|ACTOR")]
    source: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The options of `dead-letters show`.
#[derive(Args)]
struct ShowArguments {
    /// The dead letter
    id: String,
    #[command(flatten)]
    connection: Connection,
}

/// The options of `dead-letters redrive` and `delete`.
#[derive(Args)]
struct SomeArguments {
    /// The dead letters
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast dead-letters list
  steadfast dead-letters redrive 16-3-42
  steadfast dead-letters delete 16-3-42 16-3-43";

/// Rows of one answer. Each has an input, which may be large.
const PAGE_ROWS_MAX: usize = 50;

/// How much of an error is shown in a list.
const ERROR_CHARS_MAX: usize = 80;

/// Does what was asked.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::List(arguments) => list(arguments),
        Command::Show(arguments) => show(arguments),
        Command::Redrive(arguments) => {
            some(arguments, "redriven", async |client, id| Ok(client.redrive_dead_letter(id).await?))
        }
        Command::Delete(arguments) => {
            some(arguments, "deleted", async |client, id| Ok(client.delete_dead_letter(id).await?))
        }
    }
}

fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let left = if arguments.all { usize::MAX } else { arguments.limit as usize };
    arguments.connection.ask(async |client| match arguments.connection.form() {
        Form::Json => {
            let mut list = json::List::begin(&mut std::io::stdout().lock())?;
            let print = |letters: &[DeadLetter]| {
                letters.iter().try_for_each(|letter| list.item(&mut std::io::stdout().lock(), letter))
            };
            let next_cursor = pages(client, arguments.source.as_deref(), left, print).await?;
            list.end(&mut std::io::stdout().lock(), next_cursor.as_deref())
        }
        Form::Text => {
            let mut table = Table::new(["ID", "ACTOR", "ATTEMPTS", "AT", "ERROR"]);
            let mut count = 0;
            let print = |letters: &[DeadLetter]| {
                count += letters.len();
                let rows: Vec<[String; 5]> = letters.iter().map(row).collect();
                if count > 0 {
                    write!(std::io::stdout().lock(), "{}", table.part(&rows))?;
                }
                Ok(())
            };
            let next_cursor = pages(client, arguments.source.as_deref(), left, print).await?;
            match (count, next_cursor) {
                (0, _) => note("there are no dead letters"),
                (_, Some(_)) => note("there are more; `--limit COUNT` or `--all` lists them"),
                (_, None) => {}
            }
            Ok(())
        }
    })
}

/// Reads at most `left` letters, a page at a time, and gives each page to `take`. Where the next page would begin, if there is one.
async fn pages(
    client: &Client,
    source: Option<&str>,
    mut left: usize,
    mut take: impl FnMut(&[DeadLetter]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let mut cursor = None;
    loop {
        let limit = Some(left.min(PAGE_ROWS_MAX));
        let wanted = ListParameters { source: source.map(str::to_owned), limit, cursor };
        let DeadLetters { items, next_cursor } = client.dead_letters(&wanted).await?;
        take(&items)?;
        left = left.saturating_sub(items.len());
        if next_cursor.is_none() || left == 0 {
            return Ok(next_cursor);
        }
        cursor = next_cursor;
    }
}

fn row(letter: &DeadLetter) -> [String; 5] {
    [
        letter.id.clone(),
        letter.actor.clone(),
        letter.attempts.to_string(),
        clock::to_the_second(&letter.at),
        one_line(&letter.error, ERROR_CHARS_MAX),
    ]
}

fn show(arguments: &ShowArguments) -> anyhow::Result<()> {
    let ShowArguments { id, connection } = arguments;
    let letter = connection.ask(async |client| Ok(client.dead_letter(id).await?))?;
    let mut out = std::io::stdout().lock();
    if connection.form() == Form::Json {
        return json::print(&mut out, &letter);
    }
    let DeadLetter { id, actor, input, unreadable, error, attempts, at } = letter;
    writeln!(out, "id        {id}\nactor     {actor}\nattempts  {attempts}\nat        {at}\nerror     {error}")?;
    match (input, unreadable) {
        (Some(input), _) => writeln!(out, "input     {}", json::indented(input.get()).replace('\n', "\n          "))?,
        (None, Some(reason)) => writeln!(out, "input     cannot be read: {reason}")?,
        (None, None) => {}
    }
    Ok(())
}

fn some(
    arguments: &SomeArguments,
    done: &str,
    mut one: impl AsyncFnMut(&Client, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let SomeArguments { ids, connection } = arguments;
    connection.ask(async |client| {
        each(ids, async |id| {
            one(client, id).await?;
            let mut out = std::io::stdout().lock();
            match connection.form() {
                Form::Json => json::print_line(&mut out, &serde_json::json!({ "id": id, "status": done })),
                Form::Text => Ok(writeln!(out, "{id}  {done}")?),
            }
        })
        .await
    })
}
