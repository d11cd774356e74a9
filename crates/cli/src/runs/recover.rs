//! `steadfast runs recover`.

use std::io::Write;

use clap::Args;
use steadfast_api::v1::recover::{Recover, Recovered};

use super::{control, word};
use crate::connection::{Form, each};
use crate::json;

/// The options of `recover`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecoverArguments {
    #[command(flatten)]
    arguments: control::Arguments,
    /// Workers that were not heard of for so long lose their tasks of these runs [default: 30s]
    #[arg(long, value_name = "DURATION")]
    silent_for: Option<String>,
}

const EXAMPLES: &str = "\
Begins retries that wait for their time, dispatches tasks that are lost, tries parked ones again, and takes back those of workers that are
silent; up to a thousand of each. Runs below are not touched. `steadfast why RUN` and `steadfast doctor` say what is stuck.";

/// Takes runs up again, and says what that was.
pub(crate) fn run(arguments: &RecoverArguments) -> anyhow::Result<()> {
    let RecoverArguments { arguments: control::Arguments { runs, connection }, silent_for } = arguments;
    let recover = Recover { reason: None, silent_for: silent_for.clone() };
    connection.ask(async |client| {
        each(runs, async |run| {
            let recovered = client.recover(run, &recover).await?;
            let mut out = std::io::stdout().lock();
            if connection.form() == Form::Json {
                return json::print_line(&mut out, &recovered);
            }
            let Recovered { id, status, retried, dispatched, unparked, taken_back } = recovered;
            let status = word(status);
            writeln!(
                out,
                "{id}  {status}  retried {retried}, dispatched {dispatched}, unparked {unparked}, taken back {taken_back}"
            )?;
            Ok(())
        })
        .await
    })
}
