//! `kind: task`.

use std::sync::Arc;

use super::super::task::Task;
use super::super::tree::Tree;
use super::Decoder;
use super::expressions::Sight;

const FIELDS: [&str; 8] = ["kind", "name", "description", "input", "output", "timeout", "retry", "run"];

impl Decoder<'_, '_> {
    pub(super) fn task(&mut self, tree: &Tree, name: Arc<str>) -> Option<Task> {
        let object = self.object(tree, "a task", &FIELDS)?;
        let description = object.get("description").and_then(|field| self.text(field));
        let input = object.get("input").and_then(|field| self.schema(field));
        let output = object.get("output").and_then(|field| self.schema(field));
        let timeout_ms = object.get("timeout").and_then(|field| self.timeout_ms(field));
        let retry = object.get("retry").and_then(|field| self.retry(field));
        let run = match object.get("run") {
            Some(field) => self.run(field, Sight::TASK),
            None => {
                let hint = "say what it does: `run: { http: … }`, `value`, `function`, `command` or `mock`";
                self.problems.error(super::first_key(tree), "`run` is missing in a task", hint.to_owned());
                None
            }
        };
        let description = description.map(|text| text.as_ref().to_owned());
        Some(Task { name, description, input, output, timeout_ms, retry, run: run? })
    }
}
