//! `steadfast dev`: a server for the definitions of a folder, which are applied whenever they change.
//!
//! Owns the course of the command, and what it prints. The serving is that of [`crate::serve`], the watching is in [`watch`]. Start reading
//! at [`run`].

mod watch;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use steadfast::effects::Commands;
use steadfast::graph::Graphs;
use steadfast_core::catalog::{Applied, AppliedStatus};
use steadfast_core::definition::DefinitionKind;

use crate::connection::DEFAULT_URL;
use crate::definitions::Files;
use crate::run::is_stored;
use crate::serve::{Service, serve};
use crate::usage::WrongUsage;
use watch::Folder;

/// The options of `dev`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder with the definitions: the `*.yaml`, `*.yml` and `*.json` directly in it
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Where to listen: a loopback address; port 0 lets the system choose one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
    /// The store [default: DIR/.steadfast/dev.db]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Let tasks run programs on this machine
    #[arg(long)]
    allow_command: bool,
    /// Print lines of JSON, for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast dev
  steadfast dev workflows --listen 127.0.0.1:7500

Files with errors are left out until they are mended; everything else is applied. Ctrl-C ends it, and what is not done goes on with the next start.";

/// Serves a folder until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.folder.is_dir() {
        let folder = arguments.folder.display();
        return Err(WrongUsage(format!("there is no folder `{folder}`; give the one where the definitions are")).into());
    }
    let store = match &arguments.store {
        Some(store) => store.clone(),
        None => made_store(&arguments.folder)?,
    };
    let commands = if arguments.allow_command { Commands::Allowed } else { Commands::Refused };
    let service = Service::here(store.clone(), arguments.listen, commands);
    serve(service, async |address, engine| {
        let mut course = Course { arguments, graphs: Graphs::of(engine), shown: Shown::Nothing };
        let mut folder = Folder::new(&arguments.folder);
        course.apply().await?;
        course.tell_place(address, &store)?;
        loop {
            folder.changed().await;
            course.apply().await?;
        }
    })
}

/// A folder of ours beside the definitions, which version control leaves alone.
fn made_store(folder: &Path) -> anyhow::Result<PathBuf> {
    let ours = folder.join(".steadfast");
    let make = || {
        fs::create_dir_all(&ours)?;
        let ignore = ours.join(".gitignore");
        if ignore.exists() { Ok(()) } else { fs::write(ignore, "*\n") }
    };
    let made: io::Result<()> = make();
    made.with_context(|| format!("`{}` cannot be made; choose a store with `--store FILE`", ours.display()))?;
    Ok(ours.join("dev.db"))
}

/// What was printed of the definitions.
#[derive(PartialEq, Eq)]
enum Shown {
    Nothing,
    All,
}

struct Course<'a> {
    arguments: &'a Arguments,
    graphs: Graphs,
    shown: Shown,
}

impl Course<'_> {
    /// Reads the folder, and applies what is right of it.
    async fn apply(&mut self) -> anyhow::Result<()> {
        let mut files = match Files::read(std::slice::from_ref(&self.arguments.folder)) {
            Ok(files) => files,
            Err(error) => return self.tell_failure(&error),
        };
        files.check_references(&|kind, reference| is_stored(&self.graphs, kind, reference));
        self.tell_problems(&files)?;
        let applied = match self.graphs.apply(&files.into_good_definitions()).await {
            Ok(applied) => applied,
            Err(error) => return self.tell_failure(&error.into()),
        };
        let is_first = std::mem::replace(&mut self.shown, Shown::All) == Shown::Nothing;
        let news = applied.iter().filter(|applied| is_first || applied.status == AppliedStatus::Created);
        self.tell_applied(&news.collect::<Vec<_>>())
    }
}

impl Course<'_> {
    /// What a change of the folder may mend.
    fn tell_failure(&self, error: &anyhow::Error) -> anyhow::Result<()> {
        match self.arguments.json {
            true => say(&json!({ "error": error.to_string() }).to_string()),
            false => say(&format!("{error}; waiting for a change")),
        }
    }

    fn tell_problems(&self, files: &Files) -> anyhow::Result<()> {
        if self.arguments.json {
            let problems: Vec<_> = files.problems().collect();
            return say(&json!({ "problems": problems }).to_string());
        }
        let mut text = Vec::new();
        files.tell(&mut text)?;
        say(String::from_utf8_lossy(&text).trim_end())
    }

    fn tell_applied(&self, applied: &[&Applied]) -> anyhow::Result<()> {
        if self.arguments.json {
            let applied: Vec<_> = applied.iter().map(|applied| json!(applied)).collect();
            return say(&json!({ "applied": applied }).to_string());
        }
        for Applied { kind, name, version, .. } in applied {
            say(&format!("applied {} {name}, version {version}", kind.name()))?;
        }
        Ok(())
    }

    /// Where to go from here.
    fn tell_place(&self, address: SocketAddr, store: &Path) -> anyhow::Result<()> {
        let (url, store) = (format!("http://{address}"), store.display());
        if self.arguments.json {
            return say(&json!({ "listening": url, "store": store.to_string() }).to_string());
        }
        let workflows = self.graphs.definitions(Some(DefinitionKind::Workflow), None, 1)?;
        let name = workflows.first().map_or("NAME", |first| &*first.name);
        let option = if url == DEFAULT_URL { String::new() } else { format!(" --url {url}") };
        say(&format!(
            "listening on {url}, store `{store}`; changes in `{}` are applied",
            self.arguments.folder.display()
        ))?;
        say(&format!("try: steadfast start {name} --wait{option}"))
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
