//! Definitions for runs, read from the store and kept in memory.
//!
//! A version never changes, so what was read once stays right. A version is committed before anybody can hear of it, so reading what is on disk
//! is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_core::catalog;
use steadfast_core::definition::{Definition, DefinitionKind, compile};
use steadfast_core::expression::Value;
use steadfast_core::graph::source::Definitions;
use steadfast_core::turn::{Storage, TurnError};
use steadfast_store::Reader;

use super::storage::CommittedStorage;

/// Compiled definitions kept in memory; when there are more, all are forgotten and read again as they are needed.
const KEPT_MAX: usize = 1_024;

type Key = (DefinitionKind, String, u32);

/// The definitions of a store.
pub(crate) struct StoredDefinitions {
    inner: Mutex<Inner>,
}

struct Inner {
    reader: Box<dyn Reader>,
    compiled: BTreeMap<Key, Arc<Definition>>,
}

impl StoredDefinitions {
    pub(crate) fn new(reader: Box<dyn Reader>) -> Self {
        Self { inner: Mutex::new(Inner { reader, compiled: BTreeMap::new() }) }
    }
}

impl Definitions for StoredDefinitions {
    fn get(&self, kind: DefinitionKind, name: &str, version: u32) -> Result<Arc<Definition>, TurnError> {
        // What is inside stays whole whatever panics: a reader, and finished entries.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, name.to_owned(), version);
        if let Some(known) = inner.compiled.get(&key) {
            return Ok(known.clone());
        }
        let actor = catalog::actor();
        let storage = CommittedStorage { actor: &actor, reader: &*inner.reader };
        let found = Arc::new(read(&storage, kind, name, version)?);
        if inner.compiled.len() == KEPT_MAX {
            inner.compiled.clear();
        }
        inner.compiled.insert(key, found.clone());
        Ok(found)
    }
}

/// Reads and compiles one version.
fn read(storage: &dyn Storage, kind: DefinitionKind, name: &str, version: u32) -> Result<Definition, TurnError> {
    let shown = || format!("{} `{name}@{version}`", kind.name());
    let stored = storage.get(&catalog::version_key(kind, name, version))?;
    let stored = stored.ok_or_else(|| TurnError::failed(format!("{} is not in the store", shown())))?;
    let document = Value::from_json(&catalog::document(&stored)?)?;
    compile(&document).map_err(|problems| {
        let problems: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        TurnError::failed(format!("{} cannot be used by this version: {}", shown(), problems.join("; ")))
    })
}
