//! What runs wait for.

use serde_json::{Value, json};

use crate::served::Served;

const TASKS: &str = "
kind: workflow
name: slow
nodes: { a: { run: { mock: { delay: 1h } } } }
---
kind: workflow
name: lacking
nodes: { a: { run: { function: nobody } } }
";

/// What is said of a run, a line for each wait, further in for what is below.
fn lines(why: &Value) -> Vec<String> {
    fn add(waits: &Value, depth: usize, lines: &mut Vec<String>) {
        for wait in waits.as_array().into_iter().flatten() {
            lines.push(format!("{}{}", "  ".repeat(depth), wait["says"].as_str().unwrap()));
            add(&wait["waits"], depth + 1, lines);
        }
    }
    let mut lines = vec![why["says"].as_str().unwrap().to_owned()];
    add(&why["waits"], 1, &mut lines);
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_what_the_runs_below_it_wait_for() {
    let served = Served::new().await;
    served.start("outer", "top").await;
    let why = loop {
        let why = served.get("/v1/runs/top/why").await.body;
        if lines(&why).len() == 6 {
            break why;
        }
        tokio::task::yield_now().await;
    };
    let said = lines(&why);
    assert_eq!(said[0], "run `top` of `outer` is running");
    assert_eq!(said[1], "  branches: 0 of 2 branches are over");
    assert!(
        said[2].starts_with("    branch 0: node `b`: waits for run `top.") && said[2].ends_with(", which is running")
    );
    assert_eq!(said[3], "      node `a`: waits for signal `go`, which nobody has sent");
    let below = &why["waits"][0]["waits"][1]["waits"][0];
    assert_eq!((&below["kind"], &below["signal"]), (&json!("signal"), &json!("go")));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_for_a_worker_says_whether_anybody_asks_and_who_has_it() {
    let served = Served::new().await;
    served.start("mails", "r").await;
    let wait = async || served.get("/v1/runs/r/why").await.body["waits"][0].clone();
    let told = wait().await;
    assert_eq!((&told["kind"], &told["task"], &told["queue"]), (&json!("task"), &json!("waiting"), &json!("mail")));
    assert!(told["says"].as_str().unwrap().contains("nobody has asked since this server started at 20"), "{told}");
    assert_eq!(served.get("/v1/runs/r/tokens").await.items("status"), ["dispatched"]);
    let ask = json!({ "queue": "mail", "worker": "w1", "wait": "10s" });
    assert_eq!(served.post("/v1/tasks/lease", ask).await.body["tasks"].as_array().unwrap().len(), 1);
    let told = wait().await;
    assert_eq!((&told["task"], &told["worker"]), (&json!("leased"), &json!("w1")));
    assert!(
        told["says"].as_str().unwrap().starts_with("node `send`: task of queue `mail` leased to worker `w1` until 20")
    );
    assert_eq!(served.get("/v1/runs/r/tokens").await.items("status"), ["executing"]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_says_that_it_runs_or_what_is_lacking() {
    let served = Served::new().await;
    served.apply(TASKS).await;
    served.start("slow", "r").await;
    served.start("lacking", "l").await;
    for (run, state) in [("r", "running"), ("l", "parked")] {
        loop {
            let told = served.get(&format!("/v1/runs/{run}/why")).await.body["waits"][0].clone();
            if told["task"] == state {
                assert!(run == "r" || told["says"].as_str().unwrap().contains("`nobody`"), "{told}");
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(served.get("/v1/runs/r/tokens").await.items("status"), ["executing"]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_over_or_paused_says_so() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    served.post("/v1/runs/a/pause", "{}").await;
    let why = served.get("/v1/runs/a/why").await.body;
    assert_eq!((&why["status"], why["waits"].as_array().unwrap().len()), (&json!("paused"), 1));
    served.post("/v1/runs/a/cancel", r#"{"reason": "enough"}"#).await;
    let why = served.get("/v1/runs/a/why").await.body;
    assert_eq!((&why["status"], &why["waits"]), (&json!("cancelled"), &json!([])));
    assert!(why["says"].as_str().unwrap().ends_with(": enough"), "{why}");
    served.get("/v1/runs/nobody/why").await.problem(404, "run-not-found");
    served.stop().await;
}
