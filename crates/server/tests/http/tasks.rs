//! Workers over HTTP.

use serde_json::{Value, json};

use crate::served::{Answered, Served};

async fn lease(served: &Served, wait: &str, visibility: &str) -> Vec<Value> {
    let ask = json!({ "queue": "mail", "worker": "w1", "max": 10, "wait": wait, "visibility": visibility });
    let answer = served.post("/v1/tasks/lease", ask).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["tasks"].as_array().unwrap().clone()
}

async fn say(served: &Served, task: &Value, what: &str, more: Value) -> Answered {
    let mut body = json!({ "lease": task["lease"] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    served.post(&format!("/v1/tasks/{}/{what}", task["id"].as_str().unwrap()), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_leases_a_task_and_completes_it() {
    let served = Served::new().await;
    let body = json!({ "id": "r", "input": { "to": "ann" } });
    assert_eq!(served.post("/v1/workflows/mails/runs", body).await.status, 201);
    let tasks = lease(&served, "10s", "30s").await;
    assert_eq!(tasks.len(), 1);
    let task = &tasks[0];
    assert_eq!(task["id"], "run:r:1");
    assert_eq!(task["run_id"], "r");
    assert_eq!(task["node"], "send");
    assert_eq!(task["attempt"], 1);
    assert_eq!(task["input"], json!({ "to": "ann" }));
    assert_eq!(say(&served, task, "heartbeat", json!({ "progress": 50 })).await.status, 200);
    assert_eq!(say(&served, task, "complete", json!({ "result": { "ok": true } })).await.status, 200);
    assert_eq!(say(&served, task, "complete", json!({ "result": "again" })).await.status, 200);
    let run =
        served.post("/v1/workflows/mails/runs", json!({ "id": "r", "input": { "to": "ann" }, "wait": "10s" })).await;
    assert_eq!(run.body["status"], "completed");
    assert_eq!(run.body["output"], json!({ "sent": { "ok": true } }));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_worker_is_told_that_its_lease_is_lost() {
    let served = Served::new().await;
    served.start("mails", "r").await;
    let late = lease(&served, "10s", "1s").await.remove(0);
    let other = lease(&served, "30s", "30s").await.remove(0);
    assert_eq!(late["id"], other["id"]);
    for what in ["heartbeat", "complete"] {
        let answer = say(&served, &late, what, json!({})).await;
        assert_eq!((answer.status, &answer.body["type"]), (409, &json!("/problems/lease-lost")), "{what}");
    }
    assert_eq!(say(&served, &other, "complete", json!({ "result": 2 })).await.status, 200);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_failure_ends_the_run() {
    let served = Served::new().await;
    served.start("mails", "r").await;
    let task = lease(&served, "10s", "30s").await.remove(0);
    let error = json!({ "error": { "message": "no such address", "retryable": false, "details": { "code": 550 } } });
    assert_eq!(say(&served, &task, "fail", error).await.status, 200);
    let run = served.post("/v1/workflows/mails/runs", json!({ "id": "r", "wait": "10s" })).await;
    assert_eq!(run.body["status"], "failed");
    assert_eq!(run.body["error"]["message"], "no such address");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_leases_are_refused_with_a_reason() {
    let served = Served::new().await;
    let check = async |body: Value, expected: &str| {
        let answer = served.post("/v1/tasks/lease", body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(expected), "{answer:?}");
    };
    check(json!({ "queue": "mail" }), "missing field `worker`").await;
    check(json!({ "queue": "", "worker": "w" }), "queue").await;
    check(json!({ "queue": "mail", "worker": "w", "max": 0 }), "`max` is 0").await;
    check(json!({ "queue": "mail", "worker": "w", "max": 101 }), "`max` is 101").await;
    check(json!({ "queue": "mail", "worker": "w", "wait": "soon" }), "`wait`").await;
    check(json!({ "queue": "mail", "worker": "w", "visibility": "1ms" }), "`visibility`").await;
    let answer = served.post("/v1/tasks/nonsense/complete", json!({ "lease": "x" })).await;
    assert_eq!((answer.status, &answer.body["type"]), (400, &json!("/problems/invalid-id")));
    let answer = served.post("/v1/tasks/run:nobody:1/complete", json!({ "lease": "x" })).await;
    assert_eq!(answer.status, 409);
    served.stop().await;
}
