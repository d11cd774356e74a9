//! What is said to requests that are wrong.

use reqwest::Method;
use serde_json::json;

use crate::served::{Served, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_is_refused_with_the_place() {
    let served = Served::new().await;
    let detail = served.post("/v1/workflows/hello/runs", "{\"input\": }").await.problem(400, "invalid-body");
    assert!(detail.contains("line 1 column 11"), "{detail}");
    let detail = served.post("/v1/workflows/hello/runs", r#"{"inputs": {}}"#).await.problem(400, "invalid-body");
    assert!(detail.contains("unknown field `inputs`"), "{detail}");
    for body in ["", "[", "\u{0}", "{\"wait\": 3}", "{\"wait\": \"soon\"}", "{\"wait\": \"6m\"}"] {
        served.post("/v1/workflows/hello/runs", body).await.problem(400, "invalid-body");
    }
    let deep = format!("{{\"input\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    served.post("/v1/workflows/hello/runs", deep).await.problem(422, "invalid-input");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_no_value_can_be_made_of_is_refused() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [101, 200, 100_000] {
        served.post("/v1/runs/a/signals/go", deep(depth)).await.problem(422, "refused");
    }
    assert_eq!(served.post("/v1/runs/a/signals/go", deep(50)).await.status, 200);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_are_wrong_are_refused() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    let wrong = [
        "/v1/runs?limit=0",
        "/v1/runs?limit=1001",
        "/v1/runs?limit=-1",
        "/v1/runs?limit=x",
        "/v1/runs?cursor=x!",
        "/v1/runs?cursor=+1",
        "/v1/runs?cursor=ffffffffffffffff",
        "/v1/runs?status=sleeping",
        "/v1/runs?stauts=running",
        "/v1/definitions?kind=pool",
        "/v1/definitions?cursor=workflow",
        "/v1/runs/a/events?after=x",
        "/v1/runs/a/events?after=-1",
        "/v1/runs/a/events?tree=true&after=1",
        "/v1/runs/a/events?tree=perhaps",
        "/v1/runs/a/tokens?cursor=x",
        "/v1/events?after=1.x",
        "/v1/dead-letters?cursor=1-2",
    ];
    for path in wrong {
        served.get(path).await.problem(400, "invalid-parameter");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_none_are_refused() {
    let served = Served::new().await;
    let long = "x".repeat(201);
    for id in ["a b", "a/b", "", "ä", &long] {
        let answer = served.post("/v1/workflows/hello/runs", json!({ "id": id })).await;
        answer.problem(400, "invalid-id");
    }
    served.get("/v1/runs/a%20b").await.problem(400, "invalid-id");
    served.get(&format!("/v1/runs/{long}")).await.problem(400, "invalid-id");
    served.get("/v1/runs/%ff").await.problem(400, "bad-request");
    served.post("/v1/workflows/a%20b/runs", "{}").await.problem(400, "invalid-id");
    served.post("/v1/workflows/nobody/runs", "{}").await.problem(404, "workflow-not-found");
    served.post("/v1/workflows/hello@9/runs", "{}").await.problem(404, "workflow-not-found");
    let keyed = served.request(Method::POST, "/v1/runs/a/signals/go").header("idempotency-key", "a b");
    answered(keyed).await.problem(400, "invalid-id");
    answered(served.request(Method::DELETE, "/v1/dead-letters/x")).await.problem(400, "invalid-id");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_another_type_is_refused() {
    let served = Served::new().await;
    let start = || served.request(Method::POST, "/v1/workflows/hello/runs").body("{}");
    answered(start()).await.problem(415, "unsupported-media-type");
    answered(start().header("content-type", "text/plain")).await.problem(415, "unsupported-media-type");
    let typed = start().header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(answered(typed).await.status, 201);
    let image = served.request(Method::PUT, "/v1/definitions").header("content-type", "image/png").body("x");
    answered(image).await.problem(415, "unsupported-media-type");
    let binary = served.request(Method::PUT, "/v1/definitions").body(vec![0xff, 0xfe]);
    answered(binary).await.problem(400, "invalid-body");
    served.stop().await;
}
