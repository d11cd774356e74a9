//! `run`: what comes of a workflow, what is printed of it, how the command ends, and that a run goes on.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast::Engine;
use steadfast::graph::{Graphs, Run};
use steadfast_core::json::Json;
use steadfast_store::sqlite::SqliteStore;
use tempfile::{TempDir, tempdir};

use crate::command::{Ended, names_in, run, steadfast};

/// Doubles `input.n`; a branch for each of three, of which the second is tried twice.
const FLOW: &str = r#"
kind: workflow
name: flow
input: { type: object, required: [n], properties: { n: { type: integer } } }
nodes:
  begin:
  double:
    run: { mock: { value: "${input.n * 2}", fail: { times: "${branch.index == 1 ? 1 : 0}" } } }
    retry: { max_attempts: 2, delay: 5ms }
    output: { state.doubled: "${result}" }
  end:
transitions:
  - { from: begin, to: double, spawn: 3, group: g }
  - { from: double, to: end, join: { group: g, merge: { from: state.doubled, into: state.all, strategy: append } } }
result: { all: "${state.all}" }
"#;

const FAILS: &str = r#"
kind: workflow
name: fails
nodes:
  break: { run: { mock: { fail: { message: "out of paper", retryable: false } } } }
"#;

const WAITS: &str = r#"
kind: workflow
name: waits
nodes:
  ask: { wait: { signal: answer }, output: { output.answer: "${result}" } }
"#;

fn folder_with(file: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("flow.yaml"), file).unwrap();
    folder
}

fn document(ended: Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_output_goes_to_stdout_and_nothing_is_left() {
    let folder = folder_with(FLOW);
    let temporary = tempdir().unwrap();
    let output = steadfast(folder.path(), r#"run flow.yaml --input {"n":4}"#).env("TMPDIR", temporary.path()).output();
    let output = output.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\n  \"all\": [\n    8,\n    8,\n    8\n  ]\n}\n");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    assert_eq!(names_in(folder.path()), ["flow.yaml"]);
    assert_eq!(names_in(temporary.path()), [""; 0]);
}

#[test]
fn an_input_can_come_from_a_file_or_from_stdin() {
    let folder = folder_with(FLOW);
    fs::write(folder.path().join("input.json"), "{ \"n\": 1 }\n").unwrap();
    assert!(run(folder.path(), "run flow.yaml --input @input.json").done().contains('2'));
    let mut child = steadfast(folder.path(), "run flow.yaml --input @-");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"n\": 3}").unwrap();
    assert!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().contains('6'));
}

#[test]
fn a_run_that_fails_says_what_and_where() {
    let folder = folder_with(FAILS);
    let ended = run(folder.path(), "run flow.yaml");
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.failed(1), "error: `fails` failed at node `break` (task_failed): out of paper\n");
}

