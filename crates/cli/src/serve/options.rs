//! What `serve` is told: by flags, by the environment, by a file; and what stands when nothing is said.
//!
//! Owns the names, the defaults and which of them wins: flags over the environment, that over the file, that over defaults. Every option is a text until here, and an error
//! names the place that the text came from. Never reads a key: those stay in their own file. Start reading at [`OPTIONS`].

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast::core::definition::{Setting, settings};
use steadfast::core::duration::parse_ms;
use steadfast::traces::Collector;

use crate::logs::Format;
use crate::usage::WrongUsage;

/// The options that may also stand in a file or in the environment.
#[derive(Args, Default)]
pub(crate) struct Given {
    /// The store: a file, which is made if there is none
    #[arg(long, value_name = "sqlite:FILE|FILE")]
    store: Option<String>,
    /// Where to listen; port 0 lets the system choose one [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// A file of keys, with a line `role sha256hex [name]` for each
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<String>,
    /// Let everybody in who reaches the address
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    insecure: Option<String>,
    /// Let tasks run programs on this machine
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_command: Option<String>,
    /// Remove runs so long after their end, with their trees, as in `30d` [default: all are kept]
    #[arg(long, value_name = "DURATION")]
    retention: Option<String>,
    /// How long tasks have to end when the server does [default: 10s]
    #[arg(long, value_name = "DURATION")]
    grace: Option<String>,
    /// Connections at once; more wait to be accepted [default: 4096]
    #[arg(long, value_name = "NUMBER")]
    connections: Option<String>,
    /// The largest body of a request, in MiB [default: 8]
    #[arg(long, value_name = "NUMBER")]
    body_mib: Option<String>,
    /// Send traces to the collector at this URL, over OTLP as JSON, as in `http://127.0.0.1:4318` [default: none are sent]
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// How the log on stderr is written: `text`, or `json` with a document a line [default: text]
    #[arg(long, value_name = "text|json")]
    log_format: Option<String>,
    /// What is logged: `error`, `warn`, `info`, `debug`, or more exactly as `RUST_LOG` has it [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

/// An option.
struct Named {
    /// Its name in a file. As a flag `_` is `-`; in the environment it is `STEADFAST_` and the name in capitals.
    name: &'static str,
    default: Option<&'static str>,
    /// What it means that it is not set.
    unset: &'static str,
    given: fn(&Given) -> &Option<String>,
}

const OPTIONS: [Named; 12] = [
    Named { name: "store", default: None, unset: "must be given", given: |given| &given.store },
    Named { name: "listen", default: Some("127.0.0.1:7400"), unset: "", given: |given| &given.listen },
    Named { name: "api_key_file", default: None, unset: "no keys", given: |given| &given.api_key_file },
    Named { name: "insecure", default: Some("false"), unset: "", given: |given| &given.insecure },
    Named { name: "allow_command", default: Some("false"), unset: "", given: |given| &given.allow_command },
    Named { name: "retention", default: None, unset: "all runs are kept", given: |given| &given.retention },
    Named { name: "grace", default: Some("10s"), unset: "", given: |given| &given.grace },
    Named { name: "connections", default: Some("4096"), unset: "", given: |given| &given.connections },
    Named { name: "body_mib", default: Some("8"), unset: "", given: |given| &given.body_mib },
    Named { name: "otlp", default: None, unset: "no traces are sent", given: |given| &given.otlp },
    Named { name: "log_format", default: Some("text"), unset: "", given: |given| &given.log_format },
    Named { name: "log", default: Some("info"), unset: "", given: |given| &given.log },
];

/// More connections than a process may have files is no use.
const CONNECTIONS_MAX: usize = 1_000_000;

/// A value in the engine is at most as large as the default; definitions may be larger.
const BODY_MIB_MAX: usize = 1_024;

/// Everything that `serve` is told, and where each comes from.
pub(crate) struct Options {
    found: Vec<Found>,
}

struct Found {
    option: &'static Named,
    value: Option<String>,
    source: Source,
}

/// Where a value comes from.
enum Source {
    Flag,
    Environment(String),
    File(Setting),
    Default,
}

impl Options {
    /// Puts together what is said where.
    pub(crate) fn gather(given: &Given, file: Option<&PathBuf>) -> Result<Self, WrongUsage> {
        let written = file.map_or(Ok(Vec::new()), read)?;
        let find = |option: &'static Named| {
            if let Some(value) = (option.given)(given) {
                return Ok(Found { option, value: Some(value.clone()), source: Source::Flag });
            }
            let variable = format!("STEADFAST_{}", option.name.to_uppercase());
            if let Some(value) = std::env::var_os(&variable) {
                let value = value.into_string().map_err(|_| WrongUsage(format!("`{variable}` is not UTF-8 text")))?;
                return Ok(Found { option, value: Some(value), source: Source::Environment(variable) });
            }
            if let Some(setting) = written.iter().find(|setting| setting.name == option.name) {
                let value = Some(setting.value.clone());
                return Ok(Found { option, value, source: Source::File(setting.clone()) });
            }
            Ok(Found { option, value: option.default.map(str::to_owned), source: Source::Default })
        };
        Ok(Self { found: OPTIONS.iter().map(find).collect::<Result<_, WrongUsage>>()? })
    }

