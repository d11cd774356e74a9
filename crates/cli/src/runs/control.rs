//! `steadfast runs cancel`, `pause` and `resume`.

use std::io::Write;

use clap::Args;
use steadfast_client::Control;

use super::word;
use crate::connection::{Connection, Form, each};
use crate::json;

/// The options of `pause` and `resume`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The runs
    #[arg(required = true, value_name = "RUN")]
    pub(super) runs: Vec<String>,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// The options of `cancel`.
#[derive(Args)]
pub(crate) struct CancelArguments {
    #[command(flatten)]
    arguments: Arguments,
    /// Why, kept with the run
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Ends runs.
pub(crate) fn cancel(arguments: &CancelArguments) -> anyhow::Result<()> {
    tell(&arguments.arguments, Control::Cancel, arguments.reason.as_ref())
}

/// Pauses runs, or lets them go on.
pub(crate) fn run(arguments: &Arguments, control: Control) -> anyhow::Result<()> {
    tell(arguments, control, None)
}

/// Says for each run how it is then: one that was over stays as it was.
fn tell(arguments: &Arguments, control: Control, reason: Option<&String>) -> anyhow::Result<()> {
    let Arguments { runs, connection } = arguments;
    connection.ask(async |client| {
        each(runs, async |run| {
            let told = client.control(run, control, reason.cloned()).await?;
            let mut out = std::io::stdout().lock();
            if connection.form() == Form::Json {
                return json::print_line(&mut out, &told);
            }
            writeln!(out, "{}  {}", told.id, word(told.status))?;
            Ok(())
        })
        .await
    })
}
