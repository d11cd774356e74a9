//! Text that is not YAML: what is wrong with it, in words for people, and the usual cause.

use granit_parser::{ErrorKind, ScanError};

use super::tree::Place;

/// Where it is, what is wrong, and a hint.
pub(super) fn explain(error: &ScanError, text: &str, is_in_braces: bool) -> (Place, String, Option<String>) {
    let at = place(error, text);
    if let Some(explained) = by_look(error.kind(), text, at, is_in_braces) {
        return explained;
    }
    let (message, hint) = by_kind(error);
    let is_quote = matches!(error.kind(), ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent);
    (if is_quote { open_quote(text, at).unwrap_or(at) } else { at }, message, hint)
}

/// Where the quote probably begins that is not closed: the nearest line above with an odd number of quotes.
fn open_quote(text: &str, at: Place) -> Option<Place> {
    const LINES_MAX: usize = 100;
    let mut lines: Vec<&str> = text.get(..at.end)?.split_inclusive('\n').rev().take(LINES_MAX).collect();
    lines.reverse();
    let mut start = at.end;
    let mut line = at.line;
    for written in lines.iter().rev() {
        start -= written.len();
        let odd = ['"', '\''].into_iter().find(|quote| written.matches(*quote).count() % 2 == 1);
        if let Some(offset) = odd.and_then(|quote| written.rfind(quote)) {
            let column = written[..offset].chars().count() + 1;
            return Some(Place { line, column, start: start + offset, end: start + offset + 1 });
        }
        line -= 1;
    }
    None
}

fn place(error: &ScanError, text: &str) -> Place {
    let marker = error.marker();
    let start = marker.byte_offset().unwrap_or(text.len()).min(text.len());
    let width = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let at = Place { line: marker.line(), column: marker.col() + 1, start, end: start + width };
    // At the end of the text there is nothing to point at: the last line with something on it says more.
    let rest = text.get(start..).unwrap_or_default();
    if !rest.trim().is_empty() || text.trim().is_empty() {
        return at;
    }
    let kept = text.trim_end();
    let line_start = kept.rfind('\n').map_or(0, |end| end + 1);
    let column = kept[line_start..].chars().count();
    let last = kept[line_start..].chars().next_back().map_or(0, char::len_utf8);
    Place { line: kept.matches('\n').count() + 1, column, start: kept.len() - last, end: kept.len() }
}

/// The usual slips, by how the text looks around the place.
fn by_look(kind: &ErrorKind, text: &str, at: Place, is_in_braces: bool) -> Option<(Place, String, Option<String>)> {
    let (before, after) = text.split_at_checked(at.start)?;
    let line_before = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    let line_after = after.split(['\n', '\r']).next().unwrap_or_default();
    let line = format!("{line_before}{line_after}");
    if line.starts_with('\t') || line.trim_start_matches(' ').starts_with('\t') {
        return said(at, "a tab stands where lines are indented", "indent with spaces: YAML allows no tabs there");
    }
    let is_bare_expression = (line_before.ends_with('$') && line_after.starts_with('{')) || unquoted_expression(&line);
    if is_bare_expression && (is_in_braces || matches!(kind, ErrorKind::MappingValueNotAllowed)) {
        return said(
            at,
            "an expression needs quotes here",
            "write `\"${…}\"`: braces and colons mean something in YAML",
        );
    }
    if matches!(kind, ErrorKind::MappingValueNotAllowed | ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey) {
        let above = before[..before.len() - line_before.len()].trim_end_matches(['\n', '\r']);
        let above_start = above.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let candidates =
            [(at.line, at.start - line_before.len(), &*line), (at.line - 1, above_start, &above[above_start..])];
        for (number, start, written) in candidates {
            let Some(key) = key_without_space(written) else { continue };
            let offset = written.find(key).unwrap_or_default();
            let column = written[..offset].chars().count() + 1;
            let at = Place { line: number, column, start: start + offset, end: start + offset + key.len() + 1 };
            let hint = format!("write `{key}: …`, with a space after the colon");
            return Some((at, format!("a space is missing after `{key}:`"), Some(hint)));
        }
    }
    None
}

fn said(at: Place, message: &str, hint: &str) -> Option<(Place, String, Option<String>)> {
    Some((at, message.to_owned(), Some(hint.to_owned())))
}

/// Whether `${` follows something other than a quote.
fn unquoted_expression(line: &str) -> bool {
    line.find("${").is_some_and(|start| !line[..start].contains(['"', '\'']))
}

/// `name` of `name:value`.
fn key_without_space(line: &str) -> Option<&str> {
    let (key, value) = line.trim_start_matches([' ', '-']).split_once(':')?;
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let is_address = value.starts_with("//");
    (is_word && !is_address && value.starts_with(|c: char| !c.is_whitespace())).then_some(key)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's own enum; it may grow, and has a message for each")]
fn by_kind(error: &ScanError) -> (String, Option<String>) {
    let (message, hint) = match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => {
            ("a tab stands where lines are indented", "indent with spaces: YAML allows no tabs there")
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => {
            ("a quote is not closed", "end the text with the same quote as it begins with")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            ("something follows a closed quote", "inside single quotes, write `'` twice: `'it''s'`")
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            ("something follows a closed quote", "inside double quotes, write `\\\"` for a quote")
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            ("this escape is unknown", "inside double quotes, write `\\\\` for a backslash; or use single quotes")
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::BlockEntryInFlowCollection => {
            ("a `[` or `{` is not closed, or a comma is missing", "look at the brackets before this place")
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            let message = format!("this `{open}` is closed by `{close}`");
            let wanted = if *open == '{' { '}' } else { ']' };
            return (message, Some(format!("close it with `{wanted}`")));
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("this bracket closes nothing", "take it away, or put the text in quotes")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            let message = format!("text cannot begin with `{}` here", character.escape_default());
            return (message, Some("put the text in quotes".to_owned()));
        }
        ErrorKind::MappingValueNotAllowed => (
            "a colon stands where no key can be",
            "check the indentation of this line; text with `: ` in it goes in quotes",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            ("a key without a value", "write `key: value`, with a colon and a space")
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidIndentation
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::ExpectedBlockSequenceEntry => {
            ("this line is not indented like those it belongs to", "fields of one object begin in the same column")
        }
        ErrorKind::UnknownAnchor => {
            ("no value before this has that anchor", "an alias `*name` needs a `&name` before it")
        }
        ErrorKind::RecursionLimitExceeded => {
            ("values are nested too deep", "64 levels are allowed (`definition_depth_max`)")
        }
        kind => return (format!("this is not YAML: {kind}"), None),
    };
    (message.to_owned(), Some(hint.to_owned()))
}
