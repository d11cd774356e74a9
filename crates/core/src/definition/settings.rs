//! Files of settings: one object of names with plain values, each with its place.
//!
//! Owns reading one and saying what is wrong with it, as with definitions. Never knows what a setting means.

use std::sync::Arc;

use super::problems::Problems;
use super::tree::{Content, Place, Tree};
use super::{Problem, names, yaml};

/// A setting as it was written.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, as text.
    pub value: String,
    /// A problem at its place that says nothing yet.
    spot: Problem,
}

impl Setting {
    /// What is wrong with its value.
    #[must_use]
    pub fn problem(&self, message: String) -> Problem {
        Problem { message, ..self.spot.clone() }
    }

    /// Where it is written: the file and the line.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.spot.file, self.spot.line)
    }
}

/// Reads a file of settings, of which only these are known; or says everything that is wrong with it.
pub fn settings(file: &str, text: &str, known: &[&str]) -> Result<Vec<Setting>, Vec<Problem>> {
    let mut problems = Problems::new(file, text);
    let documents = yaml::documents(text, &mut problems);
    let mut found = Vec::new();
    if let Some(second) = documents.get(1) {
        problems.error(second.at, "a file of settings is one document", "remove the `---`".to_owned());
    }
    if let Some(tree) = documents.first() {
        found = fields(tree, known, &mut problems);
    }
    if problems.has_errors() { Err(problems.into_sorted()) } else { Ok(found) }
}

fn fields(tree: &Arc<Tree>, known: &[&str], problems: &mut Problems<'_>) -> Vec<Setting> {
    let Content::Object(fields) = &tree.content else {
        let message = format!("expected settings, found {}", tree.described());
        problems.error(tree.at, message, "write `name: value` on each line".to_owned());
        return Vec::new();
    };
    let mut found = Vec::new();
    for field in fields {
        if !known.contains(&&*field.key) {
            let hint = problems.meant(&field.key, known.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("there are {}", names::listed(known.iter().copied())));
            problems.error(field.key_at, format!("unknown setting `{}`", field.key), hint);
            continue;
        }
        match plain(&field.value) {
            Some(value) => {
                let spot = problems.spot(place_of(&field.value, field.key_at));
                found.push(Setting { name: field.key.to_string(), value, spot });
            }
            None => {
                let message = format!("`{}` is {}, expected a text or a number", field.key, field.value.described());
                problems.error(place_of(&field.value, field.key_at), message, None);
            }
        }
    }
    found
}

/// Nothing has no place of its own.
fn place_of(value: &Tree, key_at: Place) -> Place {
    if value.at.start == value.at.end { key_at } else { value.at }
}

fn plain(value: &Tree) -> Option<String> {
    match &value.content {
        Content::Bool(value) => Some(value.to_string()),
        Content::Int(value) => Some(value.to_string()),
        Content::UInt(value) => Some(value.to_string()),
        Content::Text(text) => Some(text.to_string()),
        Content::Null | Content::Float(_) | Content::List(_) | Content::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let read = settings("s.yaml", text, &["listen", "retention"]);
        let told: Vec<String> = match read {
            Ok(found) => {
                found.iter().map(|found| format!("{} {} {}", found.place(), found.name, found.value)).collect()
            }
            Err(problems) => problems
                .iter()
                .map(|found| {
                    format!(
                        "{}:{} {} ({})",
                        found.line,
                        found.column,
                        found.message,
                        found.hint.as_deref().unwrap_or("")
                    )
                })
                .collect(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn settings_are_read_with_their_places() {
        check("", &[]);
        check(
            "# nothing\nlisten: 127.0.0.1:80\nretention: 3\n",
            &["s.yaml:2 listen 127.0.0.1:80", "s.yaml:3 retention 3"],
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_its_place() {
        check(
            "lisen: a\nretention: [1]\nx: 1\n",
            &[
                "1:1 unknown setting `lisen` (did you mean `listen`?)",
                "2:12 `retention` is a list, expected a text or a number ()",
                "3:1 unknown setting `x` (there are `listen` and `retention`)",
            ],
        );
        check("- a\n", &["1:1 expected settings, found a list (write `name: value` on each line)"]);
    }
}
