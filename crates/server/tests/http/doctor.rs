//! A checkup of a server that is at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::served::Served;

const TASKS: &str = "
kind: workflow
name: slow
nodes: { a: { run: { mock: { delay: 1h } } } }
---
kind: workflow
name: stumbles
nodes: { a: { run: { mock: { fail: { times: 3 } } }, retry: { max_attempts: 9, delay: 1ms } }, b: {} }
transitions: [{ from: a, to: b, spawn: 3 }]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_server_has_nothing_stuck_and_says_what_wakes_its_runs() {
    let served = Served::new().await;
    served.apply(TASKS).await;
    for (workflow, id) in
        [("waits", "a"), ("mails", "b"), ("outer", "c"), ("waits", "d"), ("slow", "e"), ("hello", "f")]
    {
        served.start(workflow, id).await;
    }
    served.post("/v1/runs/d/pause", "{}").await;
    let (mut runs, mut path) = (0, "/v1/doctor?limit=2".to_owned());
    let last = loop {
        let page = served.get(&path).await.body;
        assert_eq!(page["items"], json!([]), "{page}");
        let checked = page["runs_checked"].as_u64().unwrap();
        assert!(checked <= 2, "{page}");
        runs += checked;
        match page["next_cursor"].as_str() {
            Some(next) => path = format!("/v1/doctor?limit=2&cursor={next}"),
            None => break page,
        }
    };
    assert!((5..=7).contains(&runs), "{runs}");
    assert_eq!(last["wakers"], json!({ "resume": 1, "signal": 1 }));
    served.get("/v1/doctor?cursor=nowhere").await.problem(400, "invalid-parameter");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_meanwhile_is_not_taken_for_a_fault() {
    let served = Arc::new(Served::new().await);
    served.apply(TASKS).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let (busy, done) = (served.clone(), is_done.clone());
    let working = tokio::spawn(async move {
        for number in 0..60 {
            let id = format!("r{number}");
            busy.start(if number % 2 == 0 { "outer" } else { "stumbles" }, &id).await;
            busy.post(&format!("/v1/runs/{id}/pause"), "{}").await;
            busy.post(&format!("/v1/runs/{id}/resume"), "{}").await;
        }
        done.store(true, Ordering::Release);
    });
    loop {
        let is_last = is_done.load(Ordering::Acquire);
        let page = served.get("/v1/doctor?limit=1000").await.body;
        assert_eq!(page["items"], json!([]), "{page}");
        if is_last {
            break;
        }
    }
    working.await.unwrap();
    Arc::into_inner(served).unwrap().stop().await;
}
