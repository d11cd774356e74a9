//! `steadfast backup`: a copy of a store, also while a server runs on it.
//!
//! Owns the course of the command and what it shows. The copying is in [`steadfast_store`].

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use steadfast_store::sqlite::{BackupError, GoOn, Progress, back_up};

use crate::run::interruption::Interruption;
use crate::serve;
use crate::usage::WrongUsage;

/// The options of `backup`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The copy, which must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The store to copy
    #[arg(long, value_name = "sqlite:FILE|FILE")]
    store: String,
    /// Say what was done as a line of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast backup monday.db --store steadfast.db
  steadfast serve --store monday.db             a copy is a store: use it, or put it in the place of one that is lost

The copy is of one moment, whole and on disk when the command ends with 0. A server may run on the store meanwhile.";

/// How often the terminal is told how far it is.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Copies a store.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(copy(arguments))
}

async fn copy(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut interruption = Interruption::listen()?;
    let is_called_off = Arc::new(AtomicBool::new(false));
    let (store, file) = (serve::store(&arguments.store)?, arguments.file.clone());
    let mut copying = tokio::task::spawn_blocking({
        let (is_called_off, mut shown) = (is_called_off.clone(), Shown::default());
        move || {
            let watch = |progress: Progress| {
                shown.draw(progress);
                if is_called_off.load(Ordering::Relaxed) { GoOn::No } else { GoOn::Yes }
            };
            let copied = back_up(&store, &file, watch);
            shown.clear();
            copied
        }
    });
    let (copied, code) = tokio::select! {
        copied = &mut copying => (copied?, ExitCode::FAILURE),
        code = interruption.next() => {
            is_called_off.store(true, Ordering::Relaxed);
            (copying.await?, ExitCode::from(code))
        }
    };
    match copied {
        Ok(()) => tell(arguments).map(|()| ExitCode::SUCCESS),
        Err(BackupError::CalledOff) => {
            eprintln!("interrupted; nothing is left of the copy");
            Ok(code)
        }
        Err(error @ (BackupError::Exists { .. } | BackupError::NoStore { .. })) => {
            Err(WrongUsage(error.to_string()).into())
        }
        Err(BackupError::Store(error)) => Err(error.into()),
        Err(error @ (BackupError::NotWritable { .. } | BackupError::Failed(_))) => Err(error.into()),
    }
}

fn tell(arguments: &Arguments) -> anyhow::Result<()> {
    let bytes = std::fs::metadata(&arguments.file)?.len();
    let (file, store) = (arguments.file.display(), &arguments.store);
    let mut out = std::io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{}", json!({ "file": file.to_string(), "store": store, "bytes": bytes }))?,
        false => writeln!(out, "`{store}` is copied to `{file}`, {bytes} bytes")?,
    }
    Ok(out.flush()?)
}

/// A line on a terminal that says how far it is.
#[derive(Default)]
struct Shown {
    drawn_at: Option<Instant>,
}

impl Shown {
    fn draw(&mut self, progress: Progress) {
        let is_due = self.drawn_at.is_none_or(|at| at.elapsed() >= DRAW_EVERY);
        if is_due && std::io::stderr().is_terminal() {
            self.drawn_at = Some(Instant::now());
            let Progress { done, all } = progress;
            eprint!("\r{done} of {all} pages, {} %", done * 100 / all.max(1));
        }
    }

    fn clear(&self) {
        if self.drawn_at.is_some() {
            eprint!("\r\u{1b}[K");
        }
    }
}
