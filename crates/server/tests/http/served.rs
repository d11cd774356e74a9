//! A server on a port of its own, with workflows in its store, and a client of it.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use steadfast::core::definition;
use steadfast::graph::Graphs;
use steadfast::{Builder, Engine};
use steadfast_server::{Access, Limits, Server};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What every test may run.
pub(crate) const WORKFLOWS: &str = r#"
kind: workflow
name: hello
input: { type: object, properties: { name: { type: string } } }
nodes: { greet: { run: { value: "hello ${input.name}" }, output: { state.text: "${result}" } } }
result: { text: "${state.text}" }
---
kind: workflow
name: waits
nodes: { a: { wait: { signal: go }, output: { state.got: "${result}" } } }
result: { got: "${state.got}" }
---
kind: workflow
name: waits_thrice
nodes: { a: { wait: { signal: go } }, b: { wait: { signal: go } }, c: { wait: { signal: go } } }
transitions: [{ from: a, to: b }, { from: b, to: c }]
---
kind: workflow
name: wide
nodes: { a: {}, b: { run: { value: 1 } } }
transitions: [{ from: a, to: b, spawn: 200 }]
---
kind: workflow
name: mails
nodes: { send: { run: { worker: mail }, input: "${input}", output: { state.sent: "${result}" } } }
result: { sent: "${state.sent}" }
---
kind: workflow
name: outer
nodes: { a: {}, b: { workflow: waits } }
transitions: [{ from: a, to: b, spawn: 2 }]
"#;

/// A server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    client: Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// An answer that is waited for.
type Answering = std::pin::Pin<Box<dyn Future<Output = Answered> + Send>>;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) body: Value,
}

impl Served {
    pub(crate) async fn new() -> Self {
        Self::with(Access::Loopback, |builder| builder).await
    }

    pub(crate) async fn with(access: Access, build: impl FnOnce(Builder) -> Builder) -> Self {
        Self::all(access, Limits::default(), build).await
    }

    pub(crate) async fn bounded(limits: Limits) -> Self {
        Self::all(Access::Loopback, limits, |builder| builder).await
    }

    async fn all(access: Access, limits: Limits, build: impl FnOnce(Builder) -> Builder) -> Self {
        // Another test of this process may have been first.
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::tempdir().unwrap();
        let engine = build(Engine::open(folder.path().join("store.db")).unwrap().graphs()).start().unwrap();
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), access).await.unwrap().limits(limits);
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = engine.clone();
        let serving = tokio::spawn(async move { server.run(&served, async { drop(stopped.await) }).await });
        // No connection is kept for a next request: the server may close a silent one at the moment it is used again.
        let client = Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(Duration::from_secs(60));
        let client = client.build().unwrap();
        let served = Self { address, engine, client, stop, serving, _folder: folder };
        served.apply(WORKFLOWS).await;
        served
    }

    /// Adds workflows.
    pub(crate) async fn apply(&self, workflows: &str) {
        let read = definition::read("workflows.yaml", workflows);
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        Graphs::of(&self.engine).apply(&read.definitions).await.unwrap();
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub(crate) fn get(&self, path: &str) -> Answering {
        Box::pin(answered(self.request(Method::GET, path)))
    }

    /// Sends JSON text, which may be wrong.
    pub(crate) fn post(&self, path: &str, body: impl ToString) -> Answering {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        Box::pin(answered(request.body(body.to_string())))
    }

    /// Starts a run under an id.
    pub(crate) async fn start(&self, workflow: &str, id: &str) {
        let body = serde_json::json!({ "id": id });
        let answer = self.post(&format!("/v1/workflows/{workflow}/runs"), body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Stops it, as a signal to the process would.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
        self.engine.stop(Duration::ZERO).await;
    }
}

pub(crate) async fn answered(request: RequestBuilder) -> Answered {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let media_type = header(&response, "content-type");
    let text = response.text().await.unwrap();
    let body = if media_type.contains("json") { serde_json::from_str(&text).unwrap() } else { Value::String(text) };
    Answered { status, media_type, body }
}

pub(crate) fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}

impl Answered {
    /// The type of a problem document, which it must be.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, problem: &str) -> String {
        assert_eq!((self.status, &*self.media_type), (status, "application/problem+json"), "{self:?}");
        assert_eq!(self.body["type"], format!("/problems/{problem}"), "{self:?}");
        assert_eq!(self.body["status"], status);
        assert!(self.body["title"].is_string());
        self.body["detail"].as_str().unwrap().to_owned()
    }

    /// The `field` of each item.
    #[track_caller]
    pub(crate) fn items(&self, field: &str) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        let text = |item: &Value| item[field].as_str().map_or_else(|| item[field].to_string(), str::to_owned);
        self.body["items"].as_array().unwrap().iter().map(text).collect()
    }
}
