//! `run:` — what a task does, in a task or in place.

use super::super::names::listed;
use super::super::task::{OutsideExecutor, TaskRun};
use super::super::tree::{Content, Field};
use super::Decoder;
use super::expressions::Sight;

const WORKS: [&str; 6] = ["http", "value", "worker", "function", "command", "mock"];
const LATER: [&str; 1] = ["llm"];

impl Decoder<'_, '_> {
    pub(super) fn run(&mut self, field: &Field, sight: Sight) -> Option<TaskRun> {
        let known: Vec<&str> = WORKS.iter().chain(&LATER).copied().collect();
        let Content::Object(_) = &field.value.content else {
            let hint = match &field.value.content {
                Content::Text(text) => format!("`run: {{ {text}: … }}`, or `task: {text}` for a task of that name"),
                Content::Null
                | Content::Bool(_)
                | Content::Int(_)
                | Content::UInt(_)
                | Content::Float(_)
                | Content::List(_)
                | Content::Object(_) => format!("one of {}", listed(WORKS)),
            };
            let message = format!("`run` must be an object, found {}", field.value.described());
            self.problems.error(field.value_at(), message, hint);
            return None;
        };
        let object = self.object(&field.value, "`run`", &known)?;
        let works = object.those(&known);
        let [work] = works[..] else {
            match works.get(1) {
                Some(second) => {
                    let message =
                        format!("`run` does one thing, but has {}", listed(works.iter().map(|work| &*work.key)));
                    self.problems.error(second.key_at, message, "keep one of them".to_owned());
                }
                None if object.fields.is_empty() => {
                    self.problems.error(field.value_at(), "`run` is empty", format!("one of {}", listed(WORKS)));
                }
                // The unknown field that stands in its place has been told.
                None => {}
            }
            return None;
        };
        match &*work.key {
            "http" => self.http(work, sight).map(|specification| outside(OutsideExecutor::Http, specification)),
            "command" => {
                self.command(work, sight).map(|specification| outside(OutsideExecutor::Command, specification))
            }
            "mock" => self.mock(work, sight).map(|specification| outside(OutsideExecutor::Mock, specification)),
            "value" => self.template(&work.value, sight).map(TaskRun::Value),
            "function" => self.name(work).map(TaskRun::Function),
            "worker" => self.name(work).map(TaskRun::Worker),
            later => {
                let message = format!("`run: {{ {later}: … }}` is not available in this version");
                self.problems.error(work.key_at, message, format!("available are {}", listed(WORKS)));
                None
            }
        }
    }
}

fn outside(executor: OutsideExecutor, specification: crate::expression::Template) -> TaskRun {
    TaskRun::Executor { executor, specification }
}
