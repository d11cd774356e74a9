//! JSON that is typed: as it stands there, in a file, or on stdin.
//!
//! Owns the reading of it and what is said when it is wrong. Whether it is what somebody expects is not known here.

use std::{fs, io};

use steadfast_core::expression::Value;
use steadfast_core::json::Json;
use steadfast_core::limits;

use crate::definitions::STDIN;
use crate::usage::WrongUsage;

/// The value of `what`, given as `place`: JSON, `@FILE`, or `@-` for stdin.
pub(crate) fn given(what: &str, place: &str, text: &str) -> Result<Json, WrongUsage> {
    let value = match text.strip_prefix('@') {
        None => parsed(place, text)?,
        Some(file) => {
            let read = if file == STDIN { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
            let read = read.map_err(|error| WrongUsage(format!("the {what} `{file}` cannot be read: {error}")))?;
            parsed(&format!("the {what} `{file}`"), &read)?
        }
    };
    if value.bytes() > limits::VALUE_BYTES_MAX {
        let (found, max) = (value.bytes(), limits::VALUE_BYTES_MAX);
        return Err(WrongUsage(format!("the {what} has {found} bytes, the limit is {max} (`VALUE_BYTES_MAX`)")));
    }
    Ok(value)
}

/// Text up to this length is shown when it is wrong.
const SHOWN_BYTES_MAX: usize = 200;

/// JSON, or what is wrong with it and where.
pub(crate) fn parsed(what: &str, text: &str) -> Result<Json, WrongUsage> {
    let json = Json::parse(text.trim()).and_then(|json| Value::from_json(&json).map(|_| json));
    json.map_err(|error| {
        let hint = if text.trim().is_empty() {
            "; it is empty".to_owned()
        } else if text.contains('\n') || text.len() > SHOWN_BYTES_MAX {
            String::new()
        } else {
            format!("; it is: {text}")
        };
        WrongUsage(format!("{what} cannot be read as JSON: {error}{hint}"))
    })
}

/// A value as a client sends it.
pub(crate) fn raw(value: &Json) -> anyhow::Result<steadfast_api::v1::Value> {
    Ok(serde_json::value::RawValue::from_string(value.as_str().to_owned())?)
}
