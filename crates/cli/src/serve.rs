//! `steadfast serve`: the HTTP API on a store, until a signal ends it.
//!
//! Owns the course of the command: listen, open, serve, stop. What is served is in [`steadfast_server`]. Start reading at [`run`].

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use steadfast::Engine;
use steadfast::core::duration::{InvalidDuration, parse_ms};
use steadfast::effects::{self, Commands};
use steadfast::graph::Graphs;
use steadfast_server::{Access, BindError, Keys, Server};

use crate::run::interruption::Interruption;
use crate::usage::WrongUsage;

/// The options of `serve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The store: a file, which is made if there is none
    #[arg(long, value_name = "sqlite:FILE|FILE")]
    store: String,
    /// Where to listen; port 0 lets the system choose one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
    /// A file of keys, with a line `role sha256hex [name]` for each
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    api_key_file: Option<PathBuf>,
    /// Let everybody in who reaches the address
    #[arg(long)]
    insecure: bool,
    /// Let tasks run programs on this machine
    #[arg(long)]
    allow_command: bool,
    /// Remove runs so long after their end, with their trees, as in `30d`; without it all are kept
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retention: Option<Duration>,
    /// Say where it listens as a line of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast serve --store steadfast.db
  steadfast serve --store sqlite:/var/lib/steadfast/store.db --listen 0.0.0.0:7400 --api-key-file keys
  printf %s \"$KEY\" | sha256sum                  the hash of a key, for the file of keys

Without keys it listens on loopback addresses only, unless --insecure is given.
Roles: `read` looks; `start` also starts runs and sends signals; `operate` also controls runs and dead letters; `admin` also changes
definitions; `worker` works on tasks only.
SIGTERM and Ctrl-C finish what runs, within a grace time; what is not done by then goes on after the next start. A second one ends at once.";

/// How long tasks have to end when the server does.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let access = access(arguments)?;
    let store = store(&arguments.store)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(session(arguments, access, &store));
    // Whatever a task left on it is not waited for.
    runtime.shutdown_background();
    ended
}

async fn session(arguments: &Arguments, access: Access, store: &Path) -> anyhow::Result<ExitCode> {
    let mut interruption = Interruption::listen()?;
    // First: with a wrong address the store is not touched.
    let server = Server::bind(arguments.listen, access).await.map_err(told_as_usage)?;
    let commands = if arguments.allow_command { Commands::Allowed } else { Commands::Refused };
    let settings = effects::Settings { commands, ..effects::Settings::default() };
    let engine = Engine::open(store)?.effects(settings).graphs().start()?;
    let retaining = arguments.retention.map(|kept| tokio::spawn(retain(engine.clone(), kept)));
    let told = tell(arguments, server.address(), store);
    if told.is_ok() {
        server
            .run(&engine, async {
                let _code = interruption.next().await;
            })
            .await;
    }
    // What it has begun goes on after the next start.
    if let Some(retaining) = retaining {
        retaining.abort();
    }
    let code = tokio::select! {
        () = engine.stop(GRACE) => ExitCode::SUCCESS,
        // Asked twice: the store is as after a crash, which is no harm to it.
        code = interruption.next() => ExitCode::from(code),
    };
    told.map(|()| code).map_err(Into::into)
}

async fn retain(engine: Engine, kept: Duration) {
    Graphs::of(&engine).retain(kept).await;
}

fn duration(text: &str) -> Result<Duration, InvalidDuration> {
    parse_ms(text).map(Duration::from_millis)
}

fn tell(arguments: &Arguments, address: SocketAddr, store: &Path) -> io::Result<()> {
    let (url, store) = (format!("http://{address}"), store.display());
    let mut out = io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{}", json!({ "listening": url, "store": store.to_string() }))?,
        false => writeln!(out, "listening on {url}, store `{store}`")?,
    }
    out.flush()
}

fn access(arguments: &Arguments) -> Result<Access, WrongUsage> {
    let Some(file) = &arguments.api_key_file else {
        return Ok(if arguments.insecure { Access::Insecure } else { Access::Loopback });
    };
    let shown = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| WrongUsage(format!("the file of keys `{shown}` cannot be read: {error}")))?;
    let keys = Keys::parse(&text)
        .map_err(|error| WrongUsage(format!("the file of keys `{shown}` cannot be used: {error}")))?;
    Ok(Access::Keys(keys))
}

pub(crate) fn store(text: &str) -> Result<PathBuf, WrongUsage> {
    match text.split_once(':') {
        Some(("sqlite", path)) => Ok(PathBuf::from(path)),
        Some((scheme, rest)) if rest.starts_with("//") => {
            Err(WrongUsage(format!("there is no store of kind `{scheme}`; give a file, or `sqlite:FILE`")))
        }
        Some(_) | None => Ok(PathBuf::from(text)),
    }
}

fn told_as_usage(error: BindError) -> anyhow::Error {
    match error {
        BindError::Exposed(_) => WrongUsage(error.to_string()).into(),
        BindError::InUse(_) | BindError::Refused { .. } | BindError::Description(_) => error.into(),
    }
}
