//! `steadfast serve --otlp`: traces of a server that is killed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::run;
use crate::serve::SERVE;
use crate::served::Served;

const FLOW: &str = r#"
kind: workflow
name: wide
nodes: { a: {}, b: { run: { mock: { value: 1, delay: "${10 * item}" } } } }
transitions: [{ from: a, to: b, foreach: { in: input } }]
"#;

const TASKS: usize = 60;

/// So that a test that fails does not wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector: where it is, and the spans of each request.
fn collector() -> (String, Receiver<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, spans) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A server that is killed leaves in the middle; a test that is over listens no more.
            let Some(body) = answered(stream.unwrap()) else { continue };
            let sent = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
            if sender.send(sent).is_err() {
                return;
            }
        }
    });
    (url, spans)
}

fn answered(mut stream: TcpStream) -> Option<Value> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
            if body.len() == length {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").ok()?;
                return Some(serde_json::from_str(body).unwrap());
            }
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_sends_the_rest_of_a_trace_after_its_next_start() {
    let (url, sent) = collector();
    let otlp = format!("--otlp {url}");
    let mut served =
        Served::begin(tempdir().unwrap(), &format!("serve --store s.db --json --listen 127.0.0.1:0 {otlp}"));
    std::fs::write(served.path().join("wide.yaml"), FLOW).unwrap();
    served.run("apply wide.yaml").done();
    let input: Vec<String> = (0..TASKS).map(|number| number.to_string()).collect();
    served.run(&format!("start wide --id r1 --input [{}]", input.join(","))).done();
    let mut spans: BTreeMap<String, Value> = BTreeMap::new();
    let mut take = |sent: Vec<Value>| {
        for span in sent {
            // What comes again is the same.
            let before = spans.insert(span["spanId"].as_str().unwrap().to_owned(), span.clone());
            assert!(before.is_none_or(|before| before == span), "{span}");
        }
        spans.len()
    };
    take(sent.recv_timeout(PATIENCE).unwrap());
    served.killed_and_begun_again_with(&otlp);
    // The tasks and their run.
    while take(sent.recv_timeout(PATIENCE).unwrap()) < TASKS + 1 {}
    let trace = &spans.values().next().unwrap()["traceId"];
    let is_unknown = |span: &Value| span["attributes"].to_string().contains("start_unknown");
    assert!(spans.values().all(|span| span["traceId"] == *trace && !is_unknown(span)), "{spans:#?}");
    assert_eq!(spans.values().filter(|span| span["name"] == "wide").count(), 1);
}

#[test]
fn a_collector_that_cannot_be_one_is_refused_before_anything_is_opened() {
    let folder = tempdir().unwrap();
    let error = run(folder.path(), &format!("{SERVE} --otlp localhost:4318")).failed(2);
    assert!(error.contains("`--otlp`: `localhost:` is neither `http:` nor `https:`"), "{error}");
    assert!(error.contains("http://127.0.0.1:4318"), "{error}");
    assert!(!folder.path().join("s.db").exists());
}
