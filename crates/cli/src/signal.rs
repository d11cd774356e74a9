//! `steadfast signal`: tells a run of a server what it waits for.

use std::io::Write;

use clap::Args;
use steadfast_api::v1::runs::RunStatus;

use crate::connection::{Connection, Form};
use crate::{json, value};

/// The options of `signal`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The signal
    name: String,
    /// What it brings, as JSON; `@FILE` reads it from there, `@-` from stdin
    #[arg(value_name = "JSON|@FILE", default_value = "null", hide_default_value = true, allow_hyphen_values = true)]
    payload: String,
    /// Sends it once, however often it is asked for with the same key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast signal order-42 approval '{\"ok\": true}'
  steadfast signal order-42 payment @payment.json --idempotency-key payment-7

A signal that comes before the run waits for it is kept. Under an idempotency key it is also sent again when the connection breaks.";

/// Sends the signal.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { run, name, payload, idempotency_key, connection } = arguments;
    let payload = value::raw(&value::given("payload", "the payload", payload)?)?;
    let told =
        connection.ask(async |client| Ok(client.signal(run, name, &payload, idempotency_key.clone()).await?))?;
    let mut out = std::io::stdout().lock();
    if connection.form() == Form::Json {
        return json::print(&mut out, &told);
    }
    let status = match told.status {
        RunStatus::Running => "",
        RunStatus::Paused => ", which is paused",
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => ", which is over now",
    };
    writeln!(out, "sent `{name}` to run `{}`{status}", told.id)?;
    Ok(())
}
