//! JSON Schema: what a value must look like.
//!
//! Owns the checking of values and of schemas (draft 2020-12, unless a schema names another in `$schema`). Never fetches one
//! from anywhere: a `$ref` leads to a place in the same schema. Start reading at [`Schema::parse`].

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value as Document, json};

use crate::expression::{Value, push_pointer_step};
use crate::failure::bounded;
use crate::limits;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    whole: Validator,
    /// Checks an object of one property, without asking for the others.
    property: Validator,
}

/// Something that is not as the schema says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON pointer; empty for the value itself.
    pub pointer: String,
    /// What was expected and what was found.
    pub message: String,
}

impl Schema {
    /// Compiles a schema. The errors say where in the schema they are.
    pub fn parse(schema: &Value) -> Result<Self, Vec<Violation>> {
        let document = document(schema)?;
        check_references(&document)?;
        let meta = jsonschema::meta::validator_for(&document).map_err(|error| vec![violation(&error)])?;
        violations(meta.iter_errors(&document))
            .map_err(|found| found.into_iter().map(about_type).collect::<Vec<_>>())?;
        let whole = compile(&document)?;
        let property = compile(&for_one_property(&document))?;
        Ok(Self { whole, property })
    }

    /// Everything that is wrong with `value`, up to [`limits::VIOLATIONS_MAX`].
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let document = document(value)?;
        // Most values are fine, and this is the cheaper question.
        match self.whole.is_valid(&document) {
            true => Ok(()),
            false => violations(self.whole.iter_errors(&document)),
        }
    }

    /// What is wrong with `value` as the property `name` of an object of this schema. Costs what the value costs, whatever else the object holds.
    pub fn check_property(&self, name: &str, value: &Value) -> Result<(), Vec<Violation>> {
        let document = json!({ name: document(value)? });
        let mut found = match self.property.is_valid(&document) {
            true => return Ok(()),
            false => violations(self.property.iter_errors(&document)),
        };
        if let Err(violations) = &mut found {
            let mut prefix = String::new();
            push_pointer_step(&mut prefix, name);
            for violation in violations {
                let inside = violation.pointer.strip_prefix(&prefix).unwrap_or_default().to_owned();
                violation.pointer = inside;
            }
        }
        found
    }
}

/// The form that the library wants. A value that is too large or too deep for it does not fit any schema.
fn document(value: &Value) -> Result<Document, Vec<Violation>> {
    Document::try_from(value).map_err(|error| vec![Violation { pointer: String::new(), message: error.to_string() }])
}

fn compile(document: &Document) -> Result<Validator, Vec<Violation>> {
    let options = jsonschema::options().offline();
    options.build(document).map_err(|error| vec![violation(&error)])
}

fn violations<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    for error in errors {
        let violation = violation(&error);
        // The parts of a meta-schema repeat each other.
        if !found.contains(&violation) {
            found.push(violation);
        }
        if found.len() == limits::VIOLATIONS_MAX {
            break;
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    let pointer = error.instance_path().as_str().to_owned();
    // A large value is not repeated in the message: the pointer leads to it.
    let instance = error.instance().to_string();
    let message = match instance.len() > limits::VALUE_SHOWN_BYTES_MAX {
        true => error.masked_with("this value").to_string(),
        false => error.to_string(),
    };
    let message = match matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        true => "nothing is allowed here".to_owned(),
        false => lower_first(&message),
    };
    Violation { pointer, message: bounded(&message) }
}

/// The most common mistake in a schema, of which the meta-schema says little.
fn about_type(violation: Violation) -> Violation {
    let is_plain = violation.pointer.ends_with("/type") && violation.message.contains("anyOf");
    let Some((found, _)) = violation.message.split_once(" is not valid under any").filter(|_| is_plain) else {
        return violation;
    };
    let known = "array, boolean, integer, null, number, object, string";
    Violation { message: format!("{found} is not a type, expected one or a list of {known}"), ..violation }
}

fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Finds what the library would want to fetch, all at once and with the place.
fn check_references(document: &Document) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    visit_references(document, &mut String::new(), &mut |pointer, reference| {
        if !reference.starts_with('#') && found.len() < limits::VIOLATIONS_MAX {
            let message = format!(
                "`{reference}` leads outside of this schema, and nothing is fetched; put it under `$defs` and write `#/$defs/…`"
            );
            found.push(Violation { pointer: pointer.to_owned(), message: bounded(&message) });
        }
    });
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn visit_references(document: &Document, pointer: &mut String, visit: &mut impl FnMut(&str, &str)) {
    let length = pointer.len();
    if let Some(fields) = document.as_object() {
        for (name, field) in fields {
            // What stands there are values, not schemas.
            if ["const", "enum", "default", "examples"].contains(&name.as_str()) {
                continue;
            }
            push_pointer_step(pointer, name);
            match field.as_str() {
                Some(reference) if name == "$ref" || name == "$dynamicRef" => visit(pointer, reference),
                Some(_) | None => visit_references(field, pointer, visit),
            }
            pointer.truncate(length);
        }
    }
    for (index, item) in document.as_array().into_iter().flatten().enumerate() {
        push_pointer_step(pointer, &index.to_string());
        visit_references(item, pointer, visit);
        pointer.truncate(length);
    }
}

/// The address under which [`for_one_property`] keeps the whole schema, if it has none of its own.
const ROOT: &str = "urn:steadfast:schema";

/// A schema of objects with one property: what `document` says about each property by itself, and nothing about which there are.
/// The whole of it is inside under its own address, so that its references lead where they did.
fn for_one_property(document: &Document) -> Document {
    let Some(fields) = document.as_object() else { return document.clone() };
    let mut whole = fields.clone();
    let address = match fields.get("$id").and_then(Document::as_str) {
        Some(address) => address.trim_end_matches('#').to_owned(),
        None => {
            let id = if Draft::default().detect(document) == Draft::Draft4 { "id" } else { "$id" };
            whole.insert(id.to_owned(), ROOT.into());
            ROOT.to_owned()
        }
    };
    let mut about = properties_of(document, document, &address, &mut String::new(), 0);
    if let Some(draft) = fields.get("$schema") {
        about.insert("$schema".to_owned(), draft.clone());
    }
    // Both words are understood by all drafts as a place where schemas are kept.
    about.insert("definitions".to_owned(), json!({ "whole": whole.clone() }));
    about.insert("$defs".to_owned(), json!({ "whole": whole }));
    about.into()
}

/// How many references and `allOf` are followed to find properties. Further ones are only checked with the whole object.
const PROPERTY_SOURCES_DEPTH_MAX: usize = 8;

fn properties_of(
    root: &Document,
    document: &Document,
    address: &str,
    pointer: &mut String,
    depth: usize,
) -> Map<String, Document> {
    let mut about = Map::new();
    let Some(fields) = document.as_object() else {
        if document == &Document::Bool(false) {
            about.insert("not".to_owned(), json!({}));
        }
        return about;
    };
    for keyword in ["properties", "patternProperties"] {
        let named = fields.get(keyword).and_then(Document::as_object).into_iter().flatten();
        let references: Map<String, Document> =
            named.map(|(name, _)| (name.clone(), reference(address, pointer, &[keyword, name]))).collect();
        if !references.is_empty() {
            about.insert(keyword.to_owned(), references.into());
        }
    }
    for keyword in ["additionalProperties", "propertyNames"] {
        match fields.get(keyword) {
            Some(Document::Bool(plain)) => drop(about.insert(keyword.to_owned(), (*plain).into())),
            Some(_) => drop(about.insert(keyword.to_owned(), reference(address, pointer, &[keyword]))),
            None => {}
        }
    }
    if depth < PROPERTY_SOURCES_DEPTH_MAX {
        let sources = sources_of(root, fields, address, pointer, depth);
        if !sources.is_empty() {
            about.insert("allOf".to_owned(), sources.into());
        }
    }
    about
}

