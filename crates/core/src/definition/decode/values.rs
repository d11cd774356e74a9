//! Single values: texts, names, numbers, durations, choices, schemas.

use std::sync::Arc;

use super::super::names::{self, listed};
use super::super::tree::{Content, Field, Tree};
use super::super::workflow::{ContextPath, ContextRoot};
use super::Decoder;
use crate::duration::parse_ms;
use crate::schema::Schema;

impl Decoder<'_, '_> {
    pub(super) fn text(&mut self, field: &Field) -> Option<Arc<str>> {
        match &field.value.content {
            Content::Text(text) => Some(text.clone()),
            Content::Null => {
                self.problems.error(
                    field.key_at,
                    format!("`{}` has no value", field.key),
                    "it must be text".to_owned(),
                );
                None
            }
            Content::Bool(_) | Content::Int(_) | Content::UInt(_) | Content::Float(_) => {
                let message = format!("`{}` must be text, found {}", field.key, field.value.described());
                self.problems.error(field.value_at(), message, "put it in quotes".to_owned());
                None
            }
            Content::List(_) | Content::Object(_) => {
                self.wrong(&field.key, &field.value, "text");
                None
            }
        }
    }

    /// A name of something: a definition, a group, a function.
    pub(super) fn name(&mut self, field: &Field) -> Option<Arc<str>> {
        let name = self.text(field)?;
        if let Some(fault) = names::fault(&name) {
            self.problems.error(field.value_at(), format!("`{name}` is not a name: {fault}"), None);
            return None;
        }
        Some(name)
    }

    pub(super) fn duration_ms(&mut self, field: &Field) -> Option<u64> {
        match &field.value.content {
            Content::Text(text) => match parse_ms(text) {
                Ok(ms) => Some(ms),
                Err(error) => {
                    let hint = text.contains("${").then(|| "an expression is not possible here".to_owned());
                    self.problems.error(field.value_at(), error.to_string(), hint);
                    None
                }
            },
            Content::Int(0..) | Content::UInt(_) => {
                let shown = field.value.described();
                let number = shown.trim_start_matches("the number `").trim_end_matches('`');
                let message = format!("`{}` has no unit", field.key);
                let hint = format!("a duration is written with its unit: `{number}s`, `{number}ms`, `{number}m`");
                self.problems.error(field.value_at(), message, hint);
                None
            }
            Content::Null
            | Content::Bool(_)
            | Content::Int(_)
            | Content::Float(_)
            | Content::List(_)
            | Content::Object(_) => {
                self.wrong(&field.key, &field.value, "a duration such as `30s`");
                None
            }
        }
    }

    /// A duration that must pass.
    pub(super) fn timeout_ms(&mut self, field: &Field) -> Option<u64> {
        let ms = self.duration_ms(field)?;
        if ms == 0 {
            self.problems.error(field.value_at(), format!("`{}` must be longer than nothing", field.key), None);
            return None;
        }
        Some(ms)
    }

    pub(super) fn whole(&mut self, field: &Field, min: u64, max: u64) -> Option<u64> {
        let found = match &field.value.content {
            Content::Int(number) => u64::try_from(*number).ok(),
            Content::UInt(number) => Some(*number),
            Content::Null
            | Content::Bool(_)
            | Content::Float(_)
            | Content::Text(_)
            | Content::List(_)
            | Content::Object(_) => None,
        };
        let found = found.filter(|number| (min..=max).contains(number));
        if found.is_none() {
            let bounds = if max >= u32::MAX.into() { format!("from {min}") } else { format!("from {min} to {max}") };
            self.wrong(&field.key, &field.value, &format!("a whole number {bounds}"));
        }
        found
    }