#[test]
fn programs_get_the_whole_run_however_it_ends() {
    let folder = folder_with(FLOW);
    let fields = [
        "ended_at",
        "error",
        "id",
        "input",
        "output",
        "parent",
        "root",
        "started_at",
        "status",
        "token_count",
        "tokens",
        "version",
        "versions",
        "workflow",
    ];
    let done = document(run(folder.path(), r#"run flow.yaml --input {"n":1} --json --store x.db --id first"#));
    assert_eq!(keys(&done), fields);
    assert_eq!((&done["id"], &done["root"], &done["parent"]), (&json!("first"), &json!("first"), &Value::Null));
    assert_eq!(
        (&done["workflow"], &done["version"], &done["status"]),
        (&json!("flow"), &json!(1), &json!("completed"))
    );
    assert_eq!((&done["input"], &done["output"]), (&json!({ "n": 1 }), &json!({ "all": [2, 2, 2] })));
    let tokens = done["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), 8);
    assert!(tokens.iter().all(|token| token["status"] == "completed"), "{tokens:?}");
    let retried = tokens.iter().find(|token| token["attempt"] == 2).unwrap();
    assert_eq!((&retried["node"], &retried["branch"]), (&json!("double"), &json!({ "index": 1, "total": 3 })));
    assert_eq!(retried["path"], "root/g:1");

    fs::write(folder.path().join("flow.yaml"), FAILS).unwrap();
    let ended = run(folder.path(), "run flow.yaml --json");
    assert_eq!(ended.code, Some(1));
    let failed = document(ended);
    assert_eq!(keys(&failed), fields);
    assert_eq!((&failed["status"], &failed["error"]["type"]), (&json!("failed"), &json!("task_failed")));
}

#[test]
fn events_are_lines_in_order_and_complete() {
    let folder = folder_with(FLOW);
    let events = run(folder.path(), r#"run flow.yaml --input {"n":1} --events"#).lines();
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(keys(&events[0]), ["at", "data", "root_id", "run_id", "sequence", "type", "version", "workflow"]);
    assert_eq!(events[0]["type"], "workflow.started");
    assert_eq!(events.last().unwrap()["type"], "workflow.completed");
    let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
    assert_eq!((count("task.completed"), count("task.retry_scheduled"), count("token.created")), (3, 1, 8));

    let traced = run(folder.path(), r#"run flow.yaml --input {"n":1} --events --json --trace"#).lines();
    let (shown, events) = traced.split_last().unwrap();
    assert_eq!(shown["output"], json!({ "all": [2, 2, 2] }));
    assert!(events.iter().any(|event| event["type"].as_str().unwrap().starts_with("decision.routing.")));
    assert_eq!(events.last().unwrap()["type"], "workflow.completed");
}

#[test]
fn the_workflow_at_the_top_is_meant_unless_another_is_named() {
    let workflows = "kind: workflow\nname: below\nnodes: { a: { run: { value: 1 }, output: { output.x: below } } }\n---\n\
        kind: workflow\nname: top\nnodes: { a: { workflow: below, output: { output.x: top } } }\n";
    let folder = folder_with(workflows);
    assert!(run(folder.path(), "run flow.yaml").done().contains("\"x\": \"top\""));
    assert!(run(folder.path(), "run flow.yaml --workflow below").done().contains("\"x\": \"below\""));
    let error = run(folder.path(), "run flow.yaml --workflow blow").failed(2);
    assert!(error.contains("there is no workflow `blow` in `flow.yaml`; there is `below`, `top`"), "{error}");
    let error = run(folder.path(), "run flow.yaml --workflow top@7").failed(2);
    assert!(error.contains("there is no workflow `top@7`"), "{error}");

    let two = "kind: workflow\nname: one\nnodes: { a: }\n---\nkind: workflow\nname: two\nnodes: { a: }\n";
    let error = run(folder_with(two).path(), "run flow.yaml").failed(2);
    assert!(error.contains("choose one with `--workflow`: `one`, `two`"), "{error}");
    let none = "kind: task\nname: t\nrun: { value: 1 }\n";
    let error = run(folder_with(none).path(), "run flow.yaml").failed(2);
    assert!(error.contains("there is no workflow in `flow.yaml`"), "{error}");
}

#[track_caller]
fn check_wrong(line: &str, expected: &str) {
    let folder = folder_with(FLOW);
    let error = run(folder.path(), &format!("run {line}")).failed(2);
    assert!(error.contains(expected), "{error}");
}

#[test]
fn wrong_usage_says_what_would_be_right() {
    check_wrong("missing.yaml", "there is no file `missing.yaml`");
    check_wrong(
        r#"flow.yaml --input {"n":}"#,
        r#"--input cannot be read as JSON: expected value at line 1 column 6; it is: {"n":}"#,
    );
    check_wrong(
        &format!("flow.yaml --input {}1{}", "[".repeat(101), "]".repeat(101)),
        "--input cannot be read as JSON: ",
    );
    check_wrong("flow.yaml --id a,b", "run id `a,b` contains ','");
    check_wrong("flow.yaml --input @no.json", "the input `no.json` cannot be read");
    check_wrong("- --input @-", "the definitions and the input cannot both come from stdin");
    check_wrong("flow.yaml", "the input does not fit the workflow `flow`:\n  ");
    check_wrong(r#"flow.yaml --input {"n":"x"}"#, "at `/n`: ");
    check_wrong("flow.yaml --signal a=b", "the signal `a` cannot be read as JSON: expected value at line 1 column 1");
    check_wrong("flow.yaml --signal ü=1", "signal");
    check_wrong(r#"flow.yaml --input {"n":1} --store x.db --id a/b"#, "run id");
    check_wrong("flow.yaml --store no/x.db", "there is no folder `no`");
    check_wrong("flow.yaml --store flow.yaml", "`flow.yaml` is not a store: it is no SQLite file");
}

#[test]
fn an_id_that_another_run_has_is_wrong_usage() {
    let folder = folder_with(FLOW);
    run(folder.path(), r#"run flow.yaml --input {"n":1} --store x.db --id a"#).done();
    let error = run(folder.path(), r#"run flow.yaml --input {"n":2} --store x.db --id a"#).failed(2);
    assert!(error.contains("run `a` exists already"), "{error}");
}

#[test]
fn a_store_in_use_is_refused() {
    let folder = folder_with(FLOW);
    let held = SqliteStore::open(folder.path().join("x.db")).unwrap();
    let error = run(folder.path(), r#"run flow.yaml --input {"n":1} --store x.db"#).failed(1);
    assert!(error.contains("store `x.db` is in use by process"), "{error}");
    drop(held);
}

#[test]
fn problems_are_told_before_anything_is_made() {
    let folder = folder_with("kind: workflow\nname: bad\nnodes: { a: { task: missing } }\n");
    let ended = run(folder.path(), "run flow.yaml --store x.db");
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.starts_with("flow.yaml:3:21: error: there is no task `missing`"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("1 file: 1 error\n"), "{}", ended.stderr);
    assert_eq!(names_in(folder.path()), ["flow.yaml"]);
}

#[test]
fn what_the_store_knows_need_not_be_in_the_file() {
    let folder = folder_with("kind: workflow\nname: below\nnodes: { a: { output: { output.x: 1 } } }\n");
    run(folder.path(), "run flow.yaml --store x.db").done();
    let top = "kind: workflow\nname: top\nnodes: { a: { workflow: below@1, output: { output.x: \"${result.x}\" } } }\n";
    fs::write(folder.path().join("flow.yaml"), top).unwrap();
    assert!(run(folder.path(), "run flow.yaml --store x.db").done().contains("\"x\": 1"));
    fs::write(folder.path().join("flow.yaml"), top.replace("@1", "@2")).unwrap();
    let ended = run(folder.path(), "run flow.yaml --store x.db");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("there is no version 2 of the workflow `below`"), "{}", ended.stderr);
}

#[test]
fn a_run_that_is_over_gives_its_result_again() {
    let folder = folder_with(FLOW);
    let line = r#"run flow.yaml --input {"n":1} --store x.db --id a --json"#;
    let first = run(folder.path(), line).done();
    assert_eq!(run(folder.path(), line).done(), first);
}

#[test]
fn a_run_keeps_its_versions_when_the_file_changes() {
    let folder = folder_with(FLOW);
    let line = r#"run flow.yaml --input {"n":1} --store x.db --id a"#;
    let first = run(folder.path(), line).done();
    fs::write(folder.path().join("flow.yaml"), FLOW.replace("input.n * 2", "input.n * 3")).unwrap();
    for _ in 0..2 {
        let ended = run(folder.path(), line);
        assert_eq!((ended.code, &ended.stdout), (Some(0), &first));
        assert!(ended.stderr.starts_with("note: `flow` changed since run `a` began"), "{}", ended.stderr);
    }
    let new = run(folder.path(), r#"run flow.yaml --input {"n":1} --store x.db --id b"#).done();
    assert!(new.contains('3'), "{new}");
}

#[test]
fn a_run_that_was_cancelled_is_a_failure() {
    let folder = folder_with(WAITS);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::open(folder.path().join("x.db")).unwrap().graphs().start().unwrap();
        let graphs = Graphs::of(&engine);
        graphs.apply(&steadfast_core::definition::read("", WAITS).definitions).await.unwrap();
        graphs.start(Run::new("waits", Json::parse("{}").unwrap()).with_id("a")).await.unwrap();
        graphs.cancel("a", Some("nobody is there")).await.unwrap();
        engine.stop(Duration::ZERO).await;
    });
    let error = run(folder.path(), "run flow.yaml --store x.db --id a").failed(1);
    assert_eq!(error, "error: `waits` was cancelled: nobody is there\n");
}

#[test]
fn commands_run_only_where_they_are_allowed() {
    let folder = folder_with(
        "kind: workflow\nname: c\nnodes: { a: { run: { command: { program: echo, args: [7] } }, output: { output.x: \"${result}\" } } }\n",
    );
    assert!(run(folder.path(), "run flow.yaml --allow-command").done().contains("\"x\": 7"));
    // Before anything is stored: a run that was started with the permission must not fail because it is resumed without.
    let error = run(folder.path(), "run flow.yaml --store x.db").failed(2);
    assert!(error.contains("workflow `c`") && error.contains("`--allow-command`"), "{error}");
    assert!(!folder.path().join("x.db").exists());
}

#[test]
fn a_signal_can_be_given_at_the_start() {
    let folder = folder_with(WAITS);
    let line = r#"run flow.yaml --signal answer={"n":42}"#;
    assert_eq!(run(folder.path(), line).done(), "{\n  \"answer\": {\n    \"n\": 42\n  }\n}\n");
}

#[test]
fn a_signal_is_sent_once_however_often_the_command_is_given() {
    let two = "kind: workflow\nname: two\nnodes: { a: { wait: { signal: s } }, b: { wait: { signal: s }, timeout: 200ms }, c: }\n\
        transitions: [{ from: a, to: b }, { from: b, to: c, on: error }]\n";
    let folder = folder_with(two);
    let line = "run flow.yaml --signal s=1 --store x.db --id a --events";
    let received = |events: &[Value]| events.iter().filter(|event| event["type"] == "signal.received").count();
    let ended = run(folder.path(), line);
    assert!(ended.stderr.starts_with("note: node `b` waits for the signal `s`"), "{}", ended.stderr);
    let again = run(folder.path(), line).lines();
    assert_eq!(received(&again), 1);
    let events = run(folder.path(), "run flow.yaml --signal s=1 --signal s=1 --store x.db --id b --events").lines();
    assert_eq!(received(&events), 2);
}

#[test]
fn what_a_run_below_waits_for_is_told_too() {
    let below = format!("{WAITS}---\nkind: workflow\nname: top\nnodes: {{ a: {{ workflow: waits, timeout: 2s }} }}\n");
    let error = run(folder_with(&below).path(), "run flow.yaml").stderr;
    let (note, error) = error.split_once('\n').unwrap();
    assert!(note.starts_with("note: node `ask` of the run `"), "{note}");
    assert!(note.ends_with("` below waits for the signal `answer`, which nobody can give here"), "{note}");
    assert!(error.starts_with("error: `top` failed at node `a` (timeout): "), "{error}");
}

/// Runs it until it says that it waits, sends the signal, and gives the exit code and the rest of stderr.
fn interrupted(folder: &Path, line: &str, signal: &str) -> (Option<i32>, String) {
    let mut child = steadfast(folder, line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = stderr.next().unwrap().unwrap();
    assert!(first.starts_with("note: node `ask` waits for the signal `answer`"), "{first}");
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = stderr.map(Result::unwrap).collect();
    (child.wait().unwrap().code(), rest.join("\n"))
}

#[test]
fn an_interrupted_run_goes_on_with_the_command_that_it_names() {
    for (signal, code) in [("-HUP", 129), ("-INT", 130), ("-TERM", 143)] {
        let folder = folder_with(WAITS);
        let began = Instant::now();
        let (found, told) = interrupted(folder.path(), "run flow.yaml --store x.db", signal);
        assert_eq!(found, Some(code), "{told}");
        assert!(began.elapsed() < Duration::from_secs(10));
        let again = told.strip_prefix("note: interrupted; the run goes on with\n  ").unwrap();
        let (_, again) = again.split_once(' ').unwrap();
        assert!(again.starts_with("run flow.yaml --store x.db --id "), "{again}");
        assert_eq!(run(folder.path(), &format!("{again} --signal answer=5")).done(), "{\n  \"answer\": 5\n}\n");
    }
}

#[test]
fn an_interrupted_run_without_a_store_leaves_nothing() {
    let folder = folder_with(WAITS);
    let temporary = tempdir().unwrap();
    let mut child = steadfast(folder.path(), "run flow.yaml");
    let mut child = child.env("TMPDIR", temporary.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    stderr.next().unwrap().unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let told = stderr.next().unwrap().unwrap();
    assert!(told.starts_with("note: interrupted, and nothing is kept"), "{told}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names_in(temporary.path()), [""; 0]);
}

#[test]
fn nobody_who_reads_is_no_reason_to_complain() {
    let folder = folder_with(FLOW);
    let mut child = steadfast(folder.path(), r#"run flow.yaml --input {"n":1} --events"#);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(1), String::new()));
}
