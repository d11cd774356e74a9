//! Ctrl-C, SIGTERM and SIGHUP: noticed, and told how to go on.

use std::ffi::OsString;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Arguments;
use super::place::Place;
use crate::usage::note;

/// Exit codes of a process that a signal ended, as shells have them.
const HUNG_UP: u8 = 129;
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Listens for signals that end the process.
pub(crate) struct Interruption {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The exit code of the next one.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.hangup.recv() => HUNG_UP,
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

/// Says what became of the run, and how to go on with it.
pub(super) fn tell(arguments: &Arguments, place: &Place, id: Option<&str>) {
    match (place, id) {
        (Place::Temporary(_), _) => {
            note("interrupted, and nothing is kept; a run with `--store FILE --id ID` can go on later");
        }
        (Place::Kept(_), None) => note("interrupted before the run began"),
        (Place::Kept(_), Some(id)) => note(&format!("interrupted; the run goes on with\n  {}", again(arguments, id))),
    }
}

/// The same command, with the run's id.
fn again(arguments: &Arguments, id: &str) -> String {
    let mut words: Vec<String> = std::env::args_os().map(quoted).collect();
    if arguments.id.is_none() {
        words.extend(["--id".to_owned(), id.to_owned()]);
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: OsString) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@:,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
