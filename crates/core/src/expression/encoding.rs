//! Values as JSON text and back.
//!
//! Owns the one way in which a [`Value`] is written and read, and the bounds on its size and nesting: what cannot be kept
//! or read back is not written, and finding out costs no more than the bound. Written directly, without another tree of
//! values between.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Value;
use crate::json::{Json, JsonError};
use crate::limits::{VALUE_BYTES_MAX, VALUE_DEPTH_MAX};

impl Value {
    /// Reads JSON text.
    pub fn from_json(json: &Json) -> Result<Self, JsonError> {
        json.decode()
    }

    /// Its JSON text. Refused for a number that JSON does not know, for a text that is too long to be kept, and for deeper
    /// nesting than can be read back.
    pub fn to_json(&self) -> Result<Json, JsonError> {
        Json::encode_bounded(self)
    }

    /// How long its JSON text would be inside of `depth` lists and objects; an error when that is more than `room`.
    pub(super) fn json_bytes(&self, depth: usize, room: usize) -> Result<usize, JsonError> {
        Json::count(&Nested { value: self, depth }, room)
    }
}

impl fmt::Display for Value {
    /// Writes it as JSON; what JSON does not know is described instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Ok(text) => f.write_str(text.as_str()),
            Err(error) => write!(f, "({error})"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { value: self, depth: 0 }.serialize(serializer)
    }
}

/// A value and how many lists and objects it is inside of.
struct Nested<'a> {
    value: &'a Value,
    depth: usize,
}

impl Nested<'_> {
    fn within<E: serde::ser::Error>(&self) -> Result<usize, E> {
        match self.depth < VALUE_DEPTH_MAX {
            true => Ok(self.depth + 1),
            false => Err(E::custom(too_deep())),
        }
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::UInt(number) => serializer.serialize_u64(*number),
            Value::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Float(number) => Err(serde::ser::Error::custom(format!("{number} is not a number that JSON knows"))),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => {
                let depth = self.within()?;
                serializer.collect_seq(items.iter().map(|value| Nested { value, depth }))
            }
            Value::Object(fields) => {
                let depth = self.within()?;
                serializer.collect_map(fields.iter().map(|(name, value)| (name, Nested { value, depth })))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader { depth: 0 }.deserialize(deserializer)
    }
}

/// Reads a value that is inside of `depth` lists and objects.
#[derive(Clone, Copy)]
struct Reader {
    depth: usize,
}

impl Reader {
    fn within<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth < VALUE_DEPTH_MAX {
            true => Ok(Self { depth: self.depth + 1 }),
            false => Err(E::custom(too_deep())),
        }
    }
}

fn too_deep() -> String {
    format!("value is nested deeper than {VALUE_DEPTH_MAX} levels (`value_depth_max`)")
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        match number.is_finite() {
            true => Ok(number.into()),
            false => Err(E::custom(format!("{number} is not a number that JSON knows"))),
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.within()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.within()?;
        let mut object = BTreeMap::<Arc<str>, Value>::new();
        while let Some(name) = fields.next_key()? {
            object.insert(name, fields.next_value_seed(inner)?);
        }
        Ok(Value::Object(Arc::new(object)))
    }
}

impl TryFrom<&Value> for serde_json::Value {
    type Error = JsonError;

    /// For libraries that want this form. Nothing in it is shared, so what has no JSON text is refused before it is made.
    fn try_from(value: &Value) -> Result<Self, JsonError> {
        value.json_bytes(0, VALUE_BYTES_MAX)?;
        Ok(unshared(value))
    }
}

fn unshared(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::String(text) => text.as_ref().into(),
        Value::List(items) => serde_json::Value::Array(items.iter().map(unshared).collect()),
        Value::Object(fields) => {
            serde_json::Value::Object(fields.iter().map(|(name, value)| (name.to_string(), unshared(value))).collect())
        }
    }
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => Self::Int(whole),
                (None, Some(whole), _) => Self::UInt(whole),
                (None, None, float) => float.map_or(Self::Null, Self::Float),
            },
            serde_json::Value::String(text) => Self::from(text.as_str()),
            serde_json::Value::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(fields) => {
                Self::object(fields.iter().map(|(name, value)| (name.as_str(), Self::from(value))))
            }
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let value = Value::from_json(&Json::from_stored(text));
        let written = value.and_then(|value| value.to_json());
        assert_eq!(written.map_or_else(|error| error.to_string(), |json| json.to_string()), expected);
    }

    #[test]
    fn a_number_keeps_its_kind() {
        check("[1,1.0,-5,18446744073709551615,1e3]", "[1,1.0,-5,18446744073709551615,1000.0]");
    }

    #[test]
    fn fields_are_written_in_the_order_of_their_names() {
        check(r#"{"b":1,"a":{"d":null,"c":"ä"}}"#, r#"{"a":{"c":"ä","d":null},"b":1}"#);
    }

    #[test]
    fn nesting_is_bounded_when_read_and_when_written() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        check(&nested(VALUE_DEPTH_MAX), &nested(VALUE_DEPTH_MAX));
        let refusal = "value is nested deeper than 100 levels (`value_depth_max`)";
        let read = Value::from_json(&Json::from_stored(&nested(VALUE_DEPTH_MAX + 1))).unwrap_err().to_string();
        assert!(read.starts_with(refusal), "{read}");
        assert!(Value::from_json(&Json::from_stored(&nested(100_000))).is_err());
        let deep = (0..=VALUE_DEPTH_MAX).fold(Value::Null, |inner, _| Value::list(vec![inner]));
        assert_eq!(deep.to_json().unwrap_err().to_string(), refusal);
    }

    #[test]
    fn a_value_that_is_small_only_because_it_is_shared_is_never_written_out() {
        // Ten items in each of thirty lists: more text than there is memory anywhere.
        let shared = (0..30).fold(Value::from("text"), |inner, _| Value::list(vec![inner; 10]));
        let refusal = "the value is larger than 8 MiB (`VALUE_BYTES_MAX`)";
        assert_eq!(shared.to_json().unwrap_err().to_string(), refusal);
        assert_eq!(shared.to_string(), format!("({refusal})"));
        assert_eq!(serde_json::Value::try_from(&shared).unwrap_err().to_string(), refusal);
    }

    #[test]
    fn the_largest_value_is_written() {
        let quoted = |bytes: usize| Value::from("a".repeat(bytes - 2));
        assert_eq!(quoted(VALUE_BYTES_MAX).to_json().unwrap().bytes(), VALUE_BYTES_MAX);
        assert!(quoted(VALUE_BYTES_MAX + 1).to_json().is_err());
    }

    #[test]
    fn a_number_that_json_does_not_know_is_refused() {
        assert_eq!(Value::Float(f64::NAN).to_json().unwrap_err().to_string(), "NaN is not a number that JSON knows");
        assert_eq!(Value::from(f64::INFINITY).to_string(), "(inf is not a number that JSON knows)");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_the_same(value in samples::values()) {
            let text = value.to_json().unwrap();
            prop_assert_eq!(Value::from_json(&text).unwrap(), value.clone());
            prop_assert_eq!(Value::from(serde_json::Value::try_from(&value).unwrap()), value.clone());
            prop_assert_eq!(value.json_bytes(0, VALUE_BYTES_MAX).unwrap(), text.bytes());
        }
    }
}
