//! Random workflows that are valid.
//!
//! Owns what they are made of. They are written as a user would write them and read by the same function, so that the whole language is in
//! play; one with an error in it is a fault of this module. A workflow is made of blocks (`blocks`), each with one way in and one way out, and
//! the smallest of them are nodes (`nodes`). Start reading at [`generate`].

mod blocks;
mod nodes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use steadfast_core::definition::{self, Severity};
use steadfast_core::json::Json;

use super::{Book, Subject};
use crate::random::Random;

/// Names of fields that hold numbers of branches, in their order.
pub(super) const ORDER: &str = "order";

/// Nodes of a workflow, about.
const NODES: (u64, u64) = (3, 12);

/// Nodes of a workflow that is started by another one, about.
const NODES_OF_CHILD: (u64, u64) = (1, 4);

/// How often a workflow is started by another one, about.
const COPIES_OF_CHILD: u64 = 6;

/// A random workflow.
#[derive(Debug)]
pub struct Generated {
    /// The definitions, as they were written.
    pub text: String,
    /// What can be expected of it.
    pub mode: Mode,
    /// What is to be simulated.
    pub subject: Subject,
}

/// What can be expected of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It ends in the same way whatever the order in which things happen: joins wait for all, nothing takes too long, what goes on side
    /// by side touches nothing in common.
    Confluent,
    /// Anything goes.
    Free,
}

/// The workflow of a seed.
///
/// # Panics
/// When it is not valid.
#[must_use]
pub fn generate(seed: u64) -> Generated {
    let mut random = Random::new(seed ^ 0x009e_aa7e);
    let mode = if random.percent(50) { Mode::Confluent } else { Mode::Free };
    let mut documents = vec![task(), recursion(), patience()];
    let mut draft = Draft::new(&mut random, mode, NODES_OF_CHILD, &["deep", "patient"]);
    documents.push(draft.workflow("child", COPIES_OF_CHILD));
    let failing = draft.failing;
    let mut draft = Draft::new(&mut random, mode, NODES, &["deep", "patient", "child", "child"]);
    draft.failing = failing;
    documents.push(draft.workflow("main", 1));
    let text: Vec<String> = documents.iter().map(written).collect();
    let text = text.join("\n---\n");
    let input = json!({ "n": random.between(0, 4), "items": [3, 1, 2], "depth": random.between(0, 3) });
    let payload = |signal: u64| (format!("signal-{signal}"), encoded(&json!({ "n": signal })));
    let signals: BTreeMap<String, Json> = (0..3).map(payload).collect();
    let subject = Subject { book: Arc::new(read(&text)), workflow: "main".into(), input: encoded(&input), signals };
    Generated { text, mode, subject }
}

/// A document, with a line for each node and each transition: whoever looks for a fault reads it.
fn written(document: &Value) -> String {
    let mut text = String::new();
    for (name, value) in document.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) if !items.is_empty() => {
                text += &format!("{name}:\n");
                items.iter().for_each(|item| text += &format!("  - {item}\n"));
            }
            Value::Object(fields) if name == "nodes" => {
                text += "nodes:\n";
                fields.iter().for_each(|(name, field)| text += &format!("  {name}: {field}\n"));
            }
            Value::Array(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                text += &format!("{name}: {value}\n");
            }
        }
    }
    text
}

fn read(text: &str) -> Book {
    let mut read = definition::read("generated.yaml", text);
    definition::check_references(std::slice::from_mut(&mut read), &|_, _| false);
    let errors = read.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    assert!(errors.is_empty(), "a generated workflow is not valid: {}\n{text}", errors.join("\n"));
    Book::of(read.definitions)
}

fn encoded(value: &Value) -> Json {
    Json::encode(value).expect("a JSON value is JSON")
}

/// A task with a name, which fails its first attempt for some inputs.
fn task() -> Value {
    json!({
        "kind": "task",
        "name": "double",
        "input": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } },
        "output": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } },
        "retry": { "max_attempts": 2, "delay": "40ms" },
        "run": { "mock": { "value": { "n": "${input.n * 2}" }, "fail": { "times": "${input.n % 2}" } } },
    })
}

/// A workflow that starts itself until `depth` is used up.
fn recursion() -> Value {
    json!({
        "kind": "workflow",
        "name": "deep",
        "start": "begin",
        "nodes": {
            "begin": { "run": { "mock": { "value": "${input.depth}" } } },
            "again": {
                "workflow": "deep",
                "input": { "depth": "${input.depth - 1}" },
                "output": { "state.below": "${result.n}" },
            },
            "done": {},
        },
        "transitions": [
            { "from": "begin", "to": "again", "when": "result > 0", "priority": 1 },
            { "from": "begin", "to": "done", "priority": 2 },
            { "from": "again", "to": "done" },
        ],
        "result": { "n": "${state.below == null ? 0 : state.below + 1}" },
    })
}

