//! `steadfast runs events`: a history, in full or as it happens.

use clap::Args;
use steadfast_api::v1::events::{Events, RunEventsParameters};
use steadfast_client::Reading;

use super::event_line;
use crate::connection::Connection;

/// The options of `runs events`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Go on with what is added, until the end of the run
    #[arg(long)]
    follow: bool,
    /// Those of all runs of the tree that the run is part of
    #[arg(long)]
    tree: bool,
    /// Those after this place, as the first column has it
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast runs events order-42 --follow
  steadfast runs events order-42 --tree --json
  steadfast runs events order-42 --after 120

With --json each event is a line. --follow goes on where it was when the connection breaks.";

/// Events of one answer; a server gives no more.
const PAGE_ROWS_MAX: usize = 1_000;

/// Prints the events.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { run, follow, tree, after, connection } = arguments;
    let reading = if *tree { Reading::Tree } else { Reading::Run };
    connection.ask(async |client| {
        if *follow {
            let mut events = client.follow(run, reading, after.clone());
            while let Some(event) = events.next().await? {
                event_line::print(&[event], reading, connection.form())?;
            }
            return Ok(());
        }
        let mut wanted = RunEventsParameters { after: after.clone(), limit: Some(PAGE_ROWS_MAX), tree: *tree };
        loop {
            let Events { items, next_cursor } = client.events(run, &wanted).await?;
            event_line::print(&items, reading, connection.form())?;
            match next_cursor {
                Some(next) => wanted.after = Some(next),
                None => return Ok(()),
            }
        }
    })
}
