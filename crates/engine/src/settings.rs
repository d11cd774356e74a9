//! What an operator may set.
//!
//! Owns the defaults, which come from [`steadfast_core::limits`]; never reads a file or the environment.

use steadfast_core::limits;

/// Bounds and sizes of one engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Threads that run turns. Each owns the actors of its shards.
    pub runners: usize,
    /// Memory of idle actors before the longest unused ones leave it, over all runners.
    pub resident_bytes_max: usize,
    /// Memory of waiting messages before further ones are left on disk, over all runners.
    pub mailbox_bytes_max: usize,
    /// Uncommitted turns at which runners wait for the committer.
    pub batch_turns_max: usize,
    /// Outside requests accepted and not yet answered.
    pub requests_waiting_max: usize,
    /// How long a caller waits for a place among them before it is told that the engine is busy.
    pub request_patience_ms: u64,
    /// Tasks running at once.
    pub tasks_running_max: usize,
    /// Tasks waiting in memory for a place.
    pub tasks_queued_max: usize,
    /// How long a caller's request id is remembered.
    pub request_memory_ms: u64,
    /// Rows that one batch removes of an actor that goes.
    pub removed_rows_max: usize,
}

impl Settings {
    /// A runner's part of a bound that holds for all of them together.
    pub(crate) fn per_runner(&self, bytes: usize) -> usize {
        bytes / self.runners.max(1)
    }
}

impl Default for Settings {
    fn default() -> Self {
        // One core decides while the other commits; more runners pay off only with more cores than that.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            runners: (cores / 2).max(1),
            resident_bytes_max: limits::RESIDENT_BYTES_MAX,
            mailbox_bytes_max: limits::MAILBOX_BYTES_MAX,
            batch_turns_max: limits::BATCH_TURNS_MAX,
            requests_waiting_max: limits::REQUESTS_WAITING_MAX,
            request_patience_ms: limits::REQUEST_PATIENCE_MS,
            tasks_running_max: limits::TASKS_RUNNING_MAX,
            tasks_queued_max: limits::TASKS_QUEUED_MAX,
            request_memory_ms: limits::REQUEST_MEMORY_MS,
            removed_rows_max: limits::REMOVED_ROWS_MAX,
        }
    }
}
