//! Values with expressions inside.
//!
//! Owns what `${…}` in a text means: a text that is exactly one `${…}` becomes what the expression gives, in any other text
//! it is replaced by that as text. As text a string is itself, `null` is nothing at all, everything else is its JSON.
//! `$${` stands for `${`. Names of fields are never templates.
//!
//! Never sees a secret: `${secret.NAME}` leaves a place for it beside the value. Never gives more than a value may be,
//! whatever it is made of. Start reading at [`Template::parse_text`] and [`Template::render`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{EvaluationError, Expression, Reads, Scope, Value, push_pointer_step, tokens};
use crate::json::{JsonError, too_large};
use crate::limits;

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

    /// A list; a literal when nothing in it is an expression.
    #[must_use]
    pub fn list(items: Vec<Template>) -> Self {
        match items.iter().map(Self::literal).collect::<Option<Vec<Value>>>() {
            Some(values) => Self::Literal(Value::list(values)),
            None => Self::List(items),
        }
    }

    /// An object; a literal when nothing in it is an expression. Its fields are evaluated in the order of their names.
    #[must_use]
    pub fn object(mut fields: Vec<(Arc<str>, Template)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        let literals = fields.iter().map(|(name, field)| Some((Arc::clone(name), field.literal()?)));
        match literals.collect::<Option<Vec<_>>>() {
            Some(values) => Self::Literal(Value::object(values)),
            None => Self::Object(fields),
        }
    }

    fn literal(&self) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Expression(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Everything that its expressions read.
    #[must_use]
    pub fn reads(&self) -> Cow<'_, Reads> {
        match self {
            Self::Expression(only) => Cow::Borrowed(only.reads()),
            Self::Literal(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => {
                Reads::of_all(self.expressions().into_iter().map(Expression::reads))
            }
        }
    }

    /// All expressions in it, in the order in which they are evaluated.
    #[must_use]
    pub fn expressions(&self) -> Vec<&Expression> {
        let mut found = Vec::new();
        self.visit(&mut |expression| found.push(expression));
        found
    }

    fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Expression)) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => visit(expression),
            Self::Text(parts) => {
                for part in parts {
                    match part {
                        Part::Expression(expression) => visit(expression),
                        Part::Literal(_) | Part::Secret(_) => {}
                    }
                }
            }
            Self::List(items) => items.iter().for_each(|item| item.visit(visit)),
            Self::Object(fields) => fields.iter().for_each(|(_, field)| field.visit(visit)),
        }
    }

    /// The names of all secrets in it.
    #[must_use]
    pub fn secrets(&self) -> BTreeSet<&str> {
        match self {
            Self::Literal(_) | Self::Expression(_) => BTreeSet::new(),
            Self::Text(parts) => {
                let secrets = parts.iter().filter_map(|part| match part {
                    Part::Secret(name) => Some(&**name),
                    Part::Literal(_) | Part::Expression(_) => None,
                });
                secrets.collect()
            }
            Self::List(items) => items.iter().flat_map(Self::secrets).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, field)| field.secrets()).collect(),
        }
    }

    /// Its value in `scope`. Refused when that is larger than [`limits::VALUE_BYTES_MAX`] or nested deeper than
    /// [`limits::VALUE_DEPTH_MAX`].
    pub fn render(&self, scope: &Scope<'_>) -> Result<Rendered, EvaluationError> {
        let room = limits::VALUE_BYTES_MAX;
        let mut rendering = Rendering { scope, pointer: String::new(), depth: 0, secrets: Vec::new(), room };
        let value = rendering.value(self)?;
        Ok(Rendered { value, secrets: rendering.secrets })
    }
}

/// A template on its way to a value.
struct Rendering<'s> {
    scope: &'s Scope<'s>,
    /// Where in the value.
    pointer: String,
    /// Inside of how many lists and objects.
    depth: usize,
    secrets: Vec<SecretPlace>,
    /// How many bytes of JSON may still come. Each part is counted when it is made: together they may be more than there is
    /// memory.
    room: usize,
}

