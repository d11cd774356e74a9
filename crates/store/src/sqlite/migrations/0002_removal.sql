-- What finding and removing old runs needs.

-- Runs at the top of a tree, by their end.
CREATE INDEX runs_by_end ON runs (ended_at, number) WHERE parent IS NULL AND ended_at IS NOT NULL;

-- Dead letters of one actor.
CREATE INDEX dead_letters_by_actor ON dead_letters (shard, actor, id);
