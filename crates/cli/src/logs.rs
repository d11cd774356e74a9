//! What is written to stderr while a command works.
//!
//! Owns the form of the lines and which are written. Never says anything itself.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// A JSON document, for programs.
    Json,
}

impl Format {
    /// By its name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("`{other}` is not a form of the log; there are `text` and `json`")),
        }
    }
}

/// Writes what is wanted from now on.
pub(crate) fn write(format: Format, wanted: Targets) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let registry = tracing_subscriber::registry().with(wanted);
    match format {
        Format::Text => registry.with(lines).init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
}

/// Warnings, or what `RUST_LOG` asks for. What it says wrongly is as if it said nothing: logs are not worth a failure.
pub(crate) fn write_warnings() {
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    write(Format::Text, wanted.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN)));
}
