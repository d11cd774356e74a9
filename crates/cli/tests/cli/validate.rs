//! `validate`: everything that is wrong, at its place, and the exit code that follows.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::command::{run, steadfast};

const GOOD: &str = "kind: workflow\nname: good\nnodes: { a: { task: t }, b: }\ntransitions: [{ from: a, to: b }]\n";
const TASK: &str = "kind: task\nname: t\nrun: { value: 1 }\n";
/// What a branch writes is lost.
const DOUBTFUL: &str = "kind: workflow\nname: doubtful\nnodes: { a: , b: { output: { state.x: 1 } }, c: }\n\
    transitions: [{ from: a, to: b, spawn: 2, group: g }, { from: b, to: c, join: { group: g } }]\n";

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Validates the files and compares the last line and the exit code.
#[track_caller]
fn check(files: &[(&str, &str)], line: &str, code: i32, expected: &str) -> String {
    let folder = folder_with(files);
    let ended = run(folder.path(), &format!("validate {line}"));
    assert_eq!((ended.code, &*ended.stderr), (Some(code), ""), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().last(), Some(expected), "{}", ended.stdout);
    ended.stdout
}

#[track_caller]
fn check_wrong(folder: &Path, line: &str, expected: &str) {
    let error = run(folder, &format!("validate {line}")).failed(2);
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_right_has_no_problems() {
    let stdout = check(&[("a.yaml", TASK)], "a.yaml", 0, "1 file, 1 definition: no problems");
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
}

#[test]
fn files_are_checked_together() {
    let files = [("flow.yaml", GOOD), ("task.yaml", TASK)];
    check(&files, "flow.yaml task.yaml", 0, "2 files, 2 definitions: no problems");
    let stdout = check(&files, "flow.yaml", 1, "1 file: 1 error");
    assert!(stdout.starts_with("flow.yaml:3:21: error: there is no task `t`\n"), "{stdout}");
}

#[test]
fn a_folder_is_the_definitions_in_it() {
    let files = [("flow.yaml", GOOD), ("task.yml", TASK), ("notes.txt", "kind: nothing"), (".x.yaml", "kind: nothing")];
    check(&files, ".", 0, "2 files, 2 definitions: no problems");
    // Also when one of them is named besides.
    check(&files, ". flow.yaml ./task.yml", 0, "2 files, 2 definitions: no problems");
}

#[test]
fn every_problem_is_told_with_its_place() {
    let bad = "kind: workflow\nname: bad\nnodes:\n  a: { tsk: t }\n  b: { run: { value: \"${1 +}\" } }\ntransitions:\n  - { from: a, to: c }\n";
    let stdout = check(&[("bad.yaml", bad)], "bad.yaml", 1, "1 file: 3 errors");
    for place in ["bad.yaml:4:8: error: ", "bad.yaml:5:", "bad.yaml:7:20: error: there is no node `c`"] {
        assert!(stdout.contains(place), "`{place}` is missing in {stdout}");
    }
    assert!(stdout.contains("did you mean `task`?"), "{stdout}");
}

#[test]
fn warnings_alone_are_no_failure() {
    let stdout = check(&[("a.yaml", DOUBTFUL)], "a.yaml", 0, "1 file, 1 definition: 1 warning");
    assert!(stdout.contains("warning: `state.x` is written in a branch and never merged"), "{stdout}");
    let both = [("a.yaml", DOUBTFUL), ("b.yaml", "kind: task\nname: x\n")];
    check(&both, "a.yaml b.yaml", 1, "2 files: 1 error, 1 warning");
}

#[test]
fn a_definition_that_is_there_twice_is_an_error() {
    let stdout = check(&[("a.yaml", TASK), ("b.yaml", TASK)], "a.yaml b.yaml", 1, "2 files: 1 error");
    assert!(stdout.contains("the task `t` is defined twice"), "{stdout}");
    assert!(stdout.contains("a.yaml:2:"), "{stdout}");
}

#[test]
fn for_programs_it_is_one_document() {
    let folder = folder_with(&[("flow.yaml", GOOD), ("task.yaml", TASK)]);
    let ended = run(folder.path(), "validate . --json");
    let document: Value = serde_json::from_str(&ended.done()).unwrap();
    let expected = json!({
        "problems": [],
        "definitions": [
            { "kind": "workflow", "name": "good", "file": "./flow.yaml" },
            { "kind": "task", "name": "t", "file": "./task.yaml" },
        ],
    });
    assert_eq!(document, expected);

    let ended = run(folder.path(), "validate flow.yaml --json");
    assert_eq!(ended.code, Some(1));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let problem = &document["problems"][0];
    assert_eq!(problem["severity"], "error");
    assert_eq!((&problem["file"], &problem["line"], &problem["column"]), (&json!("flow.yaml"), &json!(3), &json!(21)));
    assert!(problem["message"].is_string() && problem["hint"].is_string(), "{problem}");
}

#[test]
fn a_dash_is_stdin() {
    let folder = tempdir().unwrap();
    let mut child = steadfast(folder.path(), "validate -");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"kind: tusk\nname: t\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("stdin:1:7: error: "), "{stdout}");
}

#[test]
fn what_cannot_be_read_is_wrong_usage() {
    let folder = folder_with(&[("notes.txt", "")]);
    fs::write(folder.path().join("bytes.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    check_wrong(folder.path(), "missing.yaml", "there is no file `missing.yaml`");
    check_wrong(folder.path(), "bytes.yaml", "`bytes.yaml` cannot be read: it is not UTF-8 text");
    check_wrong(folder.path(), "empty", "there is no `*.yaml`, `*.yml` or `*.json` in the folder `empty`");
    check_wrong(folder.path(), "", "required arguments were not provided");
}
