//! Counts of what the engine did.
//!
//! Owns the counters; never decides by them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a running engine.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Metrics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Metrics {
                Metrics { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Turns that are on disk, with what the engine itself adds to batches: messages from outside, retries, dead letters, repeated
    /// answers.
    turns_committed,
    /// Commits that succeeded. `turns_committed / commits` is the mean batch.
    commits,
    /// Commits that failed.
    commits_failed,
    /// Turns that failed and left no trace.
    turns_failed,
    /// Inputs that were given up and kept.
    dead_letters,
    /// Inputs without effect: repeated, superseded, or of a caller that had left.
    inputs_dropped,
    /// Actors read from the store.
    loads,
    /// Actors that left memory.
    evictions,
    /// Actors that were removed with all their rows.
    actors_removed,
    /// Alarms that fired.
    alarms_fired,
    /// Tasks handed to executors.
    tasks_started,
    /// Tasks whose result a turn has taken.
    tasks_settled,
    /// Tasks whose result a turn has taken, and that failed.
    tasks_failed,
    /// Tasks that were called off while they waited in memory or ran.
    tasks_cancelled,
    /// Tasks for which this process lacks something, left on disk. What it lacks is in [`crate::Engine::parked_tasks`].
    tasks_parked,
    /// Messages for kinds that this process does not know, left on disk.
    messages_parked,
    /// Messages whose body was left on disk because memory was full.
    messages_spilled,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }
}