/// The other schemas an object must fit as well: those in `allOf` and the one in `$ref`.
fn sources_of(
    root: &Document,
    fields: &Map<String, Document>,
    address: &str,
    pointer: &mut String,
    depth: usize,
) -> Vec<Document> {
    let mut sources = Vec::new();
    let all = fields.get("allOf").and_then(Document::as_array).into_iter().flatten();
    for (index, inner) in all.enumerate() {
        let length = pointer.len();
        push_pointer_step(pointer, "allOf");
        push_pointer_step(pointer, &index.to_string());
        sources.push(properties_of(root, inner, address, pointer, depth + 1).into());
        pointer.truncate(length);
    }
    let target = fields.get("$ref").and_then(Document::as_str).and_then(|reference| reference.strip_prefix('#'));
    if let Some(target) = target
        && let Some(inner) = root.pointer(target)
    {
        sources.push(properties_of(root, inner, address, &mut target.to_owned(), depth + 1).into());
    }
    sources
}

fn reference(address: &str, pointer: &str, steps: &[&str]) -> Document {
    let mut place = pointer.to_owned();
    for step in steps {
        push_pointer_step(&mut place, step);
    }
    let mut uri = format!("{address}#");
    for byte in place.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    json!({ "$ref": uri })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn value(text: &str) -> Value {
        Value::from_json(&Json::from_stored(text)).unwrap()
    }

    fn written(found: Result<(), Vec<Violation>>) -> String {
        let found = found.err().unwrap_or_default();
        found
            .iter()
            .map(|violation| format!("{}: {}", violation.pointer, violation.message))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[track_caller]
    fn check(schema: &str, instance: &str, expected: &str) {
        let found = Schema::parse(&value(schema)).and_then(|schema| schema.check(&value(instance)));
        assert_eq!(written(found), expected, "{schema}");
    }

    #[track_caller]
    fn check_property(schema: &str, name: &str, instance: &str, expected: &str) {
        let found = Schema::parse(&value(schema)).and_then(|schema| schema.check_property(name, &value(instance)));
        assert_eq!(written(found), expected, "{schema}");
    }

    #[test]
    fn all_violations_are_told_at_once() {
        check(
            r#"{"type":"object","required":["a"],"properties":{"b":{"type":"integer"},"c/d":{"maxLength":1}}}"#,
            r#"{"b":"x","c/d":"long"}"#,
            ": \"a\" is a required property\n/b: \"x\" is not of type \"integer\"\n/c~1d: \"long\" is longer than 1 character",
        );
        let many = format!("[{}]", vec!["1"; 100].join(","));
        let schema = Schema::parse(&value(r#"{"items":{"type":"string"}}"#)).unwrap();
        assert_eq!(schema.check(&value(&many)).unwrap_err().len(), limits::VIOLATIONS_MAX);
    }

    #[test]
    fn a_large_value_is_not_repeated() {
        let long = format!("\"{}\"", "a".repeat(100_000));
        check(r#"{"type":"integer"}"#, &long, ": this value is not of type \"integer\"");
    }

    #[test]
    fn a_value_that_is_small_only_because_it_is_shared_fits_no_schema() {
        let shared = (0..30).fold(Value::from("text"), |inner, _| Value::list(vec![inner; 10]));
        let refusal = ": the value is larger than 8 MiB (`VALUE_BYTES_MAX`)";
        let schema = Schema::parse(&value("true")).unwrap();
        assert_eq!(written(schema.check(&shared)), refusal);
        assert_eq!(written(schema.check_property("a", &shared)), refusal);
        assert_eq!(written(Schema::parse(&shared).map(drop)), refusal);
    }

    #[test]
    fn everything_and_nothing_are_schemas() {
        check("true", "1", "");
        check("{}", "1", "");
        check("false", "1", ": nothing is allowed here");
        check_property("true", "a", "1", "");
        check_property("{}", "a", "1", "");
        assert!(Schema::parse(&value("false")).unwrap().check_property("a", &Value::Null).is_err());
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        check(
            r#"{"properties":{"a":{"type":"strin"}}}"#,
            "1",
            "/properties/a/type: \"strin\" is not a type, expected one or a list of array, boolean, integer, null, number, object, string",
        );
        check("5", "1", ": 5 is not of types \"boolean\", \"object\"");
        check(r#"{"required":"a"}"#, "1", "/required: \"a\" is not of type \"array\"");
    }

    #[test]
    fn nothing_is_fetched() {
        let outside =
            "leads outside of this schema, and nothing is fetched; put it under `$defs` and write `#/$defs/…`";
        check(
            r#"{"properties":{"a":{"$ref":"https://example.com/a.json"},"b":{"$ref":"file:///etc/b"}}}"#,
            "1",
            &format!(
                "/properties/a/$ref: `https://example.com/a.json` {outside}\n/properties/b/$ref: `file:///etc/b` {outside}"
            ),
        );
        check(r##"{"const":{"$ref":"x"}}"##, r#"{"$ref":"x"}"#, "");
        assert!(Schema::parse(&value(r##"{"$ref":"#/$defs/none"}"##)).is_err());
    }

    #[test]
    fn a_schema_that_is_itself_again_ends() {
        check(r##"{"$ref":"#"}"##, "1", "");
        check(
            r##"{"properties":{"a":{"$ref":"#"}},"type":"object"}"##,
            r#"{"a":{"a":1}}"#,
            "/a/a: 1 is not of type \"object\"",
        );
        check_property(r##"{"allOf":[{"$ref":"#"}],"properties":{"a":{"type":"null"}}}"##, "a", "null", "");
    }

    const STATE: &str = r##"{"type":"object","required":["a","b"],"minProperties":2,"additionalProperties":false,
        "properties":{"a":{"type":"integer"},"b c/%":{"$ref":"#/$defs/list"},"tree":{"$ref":"#"}},
        "patternProperties":{"^x_":{"type":"string"}},
        "$defs":{"list":{"type":"array","items":{"type":"string"}}}}"##;

    #[test]
    fn a_property_is_checked_by_itself() {
        check_property(STATE, "a", "1", "");
        check_property(STATE, "a", "\"s\"", ": \"s\" is not of type \"integer\"");
        check_property(STATE, "b c/%", r#"["s",1]"#, "/1: 1 is not of type \"string\"");
        check_property(STATE, "x_1", "1", ": 1 is not of type \"string\"");
        check_property(STATE, "other", "1", ": additional properties are not allowed ('other' was unexpected)");
    }

    #[test]
    fn a_property_that_is_the_whole_again_is_checked_with_all_its_rules() {
        check_property(
            STATE,
            "tree",
            r#"{"a":1}"#,
            ": {\"a\":1} has less than 2 properties\n: \"b\" is a required property",
        );
    }

    #[test]
    fn properties_are_found_through_references_and_all_of() {
        let schema = r##"{"$ref":"#/$defs/s","$defs":{"s":{"allOf":[{"properties":{"a":{"type":"integer"}}}]}}}"##;
        check_property(schema, "a", "\"s\"", ": \"s\" is not of type \"integer\"");
        check_property(schema, "b", "\"s\"", "");
        let with_id = r##"{"$id":"https://example.com/s","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"null"}}}"##;
        check_property(with_id, "a", "1", ": 1 is not of type \"null\"");
        let old = r##"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/n"}},
            "definitions":{"n":{"type":"null"}}}"##;
        check_property(old, "a", "1", ": 1 is not of type \"null\"");
    }
}
