//! Which errors are the user's to mend by typing something else.
//!
//! Owns the difference between exit codes 1 and 2, and how a note looks.

use std::io::Write;
use std::process::ExitCode;

use steadfast_store::sqlite::OpenError;

/// What was asked for cannot be done as it was asked. Exit code 2.
#[derive(Debug)]
pub(crate) struct WrongUsage(pub(crate) String);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// Whether another command line would help.
pub(crate) fn is_wrong_usage(error: &anyhow::Error) -> bool {
    if error.is::<WrongUsage>() {
        return true;
    }
    match error.downcast_ref::<OpenError>() {
        // The path names the wrong thing.
        Some(
            OpenError::Folder { .. }
            | OpenError::NotAFile { .. }
            | OpenError::NoFolder { .. }
            | OpenError::NotSqlite { .. }
            | OpenError::Foreign { .. },
        ) => true,
        // The path is right, and something about the file must change.
        Some(
            OpenError::NotReadable { .. }
            | OpenError::NotWritable { .. }
            | OpenError::Newer { .. }
            | OpenError::InUse { .. }
            | OpenError::Linked { .. }
            | OpenError::NoSpace { .. }
            | OpenError::LostStore { .. }
            | OpenError::Store { .. },
        )
        | None => false,
    }
}

/// Whether nobody reads what we print, as after `| head`: then there is nobody to tell.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Tells something that is neither a result nor an error.
pub(crate) fn note(text: &str) {
    // Nobody to tell when stderr is gone.
    drop(writeln!(std::io::stderr(), "note: {text}"));
}

pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if is_wrong_usage(error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}