    /// An option that must be given.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, WrongUsage> {
        let missing = || {
            let variable = format!("STEADFAST_{}", name.to_uppercase());
            WrongUsage(format!(
                "no `{name}` is given; say `--{name}`, `{variable}`, or `{name}:` in the file of `--config`"
            ))
        };
        self.of(name).value.as_deref().ok_or_else(missing)
    }

    /// An option, read by `parse`.
    pub(crate) fn get<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, WrongUsage> {
        let found = self.of(name);
        let Some(value) = &found.value else { return Ok(None) };
        parse(value).map(Some).map_err(|error| found.refused(&error))
    }

    /// An option that has a default.
    fn get_default<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, WrongUsage> {
        Ok(self.get(name, parse)?.expect("it has a default"))
    }

    /// Where to listen.
    pub(crate) fn listen(&self) -> Result<std::net::SocketAddr, WrongUsage> {
        let parse = |text: &str| {
            text.parse().map_err(|_| format!("`{text}` is not an address with a port, as in `127.0.0.1:7400`"))
        };
        self.get_default("listen", parse)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> Result<bool, WrongUsage> {
        let parse = |text: &str| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("`{other}` is neither `true` nor `false`")),
        };
        self.get_default(name, parse)
    }

    /// How long runs are kept after their end.
    pub(crate) fn retention(&self) -> Result<Option<Duration>, WrongUsage> {
        self.get("retention", duration)
    }

    /// How long tasks have to end.
    pub(crate) fn grace(&self) -> Result<Duration, WrongUsage> {
        self.get_default("grace", duration)
    }

    /// Connections at once.
    pub(crate) fn connections(&self) -> Result<usize, WrongUsage> {
        self.get_default("connections", |text| number(text, CONNECTIONS_MAX))
    }

    /// The largest body, in bytes.
    pub(crate) fn body_bytes(&self) -> Result<usize, WrongUsage> {
        Ok(self.get_default("body_mib", |text| number(text, BODY_MIB_MAX))? * 1024 * 1024)
    }

    /// Where traces go.
    pub(crate) fn otlp(&self) -> Result<Option<Collector>, WrongUsage> {
        self.get("otlp", Collector::at)
    }

    /// How the log is written.
    pub(crate) fn log_format(&self) -> Result<Format, WrongUsage> {
        self.get_default("log_format", Format::parse)
    }

    /// What is logged; `RUST_LOG` stands when nothing else is said.
    pub(crate) fn log(&self) -> Result<tracing_subscriber::filter::Targets, WrongUsage> {
        let found = self.of("log");
        let wanted = match found.source {
            Source::Default => std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()),
            Source::Flag | Source::Environment(_) | Source::File(_) => None,
        };
        wanted.map_or_else(|| self.get_default("log", str::parse), Ok)
    }

    fn of(&self, name: &str) -> &Found {
        self.found.iter().find(|found| found.option.name == name).expect("every name in code is one of the options")
    }
}

/// As a file of `--config`, with where each value comes from.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Found { option, value, source } in &self.found {
            let line = match value {
                Some(value) => format!("{}: {}", option.name, serde_json::Value::from(&**value)),
                None => format!("# {}:", option.name),
            };
            let told = match (value, source) {
                (None, _) => format!("not set: {}", option.unset),
                (Some(_), Source::Flag) => format!("--{}", option.name.replace('_', "-")),
                (Some(_), Source::Environment(variable)) => variable.clone(),
                (Some(_), Source::File(setting)) => setting.place(),
                (Some(_), Source::Default) => "default".to_owned(),
            };
            writeln!(f, "{line:<40} # {told}")?;
        }
        Ok(())
    }
}

impl Found {
    fn refused(&self, error: &dyn fmt::Display) -> WrongUsage {
        WrongUsage(match &self.source {
            Source::Flag | Source::Default => format!("`--{}`: {error}", self.option.name.replace('_', "-")),
            Source::Environment(variable) => format!("`{variable}`: {error}"),
            Source::File(setting) => format!("the settings cannot be used\n{}", setting.problem(error.to_string())),
        })
    }
}

fn read(file: &PathBuf) -> Result<Vec<Setting>, WrongUsage> {
    let shown = file.display().to_string();
    let text = fs::read_to_string(file)
        .map_err(|error| WrongUsage(format!("the file of settings `{shown}` cannot be read: {error}")))?;
    settings(&shown, &text, &OPTIONS.each_ref().map(|option| option.name)).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        WrongUsage(format!("the settings cannot be used\n{}", told.join("\n")))
    })
}

fn duration(text: &str) -> Result<Duration, steadfast::core::duration::InvalidDuration> {
    parse_ms(text).map(Duration::from_millis)
}

fn number(text: &str, max: usize) -> Result<usize, String> {
    let found = text.parse::<usize>().ok().filter(|found| (1..=max).contains(found));
    found.ok_or_else(|| format!("`{text}` is not a number from 1 to {max}"))
}
