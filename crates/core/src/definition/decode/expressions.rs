//! Expressions and templates: that they parse, and that what they read is there.
//!
//! Owns which names can be read where. Never evaluates anything.

use std::sync::Arc;

use super::super::names::listed;
use super::super::tree::{Content, Field, Place, Tree};
use super::Decoder;
use crate::expression::{Expression, Part, Reads, Template, Value};

/// What can be read at some place.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    names: &'static [&'static str],
    secrets: Secrets,
    owner: Owner,
}

/// Whether `${secret.NAME}` is possible.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Possible,
    Refused,
}

/// Whose expression it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Owner {
    /// A task that has a name.
    Task,
    /// The node with this index, or a transition that leaves it.
    Node(usize),
    /// A transition for tokens that failed.
    ErrorPath,
    /// The workflow's `result`.
    Result,
}

const EVERY_NAME: [&str; 8] = ["input", "state", "output", "result", "error", "item", "branch", "run"];

impl Sight {
    pub(super) const TASK: Self = Self { names: &["input"], secrets: Secrets::Refused, owner: Owner::Task };

    /// Before the work of `owner` is done.
    pub(super) fn before(owner: Owner) -> Self {
        let names = &["input", "state", "output", "error", "item", "branch", "run"];
        Self { names, secrets: Secrets::Refused, owner }
    }

    /// When there is a `result`.
    pub(super) fn after(owner: Owner) -> Self {
        Self { names: &EVERY_NAME, secrets: Secrets::Refused, owner }
    }

    /// When the run is done: there is no token left, and so nothing that only a token has.
    pub(super) const RESULT: Self =
        Self { names: &["input", "state", "output", "run"], secrets: Secrets::Refused, owner: Owner::Result };

    /// The same where an executor fills in secrets.
    pub(super) fn with_secrets(self) -> Self {
        Self { secrets: Secrets::Possible, ..self }
    }

    /// Whether elements can be read by the names that `as` gives them.
    fn has_elements(self) -> bool {
        match self.owner {
            Owner::Node(_) | Owner::ErrorPath => true,
            Owner::Task | Owner::Result => false,
        }
    }

    /// The names that are there for sure: of a node it is not known yet whether an error path leads to it.
    fn sure_names<'n>(self) -> impl Iterator<Item = &'n str> {
        let has_error = match self.owner {
            Owner::ErrorPath => true,
            Owner::Node(_) | Owner::Task | Owner::Result => false,
        };
        self.names.iter().copied().filter(move |name| has_error || *name != "error")
    }
}

/// Whether a word is a variable's name already.
pub(super) fn is_reserved(name: &str) -> bool {
    EVERY_NAME.contains(&name) || name == "secret"
}

