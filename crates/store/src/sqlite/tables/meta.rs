//! Facts about the store itself: how often it was opened for running, and whether it can be written.

use rusqlite::Connection;

use crate::StoreError;
use crate::number::boot_after;
use crate::sqlite::row::{Table, one};

const TABLE: Table = Table { name: "meta", keys: 1 };

const GET: &str = "SELECT name, value FROM meta WHERE name = ?1";

const PUT: &str =
    "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

const DELETE: &str = "DELETE FROM meta WHERE name = ?1";

/// What a probe writes: enough that a store without room for a small batch refuses it too.
const PROBE_BYTES: usize = 64 * 1024;

/// The next boot number, within a transaction that the caller has begun.
pub(in crate::sqlite) fn next_boot(connection: &Connection) -> Result<u32, StoreError> {
    let boot = boot_after(last_boot(connection)?)?;
    connection.prepare_cached(PUT)?.execute(("boot", boot.to_string()))?;
    Ok(boot)
}

/// Refuses unless the last boot is `ours`, within a transaction that the caller has begun.
pub(in crate::sqlite) fn check_boot(connection: &Connection, ours: u32) -> Result<(), StoreError> {
    let last = last_boot(connection)?;
    if last == ours { Ok(()) } else { Err(StoreError::TakenOver(format!("boot {last}, this one is {ours}"))) }
}

fn last_boot(connection: &Connection) -> Result<u32, StoreError> {
    let last = one(connection, TABLE, GET, ("boot",), |row| {
        row.text(1)?.parse::<u32>().map_err(|error| row.damaged(1, &format!("is not a boot number: {error}")))
    })?;
    Ok(last.unwrap_or(0))
}

/// Writes something and takes it away again, within a transaction that the caller has begun. That alone changes
/// the list of free pages, so the commit must reach the disk.
pub(in crate::sqlite) fn probe(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached(PUT)?.execute(("probe", "0".repeat(PROBE_BYTES)))?;
    connection.prepare_cached(DELETE)?.execute(("probe",))?;
    Ok(())
}
