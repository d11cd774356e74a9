//! The workers of the examples, each against a real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::raw_http::Connection;
use crate::served::Served;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers")
}

/// The worker does the tasks of `greet.yaml`, and says which it is.
#[track_caller]
fn check(mut worker: Command, name: &str) {
    let workflow = fs::read_to_string(examples().join("greet.yaml")).unwrap();
    let served = Served::with(&[&workflow]);
    let mut worker = worker.args([&served.url, "greetings"]).stdout(Stdio::null()).spawn().unwrap();
    let mut connection = Connection::open(&served.url).unwrap();
    let mut start = |input: &str| {
        let body = format!(r#"{{"input": {input}, "wait": "60s"}}"#);
        connection.ask("POST /v1/workflows/greet/runs", &body).unwrap().1
    };
    let greeted = start(r#"{"name": "Ann"}"#);
    // What the worker says is final is not tried again, although the node has three attempts.
    let failed = start("{}");
    worker.kill().unwrap();
    worker.wait().unwrap();
    let expected = format!(r#""output":{{"text":"hello Ann","worker":"{name}"}}"#);
    assert!(greeted.contains(&expected), "{greeted}");
    assert!(failed.contains("the input has no `name`") && failed.contains(r#""status":"failed""#), "{failed}");
}

#[test]
fn the_worker_in_python_does_the_tasks_of_the_example() {
    let mut worker = Command::new("python3");
    worker.arg(examples().join("worker.py"));
    check(worker, "python");
}

#[test]
fn the_worker_in_typescript_is_strict_and_does_the_tasks_of_the_example() {
    let mut worker = Command::new("node");
    worker.arg(compiled(&examples()));
    check(worker, "typescript");
}

/// `worker.ts` as JavaScript. The compiler is installed once, into the folder of what is built.
fn compiled(examples: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript-worker");
    fs::create_dir_all(&folder).unwrap();
    for name in ["worker.ts", "tsconfig.json", "package.json", "package-lock.json"] {
        fs::copy(examples.join(name), folder.join(name)).unwrap();
    }
    // Written when everything is there, so that half of it is not taken for all.
    let (lock, installed) = (fs::read(folder.join("package-lock.json")).unwrap(), folder.join("installed"));
    if fs::read(&installed).ok().as_ref() != Some(&lock) {
        succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder));
        fs::write(installed, lock).unwrap();
    }
    succeed(Command::new("node").args(["node_modules/typescript/bin/tsc", "--project", "."]).current_dir(&folder));
    folder.join("worker.js")
}

#[track_caller]
fn succeed(command: &mut Command) {
    let ended = command.output().unwrap_or_else(|error| panic!("{command:?} needs Node: {error}"));
    let (printed, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{command:?}: {printed}{said}");
}
