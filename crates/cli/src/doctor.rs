//! `steadfast doctor`: is there something that nothing will wake?
//!
//! Owns the going through all pages, of a server or of a store that nobody runs on, and what is said of it. Start reading at [`run`].

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use steadfast::graph::check_runs;
use steadfast_api::v1::doctor::{Checkup, Stuck, StuckThing};
use steadfast_api::v1::runs::PageParameters;
use steadfast_store::Store;
use steadfast_store::sqlite::SqliteStore;

use crate::connection::{Connection, Form};
use crate::definitions::counted;
use crate::json;
use crate::screen;
use crate::usage::WrongUsage;

/// The options of `doctor`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Look into this file instead of asking a server; nobody may run on it meanwhile
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "key_file"])]
    store: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  steadfast doctor
  steadfast doctor --store steadfast.db

Every part of every run that is not over must have something that wakes it next: an alarm, a task, a message, a run below, a signal, or
somebody who resumes it. Exit code 1 when something has none.";

/// Runs that are looked at for one answer.
const PAGE_RUNS: usize = 200;

/// What was found so far.
#[derive(Default, Serialize)]
struct Found {
    runs_checked: u64,
    wakers: BTreeMap<String, u64>,
    stuck: Vec<Stuck>,
}

/// Looks through all runs that are not over.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { store, connection } = arguments;
    let mut found = Found::default();
    match store {
        Some(file) => found.look_into(file)?,
        None => connection.ask(async |client| {
            let mut page = PageParameters { limit: Some(PAGE_RUNS), cursor: None };
            loop {
                let checkup = client.check_runs(&page).await?;
                page.cursor.clone_from(&checkup.next_cursor);
                found.take(checkup);
                if page.cursor.is_none() {
                    return Ok(());
                }
            }
        })?,
    }
    found.clear_progress();
    let mut out = std::io::stdout().lock();
    match connection.form() {
        Form::Json => json::print(&mut out, &found)?,
        Form::Text => write!(out, "{}", found.told())?,
    }
    Ok(if found.stuck.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Found {
    fn look_into(&mut self, file: &Path) -> anyhow::Result<()> {
        // Opening would make one.
        if !file.exists() {
            let shown = file.display();
            return Err(WrongUsage(format!(
                "there is no store `{shown}`; name the file that a server was started with"
            ))
            .into());
        }
        let store = SqliteStore::open(file)?;
        let reader = store.reader().context("the store cannot be read")?;
        let mut from = None;
        loop {
            let checkup = check_runs(&*reader, from, PAGE_RUNS)?;
            from = checkup.next;
            self.take(steadfast_server::checkup(checkup));
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, checkup: Checkup) {
        self.runs_checked += checkup.runs_checked;
        for (waker, count) in checkup.wakers {
            *self.wakers.entry(waker).or_default() += count;
        }
        self.stuck.extend(checkup.items);
        if is_shown() {
            // Nobody to show it to when it cannot be written.
            drop(write!(std::io::stderr(), "\r{} looked at\x1b[K", counted(self.runs_checked, "run")));
        }
    }

    fn clear_progress(&self) {
        if is_shown() {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }

    fn told(&self) -> String {
        let mut text = String::new();
        for Stuck { id, workflow, problems, left_out } in &self.stuck {
            text.push_str(&format!("run `{id}` of `{workflow}` would wait for ever\n"));
            for StuckThing { token, node, missing } in problems {
                let at = match (token, node) {
                    (Some(token), Some(node)) => format!("node `{node}`, token {token}: "),
                    (_, _) => String::new(),
                };
                text.push_str(&format!("  {at}{missing}\n"));
            }
            if *left_out > 0 {
                text.push_str(&format!("  … and {}\n", counted(*left_out, "more thing")));
            }
        }
        let wakers: Vec<String> = self.wakers.iter().map(|(waker, count)| format!("{count} by {waker}")).collect();
        let woken = if wakers.is_empty() { String::new() } else { format!("; woken next: {}", wakers.join(", ")) };
        let runs = counted(self.runs_checked, "run");
        let end = match self.stuck.len() {
            0 => "nothing is stuck".to_owned(),
            stuck => format!("{stuck} stuck"),
        };
        text.push_str(&format!("{runs} not over looked at, {end}{woken}\n"));
        text
    }
}

fn is_shown() -> bool {
    std::io::stderr().is_terminal() && screen::is_capable()
}
