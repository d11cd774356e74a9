//! Clients that are slow, silent, or send what is no request: they are answered or closed, and others are served meanwhile.

use std::time::Duration;

use steadfast_server::{Access, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::served::Served;

/// Limits that a test can wait for.
const SHORT: Duration = Duration::from_millis(300);

fn limits() -> Limits {
    Limits { connections: 16, head_timeout: SHORT, body_timeout: SHORT, write_timeout: SHORT, ..Limits::default() }
}

async fn served(limits: Limits) -> Served {
    Served::bounded(limits).await
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.address).await.unwrap()
}

/// Sends bytes, and reads until the server closes.
async fn sent(served: &Served, bytes: &[u8]) -> String {
    let mut stream = connect(served).await;
    // A server that has heard enough closes before everything is sent.
    drop(stream.write_all(bytes).await);
    rest(&mut stream).await
}

/// Everything up to the end of the connection, however it ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let mut part = [0; 4096];
    loop {
        match tokio::time::timeout(Duration::from_secs(60), stream.read(&mut part)).await.unwrap() {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&received).into_owned(),
            Ok(length) => received.extend(&part[..length]),
        }
    }
}

/// Others do not notice.
async fn check_answers(served: &Served) {
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_not_waited_for() {
    let served = served(limits()).await;
    let mut trickling = connect(&served).await;
    trickling.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut silent = connect(&served).await;
    assert_eq!(rest(&mut trickling).await, "");
    assert_eq!(rest(&mut silent).await, "");
    check_answers(&served).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_end_is_refused() {
    let served = served(limits()).await;
    let head = "POST /v1/workflows/hello/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let answer = sent(&served, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("/problems/timeout"), "{answer}");
    check_answers(&served).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_reads_nothing_is_given_up() {
    let served = served(Limits { connections: 1, ..limits() }).await;
    // More than the buffers of both sockets hold.
    let large = "x".repeat(7 * 1024 * 1024);
    for id in ["a", "b", "c"] {
        let run = serde_json::json!({ "id": id, "input": { "name": large } });
        assert_eq!(served.post("/v1/workflows/hello/runs", run).await.status, 201);
    }
    let mut reader = connect(&served).await;
    reader.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").await.unwrap();
    // There is room for one connection only: this one waits until the reader is gone.
    check_answers(&served).await;
    drop(reader);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_silent_for_longest_makes_room() {
    let patient = Duration::from_secs(60);
    let served = served(Limits { connections: 8, head_timeout: patient, ..limits() }).await;
    let mut stream = connect(&served).await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 15]).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(connect(&served).await);
        check_answers(&served).await;
    }
    assert_eq!(rest(&mut silent[0]).await, "", "the first is closed");
    // A stream is no silence, although nothing is said on it.
    served.start("hello", "a").await;
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("workflow.started") {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_request_are_answered_and_the_connection_ends() {
    let served = served(limits()).await;
    let long_head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1_000_000));
    let many_heads = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1_000));
    let long_path = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70_000));
    let refused: [(&[u8], &str); 12] = [
        (b"\x16\x03\x01\x02\x00\x01\x00", "400"),
        (b"hello\r\n\r\n", "400"),
        (b"GET\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (b"GET /a b HTTP/1.1\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\n: no name\r\n\r\n", "400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
        (long_head.as_bytes(), "431"),
        (many_heads.as_bytes(), "431"),
        (long_path.as_bytes(), "414"),
    ];
    for (bytes, status) in refused {
        let answer = sent(&served, bytes).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        assert_eq!(answer.split(' ').nth(1), Some(status), "{shown}: {answer}");
    }
    check_answers(&served).await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_paths_and_queries_are_answered_with_problems() {
    let served = served(Limits { head_timeout: SHORT, ..Limits::default() }).await;
    let odd = [
        ("GET /../etc/passwd", "404"),
        ("GET /v1/runs/..%2f..%2fx", "400"),
        ("GET /v1/runs/%00", "400"),
        ("GET /v1/runs/%", "400"),
        ("GET /v1/runs?limit=1&limit=2", "400"),
        ("GET /v1/runs?%ff=1", "400"),
        ("GET /v1/runs?status=%ff", "400"),
        ("GET /v1/runs?workflow=%00", "200"),
        ("GET /v1/definitions/workflow/%F0%9F%98%80", "404"),
        ("GET /v1/definitions/nothing/x", "400"),
        ("BREW /v1/runs", "405"),
        ("OPTIONS /v1/runs", "405"),
        ("GET *", "404"),
        ("GET http://localhost/v1/nothing", "404"),
    ];
    for (line, status) in odd {
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = sent(&served, request.as_bytes()).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{line}: {answer}");
        assert!(status == "200" || answer.contains("application/problem+json"), "{line}: {answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_not_read_on_when_it_is_too_large_or_nobody_may_send_it() {
    let keys =
        steadfast_server::Keys::parse("read 3316348dbadfb7b11c7c2ea235949419e23f9fa898ad2c198f999617912a9925").unwrap();
    let guarded = Served::with(Access::Keys(keys), |builder| builder).await;
    let served = served(Limits::default()).await;
    let head = |key: &str| {
        format!(
            "PUT /v1/definitions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: 99999999999\r\n\r\n"
        )
    };
    // Answered although the body never comes.
    for (served, key, status) in [(&guarded, "nobody", "401"), (&guarded, "read", "403"), (&served, "", "413")] {
        let mut stream = connect(served).await;
        stream.write_all(head(key).as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
    guarded.stop().await;
    served.stop().await;
}
