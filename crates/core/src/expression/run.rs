//! Running an expression.
//!
//! Owns the order of evaluation and what a missing thing reads as: `null`, at any depth. Never panics, takes no more than
//! [`crate::limits::EXPRESSION_STEPS_MAX`] steps, and gives the same value for the same scope, always.
//! Start reading at [`Run::value`].

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::functions;
use super::operations::{self, Budget, Trouble};
use super::program::{Logic, Loop, LoopKind, Node, Pattern};
use super::{Scope, Value};

/// One evaluation.
pub(super) struct Run<'a> {
    scope: &'a Scope<'a>,
    /// The items that macros are at, outermost first.
    locals: Vec<Value>,
    budget: Budget,
    last_pattern: Option<(Arc<str>, Regex)>,
}

/// What compiling a pattern counts for: the largest allowed one takes about as long.
const PATTERN_STEPS: usize = 10_000;

impl<'a> Run<'a> {
    pub(super) fn new(scope: &'a Scope<'a>) -> Self {
        Self { scope, locals: Vec::new(), budget: Budget::new(), last_pattern: None }
    }

    /// The value of `node`.
    pub(super) fn value(&mut self, node: &Node) -> Result<Value, Trouble> {
        self.budget.charge(1)?;
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Path(path) => Ok(path.find(self.scope, &self.locals).cloned().unwrap_or_default()),
            Node::Field(inner, field) => Ok(self.value(inner)?.get(field).cloned().unwrap_or_default()),
            Node::Index(nodes) => self.index(nodes),
            Node::Has(inner, field) => Ok(self.value(inner)?.get(field).is_some().into()),
            Node::List(nodes) => self.list(nodes),
            Node::Object(fields) => self.object(fields),
            Node::Not(inner) => Ok((!self.truth(inner, "`!`")?).into()),
            Node::Negate(inner) => operations::negate(&self.value(inner)?),
            Node::Logic(logic, nodes) => self.logic(*logic, nodes).map(Value::Bool),
            Node::Conditional(nodes) => self.conditional(nodes),
            Node::Binary(operator, nodes) => {
                let left = self.value(&nodes[0])?;
                let right = self.value(&nodes[1])?;
                operations::binary(*operator, &left, &right, &mut self.budget)
            }
            Node::Call(function, nodes) => {
                let arguments = nodes.iter().map(|node| self.value(node)).collect::<Result<Vec<_>, _>>()?;
                function.call(&arguments, &mut self.budget)
            }
            Node::Matches(inner, pattern) => self.matches(inner, pattern).map(Value::Bool),
            Node::Loop(inner) => self.run_loop(inner),
        }
    }

    /// What is not there reads as `null`, whatever the reason: no such item, no such field, nothing to look into.
    fn index(&mut self, nodes: &[Node; 2]) -> Result<Value, Trouble> {
        let container = self.value(&nodes[0])?;
        let index = self.value(&nodes[1])?;
        let found = match &index {
            Value::Int(item) => usize::try_from(*item).ok().and_then(|item| container.at(item)),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "tested to be whole; saturates"
            )]
            Value::Float(item) if item.fract() == 0.0 && *item >= 0.0 => container.at(*item as usize),
            Value::String(field) => container.get(field),
            Value::Null | Value::Bool(_) | Value::UInt(_) | Value::Float(_) | Value::List(_) | Value::Object(_) => None,
        };
        Ok(found.cloned().unwrap_or_default())
    }

    fn matches(&mut self, inner: &Node, pattern: &Pattern) -> Result<bool, Trouble> {
        let value = self.value(inner)?;
        let text = value.as_str().ok_or_else(|| Trouble::needs("`matches`", "a string", &value))?;
        self.budget.charge_text(&value)?;
        match pattern {
            Pattern::Known(regex) => Ok(regex.is_match(text)),
            Pattern::Computed(node) => {
                let pattern = self.value(node)?;
                let Value::String(pattern) = pattern else {
                    return Err(Trouble::needs("`matches`", "a string as its pattern", &pattern));
                };
                Ok(self.pattern(pattern)?.is_match(text))
            }
        }
    }

    /// Compiling is dear, and inside of a macro it is mostly the same pattern again.
    fn pattern(&mut self, text: Arc<str>) -> Result<&Regex, Trouble> {
        let last = match self.last_pattern.take() {
            Some((known, regex)) if known == text => (known, regex),
            Some(_) | None => {
                self.budget.charge(PATTERN_STEPS)?;
                let regex = functions::pattern(&text).map_err(Trouble::other)?;
                (text, regex)
            }
        };
        Ok(&self.last_pattern.insert(last).1)
    }

    fn list(&mut self, nodes: &[Node]) -> Result<Value, Trouble> {
        nodes.iter().map(|node| self.value(node)).collect::<Result<_, _>>().map(Value::list)
    }

    fn object(&mut self, fields: &[(Node, Node)]) -> Result<Value, Trouble> {
        let mut object = BTreeMap::new();
        for (name, value) in fields {
            let name = self.value(name)?;
            let Value::String(name) = name else {
                return Err(Trouble::needs("the name of a field", "to be a string", &name));
            };
            object.insert(name, self.value(value)?);
        }
        Ok(Value::Object(Arc::new(object)))
    }

    fn truth(&mut self, node: &Node, who: &str) -> Result<bool, Trouble> {
        let value = self.value(node)?;
        value.as_bool().ok_or_else(|| Trouble::needs(who, "true or false", &value))
    }

    /// As CEL has it, one side is enough if it decides, even when the other has no value.
    fn logic(&mut self, logic: Logic, nodes: &[Node; 2]) -> Result<bool, Trouble> {
        let decides = match logic {
            Logic::And => false,
            Logic::Or => true,
        };
        let left = self.operand(logic, &nodes[0]);
        if matches!(left, Ok(truth) if truth == decides) {
            return Ok(decides);
        }
        let right = self.operand(logic, &nodes[1]);
        if matches!(right, Ok(truth) if truth == decides) {
            return Ok(decides);
        }
        left.and(right)
    }

    fn operand(&mut self, logic: Logic, node: &Node) -> Result<bool, Trouble> {
        let value = self.value(node)?;
        value.as_bool().ok_or_else(|| Trouble::needs(&format!("`{}`", logic.sign()), "true or false", &value))
    }

    fn conditional(&mut self, nodes: &[Node; 3]) -> Result<Value, Trouble> {
        match self.truth(&nodes[0], "`? :`")? {
            true => self.value(&nodes[1]),
            false => self.value(&nodes[2]),
        }
    }

    fn run_loop(&mut self, inner: &Loop) -> Result<Value, Trouble> {
        let items = match self.value(&inner.range)? {
            Value::List(items) => items,
            Value::Object(fields) => {
                self.budget.charge(fields.len())?;
                Arc::new(fields.keys().cloned().map(Value::String).collect())
            }
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::String(_)) => return Err(Trouble::needs(inner.kind.name(), "a list or an object", &other)),
        };
        let slot = self.locals.len();
        self.locals.push(Value::Null);
        let result = match inner.kind {
            LoopKind::All => self.search(inner, &items, slot, false).map(|found| Value::Bool(!found)),
            LoopKind::Exists => self.search(inner, &items, slot, true).map(Value::Bool),
            LoopKind::ExistsOne => self.count(inner, &items, slot).map(|count| Value::Bool(count == 1)),
            LoopKind::Map => self.map(inner, &items, slot).map(Value::list),
        };
        self.locals.truncate(slot);
        result
    }

    /// Whether the body gives `wanted` for an item. One such item is enough, even when the body has no value for others.
    fn search(&mut self, inner: &Loop, items: &[Value], slot: usize, wanted: bool) -> Result<bool, Trouble> {
        let mut trouble = None;
        for item in items {
            self.locals[slot] = item.clone();
            match self.truth(&inner.body, inner.kind.name()) {
                Ok(truth) if truth == wanted => return Ok(true),
                Ok(_) => {}
                Err(first) => trouble = trouble.or(Some(first)),
            }
            // A spent budget would otherwise fail each of the remaining items anew.
            self.budget.charge(1)?;
        }
        trouble.map_or(Ok(false), Err)
    }

    fn count(&mut self, inner: &Loop, items: &[Value], slot: usize) -> Result<usize, Trouble> {
        let mut count = 0;
        for item in items {
            self.locals[slot] = item.clone();
            count += usize::from(self.truth(&inner.body, inner.kind.name())?);
        }
        Ok(count)
    }

    fn map(&mut self, inner: &Loop, items: &[Value], slot: usize) -> Result<Vec<Value>, Trouble> {
        let mut results = Vec::new();
        for item in items {
            self.locals[slot] = item.clone();
            let kept = match &inner.filter {
                Some(filter) => self.truth(filter, "`filter`")?,
                None => true,
            };
            if kept {
                results.push(self.value(&inner.body)?);
            }
        }
        Ok(results)
    }
}
