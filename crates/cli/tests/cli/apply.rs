//! `apply`: what is stored on a server, and what is wrong with it.

use std::fs;

use serde_json::json;

use crate::served::Served;

const FLOW: &str = "kind: workflow\nname: flow\nnodes: { a: { task: t } }\n";
const TASK: &str = "kind: task\nname: t\nrun: { value: 1 }\n";

#[test]
fn definitions_are_created_once_and_then_unchanged() {
    let served = Served::with(&[]);
    fs::create_dir(served.path().join("flows")).unwrap();
    fs::write(served.path().join("flows/flow.yaml"), FLOW).unwrap();
    fs::write(served.path().join("flows/task.json"), r#"{"kind": "task", "name": "t", "run": {"value": 1}}"#).unwrap();
    let dry = served.run("apply flows --dry-run").done();
    assert_eq!(dry, "workflow flow, version 1: to be created\ntask t, version 1: to be created\n");
    let first = served.run("apply flows").done();
    assert_eq!(first, "workflow flow, version 1: created\ntask t, version 1: created\n");
    fs::write(served.path().join("flows/flow.yaml"), FLOW.replace("a:", "b:")).unwrap();
    let second = served.document("apply flows");
    let expected = json!([
        { "kind": "workflow", "name": "flow", "version": 2, "status": "created" },
        { "kind": "task", "name": "t", "version": 1, "status": "unchanged" },
    ]);
    assert_eq!(second["items"], expected);
}

#[test]
fn what_a_file_names_may_be_on_the_server() {
    let served = Served::with(&[]);
    fs::write(served.path().join("flow.yaml"), FLOW).unwrap();
    fs::write(served.path().join("task.yaml"), TASK).unwrap();
    let ended = served.run("apply flow.yaml");
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.starts_with("flow.yaml:3:21: error: there is no task `t`\n"), "{}", ended.stderr);
    assert_eq!(served.document("apply task.yaml")["items"][0]["status"], "created");
    assert_eq!(served.run("apply flow.yaml").done(), "workflow flow, version 1: created\n");
    fs::write(served.path().join("flow.yaml"), FLOW.replace("task: t", "task: t@2")).unwrap();
    let ended = served.run("apply flow.yaml");
    assert!(ended.stderr.contains("there is no version 2 of the task `t`"), "{ended:?}");
}

#[test]
fn every_problem_is_told_with_its_place_and_nothing_is_applied() {
    let served = Served::with(&[]);
    fs::write(served.path().join("bad.yaml"), "kind: workflow\nname: bad\nnodes:\n  a: { tsk: t }\n").unwrap();
    fs::write(served.path().join("task.yaml"), TASK).unwrap();
    let ended = served.run("apply bad.yaml task.yaml");
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.starts_with("bad.yaml:4:8: error: "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("there is no task"), "{}", ended.stderr);
    let ended = served.run("apply bad.yaml task.yaml --json");
    assert_eq!(ended.code, Some(1));
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["problems"][0]["line"], &document["problems"][0]["column"]), (&json!(4), &json!(8)));
    assert_eq!(served.document("apply task.yaml --dry-run")["items"][0]["status"], "created");
}
