//! A token's work begins.
//!
//! Owns what each kind of node does first: computes in place, hands a task to an executor, starts another run, waits, sleeps.

use std::borrow::Cow;

use super::{Coordinator, Trouble};
use crate::definition::DefinitionKind;
use crate::definition::task::{Task, TaskRun};
use crate::definition::workflow::{NodeIndex, Reference, Work};
use crate::expression::{Rendered, Scope, Template, Value};
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::Decision;
use crate::graph::planning::completion::explained;
use crate::graph::planning::conditions;
use crate::graph::source::{SharedTask, pinned};
use crate::graph::task_input::TaskInput;
use crate::graph::token::{Status, Token};
use crate::json::Json;
use crate::turn::TurnError;

/// A task that is to be handed to an executor.
struct Handed {
    executor: Cow<'static, str>,
    rendered: Rendered,
    input: Value,
    timeout_ms: Option<u64>,
}

impl Coordinator<'_, '_> {
    /// Begins the work of a token that is pending.
    pub(super) fn enter(&mut self, token: &mut Token) -> Result<(), Trouble> {
        self.trace(&Decision::MarkForDispatch { token: token.id })?;
        let workflow = self.workflow.clone();
        let index = self.node_of(token)?;
        let node = workflow.node(index);
        match &node.work {
            Work::Pass => self.complete(token, &Value::Null),
            Work::Task(reference) => {
                let task = self.task(reference)?;
                let input = self.node_input(token, index)?;
                self.check_task_input(&task, &input)?;
                self.begin_task(token, &task, input, node.timeout_ms)
            }
            Work::Run(run) => self.begin_run(token, index, run),
            Work::Workflow(reference) => self.start_child(token, index, reference),
            Work::Wait(signal) => self.wait_for_signal(token, index, signal),
            Work::Sleep(duration) => self.sleep(token, duration),
        }
    }

    /// The task that a node names, in the version that this run uses.
    pub(super) fn task(&self, reference: &Reference) -> Result<SharedTask, TurnError> {
        let version = pinned(&self.rows.kept.facts.pins, DefinitionKind::Task, reference)?;
        SharedTask::find(self.definitions, &reference.name, version)
    }

    /// What the node's `input:` gives; an empty object without one.
    pub(super) fn node_input(&mut self, token: &Token, index: NodeIndex) -> Result<Value, Trouble> {
        let workflow = self.workflow.clone();
        match &workflow.node(index).input {
            None => Ok(Value::object(std::iter::empty::<(&str, Value)>())),
            Some(template) => Ok(self.render(token, template, None, "input")?.value),
        }
    }

    /// A template of a node, as its token sees it.
    pub(super) fn render(
        &mut self,
        token: &Token,
        template: &Template,
        result: Option<&Value>,
        field: &str,
    ) -> Result<Rendered, Trouble> {
        if let Template::Literal(value) = template {
            return Ok(Rendered { value: value.clone(), secrets: Vec::new() });
        }
        let scope = self.scope(token, &template.reads(), result)?;
        rendered(template, &scope, &format!("`{field}` of node `{}`", token.node))
    }

    fn check_task_input(&self, task: &Task, input: &Value) -> Result<(), Trouble> {
        let Some(schema) = &task.input else { return Ok(()) };
        schema.check(input).map_err(|violations| {
            let message = format!("the input of task `{}` {}", task.name, explained(&violations));
            Trouble::Token(Failure::last(FailureKind::InvalidInput, &message))
        })
    }

    /// A task that has a name sees nothing but its input.
    fn begin_task(
        &mut self,
        token: &mut Token,
        task: &Task,
        input: Value,
        timeout_ms: Option<u64>,
    ) -> Result<(), Trouble> {
        let timeout_ms = timeout_ms.or(task.timeout_ms);
        let mut scope = Scope::default();
        scope.set("input", input.clone());
        let place = format!("`run` of task `{}`", task.name);
        match &task.run {
            TaskRun::Value(template) => {
                let value = rendered(template, &scope, &place)?.value;
                self.finish_task(token, value)
            }
            TaskRun::Executor { executor, specification } => {
                let rendered = rendered(specification, &scope, &place)?;
                self.hand_over(token, Handed { executor: executor.name().into(), rendered, input, timeout_ms })
            }
            TaskRun::Function(name) => {
                let (executor, rendered) = (FUNCTION.into(), function(name));
                self.hand_over(token, Handed { executor, rendered, input, timeout_ms })
            }
            TaskRun::Worker(queue) => self.hand_over(token, for_worker(queue, input, timeout_ms)),
        }
    }

