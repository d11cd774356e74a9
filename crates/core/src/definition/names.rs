//! Names: which are allowed, and which one was probably meant.

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

/// The known name that is most like `found`, if one is alike.
pub(super) fn closest<'n>(found: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let found = folded(found);
    let allowed = (found.len() / 3).clamp(1, 4);
    known
        .filter(|name| name.chars().count().abs_diff(found.len()) <= allowed)
        .filter_map(|name| distance(&found, &folded(name), allowed).map(|distance| (distance, name)))
        .min()
        .map(|(_, name)| name)
}

fn folded(name: &str) -> Vec<char> {
    let fold = |c: char| if matches!(c, '-' | ' ') { '_' } else { c.to_ascii_lowercase() };
    name.chars().take(2 * limits::NAME_BYTES_MAX).map(fold).collect()
}

/// How many letters must be added, taken away, changed or swapped with their neighbour; `None` when more than `allowed`.
fn distance(a: &[char], b: &[char], allowed: usize) -> Option<usize> {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        if row.iter().all(|distance| *distance > allowed) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|distance| *distance <= allowed)
}

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

    #[track_caller]
    fn check(found: &str, known: &[&str], expected: Option<&str>) {
        assert_eq!(closest(found, known.iter().copied()), expected);
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let known = ["transitions", "nodes", "max_iterations", "on"];
        check("trasitions", &known, Some("transitions"));
        check("transitoins", &known, Some("transitions"));
        check("Nodes", &known, Some("nodes"));
        check("max-iterations", &known, Some("max_iterations"));
        check("no", &known, Some("on"));
    }

    #[test]
    fn something_else_is_not_taken_for_a_slip() {
        check("retry", &["transitions", "nodes"], None);
        check("", &["a"], Some("a"));
        check("x", &[], None);
    }

    #[test]
    fn what_an_expression_cannot_name_is_no_identifier() {
        let names = ["item", "_x1", "my-item", "1x", "", "in", "a.b", "ä"];
        let allowed: Vec<&str> = names.into_iter().filter(|name| is_identifier(name)).collect();
        assert_eq!(allowed, ["item", "_x1"]);
    }
}
