//! A plausible value for a JSON Schema.
//!
//! Owns which keywords are followed: `const`, `enum`, `default`, `examples`, `$ref` within the schema, `allOf` (joined), `anyOf` and `oneOf` (one of them), `type`,
//! and the bounds of each type. Others, such as `pattern` and `not`, are passed over: whoever needs them gives a `value`.

use serde_json::{Map, Number, Value, json};

use super::random::Random;
use crate::limits::{MOCK_DEPTH_MAX, MOCK_ITEMS_MAX};

/// Words of which texts are made.
const WORDS: [&str; 12] =
    ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade", "kelp", "lark"];

/// How many values are made for one schema, those inside of others counted. Lists in lists, and references that go round, make far more than anybody
/// wants: a hundred items in each of sixteen lists would take for ever.
const VALUES_MAX: usize = 10_000;

/// How much text counts as one value.
const TEXT_BYTES: usize = 64;

/// A value that fits the schema as far as its keywords are known here. Where it would be too large, lists and objects end early.
pub(super) fn value(schema: &Value, random: &mut Random) -> Value {
    Generator { root: schema, values_left: VALUES_MAX }.value(schema, random, 0).unwrap_or(Value::Null)
}

struct Generator<'a> {
    /// Where `$ref` looks.
    root: &'a Value,
    values_left: usize,
}

impl Generator<'_> {
    /// `None` when there are enough values.
    fn value(&mut self, schema: &Value, random: &mut Random, depth: usize) -> Option<Value> {
        self.values_left = self.values_left.checked_sub(1)?;
        let Value::Object(schema) = schema else { return Some(Value::Null) };
        if depth > MOCK_DEPTH_MAX {
            return Some(Value::Null);
        }
        if let Some(fixed) = fixed(schema, random) {
            return Some(self.counted(fixed.clone()));
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or(Some(Value::Null), |found| self.value(found, random, depth + 1));
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.value(&joined(schema, parts), random, depth + 1);
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(parts) = schema.get(keyword).and_then(Value::as_array) {
                return random.pick(parts).map_or(Some(Value::Null), |part| self.value(part, random, depth + 1));
            }
        }
        Some(match type_of(schema, random) {
            "object" => self.object(schema, random, depth),
            "array" => self.array(schema, random, depth),
            "string" => self.counted(Value::String(text(schema, random))),
            "integer" => integer(schema, random),
            "number" => number(schema, random),
            "boolean" => Value::Bool(random.up_to(1) == 1),
            _ => Value::Null,
        })
    }

    /// The same, with what is in it counted: the last one may be larger than what is left.
    fn counted(&mut self, value: Value) -> Value {
        self.values_left = self.values_left.saturating_sub(size(&value));
        value
    }

    fn object(&mut self, schema: &Map<String, Value>, random: &mut Random, depth: usize) -> Value {
        let mut object = Map::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Some(value) = self.value(property, random, depth + 1) else { break };
            object.insert(name.clone(), value);
        }
        // What is required without being described can be anything.
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if self.values_left == 0 {
                break;
            }
            if !object.contains_key(name) {
                self.values_left -= 1;
                object.insert(name.to_owned(), Value::String(word(random).to_owned()));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Map<String, Value>, random: &mut Random, depth: usize) -> Value {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let min = bound("minItems").unwrap_or_else(|| 1.min(bound("maxItems").unwrap_or(1)));
        let max = bound("maxItems").unwrap_or(min.saturating_add(2)).max(min);
        let count = min.saturating_add(random.up_to(max - min)).min(MOCK_ITEMS_MAX as u64);
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let anything = json!({ "type": "string" });
        let others = schema.get("items").filter(|items| items.is_object()).unwrap_or(&anything);
        let item = |index: u64| first.get(index as usize).unwrap_or(others);
        (0..count).map_while(|index| self.value(item(index), random, depth + 1)).collect()
    }
}

/// How many values there are in a value, long texts counted by their length.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() / TEXT_BYTES,
        Value::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        Value::Object(fields) => fields.values().map(|field| 1 + size(field)).sum(),
    }
}

/// A value that the schema itself names.
fn fixed<'a>(schema: &'a Map<String, Value>, random: &mut Random) -> Option<&'a Value> {
    if let Some(value) = schema.get("const") {
        return Some(value);
    }
    for keyword in ["enum", "examples"] {
        if let Some(values) = schema.get(keyword).and_then(Value::as_array)
            && let Some(value) = random.pick(values)
        {
            return Some(value);
        }
    }
    schema.get("default")
}

