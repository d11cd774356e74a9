//! Reading definitions: from text with places, and from stored documents without.
//!
//! Owns the way from the one to the other. Never decides what is right: see [`super::decode`] and [`super::check`].

use std::sync::Arc;

use super::decode::{self, Document};
use super::problems::Problems;
use super::tree::{Place, Tree};
use super::workflow::Reference;
use super::{Definition, DefinitionKind, Problem, yaml};
use crate::expression::Value;
use crate::limits;

/// What a text holds.
#[derive(Debug, Default)]
pub struct Read {
    /// The definitions that are right, in the order of the text. Those with errors are left out, those with warnings are not.
    pub definitions: Vec<Parsed>,
    /// Everything that is wrong, in the order of the text.
    pub problems: Vec<Problem>,
    /// What is named in it, also by definitions with errors.
    pub(super) named: Vec<Named>,
}

/// One definition of a text.
#[derive(Debug)]
pub struct Parsed {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The document as written, as a value: two documents with the same value are the same version.
    pub document: Value,
    /// As it runs.
    pub definition: Definition,
}

/// A name in a text: of a definition, or of one that it refers to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) kind: DefinitionKind,
    pub(super) reference: Reference,
    pub(super) role: Role,
    /// A problem at its place that says nothing yet.
    pub(super) spot: Problem,
}

/// Why a name is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is defined here.
    Defined,
    /// It is used here.
    Used,
}

/// A definition made from a stored document.
pub type Compiled = Result<Definition, Vec<Problem>>;

/// Reads YAML or JSON with any number of documents. `file` names it in problems.
#[must_use]
pub fn read(file: &str, text: &str) -> Read {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > limits::DEFINITION_BYTES_MAX {
        // Without its text: a line of it would be as long.
        let mut problems = Problems::new(file, "");
        let (found, max) = (text.len(), limits::DEFINITION_BYTES_MAX);
        let message = format!("the file has {found} bytes, the limit is {max} (`definition_bytes_max`)");
        problems.error(Place::default(), message, "split it into several files".to_owned());
        return Read { problems: problems.into_sorted(), ..Read::default() };
    }
    let mut problems = Problems::new(file, text);
    let mut read = Read::default();
    let trees = yaml::documents(text, &mut problems);
    if trees.is_empty() && !problems.has_errors() {
        let hint = "a definition begins with `kind: workflow` or `kind: task`".to_owned();
        problems.error(Place::default(), "the file holds no definition", hint);
    }
    for tree in trees {
        let before = problems.errors();
        let Document { named, mentions, definition } = decode::document(&tree, &mut problems);
        for mention in mentions {
            let spot = problems.spot(mention.at);
            read.named.push(Named { kind: mention.kind, reference: mention.reference, role: Role::Used, spot });
        }
        let Some((kind, name, at)) = named else { continue };
        let reference = Reference { name: name.clone(), version: None };
        read.named.push(Named { kind, reference, role: Role::Defined, spot: problems.spot(at) });
        if let Some(definition) = definition.filter(|_| problems.errors() == before) {
            read.definitions.push(Parsed { kind, name: name.as_ref().to_owned(), document: tree.value(), definition });
        }
    }
    read.problems = problems.into_sorted();
    read
}

/// Makes a definition from a document that was stored.
pub fn compile(document: &Value) -> Compiled {
    let mut problems = Problems::new("", "");
    let Some(tree) = Tree::of(document).map(Arc::new) else {
        let max = limits::DEFINITION_DEPTH_MAX;
        let message = format!("values are nested more than {max} deep (`definition_depth_max`)");
        problems.error(Place::default(), message, None);
        return Err(problems.into_sorted());
    };
    match decode::document(&tree, &mut problems).definition {
        Some(definition) if !problems.has_errors() => Ok(definition),
        Some(_) | None => Err(problems.into_sorted()),
    }
}
