//! An expression in the form in which it is run.
//!
//! Owns the shape: what the parser gave, with names resolved, macros recognised and plain paths folded into one step.
//! Made by `compile`, run by `run`. Start reading at [`Node`].

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use super::functions::Function;
use super::{Reads, Scope, Value};

/// A part of an expression that has a value.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Value),
    Path(Path),
    /// A field of something computed.
    Field(Box<Node>, Arc<str>),
    Index(Box<[Node; 2]>),
    Has(Box<Node>, Arc<str>),
    List(Vec<Node>),
    Object(Vec<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Logic(Logic, Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Pattern),
    Loop(Box<Loop>),
}

/// A regular expression.
#[derive(Debug)]
pub(super) enum Pattern {
    /// Written in the expression.
    Known(Regex),
    Computed(Box<Node>),
}

/// A variable, and the way from it to what is meant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Root {
    /// A variable of the scope.
    Variable(Arc<str>),
    /// The variable of a macro, by how many others are around it.
    Local(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Field(Arc<str>),
    Item(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// A macro over the items of a list or the names of an object's fields.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) kind: LoopKind,
    pub(super) range: Node,
    /// Items for which it does not hold are left out.
    pub(super) filter: Option<Node>,
    pub(super) body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    /// `map` and `filter`.
    Map,
}

impl Path {
    /// What is there; `None` for nothing, at whatever depth it is missing.
    pub(super) fn find<'v>(&self, scope: &'v Scope<'_>, locals: &'v [Value]) -> Option<&'v Value> {
        let root = match &self.root {
            Root::Variable(name) => scope.get(name)?,
            Root::Local(slot) => locals.get(*slot)?,
        };
        self.steps.iter().try_fold(root, |place, step| match step {
            Step::Field(field) => place.get(field),
            Step::Item(index) => place.at(*index),
        })
    }
}

impl Node {
    /// Everything it reads, and each path in it once, in the order of the text.
    pub(super) fn survey(&self) -> (Reads, Vec<Path>) {
        let mut reads = Reads::default();
        let mut paths = Vec::new();
        self.visit_paths(&mut |path| {
            let Root::Variable(variable) = &path.root else { return };
            match path.steps.first() {
                Some(Step::Field(field)) => reads.add_field(variable, field),
                Some(Step::Item(_)) | None => reads.add_all(variable),
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        });
        (reads, paths)
    }

    fn visit_paths(&self, visit: &mut impl FnMut(Path)) {
        match self {
            Self::Literal(_) => {}
            Self::Path(path) => visit(path.clone()),
            Self::Has(inner, field) => {
                // Only that field is looked at, not the whole of what should hold it.
                if let Self::Path(path) = inner.as_ref() {
                    let mut path = path.clone();
                    path.steps.push(Step::Field(Arc::clone(field)));
                    visit(path);
                } else {
                    inner.visit_paths(visit);
                }
            }
            Self::Field(inner, _) | Self::Not(inner) | Self::Negate(inner) => inner.visit_paths(visit),
            Self::Matches(inner, pattern) => {
                inner.visit_paths(visit);
                match pattern {
                    Pattern::Known(_) => {}
                    Pattern::Computed(pattern) => pattern.visit_paths(visit),
                }
            }
            Self::Index(nodes) | Self::Logic(_, nodes) | Self::Binary(_, nodes) => {
                nodes.iter().for_each(|node| node.visit_paths(visit));
            }
            Self::Conditional(nodes) => nodes.iter().for_each(|node| node.visit_paths(visit)),
            Self::List(nodes) | Self::Call(_, nodes) => nodes.iter().for_each(|node| node.visit_paths(visit)),
            Self::Object(fields) => {
                for (name, value) in fields {
                    name.visit_paths(visit);
                    value.visit_paths(visit);
                }
            }
            Self::Loop(inner) => {
                inner.range.visit_paths(visit);
                inner.filter.iter().for_each(|node| node.visit_paths(visit));
                inner.body.visit_paths(visit);
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Variable(name) => f.write_str(name)?,
            Root::Local(slot) => write!(f, "item {slot}")?,
        }
        for step in &self.steps {
            match step {
                Step::Field(field) if super::tokens::is_name(field) => write!(f, ".{field}")?,
                Step::Field(field) => write!(f, "[{}]", Value::String(Arc::clone(field)))?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }
}

impl Logic {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}

impl LoopKind {
    /// As messages write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "`all`",
            Self::Exists => "`exists`",
            Self::ExistsOne => "`exists_one`",
            Self::Map => "`map`",
        }
    }
}
