//! Programs.

use serde_json::{Value, json};
use steadfast::core::failure::Failure;
use steadfast::core::json::Json;
use steadfast::core::limits;
use steadfast::effects::{Commands, Settings};

use crate::asker::{details, engine, lacking, run, settings, started, task, told};
use crate::support::eventually;

async fn shell(script: &str) -> Result<Value, Failure> {
    run(&engine(), "command", &task(json!({ "program": "/bin/sh", "args": ["-c", script] }))).await
}

#[tokio::test]
async fn a_program_gets_the_input_as_json_and_gives_json() {
    let mut input = task(json!({ "program": "cat" }));
    input.input = Json::parse(r#"{"a":[1.50,"ü"]}"#).unwrap();
    assert_eq!(run(&engine(), "command", &input).await.unwrap().to_string(), r#"{"a":[1.5,"ü"]}"#);
    for (stdin, expected) in [(json!("[1]"), json!([1])), (json!({ "b": 2 }), json!({ "b": 2 }))] {
        let input = task(json!({ "program": "cat", "stdin": stdin }));
        assert_eq!(run(&engine(), "command", &input).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are() {
    let input = task(json!({ "program": "printf", "args": ["[\"%s\",%s]", "$HOME; `id` *", 7] }));
    assert_eq!(run(&engine(), "command", &input).await.unwrap(), json!(["$HOME; `id` *", 7]));
}

#[tokio::test]
async fn a_program_sees_only_what_it_should_of_the_environment() {
    let script = r#"printf '['; env | cut -d= -f1 | sed 's/.*/"&",/'; printf '"%s","%s","%s"]' "$GIVEN" "$STEADFAST_TASK_ID" "$STEADFAST_ATTEMPT""#;
    let mut input = task(json!({ "program": "/bin/sh", "args": ["-c", script], "env": { "GIVEN": "g" } }));
    input.attempt = 2;
    let Value::Array(mut names) = run(&engine(), "command", &input).await.unwrap() else { panic!("a list") };
    assert_eq!(names.split_off(names.len() - 3), [json!("g"), json!("asker:a/node"), json!("2")]);
    let allowed = [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "GIVEN",
        "STEADFAST_TASK_ID",
        "STEADFAST_ATTEMPT",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    ];
    for name in names {
        assert!(allowed.contains(&name.as_str().unwrap()), "{name}");
    }
}

#[tokio::test]
async fn no_output_is_null_and_what_is_not_json_is_refused_with_a_part_of_it() {
    assert_eq!(shell("true").await.unwrap(), Value::Null);
    let (kind, retryable, message) = told(shell("echo hello there").await);
    assert_eq!((kind.as_str(), retryable), ("invalid_output", false));
    assert!(message.contains("it wrote: hello there"), "{message}");
}

#[tokio::test]
async fn a_program_that_fails_may_be_tried_again_and_shows_the_end_of_its_errors() {
    let outcome = shell("yes error | head -c 100000 >&2; echo the end >&2; exit 3").await;
    let details = details(outcome.clone());
    assert_eq!(details["status"], json!(3));
    let stderr = details["stderr"].as_str().unwrap();
    assert!(stderr.starts_with('…') && stderr.ends_with("the end"), "{stderr}");
    assert!(stderr.len() <= limits::EXCERPT_BYTES_MAX + '…'.len_utf8());
    let (kind, retryable, message) = told(outcome);
    assert_eq!((kind.as_str(), retryable), ("task_failed", true));
    assert!(message.starts_with("program `/bin/sh` ended with exit status: 3: …"), "{message}");
    let (_, retryable, message) = told(shell("kill -9 $$").await);
    assert!(retryable && message.contains("signal: 9"), "{message}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_tried_again() {
    let outcome = run(&engine(), "command", &task(json!({ "program": "/no/such/program" }))).await;
    let (kind, retryable, message) = told(outcome);
    assert_eq!((kind.as_str(), retryable), ("not_found", false), "{message}");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_what_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    let script = format!("(while true; do date +%s%N > {0}; sleep 0.02; done) & wait", alive.display());
    let mut input = task(json!({ "program": "/bin/sh", "args": ["-c", script] }));
    input.timeout_ms = Some(200);
    let (kind, retryable, message) = told(run(&engine(), "command", &input).await);
    assert_eq!((kind.as_str(), retryable), ("timeout", true));
    assert_eq!(message, "attempt 1 of node `x` took longer than 200ms");
    // Its grandchild writes no more: what is read twice is the same.
    let read = || std::fs::read_to_string(&alive).unwrap();
    eventually(
        async || {
            let before = read();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            before == read()
        },
        |is_over| *is_over,
    )
    .await;
}

#[tokio::test]
async fn a_program_that_writes_without_end_is_stopped_at_the_limit() {
    let (kind, retryable, message) = told(shell("yes").await);
    assert_eq!((kind.as_str(), retryable), ("invalid_output", false));
    assert!(message.contains("VALUE_BYTES_MAX"), "{message}");
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_is_no_fault() {
    let mut input = task(json!({ "program": "true" }));
    input.input = Json::encode(&"x".repeat(1_000_000)).unwrap();
    assert_eq!(run(&engine(), "command", &input).await.unwrap(), Value::Null);
}

#[tokio::test]
async fn commands_run_only_where_they_are_allowed() {
    let engine = started(|builder| builder.effects(Settings { commands: Commands::Refused, ..settings() }));
    let lacking = lacking(&engine, "command", &task(json!({ "program": "true" }))).await;
    assert_eq!(lacking, "commands are not allowed here: allow them with `--allow-command`");
}
