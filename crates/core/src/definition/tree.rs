//! A document as a tree in which every key and value knows where it was written.
//!
//! Owns the form, and the ways to and from a plain value. Never reads text: see [`super::yaml`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expression::Value;
use crate::limits;

/// A value and its place.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) content: Content,
    pub(super) at: Place,
    pub(super) style: Style,
    /// Values in it, itself included, with aliases filled in.
    pub(super) values: usize,
    /// Bytes of text in it, with aliases filled in.
    pub(super) bytes: usize,
    /// How deep it goes; 1 for a value without others inside.
    pub(super) height: usize,
}

/// What a value is. Subtrees are shared, because an alias means its anchor's value once more.
#[derive(Debug)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Arc<str>),
    List(Vec<Arc<Tree>>),
    Object(Vec<Field>),
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: Arc<str>,
    pub(super) key_at: Place,
    pub(super) value: Arc<Tree>,
}

/// Where something is written. Line 0 means that it was not read from text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// From 1.
    pub(super) line: usize,
    /// From 1, in characters.
    pub(super) column: usize,
    /// The first byte.
    pub(super) start: usize,
    /// The byte after the last.
    pub(super) end: usize,
}

/// How a text was written, by which places inside it are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
    /// Folded text, and everything that is no text.
    Other,
}

impl Tree {
    pub(super) fn new(content: Content, at: Place, style: Style) -> Self {
        let (values, bytes, height) = match &content {
            Content::Null | Content::Bool(_) | Content::Int(_) | Content::UInt(_) | Content::Float(_) => (0, 8, 0),
            Content::Text(text) => (0, text.len(), 0),
            Content::List(items) => measure(items.iter().map(|item| (0, &**item))),
            Content::Object(fields) => measure(fields.iter().map(|field| (field.key.len(), &*field.value))),
        };
        Self { content, at, style, values: values + 1, bytes, height: height + 1 }
    }

    /// The tree of a value that has no place. `None` when it is too deep to be a definition.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Self::of_bounded(value, limits::DEFINITION_DEPTH_MAX)
    }

    fn of_bounded(value: &Value, depth_left: usize) -> Option<Self> {
        let below = depth_left.checked_sub(1)?;
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Int(value) => Content::Int(*value),
            Value::UInt(value) => Content::UInt(*value),
            Value::Float(value) => Content::Float(*value),
            Value::String(text) => Content::Text(text.clone()),
            Value::List(items) => Content::List(
                items.iter().map(|item| Self::of_bounded(item, below).map(Arc::new)).collect::<Option<_>>()?,
            ),
            Value::Object(fields) => {
                let field = |(key, value): (&Arc<str>, &Value)| {
                    let value = Arc::new(Self::of_bounded(value, below)?);
                    Some(Field { key: key.clone(), key_at: Place::default(), value })
                };
                Content::Object(fields.iter().map(field).collect::<Option<_>>()?)
            }
        };
        Some(Self::new(content, Place::default(), Style::Other))
    }

    /// The value without places.
    pub(super) fn value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Int(value) => Value::Int(*value),
            Content::UInt(value) => Value::UInt(*value),
            Content::Float(value) => Value::Float(*value),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::List(Arc::new(items.iter().map(|item| item.value()).collect())),
            Content::Object(fields) => {
                let fields: BTreeMap<Arc<str>, Value> =
                    fields.iter().map(|field| (field.key.clone(), field.value.value())).collect();
                Value::Object(Arc::new(fields))
            }
        }
    }

    /// What it is, for people.
    pub(super) fn described(&self) -> String {
        match &self.content {
            Content::Null => "nothing".to_owned(),
            Content::Bool(value) => format!("`{value}`"),
            Content::Int(value) => format!("the number `{value}`"),
            Content::UInt(value) => format!("the number `{value}`"),
            Content::Float(value) => format!("the number `{value}`"),
            Content::Text(text) if text.chars().count() <= 40 && !text.contains('\n') => format!("the text `{text}`"),
            Content::Text(_) => "a text".to_owned(),
            Content::List(_) => "a list".to_owned(),
            Content::Object(_) => "an object".to_owned(),
        }
    }

    /// The place of what a JSON pointer names, or of the last part of its way that exists.
    pub(super) fn place_of(&self, pointer: &str) -> Place {
        let mut here = self;
        let mut at = self.at;
        for part in pointer.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            let found = match &here.content {
                Content::Object(fields) => fields.iter().find(|field| *field.key == *name).map(|field| &field.value),
                Content::List(items) => name.parse().ok().and_then(|index: usize| items.get(index)),
                Content::Null
                | Content::Bool(_)
                | Content::Int(_)
                | Content::UInt(_)
                | Content::Float(_)
                | Content::Text(_) => None,
            };
            let Some(found) = found else { break };
            (here, at) = (found, found.at);
        }
        at
    }
}

fn measure<'t>(parts: impl Iterator<Item = (usize, &'t Tree)>) -> (usize, usize, usize) {
    parts.fold((0, 0, 0), |(values, bytes, height), (key_bytes, part)| {
        // Saturating, because an alias adds the whole of its anchor: what exceeds the bound is refused right after.
        (values.saturating_add(part.values), bytes.saturating_add(key_bytes + part.bytes), height.max(part.height))
    })
}
