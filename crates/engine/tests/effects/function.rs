//! Functions of the program that embeds the engine.

use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast::Engine;
use steadfast::core::failure::{Failure, FailureKind};
use steadfast::core::json::Json;
use steadfast::effects::FunctionContext;

use crate::asker::{lacking, run, settings, started, task, told};

#[derive(Deserialize)]
struct Order {
    items: u32,
}

#[derive(Serialize)]
struct Receipt {
    total: u32,
    key: String,
    attempt: u32,
}

async fn buy(order: Order, context: FunctionContext) -> Result<Receipt, Failure> {
    match order.items {
        0 => Err(Failure::last(FailureKind::TaskFailed, "an empty order")),
        items => Ok(Receipt { total: items * 3, key: context.key, attempt: context.attempt }),
    }
}

fn engine() -> Engine {
    // The order of the calls does not matter.
    started(|builder| {
        builder.function("buy", buy).effects(settings()).function("echo", async |input: Json, _| Ok(input))
    })
}

async fn call(name: &str, input: &str) -> Result<serde_json::Value, Failure> {
    let mut task = task(json!({ "function": name }));
    task.input = Json::parse(input).unwrap();
    task.attempt = 2;
    run(&engine(), "function", &task).await
}

#[tokio::test]
async fn a_function_is_given_its_types_and_who_it_works_for() {
    assert_eq!(call("buy", r#"{"items":2}"#).await, Ok(json!({ "total": 6, "key": "asker:a/node", "attempt": 2 })));
    assert_eq!(call("echo", r#"[1]"#).await, Ok(json!([1])));
}

#[tokio::test]
async fn a_function_fails_as_it_says() {
    assert_eq!(
        told(call("buy", r#"{"items":0}"#).await),
        ("task_failed".to_owned(), false, "an empty order".to_owned())
    );
}

#[tokio::test]
async fn an_input_of_another_form_is_refused() {
    let (kind, retryable, message) = told(call("buy", r#"{"items":"two"}"#).await);
    assert_eq!((kind.as_str(), retryable), ("invalid_input", false));
    assert!(message.contains("invalid type"), "{message}");
}

#[tokio::test]
async fn a_function_that_is_not_there_is_waited_for() {
    let lacking = lacking(&engine(), "function", &task(json!({ "function": "sell" }))).await;
    assert_eq!(lacking, "this process has no function `sell`, it has `buy`, `echo`: add it with `Builder::function`");
}

#[tokio::test]
async fn a_function_needs_no_other_effects() {
    let engine = started(|builder| builder.function("echo", async |input: Json, _| Ok(input)));
    let result = run(&engine, "function", &task(json!({ "function": "echo" }))).await;
    assert_eq!(result, Ok(json!(null)));
    let lacking = lacking(&engine, "http", &task(json!({ "url": "http://x/" }))).await;
    assert_eq!(lacking, "this process has no executor `http`: add it with `Builder::executor`");
}

#[tokio::test]
async fn an_executor_of_the_programs_own_takes_the_place_of_ours() {
    let own = steadfast::Function(async |_| Json::encode("mine").map_err(|_| unreachable!()));
    let engine = started(|builder| builder.executor("http", own).effects(settings()));
    assert_eq!(run(&engine, "http", &task(json!({}))).await, Ok(json!("mine")));
}
