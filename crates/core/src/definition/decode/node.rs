//! A node: its work, what the work is given, and where its result goes.

use std::sync::Arc;

use super::super::DefinitionKind;
use super::super::check::{NodePlaces, Unread};
use super::super::names::{self, listed};
use super::super::task::TaskRun;
use super::super::tree::{Content, Field};
use super::super::workflow::{Assignment, Node, Work};
use super::expressions::Sight;
use super::values::is_template;
use super::{Decoder, Object, Owner};

const FIELDS: [&str; 10] = ["task", "run", "workflow", "agent", "wait", "sleep", "input", "output", "timeout", "retry"];
const WORKS: [&str; 6] = ["task", "run", "workflow", "agent", "wait", "sleep"];

impl Decoder<'_, '_> {
    /// The node of index `index`. With problems it is not what was meant, but still a node that others can name.
    pub(super) fn node(&mut self, field: &Field, index: usize) -> (Node, NodePlaces) {
        let owner = Owner::Node(index);
        let mut places = NodePlaces { name: field.key_at, writes: Vec::new(), unread: Unread::default() };
        let mut node = Node {
            name: field.key.clone(),
            work: Work::Pass,
            input: None,
            output: Vec::new(),
            timeout_ms: None,
            retry: None,
        };
        if let Some(fault) = names::fault(&field.key) {
            self.problems.error(field.key_at, format!("`{}` cannot be the name of a node: {fault}", field.key), None);
        }
        // `end:` with nothing after it is a node that passes straight through.
        if matches!(field.value.content, Content::Null) {
            return (node, places);
        }
        places.unread.add("run");
        if let Content::Text(text) = &field.value.content {
            let message = format!("the node `{}` must be an object, found text", field.key);
            self.problems.error(field.value_at(), message, format!("write `{}: {{ task: {text} }}`", field.key));
            return (node, places);
        }
        let Some(object) = self.object(&field.value, "a node", &FIELDS) else { return (node, places) };
        places.unread = object.unknown(&FIELDS);
        let unread = &mut places.unread;
        let before = self.problems.errors();
        let work = self.work(&object, owner);
        if self.problems.errors() > before {
            unread.add("run");
        }
        if work.is_some() || object.those(&WORKS).is_empty() {
            self.warn_of_idle_fields(&object, work.as_ref().unwrap_or(&Work::Pass));
        }
        node.work = work.unwrap_or(Work::Pass);
        let input = object.get("input");
        node.input = self.noting(unread, input, |this, field| this.template(&field.value, Sight::before(owner)));
        let output = self.noting(unread, object.get("output"), |this, field| Some(this.assignments(field, owner)));
        (node.output, places.writes) = output.into_iter().flatten().unzip();
        node.timeout_ms = object.get("timeout").and_then(|field| self.timeout_ms(field));
        node.retry = object.get("retry").and_then(|field| self.retry(field));
        (node, places)
    }

    /// A timeout or a policy where nothing can take long or fail was hardly meant so.
    fn warn_of_idle_fields(&mut self, object: &Object<'_>, work: &Work) {
        let what = match work {
            Work::Pass => "passes straight through",
            Work::Sleep(_) => "only sleeps",
            Work::Run(TaskRun::Value(_)) => "is computed in place",
            Work::Task(_)
            | Work::Run(TaskRun::Executor { .. } | TaskRun::Function(_) | TaskRun::Worker(_))
            | Work::Workflow(_)
            | Work::Wait(_) => return,
        };
        for field in object.those(&["timeout", "retry"]) {
            let message = format!("`{}` has no effect on a node that {what}", field.key);
            self.problems.warning(field.key_at, message, "remove it".to_owned());
        }
    }

    fn work(&mut self, object: &Object<'_>, owner: Owner) -> Option<Work> {
        let works = object.those(&WORKS);
        if let Some(second) = works.get(1) {
            let message =
                format!("a node does one thing, but this has {}", listed(works.iter().map(|work| &*work.key)));
            self.problems.error(
                second.key_at,
                message,
                "keep one of them, and make another node for the rest".to_owned(),
            );
        }
        let mut found = None;
        // Each is read, although only one can stay: what is wrong in the others is told too.
        for work in works {
            let read = match &*work.key {
                "task" => self.reference(work, DefinitionKind::Task).map(Work::Task),
                "workflow" => self.reference(work, DefinitionKind::Workflow).map(Work::Workflow),
                "run" => self.run(work, Sight::before(owner)).map(Work::Run),
                "wait" => self.wait(work, owner),
                "sleep" => {
                    self.template_duration(work);
                    self.template(&work.value, Sight::before(owner)).map(Work::Sleep)
                }
                _ => {
                    let hint = "available are `task`, `run`, `workflow`, `wait` and `sleep`".to_owned();
                    self.problems.error(work.key_at, "`agent` is not available in this version", hint);
                    None
                }
            };
            found = found.or(read);
        }
        found
    }

    fn wait(&mut self, field: &Field, owner: Owner) -> Option<Work> {
        if let Content::Text(text) = &field.value.content {
            let hint = format!("write `wait: {{ signal: {text} }}`");
            self.problems.error(field.value_at(), "`wait` must be an object with `signal`, found text", hint);
            return None;
        }
        let object = self.object(&field.value, "`wait`", &["signal"])?;
        let Some(signal) = object.get("signal") else {
            self.missing(&object, "signal", "`wait: { signal: approval }`");
            return None;
        };
        let name = self.text(signal)?;
        if let Some(fault) = names::fault(&name).filter(|_| !is_template(&signal.value)) {
            self.problems.error(signal.value_at(), format!("`{name}` is not a name: {fault}"), None);
        }
        self.template(&signal.value, Sight::before(owner)).map(Work::Wait)
    }

    fn assignments(&mut self, field: &Field, owner: Owner) -> Vec<(Assignment, super::Place)> {
        let Content::Object(fields) = &field.value.content else {
            let example = "an object such as `{ state.answer: \"${result.text}\" }`";
            self.wrong("output", &field.value, example);
            return Vec::new();
        };
        let mut found = Vec::new();
        for target in fields {
            let to = self.context_path(&target.key, target.key_at);
            let value = self.template(&target.value, Sight::after(owner));
            if let (Some(to), Some(value)) = (to, value) {
                found.push((Assignment { to, value }, target.key_at));
            }
        }
        // By path and not as written: a stored document knows no order of fields, and must mean the same.
        found.sort_by(|(a, _), (b, _)| a.to.cmp(&b.to));
        found
    }
}

/// The nodes of a workflow by name, in the order of their names, as a stored document has them.
pub(super) fn in_order(fields: &[Field]) -> Vec<&Field> {
    let mut sorted: Vec<&Field> = fields.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    sorted
}

/// Names by index.
pub(super) type Names = std::collections::BTreeMap<Arc<str>, usize>;
