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

/// Tokens whose work begins in one turn of a run, so that a fan-out of 10,000 is one batch, unless its branches begin with tasks (see
/// [`TURN_TASKS_MAX`]): about a tenth of a second. The rest follows in the next turn, and other actors have theirs in between.
pub const TURN_TOKENS_MAX: usize = 10_000;

/// Tasks that are handed to executors in one turn of a run. The rest follows in the next turn, so that the first ones run while the others are begun.
pub const TURN_TASKS_MAX: usize = 250;

/// Tokens of one run. A loop without a bound ends here, with `loop_limit`; a fan-out of 100,000 makes 200,000.
pub const RUN_TOKENS_MAX: u64 = 1_000_000;

/// Branches that one transition may open.
pub const BRANCHES_MAX: u64 = 400_000;

/// Group instances that a token may be inside of. Runs nest without limit; fan-outs within one run are nested as the graph is drawn.
pub const LINEAGE_MAX: usize = 64;

/// Tokens and group instances active in one branch, outside of groups inside it. They are kept in one row.
pub const BRANCH_ACTIVE_MAX: usize = 1_000;

/// Fields of `state` or `output` that may be read together, as by `size(state)`, or by a run's output that is all of `output`. A run with more fails.
pub const CONTEXT_FIELDS_MAX: usize = 5_000;

/// What all branches of a group bring to its join, as it is stored. A hundred thousand branches bring 40 MiB of 400 bytes each.
pub const JOIN_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Rows that one batch removes of an actor that goes. More go with the next ones, so that other turns do not wait for long.
pub const REMOVED_ROWS_MAX: usize = 500;

/// Signals kept for a run that nobody waits for yet.
pub const SIGNALS_KEPT_MAX: u64 = 10_000;

/// Callers that wait for the end of one run.
pub const RUN_WAITERS_MAX: u64 = 1_000;

/// Artifacts of one run.
pub const ARTIFACTS_MAX: usize = 1_000;

/// The longest pause that whoever is called may ask for with `Retry-After`.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Rows returned by one scan of an actor's storage; the actor asks again from the last key.
pub const SCAN_ROWS_MAX: usize = 10_000;

/// The message kept of a failure. The whole of a long one is in the log of whoever failed.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// Details of a failure inside a run: they go with every token that comes after, on an error path.
pub const FAILURE_DETAILS_BYTES_MAX: usize = 8 * 1024;

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

/// Retries, and lost tasks, of a run that are taken up again at once, and parked ones that are handed out again. Somebody can ask again.
pub const RECOVERED_MAX: usize = 1_000;

/// What is said of each group instance, and outside of all of them, when somebody asks what a run waits for. People read it.
pub const WHY_WIDTH_MAX: usize = 5;

/// What is said altogether then.
pub const WHY_WAITS_MAX: usize = 500;

/// Runs below that are looked into then. Below the last one, somebody can ask again.
pub const WHY_RUNS_MAX: usize = 100;

/// Rows of one page when the engine reads waiting messages and tasks, whose values may be large.
pub const WAITING_ROWS_PER_READ: usize = 64;

/// How deep lists and objects may be nested in a value. JSON is read back to 128 levels; a value is also stored inside of others.
pub const VALUE_DEPTH_MAX: usize = 100;

/// The text of one expression. Longer ones are programs and belong into a task.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;

/// Brackets inside brackets in an expression, and conditions (`? :`) before. Parsing takes about 16 KiB of stack for each, unoptimised.
pub const EXPRESSION_NESTING_MAX: usize = 32;

/// Words and signs of one expression.
pub const EXPRESSION_WORDS_MAX: usize = 1_000;

/// Steps of one evaluation: an operation, an item looked at, or 64 bytes of text copied. A few tens of milliseconds.
pub const EXPRESSION_STEPS_MAX: usize = 1_000_000;

/// The values shown in the error of an evaluation.
pub const EXPRESSION_SEEN_MAX: usize = 8;

/// What is shown of one value in an error.
pub const VALUE_SHOWN_BYTES_MAX: usize = 80;

/// Memory of one compiled regular expression. A pattern may come from data.
pub const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// Violations of a schema that are told at once. Whoever mends these sees the next ones.
pub const VIOLATIONS_MAX: usize = 20;

/// A file of definitions. A workflow of 10,000 nodes takes about 2 MiB.
pub const DEFINITION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Values in one document, counted after aliases are filled in: a few lines of aliases of aliases would make billions.
pub const DEFINITION_VALUES_MAX: usize = 1_000_000;

/// How deep values may be inside each other in a document. They are walked by recursion, and nobody writes more by hand.
pub const DEFINITION_DEPTH_MAX: usize = 64;

/// Problems told of one file. Whoever has more mends the first ones first.
pub const DEFINITION_PROBLEMS_MAX: usize = 1_000;

/// Characters shown of the line that a problem is on.
pub const PROBLEM_SOURCE_CHARS_MAX: usize = 120;

/// Names of definitions, nodes, groups, signals and functions.
pub const NAME_BYTES_MAX: usize = 100;

/// Nodes of one workflow. Larger ones are split into sub-workflows.
pub const NODES_MAX: usize = 10_000;

/// Transitions of one workflow.
pub const TRANSITIONS_MAX: usize = 10_000;

/// Steps taken to find which joins close which groups, about a tenth of a second. Only groups opened inside each other by the hundred need more.
pub const GROUP_CHECK_STEPS_MAX: usize = 20_000_000;

/// Attempts that a definition may ask for.
pub const RETRY_ATTEMPTS_MAX: u32 = 10_000;

/// The longest duration that a definition may name: ten years of 366 days.
pub const DURATION_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// How long one attempt of an `http` or `command` task may take when nobody says. Longer than any request should, short enough that a
/// connection that hangs is noticed.
pub const TASK_TIMEOUT_MS_DEFAULT: u64 = 5 * 60 * 1000;

/// How long to wait for a connection before an HTTP request counts as failed.
pub const HTTP_CONNECT_TIMEOUT_MS: u64 = 10_000;

/// Redirects followed for one HTTP request.
pub const HTTP_REDIRECTS_MAX: usize = 5;

/// What a failure shows of a response's body, of a program's output or of its errors.
pub const EXCERPT_BYTES_MAX: usize = 1_024;

/// The shortest secret that is looked for in results: a shorter one would blot out half of every text.
pub const SECRET_BYTES_MIN: usize = 4;

/// How deep a value made from a mock's schema goes.
pub const MOCK_DEPTH_MAX: usize = 16;

/// How many items an array made from a mock's schema has, whatever `minItems` says.
pub const MOCK_ITEMS_MAX: usize = 100;

/// Operations inside operations, as each `+` in `1 + 2 + 3`. Each takes about 8 KiB of stack, unoptimised, of 2 MiB.
pub const EXPRESSION_DEPTH_MAX: usize = 100;

/// Steps taken to find writes that are lost in a branch. Beyond it such warnings are left out.
pub const WRITE_CHECK_STEPS_MAX: usize = 2_000_000;
