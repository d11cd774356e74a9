//! JSON for people: the same text, with lines and indentation.

use std::io::Write;

use serde::Serialize;

/// Writes a document for `--json`, with lines and indentation.
pub(crate) fn print<T: Serialize>(out: &mut dyn Write, document: &T) -> anyhow::Result<()> {
    writeln!(out, "{}", indented(&serde_json::to_string(document)?))?;
    Ok(())
}

/// Writes a document as a line of its own.
pub(crate) fn print_line<T: Serialize>(out: &mut dyn Write, document: &T) -> anyhow::Result<()> {
    writeln!(out, "{}", on_a_line(document)?)?;
    Ok(())
}

/// Line ends in JSON are outside of its texts, where they mean as much as spaces.
fn on_a_line<T: Serialize>(document: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string(document)?.replace(['\r', '\n'], " "))
}

/// Writes a list as the API has it, item by item, so that it may be longer than what is held at once.
pub(crate) struct List {
    has_items: bool,
}

impl List {
    pub(crate) fn begin(out: &mut dyn Write) -> std::io::Result<Self> {
        write!(out, "{{\"items\":[")?;
        Ok(Self { has_items: false })
    }

    pub(crate) fn item<T: Serialize>(&mut self, out: &mut dyn Write, item: &T) -> anyhow::Result<()> {
        let between = if std::mem::replace(&mut self.has_items, true) { ",\n" } else { "\n" };
        write!(out, "{between}{}", on_a_line(item)?)?;
        Ok(())
    }

    pub(crate) fn end(self, out: &mut dyn Write, next_cursor: Option<&str>) -> anyhow::Result<()> {
        writeln!(out, "\n],\"next_cursor\":{}}}", serde_json::to_string(&next_cursor)?)?;
        Ok(())
    }
}

/// How far each level is indented.
const INDENT: &str = "  ";

/// `text`, which is JSON, with a line for each element. Not by way of values: those have no order of fields, and round numbers.
pub(crate) fn indented(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() * 2);
    let mut depth: usize = 0;
    let mut place = Place::Outside;
    let mut before = ' ';
    for c in text.chars() {
        match place {
            Place::Text | Place::Escape => {
                shown.push(c);
                place = match (place, c) {
                    (Place::Text, '\\') => Place::Escape,
                    (Place::Text, '"') => Place::Outside,
                    (Place::Text | Place::Escape | Place::Outside, _) => Place::Text,
                };
            }
            Place::Outside if c.is_ascii_whitespace() => continue,
            Place::Outside => {
                let is_closing = matches!(c, '}' | ']');
                let is_after_opening = matches!(before, '{' | '[');
                depth -= usize::from(is_closing);
                if is_closing != is_after_opening || before == ',' {
                    shown.push('\n');
                    shown.push_str(&INDENT.repeat(depth));
                }
                shown.push(c);
                match c {
                    '"' => place = Place::Text,
                    ':' => shown.push(' '),
                    '{' | '[' => depth += 1,
                    _ => {}
                }
            }
        }
        before = c;
    }
    shown
}

#[derive(Clone, Copy)]
enum Place {
    Outside,
    Text,
    Escape,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(indented(text), expected);
    }

    #[test]
    fn every_element_has_a_line() {
        check(
            r#"{"b":[1,{"c":null}],"a":"x"}"#,
            "{\n  \"b\": [\n    1,\n    {\n      \"c\": null\n    }\n  ],\n  \"a\": \"x\"\n}",
        );
    }

    #[test]
    fn what_is_empty_stays_on_its_line() {
        check(r#"{"a":{},"b":[]}"#, "{\n  \"a\": {},\n  \"b\": []\n}");
        check("null", "null");
        check("[ ]", "[]");
    }

    #[test]
    fn texts_and_numbers_stay_as_they_are() {
        check(r#"["{,\"]\\",0.30000000000000004,1e2]"#, "[\n  \"{,\\\"]\\\\\",\n  0.30000000000000004,\n  1e2\n]");
    }
}
