//! Who wants to hear that a history has grown.
//!
//! Owns the waiting; what has been added is read from the store, by whoever waited. So a slow reader holds up nobody and misses nothing, and
//! nothing is seen that is not on disk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::ids::ActorId;
use steadfast_store::batch::Batch;
use tokio::sync::watch;

/// Which histories somebody watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Watched {
    /// That of one actor.
    Actor(ActorId),
    /// Those of a tree of runs, by the id of its top.
    Tree(Arc<str>),
    /// All of them.
    Everything,
}

/// Somebody who watches.
pub struct Watching(watch::Receiver<()>);

/// All who watch.
#[derive(Default)]
pub(crate) struct Watchers {
    by_watched: Mutex<HashMap<Watched, watch::Sender<()>>>,
    /// So that a commit costs nothing more while nobody watches.
    count: AtomicUsize,
}

impl Watching {
    /// Waits until something was added since the last call, or since the watching began. `false` when the engine has ended.
    pub async fn has_grown(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Watchers {
    /// Begins to watch. What is committed from now on is told.
    pub(crate) fn watch(&self, watched: Watched) -> Watching {
        let mut all = self.lock();
        let sender = all.entry(watched).or_insert_with(|| watch::Sender::new(()));
        let watching = Watching(sender.subscribe());
        self.count.store(all.len(), Ordering::Release);
        watching
    }

    /// Tells all who watch what a batch has added to, which is on disk.
    pub(crate) fn tell(&self, batch: &Batch) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut all = self.lock();
        let mut has_grown = false;
        for (actor, writes) in batch.actors.iter().filter(|(_, writes)| !writes.events.is_empty()) {
            has_grown = true;
            tell(&mut all, &Watched::Actor(actor.clone()));
            if let Some(root) = &writes.root {
                tell(&mut all, &Watched::Tree(root.clone()));
            }
        }
        if has_grown {
            tell(&mut all, &Watched::Everything);
        }
        self.count.store(all.len(), Ordering::Release);
    }

    /// Ends all watching.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Watched, watch::Sender<()>>> {
        // Nothing panics half way in here.
        self.by_watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells those who watch this. Nobody does so any more: it is forgotten.
fn tell(all: &mut HashMap<Watched, watch::Sender<()>>, watched: &Watched) {
    if all.get(watched).is_some_and(|sender| sender.send(()).is_err()) {
        all.remove(watched);
    }
}
