//! From trees to definitions: what each field may be.
//!
//! Owns the fields and their meaning, one file for each part of a definition. Goes on after a problem, so that all of
//! them are told at once. Never looks at the graph as a whole: see [`super::check`]. Start reading at [`document`].

mod expressions;
mod node;
mod outside;
mod retry;
mod run;
mod task;
mod transition;
mod values;
mod workflow;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use expressions::Owner;

use super::check::Unread;
use super::names::{self, listed};
use super::problems::Problems;
use super::tree::{Content, Field, Place, Tree};
use super::workflow::Reference;
use super::{Definition, DefinitionKind};

/// What one document is, as far as it could be read.
pub(super) struct Document {
    /// Its kind, name, and where the name is.
    pub(super) named: Option<(DefinitionKind, Arc<str>, Place)>,
    /// What it names.
    pub(super) mentions: Vec<Mention>,
    /// Itself, when nothing of it is missing.
    pub(super) definition: Option<Definition>,
}

/// A definition named by another.
pub(super) struct Mention {
    pub(super) kind: DefinitionKind,
    pub(super) reference: Reference,
    pub(super) at: Place,
}

/// Decodes one document.
pub(super) struct Decoder<'p, 't> {
    problems: &'p mut Problems<'t>,
    mentions: Vec<Mention>,
    /// The names that `as` gives to elements, anywhere in the workflow.
    element_names: BTreeSet<Arc<str>>,
    /// Where `error` is read. Whether it can be there is known once the graph is.
    error_reads: Vec<(Owner, Place)>,
}

/// Reads one document.
pub(super) fn document(tree: &Tree, problems: &mut Problems<'_>) -> Document {
    let mut decoder =
        Decoder { problems, mentions: Vec::new(), element_names: BTreeSet::new(), error_reads: Vec::new() };
    let (named, definition) = decoder.document(tree);
    Document { named, mentions: decoder.mentions, definition }
}

type Named = Option<(DefinitionKind, Arc<str>, Place)>;

impl Decoder<'_, '_> {
    fn document(&mut self, tree: &Tree) -> (Named, Option<Definition>) {
        let Content::Object(fields) = &tree.content else {
            let hint = "a definition is an object that begins with `kind: workflow` or `kind: task`".to_owned();
            self.problems.error(tree.at, format!("expected a definition, found {}", tree.described()), hint);
            return (None, None);
        };
        let object = Object { fields, at: first_key(tree), what: "a definition" };
        let kind = match object.get("kind") {
            Some(field) => self.kind(field),
            None => {
                let hint = match object.get("nodes").or_else(|| object.get("run")).map(|field| &*field.key) {
                    Some("nodes") => "add `kind: workflow`",
                    Some(_) => "add `kind: task`",
                    None => "add `kind: workflow` or `kind: task`",
                };
                self.problems.error(object.at, "`kind` is missing", hint.to_owned());
                None
            }
        };
        let Some(kind) = kind else { return (None, None) };
        let name = match object.get("name") {
            Some(field) => self.name(field).map(|name| (name, field.value_at())),
            None => {
                self.problems.error(
                    object.at,
                    "`name` is missing",
                    "every definition has one: `name: my-name`".to_owned(),
                );
                None
            }
        };
        let shown = name.as_ref().map_or_else(|| Arc::from("?"), |(name, _)| name.clone());
        let definition = match kind {
            DefinitionKind::Workflow => self.workflow(tree, shown).map(Definition::Workflow),
            DefinitionKind::Task => self.task(tree, shown).map(Definition::Task),
        };
        (name.map(|(name, at)| (kind, name, at)), definition)
    }

    fn kind(&mut self, field: &Field) -> Option<DefinitionKind> {
        let text = self.text(field)?;
        match &*text {
            "workflow" => Some(DefinitionKind::Workflow),
            "task" => Some(DefinitionKind::Task),
            "agent" | "pool" | "tenant" | "schedule" => {
                let message = format!("definitions of kind `{text}` are not available in this version");
                self.problems.error(field.value_at(), message, "available are `workflow` and `task`".to_owned());
                None
            }
            other => {
                let meant = self.problems.meant(other, ["workflow", "task"].into_iter());
                let hint = meant.unwrap_or_else(|| "kinds are `workflow` and `task`".to_owned());
                self.problems.error(field.value_at(), format!("unknown kind `{other}`"), hint);
                None
            }
        }
    }

