//! What runs are told.

use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Served, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_sent_twice_under_one_key_arrives_once() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    for _ in 0..3 {
        let request = served.request(Method::POST, "/v1/runs/a/signals/go").header("idempotency-key", "first");
        let answer = answered(request.header("content-type", "application/json").body("1")).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "id": "a", "status": "running" })));
    }
    assert_eq!(signals(&served).await, 1);
    served.post("/v1/runs/a/signals/go", "2").await;
    served.post("/v1/runs/a/signals/go", "3").await;
    assert_eq!(served.get("/v1/runs/a").await.body["status"], "completed");
    served.post("/v1/runs/a/signals/go", "4").await.problem(409, "run-ended");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_of_its_signal() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    for signal in ["go", "stop", "go", "stop"] {
        let request = served.request(Method::POST, &format!("/v1/runs/a/signals/{signal}"));
        assert_eq!(answered(request.header("idempotency-key", "k".repeat(200))).await.status, 200);
    }
    assert_eq!(signals(&served).await, 2);
    served.stop().await;
}

async fn signals(served: &Served) -> usize {
    let events = served.get("/v1/runs/a/events?limit=1000").await;
    events
        .items("type")
        .iter()
        .filter(|event_type| event_type.contains("signal") && event_type.contains("received"))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_signal_brings_reaches_the_run() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    served.post("/v1/runs/a/signals/go", json!({ "ok": true })).await;
    assert_eq!(served.get("/v1/runs/a").await.body["output"], json!({ "got": { "ok": true } }));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controls_do_no_more_the_second_time() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    let told = async |control: &str| served.post(&format!("/v1/runs/a/{control}"), r#"{"reason": "why not"}"#).await;
    for (control, status) in [("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")] {
        for _ in 0..2 {
            let answer = told(control).await;
            assert_eq!((answer.status, &answer.body), (200, &json!({ "id": "a", "status": status })));
        }
    }
    assert_eq!(served.get("/v1/runs/a").await.body["reason"], "why not");
    told("pause").await.problem(409, "run-ended");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controls_need_no_body() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    let answer = answered(served.request(Method::POST, "/v1/runs/a/cancel")).await;
    assert_eq!((answer.status, &answer.body["status"]), (200, &Value::from("cancelled")));
    answered(served.request(Method::POST, "/v1/runs/b/cancel")).await.problem(404, "run-not-found");
    served.stop().await;
}
