//! The client against servers that answer as they are told to: cut off, strange, gone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::time::Duration;

use steadfast_api::v1::runs::{ListParameters, StartRun};
use steadfast_client::{Applying, Client, Control, Error, Key, Reading};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

/// A server that gives each connection one answer, in this order, and then is gone. What it was asked is its result.
async fn scripted(answers: &[&str]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                let mut part = [0; 4096];
                let length = stream.read(&mut part).await.unwrap();
                request.extend_from_slice(&part[..length]);
            }
            asked.push(String::from_utf8(request).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        asked
    });
    (url, serving)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// The beginning of a stream: it is over when the connection is.
fn stream(events: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}")
}

fn event(number: u64) -> String {
    let data = format!(
        r#"{{"sequence":{number},"at":"2026-11-15T00:00:00.000Z","type":"token.created","run_id":"r","root_id":"r","workflow":"w","version":1,"data":{{}}}}"#
    );
    format!("id: {number}\nevent: token.created\ndata: {data}\n\n")
}

const NO_RUNS: &str = r#"{"items":[],"next_cursor":null}"#;
const RUN: &str = r#"{"id":"r","workflow":"w","version":1,"status":"running","input":{},"output":null,"error":null,"started_at":"","ended_at":null,"parent":null,"root":"r","versions":{},"token_count":1}"#;

fn client(url: &str) -> Client {
    Client::new(url, None).unwrap()
}

#[tokio::test]
async fn a_question_is_asked_again_when_the_connection_breaks_or_the_store_does_not_answer() {
    let busy = r#"{"type":"/problems/unavailable","title":"","status":503,"detail":"later"}"#;
    let (url, serving) = scripted(&["", &answer("503 Service Unavailable", busy), &answer("200 OK", NO_RUNS)]).await;
    let wanted = ListParameters { workflow: Some("a b&c".to_owned()), limit: Some(7), ..ListParameters::default() };
    assert!(client(&url).runs(&wanted).await.unwrap().items.is_empty());
    let asked = serving.await.unwrap();
    assert_eq!(asked.len(), 3);
    assert!(
        asked.iter().all(|asked| asked.starts_with("GET /v1/runs?limit=7&workflow=a+b%26c HTTP/1.1\r\n")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_start_is_repeated_only_under_an_id() {
    let start = |id: Option<&str>| StartRun { input: None, id: id.map(str::to_owned), wait: None, trace: false };
    let (url, serving) = scripted(&["", &answer("201 Created", RUN)]).await;
    let started = client(&url).start("w", &start(Some("r")), Duration::ZERO).await.unwrap();
    assert!(started.is_new && started.run.id == "r");
    assert_eq!(serving.await.unwrap().len(), 2);

    let (url, serving) = scripted(&[""]).await;
    let error = client(&url).start("w", &start(None), Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert!(error.to_string().contains("look whether it was done"), "{error}");
    assert_eq!(serving.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_stream_that_was_cut_goes_on_behind_the_last_event_until_there_is_nothing_more() {
    let cut = stream(&format!("{}{}", event(1), &event(2)[..20]));
    let rest = stream(&format!(": still here\n\n{}{}", event(2), event(3)));
    let (url, serving) = scripted(&[&cut, "", &rest, &answer("204 No Content", "")]).await;
    let mut events = client(&url).follow("r", Reading::Run, None);
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push(event.sequence);
    }
    assert_eq!(seen, [1, 2, 3]);
    let asked = serving.await.unwrap();
    let places: Vec<&str> =
        asked.iter().filter_map(|asked| asked.lines().find_map(|line| line.strip_prefix("last-event-id: "))).collect();
    assert_eq!(places, ["0", "1", "1", "3"]);
    assert!(asked[0].contains("accept: text/event-stream\r\n"), "{}", asked[0]);
}

#[tokio::test]
async fn a_stream_from_nobody_is_an_error_at_once() {
    let (_socket, url) = nobody();
    let error = client(&url).follow("r", Reading::Run, None).next().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

/// A URL where nobody listens, as long as the socket that has its port is kept.
fn nobody() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    (socket, url)
}

#[tokio::test]
async fn where_nobody_listens_it_is_said_what_to_do() {
    let (_socket, url) = nobody();
    let error = client(&url).run("r").await.unwrap_err();
    let told = error.to_string();
    for part in [&*url, "refused", "`steadfast dev`", "`steadfast serve`", "`--url`", "STEADFAST_URL"] {
        assert!(told.contains(part), "`{part}` is missing in {told}");
    }
}

#[tokio::test]
async fn whoever_answers_otherwise_is_told_from_a_server_that_refuses() {
    let (url, _serving) = scripted(&[&answer("404 Not Found", "<html>")]).await;
    let error = client(&url).run("r").await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }) && error.to_string().contains("status 404"), "{error}");

    let (url, _serving) = scripted(&[&answer("200 OK", "{}")]).await;
    assert!(matches!(client(&url).run("r").await.unwrap_err(), Error::Foreign { .. }));

    let problem = r#"{"type":"/problems/invalid-definitions","title":"","status":422,"detail":"nothing was applied","problems":[{"severity":"error","file":"body","line":3,"column":7,"message":"no node `x`","hint":"did you mean `y`?"}]}"#;
    let (url, _serving) = scripted(&[&answer("422 Unprocessable Entity", problem)]).await;
    let error = client(&url).apply("kind: x".to_owned(), Applying::Now).await.unwrap_err();
    assert_eq!(error.to_string(), "nothing was applied\n  3:7: error: no node `x` (did you mean `y`?)");
}

#[tokio::test]
async fn names_stay_where_they_belong_in_a_path() {
    let (url, serving) = scripted(&[&answer("200 OK", r#"{"id":"r","status":"paused"}"#)]).await;
    client(&format!("{url}/behind/")).control("a/../b?c", Control::Pause, None).await.unwrap();
    let asked = serving.await.unwrap();
    assert!(asked[0].starts_with("POST /behind/v1/runs/a%2F..%2Fb%3Fc/pause HTTP/1.1\r\n"), "{}", asked[0]);
    for name in ["", ".", ".."] {
        assert!(matches!(client(&url).run(name).await.unwrap_err(), Error::InvalidName(_)));
    }
}

#[tokio::test]
async fn a_key_is_sent_and_never_shown() {
    let (url, serving) = scripted(&[&answer("401 Unauthorized", "")]).await;
    let client = Client::new(&url, Some(Key::new(" hush-hush\n").unwrap())).unwrap();
    let error = client.run("r").await.unwrap_err();
    let shown = format!("{client:?} {error:?} {error}");
    assert!(!shown.contains("hush"), "{shown}");
    assert!(serving.await.unwrap()[0].contains("authorization: Bearer hush-hush\r\n"));
    assert!(Key::new(" ").is_err() && Key::new("two words").is_err());
}

#[test]
fn what_is_no_url_of_a_server_is_refused() {
    for url in ["", "localhost:7400", "ftp://x", "127.0.0.1:7400"] {
        let error = Client::new(url, None).unwrap_err().to_string();
        assert!(error.contains("expected one such as http://127.0.0.1:7400"), "{error}");
    }
    let error = Client::new("http://ada:secret@localhost", None).unwrap_err().to_string();
    assert!(!error.contains("secret") && error.contains("STEADFAST_KEY"), "{error}");
}
