-- The rows of version 1. Never edited once released: a change is a further migration.
--
-- Every key leads with the shard, so that shards can live on different machines one day. Only types that other databases
-- have too; payloads are JSON text, times are milliseconds since 1970-01-01 UTC.
--
-- Tables with payloads keep SQLite's row ids: without them a payload lies beside its key, and every search that passes by
-- reads all of it to compare the key, so that one large value slows down all of its neighbours.

-- What actors keep.
CREATE TABLE state (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (shard, actor, key)
);

-- Messages sent and not consumed. `origin` is `actor`, `outside` or `engine`; `sender` is the actor that sent it.
CREATE TABLE messages (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    origin TEXT NOT NULL,
    sender TEXT,
    body TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    PRIMARY KEY (shard, actor, sequence)
);

-- The alarms that are set, at most one an actor.
CREATE TABLE alarms (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    due BIGINT NOT NULL,
    PRIMARY KEY (shard, actor)
) WITHOUT ROWID;

CREATE INDEX alarms_by_due ON alarms (shard, due, actor);

-- Tasks dispatched and not settled.
CREATE TABLE tasks (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    task TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    executor TEXT NOT NULL,
    input TEXT NOT NULL,
    PRIMARY KEY (shard, actor, task)
);

CREATE INDEX tasks_by_sequence ON tasks (shard, sequence, actor, task);

-- Those that are left to workers outside, by their queue: `worker:<queue>`.
CREATE INDEX tasks_of_workers ON tasks (executor, sequence) WHERE executor >= 'worker:' AND executor < 'worker;';

-- Requests whose ids are remembered. `reply` is null until there is one.
CREATE TABLE requests (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    request TEXT NOT NULL,
    reply TEXT,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (shard, actor, request)
);

CREATE INDEX requests_by_expiry ON requests (shard, expires_at, actor, request);

-- The histories of actors. A row holds what a commit added to one, or a part of that, as a list of objects with `at`,
-- `type` and `data`; `first` and `last` are the numbers of its first and last event.
CREATE TABLE history (
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    last BIGINT NOT NULL,
    first BIGINT NOT NULL,
    root TEXT,
    events TEXT NOT NULL,
    PRIMARY KEY (shard, actor, last)
);

-- Row ids grow with the commits. `root` is the run at the top of the tree that an actor's history is part of.
CREATE INDEX history_by_root ON history (root) WHERE root IS NOT NULL;

-- The same for people, a row for each event.
CREATE VIEW events AS
SELECT
    history.shard,
    history.actor,
    history.first + event.key AS sequence,
    event.value ->> 'at' AS at,
    event.value ->> 'type' AS type,
    event.value -> 'data' AS data
FROM history, json_each(history.events) AS event;

-- The runs, in the order in which they began. `parent` is the run that started it, `root` the one at the top of its tree.
CREATE TABLE runs (
    number INTEGER NOT NULL PRIMARY KEY,
    shard BIGINT NOT NULL,
    actor TEXT NOT NULL,
    workflow TEXT NOT NULL,
    version BIGINT NOT NULL,
    status TEXT NOT NULL,
    parent TEXT,
    root TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    UNIQUE (shard, actor)
);

CREATE INDEX runs_by_status ON runs (status, number);
CREATE INDEX runs_by_workflow ON runs (workflow, status, number);
CREATE INDEX runs_by_root ON runs (root, number) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_parent ON runs (parent, number) WHERE parent IS NOT NULL;

-- How many there are, so that nobody has to count them.
CREATE TABLE run_counts (
    workflow TEXT NOT NULL,
    status TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (workflow, status)
) WITHOUT ROWID;

-- Inputs that were given up, and why.
CREATE TABLE dead_letters (
    shard BIGINT NOT NULL,
    id BIGINT NOT NULL,
    actor TEXT NOT NULL,
    input TEXT NOT NULL,
    error TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (shard, id)
);

-- Facts about the store itself, such as how often it was opened for running (`boot`).
CREATE TABLE meta (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) WITHOUT ROWID;
