//! Requests whose ids are remembered, with their answers.

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, RequestId, Shard};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;

use crate::StoreError;
use crate::batch::Batch;
use crate::number::{bound, storable};
use crate::rows::RequestRow;
use crate::sqlite::row::{Stored, Table, list_sound, one};

const TABLE: Table = Table { name: "requests", keys: 3 };

const PUT: &str = "INSERT INTO requests (shard, actor, request, reply, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (shard, actor, request) DO UPDATE SET reply = excluded.reply, expires_at = excluded.expires_at";

const DELETE: &str = "DELETE FROM requests WHERE shard = ?1 AND actor = ?2 AND request = ?3";

const ONE: &str = "SELECT shard, actor, request, reply, expires_at FROM requests
    WHERE shard = ?1 AND actor = ?2 AND request = ?3";

const EXPIRED: &str = "SELECT shard, actor, request, reply, expires_at FROM requests
    WHERE shard = ?1 AND expires_at < ?2 ORDER BY expires_at, actor, request";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut put = connection.prepare_cached(PUT)?;
    let mut delete = connection.prepare_cached(DELETE)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        for (request, row) in &writes.requests {
            let request = request.to_string();
            match row {
                Some(row) => {
                    let reply = row.reply.as_ref().map(Json::as_str);
                    put.execute((shard, actor, &request, reply, storable(row.expires_at.0)?))?
                }
                None => delete.execute((shard, actor, &request))?,
            };
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn get(
    connection: &Connection,
    actor: &ActorId,
    id: &RequestId,
) -> Result<Option<RequestRow>, StoreError> {
    one(connection, TABLE, ONE, (actor.shard().0, actor.as_str(), id.to_string()), request)
}

pub(in crate::sqlite) fn expired(
    connection: &Connection,
    shard: Shard,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<RequestRow>, StoreError> {
    list_sound(connection, TABLE, EXPIRED, (shard.0, bound(now.0)), limit, request)
}

fn request(row: &Stored<'_>) -> Result<RequestRow, StoreError> {
    Ok(RequestRow {
        actor: row.owner(1)?,
        request: row.id(2, RequestId::parse)?,
        reply: if row.is_null(3)? { None } else { Some(row.json(3)?) },
        expires_at: row.timestamp(4)?,
    })
}
