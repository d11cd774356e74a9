//! What the executors are told: the fields of `http`, `command` and `mock`.
//!
//! Owns what can be checked before it runs. What holds `${…}` is checked by the executor, once it is filled in.

use super::super::tree::{Content, Field};
use super::Decoder;
use super::expressions::Sight;
use super::values::is_template;
use crate::expression::Template;
use crate::limits;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const FAILURES: [&str; 11] = [
    "task_failed",
    "timeout",
    "invalid_input",
    "invalid_output",
    "not_found",
    "cancelled",
    "expression",
    "loop_limit",
    "join_impossible",
    "recovery_exhausted",
    "internal",
];

impl Decoder<'_, '_> {
    pub(super) fn http(&mut self, field: &Field, sight: Sight) -> Option<Template> {
        let known = ["method", "url", "headers", "query", "body", "ok"];
        let object = self.object(&field.value, "`http`", &known)?;
        if let Some(method) = object.get("method").filter(|method| !is_template(&method.value)) {
            self.choice(method, &METHODS.map(|name| (name, ())));
        }
        match object.get("url") {
            None => self.missing(&object, "url", "`url: \"https://…\"`"),
            Some(url) => self.url(url),
        }
        for name in ["headers", "query"] {
            if let Some(field) = object.get(name) {
                self.named_texts(field);
            }
        }
        if let Some(ok) = object.get("ok") {
            self.statuses(ok);
        }
        self.template(&field.value, sight.with_secrets())
    }

    fn url(&mut self, field: &Field) {
        let Some(text) = self.text(field) else { return };
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        if !is_address && !text.starts_with("${") {
            let message = format!("`{text}` is not an address");
            self.problems.error(field.value_at(), message, "a url begins with `https://` or `http://`".to_owned());
        } else if text.contains(char::is_whitespace) && !text.contains("${") {
            self.problems.error(field.value_at(), "a url has no spaces in it", "write `%20` for a space".to_owned());
        }
    }

    /// An object of texts, numbers and the like, or one expression that gives it.
    fn named_texts(&mut self, field: &Field) {
        let Content::Object(fields) = &field.value.content else {
            if !is_template(&field.value) {
                self.wrong(&field.key, &field.value, "an object of texts");
            }
            return;
        };
        for named in fields {
            if matches!(named.value.content, Content::List(_) | Content::Object(_)) {
                self.wrong(&named.key, &named.value, "text");
            }
            let is_header = &*field.key == "headers";
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if is_header && (named.key.is_empty() || !named.key.chars().all(is_token)) {
                self.problems.error(named.key_at, format!("`{}` cannot be the name of a header", named.key), None);
            }
            if is_header && matches!(&named.value.content, Content::Text(text) if text.contains(['\n', '\r', '\0'])) {
                self.problems.error(named.value_at(), "a header is one line", None);
            }
            if &*field.key == "env" && (named.key.is_empty() || named.key.contains(['=', '\0'])) {
                self.problems.error(named.key_at, format!("`{}` cannot be the name of a variable", named.key), None);
            }
        }
    }

    fn statuses(&mut self, field: &Field) {
        let Content::List(items) = &field.value.content else {
            if !is_template(&field.value) {
                self.wrong("ok", &field.value, "a list of status codes, such as `[200, 404]`");
            }
            return;
        };
        if items.is_empty() {
            self.problems.error(field.value_at(), "`ok` is empty: every answer would be a failure", None);
        }
        for item in items {
            if !matches!(item.content, Content::Int(100..=599)) && !is_template(item) {
                self.wrong("ok", item, "a status code from 100 to 599");
            }
        }
    }

    pub(super) fn command(&mut self, field: &Field, sight: Sight) -> Option<Template> {
        let object = self.object(&field.value, "`command`", &["program", "args", "stdin", "env"])?;
        match object.get("program") {
            None => self.missing(&object, "program", "`program: /usr/bin/jq`"),
            Some(program) => {
                if self.text(program).is_some_and(|text| text.is_empty()) {
                    self.problems.error(program.value_at(), "`program` is empty", None);
                }
            }
        }
        if let Some(args) = object.get("args") {
            self.arguments(args);
        }
        if let Some(env) = object.get("env") {
            self.named_texts(env);
        }
        self.template(&field.value, sight.with_secrets())
    }

