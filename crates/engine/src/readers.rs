//! Connections that read what is on disk, for those who look from outside.
//!
//! Owns the idle ones: each caller has one to itself while it reads, so that a long read holds up nobody. Runners and the dispatcher have
//! their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_store::{Reader, Store, StoreError};

/// Connections kept while nobody reads.
const IDLE_MAX: usize = 8;

/// Connections to a store, until it is closed.
pub(crate) struct Readers(Mutex<Option<Open>>);

struct Open {
    store: Arc<dyn Store>,
    idle: Vec<Box<dyn Reader>>,
}

impl Readers {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(Mutex::new(Some(Open { store, idle: Vec::new() })))
    }

    /// Reads what is on disk now.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&dyn Reader) -> T) -> Result<T, StoreError> {
        let (idle, store) = {
            let mut open = self.lock();
            let open = open.as_mut().ok_or_else(stopped)?;
            (open.idle.pop(), open.store.clone())
        };
        let reader = idle.map_or_else(|| store.reader(), Ok)?;
        drop(store);
        let result = read(&*reader);
        if let Some(open) = self.lock().as_mut().filter(|open| open.idle.len() < IDLE_MAX) {
            open.idle.push(reader);
        }
        Ok(result)
    }

    /// Gives up the store and all connections that nobody uses.
    pub(crate) fn close(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        // Nothing panics half way in here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine has ended.
pub(crate) fn stopped() -> StoreError {
    StoreError::Failed("the engine has stopped".to_owned())
}