    pub(super) fn number(&mut self, field: &Field, min: f64, max: f64) -> Option<f64> {
        let found = match &field.value.content {
            Content::Int(number) => Some(*number as f64),
            Content::UInt(number) => Some(*number as f64),
            Content::Float(number) => Some(*number),
            Content::Null | Content::Bool(_) | Content::Text(_) | Content::List(_) | Content::Object(_) => None,
        };
        let found = found.filter(|number| (min..=max).contains(number));
        if found.is_none() {
            self.wrong(&field.key, &field.value, &format!("a number from {min} to {max}"));
        }
        found
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, field: &Field, choices: &[(&str, T)]) -> Option<T> {
        let Content::Text(text) = &field.value.content else {
            self.wrong(&field.key, &field.value, &format!("one of {}", listed(choices.iter().map(|(name, _)| *name))));
            return None;
        };
        let found = choices.iter().find(|(name, _)| **name == **text).map(|(_, value)| *value);
        if found.is_none() {
            let allowed = || choices.iter().map(|(name, _)| *name);
            let hint =
                self.problems.meant(text, allowed()).unwrap_or_else(|| format!("allowed are {}", listed(allowed())));
            self.problems.error(field.value_at(), format!("`{}` cannot be `{text}`", field.key), hint);
        }
        found
    }

    /// A JSON Schema. Its problems are told where they are.
    pub(super) fn schema(&mut self, field: &Field) -> Option<Schema> {
        match &field.value.content {
            Content::Object(_) | Content::Bool(_) => {}
            Content::Null
            | Content::Int(_)
            | Content::UInt(_)
            | Content::Float(_)
            | Content::Text(_)
            | Content::List(_) => {
                self.wrong(&field.key, &field.value, "a JSON Schema, such as `{ type: object }`");
                return None;
            }
        }
        match Schema::parse(&field.value.value()) {
            Ok(schema) => Some(schema),
            Err(violations) => {
                for violation in violations {
                    let at = field.value.place_of(&violation.pointer);
                    let hint = format!("`{}` is a JSON Schema", field.key);
                    self.problems.error(at, format!("not a JSON Schema: {}", violation.message), hint);
                }
                None
            }
        }
    }

    /// `state.a`, `output.a.b`.
    pub(super) fn context_path(&mut self, text: &str, at: super::Place) -> Option<ContextPath> {
        let mut parts = text.split('.');
        let root = match parts.next() {
            Some("state") => Some(ContextRoot::State),
            Some("output") => Some(ContextRoot::Output),
            Some(_) | None => None,
        };
        let Some(root) = root else {
            let first = text.split('.').next().unwrap_or_default();
            let rest = text.strip_prefix(first).unwrap_or_default();
            let hint = match names::closest(first, ["state", "output"].into_iter()) {
                Some(meant) => format!("did you mean `{meant}{rest}`?"),
                None if names::is_identifier(text) => format!("did you mean `state.{text}` or `output.{text}`?"),
                None => "only `state.…` and `output.…` can be written".to_owned(),
            };
            self.problems.error(at, format!("`{text}` cannot be written"), hint);
            return None;
        };
        let fields: Vec<&str> = parts.collect();
        if let Some(wrong) = fields.iter().find(|field| !names::is_identifier(field)) {
            let message = format!("`{text}` cannot be written: `{wrong}` is not a field's name");
            let hint = match *wrong {
                "" => "a name stands on both sides of each dot".to_owned(),
                word if names::is_keyword(word) => {
                    format!("`{word}` is a word of the expression language: choose another")
                }
                _ => "names have letters, digits and `_`, as in `state.first_name`".to_owned(),
            };
            self.problems.error(at, message, hint);
            return None;
        }
        let Some((field, below)) = fields.split_first() else {
            let hint = format!("name a field of it: `{text}.result`");
            self.problems.error(at, format!("`{text}` cannot be written as a whole"), hint);
            return None;
        };
        Some(ContextPath { root, field: (*field).into(), below: below.iter().map(|field| (*field).into()).collect() })
    }
}

/// Whether a value holds `${`, so that it is known only when it is used.
pub(super) fn is_template(tree: &Tree) -> bool {
    matches!(&tree.content, Content::Text(text) if text.contains("${"))
}
