//! Names: which are allowed, and how they are listed. Which one was probably meant is told by [`closest`].

pub(super) use crate::expression::closest;
use crate::limits;

/// What is wrong with a name, if anything.
pub(super) fn fault(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX {
        let (found, max) = (name.len(), limits::NAME_BYTES_MAX);
        return Some(format!("it has {found} characters, allowed are 1 to {max}"));
    }
    let refused = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))?;
    Some(format!("it contains {refused:?}, allowed are letters, digits, `.`, `_` and `-`"))
}

/// Whether an expression can name it: `question`, but not `my-question`.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_word) && name.starts_with(|c: char| !c.is_ascii_digit()) && !is_keyword(name)
}

/// Whether it is a word of the expression language that cannot be a name in it.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// `` `a`, `b` and `c` ``; a long list is cut.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const SHOWN_MAX: usize = 20;
    let all: Vec<&str> = names.into_iter().collect();
    let mut shown: Vec<String> = all.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    if all.len() > SHOWN_MAX {
        return format!("{} and {} more", shown.join(", "), all.len() - SHOWN_MAX);
    }
    match shown.pop() {
        Some(last) if !shown.is_empty() => format!("{} and {last}", shown.join(", ")),
        Some(last) => last,
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_expression_cannot_name_is_no_identifier() {
        let names = ["item", "_x1", "my-item", "1x", "", "in", "a.b", "ä"];
        let allowed: Vec<&str> = names.into_iter().filter(|name| is_identifier(name)).collect();
        assert_eq!(allowed, ["item", "_x1"]);
    }
}
