//! A store in memory that fails when it is told to.
//!
//! Owns the ways in which a commit can fail. The worst is the uncertain one: the store says no, but after a crash the rows are
//! there all the same, as when an fsync fails after the disk has got the data.

use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_store::batch::Batch;
use steadfast_store::memory::MemoryStore;
use steadfast_store::{Reader, Store, StoreError};

/// How the next commit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CommitFault {
    /// Well.
    #[default]
    None,
    /// It fails, and nothing of it is there.
    Fails,
    /// It fails, and after a crash all of it may be there.
    FailsUncertainly,
}

/// A store in memory that can fail.
#[derive(Default)]
pub(crate) struct FaultyStore {
    rows: MemoryStore,
    faults: Mutex<Faults>,
}

#[derive(Default)]
struct Faults {
    next: CommitFault,
    uncertain: Option<Batch>,
}

/// Whether an uncertain commit turns out to have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncertain {
    /// It did.
    Appears,
    /// It did not.
    Vanishes,
}

impl FaultyStore {
    /// Makes the next commit end like this.
    pub(crate) fn set_next(&self, fault: CommitFault) {
        self.faults().next = fault;
    }

    /// What a crash leaves on the disk.
    pub(crate) fn crash(&self, uncertain: Uncertain) {
        let batch = self.faults().uncertain.take();
        if let (Some(batch), Uncertain::Appears) = (batch, uncertain) {
            self.rows.commit(&batch).expect("a store in memory takes every batch");
        }
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for FaultyStore {
    fn begin_boot(&self) -> Result<u32, StoreError> {
        self.rows.begin_boot()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut faults = self.faults();
        match std::mem::take(&mut faults.next) {
            CommitFault::None => {
                // Whatever the failed commit left in the log is overwritten by this one.
                faults.uncertain = None;
                self.rows.commit(batch)
            }
            CommitFault::Fails => Err(StoreError::Full("simulated".to_owned())),
            CommitFault::FailsUncertainly => {
                faults.uncertain = Some(batch.clone());
                Err(StoreError::Failed("simulated fsync error".to_owned()))
            }
        }
    }

    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }
}
