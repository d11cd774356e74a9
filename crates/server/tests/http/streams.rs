//! Histories as they happen.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use crate::served::{Served, header};

/// A reader of a stream.
struct Reader {
    response: Response,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Sent {
    id: String,
    event_type: String,
    data: Value,
}

impl Reader {
    async fn open(served: &Served, path: &str, seen: Option<&str>) -> Self {
        let response = open(served, path, seen).await;
        assert_eq!((response.status().as_u16(), &*header(&response, "content-type")), (200, "text/event-stream"));
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block.starts_with(':') {
                    continue;
                }
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
                let data = serde_json::from_str(&field("data: ")).unwrap();
                return Some(Sent { id: field("id: "), event_type: field("event: "), data });
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.response.chunk()).await;
            self.text += std::str::from_utf8(&chunk.unwrap().unwrap()?).unwrap();
        }
    }

    async fn rest(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(sent) = self.next().await {
            all.push(sent);
        }
        all
    }
}

async fn open(served: &Served, path: &str, seen: Option<&str>) -> Response {
    let mut request = served.request(Method::GET, path).header("accept", "text/event-stream");
    if let Some(seen) = seen {
        request = request.header("last-event-id", seen);
    }
    request.send().await.unwrap()
}

fn ids(sent: &[Sent]) -> Vec<&str> {
    sent.iter().map(|sent| &*sent.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_cut_off_and_resumed_sees_each_event_once_in_order() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    let mut seen: Vec<Sent> = Vec::new();
    // Cut off after every single event, while the run goes on.
    loop {
        let response = open(&served, "/v1/runs/a/events", seen.last().map(|sent| &*sent.id)).await;
        if response.status() == 204 {
            break;
        }
        let mut reader = Reader { response, text: String::new() };
        seen.extend(reader.next().await);
        if seen.len().is_multiple_of(2) {
            served.post("/v1/runs/a/signals/go", "1").await;
        }
    }
    let all = served.get("/v1/runs/a/events?limit=1000").await;
    assert_eq!(ids(&seen), all.items("sequence"));
    let data: Vec<Value> = seen.iter().map(|sent| sent.data.clone()).collect();
    assert_eq!(Value::from(data), all.body["items"]);
    assert!(seen.iter().all(|sent| sent.data["type"] == sent.event_type));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begun_early_sees_everything_and_ends_with_the_run() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    let mut reader = Reader::open(&served, "/v1/runs/a/events", None).await;
    let mut seen = vec![reader.next().await.unwrap()];
    for _ in 0..3 {
        served.post("/v1/runs/a/signals/go", "1").await;
    }
    seen.extend(reader.rest().await);
    assert_eq!(ids(&seen), served.get("/v1/runs/a/events?limit=1000").await.items("sequence"));
    let mut late = Reader::open(&served, "/v1/runs/a/events?after=2", None).await;
    assert_eq!(late.rest().await, seen[2..]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_one_stream_that_ends_with_its_top() {
    let served = Served::new().await;
    served.start("outer", "top").await;
    served.start("waits", "other").await;
    let mut reader = Reader::open(&served, "/v1/runs/top/events?tree=true", None).await;
    let mut seen = Vec::new();
    let mut waiting = 0;
    while waiting < 2 {
        let sent = reader.next().await.unwrap();
        if sent.data["run_id"] != "top" && sent.data["sequence"] == 1 {
            let child = sent.data["run_id"].as_str().unwrap();
            assert_eq!(served.post(&format!("/v1/runs/{child}/signals/go"), "1").await.status, 200);
            waiting += 1;
        }
        seen.push(sent);
    }
    seen.extend(reader.rest().await);
    let all = served.get("/v1/runs/top/events?tree=true&limit=1000").await;
    assert_eq!(ids(&seen), all.items("place"));
    assert!(seen.iter().all(|sent| sent.data["root_id"] == "top"));
    assert_eq!(served.get("/v1/runs/top").await.body["status"], "completed");
    let half = seen.len() / 2;
    let mut again = Reader::open(&served, "/v1/runs/top/events?tree=true", Some(&seen[half - 1].id)).await;
    assert_eq!(again.rest().await, seen[half..]);
    let last = &seen.last().unwrap().id;
    assert_eq!(open(&served, "/v1/runs/top/events?tree=true", Some(last)).await.status(), 204);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_comes_in_parts_without_a_seam() {
    let served = Served::new().await;
    served.start("wide", "a").await;
    for (path, field) in [("/v1/runs/a/events?tree=false", "sequence"), ("/v1/runs/a/events?tree=true", "place")] {
        let seen = Reader::open(&served, path, None).await.rest().await;
        let all = served.get(&format!("{path}&limit=1000")).await;
        assert!(seen.len() > 200, "{}", seen.len());
        assert_eq!(ids(&seen), all.items(field));
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_readers_of_one_run_all_see_everything() {
    let served = Served::new().await;
    served.start("waits_thrice", "a").await;
    let mut readers = Vec::new();
    for _ in 0..100 {
        let mut reader = Reader::open(&served, "/v1/runs/a/events", None).await;
        readers.push(tokio::spawn(async move { reader.rest().await }));
    }
    for _ in 0..3 {
        served.post("/v1/runs/a/signals/go", "1").await;
    }
    let all = served.get("/v1/runs/a/events?limit=1000").await.items("sequence");
    for reader in readers {
        assert_eq!(ids(&reader.await.unwrap()), all);
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_one_stream_that_ends_with_the_server() {
    let served = Served::new().await;
    let mut reader = Reader::open(&served, "/v1/events", None).await;
    served.start("waits", "a").await;
    served.start("waits", "b").await;
    let mut seen = Vec::new();
    while !seen.contains(&"b".to_owned()) {
        seen.push(reader.next().await.unwrap().data["run_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen[0], "a");
    assert!(!served.get("/v1/events?limit=1").await.body["next_cursor"].is_null());
    let began = std::time::Instant::now();
    served.stop().await;
    reader.rest().await;
    assert!(began.elapsed() < Duration::from_secs(5), "a stream does not hold up the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_with_line_ends_stay_one_event() {
    let served = Served::new().await;
    let body = "{\"id\": \"a\", \"input\": {\r\n  \"name\":\n \"x\\ny\"\n}, \"wait\": \"30s\"}";
    assert_eq!(served.post("/v1/workflows/hello/runs", body).await.status, 201);
    let seen = Reader::open(&served, "/v1/runs/a/events", None).await.rest().await;
    assert_eq!(ids(&seen), served.get("/v1/runs/a/events").await.items("sequence"));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_none_is_refused() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    for path in ["/v1/runs/a/events", "/v1/events"] {
        assert_eq!(open(&served, path, Some("x")).await.status(), 400);
    }
    assert_eq!(open(&served, "/v1/runs/nobody/events", None).await.status(), 404);
    served.stop().await;
}
