//! Values with expressions inside.
//!
//! Owns what `${…}` in a text means: a text that is exactly one `${…}` becomes what the expression gives, in any other text
//! it is replaced by that as text. As text a string is itself, `null` is nothing at all, everything else is its JSON.
//! `$${` stands for `${`. Names of fields are never templates.
//!
//! Never sees a secret: `${secret.NAME}` leaves a place for it beside the value. Start reading at [`Template::parse`].

use std::sync::Arc;

use super::{EvaluationError, Expression, Reads, Scope, Value, push_pointer_step, tokens};

/// A value in which `${…}` stands for what an expression gives.
#[derive(Debug, Clone)]
pub enum Template {
    /// No expression in it.
    Literal(Value),
    /// Exactly one `${…}`: keeps its type.
    Expression(Expression),
    /// Text with expressions, and maybe secrets, in it.
    Text(Vec<Part>),
    /// A list.
    List(Vec<Template>),
    /// An object.
    Object(Vec<(Arc<str>, Template)>),
}

/// A part of a text.
#[derive(Debug, Clone)]
pub enum Part {
    /// As it is.
    Literal(Arc<str>),
    /// What an expression gives, as text.
    Expression(Expression),
    /// `${secret.NAME}`, which the executor fills in.
    Secret(Arc<str>),
}

/// A text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// Where in the text, in bytes.
    pub offset: usize,
}

/// What a template gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rendered {
    /// The value, with `null` wherever a secret belongs.
    pub value: Value,
    /// Where secrets belong.
    pub secrets: Vec<SecretPlace>,
}

/// A text with secrets in it, kept beside the value: what data says can never be taken for a secret's place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SecretPlace {
    /// Where in the value, as a JSON pointer.
    pub pointer: String,
    /// What the text is made of.
    pub parts: Vec<SecretPart>,
}

/// A part of a text with secrets in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretPart {
    /// As it is.
    Text(String),
    /// The secret of this name.
    Secret(String),
}

impl Template {
    /// Reads a value, looking for `${…}` in every text of it. The error says in which text, by JSON pointer, and where in it.
    pub fn parse(value: &Value) -> Result<Self, (String, TemplateError)> {
        parse_at(value, &mut String::new())
    }

    /// Reads one text.
    pub fn parse_text(text: &str) -> Result<Self, TemplateError> {
        let mut parts = parts(text)?;
        Ok(match parts.pop() {
            None => Self::Literal(text.into()),
            Some(Part::Literal(only)) if parts.is_empty() => Self::Literal(Value::String(only)),
            Some(Part::Expression(only)) if parts.is_empty() => Self::Expression(only),
            Some(last) => {
                parts.push(last);
                Self::Text(parts)
            }
        })
    }