    fn arguments(&mut self, field: &Field) {
        let Content::List(items) = &field.value.content else {
            if !is_template(&field.value) {
                self.wrong("args", &field.value, "a list, such as `[--count, \"3\"]`");
            }
            return;
        };
        for item in items {
            if matches!(item.content, Content::List(_) | Content::Object(_) | Content::Null) {
                self.wrong("args", item, "a list of texts");
            }
        }
    }

    pub(super) fn mock(&mut self, field: &Field, sight: Sight) -> Option<Template> {
        let known = ["value", "schema", "delay", "delay_jitter", "fail", "seed"];
        let object = self.object(&field.value, "`mock`", &known)?;
        if let (Some(_), Some(schema)) = (object.get("value"), object.get("schema")) {
            let hint = "`value` is the result; `schema` makes one up".to_owned();
            self.problems.error(schema.key_at, "`mock` has `value` and `schema`: only one is possible", hint);
        }
        for delay in object.those(&["delay", "delay_jitter"]) {
            self.mock_delay(delay);
        }
        if let Some(seed) = object.get("seed").filter(|seed| !is_template(&seed.value)) {
            self.whole(seed, 0, u64::MAX);
        }
        if let Some(fail) = object.get("fail") {
            self.mock_failure(fail);
        }
        // A schema is taken as it is: `${` in one of its patterns is no expression.
        let schema_is_fine = object.get("schema").is_none_or(|field| self.schema(field).is_some());
        let fields = object.fields.iter().map(|field| match &*field.key {
            "schema" => (field.key.clone(), Some(Template::Literal(field.value.value()))),
            _ => (field.key.clone(), self.template(&field.value, sight)),
        });
        let fields: Vec<_> = fields.collect();
        let fields: Option<Vec<_>> = fields.into_iter().map(|(key, value)| Some((key, value?))).collect();
        fields.filter(|_| schema_is_fine).map(Template::object)
    }

    /// A duration, or an expression that gives one.
    pub(super) fn template_duration(&mut self, field: &Field) {
        if !is_template(&field.value) {
            self.duration_ms(field);
        }
    }

    /// As [`Self::template_duration`], or a number of milliseconds.
    fn mock_delay(&mut self, field: &Field) {
        match field.value.content {
            Content::Int(ms @ 0..) if ms.unsigned_abs() <= limits::DURATION_MS_MAX => {}
            Content::Int(0..) | Content::UInt(_) => {
                self.problems.error(field.value_at(), format!("`{}` is longer than ten years", field.key), None);
            }
            Content::Int(_) | Content::Float(_) => {
                let expected = "a duration such as `100ms`, or a whole number of milliseconds from 0";
                self.wrong(&field.key, &field.value, expected);
            }
            Content::Null | Content::Bool(_) | Content::Text(_) | Content::List(_) | Content::Object(_) => {
                self.template_duration(field);
            }
        }
    }

    fn mock_failure(&mut self, field: &Field) {
        let Some(object) = self.object(&field.value, "`fail`", &["times", "type", "message", "retryable"]) else {
            return;
        };
        if let Some(times) = object.get("times").filter(|times| !is_template(&times.value)) {
            self.whole(times, 0, u64::MAX);
        }
        if let Some(kind) = object.get("type").filter(|kind| !is_template(&kind.value)) {
            self.choice(kind, &FAILURES.map(|name| (name, ())));
        }
        if let Some(message) = object.get("message") {
            self.text(message);
        }
        let is_open = |field: &&Field| !matches!(field.value.content, Content::Bool(_)) && !is_template(&field.value);
        if let Some(retryable) = object.get("retryable").filter(is_open) {
            self.wrong("retryable", &retryable.value, "`true` or `false`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mock_can_fail_in_every_way_there_is() {
        for name in FAILURES {
            serde_json::from_value::<crate::failure::FailureKind>(name.into()).unwrap();
        }
    }
}
