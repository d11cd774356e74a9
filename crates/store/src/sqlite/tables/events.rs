//! The histories of actors: only ever added to, at their end.
//!
//! What a commit adds to one history is written as few rows, each a list: a run with a thousand branches has eight thousand
//! events, and a row of its own would cost each several times its text. People read the view `events`, with a row for each.

use std::borrow::Cow;
use std::fmt::Write as _;

use rusqlite::{CachedStatement, Connection};
use serde::Deserialize;
use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;

use crate::StoreError;
use crate::batch::Batch;
use crate::number::{bound, rows_max, storable};
use crate::rows::{EventRow, HistoryPlace};
use crate::sqlite::row::{Stored, Table};

const TABLE: Table = Table { name: "history", keys: 3 };

/// Nothing is inserted when the history has got further already; events are numbered from 1.
const INSERT: &str = "INSERT INTO history (shard, actor, last, first, root, events) SELECT ?1, ?2, ?3, ?4, ?5, ?6
    WHERE ?4 > 0 AND NOT EXISTS (SELECT 1 FROM history WHERE shard = ?1 AND actor = ?2 AND last >= ?4)";

const LIST: &str = "SELECT shard, actor, last, first, events FROM history
    WHERE shard = ?1 AND actor = ?2 AND last > ?3 ORDER BY last LIMIT ?4";

/// A part of the whole history that begins with the event looked for, or holds it.
const LIST_ALL: &str = "SELECT shard, actor, last, first, events, rowid FROM history
    WHERE rowid >= ?1 AND actor <> '' ORDER BY rowid";

const LIST_TREE: &str = "SELECT shard, actor, last, first, events, rowid FROM history
    WHERE rowid >= ?1 AND root = ?2 ORDER BY rowid";

/// A row takes no further event when it has this many bytes: to read one event costs no more than to read so many.
const ROW_BYTES: usize = 16 * 1024;

/// An event inside a row. Its number is that of the row's first, and its place.
#[derive(Deserialize)]
struct Entry {
    at: u64,
    #[serde(rename = "type")]
    event_type: Cow<'static, str>,
    data: Json,
}

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(INSERT)?;
    let mut list = String::new();
    for (actor, writes) in &batch.actors {
        let mut events = writes.events.iter().peekable();
        while let Some(first) = events.next() {
            list.clear();
            list.push('[');
            append(&mut list, first)?;
            let mut last = first;
            while let Some(next) = events.next_if(|next| list.len() < ROW_BYTES && next.sequence == last.sequence + 1) {
                list.push(',');
                append(&mut list, next)?;
                last = next;
            }
            list.push(']');
            insert_row(&mut insert, actor, (first.sequence, last.sequence), writes.root.as_deref(), &list)?;
        }
    }
    Ok(())
}

fn insert_row(
    insert: &mut CachedStatement<'_>,
    actor: &ActorId,
    (first, last): (u64, u64),
    root: Option<&str>,
    list: &str,
) -> Result<(), StoreError> {
    let inserted = insert.execute((actor.shard().0, actor.as_str(), storable(last)?, storable(first)?, root, list))?;
    if inserted == 0 {
        return Err(StoreError::Failed(format!("event {first} of `{actor}` is not the next of its history")));
    }
    Ok(())
}

fn append(list: &mut String, event: &EventRow) -> Result<(), StoreError> {
    write!(list, r#"{{"at":{},"type":"#, storable(event.at.0)?).expect("text takes any text");
    // Types are names of ours, but a library's user makes actors too.
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if event.event_type.bytes().all(is_plain) {
        list.push('"');
        list.push_str(&event.event_type);
        list.push('"');
    } else {
        list.push_str(&serde_json::Value::from(&*event.event_type).to_string());
    }
    list.push_str(r#","data":"#);
    list.push_str(event.data.as_str());
    list.push('}');
    Ok(())
}

/// The first `limit` events behind `after`: time in proportion to them, and to one row more.
pub(in crate::sqlite) fn page(
    connection: &Connection,
    actor: &ActorId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRow>, StoreError> {
    let mut statement = connection.prepare_cached(LIST)?;
    let mut rows = statement.query((actor.shard().0, actor.as_str(), bound(after), rows_max(limit)))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let events = entries(&Stored::new(TABLE, row))?;
        let wanted = events.into_iter().filter(|event| event.sequence > after);
        found.extend(wanted.take(limit - found.len()));
    }
    Ok(found)
}

/// The first `limit` events behind `after` of all histories, or of those of a tree, in the order of commits.
pub(in crate::sqlite) fn history(
    connection: &Connection,
    root: Option<&str>,
    after: HistoryPlace,
    limit: usize,
) -> Result<Vec<(HistoryPlace, EventRow)>, StoreError> {
    let mut statement = connection.prepare_cached(if root.is_some() { LIST_TREE } else { LIST_ALL })?;
    let part = bound(after.part);
    let mut rows = match root {
        Some(root) => statement.query((part, root))?,
        None => statement.query((part,))?,
    };
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let row = Stored::new(TABLE, row);
        let part = row.number(5)?;
        let places = (0..).map(|index| HistoryPlace { part, index });
        let behind = places.zip(entries(&row)?).filter(|(place, _)| *place > after);
        found.extend(behind.take(limit - found.len()));
    }
    Ok(found)
}

/// The events of a row.
fn entries(row: &Stored<'_>) -> Result<Vec<EventRow>, StoreError> {
    let (actor, last, first) = (row.owner(1)?, row.number(2)?, row.number(3)?);
    let entries: Vec<Entry> =
        serde_json::from_str(row.text(4)?).map_err(|error| row.damaged(4, &format!("cannot be read: {error}")))?;
    if first.checked_add(entries.len() as u64) != last.checked_add(1) {
        return Err(row.damaged(4, &format!("has {} events, expected those from {first} to {last}", entries.len())));
    }
    let event = |(sequence, Entry { at, event_type, data })| EventRow {
        actor: actor.clone(),
        sequence,
        at: Timestamp(at),
        event_type,
        data,
    };
    Ok((first..).zip(entries).map(event).collect())
}
