//! `runs`: listed, shown, followed, told what to do.

use std::io::BufReader;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::served::{Served, next_line};

const CHILD: &str = "kind: workflow\nname: child\nnodes: { work: { run: { mock: { fail: { message: \"broken\\tpipe\", retryable: false } } } } }\n";
const FAN: &str = r#"
kind: workflow
name: fan
nodes:
  begin:
  few: { run: { value: 1 } }
  middle:
  many: { run: { value: 1 } }
  below: { workflow: child }
  end:
transitions:
  - { from: begin, to: few, spawn: 2, group: pair }
  - { from: few, to: middle, join: { group: pair } }
  - { from: middle, to: many, spawn: 9, group: crowd }
  - { from: many, to: below, join: { group: crowd } }
  - { from: below, to: end, on: error }
"#;
const WAITS: &str = "kind: workflow\nname: waits\nnodes: { ask: { wait: { signal: answer } } }\n";

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn lists_are_filtered_and_say_when_there_is_more() {
    let served = Served::with(&[CHILD, WAITS]);
    for id in ["w1", "w2", "w3"] {
        served.run(&format!("start waits --id {id}")).done();
    }
    served.run("start child --id c --wait").failed(1);
    let table = served.run("runs list").done();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["ID", "WORKFLOW", "STATUS", "STARTED", "DURATION", "ERROR"]
    );
    assert!(
        lines[1].starts_with("c   child     failed   20") && lines[1].ends_with("task_failed: broken pipe"),
        "{table}"
    );
    assert_eq!(lines.len(), 5, "{table}");
    assert_eq!(ids(&served.document("runs list --workflow waits")), ["w3", "w2", "w1"]);
    assert_eq!(ids(&served.document("runs list --status failed")), ["c"]);
    let part = served.document("runs list --limit 2");
    assert_eq!((ids(&part), part["next_cursor"].is_string()), (vec!["c", "w3"], true));
    let part = served.run("runs list --limit 2");
    assert_eq!((part.stdout.lines().count(), part.stderr.contains("there are more")), (3, true), "{part:?}");
    let all = served.document("runs list --all");
    assert_eq!((ids(&all).len(), &all["next_cursor"]), (4, &Value::Null));
    let none = served.run("runs list --workflow nothing");
    assert_eq!((none.code, &*none.stdout, &*none.stderr), (Some(0), "", "note: there are no such runs\n"));
    served.run("runs list --status done").failed(2);
    served.run("runs list --limit 0").failed(2);
}

#[test]
fn a_run_is_shown_as_a_tree_in_which_many_branches_are_one_line() {
    let served = Served::with(&[CHILD, FAN]);
    served.run("start fan --id f --wait").done();
    let shown = served.run("runs show f").done();
    let (facts, tree) = shown.split_once("\n\n").unwrap();
    assert!(facts.starts_with("run       f\nworkflow  fan, version 1\nstatus    completed\nstarted   20"), "{shown}");
    let shape: Vec<String> = tree.lines().map(shape).collect();
    let id = served.document("runs list --root f")["items"][0]["id"].as_str().unwrap().to_owned();
    let expected = [
        "fan (f)  completed",
        "├─ begin  completed",
        "├─ pair:",
        "│  └─ few  ×2: 2 completed",
        "│     ├─ [0]  completed",
        "│     └─ [1]  completed",
        "├─ middle  completed",
        "├─ crowd:",
        "│  └─ many  ×9: 9 completed",
        "├─ below  failed",
        "├─ end  completed",
        &format!("└─ child ({id})  failed  broken pipe"),
        "   └─ work  failed",
    ];
    assert_eq!(shape, expected, "{shown}");

    let document = served.document("runs show f");
    assert_eq!(document["children"][0]["workflow"], "child");
    assert_eq!(document["tokens"].as_array().unwrap().len() as u64, document["token_count"].as_u64().unwrap());
    assert_eq!((&document["tokens_are_all"], &document["children_are_all"]), (&json!(true), &json!(true)));
}

/// A line of a tree without its times.
fn shape(line: &str) -> String {
    let is_time = |part: &&str| !(part.ends_with(" ms") || part.ends_with(" s"));
    line.split("  ").filter(is_time).collect::<Vec<_>>().join("  ")
}

#[test]
fn a_history_is_printed_from_any_place_and_with_its_tree() {
    let served = Served::with(&[CHILD, FAN]);
    served.run("start fan --id f --wait").done();
    let all = served.run("runs events f --json").lines();
    assert_eq!((&all[0]["type"], &all[0]["sequence"]), (&json!("workflow.started"), &json!(1)));
    let rest = served.run("runs events f --json --after 3").lines();
    assert_eq!(rest, all[3..]);
    assert_eq!(served.run("runs events f --json --follow --after 3").lines(), rest);
    assert_eq!(served.run("runs events f").done().lines().count(), all.len());
    let tree = served.run("runs events f --tree --json").lines();
    assert!(tree.len() > all.len() && tree.iter().any(|event| event["workflow"] == "child"));
    assert_eq!(served.run("runs events f --tree --follow --json").lines(), tree);
    let failed = served.run("runs events f --tree").done();
    assert!(
        failed
            .lines()
            .any(|line| line.contains("token.failed") && line.ends_with("work #1 error=task_failed: broken pipe")),
        "{failed}"
    );
    let error = served.run("runs events f --after soon").failed(2);
    assert!(error.contains("`soon`"), "{error}");
    served.run("runs events nobody --follow").failed(2);
}

#[test]
fn whoever_follows_goes_on_when_the_server_was_killed_and_started_again() {
    let mut served = Served::with(&[WAITS]);
    served.run("start waits --id w").done();
    let mut follower = served.command("runs events w --follow --json").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(follower.stdout.take().unwrap());
    let mut seen = vec![next_line(&mut stdout)];
    served.killed_and_begun_again();
    served.run("signal w answer").done();
    while seen.last().unwrap()["type"] != "workflow.completed" {
        seen.push(next_line(&mut stdout));
    }
    assert!(follower.wait().unwrap().success());
    assert_eq!(seen, served.run("runs events w --json").lines());
}

#[test]
fn runs_are_paused_resumed_and_cancelled() {
    let served = Served::with(&[WAITS]);
    served.run("start waits --id a").done();
    served.run("start waits --id b").done();
    assert_eq!(served.run("runs pause a b").done(), "a  paused\nb  paused\n");
    assert_eq!(served.run("runs resume a --json").lines(), [json!({ "id": "a", "status": "running" })]);
    assert_eq!(served.run("runs cancel a --reason enough").done(), "a  cancelled\n");
    assert_eq!(served.document("runs show a")["reason"], "enough");
    // The same again does no more, and the others are told although one is not there.
    let ended = served.run("runs cancel nobody a b");
    assert_eq!(ended.stdout, "a  cancelled\nb  cancelled\n");
    assert!(ended.failed(2).contains("there is no run `nobody`"));
    let error = served.run("runs pause a").failed(1);
    assert!(error.contains("run `a` is cancelled"), "{error}");
}
