//! Mocks.

use std::time::Instant;

use serde_json::json;

use crate::asker::{engine, run, task, told};

#[tokio::test]
async fn a_mock_takes_its_time_and_gives_its_value() {
    let begin = Instant::now();
    let result = run(&engine(), "mock", &task(json!({ "value": { "a": 1 }, "delay": "60ms" }))).await;
    assert_eq!(result, Ok(json!({ "a": 1 })));
    assert!(begin.elapsed().as_millis() >= 60);
}

#[tokio::test]
async fn a_mock_fails_by_the_attempt_of_the_policy() {
    let mut input = task(json!({ "value": 1, "fail": { "times": 1, "message": "not yet" } }));
    assert_eq!(told(run(&engine(), "mock", &input).await), ("task_failed".to_owned(), true, "not yet".to_owned()));
    input.attempt = 2;
    assert_eq!(run(&engine(), "mock", &input).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_mock_that_is_too_slow_runs_into_its_time_limit() {
    let mut input = task(json!({ "delay": "1h" }));
    input.timeout_ms = Some(30);
    let (kind, ..) = told(run(&engine(), "mock", &input).await);
    assert_eq!(kind, "timeout");
}

#[tokio::test]
async fn a_mock_that_is_told_nonsense_says_so() {
    let (kind, retryable, message) = told(run(&engine(), "mock", &task(json!({ "vaule": 1 }))).await);
    assert_eq!((kind.as_str(), retryable), ("invalid_input", false));
    assert!(message.contains("unknown field `vaule`"), "{message}");
}
