//! Lists and their pages.

use serde_json::{Value, json};

use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_runs_stay_right_while_runs_are_added() {
    let served = Served::new().await;
    for number in 0..7 {
        served.start("waits", &format!("run-{number}")).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/runs?limit=3".to_owned());
    for page in 0.. {
        let answer = served.get(&path).await;
        seen.extend(answer.items("id"));
        served.start("waits", &format!("late-{page}")).await;
        let Some(cursor) = answer.body["next_cursor"].as_str() else { break };
        path = format!("/v1/runs?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, ["run-6", "run-5", "run-4", "run-3", "run-2", "run-1", "run-0"]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_by_workflow_status_and_tree() {
    let served = Served::new().await;
    served.start("waits", "alone").await;
    served.start("outer", "top").await;
    served.start("waits", "ended").await;
    served.post("/v1/runs/ended/cancel", "{}").await;
    let children = children(&served).await;
    assert_eq!(children.len(), 2);
    let mut of_tree = served.get("/v1/runs?root=top").await.items("id");
    of_tree.sort();
    assert_eq!(of_tree, children);
    assert_eq!(served.get("/v1/runs?workflow=outer").await.items("id"), ["top"]);
    assert_eq!(served.get("/v1/runs?status=cancelled&workflow=waits").await.items("id"), ["ended"]);
    let child = served.get(&format!("/v1/runs/{}", children[0])).await;
    assert_eq!((&child.body["parent"], &child.body["root"]), (&json!("top"), &json!("top")));
    served.stop().await;
}

/// The children of `top`, once both are there: they start by message.
async fn children(served: &Served) -> Vec<String> {
    loop {
        let mut found = served.get("/v1/runs/top/children").await.items("id");
        if found.len() == 2 {
            found.sort();
            return found;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_is_made_of_can_be_read() {
    let served = Served::new().await;
    let body = json!({ "id": "a", "input": { "name": "Ada" }, "wait": "30s" });
    assert_eq!(served.post("/v1/workflows/hello/runs", body).await.status, 201);
    let tokens = served.get("/v1/runs/a/tokens").await;
    assert_eq!((tokens.items("node"), tokens.items("status")), (vec!["greet".into()], vec!["completed".into()]));
    assert_eq!(served.get("/v1/runs/a/context").await.body, json!({ "state.text": "hello Ada" }));
    assert_eq!(served.get("/v1/runs/a/artifacts").await.body, json!({ "items": [], "next_cursor": null }));
    assert_eq!(served.get("/v1/runs/a/decisions").await.body, json!({ "items": [], "next_cursor": null }));
    for part in ["tokens", "context", "artifacts", "children", "decisions", "events"] {
        served.get(&format!("/v1/runs/nobody/{part}")).await.problem(404, "run-not-found");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decisions_of_a_traced_run_can_be_read() {
    let served = Served::new().await;
    let body = json!({ "id": "a", "trace": true, "wait": "30s" });
    assert_eq!(served.post("/v1/workflows/hello/runs", body).await.status, 201);
    let types = served.get("/v1/runs/a/decisions").await.items("type");
    assert!(!types.is_empty() && types.iter().all(|event_type| event_type.starts_with("decision.")), "{types:?}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_events_have_pages() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    for _ in 0..3 {
        served.post("/v1/runs/a/signals/go", "null").await;
    }
    for list in ["tokens", "events"] {
        let whole = served.get(&format!("/v1/runs/a/{list}?limit=1000")).await;
        let name = if list == "tokens" { ("id", "cursor") } else { ("sequence", "after") };
        let (mut seen, mut path) = (Vec::new(), format!("/v1/runs/a/{list}?limit=2"));
        while let answer = served.get(&path).await
            && let Value::String(cursor) = &answer.body["next_cursor"]
        {
            seen.extend(answer.items(name.0));
            path = format!("/v1/runs/a/{list}?limit=2&{}={cursor}", name.1);
        }
        seen.extend(served.get(&path).await.items(name.0));
        assert_eq!(seen, whole.items(name.0));
    }
    served.stop().await;
}
