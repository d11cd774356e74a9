//! `steadfast validate`: says everything that is wrong with definitions, without applying them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use steadfast_core::definition::Problem;

use crate::definitions::{Files, Listed};
use crate::json;

/// The options of `validate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of definitions; of a folder, the `*.yaml`, `*.yml` and `*.json` directly in it; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON document: `problems` and `definitions`
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast validate examples/graphs
  steadfast validate flow.yaml tasks.yaml --json
  generate-flow | steadfast validate -

The files are checked together: what one names, another may define.
Exit codes: 0 no errors (warnings are none), 1 errors, 2 a file cannot be read.";

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    problems: Vec<&'a Problem>,
    definitions: Vec<Listed<'a>>,
}

/// Checks the files and tells what is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut files = Files::read(&arguments.files)?;
    files.check_references(&|_, _| false);
    let mut out = std::io::stdout().lock();
    if arguments.json {
        print_document(&files, &mut out)?;
    } else {
        files.tell(&mut out)?;
    }
    Ok(if files.counts().errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes problems and definitions as one document.
pub(crate) fn print_document(files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    json::print(out, &Document { problems: files.problems().collect(), definitions: files.listed() })
}
