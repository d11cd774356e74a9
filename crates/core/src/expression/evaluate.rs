//! One expression: parsed once, evaluated often.
//!
//! Owns the language as users meet it. Its grammar is CEL, read by the `cel` crate; its values are JSON, and what is run is
//! our own: a missing field reads as `null`, numbers of both kinds mix, every evaluation is bounded and shares the values
//! it looks at instead of copying them. There is no clock and nothing random. Start reading at [`Expression::decide`].
//!
//! Beside the operators: the macros `has`, `all`, `exists`, `exists_one`, `map`, `filter`, and the functions `size`, `contains`,
//! `startsWith`, `endsWith`, `matches`, `string`, `int`, `double`, `bool`, `min`, `max`, `lowerAscii`, `upperAscii`, `trim`,
//! `split`, `join`, `replace`. Each may be called as `f(x)` or as `x.f()`.

use std::fmt::Write as _;
use std::sync::Arc;

use super::operations::{self, Cause, Trouble};
use super::program::{Node, Path};
use super::run::Run;
use super::{Reads, Scope, Value, compile};
use crate::limits;

/// A parsed CEL expression. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Expression(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    text: Box<str>,
    node: Node,
    reads: Reads,
    /// What an error shows of the scope.
    paths: Vec<Path>,
}

/// A text that is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// What is wrong.
    pub message: String,
    /// Where in the text, in bytes.
    pub offset: usize,
}

/// An expression that has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{expression}` cannot be evaluated: {message}{saw}")]
pub struct EvaluationError {
    /// Its text.
    pub expression: String,
    /// What is wrong.
    pub message: String,
    /// The values that it saw, for people; empty when there were none.
    pub saw: String,
}

impl Expression {
    /// Parses CEL.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let node = compile::compile(text)?;
        let (reads, paths) = node.survey();
        Ok(Self(Arc::new(Parsed { text: text.into(), node, reads, paths })))
    }

    /// What it reads.
    #[must_use]
    pub fn reads(&self) -> &Reads {
        &self.0.reads
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Its value.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, EvaluationError> {
        self.run(scope).map_err(|trouble| self.error(trouble.message, scope))
    }

    /// Whether it holds. What cannot be decided because something is missing does not.
    pub fn decide(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        match self.run(scope) {
            Ok(Value::Bool(truth)) => Ok(truth),
            Ok(Value::Null) => Ok(false),
            Ok(other) => {
                let message =
                    format!("a condition must give true or false, this one gives {}", operations::shown(&other));
                Err(self.error(message, scope))
            }
            Err(Trouble { cause: Cause::Missing, .. }) => Ok(false),
            Err(Trouble { cause: Cause::Other, message }) => Err(self.error(message, scope)),
        }
    }

    fn run(&self, scope: &Scope<'_>) -> Result<Value, Trouble> {
        if let Node::Path(path) = &self.0.node {
            return Ok(path.find(scope, &[]).cloned().unwrap_or_default());
        }
        Run::new(scope).value(&self.0.node)
    }

    pub(super) fn error(&self, message: String, scope: &Scope<'_>) -> EvaluationError {
        let mut saw = String::new();
        for (position, path) in self.0.paths.iter().enumerate() {
            saw.push_str(if position == 0 { "; it saw " } else { ", " });
            if position == limits::EXPRESSION_SEEN_MAX {
                saw.push('…');
                break;
            }
            let value = path.find(scope, &[]).map_or_else(|| "null".to_owned(), operations::shown);
            write!(saw, "{path} = {value}").expect("writing to a string does not fail");
        }
        EvaluationError { expression: self.text().to_owned(), message, saw }
    }
}

#[cfg(test)]
mod tests;