    /// Everything that its expressions read.
    #[must_use]
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        for expression in self.expressions() {
            reads.merge(expression.reads());
        }
        reads
    }

    /// All expressions in it, in the order in which they are evaluated.
    #[must_use]
    pub fn expressions(&self) -> Vec<&Expression> {
        let mut found = Vec::new();
        self.visit(&mut |leaf| match leaf {
            Leaf::Expression(expression) => found.push(expression),
            Leaf::Secret(_) => {}
        });
        found
    }

    /// The names of the secrets in it, each as often as it occurs.
    #[must_use]
    pub fn secrets(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.visit(&mut |leaf| match leaf {
            Leaf::Secret(name) => found.push(name),
            Leaf::Expression(_) => {}
        });
        found
    }

    /// Whether there is a secret in it.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        !self.secrets().is_empty()
    }

    /// Its value in `scope`.
    pub fn render(&self, scope: &Scope<'_>) -> Result<Rendered, EvaluationError> {
        let mut secrets = Vec::new();
        let value = self.render_at(scope, &mut String::new(), &mut secrets)?;
        Ok(Rendered { value, secrets })
    }

    fn visit<'a>(&'a self, visit: &mut impl FnMut(Leaf<'a>)) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => visit(Leaf::Expression(expression)),
            Self::Text(parts) => {
                for part in parts {
                    match part {
                        Part::Literal(_) => {}
                        Part::Expression(expression) => visit(Leaf::Expression(expression)),
                        Part::Secret(name) => visit(Leaf::Secret(name)),
                    }
                }
            }
            Self::List(items) => items.iter().for_each(|item| item.visit(visit)),
            Self::Object(fields) => fields.iter().for_each(|(_, field)| field.visit(visit)),
        }
    }

    fn render_at(
        &self,
        scope: &Scope<'_>,
        pointer: &mut String,
        secrets: &mut Vec<SecretPlace>,
    ) -> Result<Value, EvaluationError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Expression(expression) => expression.evaluate(scope),
            Self::Text(parts) if parts.iter().any(|part| matches!(part, Part::Secret(_))) => {
                let parts = secret_parts(parts, scope)?;
                secrets.push(SecretPlace { pointer: pointer.clone(), parts });
                Ok(Value::Null)
            }
            Self::Text(parts) => {
                let mut text = String::new();
                for part in secret_parts(parts, scope)? {
                    match part {
                        SecretPart::Text(part) => text.push_str(&part),
                        SecretPart::Secret(_) => unreachable!("texts with secrets are rendered above"),
                    }
                }
                Ok(text.into())
            }
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(inside(pointer, &index.to_string(), |pointer| item.render_at(scope, pointer, secrets))?);
                }
                Ok(list.into())
            }
            Self::Object(fields) => {
                let mut object = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    let value = inside(pointer, name, |pointer| field.render_at(scope, pointer, secrets))?;
                    object.push((Arc::clone(name), value));
                }
                Ok(Value::object(object))
            }
        }
    }
}

impl SecretPlace {
    /// The text, with the secrets that `secret` knows. The error is the name of the first that it does not know.
    pub fn fill(&self, mut secret: impl FnMut(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                SecretPart::Text(part) => text.push_str(part),
                SecretPart::Secret(name) => text.push_str(&secret(name).ok_or_else(|| name.clone())?),
            }
        }
        Ok(text)
    }
}

enum Leaf<'a> {
    Expression(&'a Expression),
    Secret(&'a str),
}

/// Does something one step further down.
fn inside<T>(pointer: &mut String, step: &str, work: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    push_pointer_step(pointer, step);
    let result = work(pointer);
    pointer.truncate(length);
    result
}

/// What the parts of a text give; adjacent texts become one.
fn secret_parts(parts: &[Part], scope: &Scope<'_>) -> Result<Vec<SecretPart>, EvaluationError> {
    let mut rendered = Vec::new();
    for part in parts {
        let text = match part {
            Part::Secret(name) => {
                rendered.push(SecretPart::Secret(name.to_string()));
                continue;
            }
            Part::Literal(text) => text.to_string(),
            Part::Expression(expression) => as_text(&expression.evaluate(scope)?),
        };
        match rendered.last_mut() {
            Some(SecretPart::Text(before)) => before.push_str(&text),
            Some(SecretPart::Secret(_)) | None => rendered.push(SecretPart::Text(text)),
        }
    }
    Ok(rendered)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.to_string(),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::List(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn parse_at(value: &Value, pointer: &mut String) -> Result<Template, (String, TemplateError)> {
    match value {
        Value::String(text) => Template::parse_text(text).map_err(|error| (pointer.clone(), error)),
        Value::List(items) => {
            let mut templates = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                templates.push(inside(pointer, &index.to_string(), |pointer| parse_at(item, pointer))?);
            }
            let literals = templates.iter().map(literal).collect::<Option<Vec<_>>>();
            Ok(literals.map_or(Template::List(templates), |items| Template::Literal(items.into())))
        }
        Value::Object(fields) => {
            let mut templates = Vec::with_capacity(fields.len());
            for (name, field) in fields.iter() {
                let template = inside(pointer, name, |pointer| parse_at(field, pointer))?;
                templates.push((Arc::clone(name), template));
            }
            let literals = templates.iter().map(|(name, field)| Some((Arc::clone(name), literal(field)?)));
            let literals = literals.collect::<Option<Vec<_>>>();
            Ok(literals.map_or(Template::Object(templates), |fields| Template::Literal(Value::object(fields))))
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
            Ok(Template::Literal(value.clone()))
        }
    }
}

fn literal(template: &Template) -> Option<Value> {
    match template {
        Template::Literal(value) => Some(value.clone()),
        Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Object(_) => None,
    }
}

/// Cuts a text at its `${…}`.
fn parts(text: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let dollar = at + found;
        // The escape's own `$` stands directly before, and belongs to no earlier escape.
        if dollar > at && text.as_bytes()[dollar - 1] == b'$' {
            literal.push_str(&text[at..dollar - 1]);
            literal.push_str("${");
            at = dollar + 2;
            continue;
        }
        literal.push_str(&text[at..dollar]);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.as_str().into()));
            literal.clear();
        }
        let Some(end) = tokens::closing_brace(text, dollar + 2) else {
            let message = "`${` is not closed by a `}`; a text that contains `${` is written `$${`".to_owned();
            return Err(TemplateError { message, offset: dollar });
        };
        parts.push(placeholder(text, dollar + 2, end)?);
        at = end + 1;
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into()));
    }
    Ok(parts)
}

