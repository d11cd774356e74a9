//! What a mock gives: something that stands in for a task in tests and demos.
//!
//! Owns the rules of `mock:`: which attempts fail, how long it takes, what a schema's value looks like. All of it depends on nothing but the
//! specification, the task's key and the attempt, so that a run done again goes the same way. Never waits: the executor does.
//! Start reading at [`outcome`].

mod generate;
mod random;

use serde::Deserialize;
use serde_json::Value;

use crate::duration::parse_ms;
use crate::failure::{Failure, FailureKind};
use crate::json::Json;
use random::Random;

/// How a mock behaves.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Specification {
    /// What it gives, as it is. `null` when there is no schema either.
    pub value: Option<Value>,
    /// The JSON Schema of what it gives: a plausible value is made up.
    pub schema: Option<Value>,
    /// How long it takes.
    pub delay: Option<Delay>,
    /// By how much longer it may take: a random part of this is added.
    pub delay_jitter: Option<Delay>,
    /// How it fails.
    pub fail: Option<Fail>,
    /// Another seed, another value and another delay.
    pub seed: Option<Value>,
}

/// A duration as text (`100ms`), or as a number of milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Delay {
    /// Milliseconds.
    Ms(f64),
    /// With its unit.
    Text(String),
}

/// How a mock fails.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Fail {
    /// How many attempts fail, from the first. All of them when it is not given.
    pub times: Option<f64>,
    /// The type of the failure.
    #[serde(rename = "type")]
    pub kind: Option<FailureKind>,
    /// What it says.
    pub message: Option<String>,
    /// Whether trying again can help; it can when nothing is said.
    pub retryable: Option<bool>,
}

/// What a mock does in one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Mocked {
    /// How long it takes, whatever comes of it.
    pub delay_ms: u64,
    /// What comes of it.
    pub outcome: Result<Json, Failure>,
}

/// What the mock does in `attempt` (1 for the first) of the task named by `key`. Its outcome is a failure at once when the specification makes no sense.
#[must_use]
pub fn outcome(specification: &Specification, key: &str, attempt: u32) -> Mocked {
    let mut random = Random::of(specification.seed.as_ref(), key, attempt);
    match delay_ms(specification, &mut random) {
        Ok(delay_ms) => Mocked { delay_ms, outcome: result(specification, &mut random, attempt) },
        Err(message) => Mocked { delay_ms: 0, outcome: Err(Failure::last(FailureKind::InvalidInput, &message)) },
    }
}

fn delay_ms(specification: &Specification, random: &mut Random) -> Result<u64, String> {
    let ms = |delay: &Option<Delay>| delay.as_ref().map_or(Ok(0), Delay::ms);
    let (delay, jitter) = (ms(&specification.delay)?, ms(&specification.delay_jitter)?);
    Ok(delay.saturating_add(random.up_to(jitter)))
}

impl Delay {
    fn ms(&self) -> Result<u64, String> {
        match self {
            // `as` saturates: whoever asks for for ever gets nearly that.
            Self::Ms(ms) if *ms >= 0.0 => Ok(*ms as u64),
            Self::Ms(ms) => Err(format!("a delay is 0 or more milliseconds, found {ms}")),
            Self::Text(text) => parse_ms(text).map_err(|error| error.to_string()),
        }
    }
}

fn result(specification: &Specification, random: &mut Random, attempt: u32) -> Result<Json, Failure> {
    if let Some(fail) = &specification.fail
        && fail.times.is_none_or(|times| f64::from(attempt) <= times)
    {
        return Err(fail.failure(attempt));
    }
    let value = match (&specification.value, &specification.schema) {
        (Some(_), Some(_)) => {
            return Err(Failure::last(FailureKind::InvalidInput, "a mock has a `value` or a `schema`, not both"));
        }
        (Some(value), None) => value.clone(),
        (None, Some(schema)) => generate::value(schema, random),
        (None, None) => Value::Null,
    };
    Json::encode(&value).map_err(|error| Failure::last(FailureKind::Internal, &error.to_string()))
}

impl Fail {
    fn failure(&self, attempt: u32) -> Failure {
        let kind = self.kind.unwrap_or(FailureKind::TaskFailed);
        let otherwise = || format!("the mock fails attempt {attempt}, as it was told to");
        let message = self.message.clone().unwrap_or_else(otherwise);
        if self.retryable.unwrap_or(true) { Failure::retryable(kind, &message) } else { Failure::last(kind, &message) }
    }
}

#[cfg(test)]
mod tests;
