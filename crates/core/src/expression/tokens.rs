//! The words of an expression, as far as they are needed before it is parsed.
//!
//! Owns where a text literal ends, how deep brackets are nested and where a `${…}` closes. It is not a parser: what it lets
//! through may still be no expression. Start reading at [`next_token`].

/// What a word of an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Name,
    /// A text literal, with its prefix and quotes.
    Text,
    /// A text literal that is not closed.
    OpenText,
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// A number, or any other sign.
    Other,
}

/// A word of an expression: bytes `start..end` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The first word at or after `from`, which must be a character boundary. Spaces and comments are no words.
pub(super) fn next_token(text: &str, from: usize) -> Option<Token> {
    let bytes = text.as_bytes();
    let mut start = from;
    loop {
        match bytes.get(start)? {
            b' ' | b'\t' | b'\r' | b'\n' | b'\x0C' => start += 1,
            b'/' if bytes.get(start + 1) == Some(&b'/') => {
                start = text[start..].find('\n').map_or(text.len(), |line| start + line);
            }
            _ => break,
        }
    }
    let (kind, end) = match bytes[start] {
        b'(' | b'[' | b'{' => (Kind::Open, start + 1),
        b')' | b']' | b'}' => (Kind::Close, start + 1),
        b'"' | b'\'' => text_literal(text, start, Escapes::Backslash),
        first if is_name_start(first) => name_or_prefixed_text(text, start),
        first if first.is_ascii_digit() => (Kind::Other, end_of_name(bytes, start)),
        _ => (Kind::Other, end_of_sign(text, start)),
    };
    Some(Token { kind, start, end })
}

/// All words of `text`.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let token = next_token(text, from)?;
        from = token.end;
        Some(token)
    })
}

/// Where the `}` is that closes an expression beginning at `from`.
pub(super) fn closing_brace(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut next = from;
    loop {
        let token = next_token(text, next)?;
        let first = text.as_bytes()[token.start];
        match (token.kind, first, depth) {
            (Kind::Close, b'}', 0) => return Some(token.start),
            // Only braces are counted: a stray `)` is the parser's to complain about, not a reason to read on past the end.
            (Kind::Close, b'}', _) => depth -= 1,
            (Kind::Open, b'{', _) => depth += 1,
            (Kind::Name | Kind::Text | Kind::OpenText | Kind::Open | Kind::Close | Kind::Other, _, _) => {}
        }
        next = token.end;
    }
}

/// Whether `text` is a name as expressions write it.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(is_name_start) && text.bytes().all(is_name_byte)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Backslash,
    Raw,
}

fn name_or_prefixed_text(text: &str, start: usize) -> (Kind, usize) {
    let end = end_of_name(text.as_bytes(), start);
    let quoted = matches!(text.as_bytes().get(end), Some(b'"' | b'\''));
    match text[start..end].to_ascii_lowercase().as_str() {
        "b" if quoted => text_literal(text, end, Escapes::Backslash),
        "r" | "br" | "rb" if quoted => text_literal(text, end, Escapes::Raw),
        _ => (Kind::Name, end),
    }
}

fn text_literal(text: &str, quote: usize, escapes: Escapes) -> (Kind, usize) {
    let one = &text[quote..=quote];
    let three = one.repeat(3);
    let is_long = text[quote..].starts_with(&three);
    let delimiter = if is_long { three.as_str() } else { one };
    let mut at = quote + delimiter.len();
    while let Some(character) = text[at..].chars().next() {
        if text[at..].starts_with(delimiter) {
            return (Kind::Text, at + delimiter.len());
        }
        let is_escape = character == '\\' && escapes == Escapes::Backslash;
        at += character.len_utf8();
        if is_escape {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    (Kind::OpenText, text.len())
}

/// Signs of two characters are one word, so that a message shows them whole.
fn end_of_sign(text: &str, start: usize) -> usize {
    let pairs = ["==", "!=", "<=", ">=", "&&", "||"];
    match pairs.iter().any(|pair| text[start..].starts_with(pair)) {
        true => start + 2,
        false => start + text[start..].chars().next().map_or(0, char::len_utf8),
    }
}

fn end_of_name(bytes: &[u8], start: usize) -> usize {
    start + bytes[start..].iter().take_while(|byte| is_name_byte(**byte)).count()
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let words: Vec<&str> = tokens(text).map(|token| &text[token.start..token.end]).collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn an_expression_falls_into_words() {
        check("a.b_1 >= 12 // ü '", &["a", ".", "b_1", ">=", "12"]);
        check("[x]{}", &["[", "x", "]", "{", "}"]);
    }

    #[test]
    fn a_text_literal_is_one_word_in_all_its_forms() {
        check(r#"'a"}' + "\"" "#, &[r#"'a"}'"#, "+", r#""\"""#]);
        check(r"r'\' b'ä\'' '''a'b''c'''", &[r"r'\'", r"b'ä\''", "'''a'b''c'''"]);
    }

    #[test]
    fn a_brace_inside_a_text_or_a_map_does_not_close() {
        assert_eq!(closing_brace("{'}': {}} } }", 0), Some(10));
        assert_eq!(closing_brace("'}", 0), None);
    }

    proptest! {
        #[test]
        fn any_text_falls_into_words_that_do_not_overlap(text in "\\PC{0,40}") {
            let mut end = 0;
            for token in tokens(&text) {
                prop_assert!(token.start >= end && token.end > token.start);
                prop_assert!(text.get(token.start..token.end).is_some());
                end = token.end;
            }
        }
    }
}
