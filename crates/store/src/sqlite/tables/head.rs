//! What is known of an actor before its storage is read: one statement over three tables.

use rusqlite::Connection;
use steadfast_core::ids::ActorId;

use crate::StoreError;
use crate::rows::Head;
use crate::sqlite::row::{Table, one};

const TABLE: Table = Table { name: "alarms or history", keys: 2 };

// Each part is one descent of a tree; `max` goes straight to the actor's last event.
const SELECT: &str = "SELECT ?1 AS shard, ?2 AS actor,
    (SELECT due FROM alarms WHERE shard = ?1 AND actor = ?2) AS due,
    (SELECT max(last) FROM history WHERE shard = ?1 AND actor = ?2) AS sequence,
    EXISTS (SELECT 1 FROM state WHERE shard = ?1 AND actor = ?2) AS has_state";

pub(in crate::sqlite) fn read(connection: &Connection, actor: &ActorId) -> Result<Head, StoreError> {
    let head = one(connection, TABLE, SELECT, (actor.shard().0, actor.as_str()), |row| {
        Ok(Head {
            alarm: if row.is_null(2)? { None } else { Some(row.timestamp(2)?) },
            last_event: if row.is_null(3)? { 0 } else { row.number(3)? },
            has_state: row.number(4)? == 1,
        })
    })?;
    Ok(head.unwrap_or_default())
}
