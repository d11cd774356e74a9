//! Running the binary: the one way in for all tests here.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary, in a folder, with nothing of the surroundings that could change what it prints.
pub(crate) fn steadfast(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    for variable in ["RUST_LOG", "STEADFAST_URL", "STEADFAST_KEY"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn run(folder: &Path, line: &str) -> Ended {
    ended(steadfast(folder, line).output().unwrap())
}

pub(crate) fn ended(Output { status, stdout, stderr }: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Ended {
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// Its JSON lines.
    #[track_caller]
    pub(crate) fn lines(self) -> Vec<Value> {
        self.done().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Its error, which must be one message and no panic.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("backtrace"), "{self:?}");
        self.stderr
    }
}

/// The names of everything in a folder, hidden or not.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
