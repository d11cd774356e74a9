//! The alarms that are set.

use rusqlite::Connection;
use steadfast_core::ids::Shard;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;

use crate::StoreError;
use crate::batch::Batch;
use crate::number::{bound, storable};
use crate::rows::AlarmRow;
use crate::sqlite::row::{Table, list_sound};

const TABLE: Table = Table { name: "alarms", keys: 2 };

const SET: &str = "INSERT INTO alarms (shard, actor, due) VALUES (?1, ?2, ?3)
    ON CONFLICT (shard, actor) DO UPDATE SET due = excluded.due";

const CLEAR: &str = "DELETE FROM alarms WHERE shard = ?1 AND actor = ?2";

const LIST: &str = "SELECT shard, actor, due FROM alarms
    WHERE shard = ?1 AND (due, actor) > (?2, ?3) AND due <= ?4 ORDER BY due, actor";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut set = connection.prepare_cached(SET)?;
    let mut clear = connection.prepare_cached(CLEAR)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        match writes.alarm {
            AlarmChange::Keep => {}
            AlarmChange::Off => {
                clear.execute((shard, actor))?;
            }
            AlarmChange::At(due) => {
                set.execute((shard, actor, storable(due.0)?))?;
            }
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn page(
    connection: &Connection,
    shard: Shard,
    after: (Timestamp, &str),
    until: Timestamp,
    limit: usize,
) -> Result<Vec<AlarmRow>, StoreError> {
    let (due, actor) = after;
    list_sound(connection, TABLE, LIST, (shard.0, bound(due.0), actor, bound(until.0)), limit, |row| {
        Ok(AlarmRow { actor: row.owner(1)?, due: row.timestamp(2)? })
    })
}
