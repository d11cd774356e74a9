//! The bounds of the server: what a client can send, and for how long.
//!
//! Owns the numbers with their reasons. Each is told to whoever reaches it.

use std::time::Duration;

/// What whoever runs a server may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. When there are more, the one that has been silent for longest is closed; where all are busy, new ones wait. Each may
    /// be a stream that costs a few KiB. Fewer where the system gives this process fewer files.
    pub connections: usize,
    /// The largest body of a request. A value in the engine may have 8 MiB.
    pub body_bytes: usize,
    /// For the head of a request to arrive, and between two requests on a connection.
    pub head_timeout: Duration,
    /// For the body of a request to arrive: 8 MiB over a slow line.
    pub body_timeout: Duration,
    /// For the other side to take anything of an answer.
    pub write_timeout: Duration,
    /// For requests under way to end when the server stops.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            body_bytes: 8 * 1024 * 1024,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_grace: Duration::from_secs(10),
        }
    }
}

/// The head of a request, and of each part of its body that is held at once.
pub(crate) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Files that connections leave to others: the store, its readers, what tasks open.
pub(crate) const FILES_RESERVED: u64 = 256;

/// Rows on a page when nothing is said.
pub(crate) const PAGE_ROWS_DEFAULT: usize = 50;

/// Rows on a page at most; that of the engine.
pub(crate) const PAGE_ROWS_MAX: usize = steadfast_core::limits::PAGE_ROWS_MAX;

/// Events in a part of a stream. A part is held whole, and events may be large.
pub(crate) const STREAM_ROWS: usize = 100;

/// Reads of the store at once: each has a connection to it and a thread. A thousand streams of one busy run take turns.
pub(crate) const READS_MAX: usize = 16;

/// Pages of the store read for one page of an answer, where most of the rows may be passed by.
pub(crate) const PAGES_READ_MAX: usize = 100;

/// How long an answer may wait for the end of a run. Longer ones are cut by proxies.
pub(crate) const WAIT_MS_MAX: u64 = 5 * 60 * 1000;

/// Tasks lent to a worker at once.
pub(crate) const LEASES_AT_ONCE_MAX: usize = 100;

/// How long a task is lent: when nothing is said, at least (a heartbeat takes a moment), and at most (so long nobody notices that a worker is gone).
pub(crate) const LEASE_DEFAULT: Duration = Duration::from_secs(30);
pub(crate) const LEASE_MS_MIN: u64 = 1_000;
pub(crate) const LEASE_MS_MAX: u64 = 60 * 60 * 1000;

/// After how long without a word a worker is taken for silent, when a run is taken up again and nothing is said.
pub(crate) const SILENT_DEFAULT: Duration = Duration::from_secs(30);

/// What a worker says of how far it is. It is kept in memory.
pub(crate) const PROGRESS_BYTES_MAX: usize = 4 * 1024;

/// How often a silent stream shows that it is alive: proxies cut connections that are silent for a minute or half.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After an accept that failed, mostly for want of file descriptors; and for a connection to leave that was told to.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
