//! Traces, as a collector gets them: from the history, over collectors that are down and over restarts.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::core::definition;
use steadfast::core::ids::ActorId;
use steadfast::core::json::Json;
use steadfast::graph::{Graphs, Run};
use steadfast::store::Store;
use steadfast::store::memory::MemoryStore;
use steadfast::store::rows::HistoryPlace;
use steadfast::tasks::Ask;
use steadfast::traces::{self, Collector};
use steadfast::{Engine, Workers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

const FLOWS: &str = r#"
kind: workflow
name: outer
nodes:
  flaky:
    run: { mock: { value: "sesame-result", fail: { times: 1, message: "not yet" } } }
    retry: { max_attempts: 2, delay: 1ms }
    output: { state.x: "${result}" }
  call: { workflow: inner, input: { given: "${state.x}" } }
transitions: [{ from: flaky, to: call }]
result: { x: "${state.x}" }
---
kind: workflow
name: inner
nodes: { leaf: { run: { mock: { value: "sesame-leaf" } } } }
---
kind: workflow
name: outside
nodes: { a: { run: { worker: mail } } }
---
kind: workflow
name: fails
nodes: { a: { run: { mock: { fail: { times: 9, message: "boom" } } } } }
"#;

/// A collector of a few lines.
struct Receiver {
    socket: Option<TcpSocket>,
    url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    /// One that refuses connections so far.
    fn down() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        Self { socket: Some(socket), url, bodies: Arc::default() }
    }

    fn up() -> Self {
        let mut receiver = Self::down();
        receiver.listen(&["200 OK"]);
        receiver
    }

    /// Answers so from now on; at the end of the list, always the last.
    fn listen(&mut self, statuses: &'static [&'static str]) {
        let listener: TcpListener = self.socket.take().unwrap().listen(16).unwrap();
        let (bodies, count) = (self.bodies.clone(), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (bodies, count) = (bodies.clone(), count.clone());
                tokio::spawn(async move {
                    let Some((body, mut stream)) = request(stream).await else { return };
                    let status = statuses[count.fetch_add(1, Ordering::Relaxed).min(statuses.len() - 1)];
                    if status.starts_with("200") {
                        bodies.lock().unwrap().push(body);
                    }
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
                    drop(stream.write_all(answer.as_bytes()).await);
                });
            }
        });
    }

    /// All spans so far, as they came.
    fn all(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap();
        let of_body = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        bodies.iter().flat_map(of_body).collect()
    }

    /// So many different spans, by their ids. One that comes again must be the same.
    async fn spans(&self, count: usize) -> BTreeMap<String, Value> {
        loop {
            let mut spans = BTreeMap::new();
            for span in self.all() {
                let id = span["spanId"].as_str().unwrap().to_owned();
                let before = spans.insert(id, span.clone());
                assert!(before.is_none_or(|before| before == span), "{span}");
            }
            if spans.len() >= count {
                assert_eq!(spans.len(), count);
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn request(mut stream: TcpStream) -> Option<(Value, TcpStream)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("application/json"), "{head}");
            let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse::<usize>().ok()?;
            if body.len() == length {
                return Some((serde_json::from_str(body).unwrap(), stream));
            }
        }
        let mut buffer = [0; 4096];
        // A client that is ended leaves in the middle.
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
    }
}

struct World {
    engine: Engine,
    graphs: Graphs,
    exporting: JoinHandle<()>,
}

impl World {
    async fn new(store: &MemoryStore, receiver: &Receiver) -> Self {
        let engine = Engine::on(Arc::new(store.clone())).graphs().start().unwrap();
        let graphs = Graphs::of(&engine);
        graphs.apply(&definition::read("flows.yaml", FLOWS).definitions).await.unwrap();
        let (collector, exported) = (Collector::at(&receiver.url).unwrap(), engine.clone());
        let exporting = tokio::spawn(async move { traces::export(&exported, &collector).await });
        Self { engine, graphs, exporting }
    }

    async fn start(&self, workflow: &str, id: &str) {
        let input = Json::parse(r#"{ "password": "sesame-input" }"#).unwrap();
        self.graphs.start(Run::new(workflow, input).with_id(id)).await.unwrap();
    }

    async fn run(&self, workflow: &str, id: &str) {
        self.start(workflow, id).await;
        self.graphs.wait(id).await.unwrap();
    }

    /// Waits until everything that happened was sent, and that is kept.
    async fn all_is_sent(&self, store: &MemoryStore) {
        let place = ActorId::parse("otlp:place").unwrap();
        let last = self.engine.history(None, HistoryPlace::default(), 1000).unwrap().last().unwrap().0;
        let expected = json!({ "v": 1, "part": last.part, "index": last.index });
        let kept = || store.reader().unwrap().get(&place, "place").unwrap().map(|kept| kept.decode::<Value>().unwrap());
        while kept() != Some(expected.clone()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) {
        self.exporting.abort();
        self.engine.stop(Duration::ZERO).await;
    }
}

/// An attribute of a span.
fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|attribute| attribute["key"] == key).map_or(&Value::Null, |found| &found["value"])
}

