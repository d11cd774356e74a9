//! What is wrong with a definition, said so that a person can mend it.
//!
//! Owns the form of a problem and how it is printed. Never finds one: see [`super::read()`].

use std::fmt;

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Whether it must be mended.
    pub severity: Severity,
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1. 0 for what is about no line: a whole file, a definition that was not read from text.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line it is on, as written; of a long line the part around the place.
    pub source: String,
    /// The place in `source`, from 1, in characters. It is `column`, unless the line is long.
    pub source_column: usize,
    /// How long the offending text is, in characters.
    pub length: usize,
    /// How to mend it.
    pub hint: Option<String>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It cannot be applied.
    Error,
    /// It can, but is hardly meant so.
    Warning,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", one_line(&self.file))?;
        }
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        let gap = if self.file.is_empty() && self.line == 0 { "" } else { " " };
        write!(f, "{gap}{}: {}", self.severity.name(), one_line(&self.message))?;
        if self.line == 0 {
            return match &self.hint {
                Some(hint) => write!(f, " ({})", one_line(hint)),
                None => Ok(()),
            };
        }
        let before: String = self.source.chars().take(self.source_column.saturating_sub(1)).collect();
        let marked: String = self.source.chars().skip(self.source_column.saturating_sub(1)).take(self.length).collect();
        let margin = " ".repeat(one_line(&before).chars().count());
        let carets = "^".repeat(one_line(&marked).chars().count().max(1));
        write!(f, "\n{:>5} | {}\n      | {margin}{carets}", self.line, one_line(&self.source).trim_end())?;
        match &self.hint {
            Some(hint) => write!(f, " {}", one_line(hint)),
            None => Ok(()),
        }
    }
}

/// The text as it is printed: a tab as four spaces, so that the caret stands right on every terminal, and other
/// control characters escaped, so that a file cannot command one.
fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str("    "),
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Characters that change the order or the place of others and have no width of their own.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(source: &str, column: usize, length: usize) -> Problem {
        Problem {
            severity: Severity::Error,
            file: "flow.yaml".to_owned(),
            line: 12,
            column,
            message: "unknown field `trasitions`".to_owned(),
            source: source.to_owned(),
            source_column: column,
            length,
            hint: Some("did you mean `transitions`?".to_owned()),
        }
    }

    #[test]
    fn it_shows_the_line_and_points_at_the_place() {
        let expected = "flow.yaml:12:1: error: unknown field `trasitions`\n   12 | trasitions:\n      | ^^^^^^^^^^ did you mean `transitions`?";
        assert_eq!(problem("trasitions:", 1, 10).to_string(), expected);
    }

    #[test]
    fn tabs_and_control_characters_do_not_move_the_caret() {
        let printed = problem("\ta: \u{1b}[31m x", 11, 1).to_string();
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[1], "   12 |     a: \\u{1b}[31m x");
        assert_eq!(lines[2], "      |                   ^ did you mean `transitions`?");
    }

    #[test]
    fn for_programs_it_is_plain_data() {
        let stored = crate::json::Json::encode(&problem("trasitions:", 1, 10)).unwrap();
        assert!(
            stored.as_str().starts_with(r#"{"severity":"error","file":"flow.yaml","line":12,"column":1,"#),
            "{stored}"
        );
    }
}
