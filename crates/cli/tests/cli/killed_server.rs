//! A server that is killed while many clients start runs: none is lost, none is there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::Value;

use crate::raw_http::Connection;
use crate::served::Served;

const KILLS: usize = 5;
const CLIENTS: usize = 64;

/// As many as are quick; `STEADFAST_TEST_RUNS=10000` makes it more.
const RUNS: usize = 2_000;
const RUNS_VARIABLE: &str = "STEADFAST_TEST_RUNS";

/// Two tasks, one after the other, so that runs are under way when the server dies.
const FLOW: &str = r#"
kind: workflow
name: flow
nodes:
  first: { run: { mock: { value: "${input.number}", delay: 5ms } }, output: { state.number: "${result}" } }
  second: { run: { mock: { value: "${state.number + 1}" } }, output: { state.number: "${result}" } }
transitions: [{ from: first, to: second }]
result: "${state.number}"
"#;

#[test]
fn runs_started_while_the_server_is_killed_five_times_are_all_there_once_and_complete() {
    let runs = std::env::var(RUNS_VARIABLE).map_or(RUNS, |runs| runs.parse().unwrap());
    let mut served = Served::with(&[FLOW]);
    let url = served.url.clone();
    let next = AtomicUsize::new(0);
    let created = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        let (done, each_done) = channel();
        for _ in 0..CLIENTS {
            let done = done.clone();
            scope.spawn(|| start_runs(&url, &next, runs, &created, done));
        }
        drop(done);
        for (count, ()) in each_done.iter().enumerate() {
            // At even distances, whatever the speed of the machine.
            if (count + 1) % (runs / (KILLS + 1)) == 0 && count < runs * KILLS / (KILLS + 1) {
                served.killed_and_begun_again();
            }
        }
    });
    let created = created.into_inner().unwrap();
    assert_eq!(created.len(), runs);
    assert!(created.values().all(|times| *times <= 1), "a run was made twice");
    check_outcomes(&url, runs);
    check_lists(&url, runs);
    check_histories(&url, runs);
}

fn id(number: usize) -> String {
    format!("run-{number}")
}

/// Starts runs until there are enough. How often each was said to be new.
fn start_runs(url: &str, next: &AtomicUsize, runs: usize, created: &Mutex<BTreeMap<usize, u32>>, done: Sender<()>) {
    let mut connection = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= runs {
            return;
        }
        let status = insist(url, &mut connection, &start(number, "")).0;
        *created.lock().unwrap().entry(number).or_default() += u32::from(status == 201);
        done.send(()).unwrap();
    }
}

fn start(number: usize, more: &str) -> String {
    format!(r#"{{"id": "{}", "input": {{"number": {number}}}{more}}}"#, id(number))
}

/// Asks until there is an answer, as a client does whose server is away for a moment.
fn insist(url: &str, connection: &mut Option<Connection>, body: &str) -> (u16, String) {
    loop {
        let opened = connection.take().map_or_else(|| Connection::open(url), Ok);
        let asked = opened.and_then(|mut open| Ok((open.ask("POST /v1/workflows/flow/runs", body)?, open)));
        match asked {
            Ok(((503, _), open)) => *connection = Some(open),
            Ok((answer @ (200 | 201, _), open)) => {
                *connection = Some(open);
                return answer;
            }
            Ok((answer, _)) => panic!("{answer:?}"),
            Err(_) => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each is there, and ends as it should.
fn check_outcomes(url: &str, runs: usize) {
    let mut connection = Connection::open(url).unwrap();
    for number in 0..runs {
        let again = start(number, r#", "wait": "60s""#);
        let (status, body) = connection.ask("POST /v1/workflows/flow/runs", &again).unwrap();
        let run: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, &run["status"], &run["output"]),
            (200, &"completed".into(), &(number + 1).into()),
            "{body}"
        );
    }
}

/// Lists and counts have each once.
fn check_lists(url: &str, runs: usize) {
    let expected: BTreeSet<String> = (0..runs).map(id).collect();
    for filter in ["", "&status=completed", "&workflow=flow"] {
        let listed = all_pages(url, &format!("/v1/runs?limit=1000{filter}"), "cursor");
        assert_eq!(listed.len(), runs, "{filter}");
        let ids: BTreeSet<String> = listed.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, expected, "{filter}");
    }
    assert_eq!(all_pages(url, "/v1/runs?limit=1000&status=running", "cursor"), [Value::Null; 0]);
    let (_, metrics) = Connection::open(url).unwrap().ask("GET /metrics", "").unwrap();
    let counted: Vec<&str> = metrics.lines().filter(|line| line.starts_with("steadfast_runs{")).collect();
    assert_eq!(counted, [format!("steadfast_runs{{workflow=\"flow\",status=\"completed\"}} {runs}")]);
}

/// Each began once, did each task once, and ended once.
fn check_histories(url: &str, runs: usize) {
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for event in all_pages(url, "/v1/events?limit=1000", "after") {
        let field = |name: &str| event[name].as_str().unwrap().to_owned();
        *counts.entry((field("run_id"), field("type"))).or_default() += 1;
    }
    for number in 0..runs {
        for (event, times) in [("workflow.started", 1), ("task.completed", 2), ("workflow.completed", 1)] {
            let key = (id(number), event.to_owned());
            assert_eq!(counts.get(&key), Some(&times), "{key:?}");
        }
    }
}

fn all_pages(url: &str, path: &str, parameter: &str) -> Vec<Value> {
    let mut connection = Connection::open(url).unwrap();
    let mut all = Vec::new();
    let mut from = String::new();
    loop {
        let mut page = connection.get(&format!("{path}{from}"));
        let items = page["items"].as_array_mut().unwrap();
        all.append(items);
        match page["next_cursor"].as_str() {
            Some(cursor) => from = format!("&{parameter}={cursor}"),
            None => return all,
        }
    }
}
