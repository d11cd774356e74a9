//! The bounds that a user can reach or set, each with its unit and its reason.
//!
//! Owns the numbers; whoever enforces one names it in the error, so that a user can find it here.

/// The part of an actor id before the `:`. Kinds are words of our own code.
pub const KIND_BYTES_MAX: usize = 32;

/// The part of an actor id after the `:`. A caller's id (200) plus room for a suffix such as a lane.
pub const ACTOR_NAME_BYTES_MAX: usize = 256;

/// Ids that callers choose for requests and tasks, and names of executors and event types.
pub const ID_BYTES_MAX: usize = 200;

/// A key of an actor's storage. Keys are compared on every write; long ones belong into the value.
pub const KEY_BYTES_MAX: usize = 512;

/// One stored value, message body, task input, task result, event or reply.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Everything one turn writes. Larger work is split over turns, so that a batch stays within memory.
pub const TURN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many effects one turn may have: a fan-out of 100,000 with an event each, and room to spare.
pub const TURN_EFFECTS_MAX: usize = 1_000_000;

/// Rows returned by one scan of an actor's storage; the actor asks again from the last key.
pub const SCAN_ROWS_MAX: usize = 10_000;

/// The message kept of a failure. The whole of a long one is in the log of whoever failed.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// Tries of one message before it becomes a dead letter.
pub const MESSAGE_ATTEMPTS_MAX: u32 = 3;

/// Delay before the second try of a failing message; doubled for each further one.
pub const MESSAGE_RETRY_FIRST_MS: u64 = 100;

/// The longest delay between two tries of a message.
pub const MESSAGE_RETRY_MAX_MS: u64 = 10_000;

/// How long a caller's request id is remembered, so that a repeated request gets the first answer.
pub const REQUEST_MEMORY_MS: u64 = 24 * 60 * 60 * 1000;

/// Uncommitted turns at which runners wait for the committer. Also the largest batch: at 2 µs a row, about 20 ms.
pub const BATCH_TURNS_MAX: usize = 8_192;

/// Uncommitted bytes at which runners wait for the committer.
pub const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Memory of idle actors before the longest unused ones leave it. About 150,000 small actors.
pub const RESIDENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Outside requests accepted and not yet answered, over all actors. Further callers wait.
pub const REQUESTS_WAITING_MAX: usize = 16_384;

/// How long a caller waits for a place among them before it is told that the engine is busy.
pub const REQUEST_PATIENCE_MS: u64 = 10_000;

/// Waiting messages held in memory. Of what exceeds it only the place in line is held (about 100 bytes), the rest waits on disk.
pub const MAILBOX_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Alarms read ahead per shard.
pub const ALARMS_AHEAD_MAX: usize = 1_000;

/// How far ahead alarms are held in memory. Later ones wait on disk.
pub const ALARMS_AHEAD_MS: u64 = 60_000;

/// Tasks running at once in this process.
pub const TASKS_RUNNING_MAX: usize = 1_024;

/// Tasks waiting in memory for a place. What exceeds it waits on disk.
pub const TASKS_QUEUED_MAX: usize = 8_192;

/// Bytes of tasks waiting in memory for a place.
pub const TASKS_QUEUED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Rows of one page when a list is read for somebody outside.
pub const PAGE_ROWS_MAX: usize = 1_000;

/// Rows of one page when the engine reads waiting messages and tasks, whose values may be large.
pub const WAITING_ROWS_PER_READ: usize = 64;
