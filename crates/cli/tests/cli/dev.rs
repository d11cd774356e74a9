//! `dev`: a folder that is served, and what happens when it changes.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::command::{names_in, run};
use crate::served::{Served, next_line};

const DEV: &str = "dev --listen 127.0.0.1:0 --json";
const TASK: &str = "kind: task\nname: t\nrun: { value: 1 }\n";
const FLOW: &str = "kind: workflow\nname: flow\nnodes: { a: { task: t, output: { output.is: \"${result}\" } } }\n";

/// What is told next: the problems, then what was applied.
fn told(served: &mut Served) -> (Value, Value) {
    let problems = next_line(&mut served.stdout)["problems"].take();
    (problems, next_line(&mut served.stdout)["applied"].take())
}

#[test]
fn a_folder_is_served_and_what_changes_in_it_is_applied() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("task.yaml"), TASK).unwrap();
    fs::write(folder.path().join("flow.yaml"), FLOW).unwrap();
    let mut served = Served::begin(folder, DEV);
    assert_eq!(names_in(&served.path().join(".steadfast"))[..2], [".gitignore", "dev.db"]);
    assert_eq!(served.run("start flow --wait").done(), "{\n  \"is\": 1\n}\n");

    fs::write(served.path().join("task.yaml"), TASK.replace("value: 1", "value: 22")).unwrap();
    let (problems, applied) = told(&mut served);
    assert_eq!((problems, &applied[0]["name"], &applied[0]["version"]), (json!([]), &json!("t"), &json!(2)));
    assert_eq!(served.run("start flow --wait").done(), "{\n  \"is\": 22\n}\n");

    // What is wrong is told with its place, and what was good goes on.
    fs::write(served.path().join("flow.yaml"), FLOW.replace("task: t", "tsk: t")).unwrap();
    let (problems, applied) = told(&mut served);
    assert_eq!((&problems[0]["line"], &problems[0]["column"], applied), (&json!(3), &json!(15), json!([])));
    assert_eq!(served.run("start flow --wait").done(), "{\n  \"is\": 22\n}\n");

    assert!(Command::new("kill").args(["-INT", &served.child.id().to_string()]).status().unwrap().success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn files_with_errors_do_not_hold_up_the_others_and_a_folder_may_be_empty() {
    let mut served = Served::begin(tempdir().unwrap(), DEV);
    fs::write(served.path().join("flow.yaml"), FLOW).unwrap();
    let (problems, applied) = told(&mut served);
    assert_eq!((&problems[0]["message"], applied), (&json!("there is no task `t`"), json!([])));
    fs::write(served.path().join("bad.yaml"), "kind: tusk\n").unwrap();
    told(&mut served);
    fs::write(served.path().join("task.yaml"), TASK).unwrap();
    let (problems, applied) = told(&mut served);
    assert_eq!(problems[0]["file"], "./bad.yaml");
    assert_eq!(applied.as_array().unwrap().len(), 2, "{applied}");
    assert_eq!(served.run("start flow --wait").done(), "{\n  \"is\": 1\n}\n");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = tempdir().unwrap();
    let error = run(folder.path(), "dev nowhere").failed(2);
    assert!(error.contains("there is no folder `nowhere`"), "{error}");
    let error = run(folder.path(), "dev --listen 0.0.0.0:0 --store s.db").failed(2);
    assert!(error.contains("is no loopback address"), "{error}");
    assert_eq!(names_in(folder.path()), [""; 0]);
}