    /// Opens an object whose fields are known, and tells of those that are not.
    fn object<'t>(&mut self, tree: &'t Tree, what: &'static str, known: &[&str]) -> Option<Object<'t>> {
        let Content::Object(fields) = &tree.content else {
            let message = format!("{what} must be an object, found {}", tree.described());
            self.problems.error(tree.at, message, format!("{what} has {}", listed(available(known))));
            return None;
        };
        for field in fields.iter().filter(|field| !known.contains(&&*field.key)) {
            let meant = self.problems.meant(&field.key, known.iter().copied());
            let hint = meant.unwrap_or_else(|| format!("{what} has {}", listed(available(known))));
            self.problems.error(field.key_at, format!("unknown field `{}`", field.key), hint);
        }
        Some(Object { fields, at: tree.at, what })
    }

    fn wrong(&mut self, field: &str, tree: &Tree, expected: &str) {
        self.problems.error(tree.at, format!("`{field}` must be {expected}, found {}", tree.described()), None);
    }

    fn missing(&mut self, object: &Object<'_>, field: &str, hint: &str) {
        // A misspelt field has been told of, with the name that was meant.
        let is_misspelt = object.fields.iter().any(|other| names::closest(&other.key, [field].into_iter()).is_some());
        if !is_misspelt {
            self.problems.error(object.at, format!("`{field}` is missing in {}", object.what), hint.to_owned());
        }
    }

    /// Decodes a field if it is there, and notes whether there are errors in it.
    fn noting<T>(
        &mut self,
        unread: &mut Unread,
        field: Option<&Field>,
        decode: impl FnOnce(&mut Self, &Field) -> Option<T>,
    ) -> Option<T> {
        let field = field?;
        let before = self.problems.errors();
        let found = decode(self, field);
        if self.problems.errors() > before {
            unread.add(field.key.clone());
        }
        found
    }

    /// Names another definition: `name` or `name@3`.
    fn reference(&mut self, field: &Field, kind: DefinitionKind) -> Option<Reference> {
        let text = self.text(field)?;
        let (name, version) = match text.split_once('@') {
            None => (&*text, None),
            Some((name, version)) => match version.parse::<u32>() {
                Ok(version) if version > 0 && !text.ends_with('+') => (name, Some(version)),
                Ok(_) | Err(_) => {
                    let message = format!("`{version}` is not a version");
                    let hint = format!("versions are whole numbers from 1: `{name}@3`; `{name}` is the newest");
                    self.problems.error(field.value_at(), message, hint);
                    return None;
                }
            },
        };
        if let Some(fault) = names::fault(name) {
            self.problems.error(field.value_at(), format!("`{name}` is not a name: {fault}"), None);
            return None;
        }
        let reference = Reference { name: name.into(), version };
        self.mentions.push(Mention { kind, reference: reference.clone(), at: field.value_at() });
        Some(reference)
    }
}

/// Fields that are known, but only to say that they are for later.
const LATER: [&str; 2] = ["agent", "llm"];

fn available<'n>(known: &[&'n str]) -> impl Iterator<Item = &'n str> {
    known.iter().copied().filter(|name| !LATER.contains(name))
}

/// An object that is being decoded.
struct Object<'t> {
    fields: &'t [Field],
    at: Place,
    /// For messages: `a node`.
    what: &'static str,
}

impl<'t> Object<'t> {
    fn get(&self, name: &str) -> Option<&'t Field> {
        self.fields.iter().find(|field| &*field.key == name)
    }

    /// The fields that are not `known`, and what they were probably meant to be.
    fn unknown(&self, known: &[&str]) -> Unread {
        let mut unread = Unread::default();
        for field in self.fields.iter().filter(|field| !known.contains(&&*field.key)) {
            unread.add(field.key.clone());
            if let Some(meant) = names::closest(&field.key, known.iter().copied()) {
                unread.add(meant);
            }
        }
        unread
    }

    /// Those of the named fields that are there.
    fn those(&self, names: &[&str]) -> Vec<&'t Field> {
        self.fields.iter().filter(|field| names.contains(&&*field.key)).collect()
    }
}

impl Field {
    /// Where its value is, or its key when there is nothing.
    fn value_at(&self) -> Place {
        if self.value.at.start == self.value.at.end { self.key_at } else { self.value.at }
    }
}

/// Where a document begins: at its first key, not at all of it.
fn first_key(tree: &Tree) -> Place {
    match &tree.content {
        Content::Object(fields) => fields.first().map_or(tree.at, |field| field.key_at),
        Content::Null
        | Content::Bool(_)
        | Content::Int(_)
        | Content::UInt(_)
        | Content::Float(_)
        | Content::Text(_)
        | Content::List(_) => tree.at,
    }
}
