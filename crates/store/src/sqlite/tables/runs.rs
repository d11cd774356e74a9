//! The runs, as they are listed, and how many there are.
//!
//! Every list is read along an index that is in its order, so that it costs what it returns. Runs of a workflow are kept by status; those
//! of all its statuses are merged here.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params};
use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::time::Timestamp;

use crate::StoreError;
use crate::batch::{Batch, ListingChange};
use crate::number::{bound, rows_max, storable};
use crate::rows::{RunCount, RunFilter, RunRow};
use crate::sqlite::row::{Stored, Table, list, one};

const TABLE: Table = Table { name: "runs", keys: 3 };
const COUNTS: Table = Table { name: "run_counts", keys: 2 };

const PUT: &str =
    "INSERT INTO runs (number, shard, actor, workflow, version, status, parent, root, started_at, ended_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (shard, actor) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at";

const COUNT: &str = "INSERT INTO run_counts (workflow, status, count) VALUES (?1, ?2, ?3)
    ON CONFLICT (workflow, status) DO UPDATE SET count = count + excluded.count";

const LIST_COUNTS: &str = "SELECT workflow, status, count FROM run_counts WHERE count > 0 ORDER BY workflow, status";

const STATUSES: &str = "SELECT workflow, status, count FROM run_counts WHERE workflow = ?1 AND count > 0";

/// A list of runs that fit.
macro_rules! runs {
    ($fit:literal) => {
        concat!(
            "SELECT shard, actor, number, workflow, version, status, parent, root, started_at, ended_at FROM runs WHERE number < ?1",
            $fit,
            " ORDER BY number DESC LIMIT ?2"
        )
    };
}

const GET: &str = "SELECT shard, actor, number, workflow, version, status, parent, root, started_at, ended_at FROM runs
    WHERE shard = ?1 AND actor = ?2";

// The condition is that of the index, in its own words: only so is it used.
const ENDED: &str =
    "SELECT shard, actor, number, workflow, version, status, parent, root, started_at, ended_at FROM runs
    WHERE parent IS NULL AND ended_at IS NOT NULL AND (ended_at, number) > (?1, ?2) AND ended_at <= ?3
    ORDER BY ended_at, number LIMIT ?4";

const REMOVE: &str = "DELETE FROM runs WHERE shard = ?1 AND actor = ?2 RETURNING workflow, status";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut put = connection.prepare_cached(PUT)?;
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for ListingChange { row, was } in batch.actors.values().filter_map(|writes| writes.listing.as_ref()) {
        let ended_at = row.ended_at.map(|at| storable(at.0)).transpose()?;
        put.execute((
            storable(row.number.0)?,
            row.actor.shard().0,
            row.actor.as_str(),
            &*row.workflow,
            row.version,
            &*row.status,
            row.parent.as_deref(),
            &*row.root,
            storable(row.started_at.0)?,
            ended_at,
        ))?;
        *counts.entry((&row.workflow, &row.status)).or_default() += 1;
        if let Some(was) = was {
            *counts.entry((&row.workflow, was)).or_default() -= 1;
        }
    }
    if !counts.is_empty() {
        let mut count = connection.prepare_cached(COUNT)?;
        for ((workflow, status), change) in counts.into_iter().filter(|(_, change)| *change != 0) {
            count.execute((workflow, status, change))?;
        }
    }
    Ok(())
}

/// Takes a run off the list, and out of the counts.
pub(in crate::sqlite) fn remove(connection: &Connection, actor: &ActorId) -> Result<(), StoreError> {
    let listed = one(connection, COUNTS, REMOVE, (actor.shard().0, actor.as_str()), |row| {
        Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
    })?;
    if let Some((workflow, status)) = listed {
        connection.prepare_cached(COUNT)?.execute((workflow, status, -1))?;
    }
    Ok(())
}

pub(in crate::sqlite) fn get(connection: &Connection, actor: &ActorId) -> Result<Option<RunRow>, StoreError> {
    one(connection, TABLE, GET, (actor.shard().0, actor.as_str()), run)
}

pub(in crate::sqlite) fn ended(
    connection: &Connection,
    after: (Timestamp, Sequence),
    until: Timestamp,
    limit: usize,
) -> Result<Vec<RunRow>, StoreError> {
    let (ended_at, number) = (bound(after.0.0), bound(after.1.0));
    found(connection, ENDED, (ended_at, number, bound(until.0), rows_max(limit)))
}

pub(in crate::sqlite) fn page(
    connection: &Connection,
    filter: RunFilter<'_>,
    before: Option<Sequence>,
    limit: usize,
) -> Result<Vec<RunRow>, StoreError> {
    let (before, rows) = (before.map_or(i64::MAX, |number| bound(number.0)), rows_max(limit));
    let RunFilter { workflow, status, root, parent } = filter;
    match (root.or(parent), workflow, status) {
        // Few trees are so large that this matters: the runs of one are looked through.
        (Some(above), ..) => {
            let sql = match parent {
                Some(_) => {
                    runs!(
                        " AND parent = ?3 AND (?4 IS NULL OR root = ?4) AND (?5 IS NULL OR workflow = ?5) AND (?6 IS NULL OR status = ?6)"
                    )
                }
                None => {
                    runs!(
                        " AND root = ?3 AND parent IS NOT NULL AND ?4 IS NOT NULL AND (?5 IS NULL OR workflow = ?5) AND (?6 IS NULL OR status = ?6)"
                    )
                }
            };
            let above = parent.unwrap_or(above);
            found(connection, sql, (before, rows, above, root, workflow, status))
        }
        (None, None, None) => found(connection, runs!(""), (before, rows)),
        (None, None, Some(status)) => found(connection, runs!(" AND status = ?3"), (before, rows, status)),
        (None, Some(workflow), Some(status)) => of_workflow(connection, before, rows, workflow, status),
        (None, Some(workflow), None) => {
            let mut all = Vec::new();
            for RunCount { status, .. } in list(connection, COUNTS, STATUSES, (workflow,), run_count)? {
                all.extend(of_workflow(connection, before, rows, workflow, &status)?);
            }
            all.sort_unstable_by_key(|row| std::cmp::Reverse(row.number));
            all.truncate(limit);
            Ok(all)
        }
    }
}

fn of_workflow(
    connection: &Connection,
    before: i64,
    rows: i64,
    workflow: &str,
    status: &str,
) -> Result<Vec<RunRow>, StoreError> {
    found(connection, runs!(" AND workflow = ?3 AND status = ?4"), (before, rows, workflow, status))
}

pub(in crate::sqlite) fn counts(connection: &Connection) -> Result<Vec<RunCount>, StoreError> {
    list(connection, COUNTS, LIST_COUNTS, (), run_count)
}

fn found(connection: &Connection, sql: &str, params: impl Params) -> Result<Vec<RunRow>, StoreError> {
    list(connection, TABLE, sql, params, run)
}

fn run(row: &Stored<'_>) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        actor: row.owner(1)?,
        number: row.sequence(2)?,
        workflow: row.shared_text(3)?,
        version: row.small_number(4)?,
        status: row.shared_text(5)?,
        parent: if row.is_null(6)? { None } else { Some(row.shared_text(6)?) },
        root: row.shared_text(7)?,
        started_at: row.timestamp(8)?,
        ended_at: if row.is_null(9)? { None } else { Some(row.timestamp(9)?) },
    })
}

fn run_count(row: &Stored<'_>) -> Result<RunCount, StoreError> {
    Ok(RunCount { workflow: row.shared_text(0)?, status: row.shared_text(1)?, count: row.number(2)? })
}