    /// A task written in place sees what the workflow sees.
    fn begin_run(&mut self, token: &mut Token, index: NodeIndex, run: &TaskRun) -> Result<(), Trouble> {
        let workflow = self.workflow.clone();
        let timeout_ms = workflow.node(index).timeout_ms;
        match run {
            TaskRun::Value(template) => {
                let value = self.render(token, template, None, "run")?.value;
                self.complete(token, &value)
            }
            TaskRun::Executor { executor, specification } => {
                let rendered = self.render(token, specification, None, "run")?;
                let input = self.node_input(token, index)?;
                self.hand_over(token, Handed { executor: executor.name().into(), rendered, input, timeout_ms })
            }
            TaskRun::Function(name) => {
                let input = self.node_input(token, index)?;
                let (executor, rendered) = (FUNCTION.into(), function(name));
                self.hand_over(token, Handed { executor, rendered, input, timeout_ms })
            }
            TaskRun::Worker(queue) => {
                let input = self.node_input(token, index)?;
                self.hand_over(token, for_worker(queue, input, timeout_ms))
            }
        }
    }

    fn hand_over(&mut self, token: &mut Token, handed: Handed) -> Result<(), Trouble> {
        let Handed { executor, rendered, input, timeout_ms } = handed;
        let input = TaskInput {
            node: token.node.to_string(),
            attempt: token.attempt,
            timeout_ms,
            specification: rendered.value.to_json()?,
            secrets: rendered.secrets,
            input: if executor == MOCK { Json::null() } else { input.to_json()? },
        };
        self.rows.turn.dispatch(&task_name(token), &executor, &input)?;
        self.handed_over += 1;
        token.change(Status::Dispatched, self.rows.turn.now())?;
        self.rows.save_begun_token(token)?;
        Ok(self.emit_dispatched(token, &executor)?)
    }

    fn sleep(&mut self, token: &mut Token, duration: &Template) -> Result<(), Trouble> {
        let value = self.render(token, duration, None, "sleep")?.value;
        let ms = milliseconds(&value).map_err(|expected| {
            let message = format!("`sleep` of node `{}` gave {value}, {expected}", token.node);
            Trouble::Run(Failure::last(FailureKind::Expression, &message))
        })?;
        let now = self.rows.turn.now();
        let due = now.plus_ms(ms);
        token.change(Status::Sleeping, now)?;
        self.rows.save_token(token)?;
        self.set_timer(&super::timers::sleep(token.id), due)?;
        Ok(self.emit_waiting(token, None, Some(due))?)
    }
}

/// The executor of functions.
const FUNCTION: &str = "function";
/// The executor of mocks, which take no input.
const MOCK: &str = "mock";

/// A task is named after its token: the same for every attempt, so that whoever is called can tell a repetition.
pub(super) fn task_name(token: &Token) -> String {
    token.id.to_string()
}

/// A task that waits for a worker outside which asks for this queue.
fn for_worker(queue: &str, input: Value, timeout_ms: Option<u64>) -> Handed {
    let rendered = Rendered { value: Value::Null, secrets: Vec::new() };
    Handed { executor: format!("worker:{queue}").into(), rendered, input, timeout_ms }
}

fn function(name: &std::sync::Arc<str>) -> Rendered {
    Rendered { value: Value::object([("function", Value::String(name.clone()))]), secrets: Vec::new() }
}

fn rendered(template: &Template, scope: &Scope<'_>, place: &str) -> Result<Rendered, Trouble> {
    template.render(scope).map_err(|error| Trouble::Run(conditions::failure(place, &error)))
}

fn milliseconds(value: &Value) -> Result<u64, String> {
    let expected = || "expected a duration such as `30s`, or milliseconds".to_owned();
    match value {
        Value::String(text) => crate::duration::parse_ms(text).map_err(|error| error.to_string()),
        Value::Int(ms) => u64::try_from(*ms).map_err(|_| expected()),
        Value::UInt(ms) => Ok(*ms),
        Value::Float(ms) if *ms >= 0.0 => Ok(*ms as u64),
        Value::Float(_) | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => Err(expected()),
    }
}