impl Rendering<'_> {
    fn value(&mut self, template: &Template) -> Result<Value, EvaluationError> {
        let value = match template {
            Template::Literal(value) => value.clone(),
            Template::Expression(expression) => expression.evaluate(self.scope)?,
            Template::Text(parts) => self.text(template, parts)?,
            Template::List(items) => return self.list(template, items),
            Template::Object(fields) => return self.object(template, fields),
        };
        self.count(template, &value)?;
        Ok(value)
    }

    fn list(&mut self, template: &Template, items: &[Template]) -> Result<Value, EvaluationError> {
        self.count(template, &Value::list(Vec::new()))?;
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.take(template, usize::from(index > 0))?;
            list.push(self.inside(&index.to_string(), item)?);
        }
        Ok(list.into())
    }

    fn object(&mut self, template: &Template, fields: &[(Arc<str>, Template)]) -> Result<Value, EvaluationError> {
        self.count(template, &Value::list(Vec::new()))?;
        let mut object = Vec::with_capacity(fields.len());
        for (index, (name, field)) in fields.iter().enumerate() {
            // The colon, and the comma before all but the first.
            self.take(template, 1 + usize::from(index > 0))?;
            self.count(template, &Value::String(Arc::clone(name)))?;
            object.push((Arc::clone(name), self.inside(name, field)?));
        }
        Ok(Value::object(object))
    }

    /// Renders one step further down.
    fn inside(&mut self, step: &str, template: &Template) -> Result<Value, EvaluationError> {
        let length = self.pointer.len();
        push_pointer_step(&mut self.pointer, step);
        self.depth += 1;
        let result = self.value(template);
        self.depth -= 1;
        self.pointer.truncate(length);
        result
    }

    /// The text that the parts give, or `null` and a place when there is a secret among them.
    fn text(&mut self, template: &Template, parts: &[Part]) -> Result<Value, EvaluationError> {
        let mut rendered = self.parts(template, parts)?;
        match &mut rendered[..] {
            [] => Ok("".into()),
            [SecretPart::Text(only)] => Ok(std::mem::take(only).into()),
            [..] => {
                for part in &rendered {
                    match part {
                        SecretPart::Text(text) => self.take(template, text.len())?,
                        SecretPart::Secret(name) => self.take(template, name.len())?,
                    }
                }
                self.secrets.push(SecretPlace { pointer: self.pointer.clone(), parts: rendered });
                Ok(Value::Null)
            }
        }
    }

    /// What the parts of a text give; adjacent texts become one, so without a secret there is one at most.
    fn parts(&self, template: &Template, parts: &[Part]) -> Result<Vec<SecretPart>, EvaluationError> {
        let mut rendered = Vec::new();
        let mut bytes = 0;
        for part in parts {
            let text = match part {
                Part::Secret(name) => {
                    rendered.push(SecretPart::Secret(name.to_string()));
                    continue;
                }
                Part::Literal(text) => text.to_string(),
                Part::Expression(expression) => {
                    let value = expression.evaluate(self.scope)?;
                    as_text(&value).map_err(|error| expression.error(error.to_string(), self.scope))?
                }
            };
            bytes += text.len();
            if bytes > self.room {
                return Err(self.refusal(template, too_large()));
            }
            match rendered.last_mut() {
                Some(SecretPart::Text(before)) => before.push_str(&text),
                Some(SecretPart::Secret(_)) | None => rendered.push(SecretPart::Text(text)),
            }
        }
        Ok(rendered)
    }

    /// Takes the room of a value.
    fn count(&mut self, template: &Template, value: &Value) -> Result<(), EvaluationError> {
        let bytes = value.json_bytes(self.depth, self.room);
        self.take(template, bytes.map_err(|error| self.refusal(template, error.to_string()))?)
    }

    fn take(&mut self, template: &Template, bytes: usize) -> Result<(), EvaluationError> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| self.refusal(template, too_large()))?;
        Ok(())
    }

    fn refusal(&self, template: &Template, message: String) -> EvaluationError {
        match template.expressions().last() {
            Some(expression) => expression.error(message, self.scope),
            // A literal for which the expressions beside it left no room.
            None => EvaluationError { expression: self.pointer.clone(), message, saw: String::new() },
        }
    }
}