/// The schema with those of `allOf` laid over it: properties and required names are joined, of other keywords the last counts.
fn joined(schema: &Map<String, Value>, parts: &[Value]) -> Value {
    let mut all = schema.clone();
    all.remove("allOf");
    for (keyword, value) in parts.iter().filter_map(Value::as_object).flatten() {
        match (all.get_mut(keyword), value) {
            (Some(Value::Object(there)), Value::Object(more)) if keyword == "properties" => there.extend(more.clone()),
            (Some(Value::Array(there)), Value::Array(more)) if keyword == "required" => there.extend(more.clone()),
            _ => drop(all.insert(keyword.clone(), value.clone())),
        }
    }
    Value::Object(all)
}

fn type_of<'a>(schema: &'a Map<String, Value>, random: &mut Random) -> &'a str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => random.pick(names).and_then(Value::as_str).unwrap_or("null"),
        _ if schema.contains_key("properties") || schema.contains_key("required") => "object",
        _ if schema.contains_key("items") || schema.contains_key("prefixItems") => "array",
        _ if schema.contains_key("minimum") || schema.contains_key("maximum") => "number",
        _ => "string",
    }
}

fn text(schema: &Map<String, Value>, random: &mut Random) -> String {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => date(random),
        Some("time") => time(random),
        Some("date-time") => format!("{}T{}", date(random), time(random)),
        Some("email") => format!("{}.{}@example.com", word(random), word(random)),
        Some("uri" | "url") => format!("https://example.com/{}/{}", word(random), word(random)),
        Some("uuid") => uuid(random),
        Some("hostname") => format!("{}.example.com", word(random)),
        Some("ipv4") => format!("192.0.2.{}", random.up_to(255)),
        Some(_) | None => words(schema, random),
    }
}

fn words(schema: &Map<String, Value>, random: &mut Random) -> String {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let min = bound("minLength").unwrap_or(0).min(64 * 1024);
    let max = bound("maxLength").unwrap_or(usize::MAX).max(min);
    let mut text = format!("{} {}", word(random), word(random));
    while text.len() < min {
        text = text + " " + word(random);
    }
    // The words are ASCII: a byte is a character.
    if min > 0 && text.len() > min.max(12) {
        text.truncate(min);
    }
    text.truncate(max);
    text
}

fn integer(schema: &Map<String, Value>, random: &mut Random) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let min = bound("minimum").map(f64::ceil).or_else(|| bound("exclusiveMinimum").map(|min| min.floor() + 1.0));
    let max = bound("maximum").map(f64::floor).or_else(|| bound("exclusiveMaximum").map(|max| max.ceil() - 1.0));
    let (min, max) = range(min, max);
    // `as` saturates: a bound beyond the numbers becomes the last of them.
    let found = random.between(min as i64, max as i64);
    match schema.get("multipleOf").and_then(Value::as_i64).filter(|step| *step > 0) {
        Some(step) => {
            let down = found.saturating_sub(found.rem_euclid(step));
            Value::from(if (down as f64) < min { down.saturating_add(step) } else { down })
        }
        None => Value::from(found),
    }
}

fn number(schema: &Map<String, Value>, random: &mut Random) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (min, max) = range(
        bound("minimum").or_else(|| bound("exclusiveMinimum")),
        bound("maximum").or_else(|| bound("exclusiveMaximum")),
    );
    // Never the bounds themselves, which may be excluded. Cut to thousandths where that stays between them: it reads better.
    let exact = min + (max - min) * random.unit().mul_add(0.998, 0.001);
    let short = (exact * 1_000.0).round() / 1_000.0;
    let found = if short > min && short < max { short } else { exact };
    Number::from_f64(found).map_or(Value::Null, Value::Number)
}

/// Both ends; where one is missing, a hundred from the other.
fn range(min: Option<f64>, max: Option<f64>) -> (f64, f64) {
    match (min, max) {
        (Some(min), Some(max)) => (min, max),
        (Some(min), None) => (min, min + 100.0),
        (None, Some(max)) => (max - 100.0, max),
        (None, None) => (0.0, 100.0),
    }
}

fn word(random: &mut Random) -> &'static str {
    random.pick(&WORDS).copied().unwrap_or("amber")
}

fn date(random: &mut Random) -> String {
    format!("20{:02}-{:02}-{:02}", 20 + random.up_to(9), 1 + random.up_to(11), 1 + random.up_to(27))
}

fn time(random: &mut Random) -> String {
    format!("{:02}:{:02}:{:02}Z", random.up_to(23), random.up_to(59), random.up_to(59))
}

/// Of version 4, as far as its form tells.
fn uuid(random: &mut Random) -> String {
    let (high, low) = (random.next(), random.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        8 + (low >> 62),
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}
