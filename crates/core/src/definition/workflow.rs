//! A workflow as it runs: checked, with every name resolved to an index and every expression parsed.
//!
//! Owns the form of a workflow and what can be looked up in it. Never reads text: see [`super::read()`].

use std::sync::Arc;

use super::task::TaskRun;
use crate::expression::{Expression, Template};
use crate::retry::Retry;
use crate::schema::Schema;

/// A node's place in [`Workflow::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub usize);

/// A transition's place in [`Workflow::transitions`], in the order written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransitionIndex(pub usize);

/// A workflow.
#[derive(Debug)]
pub struct Workflow {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: Option<String>,
    /// What a run's input must look like.
    pub input: Option<Schema>,
    /// What each `state.…` must look like, once it is written.
    pub state: Option<Schema>,
    /// What the run's output must look like.
    pub output: Option<Schema>,
    /// Where a run begins.
    pub start: NodeIndex,
    /// How long a whole run may take.
    pub timeout_ms: Option<u64>,
    /// The nodes, in the order of their names.
    pub nodes: Vec<Node>,
    /// The transitions, in the order written.
    pub transitions: Vec<Transition>,
    /// The run's output. Without it, the output is what was written to `output.…`.
    pub result: Option<Template>,
    /// For each node the transitions that leave it, in the order written.
    pub(super) outgoing: Vec<Vec<TransitionIndex>>,
}

/// A place where a token can be.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// What is done there.
    pub work: Work,
    /// What the work is given.
    pub input: Option<Template>,
    /// Where its result goes, in the order of the places.
    pub output: Vec<Assignment>,
    /// How long one attempt may take.
    pub timeout_ms: Option<u64>,
    /// How often it is tried. Without it, what the task itself says; without that, once.
    pub retry: Option<Retry>,
}

/// What a node does.
#[derive(Debug)]
pub enum Work {
    /// Nothing: the token passes straight through.
    Pass,
    /// A task that has a name.
    Task(Reference),
    /// A task written in place.
    Run(TaskRun),
    /// A run of another workflow, or of this one.
    Workflow(Reference),
    /// Waiting for a signal. The template gives its name.
    Wait(Template),
    /// Waiting for a time. The template gives a duration as text, or milliseconds as a number.
    Sleep(Template),
}

/// A definition named by another: `name`, or `name@3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Which.
    pub name: Arc<str>,
    /// Which version; the newest when the run started, where none is given.
    pub version: Option<u32>,
}

/// `state.questions: "${result.questions}"`.
#[derive(Debug)]
pub struct Assignment {
    /// Where to.
    pub to: ContextPath,
    /// What.
    pub value: Template,
}

/// A place in the context that can be written: `state.a`, `state.a.b`, `output.c`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextPath {
    /// Which part of the context.
    pub root: ContextRoot,
    /// The field of it.
    pub field: Arc<str>,
    /// Fields below that.
    pub below: Vec<Arc<str>>,
}

/// The parts of the context that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextRoot {
    /// `state`.
    State,
    /// `output`.
    Output,
}

/// A way from one node to another.
#[derive(Debug)]
pub struct Transition {
    /// From here.
    pub from: NodeIndex,
    /// To there.
    pub to: NodeIndex,
    /// Whether it is for tokens that completed or for those that failed.
    pub on: Outcome,
    /// Smaller ones are looked at first.
    pub priority: i64,
    /// Whether it is taken.
    pub when: Option<Expression>,
    /// How many tokens it makes.
    pub count: Count,
    /// The group that its tokens are branches of.
    pub group: Option<Arc<str>>,
    /// The fan-in that it is part of.
    pub join: Option<Join>,
    /// How often one token and those before it may take it.
    pub iterations_max: Option<u32>,
    /// For a transition that opens a group: the join that closes what it opens, if there is one. Several joins that close it are alike
    /// in all but where they come from; this is the first of them.
    pub closed_by: Option<TransitionIndex>,
}

/// Which tokens a transition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Those that completed.
    Success,
    /// Those that failed.
    Error,
}

/// How many tokens a transition makes.
#[derive(Debug)]
pub enum Count {
    /// One.
    One,
    /// As many as this gives.
    Spawn(Expression),
    /// One for each element of what this gives.
    Foreach {
        /// The list.
        items: Expression,
        /// What an element is called, beside `item`.
        name: Option<Arc<str>>,
    },
}

/// A fan-in.
#[derive(Debug)]
pub struct Join {
    /// The group that it closes.
    pub group: Arc<str>,
    /// When it fires.
    pub wait_for: WaitFor,
    /// How long after the fan-out it fires, or fails, anyway.
    pub timeout_ms: Option<u64>,
    /// What happens then.
    pub on_timeout: OnTimeout,
    /// What a failed branch does.
    pub on_failure: OnFailure,
    /// What is carried out of the branches.
    pub merges: Vec<Merge>,
}

/// When a join fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// When every branch is settled.
    All,
    /// When the first branch arrives.
    Any,
    /// When so many have arrived; at least 1.
    Count(u64),
}

/// What happens when a join's time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// The run fails.
    Fail,
    /// It fires with what has arrived.
    Proceed,
}

/// What a failed branch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It fails the run.
    Fail,
    /// It is settled, without output.
    Continue,
}

/// What a join carries out of its branches.
#[derive(Debug)]
pub struct Merge {
    /// A path in the branch's view.
    pub from: Expression,
    /// Where to, in the parent's view.
    pub into: ContextPath,
    /// How values of several branches become one.
    pub strategy: Strategy,
}

/// How values of several branches become one.
#[derive(Debug)]
pub enum Strategy {
    /// A list, flattened by one level where every value is a list.
    Append,
    /// A list.
    Collect,
    /// One object; later branches win.
    Merge,
    /// An object by branch index, or by what the expression gives.
    Keyed(Option<Expression>),
    /// The value of the highest index.
    Last,
}

impl Workflow {
    /// The node at `index`.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.0]
    }

    /// The node called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.binary_search_by(|node| (*node.name).cmp(name)).ok().map(NodeIndex)
    }

    /// The transition at `index`.
    #[must_use]
    pub fn transition(&self, index: TransitionIndex) -> &Transition {
        &self.transitions[index.0]
    }

    /// The transitions that leave `node`, in the order written.
    #[must_use]
    pub fn outgoing(&self, node: NodeIndex) -> &[TransitionIndex] {
        &self.outgoing[node.0]
    }
}

impl Transition {
    /// Whether its tokens are branches of a group instance of their own, named or not.
    #[must_use]
    pub fn opens_a_group(&self) -> bool {
        self.group.is_some() || !matches!(self.count, Count::One)
    }
}

impl Count {
    /// The expression that it is made of.
    #[must_use]
    pub fn expression(&self) -> Option<&Expression> {
        match self {
            Self::One => None,
            Self::Spawn(expression) | Self::Foreach { items: expression, .. } => Some(expression),
        }
    }
}

impl ContextRoot {
    /// Its name in expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Output => "output",
        }
    }
}

impl ContextPath {
    /// The part of the context that is stored as one value: `state.a` of `state.a.b`.
    #[must_use]
    pub fn stored_as(&self) -> String {
        format!("{}.{}", self.root.name(), self.field)
    }
}

impl std::fmt::Display for ContextPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.root.name(), self.field)?;
        self.below.iter().try_for_each(|field| write!(f, ".{field}"))
    }
}
