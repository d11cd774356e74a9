//! What goes wrong between a client and a server, told apart.
//!
//! Owns the messages. None of them holds a key.

use steadfast_api::problem::{self, DefinitionProblem, Problem, Violation};

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is there.
    #[error(
        "nobody answers at {url} ({reason}); start a server with `steadfast dev` or `steadfast serve`, or say where one is with `--url` or STEADFAST_URL"
    )]
    Unreachable {
        /// Where.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The connection broke, or nothing came any more.
    #[error("the connection to {url} was lost ({reason}); {advice}")]
    Lost {
        /// To where.
        url: String,
        /// How.
        reason: String,
        /// What is to be done about it.
        advice: &'static str,
    },
    /// The server has refused it.
    #[error("{}", told(.0))]
    Refused(Box<Problem>),
    /// Whoever answers is no server of ours, or of another version.
    #[error(
        "{url} answers, but not as a steadfast server of this version does ({reason}); look whether `--url` or STEADFAST_URL is right"
    )]
    Foreign {
        /// Who.
        url: String,
        /// What is strange.
        reason: String,
    },
    /// An answer is larger than what is held in memory.
    #[error("the answer is larger than {} MiB; ask for less at once", .bytes_max / 1024 / 1024)]
    TooLarge {
        /// What is held.
        bytes_max: usize,
    },
    /// A name cannot be a part of a path.
    #[error("`{0}` cannot be a name or an id")]
    InvalidName(String),
    /// What is to be sent cannot be written. A fault of ours.
    #[error("the request cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl Error {
    /// Whether the same may go better later: a server that is away, or whose store does not answer.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => true,
            Self::Refused(found) => found.problem_type == problem::UNAVAILABLE.problem_type,
            Self::Foreign { .. } | Self::TooLarge { .. } | Self::InvalidName(_) | Self::Unwritable(_) => false,
        }
    }
}

/// Why a text is not the URL of a server.
#[derive(Debug, thiserror::Error)]
pub enum InvalidUrl {
    /// It is none at all.
    #[error("`{0}` is not the URL of a server; expected one such as http://127.0.0.1:7400")]
    Form(String),
    /// There is a name or a password in it, which may be a secret.
    #[error("the URL of the server holds a name or a password; give a key in STEADFAST_KEY or with `--key-file`")]
    Credentials,
    /// The system has no certificates, or none that can be read.
    #[error("connections cannot be made safe: {0}")]
    Certificates(String),
}

/// A problem with everything it lists.
fn told(problem: &Problem) -> String {
    let mut text = problem.detail.clone();
    // A single one is in the detail already.
    for Violation { pointer, message } in
        problem.violations.iter().filter(|found| !problem.detail.contains(&found.message))
    {
        let at = if pointer.is_empty() { String::new() } else { format!("at `{pointer}`: ") };
        text.push_str(&format!("\n  {at}{message}"));
    }
    for DefinitionProblem { severity, line, column, message, hint, .. } in &problem.problems {
        let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        text.push_str(&format!("\n  {line}:{column}: {severity}: {message}{hint}"));
    }
    text
}
