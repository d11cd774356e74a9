//! `steadfast simulate`: a user's workflow under random crashes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::command::{Ended, run, steadfast};

/// Asks others, and then a person.
const RESEARCH: &str = r#"
kind: task
name: ask
output: { type: object, required: [text], properties: { text: { type: string } } }
retry: { max_attempts: 3, delay: 100ms }
run: { http: { url: "https://example.org/${input.q}" } }
---
kind: workflow
name: research
input: { type: object, required: [topics] }
nodes:
  plan: {}
  answer:
    task: ask
    input: { q: "${item}" }
    output: { state.answer: "${result.text}" }
  approve:
    wait: { signal: approval }
    output: { state.approval: "${result}" }
  review: { workflow: review, input: { answers: "${state.answers}" }, output: { state.review: "${result}" } }
transitions:
  - { from: plan, to: answer, foreach: { in: input.topics }, group: answers }
  - { from: answer, to: approve, join: { group: answers, merge: { from: state.answer, into: state.answers, strategy: append } } }
  - { from: approve, to: review }
result: { count: "${size(state.answers)}", approval: "${state.approval}", review: "${state.review}" }
---
kind: workflow
name: review
nodes:
  look: { wait: { signal: looked }, output: { output.seen: "${result}" } }
"#;

/// Which branch comes first is a matter of luck.
const RACE: &str = r#"
kind: workflow
name: race
nodes:
  begin: {}
  one: { run: { mock: { value: 1, delay: 100ms } } }
  end: {}
transitions:
  - { from: begin, to: one, foreach: { in: "[1, 2, 3]" }, group: g }
  - { from: one, to: end, join: { group: g, wait_for: any, merge: { from: branch.index, into: state.first, strategy: last } } }
result: { first: "${state.first}" }
"#;

fn folder_with(text: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("flow.yaml"), text).unwrap();
    folder
}

fn simulate(folder: &Path, arguments: &[&str]) -> Ended {
    let output = steadfast(folder, "simulate flow.yaml").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// What the report says as JSON.
#[track_caller]
fn report(text: &str, arguments: &[&str]) -> Value {
    let folder = folder_with(text);
    let mut lines = simulate(folder.path(), &[arguments, &["--json"]].concat()).lines();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

#[test]
fn tasks_are_stood_in_for_and_signals_come_to_every_run_that_waits() {
    let input = ["--input", r#"{"topics":["a","b"]}"#, "--signal", r#"approval={"ok":true}"#, "--seeds", "20"];
    let report = report(RESEARCH, &input);
    assert_eq!((&report["completed"], &report["outputs"]), (&json!(20), &json!(1)), "{report}");
    let expected = json!({ "count": 2, "approval": { "ok": true }, "review": { "seen": {} } });
    assert_eq!(report["examples"][0]["output"], expected);
    assert!(report["crashes"].as_u64().unwrap() > 20, "{report}");
    assert_eq!(report["violation"], Value::Null);
}

#[test]
fn a_workflow_that_depends_on_timing_is_shown_to() {
    let folder = folder_with(RACE);
    let text = simulate(folder.path(), &["--seeds", "30"]).done();
    assert!(text.starts_with("30 seeds of `race`, from 0: "), "{text}");
    assert!(text.contains("\ncompleted 30\n3 different outputs: what comes out depends on timing"), "{text}");
    assert!(text.contains("  seed 0: {\"first\":"), "{text}");
    assert!(text.ends_with("\nevery promise was kept\n"), "{text}");
}

#[test]
fn a_seed_gives_the_same_again() {
    let folder = folder_with(RACE);
    let twice = || simulate(folder.path(), &["--seeds", "5", "--first", "7"]).done();
    assert_eq!(twice(), twice());
}

#[test]
fn runs_that_fail_are_counted_by_what_went_wrong() {
    let failing = "kind: workflow\nname: bad\nnodes:\n  only: { run: { mock: { fail: { type: not_found } } } }\n";
    let report = report(failing, &["--seeds", "3"]);
    assert_eq!((&report["completed"], &report["failed"]), (&json!(0), &json!({ "not_found": 3 })));
    let folder = folder_with(failing);
    assert!(simulate(folder.path(), &["--seeds", "3"]).done().contains("\nfailed 3 (not_found 3)\n"));
}

#[test]
fn a_run_that_never_ends_is_told_with_how_to_see_it_again() {
    let folder = folder_with(
        "kind: workflow\nname: again\nstart: rest\nnodes:\n  rest: { sleep: 1m }\ntransitions:\n  - { from: rest, to: rest }\n",
    );
    let error = simulate(folder.path(), &["--seeds", "2", "--first", "3"]).failed(1);
    assert!(error.starts_with("error: seed 3 breaks a promise: it has not come to an end after"), "{error}");
    assert!(error.ends_with("replay it with: steadfast simulate flow.yaml --seeds 1 --first 3\n"), "{error}");
}

#[test]
fn problems_of_the_file_are_told_as_validate_tells_them() {
    let folder = folder_with(&RACE.replace("wait_for", "wait_form"));
    let ended = simulate(folder.path(), &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.starts_with("flow.yaml:10:45: error: unknown field `wait_form`\n"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("\nerror: `flow.yaml` has an error\n"), "{}", ended.stderr);
}

#[track_caller]
fn check_wrong(arguments: &[&str], expected: &str) {
    let folder = folder_with(RESEARCH);
    let error = simulate(folder.path(), arguments).failed(2);
    assert!(error.contains(expected), "{error}");
}

#[test]
fn wrong_usage_is_told_before_anything_is_simulated() {
    check_wrong(&[], "the input of the workflow `research` does not fit its schema: \"topics\" is a required property");
    check_wrong(&["--input", "{"], "--input: is not JSON");
    check_wrong(&["--input", "@missing.json"], "cannot read the input `missing.json`");
    check_wrong(&["--workflow", "other"], "there is no workflow `other` in `flow.yaml`; there is `research`, `review`");
    check_wrong(&["--signal", "approval"], "`approval` is not a signal: expected NAME=JSON");
    check_wrong(&["--seeds", "0"], "0 is not in 1..");
    let folder = tempdir().unwrap();
    assert!(run(folder.path(), "simulate flow.yaml").failed(2).contains("cannot read `flow.yaml`"));
}

#[test]
fn a_file_can_hold_the_input() {
    let folder = folder_with(RESEARCH);
    fs::write(folder.path().join("input.json"), r#"{"topics":[]}"#).unwrap();
    let lines = simulate(folder.path(), &["--seeds", "2", "--json", "--input", "@input.json"]).lines();
    assert_eq!(lines[0]["examples"][0]["output"]["count"], 0);
}
