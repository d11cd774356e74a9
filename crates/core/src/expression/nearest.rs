//! Which known name was probably meant.
//!
//! Owns how alike two names are: the same for functions of expressions and for everything that a definition names.
//! Start reading at [`closest`].

use crate::limits;

/// The known name that is most like `found`, if one is alike.
pub(crate) fn closest<'n>(found: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
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
}
