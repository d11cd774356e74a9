//! Starting runs.

use reqwest::Method;
use serde_json::json;

use crate::served::{Served, header};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_started_twice_under_one_id_runs_once() {
    let served = Served::new().await;
    let body = json!({ "id": "order-1", "input": { "name": "Ada" } });
    let first = served.post("/v1/workflows/hello/runs", &body).await;
    assert_eq!((first.status, &first.body["id"]), (201, &json!("order-1")));
    let again = served.post("/v1/workflows/hello/runs", r#"{"input": {"name":  "Ada"}, "id": "order-1"}"#).await;
    assert_eq!((again.status, &again.body["started_at"]), (200, &first.body["started_at"]));
    let other = served.post("/v1/workflows/hello/runs", json!({ "id": "order-1", "input": {} })).await;
    other.problem(409, "run-exists");
    let other = served.post("/v1/workflows/waits/runs", &body).await;
    other.problem(409, "run-exists");
    assert_eq!(served.get("/v1/runs").await.items("id"), ["order-1"]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_at_once_under_one_id_make_one_run() {
    let served = Served::new().await;
    let mut statuses = Vec::new();
    let body = json!({ "id": "one", "input": {} });
    let starts: Vec<_> = (0..16).map(|_| tokio::spawn(served.post("/v1/workflows/waits/runs", &body))).collect();
    for start in starts {
        statuses.push(start.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses[..15], [200; 15]);
    assert_eq!(statuses[15], 201);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_id_gets_one_and_its_place() {
    let served = Served::new().await;
    let request = served.request(Method::POST, "/v1/workflows/hello/runs").header("content-type", "application/json");
    let response = request.body("{}").send().await.unwrap();
    assert_eq!(response.status(), 201);
    let location = header(&response, "location");
    let run = served.get(&location).await;
    assert_eq!(format!("/v1/runs/{}", run.body["id"].as_str().unwrap()), location);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_for_the_end_of_the_run() {
    let served = Served::new().await;
    let body = json!({ "input": { "name": "Ada" }, "wait": "30s" });
    let answer = served.post("/v1/workflows/hello/runs", body).await;
    assert_eq!((answer.status, &answer.body["status"]), (201, &json!("completed")));
    assert_eq!(answer.body["output"], json!({ "text": "hello Ada" }));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_has_waited_long_enough_tells_the_run_as_it_is() {
    let served = Served::new().await;
    let answer = served.post("/v1/workflows/waits/runs", json!({ "wait": "50ms" })).await;
    assert_eq!((answer.status, &answer.body["status"]), (201, &json!("running")));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_does_not_fit_is_refused_with_its_places() {
    let served = Served::new().await;
    let answer = served.post("/v1/workflows/hello/runs", json!({ "input": { "name": 7 } })).await;
    answer.problem(422, "invalid-input");
    assert_eq!(answer.body["violations"][0]["pointer"], "/name");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_input_is_an_empty_one_and_null_is_null() {
    let served = Served::new().await;
    let nothing = served.post("/v1/workflows/waits/runs", "{}").await;
    assert_eq!(nothing.body["input"], json!({}));
    let null = served.post("/v1/workflows/waits/runs", r#"{"input": null}"#).await;
    assert_eq!((null.status, &null.body["input"]), (201, &json!(null)));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_pass_as_they_were_written() {
    let served = Served::new().await;
    let body = r#"{"id": "exact", "input": {"b": 1.50, "a": 12345678901234567890}}"#;
    assert_eq!(served.post("/v1/workflows/waits/runs", body).await.status, 201);
    let text = served.request(Method::GET, "/v1/runs/exact").send().await.unwrap().text().await.unwrap();
    assert!(text.contains(r#""input":{"b": 1.50, "a": 12345678901234567890}"#), "{text}");
    served.stop().await;
}
