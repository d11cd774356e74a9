//! Removing runs that are over.

use reqwest::Method;
use serde_json::json;
use steadfast::graph::Graphs;

use crate::served::{Served, answered};

async fn purge(served: &Served, run: &str) -> crate::served::Answered {
    answered(served.request(Method::POST, &format!("/v1/runs/{run}/purge"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_over_is_purged_with_its_tree_and_its_id_is_free() {
    let served = Served::new().await;
    served.start("outer", "a").await;
    let refused = purge(&served, "a").await;
    assert!(refused.problem(409, "run-not-over").contains("has not ended"));
    let children = loop {
        let begun = served.get("/v1/runs/a/children").await.items("id");
        if begun.len() == 2 {
            break begun;
        }
    };
    let refused = purge(&served, &children[0]).await;
    assert!(refused.problem(409, "run-not-over").contains("part of run `a`"));

    served.post("/v1/runs/a/cancel", "{}").await;
    loop {
        let answer = purge(&served, "a").await;
        if answer.status == 200 {
            assert_eq!(answer.body, json!({ "id": "a", "purged": true }));
            break;
        }
        // The children are told in their own time.
        answer.problem(409, "run-not-over");
    }
    served.get("/v1/runs/a").await.problem(404, "run-not-found");
    served.start("hello", "a").await;
    let run = served.get("/v1/runs/a").await;
    assert_eq!((&run.body["workflow"], &run.body["status"]), (&json!("hello"), &json!("completed")));
    for child in children {
        while served.get(&format!("/v1/runs/{child}")).await.status != 404 {}
    }
    assert_eq!(served.get("/v1/runs").await.items("id"), ["a"]);
    let counts = Graphs::of(&served.engine).counts().unwrap();
    assert_eq!(counts.iter().map(|found| (&*found.workflow, found.count)).collect::<Vec<_>>(), [("hello", 1)]);
    let first = served.get("/v1/runs/a/events").await;
    assert_eq!(first.items("type")[0], "workflow.started");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purging_what_is_gone_does_no_more() {
    let served = Served::new().await;
    served.start("hello", "a").await;
    assert_eq!(purge(&served, "a").await.body, json!({ "id": "a", "purged": true }));
    for run in ["a", "a", "never-there"] {
        let answer = purge(&served, run).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "id": run, "purged": false })));
    }
    purge(&served, "no%20id").await.problem(400, "invalid-id");
    served.stop().await;
}
