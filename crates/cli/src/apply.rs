//! `steadfast apply`: stores definitions on a server.
//!
//! Owns the course of the command: read, check here, where the places in the files are known, then send all at once. Start reading at [`run`].

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use steadfast_api::problem;
use steadfast_api::v1::definitions::{Applied, AppliedDefinition, AppliedStatus};
use steadfast_client::{Applying, Client, Error};
use steadfast_core::definition::DefinitionKind;
use steadfast_core::definition::workflow::Reference;
use steadfast_core::limits;

use crate::connection::{Connection, Form};
use crate::definitions::Files;
use crate::usage::WrongUsage;
use crate::{json, validate};

/// The options of `apply`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of definitions; of a folder, the `*.yaml`, `*.yml` and `*.json` directly in it; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast apply flow.yaml
  steadfast apply workflows/ --dry-run
  generate-flow | steadfast apply -

All definitions are applied, or none. One that is as it was keeps its version; one that has changed gets a new one, and runs that have begun
keep theirs. What a file names may be in another file, or on the server.
Exit codes: 0 applied, 1 errors, 2 wrong usage.";

/// Between two documents of a body.
const BETWEEN: &str = "\n---\n";

/// Applies the files.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut files = Files::read(&arguments.files)?;
    if files.counts().errors > 0 {
        // What they name may be on the server, which is not asked about files that are wrong.
        files.check_references(&|_, _| true);
        return tell_problems(arguments, &files).map(|()| ExitCode::FAILURE);
    }
    arguments.connection.ask(async |client| {
        let stored = stored(client, &files).await?;
        files.check_references(&|kind, Reference { name, version }| {
            let newest = stored.get(&(kind, name.to_string()));
            newest.is_some_and(|newest| version.is_none_or(|version| (1..=*newest).contains(&version)))
        });
        let counts = files.counts();
        if counts.errors > 0 {
            return tell_problems(arguments, &files).map(|()| ExitCode::FAILURE);
        }
        if counts.warnings > 0 && arguments.connection.form() == Form::Text {
            files.tell(&mut std::io::stderr().lock())?;
        }
        let applying = if arguments.dry_run { Applying::DryRun } else { Applying::Now };
        let applied = client.apply(body(&files)?, applying).await?;
        tell(arguments, &applied).map(|()| ExitCode::SUCCESS)
    })
}

/// The newest versions of what the files name and do not hold.
async fn stored(client: &Client, files: &Files) -> Result<BTreeMap<(DefinitionKind, String), u32>, Error> {
    let mut newest = BTreeMap::new();
    for (kind, Reference { name, version }) in files.definitions().flat_map(|parsed| parsed.definition.references()) {
        let is_here = files.definitions().any(|parsed| parsed.kind == kind && *parsed.name == *name);
        let key = (kind, name.to_string());
        if is_here && version.is_none() || newest.contains_key(&key) {
            continue;
        }
        match client.definition(kind.name(), &name).await {
            Ok(definition) => {
                newest.insert(key, definition.version);
            }
            Err(Error::Refused(refused)) if refused.problem_type == problem::DEFINITION_NOT_FOUND.problem_type => {}
            Err(error) => return Err(error),
        }
    }
    Ok(newest)
}

/// All definitions, as documents of one body.
fn body(files: &Files) -> anyhow::Result<String> {
    let mut documents = Vec::new();
    for parsed in files.definitions() {
        documents.push(parsed.document.to_json()?.as_str().to_owned());
    }
    let body = documents.join(BETWEEN);
    if body.len() > limits::DEFINITION_BYTES_MAX {
        let (found, max) = (body.len(), limits::DEFINITION_BYTES_MAX);
        let message = format!(
            "together the definitions have {found} bytes, the limit for one command is {max}; apply them in parts"
        );
        return Err(WrongUsage(message).into());
    }
    Ok(body)
}

fn tell_problems(arguments: &Arguments, files: &Files) -> anyhow::Result<()> {
    match arguments.connection.form() {
        Form::Json => validate::print_document(files, &mut std::io::stdout().lock()),
        Form::Text => Ok(files.tell(&mut std::io::stderr().lock())?),
    }
}

fn tell(arguments: &Arguments, applied: &Applied) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if arguments.connection.form() == Form::Json {
        return json::print(&mut out, applied);
    }
    for AppliedDefinition { kind, name, version, status } in &applied.items {
        let word = match (status, arguments.dry_run) {
            (AppliedStatus::Created, false) => "created",
            (AppliedStatus::Created, true) => "to be created",
            (AppliedStatus::Unchanged, _) => "unchanged",
        };
        writeln!(out, "{kind} {name}, version {version}: {word}")?;
    }
    Ok(())
}
