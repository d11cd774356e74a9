//! `steadfast backup`: a copy of a store that is in use, and what is refused.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{run, steadfast};
use crate::serve::{SERVE, ask, end, start};

const WORKFLOW: &str = r#"{"kind": "workflow", "name": "w", "nodes": {"a": {"wait": {"signal": "go"}}}}"#;

#[test]
fn a_copy_made_while_runs_are_started_holds_all_that_began_before_it() {
    let folder = tempdir().unwrap();
    let (child, address) = start(folder.path(), SERVE);
    assert!(ask(&address, "PUT /v1/definitions", WORKFLOW).starts_with("HTTP/1.1 200 "));
    let begin = |number: u32| {
        let answer = ask(&address, "POST /v1/workflows/w/runs", &format!(r#"{{"id": "r{number}"}}"#));
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    };
    (0..50).for_each(begin);
    let copying = steadfast(folder.path(), "backup copy.db --store s.db --json").stdout(Stdio::piped()).spawn();
    let copying = copying.unwrap();
    (50..150).for_each(begin);
    let copied = copying.wait_with_output().unwrap();
    assert_eq!(copied.status.code(), Some(0));
    let told: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!(told["bytes"], fs::metadata(folder.path().join("copy.db")).unwrap().len());
    let beside: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|found| found.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!beside.iter().any(|name| name.starts_with("copy.db.") || name.starts_with("copy.db-")), "{beside:?}");
    end(child, "-TERM");

    // The copy alone is a store that goes on: whole runs, the first fifty among them, and none twice.
    let (child, address) = start(folder.path(), &SERVE.replace("s.db", "copy.db"));
    let list = ask(&address, "GET /v1/runs?limit=1000", "");
    let count = list.matches(r#""id":"#).count();
    assert!((50..=150).contains(&count), "{count}");
    for number in (0..count).chain([0]) {
        let run = ask(&address, &format!("GET /v1/runs/r{number}"), "");
        assert!(run.contains(r#""status":"running""#), "{run}");
    }
    assert!(ask(&address, "POST /v1/runs/r0/signals/go", "1").starts_with("HTTP/1.1 200 "));
    assert!(ask(&address, "GET /v1/runs/r0", "").contains(r#""status":"completed""#));
    end(child, "-TERM");
}

#[test]
fn a_copy_takes_no_other_files_place() {
    let folder = tempdir().unwrap();
    let (child, _) = start(folder.path(), SERVE);
    end(child, "-TERM");
    fs::write(folder.path().join("taken"), "dear").unwrap();
    let error = run(folder.path(), "backup taken --store s.db").failed(2);
    assert!(error.contains("`taken` exists already"), "{error}");
    assert_eq!(fs::read_to_string(folder.path().join("taken")).unwrap(), "dear");
    let error = run(folder.path(), "backup copy.db --store nothing.db").failed(2);
    assert!(error.contains("there is no store `nothing.db`"), "{error}");
    let error = run(folder.path(), "backup copy.db --store taken").failed(2);
    assert!(error.contains("`taken` is not a store"), "{error}");
    let error = run(folder.path(), "backup no/copy.db --store s.db").failed(1);
    assert!(error.contains("no/copy.db"), "{error}");
    assert!(!folder.path().join("copy.db").exists() && !folder.path().join("copy.db.partial").exists());
}
