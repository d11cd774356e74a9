//! The tables: one file for each thing kept, with all its statements, how it is written and how it is read.
//!
//! Owns the stored form of rows. A table's `write` takes its part of a whole batch, so that a statement is looked up once a
//! commit and the rows reach their tree in its own order. Rows that are *new* (messages, events, dead letters) are inserted
//! plainly: that one is there already is refused, because to overwrite it would lose it. The columns are in
//! `../migrations`.

pub(super) mod alarms;
pub(super) mod dead_letters;
pub(super) mod events;
pub(super) mod head;
pub(super) mod messages;
pub(super) mod meta;
pub(super) mod removal;
pub(super) mod requests;
pub(super) mod runs;
pub(super) mod state;
pub(super) mod tasks;

use rusqlite::Connection;

use crate::StoreError;
use crate::batch::Batch;

/// Writes all of the batch, within a transaction that the caller has begun.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    removal::write(connection, batch)?;
    state::write(connection, batch)?;
    messages::write(connection, batch)?;
    alarms::write(connection, batch)?;
    tasks::write(connection, batch)?;
    requests::write(connection, batch)?;
    events::write(connection, batch)?;
    runs::write(connection, batch)?;
    dead_letters::write(connection, batch)
}