/// The one span of this name and attempt; a run has no attempt, unless a run has called it.
fn named<'s>(spans: &'s BTreeMap<String, Value>, name: &str, attempt: Option<&str>) -> &'s Value {
    let is_it =
        |span: &&Value| span["name"] == name && attribute(span, "steadfast.attempt")["intValue"].as_str() == attempt;
    let mut found = spans.values().filter(is_it);
    let span = found.next().unwrap_or_else(|| panic!("{name} {attempt:?}: {spans:#?}"));
    assert!(found.next().is_none(), "{spans:#?}");
    span
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_runs_is_one_trace_and_holds_no_payload() {
    let (store, receiver) = (MemoryStore::new(), Receiver::up());
    let world = World::new(&store, &receiver).await;
    world.run("outer", "order-42").await;
    let spans = receiver.spans(6).await;
    // The first half of the SHA-256 of `order-42`.
    assert!(spans.values().all(|span| span["traceId"] == "3bf8b157c4238eefe5ae4a66eca81c6b"), "{spans:#?}");
    let top = named(&spans, "outer", None);
    assert_eq!(top["parentSpanId"], Value::Null);
    assert_eq!(attribute(top, "steadfast.run")["stringValue"], "order-42");
    assert_eq!(attribute(top, "steadfast.status")["stringValue"], "completed");
    let (first, second) = (named(&spans, "flaky", Some("1")), named(&spans, "flaky", Some("2")));
    assert_eq!((&first["parentSpanId"], &second["parentSpanId"]), (&top["spanId"], &top["spanId"]));
    assert_eq!(first["status"], json!({ "code": 2, "message": "not yet" }));
    assert_eq!(attribute(first, "error.type")["stringValue"], "task_failed");
    assert_eq!(attribute(first, "steadfast.executor")["stringValue"], "mock");
    assert_eq!(second["status"], Value::Null);
    let call = named(&spans, "call", None);
    assert_eq!(call["parentSpanId"], top["spanId"]);
    let called = named(&spans, "inner", Some("1"));
    assert_eq!(called["parentSpanId"], call["spanId"]);
    assert_eq!(attribute(called, "steadfast.run"), attribute(call, "steadfast.called_run"));
    assert_eq!(named(&spans, "leaf", Some("1"))["parentSpanId"], called["spanId"]);
    for span in spans.values() {
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano")
                && attribute(span, "steadfast.start_unknown").is_null()
        );
        assert!(!span.to_string().contains("sesame"), "{span}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_was_down_gets_everything_that_happened_meanwhile() {
    let (store, mut receiver) = (MemoryStore::new(), Receiver::down());
    let world = World::new(&store, &receiver).await;
    for id in ["a", "b", "c"] {
        world.run("fails", id).await;
    }
    receiver.listen(&["503 Service Unavailable", "404 Not Found", "200 OK"]);
    let spans = receiver.spans(6).await;
    assert!(spans.values().all(|span| span["status"]["code"] == 2), "{spans:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_does_not_take_is_left_out_and_the_next_is_sent() {
    let (store, mut receiver) = (MemoryStore::new(), Receiver::down());
    receiver.listen(&["400 Bad Request", "200 OK"]);
    let world = World::new(&store, &receiver).await;
    world.run("fails", "a").await;
    world.all_is_sent(&store).await;
    world.run("fails", "b").await;
    world.all_is_sent(&store).await;
    let spans = receiver.all();
    assert!(spans.iter().any(|span| attribute(span, "steadfast.run")["stringValue"] == "b"), "{spans:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_it_goes_on_where_it_was_and_what_was_open_keeps_its_beginning() {
    let (store, receiver) = (MemoryStore::new(), Receiver::up());
    let world = World::new(&store, &receiver).await;
    world.run("fails", "before").await;
    world.start("outside", "across").await;
    world.start("outside", "cancelled").await;
    world.all_is_sent(&store).await;
    let sent_before = receiver.spans(2).await;
    let view = world.graphs.run("across").unwrap().unwrap();
    let events = world.engine.events(&ActorId::parse("run:across").unwrap(), 0, 100).unwrap();
    let dispatched = events.iter().find(|event| event.event_type == "task.dispatched").unwrap().at;
    world.stop().await;

    receiver.bodies.lock().unwrap().clear();
    let world = World::new(&store, &receiver).await;
    world.graphs.cancel("cancelled", None).await.unwrap();
    let long = Duration::from_secs(60);
    let ask = Ask { queue: "mail".to_owned(), worker: "w1".to_owned(), max: 1, lease: long, wait: long };
    let workers = Workers::of(&world.engine);
    let lent = workers.lease(&ask).await.unwrap().remove(0);
    workers.complete(&lent.id, &lent.lease, Json::parse("1").unwrap()).await.unwrap();
    let spans = receiver.spans(4).await;
    assert!(spans.keys().all(|id| !sent_before.contains_key(id)), "{spans:#?}");
    let of_run = |run: &str, name: &str| {
        let is_it = |span: &&Value| span["name"] == name && attribute(span, "steadfast.run")["stringValue"] == run;
        spans.values().find(is_it).unwrap()
    };
    let across = of_run("across", "a");
    assert_eq!(across["startTimeUnixNano"], format!("{}000000", dispatched.0));
    assert_eq!(attribute(across, "steadfast.executor")["stringValue"], "worker:mail");
    assert_eq!(attribute(of_run("across", &view.workflow), "steadfast.status")["stringValue"], "completed");
    let called_off = of_run("cancelled", "a");
    assert_eq!(attribute(called_off, "steadfast.status")["stringValue"], "cancelled");
    assert_eq!(attribute(called_off, "steadfast.attempt")["intValue"], "1");
    world.stop().await;
}

#[test]
fn an_address_that_is_none_of_a_collector_is_refused() {
    for (url, expected) in [
        ("localhost", "`localhost` is no URL"),
        ("grpc://localhost:4317", "neither `http:` nor `https:`"),
        ("http://key@localhost:4318", "give only where the collector is"),
        ("http://localhost:4318/v1/traces", "leave that out"),
    ] {
        let error = Collector::at(url).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
