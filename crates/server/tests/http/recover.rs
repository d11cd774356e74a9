//! Taking up again what is stuck.

use serde_json::{Value, json};

use crate::served::Served;

const TASKS: &str = "
kind: workflow
name: stumbles
nodes: { a: { run: { mock: { fail: { times: 1 } } }, retry: { max_attempts: 9, delay: 1h } } }
---
kind: workflow
name: lacking
nodes: { a: { run: { function: nobody } } }
";

/// Waits until the run `r` waits so.
async fn until(served: &Served, field: &str, value: &str) {
    while served.get("/v1/runs/r/why").await.body["waits"][0][field] != value {
        tokio::task::yield_now().await;
    }
}

async fn recovered(served: &Served, body: Value) -> Value {
    let answer = served.post("/v1/runs/r/recover", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_waits_for_its_time_is_begun() {
    let served = Served::new().await;
    served.apply(TASKS).await;
    served.start("stumbles", "r").await;
    until(&served, "kind", "retry").await;
    assert_eq!(recovered(&served, json!({})).await["retried"], 1);
    let run = served.post("/v1/workflows/stumbles/runs", json!({ "id": "r", "wait": "30s" })).await;
    assert_eq!(run.body["status"], "completed");
    served.post("/v1/runs/r/recover", "{}").await.problem(409, "run-ended");
    served.post("/v1/runs/nobody/recover", "{}").await.problem(404, "run-not-found");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_loses_its_task_to_the_next_who_asks() {
    let served = Served::new().await;
    served.start("mails", "r").await;
    let lease = async || {
        let ask = json!({ "queue": "mail", "worker": "w", "wait": "10s", "visibility": "1h" });
        served.post("/v1/tasks/lease", ask).await.body["tasks"][0].clone()
    };
    let first = lease().await;
    assert_eq!(recovered(&served, json!({})).await["taken_back"], 0);
    assert_eq!(recovered(&served, json!({ "silent_for": "0ms" })).await["taken_back"], 1);
    assert_eq!(recovered(&served, json!({ "silent_for": "0ms" })).await["taken_back"], 0);
    let second = lease().await;
    assert_eq!(first["id"], second["id"]);
    let said = |task: &Value| json!({ "lease": task["lease"], "result": 1 });
    assert_eq!(served.post("/v1/tasks/run:r:1/complete", said(&first)).await.status, 409);
    assert_eq!(served.post("/v1/tasks/run:r:1/complete", said(&second)).await.status, 200);
    let answer = served.post("/v1/runs/r/recover", json!({ "silent_for": "soon" })).await;
    answer.problem(400, "invalid-body");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_task_is_tried_again() {
    let served = Served::new().await;
    served.apply(TASKS).await;
    served.start("lacking", "r").await;
    until(&served, "task", "parked").await;
    let told = recovered(&served, json!({})).await;
    assert_eq!((&told["unparked"], &told["retried"], &told["dispatched"]), (&json!(1), &json!(0), &json!(0)));
    // Nothing has changed here, so it is parked once more.
    until(&served, "task", "parked").await;
    served.stop().await;
}
