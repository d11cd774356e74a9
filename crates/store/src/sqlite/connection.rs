//! The settings of connections.
//!
//! Owns the numbers and the choice between durability and speed: the default survives power loss. Never reads a row.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Options;

/// How long a reader waits. Readers wait for nobody, except for a moment while the `-wal` file of a crash is recovered.
const READER_WAIT: Duration = Duration::from_secs(5);

/// How long closing waits for readers; what is not tidied then is tidied at the next opening.
const TIDY_WAIT: Duration = Duration::from_millis(100);

/// Pages cached for writing: a batch should fit, or SQLite spills it to the `-wal` file before its end.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// Pages cached for reading. Small, because the system's own cache is behind it.
const READER_CACHE_KIB: i64 = 8 * 1024;

/// Pages in the `-wal` file at which a commit moves them into the main file.
const CHECKPOINT_PAGES: i64 = 4_000;

/// What is kept of a `-wal` file that a long reader or a large batch has made larger.
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// More than there are statements, so that none is ever prepared twice.
const STATEMENTS_KEPT: usize = 64;

/// A connection that only looks: it neither makes the file, nor moves anything into it when it closes.
pub(super) fn inspector(file: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(READER_WAIT)?;
    Ok(connection)
}

/// The one connection that writes. The file is made if need be.
pub(super) fn writer(file: &Path, options: Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(options.busy_wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Where `fsync` alone leaves data in the drive's cache (macOS), ask for more; elsewhere they do nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    if let Some(pages_max) = options.pages_max {
        connection.pragma_update(None, "max_page_count", pages_max)?;
    }
    Ok(connection)
}

/// Switches to the write-ahead log: one fsync a commit, and readers that never wait. Says in which mode the file is now.
pub(super) fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<String> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    Ok(mode)
}

/// A connection that reads what is committed.
pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let connection = inspector(file)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // Plans do not depend on the values bound. Otherwise SQLite prepares every statement with `LIMIT ?` or `max` anew at
    // each use, which takes ten times as long as the statement itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Moves everything into the main file, and empties the `-wal` file if no reader needs it.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}

/// The last checkpoint, which does not wait for long.
pub(super) fn tidy(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(TIDY_WAIT)?;
    checkpoint(connection)
}
