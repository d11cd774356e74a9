//! What those who run a server ask it.

use serde_json::json;

use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_that_it_is_well_and_what_it_did() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    for path in ["/healthz", "/readyz"] {
        let answer = served.get(path).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "status": "ok" })));
    }
    let metrics = served.get("/metrics").await;
    assert_eq!(metrics.media_type, "text/plain; version=0.0.4; charset=utf-8");
    let text = metrics.body.as_str().unwrap();
    assert!(text.contains("steadfast_runs{workflow=\"waits\",status=\"running\"} 1\n"), "{text}");
    assert!(text.contains("\nsteadfast_ready 1\n"), "{text}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_commits_tasks_requests_and_streams() {
    let served = Served::new().await;
    served.start("mails", "a").await;
    served.get("/v1/runs/nobody").await.problem(404, "run-not-found");
    served.get("/nothing").await.problem(404, "path-not-found");
    let leased = served.post("/v1/tasks/lease", r#"{"queue": "mail", "worker": "w", "max": 1, "wait": "30s"}"#).await;
    assert_eq!(leased.body["tasks"].as_array().unwrap().len(), 1, "{leased:?}");
    let stream = served.request(reqwest::Method::GET, "/v1/events").header("accept", "text/event-stream");
    let stream = stream.send().await.unwrap();
    let text = served.get("/metrics").await.body.as_str().unwrap().to_owned();
    for expected in [
        "steadfast_tasks_lent 1\n",
        "steadfast_http_streams 1\n",
        "steadfast_http_requests_total{route=\"/v1/runs/{id}\",status=\"4xx\"} 1\n",
        "steadfast_http_requests_total{route=\"none\",status=\"4xx\"} 1\n",
        "steadfast_http_requests_total{route=\"/v1/workflows/{name}/runs\",status=\"2xx\"} 1\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
        line.parse::<f64>().unwrap()
    };
    assert!(value("steadfast_commit_seconds_count") >= 2.0 && value("steadfast_commit_seconds_sum") > 0.0, "{text}");
    assert!((value("steadfast_commit_turns_count") - value("steadfast_commits_total")).abs() <= 1.0, "{text}");
    assert!(value("steadfast_http_connections") >= 1.0, "{text}");
    drop(stream);
    served.stop().await;
}
