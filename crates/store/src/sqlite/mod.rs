//! The embedded store: one SQLite file, one writer, any number of readers.
//!
//! Owns the file, from opening to closing. Where things are:
//!
//! | what | where |
//! | --- | --- |
//! | opening, and why a file is refused | `open`, `header`, `lock` |
//! | the schema and its versions | `migrations` |
//! | settings of connections | `connection` |
//! | one thing kept: its statements, writing, reading | `tables` |
//! | a copy of it | `backup` |
//! | what SQLite's errors mean | `errors` |
//!
//! Never knows what a row is for. Start reading at [`SqliteStore`].

mod backup;
mod connection;
mod errors;
mod header;
mod lock;
mod migrations;
mod open;
mod reader;
mod row;
mod tables;

pub use backup::{BackupError, GoOn, Progress, back_up};
pub use open::OpenError;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::batch::Batch;
use crate::{Reader, Store, StoreError};
use lock::Lock;
use reader::SqliteReader;

/// A store in one SQLite file, held by this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    writer: Mutex<Connection>,
    /// The last boot that was begun here; 0 for none. A commit is refused when the file says another.
    boot: AtomicU32,
    file: PathBuf,
    // After the connections, so that it is given back last: readers hold it too.
    lock: Arc<Lock>,
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How large the file may become, in pages of 4 KiB; further commits are refused with [`StoreError::Full`]. A file that is
    /// larger already does not grow any more. The `-wal` file beside it is not counted.
    pub pages_max: Option<u32>,
    /// How long a commit waits for another program, for instance a person with `sqlite3`, before it is refused with
    /// [`StoreError::Busy`].
    pub busy_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { pages_max: None, busy_wait: Duration::from_secs(5) }
    }
}

impl SqliteStore {
    /// Opens the store in `path`, making it if there is no such file. Its folder must exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, Options::default())
    }

    /// Opens the store in `path` with options.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let opened = open::open(path.as_ref(), options)?;
        let (writer, lock) = (Mutex::new(opened.writer), Arc::new(opened.lock));
        Ok(Self { writer, boot: AtomicU32::new(0), file: opened.file, lock })
    }

    /// Does `work` in one transaction: all of it is durable afterwards, or nothing of it is there.
    fn write<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut writer = self.writer();
        if !writer.is_autocommit() {
            // Left by a rollback that failed, as on a failing disk. It would refuse every further commit.
            writer.execute_batch("ROLLBACK")?;
        }
        // Immediate: to wait for another writer at the beginning, where nothing is lost by giving up.
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The lock keeps other processes out; but a lock file can be deleted, and then only the file itself tells.
    fn check_boot(&self, connection: &Connection) -> Result<(), StoreError> {
        match self.boot.load(Ordering::Acquire) {
            0 => Ok(()),
            ours => tables::meta::check_boot(connection, ours),
        }
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // A panic in a commit has rolled its transaction back, so the connection is as good as before.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for SqliteStore {
    fn begin_boot(&self) -> Result<u32, StoreError> {
        let boot = self.write(tables::meta::next_boot)?;
        self.boot.store(boot, Ordering::Release);
        Ok(boot)
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.write(|connection| {
            self.check_boot(connection)?;
            tables::write(connection, batch)
        })
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.write(|connection| {
            self.check_boot(connection)?;
            tables::meta::probe(connection)
        })
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(SqliteReader::open(&self.file, Arc::clone(&self.lock))?))
    }
}

impl Drop for SqliteStore {
    /// Moves everything into the main file, so that it can be copied alone. Best effort: what stays in the `-wal` file is
    /// durable too, and is found at the next opening.
    fn drop(&mut self) {
        if let Err(error) = connection::tidy(&self.writer()) {
            tracing::debug!(file = %self.file.display(), %error, "store closed without tidying up");
        }
    }
}
