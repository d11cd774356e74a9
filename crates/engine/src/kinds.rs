//! The kinds of actor that this process knows.
//!
//! Owns the registry. An actor of a kind that is not here is left alone: its rows stay as they are until a process that
//! knows the kind opens the store.

use std::collections::BTreeMap;

use steadfast_core::ids::ActorId;
use steadfast_core::turn::Kind;

/// Kinds by name.
#[derive(Default)]
pub struct Kinds(BTreeMap<String, Box<dyn Kind>>);

impl Kinds {
    /// Adds a kind; the last one of a name counts.
    pub fn insert(&mut self, name: &str, kind: impl Kind + 'static) {
        self.0.insert(name.to_owned(), Box::new(kind));
    }

    pub(crate) fn of(&self, actor: &ActorId) -> Option<&dyn Kind> {
        self.0.get(actor.kind()).map(|kind| &**kind)
    }

    pub(crate) fn knows(&self, actor: &ActorId) -> bool {
        self.0.contains_key(actor.kind())
    }
}