fn as_text(value: &Value) -> Result<String, JsonError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.to_string()),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::List(_) | Value::Object(_) => {
            value.to_json().map(|json| json.as_str().to_owned())
        }
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

    /// A value in whose texts `${…}` may stand, as definitions have it.
    fn template(value: &Value) -> Result<Template, TemplateError> {
        match value {
            Value::String(text) => Template::parse_text(text),
            Value::List(items) => items.iter().map(template).collect::<Result<_, _>>().map(Template::list),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, field)| Ok((Arc::clone(name), template(field)?)));
                fields.collect::<Result<_, _>>().map(Template::object)
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
                Ok(Template::Literal(value.clone()))
            }
        }
    }

    /// Parses and renders, and writes what came out, secrets after the value.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match template(&value(text)) {
            Err(error) => format!("{}: {error}", error.offset),
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
        assert!(matches!(template(&value(literal)), Ok(Template::Literal(_))));
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
        check(r#"{"a/b":["ok","é ${input.n"]}"#, &format!("3: {unclosed}"));
        check(r#""${input.n +}""#, "11: the expression ends too early");
        check(r#""${ }""#, "2: an expression is expected, found nothing");
    }

    #[test]
    fn the_secrets_of_a_template_are_known_before_it_is_rendered() {
        let written =
            r#"{"a":["${secret.B} and ${ secret.A }",{"b":"${secret.B}"}],"c":"$${secret.C} ${input.forged}"}"#;
        let template = template(&value(written)).unwrap();
        assert_eq!(template.secrets().into_iter().collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn a_secret_leaves_a_place_and_data_cannot_forge_one() {
        check(r#"{"a":"${secret.KEY}"}"#, r#"{"a":null} [{"pointer":"/a","parts":[{"secret":"KEY"}]}]"#);
        check(
            r#"{"a~":["${secret.A}${secret.B}"]}"#,
            r#"{"a~":[null]} [{"pointer":"/a~0/0","parts":[{"secret":"A"},{"secret":"B"}]}]"#,
        );
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

    /// What is said when `text` is rendered with a list of 10,000 items in an input of one megabyte.
    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let mut scope = Scope::default();
        let items = Value::list(vec![Value::Int(1); 10_000]);
        let large = Value::from("a".repeat(1_000_000));
        scope.set("input", Value::object([("items", items), ("text", large)]));
        let error = template(&value(text)).unwrap().render(&scope).unwrap_err();
        assert_eq!(format!("{}: {}", error.expression, error.message), expected);
    }

    #[test]
    fn a_value_that_is_too_large_is_refused_before_it_is_written_out() {
        let refusal = "the value is larger than 8 MiB (`VALUE_BYTES_MAX`)";
        let expected = format!("input.items.map(i, input): {refusal}");
        check_refused(r#""${input.items.map(i, input)}""#, &expected);
        check_refused(r#""all: ${input.items.map(i, input)}""#, &expected);
        check_refused(r#"{"a":["${input.items.map(i, input)}"]}"#, &expected);
        check_refused(r#""${secret.KEY} ${input.items.map(i, input)}""#, &expected);
        check_refused(
            r#""${input.items.map(i, input.text).join('')}""#,
            &format!("input.items.map(i, input.text).join(''): {refusal}"),
        );
        let doubled = "[input.text + input.text].map(a, a + a).map(a, a + a).map(a, a + a)";
        check_refused(&format!(r#""${{{doubled}}}""#), &format!("{doubled}: {refusal}"));
        let replaced = "input.text.replace('a', '01234567890123456789')";
        check_refused(&format!(r#""${{{replaced}}}""#), &format!("{replaced}: {refusal}"));
    }

    #[test]
    fn parts_that_are_too_large_together_are_refused() {
        let expected = "input.text: the value is larger than 8 MiB (`VALUE_BYTES_MAX`)";
        check_refused(&format!("[{}]", [r#""${input.text}""#; 9].join(",")), expected);
        check_refused(&format!("[{}]", [r#""x${input.text}""#; 9].join(",")), expected);
        check_refused(&format!("[{}]", [r#""${secret.KEY}${input.text}""#; 9].join(",")), expected);
        check_refused(&format!("\"{}\"", "${input.text}".repeat(9)), expected);
    }

    #[test]
    fn a_value_that_is_nested_too_deep_is_refused() {
        let nested = |depth: usize| (0..depth).fold(Value::Null, |inner, _| Value::list(vec![inner]));
        let parsed = template(&value(r#"[["${input}"]]"#)).unwrap();
        let mut scope = Scope::default();
        scope.set("input", nested(limits::VALUE_DEPTH_MAX - 2));
        let rendered = parsed.render(&scope).unwrap().value;
        assert!(rendered.to_json().is_ok());
        scope.set("input", nested(limits::VALUE_DEPTH_MAX - 1));
        let error = parsed.render(&scope).unwrap_err();
        assert_eq!(error.message, "value is nested deeper than 100 levels (`value_depth_max`)");
    }

    #[test]
    fn it_reads_what_its_expressions_read() {
        let parsed = template(&value(r#"{"a":"${state.x}-${state.y.z}","b":["${size(input)}"]}"#)).unwrap();
        let texts: Vec<&str> = parsed.expressions().into_iter().map(Expression::text).collect();
        assert_eq!(texts, ["state.x", "state.y.z", "size(input)"]);
        let mut expected = Reads::default();
        expected.add_field("state", "x");
        expected.add_field("state", "y");
        expected.add_all("input");
        assert_eq!(*parsed.reads(), expected);
    }

    /// The value as a template that gives it back.
    fn escaped(value: &Value) -> Value {
        let text = value.to_json().unwrap().as_str().replace("${", "$${");
        Value::from_json(&Json::from_stored(&text)).unwrap()
    }

    proptest! {
        #[test]
        fn an_escaped_value_renders_as_itself(value in samples::values()) {
            let rendered = template(&escaped(&value)).unwrap().render(&scope()).unwrap();
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
