//! An actor's storage as it is on disk, for those who only look.

use std::ops::Bound;

use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::turn::{Entries, Storage, TurnError};
use steadfast_store::{Reader, StoreError};

/// The committed storage of one actor.
pub(crate) struct CommittedStorage<'r> {
    pub(crate) actor: &'r ActorId,
    pub(crate) reader: &'r dyn Reader,
}

impl Storage for CommittedStorage<'_> {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        self.reader.get(self.actor, key).map_err(unavailable)
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        self.reader.scan(self.actor, from, to, limit).map_err(unavailable)
    }
}

pub(super) fn unavailable(error: StoreError) -> TurnError {
    match error {
        StoreError::Damaged(_) => TurnError::failed(error.to_string()),
        // Without what whoever tells it says anyway.
        StoreError::Failed(reason) => TurnError::StoreUnavailable(reason),
        StoreError::Full(_) | StoreError::ReadOnly(_) | StoreError::Busy(_) | StoreError::TakenOver(_) => {
            TurnError::StoreUnavailable(error.to_string())
        }
    }
}