fn placeholder(text: &str, start: usize, end: usize) -> Result<Part, TemplateError> {
    let inner = &text[start..end];
    let secret = inner.trim().strip_prefix("secret.").filter(|name| tokens::is_name(name));
    if let Some(name) = secret {
        return Ok(Part::Secret(name.into()));
    }
    let expression = Expression::parse(inner)
        .map_err(|error| TemplateError { message: error.message, offset: start + error.offset })?;
    if expression.reads().of("secret").is_some() {
        let message = "a secret cannot be part of an expression, it is only known when the task runs; \
                       write `${secret.NAME}` by itself, with any text around it, as in `Bearer ${secret.TOKEN}`";
        return Err(TemplateError { message: message.to_owned(), offset: start });
    }
    Ok(Part::Expression(expression))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;
    use crate::json::Json;

    fn value(text: &str) -> Value {
        Value::from_json(&Json::from_stored(text)).unwrap()
    }

    fn scope() -> Scope<'static> {
        let mut scope = Scope::default();
        scope.set("input", value(r#"{"name":"Ada","n":5,"f":1.0,"list":[1,"a"],"forged":"${secret.KEY}","yes":true}"#));
        scope
    }

    /// Parses and renders, and writes what came out, secrets after the value.
    #[track_caller]
    fn check(template: &str, expected: &str) {
        let found = match Template::parse(&value(template)) {
            Err((pointer, error)) => format!("{pointer} {}: {error}", error.offset),
            Ok(template) => match template.render(&scope()) {
                Err(error) => error.to_string(),
                Ok(rendered) if rendered.secrets.is_empty() => rendered.value.to_string(),
                Ok(rendered) => format!("{} {}", rendered.value, Json::encode(&rendered.secrets).unwrap()),
            },
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn exactly_one_expression_keeps_its_type() {
        check(r#"["${input.n}", "${ input.list }", "${input.nothing}"]"#, r#"[5,[1,"a"],null]"#);
    }

    #[test]
    fn inside_a_text_values_become_text() {
        check(
            r#""${input.name} ${input.n} ${input.f} ${input.yes} ${input.list} ${input.nothing}!""#,
            r#""Ada 5 1.0 true [1,\"a\"] !""#,
        );
        check(r#"" ${input.n}""#, r#"" 5""#);
    }

    #[test]
    fn what_has_no_expression_is_left_alone() {
        let literal = r#"{"${input.n}":1,"a":[null,true,1.5,"$ { } $x"]}"#;
        check(literal, literal);
        assert!(matches!(Template::parse(&value(literal)), Ok(Template::Literal(_))));
    }

    #[test]
    fn two_dollars_escape() {
        check(r#"["$${input.n}", "$$${input.n}", "a$${b} ${input.n}"]"#, r#"["${input.n}","$${input.n}","a${b} 5"]"#);
    }

    #[test]
    fn braces_inside_an_expression_do_not_close_it() {
        check(r#""${ {'}': input.n} }""#, r#"{"}":5}"#);
        check(r#""${ '\\'}' + \"}\" }x""#, r#""'}}x""#);
    }

    #[test]
    fn what_is_no_template_is_refused_with_its_place() {
        let unclosed = "`${` is not closed by a `}`; a text that contains `${` is written `$${`";
        check(r#"{"a/b":["ok","é ${input.n"]}"#, &format!("/a~1b/1 3: {unclosed}"));
        check(r#""${input.n +}""#, " 11: the expression ends too early");
        check(r#""${ }""#, " 2: an expression is expected, found nothing");
    }

    #[test]
    fn a_secret_leaves_a_place_and_data_cannot_forge_one() {
        check(r#"{"a":"${secret.KEY}"}"#, r#"{"a":null} [{"pointer":"/a","parts":[{"secret":"KEY"}]}]"#);
        check(
            r#"[["Bearer ${ secret.KEY } for ${input.name}${input.n}"]]"#,
            r#"[[null]] [{"pointer":"/0/0","parts":[{"text":"Bearer "},{"secret":"KEY"},{"text":" for Ada5"}]}]"#,
        );
        check(r#"["${input.forged}","x${input.forged}"]"#, r#"["${secret.KEY}","x${secret.KEY}"]"#);
    }

    #[test]
    fn a_secret_inside_an_expression_is_refused() {
        let found = Template::parse_text("a ${secret.A + \"x\"}").unwrap_err();
        assert_eq!(found.offset, 4);
        assert!(found.message.contains("write `${secret.NAME}` by itself"), "{found}");
        for other in ["${secret}", "${secret['A']}", "${secret.A.b}", "${size(secret)}", "${has(secret.A)}"] {
            assert!(Template::parse_text(other).is_err(), "{other}");
        }
    }

    #[test]
    fn secrets_are_filled_in_at_their_places() {
        let template = Template::parse(&value(r#"{"a~":["x ${secret.KEY}"]}"#)).unwrap();
        assert!(template.has_secrets());
        assert_eq!(template.secrets(), ["KEY"]);
        let Rendered { mut value, secrets } = template.render(&scope()).unwrap();
        let text = secrets[0].fill(|name| Some(name.to_lowercase())).unwrap();
        *value.pointer_mut(&secrets[0].pointer).unwrap() = text.into();
        assert_eq!(value.to_string(), r#"{"a~":["x key"]}"#);
        assert_eq!(secrets[0].fill(|_| None), Err("KEY".to_owned()));
    }

    #[test]
    fn it_reads_what_its_expressions_read() {
        let template = Template::parse(&value(r#"{"a":"${state.x}-${state.y.z}","b":["${size(input)}"]}"#)).unwrap();
        let texts: Vec<&str> = template.expressions().into_iter().map(Expression::text).collect();
        assert_eq!(texts, ["state.x", "state.y.z", "size(input)"]);
        let mut expected = Reads::default();
        expected.add_field("state", "x");
        expected.add_field("state", "y");
        expected.add_all("input");
        assert_eq!(template.reads(), expected);
    }

    /// The value as a template that gives it back.
    fn escaped(value: &Value) -> Value {
        let text = value.to_json().unwrap().as_str().replace("${", "$${");
        Value::from_json(&Json::from_stored(&text)).unwrap()
    }

    proptest! {
        #[test]
        fn an_escaped_value_renders_as_itself(value in samples::values()) {
            let rendered = Template::parse(&escaped(&value)).unwrap().render(&scope()).unwrap();
            prop_assert!(rendered.secrets.is_empty());
            // Names of fields are not templates, so an escape in one stays.
            prop_assert_eq!(rendered.value.to_string().replace("$${", "${"), value.to_string().replace("$${", "${"));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a-z$ {}'\"+.()\\[\\]\\\\ä]{0,24}") {
            if let Ok(template) = Template::parse_text(&text) {
                let _ = template.render(&scope());
            }
        }
    }
}
