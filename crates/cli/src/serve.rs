//! `steadfast serve`: the HTTP API on a store, until a signal ends it.
//!
//! Owns the course of the command: listen, open, serve, stop. What it is told is in [`options`], what is served in [`steadfast_server`]. Start reading at [`run`].

mod options;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use steadfast::Engine;
use steadfast::effects::{self, Commands};
use steadfast::graph::Graphs;
use steadfast::traces::{self, Collector};
use steadfast_server::{Access, BindError, Keys, Limits, Server};
use tokio::task::JoinSet;

use crate::logs;
use crate::run::interruption::Interruption;
use crate::usage::WrongUsage;
use options::{Given, Options};

/// The options of `serve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// A file of these options, as `--print-config` writes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print every option with where it comes from, and do nothing
    #[arg(long)]
    print_config: bool,
    /// Say where it listens as a line of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  steadfast serve --store steadfast.db
  steadfast serve --store sqlite:/var/lib/steadfast/store.db --listen 0.0.0.0:7400 --api-key-file keys
  steadfast serve --config steadfast.yaml --print-config
  printf %s \"$KEY\" | sha256sum                  the hash of a key, for the file of keys

Every option but --config, --print-config and --json may also stand in the file of --config (`api_key_file: keys`) or in the environment (`STEADFAST_API_KEY_FILE`).
Flags win over the environment, that over the file, that over defaults.
Without keys it listens on loopback addresses only, unless --insecure is given.
Roles: `read` looks; `start` also starts runs and sends signals; `operate` also controls runs and dead letters; `admin` also changes
definitions and purges runs; `worker` works on tasks only.
SIGTERM and Ctrl-C finish what runs, within a grace time; what is not done by then goes on after the next start. A second one ends at once.";

/// What is served, and where.
pub(crate) struct Service {
    store: PathBuf,
    listen: SocketAddr,
    access: Access,
    commands: Commands,
    retention: Option<Duration>,
    grace: Duration,
    limits: Limits,
    collector: Option<Collector>,
}

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = Options::gather(&arguments.given, arguments.config.as_ref())?;
    let service = Service::of(&options);
    if arguments.print_config {
        // Also when something is wrong: it helps to see where that comes from.
        write!(io::stdout(), "{options}")?;
        return service.map(|_| ExitCode::SUCCESS).map_err(Into::into);
    }
    let service = service?;
    logs::write(options.log_format()?, options.log()?);
    let store = service.store.clone();
    serve(service, async |address, _| {
        tell(arguments, address, &store)?;
        std::future::pending().await
    })
}

/// Serves until a signal comes, and does `beside` meanwhile, which begins when everything is open. If that ends, so does the server.
pub(crate) fn serve(
    service: Service,
    beside: impl AsyncFnOnce(SocketAddr, &Engine) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(session(service, beside));
    // Whatever a task left on it is not waited for.
    runtime.shutdown_background();
    ended
}

async fn session(
    service: Service,
    beside: impl AsyncFnOnce(SocketAddr, &Engine) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let Service { store, listen, access, commands, retention, grace, limits, collector } = service;
    let mut interruption = Interruption::listen()?;
    // First: with a wrong address the store is not touched.
    let server = Server::bind(listen, access).await.map_err(told_as_usage)?.limits(limits);
    let effects = effects::Settings { commands, ..effects::Settings::default() };
    let engine = Engine::open(&store)?.effects(effects).graphs().start()?;
    let mut beside_requests = JoinSet::new();
    if let Some(kept) = retention {
        beside_requests.spawn(retain(engine.clone(), kept));
    }
    if let Some(collector) = collector {
        beside_requests.spawn(export(engine.clone(), collector));
    }
    let address = server.address();
    tracing::info!(store = %store.display(), %address, "serving");
    let mut ended = Ok(());
    let until_stopped = async {
        tokio::select! {
            _code = interruption.next() => {}
            result = beside(address, &engine) => ended = result,
        }
        tracing::info!(grace_ms = grace.as_millis(), "stopping");
    };
    server.run(&engine, until_stopped).await;
    // What they have begun goes on after the next start.
    beside_requests.shutdown().await;
    let code = tokio::select! {
        () = engine.stop(grace) => ExitCode::SUCCESS,
        // Asked twice: the store is as after a crash, which is no harm to it.
        code = interruption.next() => ExitCode::from(code),
    };
    tracing::info!("stopped");
    ended.map(|()| code)
}

impl Service {
    /// A store for programs on this machine, with everything else as it is when nothing is said.
    pub(crate) fn here(store: PathBuf, listen: SocketAddr, commands: Commands) -> Self {
        let limits = Limits::default();
        let grace = limits.stop_grace;
        let access = Access::Loopback;
        Self { store, listen, access, commands, retention: None, grace, limits, collector: None }
    }

    fn of(options: &Options) -> Result<Self, WrongUsage> {
        let commands = if options.is_on("allow_command")? { Commands::Allowed } else { Commands::Refused };
        let grace = options.grace()?;
        options.log_format()?;
        options.log()?;
        Ok(Self {
            store: store(options.needed("store")?)?,
            listen: options.listen()?,
            access: access(options)?,
            commands,
            retention: options.retention()?,
            grace,
            limits: Limits {
                connections: options.connections()?,
                body_bytes: options.body_bytes()?,
                stop_grace: grace,
                ..Limits::default()
            },
            collector: options.otlp()?,
        })
    }
}

async fn retain(engine: Engine, kept: Duration) {
    Graphs::of(&engine).retain(kept).await;
}

async fn export(engine: Engine, collector: Collector) {
    traces::export(&engine, &collector).await;
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

fn access(options: &Options) -> Result<Access, WrongUsage> {
    let is_open = options.is_on("insecure")?;
    let Some(file) = options.get("api_key_file", |text| Ok::<_, String>(PathBuf::from(text)))? else {
        return Ok(if is_open { Access::Insecure } else { Access::Loopback });
    };
    if is_open {
        return Err(WrongUsage(
            "`insecure` lets everybody in, also without one of the keys of `api_key_file`; give one of the two"
                .to_owned(),
        ));
    }
    let shown = file.display();
    let text = fs::read_to_string(&file)
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
