//! What an expression reads, found when it is parsed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The variables an expression reads, each with the fields of it that are enough.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reads(pub BTreeMap<String, Fields>);

/// How much of a variable is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fields {
    /// All of it, as in `size(state)`.
    All,
    /// Only these of its fields, as in `state.a + state.b.c`.
    Only(BTreeSet<String>),
}

impl Reads {
    /// What all of `parts` read together. Of a single one it is that itself: most have one, and are read again and again.
    pub fn of_all<'a>(parts: impl IntoIterator<Item = &'a Reads>) -> Cow<'a, Reads> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().map_or_else(|| Cow::Owned(Self::default()), Cow::Borrowed);
        for part in parts {
            all.to_mut().merge(part);
        }
        all
    }

    /// Adds what `other` reads.
    pub fn merge(&mut self, other: &Reads) {
        for (variable, fields) in &other.0 {
            match fields {
                Fields::All => self.add_all(variable),
                Fields::Only(fields) => fields.iter().for_each(|field| self.add_field(variable, field)),
            }
        }
    }

    /// Adds one field of a variable.
    pub fn add_field(&mut self, variable: &str, field: &str) {
        let fields = self.0.entry(variable.to_owned()).or_insert_with(|| Fields::Only(BTreeSet::new()));
        match fields {
            Fields::All => {}
            Fields::Only(fields) => {
                fields.insert(field.to_owned());
            }
        }
    }

    /// Adds a whole variable.
    pub fn add_all(&mut self, variable: &str) {
        self.0.insert(variable.to_owned(), Fields::All);
    }

    /// How much of `variable` is read; `None` when nothing is.
    #[must_use]
    pub fn of(&self, variable: &str) -> Option<&Fields> {
        self.0.get(variable)
    }
}
