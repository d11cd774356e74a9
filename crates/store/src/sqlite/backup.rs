//! A copy of a store, also of one that a process runs on.
//!
//! Owns the copying: page by page from one moment's view of the store, into a file that gets its name when it is whole and on disk. Page by page and not
//! by `VACUUM INTO`, which would give new numbers to the places of the history. Never changes the store. Start reading at [`back_up`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode};

use super::open::{OpenError, Refused, beside, inspect, locate, remove_if_there, sync_folder_of};
use super::{Options, connection};
use crate::StoreError;

/// Pages copied between two looks at whether to go on: a MiB.
const PAGES_PER_STEP: i32 = 256;

/// How long to wait for whoever holds the file.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Pages that are copied.
    pub done: u64,
    /// Pages that there are.
    pub all: u64,
}

/// Whether to go on with a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    /// Yes.
    Yes,
    /// No: nothing is left of it.
    No,
}

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The copy's place is taken.
    #[error("`{path}` exists already and was left as it is; choose another name")]
    Exists {
        /// As it was given.
        path: String,
    },
    /// There is nothing to copy.
    #[error("there is no store `{path}`")]
    NoStore {
        /// As it was given.
        path: String,
    },
    /// The copy cannot be made where it should.
    #[error("`{path}` cannot be written: {reason}; choose another place, or make room there")]
    NotWritable {
        /// As it was given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// It is no store, or cannot be read.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The copying failed.
    #[error("the copy failed: {0}")]
    Failed(StoreError),
    /// It was called off.
    #[error("the copy was called off; nothing is left of it")]
    CalledOff,
}

/// Copies the store to a new file `copy`. Asks `watch` now and then whether to go on.
pub fn back_up(store: &Path, copy: &Path, watch: impl FnMut(Progress) -> GoOn) -> Result<(), BackupError> {
    let not_writable =
        |error: io::Error| BackupError::NotWritable { path: copy.display().to_string(), reason: error.to_string() };
    if fs::symlink_metadata(copy).is_ok() {
        return Err(BackupError::Exists { path: copy.display().to_string() });
    }
    let source = source(store)?;
    let draft = beside(copy, ".partial");
    clear(&draft).map_err(not_writable)?;
    let copied = copy_pages(&source, &draft, watch).and_then(|()| publish(&source, &draft, copy));
    // Of one that was not finished nothing is left; of one that was, its other name.
    let cleared = clear(&draft).map_err(not_writable);
    copied.and(cleared)
}

/// The store's own file, which is ours and can be read.
fn source(store: &Path) -> Result<PathBuf, BackupError> {
    if matches!(fs::metadata(store), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Err(BackupError::NoStore { path: store.display().to_string() });
    }
    let (file, refused) = (locate(store)?, Refused(store));
    let looked = connection::inspector(&file)
        .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_master", (), |_| Ok(())));
    if looked.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::NotADatabase)) {
        return Err(OpenError::NotSqlite { path: store.display().to_string() }.into());
    }
    let version = inspect(&file).map_err(|error| refused.store(error)).and_then(|found| refused.content(found))?;
    if version == 0 {
        return Err(BackupError::NoStore { path: store.display().to_string() });
    }
    Ok(file)
}

fn copy_pages(source: &Path, draft: &Path, mut watch: impl FnMut(Progress) -> GoOn) -> Result<(), BackupError> {
    let failed = |error: rusqlite::Error| BackupError::Failed(error.into());
    let from = connection::inspector(source).map_err(failed)?;
    // Holds one moment's view to the end: otherwise the copy would begin anew with every commit of whoever runs on the store.
    from.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master").map_err(failed)?;
    let mut to = connection::writer(draft, Options::default()).map_err(failed)?;
    copy_view(&from, &mut to, &mut watch)
}

fn copy_view(
    from: &Connection,
    to: &mut Connection,
    watch: &mut impl FnMut(Progress) -> GoOn,
) -> Result<(), BackupError> {
    let failed = |error: rusqlite::Error| BackupError::Failed(error.into());
    let backup = Backup::new(from, to).map_err(failed)?;
    loop {
        let step = backup.step(PAGES_PER_STEP).map_err(failed)?;
        let pages = backup.progress();
        let (all, left) = (u64::try_from(pages.pagecount).unwrap_or(0), u64::try_from(pages.remaining).unwrap_or(0));
        let go_on = watch(Progress { done: all.saturating_sub(left), all });
        if step == StepResult::Done {
            return Ok(());
        }
        if go_on == GoOn::No {
            return Err(BackupError::CalledOff);
        }
        if step != StepResult::More {
            // Somebody changes the form of the file, which takes a moment.
            std::thread::sleep(BUSY_PAUSE);
        }
    }
}

/// Gives the copy its name, once it is whole and on disk.
fn publish(source: &Path, draft: &Path, copy: &Path) -> Result<(), BackupError> {
    let not_writable =
        |error: io::Error| BackupError::NotWritable { path: copy.display().to_string(), reason: error.to_string() };
    let named = || -> io::Result<()> {
        // Whoever may not read the store may not read the copy.
        fs::set_permissions(draft, fs::metadata(source)?.permissions())?;
        File::open(draft)?.sync_all()?;
        // Unlike a rename, this takes no other file's place.
        fs::hard_link(draft, copy)?;
        sync_folder_of(&std::path::absolute(copy)?)
    };
    match named() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(BackupError::Exists { path: copy.display().to_string() })
        }
        done => done.map_err(not_writable),
    }
}

/// Removes a draft, and what SQLite had beside it.
fn clear(draft: &Path) -> io::Result<()> {
    ["", "-journal", "-wal", "-shm"].into_iter().try_for_each(|suffix| remove_if_there(&beside(draft, suffix)))
}
