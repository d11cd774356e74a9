//! From turns to disk: gathering, committing, and the gate that holds back what leaves.
//!
//! Owns the order in which turns become durable. Runners put each turn into the [`Gather`]; the committer takes everything
//! gathered as one batch, writes it with one fsync, and only then lets its [`Output`]s go. Never runs a turn.

mod gather;
mod output;

pub(crate) use gather::Progress;
pub use gather::{Batched, Gather, Health, RolledBack};
pub use output::{Answer, Output, RequestError, TaskCancel, TaskNews, TaskStart, Waiter};

use steadfast_store::batch::Batch;
use steadfast_store::{Store, StoreError};

/// What became of one attempt to commit.
pub enum Commit {
    /// Nothing was waiting.
    Nothing,
    /// Everything gathered is on disk. These may go now.
    Done(Vec<Output>),
    /// Nothing of it is visible, though after a crash it may turn out to be there. Runners must go back to what is on disk; these
    /// callers must be told.
    Failed(Vec<Output>, StoreError),
}

/// Writes everything gathered so far as one batch.
pub fn commit_gathered(gather: &Gather, store: &dyn Store) -> Commit {
    gather.take().map_or(Commit::Nothing, |batched| commit(gather, store, batched))
}

/// Writes what was taken from the gathering.
pub fn commit(gather: &Gather, store: &dyn Store, batched: Batched) -> Commit {
    let written = if batched.batch.is_empty() { Ok(()) } else { store.commit(&batched.batch) };
    match written {
        Ok(()) => {
            gather.committed(&batched);
            gather.watchers.tell(&batched.batch);
            let Batched { batch, mut outputs, .. } = batched;
            outputs.retain(|output| stands(&batch, output));
            Commit::Done(outputs)
        }
        Err(error) => {
            let mut outputs = batched.outputs;
            outputs.extend(gather.roll_back(&error));
            Commit::Failed(outputs, error)
        }
    }
}

/// A task that was dispatched, and called off or replaced, in one batch was never on disk, so it must not start.
fn stands(batch: &Batch, output: &Output) -> bool {
    match output {
        Output::Task(TaskNews::Start(start)) => batch.inserts_task(&start.actor, &start.task, start.sequence),
        Output::Task(TaskNews::Cancel(_)) | Output::Answer(..) => true,
    }
}
