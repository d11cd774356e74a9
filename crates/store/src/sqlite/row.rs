//! Reading a row that a person, a newer version or a failing disk may have changed.
//!
//! Owns the checks of every column: what is not as we wrote it is [`StoreError::Damaged`], naming the table and the row,
//! never a panic. What a row means is said in [`super::tables`].

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};
use steadfast_core::ids::{ActorId, InvalidId, Sequence, Shard};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::prefix_end;

use crate::StoreError;
use crate::number::rows_max;

/// A table, as reading needs to know it. Every statement selects the key first, so that a damaged row can be named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// How many of the first columns are its key.
    pub(super) keys: usize,
}

/// A row of a table.
pub(super) struct Stored<'r> {
    table: Table,
    row: &'r Row<'r>,
}

/// The row that the statement finds, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    table: Table,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Stored<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(|row| read(&Stored { table, row })).transpose()
}

/// The first `limit` sound rows that the statement finds. A damaged one is left where it is and named in the log: those behind it
/// must not wait for somebody to mend it. For lists that the engine works off.
pub(super) fn list_sound<T>(
    connection: &Connection,
    table: Table,
    sql: &str,
    params: impl Params,
    limit: usize,
    read: impl Fn(&Stored<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        match read(&Stored { table, row }) {
            Ok(sound) => found.push(sound),
            Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "a row is passed over"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// All rows that the statement finds.
pub(super) fn list<T>(
    connection: &Connection,
    table: Table,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Stored<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&Stored { table, row })?);
    }
    Ok(found)
}

/// Actors whose ids begin with `prefix`, found shard by shard by a statement that takes the shard, the two ends and the number of rows.
pub(super) fn actors(
    connection: &Connection,
    table: Table,
    sql: &str,
    prefix: &str,
    limit: usize,
) -> Result<Vec<ActorId>, StoreError> {
    let (mut found, end) = (Vec::new(), prefix_end(prefix));
    for shard in Shard::all() {
        let params = (shard.0, prefix, &*end, rows_max(limit - found.len()));
        found.extend(list(connection, table, sql, params, |row| row.owner(1))?);
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

impl<'r> Stored<'r> {
    pub(super) fn new(table: Table, row: &'r Row<'r>) -> Self {
        Self { table, row }
    }
}

impl Stored<'_> {
    /// A text.
    pub(super) fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.value(column)? {
            ValueRef::Text(bytes) => {
                std::str::from_utf8(bytes).map_err(|error| self.damaged(column, &format!("is not UTF-8: {error}")))
            }
            other @ (ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_)) => {
                Err(self.damaged(column, &format!("is {}, expected text", name_of(other))))
            }
        }
    }

    /// A text that is shared afterwards.
    pub(super) fn shared_text(&self, column: usize) -> Result<Arc<str>, StoreError> {
        self.text(column).map(Arc::from)
    }

    /// A value.
    pub(super) fn json(&self, column: usize) -> Result<Json, StoreError> {
        self.text(column).map(Json::from_stored)
    }

    /// Whether there is nothing.
    pub(super) fn is_null(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.value(column)? == ValueRef::Null)
    }

    /// A number that is not negative.
    pub(super) fn number(&self, column: usize) -> Result<u64, StoreError> {
        match self.value(column)? {
            ValueRef::Integer(number) => {
                u64::try_from(number).map_err(|_| self.damaged(column, &format!("is {number}, expected 0 or more")))
            }
            other @ (ValueRef::Null | ValueRef::Text(_) | ValueRef::Real(_) | ValueRef::Blob(_)) => {
                Err(self.damaged(column, &format!("is {}, expected a whole number", name_of(other))))
            }
        }
    }

    /// A small number that is not negative.
    pub(super) fn small_number(&self, column: usize) -> Result<u32, StoreError> {
        let number = self.number(column)?;
        u32::try_from(number).map_err(|_| self.damaged(column, &format!("is {number}, expected at most {}", u32::MAX)))
    }

    /// A place in an order.
    pub(super) fn sequence(&self, column: usize) -> Result<Sequence, StoreError> {
        self.number(column).map(Sequence)
    }

    /// A point in time.
    pub(super) fn timestamp(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.number(column).map(Timestamp)
    }

    /// An id, read by `parse`.
    pub(super) fn id<T>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Result<T, InvalidId>,
    ) -> Result<T, StoreError> {
        parse(self.text(column)?).map_err(|error| self.damaged(column, &format!("is not an id: {error}")))
    }

    /// The actor whose row this is. It must be in its own shard, which is the first column: elsewhere nobody looks for it.
    pub(super) fn owner(&self, column: usize) -> Result<ActorId, StoreError> {
        let actor = self.id(column, ActorId::parse)?;
        if self.number(0)? != u64::from(actor.shard().0) {
            return Err(self.damaged(column, &format!("belongs to shard {}", actor.shard().0)));
        }
        Ok(actor)
    }

    /// The error for a column that is not as we write it.
    pub(super) fn damaged(&self, column: usize, problem: &str) -> StoreError {
        let column_name = |column| self.row.as_ref().column_name(column).unwrap_or("?");
        let key: Vec<String> = (0..self.table.keys)
            .map(|column| match self.row.get_ref(column) {
                Ok(ValueRef::Integer(number)) => format!("{} {number}", column_name(column)),
                Ok(ValueRef::Text(text)) => format!("{} `{}`", column_name(column), String::from_utf8_lossy(text)),
                Ok(other @ (ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_))) => {
                    format!("{} {}", column_name(column), name_of(other))
                }
                Err(error) => format!("{} ({error})", column_name(column)),
            })
            .collect();
        let (table, key) = (self.table.name, key.join(", "));
        StoreError::Damaged(format!("table `{table}`, row {key}: `{}` {problem}", column_name(column)))
    }

    fn value(&self, column: usize) -> Result<ValueRef<'_>, StoreError> {
        Ok(self.row.get_ref(column)?)
    }
}

fn name_of(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "empty",
        ValueRef::Integer(_) => "a whole number",
        ValueRef::Real(_) => "a fraction",
        ValueRef::Text(_) => "text",
        ValueRef::Blob(_) => "binary data",
    }
}
