//! The problems found so far, and the text that they are about.
//!
//! Owns how a place in the text becomes the line, column and source of a problem. Never decides what a problem is.

use super::names::closest;
use super::tree::{Content, Place, Style, Tree};
use super::{Problem, Severity};
use crate::limits;

/// Collects the problems of one file.
pub(super) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    found: Vec<Problem>,
    left_off: usize,
    /// Also those left off.
    errors: usize,
}

/// Beyond this many problems nobody looks for similar names any more: it costs time for every known name.
const SUGGESTIONS_MAX: usize = 50;

impl<'t> Problems<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, found: Vec::new(), left_off: 0, errors: 0 }
    }

    /// Something that must be mended.
    pub(super) fn error(&mut self, at: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.add(Severity::Error, at, message.into(), hint.into());
    }

    /// Something that is hardly meant so.
    pub(super) fn warning(&mut self, at: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.add(Severity::Warning, at, message.into(), hint.into());
    }

    fn add(&mut self, severity: Severity, at: Place, message: String, hint: Option<String>) {
        // An error behind many warnings must not be lost: the definition would pass for a good one.
        let is_first_error = severity == Severity::Error && !self.has_errors();
        self.errors += usize::from(severity == Severity::Error);
        if self.found.len() >= limits::DEFINITION_PROBLEMS_MAX && !is_first_error {
            self.left_off += 1;
            return;
        }
        let problem = Problem { severity, message, hint, ..self.spot(at) };
        self.found.push(problem);
    }

    /// A problem at `at` that says nothing yet.
    pub(super) fn spot(&self, at: Place) -> Problem {
        let (source, source_column) = self.source(at);
        let end = at.end.clamp(at.start, self.text.len());
        let marked = self.text.get(at.start..end).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().trim_end();
        Problem {
            severity: Severity::Error,
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            message: String::new(),
            source,
            source_column,
            length: marked.chars().take(limits::PROBLEM_SOURCE_CHARS_MAX).count().max(1),
            hint: None,
        }
    }

    /// The line around a place. Only as much is looked at as is shown: a file may be one line of megabytes.
    fn source(&self, at: Place) -> (String, usize) {
        if at.line == 0 {
            return (String::new(), 0);
        }
        let max = limits::PROBLEM_SOURCE_CHARS_MAX;
        let is_in_line = |c: &char| !matches!(c, '\n' | '\r');
        let (before, after) = self.text.split_at_checked(at.start).unwrap_or((self.text, ""));
        let mut before: Vec<char> = before.chars().rev().take_while(is_in_line).take(max + 1).collect();
        let mut after: Vec<char> = after.chars().take_while(is_in_line).take(max + 1).collect();
        // Each side gets half, and what the other one leaves.
        let rooms = [after.len(), before.len()].map(|other| max.saturating_sub(other).max(max / 2));
        cut(&mut before, rooms[0]);
        cut(&mut after, rooms[1]);
        let column = before.len() + 1;
        (before.into_iter().rev().chain(after).collect(), column)
    }

    /// The name that was probably meant instead of `found`, as a hint.
    pub(super) fn meant<'n>(&self, found: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
        if self.found.len() > SUGGESTIONS_MAX {
            return None;
        }
        closest(found, known).map(|name| format!("did you mean `{name}`?"))
    }

    /// The place of `length` bytes at `offset` of the text of `tree`; of all of it when that cannot be told.
    pub(super) fn inside(&self, tree: &Tree, offset: usize, length: usize) -> Place {
        let written = self.text.get(tree.at.start..tree.at.end);
        let (Content::Text(text), Some(written)) = (&tree.content, written) else { return tree.at };
        let (Some(start), Some(end)) =
            (as_written(text, written, tree.style, offset), as_written(text, written, tree.style, offset + length))
        else {
            return tree.at;
        };
        let lines_before = written[..start].matches('\n').count();
        let column = match written[..start].rfind('\n') {
            Some(line_end) => written[line_end + 1..start].chars().count() + 1,
            None => tree.at.column + written[..start].chars().count(),
        };
        Place { line: tree.at.line + lines_before, column, start: tree.at.start + start, end: tree.at.start + end }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there are.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// All of them, in the order of the text.
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
        if self.left_off > 0 {
            let last = Place { line: 1, column: 1, ..Place::default() };
            let message = format!("{} more problems are not shown", self.left_off);
            let hint = format!("at most {} are (`definition_problems_max`)", limits::DEFINITION_PROBLEMS_MAX);
            let severity = if self.has_errors() { Severity::Error } else { Severity::Warning };
            self.found.push(Problem { severity, message, hint: Some(hint), ..self.spot(last) });
        }
        self.found
    }
}

fn cut(side: &mut Vec<char>, room: usize) {
    if side.len() > room {
        side.truncate(room.saturating_sub(1));
        side.push('…');
    }
}

/// Where byte `offset` of a text is in what was written for it.
fn as_written(text: &str, written: &str, style: Style, offset: usize) -> Option<usize> {
    let (mut source, mut value) = match style {
        Style::Plain | Style::Literal => (0, 0),
        Style::Single | Style::Double => (1, 0),
        Style::Other => return None,
    };
    // Character by character: what is written for one is at most a few characters of escape or indentation more.
    while value < offset {
        let wanted = text.get(value..)?.chars().next()?;
        let rest = written.get(source..)?;
        let found = rest.chars().next()?;
        source += match (style, found) {
            (Style::Single, '\'') => 2,
            (Style::Double, '\\') => escape_bytes(rest)?,
            (Style::Literal, '\n') => 1 + rest[1..].len() - rest[1..].trim_start_matches(' ').len(),
            _ if found == wanted => found.len_utf8(),
            _ => return None,
        };
        value += wanted.len_utf8();
    }
    written.is_char_boundary(source).then_some(source.min(written.len()))
}

fn escape_bytes(rest: &str) -> Option<usize> {
    match rest.chars().nth(1)? {
        'x' => Some(4),
        'u' => Some(6),
        'U' => Some(10),
        '\n' | '\r' => None,
        other => Some(1 + other.len_utf8()),
    }
}
