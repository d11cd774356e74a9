//! The executor `function`: functions of the program that embeds the engine, by name.
//!
//! Owns their registry and the way from JSON to their types and back. A function may run more than once for one task, so it passes the
//! task's key on to whatever it calls.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;

use super::{Call, Effect};
use crate::tasks::NotDone;

/// What a function is told besides its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionContext {
    /// The same for every attempt, for whoever must recognise a repeated call.
    pub key: String,
    /// The policy's attempt, from 1.
    pub attempt: u32,
}

type Running = Pin<Box<dyn Future<Output = Result<Json, Failure>> + Send>>;
type Registered = Arc<dyn Fn(Json, FunctionContext) -> Running + Send + Sync>;

/// Functions by name.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<String, Registered>);

impl Functions {
    /// Adds one; the last of a name counts.
    pub fn insert<T, R, F, Fut>(&mut self, name: &str, function: F)
    where
        T: DeserializeOwned,
        R: Serialize,
        F: Fn(T, FunctionContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let run = move |input: Json, context: FunctionContext| -> Running {
            match input.decode::<T>() {
                Ok(input) => {
                    let running = function(input, context);
                    Box::pin(async move { encoded(&running.await?) })
                }
                Err(error) => {
                    let message = format!("the function's input cannot be read: {error}");
                    Box::pin(async move { Err(Failure::last(FailureKind::InvalidInput, &message)) })
                }
            }
        };
        self.0.insert(name.to_owned(), Arc::new(run));
    }

    fn unknown(&self, name: &str) -> NotDone {
        let known: Vec<String> = self.0.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        NotDone::Lacking(format!(
            "this process has no function `{name}`, it has {known}: add it with `Builder::function`"
        ))
    }
}

fn encoded<R: Serialize>(result: &R) -> Result<Json, Failure> {
    Json::encode(result).map_err(|error| {
        Failure::last(FailureKind::InvalidOutput, &format!("the function's result cannot be written as JSON: {error}"))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    function: String,
}

impl Effect for Functions {
    const TIMEOUT_MS: Option<u64> = None;

    async fn run(&self, mut call: Call) -> Result<Json, NotDone> {
        let Specification { function } = call.specification()?;
        let registered = self.0.get(&function).ok_or_else(|| self.unknown(&function))?;
        Ok(registered(call.input, FunctionContext { key: call.key, attempt: call.attempt }).await?)
    }
}
