//! From text to trees: YAML 1.2, and JSON as the part of YAML that it is.
//!
//! Owns what a plain scalar means, duplicate keys, aliases and their bounds. Never knows what a definition is.
//! Start reading at [`documents`].

use std::collections::BTreeMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::problems::Problems;
use super::syntax;
use super::tree::{Content, Field, Place, Style, Tree};
use crate::limits;

/// The documents of a text that could be read, without the empty ones.
pub(super) fn documents(text: &str, problems: &mut Problems<'_>) -> Vec<Arc<Tree>> {
    let options = granit_parser::options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { text, problems, open: Vec::new(), anchors: BTreeMap::new(), values: 0, root: None };
    let mut found = Vec::new();
    while let Some(next) = parser.next_event() {
        let step = match next {
            Ok((Event::DocumentEnd, _)) => {
                found.extend(builder.finish().filter(|tree| !matches!(tree.content, Content::Null)));
                Ok(())
            }
            Ok((event, span)) => builder.take(event, span),
            Err(error) => {
                let (at, message, hint) = syntax::explain(&error, text, builder.is_in_braces());
                builder.problems.error(at, message, hint);
                Err(GiveUp)
            }
        };
        if step.is_err() {
            builder.abandon();
            // What comes after the next `---` can still be read.
            if !matches!(parser.proceed_next_document(), Ok(true)) {
                break;
            }
        }
    }
    found
}

/// The rest of the document cannot be read; its problem has been told.
struct GiveUp;

struct Builder<'a, 'p, 't> {
    text: &'a str,
    problems: &'p mut Problems<'t>,
    open: Vec<Open>,
    /// By the parser's number; `None` while the anchored value is still open.
    anchors: BTreeMap<usize, Option<Arc<Tree>>>,
    /// Values so far, aliases filled in.
    values: usize,
    root: Option<Arc<Tree>>,
}

/// A list or an object whose end has not been seen.
struct Open {
    at: Place,
    anchor: usize,
    is_in_braces: bool,
    parts: Parts,
}

enum Parts {
    List(Vec<Arc<Tree>>),
    Object { fields: Vec<Field>, seen: BTreeMap<Arc<str>, Place>, key: Key },
}

/// What an object expects next.
enum Key {
    Wanted,
    /// A value for this key.
    Found(Arc<str>, Place),
    /// A value that belongs to a key that was refused.
    Refused,
}

impl Builder<'_, '_, '_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's own enum; what it may grow is no value")]
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), GiveUp> {
        self.refuse_tag(&event, span);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let tree = self.scalar(&text, style, span);
                self.complete(anchor, Arc::new(tree))
            }
            Event::SequenceStart(style, anchor, _) => {
                self.begin(span, anchor, style == granit_parser::StructureStyle::Flow, Parts::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, _) => {
                let parts = Parts::Object { fields: Vec::new(), seen: BTreeMap::new(), key: Key::Wanted };
                self.begin(span, anchor, style == granit_parser::StructureStyle::Flow, parts)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => self.alias(anchor, place(span)),
            _ => Ok(()),
        }
    }

    fn refuse_tag(&mut self, event: &Event<'_>, span: Span) {
        if event.tag().is_some() {
            let at = span.tag_span().map_or(place(span), place);
            let written = self.text.get(at.start..at.end).unwrap_or("!");
            let message = format!("tags such as `{written}` are not supported");
            self.problems.error(at, message, "write the value without it; text goes in quotes".to_owned());
        }
    }

    fn begin(&mut self, span: Span, anchor: usize, is_in_braces: bool, parts: Parts) -> Result<(), GiveUp> {
        let at = place(span);
        if self.open.len() >= limits::DEFINITION_DEPTH_MAX {
            return self.too_deep(at);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { at, anchor, is_in_braces, parts });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<(), GiveUp> {
        let Some(Open { at, anchor, parts, .. }) = self.open.pop() else { return Err(GiveUp) };
        let content = match parts {
            Parts::List(items) => Content::List(items),
            Parts::Object { fields, .. } => Content::Object(fields),
        };
        let at = Place { end: span.end.byte_offset().unwrap_or(at.end).max(at.end), ..at };
        self.complete(anchor, Arc::new(Tree::new(content, at, Style::Other)))
    }

    fn alias(&mut self, anchor: usize, at: Place) -> Result<(), GiveUp> {
        match self.anchors.get(&anchor) {
            Some(Some(tree)) => {
                let tree = tree.clone();
                self.add(tree, at)
            }
            Some(None) | None => {
                self.problems.error(at, "this alias stands inside the value that it means", None);
                Err(GiveUp)
            }
        }
    }

    fn complete(&mut self, anchor: usize, tree: Arc<Tree>) -> Result<(), GiveUp> {
        if anchor > 0 {
            self.anchors.insert(anchor, Some(tree.clone()));
        }
        let at = tree.at;
        self.add(tree, at)
    }

    /// Puts a finished value where it belongs. `at` is where it is used, which for an alias is not where it was written.
    fn add(&mut self, tree: Arc<Tree>, at: Place) -> Result<(), GiveUp> {
        if self.open.len() + tree.height > limits::DEFINITION_DEPTH_MAX {
            return self.too_deep(at);
        }
        // The values inside a list or an object have been counted one by one, those behind an alias have not.
        let is_new = tree.at == at;
        self.values = self.values.saturating_add(if is_new { 1 } else { tree.values });
        if self.values > limits::DEFINITION_VALUES_MAX || tree.bytes > limits::VALUE_BYTES_MAX {
            let max = limits::DEFINITION_VALUES_MAX;
            let message = format!("the document has more than {max} values (`definition_values_max`)");
            self.problems.error(at, message, "split it, or use fewer aliases (`*name`)".to_owned());
            return Err(GiveUp);
        }
        match self.open.last_mut() {
            None => self.root = Some(tree),
            Some(Open { parts: Parts::List(items), .. }) => items.push(tree),
            Some(Open { parts: Parts::Object { fields, seen, key }, .. }) => {
                match std::mem::replace(key, Key::Wanted) {
                    Key::Wanted => *key = accept_key(&tree, at, seen, self.problems),
                    Key::Found(name, key_at) => fields.push(Field { key: name, key_at, value: tree }),
                    Key::Refused => {}
                }
            }
        }
        Ok(())
    }

    fn too_deep(&mut self, at: Place) -> Result<(), GiveUp> {
        let max = limits::DEFINITION_DEPTH_MAX;
        self.problems.error(at, format!("values are nested more than {max} deep (`definition_depth_max`)"), None);
        Err(GiveUp)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) -> Tree {
        let at = place(span);
        let (content, style) = match style {
            ScalarStyle::Plain => (plain(text), Style::Plain),
            ScalarStyle::SingleQuoted => (Content::Text(text.into()), Style::Single),
            ScalarStyle::DoubleQuoted => (Content::Text(text.into()), Style::Double),
            ScalarStyle::Literal => (Content::Text(text.into()), Style::Literal),
            ScalarStyle::Folded => (Content::Text(text.into()), Style::Other),
        };
        if matches!(content, Content::Float(number) if !number.is_finite()) {
            let hint = "put it in quotes if it is meant as text".to_owned();
            self.problems.error(at, format!("`{text}` is not a number that JSON can hold"), hint);
            return Tree::new(Content::Null, at, style);
        }
        Tree::new(content, at, style)
    }

    fn finish(&mut self) -> Option<Arc<Tree>> {
        let root = self.root.take();
        self.abandon();
        root
    }

    fn abandon(&mut self) {
        self.root = None;
        self.open.clear();
        self.anchors.clear();
        self.values = 0;
    }

    fn is_in_braces(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_in_braces)
    }
}

