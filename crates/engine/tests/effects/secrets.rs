//! Secrets: there where they belong, and nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use steadfast::core::expression::{SecretPart, SecretPlace};
use steadfast::core::limits;
use steadfast::effects::{EnvironmentSecrets, Settings};

use crate::asker::{bearer, engine, lacking, run, settings, started, task, told};
use crate::server::{Server, answer};

const TOKEN: &str = "s3cr3t token/+";

#[tokio::test]
async fn a_secret_goes_out_and_does_not_come_back() {
    let server = Server::start(|request| answer("200 OK", &[("x-echo", TOKEN)], request)).await;
    let mut input =
        task(json!({ "url": server.url("/"), "query": { "key": null }, "headers": { "authorization": null } }));
    let place = SecretPlace { pointer: "/query/key".to_owned(), parts: vec![SecretPart::Secret("TOKEN".to_owned())] };
    input.secrets = vec![bearer("/headers/authorization", "TOKEN"), place];
    let result = run(&engine(), "http", &input).await.unwrap();
    let asked = &server.asked()[0];
    assert!(asked.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{asked}");
    assert!(asked.contains("key=s3cr3t+token%2F%2B"), "{asked}");
    let shown = result.to_string();
    assert!(!shown.contains("s3cr3t"), "{shown}");
    assert!(shown.contains("Bearer [secret TOKEN]") && shown.contains("key=[secret TOKEN]"), "{shown}");
    assert_eq!(result["headers"]["x-echo"], json!("[secret TOKEN]"));
}

#[tokio::test]
async fn a_failure_does_not_tell_a_secret() {
    let mut input =
        task(json!({ "program": "/bin/sh", "args": ["-c", "echo \"$KEY\" >&2; exit 1"], "env": { "KEY": null } }));
    input.secrets = vec![bearer("/env/KEY", "TOKEN")];
    let failure = run(&engine(), "command", &input).await.unwrap_err();
    assert!(failure.message.ends_with("exit status: 1: Bearer [secret TOKEN]"), "{failure}");
    assert_eq!(failure.details.unwrap().as_str(), r#"{"status":1,"stderr":"Bearer [secret TOKEN]"}"#);
}

#[tokio::test]
async fn no_part_of_a_secret_is_left_where_an_excerpt_is_cut() {
    let before = "-".repeat(limits::EXCERPT_BYTES_MAX - 5);
    let body = format!("{before}{TOKEN}{}", "-".repeat(10_000));
    let server = Server::always(answer("500 x", &[], &body)).await;
    let mut input = task(json!({ "url": server.url("/"), "headers": { "authorization": null } }));
    input.secrets = vec![bearer("/headers/authorization", "TOKEN")];
    let failure = run(&engine(), "http", &input).await.unwrap_err();
    let details = failure.details.unwrap();
    assert!(!details.as_str().contains("s3c") && details.as_str().contains("---"), "{details}");

    let dashes = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' '-'");
    let many = dashes(10_000);
    let few = dashes(limits::EXCERPT_BYTES_MAX - 5);
    for script in
        [format!("({many}; printf %s \"$KEY\"; {few}) >&2; exit 1"), format!("{few}; printf %s \"$KEY\"; {many}")]
    {
        let mut input = task(json!({ "program": "/bin/sh", "args": ["-c", script], "env": { "KEY": null } }));
        input.secrets = vec![bearer("/env/KEY", "TOKEN")];
        let failure = run(&engine(), "command", &input).await.unwrap_err();
        let told = format!("{} {:?}", failure.message, failure.details);
        assert!(!told.contains("en/+") && !told.contains("s3c") && told.contains("---"), "{told}");
    }
}

#[tokio::test]
async fn the_url_of_a_call_with_secrets_is_not_shown_beyond_its_place() {
    let server = Server::always(answer("404 x", &[], "")).await;
    let url = |text: &str| {
        let mut input = task(json!({ "url": null }));
        let parts = vec![SecretPart::Text(text.to_owned()), SecretPart::Secret("TOKEN".to_owned())];
        input.secrets = vec![SecretPlace { pointer: "/url".to_owned(), parts }];
        input
    };
    let (_, _, message) = told(run(&engine(), "http", &url(&server.url("/private/"))).await);
    assert_eq!(message, format!("GET {} answered 404 Not Found", server.url("")));
    let secrets = BTreeMap::from([("TOKEN".to_owned(), "Upper-Case.invalid".to_owned())]);
    let engine = started(|builder| builder.effects(Settings { secrets: Arc::new(secrets), ..settings() }));
    let (_, _, message) = told(run(&engine, "http", &url("http://")).await);
    assert!(message.starts_with("GET http://… failed: "), "{message}");
    assert!(!message.to_lowercase().contains("upper-case"), "{message}");
}

#[tokio::test]
async fn a_result_too_deep_to_look_into_is_a_failure() {
    let script = "head -c 200 /dev/zero | tr '\\0' '['; head -c 200 /dev/zero | tr '\\0' ']'";
    let mut input = task(json!({ "program": "/bin/sh", "args": ["-c", script], "env": { "KEY": null } }));
    input.secrets = vec![bearer("/env/KEY", "TOKEN")];
    let (kind, retryable, message) = told(run(&engine(), "command", &input).await);
    assert_eq!((kind.as_str(), retryable), ("invalid_output", false), "{message}");
}

#[tokio::test]
async fn secrets_that_are_not_set_are_waited_for_and_it_is_said_what_to_set() {
    let engine = started(|builder| builder.effects(Settings { secrets: Arc::new(EnvironmentSecrets), ..settings() }));
    let mut input = task(json!({ "value": [null, null, null] }));
    let names = ["NOBODY_HAS_THIS", "NOR_THIS", "NOBODY_HAS_THIS"];
    input.secrets = names.iter().enumerate().map(|(index, name)| bearer(&format!("/value/{index}"), name)).collect();
    assert_eq!(
        lacking(&engine, "mock", &input).await,
        "secret `NOBODY_HAS_THIS` is not set: set the environment variable `STEADFAST_SECRET_NOBODY_HAS_THIS`; \
         secret `NOR_THIS` is not set: set the environment variable `STEADFAST_SECRET_NOR_THIS`"
    );
}

#[tokio::test]
async fn a_secret_too_short_to_be_one_is_sent_but_not_looked_for() {
    let mut input = task(json!({ "value": null }));
    input.secrets = vec![bearer("/value", "PIN")];
    assert_eq!(run(&engine(), "mock", &input).await, Ok(json!("Bearer 123")));
}
