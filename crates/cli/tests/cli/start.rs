//! `start` and `signal`: runs on a server, their end, and what is typed wrongly.

use std::fs;
use std::io::BufReader;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::served::{Served, next_line};

const DOUBLE: &str = r#"
kind: workflow
name: double
input: { type: object, required: [n], properties: { n: { type: integer } } }
nodes:
  double: { run: { value: "${input.n * 2}" }, output: { output.doubled: "${result}" } }
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

#[test]
fn a_run_is_started_once_under_its_id() {
    let served = Served::with(&[DOUBLE, WAITS]);
    assert_eq!(served.run(r#"start double --input {"n":4} --id first"#).done(), "first\n");
    let again = served.run(r#"start double --input {"n":4} --id first"#);
    assert_eq!((again.code, &*again.stdout), (Some(0), "first\n"));
    assert!(again.stderr.starts_with("note: run `first` was there already"), "{again:?}");
    let error = served.run(r#"start double --input {"n":5} --id first"#).failed(2);
    assert!(error.contains("`first`"), "{error}");
    // Without an id each start is another run.
    let ids = [served.run("start waits").done(), served.run("start waits").done()];
    assert!(ids[0] != ids[1] && ids[0].trim().len() == 36, "{ids:?}");
    assert_eq!(served.document("start waits --id third")["status"], "running");
}

#[test]
fn who_waits_gets_the_output_and_an_exit_code_by_how_it_ended() {
    let served = Served::with(&[DOUBLE, FAILS, WAITS]);
    fs::write(served.path().join("n.json"), "{\"n\": 21}\n").unwrap();
    assert_eq!(served.run("start double --input @n.json --wait").done(), "{\n  \"doubled\": 42\n}\n");
    let document = served.document("start double --input @n.json --wait 30s");
    assert_eq!((&document["status"], &document["output"]), (&json!("completed"), &json!({ "doubled": 42 })));
    let error = served.run("start fails --wait --id f").failed(1);
    assert_eq!(
        error,
        "error: `fails` failed at node `break` (task_failed): out of paper\n`steadfast runs show f` shows more\n"
    );
    let error = served.run("start waits --wait 10ms --id w").failed(1);
    assert!(error.contains("run `w` is still running") && error.contains("steadfast runs show w"), "{error}");
    served.run("runs cancel w --reason late").done();
    let error = served.run("start waits --wait --id w").failed(1);
    assert!(error.contains("`waits` was cancelled: late"), "{error}");
}

#[test]
fn whoever_follows_sees_every_event_until_the_end() {
    let served = Served::with(&[DOUBLE]);
    let lines = served.run(r#"start double --input {"n":1} --id d --follow"#).done();
    let first = lines.lines().next().unwrap();
    assert!(first.starts_with("    1  ") && first.ends_with(r#"  workflow.started      input={"n":1}"#), "{lines}");
    assert!(lines.lines().last().unwrap().contains("workflow.completed"), "{lines}");
    let lines = served.run(r#"start double --input {"n":1} --id d --follow --json"#).lines();
    let (run, events) = lines.split_last().unwrap();
    assert_eq!((&run["id"], &run["output"]), (&json!("d"), &json!({ "doubled": 2 })));
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_run_goes_on_when_whoever_waits_for_it_is_interrupted() {
    let served = Served::with(&[WAITS]);
    let mut command = served.command("start waits --id w --follow --json");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    next_line(&mut stdout);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`steadfast runs show w` shows how far it is"));
    assert_eq!(served.document("runs show w")["status"], "running");
}

#[test]
fn whoever_waits_goes_on_when_the_server_was_killed_and_started_again() {
    let mut served = Served::with(&[WAITS]);
    let waiter = served.command("start waits --id w --wait").stdout(Stdio::piped()).spawn().unwrap();
    while served.run("runs show w").code != Some(0) {}
    served.killed_and_begun_again();
    served.run("signal w answer 7").done();
    let output = waiter.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\n  \"answer\": 7\n}\n");
}

#[test]
fn a_signal_is_sent_once_under_its_key_and_ends_the_waiting() {
    let served = Served::with(&[WAITS]);
    served.run("start waits --id w").done();
    assert_eq!(
        served.run(r#"signal w answer {"ok":true} --idempotency-key k"#).done(),
        "sent `answer` to run `w`, which is over now\n"
    );
    let run = served.document("runs show w");
    assert_eq!(run["output"], json!({ "answer": { "ok": true } }));
    // The same again is answered as it was; another one finds the run over.
    assert_eq!(served.document(r#"signal w answer {"ok":true} --idempotency-key k"#)["id"], "w");
    let error = served.run("signal w answer").failed(1);
    assert!(error.contains("run `w` is completed"), "{error}");
    let error = served.run("signal nobody answer").failed(2);
    assert!(error.contains("there is no run `nobody`; `steadfast runs list` lists"), "{error}");
}

#[test]
fn what_is_typed_wrongly_is_told_with_what_would_be_right() {
    let served = Served::with(&[DOUBLE]);
    let check = |line: &str, expected: &str| {
        let error = served.run(line).failed(2);
        assert!(error.contains(expected), "{line}: {error}");
    };
    check("start duble", "there is no workflow `duble`; there is `double`");
    check("start double --input {n:1}", "--input cannot be read as JSON: key must be a string at line 1 column 2");
    check("start double --input @missing.json", "the input `missing.json` cannot be read");
    check(r#"start double --input {"n":"x"}"#, "the input does not fit the workflow `double`");
    check("start double --wait 5", "`5` has no unit: expected one such as `5ms`, `5s`");
    check("start double --wait soon", "`soon` is not a duration");
    check("start double --id a/b", "allowed are letters, digits");
    check("signal w answer {", "the payload cannot be read as JSON");
    let runs: Value = served.document("runs list");
    assert_eq!(runs["items"], json!([]));
}
