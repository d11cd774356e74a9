//! Definitions in memory, for runs that are simulated.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_core::definition::{Definition, DefinitionKind, Parsed};
use steadfast_core::graph::protocol::Pins;
use steadfast_core::graph::source::Definitions;
use steadfast_core::turn::TurnError;

/// Definitions that were read together, all of them at version 1.
#[derive(Debug)]
pub struct Book {
    definitions: BTreeMap<(DefinitionKind, String), Arc<Definition>>,
    /// What each task says that it gives.
    outputs: BTreeMap<String, serde_json::Value>,
}

impl Book {
    /// The version of everything in a book.
    pub(super) const VERSION: u32 = 1;

    /// A book of definitions that were checked.
    #[must_use]
    pub fn of(all: Vec<Parsed>) -> Self {
        let mut book = Self { definitions: BTreeMap::new(), outputs: BTreeMap::new() };
        for Parsed { kind, name, document, definition } in all {
            let output = document.get("output").and_then(|schema| serde_json::Value::try_from(schema).ok());
            if let Some(output) = output.filter(|_| kind == DefinitionKind::Task) {
                book.outputs.insert(name.clone(), output);
            }
            book.definitions.insert((kind, name), Arc::new(definition));
        }
        book
    }

    /// A definition.
    #[must_use]
    pub fn find(&self, kind: DefinitionKind, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(&(kind, name.to_owned()))
    }

    /// The schema of what a task gives, if it has one.
    pub(super) fn output_of(&self, task: &str) -> Option<&serde_json::Value> {
        self.outputs.get(task)
    }

    pub(super) fn pins(&self) -> Pins {
        let pin = |(kind, name): &(DefinitionKind, String)| (Pins::key(*kind, name), Self::VERSION);
        Pins(Arc::new(self.definitions.keys().map(pin).collect()))
    }
}

impl Definitions for Book {
    fn get(&self, kind: DefinitionKind, name: &str, _version: u32) -> Result<Arc<Definition>, TurnError> {
        let found = self.find(kind, name).cloned();
        found.ok_or_else(|| TurnError::failed(format!("no {} `{name}` is simulated", kind.name())))
    }
}