impl Decoder<'_, '_> {
    /// An expression by itself, without `${}`.
    pub(super) fn expression(&mut self, field: &Field, sight: Sight) -> Option<Expression> {
        let text: Arc<str> = match &field.value.content {
            Content::Text(text) => text.clone(),
            Content::Bool(value) => value.to_string().into(),
            Content::Null
            | Content::Int(_)
            | Content::UInt(_)
            | Content::Float(_)
            | Content::List(_)
            | Content::Object(_) => {
                self.wrong(&field.key, &field.value, "an expression, such as `state.count < 3`");
                return None;
            }
        };
        let trimmed = text.trim();
        if let Some(inner) = trimmed.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            let message = format!("`{}` is an expression by itself, without `${{` and `}}`", field.key);
            self.problems.error(field.value_at(), message, format!("write `{}`", inner.trim()));
            return None;
        }
        match Expression::parse(&text) {
            Ok(expression) => {
                self.reads(expression.reads(), &field.value, sight);
                Some(expression)
            }
            Err(error) => {
                let at = self.inside(&field.value, &text, error.offset);
                self.problems.error(at, format!("`{}` is not an expression: {}", field.key, error.message), None);
                None
            }
        }
    }

    /// A value in which `${…}` may stand.
    pub(super) fn template(&mut self, tree: &Tree, sight: Sight) -> Option<Template> {
        match &tree.content {
            Content::Null | Content::Bool(_) | Content::Int(_) | Content::UInt(_) | Content::Float(_) => {
                Some(Template::Literal(tree.value()))
            }
            Content::Text(text) => self.text_template(tree, text, sight),
            Content::List(items) => {
                let items: Vec<Option<Template>> = items.iter().map(|item| self.template(item, sight)).collect();
                Some(Template::list(items.into_iter().collect::<Option<_>>()?))
            }
            Content::Object(fields) => {
                let fields = fields.iter().map(|field| (field.key.clone(), self.template(&field.value, sight)));
                // All of them first: a problem in one must not hide the next.
                let fields: Vec<(Arc<str>, Option<Template>)> = fields.collect();
                let fields = fields.into_iter().map(|(key, value)| Some((key, value?))).collect::<Option<Vec<_>>>()?;
                Some(Template::object(fields))
            }
        }
    }

    fn text_template(&mut self, tree: &Tree, text: &Arc<str>, sight: Sight) -> Option<Template> {
        if !text.contains("${") {
            return Some(Template::Literal(Value::String(text.clone())));
        }
        let template = match Template::parse_text(text) {
            Ok(template) => template,
            Err(error) => {
                let at = self.inside(tree, text, error.offset);
                self.problems.error(at, error.message, None);
                return None;
            }
        };
        self.reads(&template.reads(), tree, sight);
        if let Some(name) = first_secret(&template).filter(|_| sight.secrets == Secrets::Refused) {
            let at = self.word(tree, "secret");
            let message = format!("the secret `{name}` cannot be used here");
            let hint = "secrets are filled in only inside the `http` and `command` of a `run`".to_owned();
            self.problems.error(at, message, hint);
        }
        Some(template)
    }

    fn reads(&mut self, reads: &Reads, tree: &Tree, sight: Sight) {
        for name in reads.0.keys() {
            let is_element_name = sight.has_elements() && self.element_names.contains(&**name);
            if name == "error" && sight.names.contains(&"error") {
                let at = self.word(tree, name);
                self.error_reads.push((sight.owner, at));
            } else if !is_element_name && !sight.names.contains(&&**name) {
                self.unreadable(name, tree, sight);
            }
        }
    }

    fn unreadable(&mut self, name: &str, tree: &Tree, sight: Sight) {
        let at = self.word(tree, name);
        let (message, hint) = if name == "secret" {
            let hint = "write `${secret.NAME}` by itself, inside the `http` or `command` of a `run`";
            ("a secret cannot be part of an expression".to_owned(), hint.to_owned())
        } else if sight.owner == Owner::Task {
            let hint = match self.problems.meant(name, sight.names.iter().copied()) {
                Some(hint) => hint,
                None => "a task that has a name sees only its `input`: what the node's `input` hands it".to_owned(),
            };
            (format!("`{name}` cannot be read in a task"), hint)
        } else if sight.owner == Owner::Result && (is_reserved(name) || self.element_names.contains(name)) {
            let hint = format!("when the run is done there is only {}", listed(sight.sure_names()));
            (format!("there is no `{name}` here"), hint)
        } else if name == "result" {
            let hint = "it is there in the node's `output` and in the transitions that leave the node";
            ("there is no `result` here".to_owned(), hint.to_owned())
        } else {
            let elements: Vec<&str> = match sight.has_elements() {
                true => self.element_names.iter().map(|name| &**name).collect(),
                false => Vec::new(),
            };
            let possible: Vec<&str> = sight.names.iter().chain(&elements).copied().collect();
            let known: Vec<&str> = sight.sure_names().chain(elements).collect();
            let meant = self.problems.meant(name, possible.into_iter());
            let hint = meant.unwrap_or_else(|| format!("known here are {}", listed(known)));
            (format!("unknown name `{name}`"), hint)
        };
        self.problems.error(at, message, hint);
    }

    /// The place of a variable in a text.
    fn word(&self, tree: &Tree, name: &str) -> Place {
        let Content::Text(text) = &tree.content else { return tree.at };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begin = text.find("${").unwrap_or(0);
        let found = text[begin..].match_indices(name).map(|(offset, _)| begin + offset).find(|offset| {
            let before = text[..*offset].chars().next_back();
            let after = text[offset + name.len()..].chars().next();
            !before.is_some_and(|c| is_part(c) || c == '.') && !after.is_some_and(is_part)
        });
        found.map_or(tree.at, |offset| self.problems.inside(tree, offset, name.len()))
    }

    /// The place of the word at `offset`.
    fn inside(&self, tree: &Tree, text: &str, offset: usize) -> Place {
        let rest = text.get(offset..).unwrap_or_default();
        let word = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
        self.problems.inside(tree, offset.min(text.len()), length)
    }
}

fn first_secret(template: &Template) -> Option<Arc<str>> {
    let Template::Text(parts) = template else { return None };
    parts.iter().find_map(|part| match part {
        Part::Secret(name) => Some(name.clone()),
        Part::Literal(_) | Part::Expression(_) => None,
    })
}
