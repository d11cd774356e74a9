//! JSON for people: the same text, with lines and indentation.

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