fn accept_key(tree: &Tree, at: Place, seen: &mut BTreeMap<Arc<str>, Place>, problems: &mut Problems<'_>) -> Key {
    let Content::Text(name) = &tree.content else {
        let message = format!("a key must be text, found {}", tree.described());
        let is_scalar = !matches!(tree.content, Content::List(_) | Content::Object(_) | Content::Null);
        problems.error(at, message, is_scalar.then(|| "put it in quotes".to_owned()));
        return Key::Refused;
    };
    if &**name == "<<" && tree.style == Style::Plain {
        problems.error(
            at,
            "`<<` is not supported",
            "write the fields out, or use an alias for a whole value".to_owned(),
        );
        return Key::Refused;
    }
    if let Some(first) = seen.get(name) {
        let hint = format!("the first `{name}` is on line {}, column {}", first.line, first.column);
        problems.error(at, format!("`{name}` is there twice"), hint);
        return Key::Refused;
    }
    seen.insert(name.clone(), at);
    Key::Found(name.clone(), at)
}

fn place(span: Span) -> Place {
    let start = span.start.byte_offset().unwrap_or_default();
    let end = span.end.byte_offset().unwrap_or(start);
    Place { line: span.start.line(), column: span.start.col() + 1, start, end }
}

/// What text without quotes means, by the core schema of YAML 1.2. `on`, `yes` and `no` are text.
fn plain(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Content::Null,
        "true" | "True" | "TRUE" => return Content::Bool(true),
        "false" | "False" | "FALSE" => return Content::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Content::Float(f64::NAN),
        _ => {}
    }
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())) {
        return u64::from_str_radix(digits, 16).map_or_else(|_| Content::Text(text.into()), whole);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
        return u64::from_str_radix(digits, 8).map_or_else(|_| Content::Text(text.into()), whole);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Content::Float(f64::INFINITY);
    }
    if !is_number(unsigned) {
        return Content::Text(text.into());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Content::Int(number);
    }
    if let Ok(number) = text.strip_prefix('+').unwrap_or(text).parse::<u64>() {
        return Content::UInt(number);
    }
    text.parse().map_or_else(|_| Content::Text(text.into()), Content::Float)
}

fn whole(number: u64) -> Content {
    i64::try_from(number).map_or(Content::UInt(number), Content::Int)
}

/// Whether it is `digits [. digits] [e [sign] digits]`, with a digit before the `e`.
fn is_number(text: &str) -> bool {
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    });
    (before.len() + after.len() > 0) && are_digits(before) && are_digits(after) && exponent_fits
}
