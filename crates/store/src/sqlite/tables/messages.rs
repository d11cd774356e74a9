//! Messages that were sent and are not consumed.

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, Sequence, Shard};

use crate::StoreError;
use crate::batch::{Batch, MessageChange};
use crate::number::{bound, storable};
use crate::rows::{MessageRow, Origin};
use crate::sqlite::row::{self, Stored, Table, list_sound, one};

const TABLE: Table = Table { name: "messages", keys: 3 };

const INSERT: &str = "INSERT INTO messages (shard, actor, sequence, origin, sender, body, attempts, not_before)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const RETRY: &str =
    "UPDATE messages SET attempts = ?4, not_before = ?5 WHERE shard = ?1 AND actor = ?2 AND sequence = ?3";

const DELETE: &str = "DELETE FROM messages WHERE shard = ?1 AND actor = ?2 AND sequence = ?3";

const LIST: &str = "SELECT shard, actor, sequence, origin, sender, body, attempts, not_before FROM messages
    WHERE shard = ?1 AND (actor, sequence) > (?2, ?3) ORDER BY actor, sequence";

const ONE: &str = "SELECT shard, actor, sequence, origin, sender, body, attempts, not_before FROM messages
    WHERE shard = ?1 AND actor = ?2 AND sequence = ?3";

const ACTORS: &str =
    "SELECT DISTINCT shard, actor FROM messages WHERE shard = ?1 AND actor >= ?2 AND actor < ?3 LIMIT ?4";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(INSERT)?;
    let mut retry = connection.prepare_cached(RETRY)?;
    let mut delete = connection.prepare_cached(DELETE)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        for (sequence, change) in &writes.messages {
            let sequence = storable(sequence.0)?;
            match change {
                MessageChange::Insert(row) => {
                    let (origin, sender) = stored_origin(&row.origin);
                    let not_before = storable(row.not_before.0)?;
                    let body = row.body.as_str();
                    insert.execute((shard, actor, sequence, origin, sender, body, row.attempts, not_before))?
                }
                MessageChange::Retry { attempts, not_before } => {
                    retry.execute((shard, actor, sequence, attempts, storable(not_before.0)?))?
                }
                MessageChange::Delete => delete.execute((shard, actor, sequence))?,
            };
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn page(
    connection: &Connection,
    shard: Shard,
    after: Option<(&ActorId, Sequence)>,
    limit: usize,
) -> Result<Vec<MessageRow>, StoreError> {
    let (actor, sequence) = after.map_or(("", 0), |(actor, sequence)| (actor.as_str(), bound(sequence.0)));
    list_sound(connection, TABLE, LIST, (shard.0, actor, sequence), limit, message)
}

pub(in crate::sqlite) fn get(
    connection: &Connection,
    actor: &ActorId,
    sequence: Sequence,
) -> Result<Option<MessageRow>, StoreError> {
    one(connection, TABLE, ONE, (actor.shard().0, actor.as_str(), bound(sequence.0)), message)
}

pub(in crate::sqlite) fn actors(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> Result<Vec<ActorId>, StoreError> {
    row::actors(connection, TABLE, ACTORS, prefix, limit)
}

fn message(row: &Stored<'_>) -> Result<MessageRow, StoreError> {
    Ok(MessageRow {
        actor: row.owner(1)?,
        sequence: row.sequence(2)?,
        origin: origin(row)?,
        body: row.json(5)?,
        attempts: row.small_number(6)?,
        not_before: row.timestamp(7)?,
    })
}

fn stored_origin(origin: &Origin) -> (&'static str, Option<&str>) {
    match origin {
        Origin::Actor(sender) => ("actor", Some(sender.as_str())),
        Origin::Outside => ("outside", None),
        Origin::Engine => ("engine", None),
    }
}

fn origin(row: &Stored<'_>) -> Result<Origin, StoreError> {
    match row.text(3)? {
        "actor" => Ok(Origin::Actor(row.id(4, ActorId::parse)?)),
        "outside" => Ok(Origin::Outside),
        "engine" => Ok(Origin::Engine),
        unknown => Err(row.damaged(3, &format!("is `{unknown}`, expected `actor`, `outside` or `engine`"))),
    }
}