/// A workflow that does not end by itself: it must be told when nobody waits for it.
fn patience() -> Value {
    json!({
        "kind": "workflow",
        "name": "patient",
        "nodes": { "wait": { "wait": { "signal": "signal-0" }, "output": { "state.n": "${result.n}" } } },
        "result": { "n": "${state.n + input.n}" },
    })
}

/// A workflow in the making.
struct Draft<'r> {
    random: &'r mut Random,
    mode: Mode,
    /// Workflows that it may start.
    children: &'static [&'static str],
    nodes: Map<String, Value>,
    transitions: Vec<Value>,
    /// Nodes that may still be added, about: a block that is begun is finished.
    nodes_left: usize,
    names: usize,
    /// Whether something can fail the run. When two things could, it would depend on timing which of them does.
    failing: Failing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Nothing,
    Something,
}

/// A part of a workflow with one way in and one way out. Nothing leads from its last node yet.
struct Block {
    entry: String,
    exit: String,
    /// What it writes, where it is written at its own level.
    fields: Vec<Field>,
}

/// A field of `state`.
#[derive(Debug, Clone)]
struct Field {
    name: String,
    holds: Holds,
}

/// What a field holds, once it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Number,
    Object,
    List,
    /// Numbers of branches: merged by `collect` only, or they would be in no order.
    Order,
}

/// What a block is inside of.
#[derive(Debug, Clone)]
struct Around {
    /// What was written on the way to it.
    fields: Vec<Field>,
    /// How many groups.
    depth: usize,
    /// How often it is entered, about.
    copies: u64,
    /// What the innermost `foreach` calls its element, which is a number.
    element: Option<String>,
    failures: Failures,
}

/// What becomes of something that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failures {
    /// They fail the run.
    Fatal,
    /// A join goes on without the branch.
    Caught,
    /// There must be none.
    Unwanted,
}

impl<'r> Draft<'r> {
    fn new(random: &'r mut Random, mode: Mode, nodes: (u64, u64), children: &'static [&'static str]) -> Self {
        let nodes_left = random.between(nodes.0, nodes.1) as usize;
        Self {
            random,
            mode,
            children,
            nodes: Map::new(),
            transitions: Vec::new(),
            nodes_left,
            names: 0,
            failing: Failing::Nothing,
        }
    }

    /// Finishes the workflow.
    fn workflow(&mut self, name: &str, copies: u64) -> Value {
        let around = Around { fields: Vec::new(), depth: 0, copies, element: None, failures: Failures::Fatal };
        let all = self.sequence_of(&around, u64::MAX);
        let mut workflow = json!({
            "kind": "workflow",
            "name": name,
            "start": all.entry,
            "nodes": std::mem::take(&mut self.nodes),
            "transitions": std::mem::take(&mut self.transitions),
            "result": { "n": format!("${{{}}}", Self::total(&all.fields)), "all": "${state}" },
        });
        if self.mode == Mode::Free && self.random.percent(12) {
            workflow["timeout"] = (*self.random.pick(&["300ms", "2s", "30s", "10m"])).into();
        }
        workflow
    }

    /// A sum of all numbers.
    fn total(fields: &[Field]) -> String {
        let numbers = fields.iter().filter(|field| field.holds == Holds::Number).map(Field::number);
        numbers.fold("0".to_owned(), |sum, number| format!("{sum} + {number}"))
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn is_free(&self) -> bool {
        self.mode == Mode::Free
    }
}

impl Field {
    /// An expression that is a number even when the field was never written.
    fn number(&self) -> String {
        format!("(state.{0} == null ? 0 : state.{0})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_gives_a_valid_workflow_and_all_of_the_language_is_used() {
        let words = [
            "\"foreach\"",
            "\"spawn\"",
            "\"join\"",
            "\"any\"",
            "\"collect\"",
            "\"append\"",
            "\"keyed\"",
            "\"last\"",
            "\"merge\"",
            "\"key\"",
            "max_iterations",
            "\"priority\"",
            "\"when\"",
            "\"on\":\"error\"",
            "\"sleep\"",
            "\"wait\"",
            "\"workflow\":\"child\"",
            "\"workflow\":\"deep\"",
            "\"task\":\"double\"",
            "on_timeout",
            "on_failure",
            "\"retry\"",
            "\"timeout\"",
            "\"in\":\"[]\"",
        ];
        let mut unseen: Vec<&str> = words.to_vec();
        let mut modes = (0, 0);
        for seed in 0..300 {
            let Generated { text, mode, .. } = generate(seed);
            unseen.retain(|word| !text.contains(word));
            match mode {
                Mode::Confluent => modes.0 += 1,
                Mode::Free => modes.1 += 1,
            }
        }
        assert_eq!(unseen, [""; 0]);
        assert!(modes.0 > 100 && modes.1 > 100, "{modes:?}");
    }

    #[test]
    fn a_seed_gives_the_same_workflow_again() {
        assert_eq!(generate(7).text, generate(7).text);
    }
}
