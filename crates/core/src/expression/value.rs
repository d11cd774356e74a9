//! A JSON value that is cheap to clone and to look into.
//!
//! Owns the value, the ways into it and its small conversions; its JSON text is in `encoding`. Never evaluates anything.
//! Start reading at [`Value`].

use std::collections::BTreeMap;
use std::sync::Arc;

/// A JSON value. Lists and objects are shared, so a clone costs nothing; fields are in the order of their names, so that equal
/// values have equal texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number too large for an [`i64`].
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// A list.
    List(Arc<Vec<Value>>),
    /// An object.
    Object(Arc<BTreeMap<Arc<str>, Value>>),
}

/// Something on the way to a field is neither an object nor `null`, so it cannot hold the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` cannot be set: what should hold it is {found}, not an object")]
pub struct NotAnObject {
    /// The field, with the way to it.
    pub field: String,
    /// What is there instead of an object.
    pub found: &'static str,
}

impl Value {
    /// An object of these fields; of two with the same name the later one stays.
    pub fn object(fields: impl IntoIterator<Item = (impl Into<Arc<str>>, Value)>) -> Self {
        Self::Object(Arc::new(fields.into_iter().map(|(name, value)| (name.into(), value)).collect()))
    }

    /// A list of these items.
    #[must_use]
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(items))
    }

    /// The whole number, as an [`Value::Int`] when it fits; `None` when it fits neither form.
    pub(super) fn whole(number: i128) -> Option<Self> {
        i64::try_from(number).map(Self::Int).or_else(|_| u64::try_from(number).map(Self::UInt)).ok()
    }

    /// A field of an object. `None` when there is no such field, or this is no object.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.as_object()?.get(field)
    }

    /// An item of a list. `None` when there is no such item, or this is no list.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Value> {
        self.as_list()?.get(index)
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The number, if it is a whole one of this size.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// The number, if it is one; a large whole one loses its last digits.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the loss is what the caller asked for")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::UInt(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Null | Self::Bool(_) | Self::String(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The items, if it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The fields, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&BTreeMap<Arc<str>, Value>> {
        if let Self::Object(fields) = self { Some(fields) } else { None }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What it is, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Int(_) | Self::UInt(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// A copy in which the field at `path` is `value`. Objects on the way are made where nothing or `null` is.
    pub fn with(&self, path: &[Arc<str>], value: Value) -> Result<Value, NotAnObject> {
        let mut copy = self.clone();
        copy.set(path, value)?;
        Ok(copy)
    }

    /// Sets the field at `path`, as [`Value::with`] does, in place. What nobody else holds is not copied.
    pub fn set(&mut self, path: &[Arc<str>], value: Value) -> Result<(), NotAnObject> {
        let mut place = self;
        for (depth, field) in path.iter().enumerate() {
            if place.is_null() {
                *place = Self::Object(Arc::default());
            }
            let found = place.type_name();
            let Self::Object(fields) = place else {
                return Err(NotAnObject { field: path[..=depth].join("."), found });
            };
            place = Arc::make_mut(fields).entry(Arc::clone(field)).or_default();
        }
        *place = value;
        Ok(())
    }
}

/// Adds a step to a JSON pointer.
pub(crate) fn push_pointer_step(pointer: &mut String, step: &str) {
    pointer.push('/');
    for character in step.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::UInt(number), Self::Int)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::list(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn value(text: &str) -> Value {
        Value::from_json(&Json::from_stored(text)).unwrap()
    }

    #[track_caller]
    fn check_with(before: &str, path: &str, expected: &str) {
        let path: Vec<Arc<str>> = path.split('.').map(Arc::from).collect();
        let after = value(before).with(&path, Value::Int(1));
        assert_eq!(after.map_or_else(|error| error.to_string(), |value| value.to_string()), expected);
    }

    #[test]
    fn a_field_is_set_and_objects_are_made_on_the_way() {
        check_with(r#"{"a":{"x":2}}"#, "a.b", r#"{"a":{"b":1,"x":2}}"#);
        check_with("null", "a.b.c", r#"{"a":{"b":{"c":1}}}"#);
        check_with(r#"{"a":null}"#, "a.b", r#"{"a":{"b":1}}"#);
    }

    #[test]
    fn a_field_of_what_is_no_object_cannot_be_set() {
        check_with(r#"{"a":"x"}"#, "a.b.c", "`a.b` cannot be set: what should hold it is a string, not an object");
        check_with("[]", "a", "`a` cannot be set: what should hold it is a list, not an object");
    }

    #[test]
    fn a_change_is_not_seen_by_those_who_share_the_value() {
        let before = value(r#"{"a":{"b":{"c":2}}}"#);
        let mut after = before.clone();
        after.set(&["a", "b", "c"].map(Arc::from), Value::from("new")).unwrap();
        assert_eq!(before.to_string(), r#"{"a":{"b":{"c":2}}}"#);
        assert_eq!(after.to_string(), r#"{"a":{"b":{"c":"new"}}}"#);
    }

    #[test]
    fn a_step_of_a_pointer_is_escaped() {
        let mut pointer = "/a".to_owned();
        push_pointer_step(&mut pointer, "b/c~");
        assert_eq!(pointer, "/a/b~1c~0");
    }

    #[test]
    fn a_large_whole_number_is_kept_exactly() {
        assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
        assert_eq!(Value::from(7_u64), Value::Int(7));
    }
}
