//! Version 1 of the API.
//!
//! Owns one file for each noun, as `steadfast-server` has in `routes/`. Each begins with its paths.

pub mod dead_letters;
pub mod definitions;
pub mod doctor;
pub mod events;
pub mod operations;
pub mod recover;
pub mod runs;
pub mod tasks;
pub mod why;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A value of a user: JSON text, passed through as it is.
pub type Value = Box<RawValue>;

/// A value that stands there. `null` is one too, other than nothing.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
