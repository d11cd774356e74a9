//! `steadfast serve`: where it listens, what it refuses, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{run, steadfast};

/// A server, and where it says that it listens.
pub(crate) fn start(folder: &Path, line: &str) -> (Child, String) {
    let mut child = steadfast(folder, line).stdout(Stdio::piped()).spawn().unwrap();
    let address = address(&mut child);
    (child, address)
}

pub(crate) fn address(child: &mut Child) -> String {
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    told["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned()
}

pub(crate) fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[track_caller]
pub(crate) fn end(mut child: Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

pub(crate) const SERVE: &str = "serve --store sqlite:s.db --listen 127.0.0.1:0 --json";

#[test]
fn what_was_started_goes_on_after_the_server_was_stopped_and_started_again() {
    let folder = tempdir().unwrap();
    let (child, address) = start(folder.path(), SERVE);
    let workflow = r#"{"kind": "workflow", "name": "waits", "nodes": {"a": {"wait": {"signal": "go"}}}}"#;
    assert!(ask(&address, "PUT /v1/definitions", workflow).starts_with("HTTP/1.1 200 "));
    assert!(ask(&address, "POST /v1/workflows/waits/runs", r#"{"id": "a"}"#).starts_with("HTTP/1.1 201 "));
    // A stream that is open does not hold up the end.
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /v1/runs/a/events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 15]).unwrap();
    end(child, "-TERM");

    let (child, address) = start(folder.path(), SERVE);
    assert!(ask(&address, "POST /v1/runs/a/signals/go", "1").starts_with("HTTP/1.1 200 "));
    assert!(ask(&address, "GET /v1/runs/a", "").contains(r#""status":"completed""#));
    // A reader of the first process goes on in the second.
    let resumed = "GET /v1/runs/a/events HTTP/1.1\r\nAccept: text/event-stream\r\nLast-Event-ID: 1\r\nX-Rest:";
    let events = ask(&address, resumed, "");
    assert!(!events.contains("\nid: 1\n") && events.contains("\nid: 2\n"), "{events}");
    end(child, "-INT");
}

#[test]
fn an_address_or_a_store_that_is_taken_is_refused() {
    let folder = tempdir().unwrap();
    let (child, address) = start(folder.path(), SERVE);
    let error = run(folder.path(), &format!("serve --store other.db --listen {address}")).failed(1);
    assert!(error.contains("is in use: another server listens there"), "{error}");
    assert!(!folder.path().join("other.db").exists(), "with a wrong address the store is not touched");
    let error = run(folder.path(), "serve --store s.db --listen 127.0.0.1:0").failed(1);
    assert!(error.contains("s.db"), "{error}");
    end(child, "-TERM");
}

#[test]
fn what_would_let_everybody_in_must_be_wanted() {
    let folder = tempdir().unwrap();
    let error = run(folder.path(), "serve --store s.db --listen 0.0.0.0:0").failed(2);
    assert!(error.contains("--api-key-file") && error.contains("--insecure"), "{error}");
    let error = run(folder.path(), "serve --store s.db --api-key-file nothing").failed(2);
    assert!(error.contains("`nothing` cannot be read"), "{error}");
    std::fs::write(folder.path().join("keys"), "admin secret\n").unwrap();
    let error = run(folder.path(), "serve --store s.db --api-key-file keys").failed(2);
    assert!(error.contains("line 1") && !error.contains("secret"), "{error}");
    let error = run(folder.path(), "serve --store postgres://x").failed(2);
    assert!(error.contains("no store of kind `postgres`"), "{error}");
    assert!(!folder.path().join("s.db").exists());
}

#[test]
fn keys_are_asked_for_where_there_are_some() {
    let folder = tempdir().unwrap();
    let hash = "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918";
    std::fs::write(folder.path().join("keys"), format!("read {hash}\n")).unwrap();
    let (child, address) = start(folder.path(), &format!("{SERVE} --api-key-file keys"));
    assert!(ask(&address, "GET /v1/runs", "").starts_with("HTTP/1.1 401 "));
    let with_key = ask(&address, "GET /v1/runs HTTP/1.1\r\nAuthorization: Bearer admin\r\nX-Rest:", "");
    assert!(with_key.starts_with("HTTP/1.1 200 "), "{with_key}");
    end(child, "-TERM");
}
