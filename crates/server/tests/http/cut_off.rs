//! A reader whose connection is closed again and again, anywhere in the bytes of a stream.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::served::Served;

const CUTS: usize = 100;

/// A round for each cut, of about a hundred events.
const BURSTS: &str = r#"
kind: workflow
name: bursts
start: go
nodes:
  go: { wait: { signal: go } }
  branch: { run: { mock: { value: 1 } } }
  joined: { output: { state.rounds: "${state.rounds == null ? 1 : state.rounds + 1}" } }
transitions:
  - { from: go, to: branch, spawn: 15, group: all }
  - { from: branch, to: joined, join: { group: all } }
  - { from: joined, to: go, when: state.rounds < 100 }
"#;

/// What a reader has of a stream: whole events only.
#[derive(Default)]
struct Seen {
    ids: Vec<u64>,
    data: Vec<Value>,
}

impl Seen {
    /// Opens the stream behind what was seen, and takes in its bytes: at most so many, or all.
    async fn read_on(&mut self, served: &Served, bytes_max: usize) {
        let last = self.ids.last().map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        // The elder version of HTTP, so that the bytes are those of the stream.
        let head = format!("GET /v1/runs/a/events HTTP/1.0\r\nAccept: text/event-stream\r\n{last}\r\n");
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        stream.take(bytes_max as u64).read_to_end(&mut received).await.unwrap();
        let text = String::from_utf8_lossy(&received);
        // What stands behind the last empty line was cut off.
        let Some((head, whole)) = text.rsplit_once("\n\n").and_then(|(whole, _)| whole.split_once("\r\n\r\n")) else {
            return;
        };
        assert!(head.starts_with("HTTP/1.0 200 "), "{head}");
        for event in whole.split("\n\n").filter(|event| !event.starts_with(':')) {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            self.ids.push(field("id: ").parse().unwrap());
            self.data.push(serde_json::from_str(field("data: ")).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_cut_off_a_hundred_times_sees_each_of_ten_thousand_events_once_in_order() {
    let served = Served::new().await;
    served.apply(BURSTS).await;
    served.start("bursts", "a").await;
    let mut seen = Seen::default();
    let mut random = 4711_u64;
    for _ in 0..CUTS {
        assert_eq!(served.post("/v1/runs/a/signals/go", "1").await.status, 200);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Less than what a round adds, so that there is always something to cut.
        seen.read_on(&served, (random >> 33) as usize % 24_000).await;
    }
    seen.read_on(&served, usize::MAX).await;
    assert!(seen.ids.len() >= 10_000, "{}", seen.ids.len());
    assert_eq!(seen.ids, (1..=seen.ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(seen.data.last().unwrap()["type"], "workflow.completed");
    let mut pages = Vec::new();
    while pages.len() < seen.data.len() {
        let page = served.get(&format!("/v1/runs/a/events?limit=1000&after={}", pages.len())).await;
        pages.extend(page.body["items"].as_array().unwrap().iter().cloned());
    }
    assert!(pages == seen.data, "the stream and the pages tell the same");
    served.stop().await;
}
