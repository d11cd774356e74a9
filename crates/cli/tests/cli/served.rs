//! A server of the real binary, and commands that talk to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::command::{Ended, ended, steadfast};

/// A server in a folder of its own.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
}

const SERVE: &str = "serve --store s.db --json --listen";

impl Served {
    /// `serve`, with these definitions.
    pub(crate) fn with(definitions: &[&str]) -> Self {
        let served = Self::begin(tempdir().unwrap(), &format!("{SERVE} 127.0.0.1:0"));
        for (number, text) in definitions.iter().enumerate() {
            let file = served.folder.path().join(format!("{number}.yaml"));
            std::fs::write(&file, text).unwrap();
            served.run(&format!("apply {number}.yaml")).done();
        }
        served
    }

    /// A command that serves and says where, in a line of JSON.
    pub(crate) fn begin(folder: TempDir, line: &str) -> Self {
        let mut child = steadfast(folder.path(), line).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let url = loop {
            let told = next_line(&mut stdout);
            if let Some(url) = told["listening"].as_str() {
                break url.to_owned();
            }
        };
        Self { folder, child, stdout, url }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The same command in the same place, after this one was killed.
    pub(crate) fn killed_and_begun_again(&mut self) {
        self.killed_and_begun_again_with("");
    }

    /// The same, with further options.
    pub(crate) fn killed_and_begun_again_with(&mut self, options: &str) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let address = self.url.strip_prefix("http://").unwrap();
        let line = format!("{SERVE} {address} {options}");
        let mut child = steadfast(self.path(), &line).stdout(Stdio::piped()).spawn().unwrap();
        self.stdout = BufReader::new(child.stdout.take().unwrap());
        self.child = child;
        assert_eq!(next_line(&mut self.stdout)["listening"], *self.url);
    }

    /// A command to this server, to be started.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = steadfast(self.path(), line);
        command.env("STEADFAST_URL", &self.url);
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ended {
        ended(self.command(line).output().unwrap())
    }

    /// The document that a command prints with `--json`.
    #[track_caller]
    pub(crate) fn document(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{line} --json")).done()).unwrap()
    }

    /// A command as somebody runs it whose surroundings name a key.
    pub(crate) fn run_with_key(&self, line: &str, key: &str) -> Ended {
        let output: Output = self.command(line).env("STEADFAST_KEY", key).output().unwrap();
        ended(output)
    }
}

/// A line of JSON.
pub(crate) fn next_line(stdout: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

impl Drop for Served {
    fn drop(&mut self) {
        // Its store goes with its folder. Nothing can be done about one that is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
