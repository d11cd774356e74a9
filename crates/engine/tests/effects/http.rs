//! HTTP requests.

use serde_json::{Value, json};
use steadfast::core::limits;
use steadfast::effects::{LinkLocal, Settings};

use crate::asker::{bearer, details, engine, run, settings, started, task, told};
use crate::server::{Server, answer};

#[tokio::test]
async fn a_request_says_what_it_was_told_to() {
    let server =
        Server::always(answer("200 OK", &[("content-type", "application/json"), ("X-A", "1")], "{\"b\":1.50}")).await;
    let specification = json!({
        "method": "put",
        "url": server.url("/things?a=1"),
        "headers": { "X-Several": ["x", "y"], "X-None": null },
        "query": { "q": ["a b", 2], "none": null },
        "body": { "name": "ü" },
    });
    let result = run(&engine(), "http", &task(specification)).await.unwrap();
    assert_eq!((&result["status"], &result["headers"]["x-a"]), (&json!(200), &json!("1")));
    assert_eq!(result["body"].to_string(), r#"{"b":1.5}"#);
    let asked = &server.asked()[0];
    assert!(asked.starts_with("PUT /things?a=1&q=a+b&q=2 HTTP/1.1\r\n"), "{asked}");
    for line in ["x-several: x", "x-several: y", "content-type: application/json", "idempotency-key: asker:a/node"] {
        assert!(asked.contains(&format!("{line}\r\n")), "{line} in {asked}");
    }
    assert!(asked.ends_with("\r\n\r\n{\"name\":\"ü\"}"), "{asked}");
}

#[tokio::test]
async fn the_method_follows_the_body_and_given_headers_stand() {
    let server = Server::always(answer("204 No Content", &[], "")).await;
    let engine = engine();
    let result = run(&engine, "http", &task(json!({ "url": server.url("/") }))).await.unwrap();
    assert_eq!((&result["status"], &result["body"]), (&json!(204), &Value::Null));
    let headers = json!({ "Idempotency-Key": "mine", "content-type": "text/csv" });
    run(&engine, "http", &task(json!({ "url": server.url("/"), "body": "a,b", "headers": headers }))).await.unwrap();
    run(&engine, "http", &task(json!({ "url": server.url("/"), "body": "plain" }))).await.unwrap();
    let asked = server.asked();
    assert!(asked[0].starts_with("GET / "), "{}", asked[0]);
    assert!(asked[1].starts_with("POST / ") && asked[1].contains("idempotency-key: mine\r\n"), "{}", asked[1]);
    assert!(!asked[1].contains("asker:a/node"), "{}", asked[1]);
    assert!(asked[1].contains("content-type: text/csv\r\n"), "{}", asked[1]);
    assert!(asked[2].contains("content-type: text/plain; charset=utf-8\r\n"), "{}", asked[2]);
}

#[tokio::test]
async fn a_body_is_json_when_it_says_so_or_says_nothing_and_text_otherwise() {
    for (headers, body, expected) in [
        (&[("content-type", "application/problem+json; charset=utf-8")][..], "[1]", json!([1])),
        (&[], "[1]", json!([1])),
        (&[], "hello", json!("hello")),
        (&[("content-type", "text/plain")], "[1]", json!("[1]")),
        (&[("content-type", "application/json")], "{broken", json!("{broken")),
    ] {
        let server = Server::always(answer("200 OK", headers, body)).await;
        let result = run(&engine(), "http", &task(json!({ "url": server.url("/") }))).await.unwrap();
        assert_eq!(result["body"], expected);
    }
}

#[tokio::test]
async fn statuses_decide_whether_trying_again_can_help() {
    for (status, retryable) in [
        ("408 x", true),
        ("425 x", true),
        ("429 x", true),
        ("500 x", true),
        ("503 x", true),
        ("400 x", false),
        ("404 x", false),
        ("304 x", false),
    ] {
        let server = Server::always(answer(status, &[], "")).await;
        let (kind, is_retryable, message) =
            told(run(&engine(), "http", &task(json!({ "url": server.url("/p?q=1") }))).await);
        assert_eq!((kind.as_str(), is_retryable), ("task_failed", retryable), "{status}");
        assert!(message.starts_with(&format!("GET {} answered {}", server.url("/p"), &status[..3])), "{message}");
    }
}

#[tokio::test]
async fn what_counts_as_ok_can_be_said() {
    let server = Server::always(answer("404 Not Found", &[], "none")).await;
    let result = run(&engine(), "http", &task(json!({ "url": server.url("/"), "ok": [200, 404] }))).await.unwrap();
    assert_eq!(result["status"], json!(404));
    let server = Server::always(answer("202 Accepted", &[], "")).await;
    let (_, retryable, _) = told(run(&engine(), "http", &task(json!({ "url": server.url("/"), "ok": [200] }))).await);
    assert!(!retryable);
}

#[tokio::test]
async fn a_failure_has_the_status_the_wait_and_a_part_of_the_body() {
    let long = "x".repeat(100_000);
    let server = Server::always(answer("429 Too Many Requests", &[("Retry-After", "7")], &long)).await;
    let details = details(run(&engine(), "http", &task(json!({ "url": server.url("/") }))).await);
    assert_eq!((&details["status"], &details["retry_after_ms"]), (&json!(429), &json!(7_000)));
    assert!(details["body"].as_str().unwrap().len() <= limits::EXCERPT_BYTES_MAX + '…'.len_utf8());
}

#[tokio::test]
async fn a_connection_that_fails_or_breaks_off_may_be_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let (kind, retryable, message) = told(run(&engine(), "http", &task(json!({ "url": url }))).await);
    assert_eq!((kind.as_str(), retryable), ("task_failed", true), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
    let server = Server::always("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let (_, retryable, message) = told(run(&engine(), "http", &task(json!({ "url": server.url("/") }))).await);
    assert!(retryable && message.contains("broke off"), "{message}");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_by_name() {
    let server = Server::always(answer("200 OK", &[], &"x".repeat(limits::VALUE_BYTES_MAX + 1))).await;
    let (kind, retryable, message) = told(run(&engine(), "http", &task(json!({ "url": server.url("/") }))).await);
    assert_eq!((kind.as_str(), retryable), ("invalid_output", false));
    assert!(message.contains("VALUE_BYTES_MAX"), "{message}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_left_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut input = task(json!({ "url": url }));
    input.timeout_ms = Some(50);
    input.attempt = 3;
    let told = told(run(&engine(), "http", &input).await);
    assert_eq!(told, ("timeout".to_owned(), true, "attempt 3 of node `x` took longer than 50ms".to_owned()));
}

#[tokio::test]
async fn a_task_that_makes_no_sense_is_not_tried_again() {
    for specification in [
        json!({ "url": "nowhere" }),
        json!({ "url": "file:///etc/passwd" }),
        json!({ "url": "http://x/", "method": "a b" }),
        json!({ "url": "http://x/", "headers": { "a b": "c" } }),
        json!({ "url": "http://x/", "headers": { "a": "c\r\nd: e" } }),
        json!({ "url": "http://x/", "surprise": 1 }),
        json!({}),
    ] {
        let (kind, retryable, message) = told(run(&engine(), "http", &task(specification.clone())).await);
        assert_eq!((kind.as_str(), retryable), ("invalid_input", false), "{specification}: {message}");
    }
}

#[tokio::test]
async fn redirects_are_followed_a_few_times() {
    let server = Server::start(|request| {
        let path = request.split(' ').nth(1).unwrap();
        match path.strip_prefix("/hop/").and_then(|left| left.parse::<u32>().ok()) {
            Some(left @ 1..) => answer("302 Found", &[("location", &format!("/hop/{}", left - 1))], ""),
            Some(0) | None => answer("200 OK", &[], "there"),
        }
    })
    .await;
    let engine = engine();
    let result = run(&engine, "http", &task(json!({ "url": server.url("/hop/5") }))).await.unwrap();
    assert_eq!(result["body"], json!("there"));
    let (_, retryable, message) = told(run(&engine, "http", &task(json!({ "url": server.url("/hop/6") }))).await);
    assert!(!retryable && message.contains("redirected more than 5 times"), "{message}");
}

#[tokio::test]
async fn a_request_with_secrets_is_not_redirected_to_another_place() {
    let other = Server::always(answer("200 OK", &[], "got you")).await;
    let location = other.url("/");
    let server = Server::start(move |request| {
        let to = if request.starts_with("GET /same") { "/there" } else { &location };
        if request.starts_with("GET /there") {
            answer("200 OK", &[], "fine")
        } else {
            answer("307 x", &[("location", to)], "")
        }
    })
    .await;
    let engine = engine();
    let with_secret = |path: &str| {
        let mut input = task(json!({ "url": server.url(path), "headers": { "x-key": null } }));
        input.secrets = vec![bearer("/headers/x-key", "TOKEN")];
        input
    };
    assert_eq!(run(&engine, "http", &with_secret("/same")).await.unwrap()["body"], json!("fine"));
    let (_, retryable, message) = told(run(&engine, "http", &with_secret("/away")).await);
    assert!(!retryable && message.contains("redirected to another place, and carries secrets"), "{message}");
    assert_eq!(other.asked(), [] as [&str; 0]);
    let plain = run(&engine, "http", &task(json!({ "url": server.url("/away") }))).await.unwrap();
    assert_eq!(plain["body"], json!("got you"));
}

#[tokio::test]
async fn addresses_of_the_local_link_are_refused_also_after_a_redirect() {
    let server = Server::always(answer("302 x", &[("location", "http://169.254.169.254/latest/meta-data")], "")).await;
    let engine = engine();
    for url in [server.url("/"), "http://169.254.169.254/".to_owned(), "http://[::ffff:a9fe:a9fe]/".to_owned()] {
        let (kind, retryable, message) = told(run(&engine, "http", &task(json!({ "url": url }))).await);
        assert_eq!((kind.as_str(), retryable), ("invalid_input", false), "{message}");
        assert!(message.contains("an address of the local link"), "{message}");
    }
}

#[tokio::test]
async fn addresses_of_the_local_link_can_be_allowed() {
    let engine = started(|builder| builder.effects(Settings { link_local: LinkLocal::Allowed, ..settings() }));
    let mut input = task(json!({ "url": "http://169.254.0.1:9/" }));
    input.timeout_ms = Some(100);
    let (_, _, message) = told(run(&engine, "http", &input).await);
    assert!(!message.contains("local link"), "{message}");
}
