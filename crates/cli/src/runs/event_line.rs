//! An event as a line: for people, or as JSON.

use std::io::Write;

use serde_json::{Map, Value};
use steadfast_api::v1::events::Event;
use steadfast_client::Reading;

use crate::connection::Form;
use crate::table::one_line;
use crate::{clock, json};

/// How much of a value is shown.
const VALUE_CHARS_MAX: usize = 80;

/// Prints events, all at once: stdout would make a system call of each line.
pub(crate) fn print(events: &[Event], reading: Reading, form: Form) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for event in events {
        match form {
            Form::Json => json::print_line(&mut lines, event)?,
            Form::Text => writeln!(lines, "{}", line(event, reading))?,
        }
    }
    let mut out = std::io::stdout().lock();
    out.write_all(&lines)?;
    out.flush()?;
    Ok(())
}

/// Its place, when it was, of several runs which one, what happened, and the facts.
fn line(event: &Event, reading: Reading) -> String {
    let place = event.place.clone().unwrap_or_else(|| event.sequence.to_string());
    let time = clock::time_of_day(&event.at);
    let run = match reading {
        Reading::Run => String::new(),
        Reading::Tree => format!("{}  ", event.run_id),
    };
    let line = format!("{place:>5}  {time}  {run}{:<20}  {}", event.event_type, facts(event.data.get()));
    line.trim_end().to_owned()
}

/// Node and token first; then what else there is, each as `name=value`.
fn facts(data: &str) -> String {
    let mut fields: Map<String, Value> = serde_json::from_str(data).unwrap_or_default();
    let mut words = Vec::new();
    if let Some(Value::String(node)) = fields.remove("node") {
        words.push(node);
    }
    if let Some(token) = fields.remove("token") {
        words.push(format!("#{token}"));
    }
    words.extend(fields.iter().map(|(name, value)| format!("{name}={}", shown(name, value))));
    words.join(" ")
}

fn shown(name: &str, value: &Value) -> String {
    match (name, &value["type"], &value["message"]) {
        ("error", Value::String(kind), Value::String(message)) => {
            one_line(&format!("{kind}: {message}"), VALUE_CHARS_MAX)
        }
        _ => one_line(value.as_str().unwrap_or(&value.to_string()), VALUE_CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_on_one_line() {
        assert_eq!(facts(r#"{"token":3,"node":"greet","attempt":2}"#), "greet #3 attempt=2");
        let failed =
            r#"{"node":"a","token":1,"error":{"type":"task_failed","message":"out\nof paper","retryable":true}}"#;
        assert_eq!(facts(failed), "a #1 error=task_failed: out of paper");
        assert_eq!(facts(r#"{"input":{"b":[1,2]}}"#), r#"input={"b":[1,2]}"#);
        assert_eq!(facts("null"), "");
    }
}
