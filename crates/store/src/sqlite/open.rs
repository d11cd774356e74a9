//! Opening a store: what is looked at, in which order, and why a file is refused.
//!
//! Owns [`OpenError`], each of which says what to do. A file that is refused is left as it was, and nothing new lies
//! beside it. Start reading at [`open`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::header::{self, Content};
use super::lock::{Lock, LockError};
use super::migrations::{self, Migrated, VERSION};
use super::{Options, connection};
use crate::StoreError;

/// Why a store was not opened, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The path names a folder.
    #[error("`{path}` is a folder; give the name of a file, for instance `{path}/steadfast.db`")]
    Folder {
        /// As it was given.
        path: String,
    },
    /// The path names a device, a pipe or the like, or nothing at all.
    #[error("`{path}` is not a file; choose another name")]
    NotAFile {
        /// As it was given.
        path: String,
    },
    /// The folder does not exist.
    #[error("store `{path}` cannot be made: there is no folder `{folder}`; make it, or choose another name")]
    NoFolder {
        /// As it was given.
        path: String,
        /// What is missing.
        folder: String,
    },
    /// The file or its folder cannot be read.
    #[error("store `{path}` cannot be read: {reason}; make the file and its folder readable, or choose another name")]
    NotReadable {
        /// As it was given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file or its folder cannot be written.
    #[error(
        "store `{path}` cannot be written: {reason}; make the file and its folder writable, or choose another name"
    )]
    NotWritable {
        /// As it was given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// It is a file of another kind.
    #[error("`{path}` is not a store: it is no SQLite file; it was left as it is, choose another name")]
    NotSqlite {
        /// As it was given.
        path: String,
    },
    /// It is a database of another program.
    #[error(
        "`{path}` is not a store: it is an SQLite file of another program; it was left as it is, choose another name"
    )]
    Foreign {
        /// As it was given.
        path: String,
    },
    /// It was written by a newer version of this program.
    #[error(
        "store `{path}` has version {found}, this program knows versions up to {known}; it was left as it is, run the newer program"
    )]
    Newer {
        /// As it was given.
        path: String,
        /// Its version.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// There is no room for it.
    #[error("there is no space for store `{path}`: {reason}; free some, or choose another place")]
    NoSpace {
        /// As it was given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// It has a second name, under which another process could open it without our lock.
    #[error("store `{path}` has {names} names (hard links), of which only one would be locked; remove the others")]
    Linked {
        /// As it was given.
        path: String,
        /// How many.
        names: u64,
    },
    /// The log of a store is there, but the store is not.
    #[error("`{log}` belongs to a store that is not there; put `{path}` back beside it, or remove it")]
    LostStore {
        /// As it was given.
        path: String,
        /// The log.
        log: String,
    },
    /// A process has it open.
    #[error("store `{path}` is in use by {}; stop it, or choose another file", holder(*.process))]
    InUse {
        /// As it was given.
        path: String,
        /// The number of the process, if it is known.
        process: Option<u32>,
    },
    /// The store failed while it was opened.
    #[error("store `{path}` cannot be opened: {error}")]
    Store {
        /// As it was given.
        path: String,
        /// How it failed.
        error: StoreError,
    },
}

/// What opening gives.
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) file: PathBuf,
    pub(super) lock: Lock,
}

/// Opens `path`, or refuses it.
pub(super) fn open(path: &Path, options: Options) -> Result<Opened, OpenError> {
    // One at a time in this process: the header may be read only while SQLite does not have the file open here, see
    // [`header::read`]. Between processes the lock file does the same.
    static OPENING: Mutex<()> = Mutex::new(());
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);

    let refused = Refused(path);
    let file = locate(path)?;
    // Who runs the store has a lock file, so an existing one is locked before anything is read. But none is made
    // beside a file that may turn out not to be a store.
    let lock = Lock::take_existing(&file).map_err(|error| refused.lock(error))?;
    if refused.content(look(&file).map_err(|error| refused.reading(&error))?)? == 0 {
        check_no_lost_log(path, &file)?;
    }
    let lock = lock.map_or_else(|| Lock::take(&file), Ok).map_err(|error| refused.lock(error))?;

    let version = inspect(&file).map_err(|error| refused.store(error)).and_then(|found| refused.content(found))?;
    check_writable(&file).map_err(|error| refused.writing(&error))?;
    let version = match version {
        0 => make_new(&file, options).map(|()| VERSION).map_err(|error| refused.store(error))?,
        existing => existing,
    };
    let writer = prepare(&file, version, options).map_err(|error| refused.store(error))?;
    Ok(Opened { writer, file, lock })
}

/// The one true path of the file, so that it cannot be opened a second time by another name.
pub(super) fn locate(path: &Path) -> Result<PathBuf, OpenError> {
    let refused = Refused(path);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(OpenError::Folder { path: refused.path() }),
        Ok(found) if !found.is_file() => Err(OpenError::NotAFile { path: refused.path() }),
        Ok(found) if names_of(&found) > 1 => Err(OpenError::Linked { path: refused.path(), names: names_of(&found) }),
        Ok(_) => fs::canonicalize(path).map_err(|error| refused.reading(&error)),
        Err(_) if let Ok(target) = fs::read_link(path) => {
            // A link to a store that is to be made: it is made where the link points, not in its place.
            let folder = path.parent().unwrap_or(Path::new(""));
            locate(&folder.join(target))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let name = path.file_name().ok_or_else(|| OpenError::NotAFile { path: refused.path() })?;
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            if !folder.is_dir() {
                return Err(OpenError::NoFolder { path: refused.path(), folder: folder.display().to_string() });
            }
            Ok(fs::canonicalize(folder).map_err(|error| refused.reading(&error))?.join(name))
        }
        Err(error) => Err(refused.reading(&error)),
    }
}

#[cfg(unix)]
fn names_of(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(file)
}

/// Elsewhere it cannot be asked.
#[cfg(not(unix))]
fn names_of(_file: &fs::Metadata) -> u64 {
    1
}

/// What the bytes of the file say.
fn look(file: &Path) -> io::Result<Content> {
    match header::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Content::Empty),
        found => found,
    }
}

/// What the file says with its `-wal` file, where a newer header may be. Changes neither.
pub(super) fn inspect(file: &Path) -> Result<Content, StoreError> {
    // A file of no length is no database to a connection that may not write.
    if !fs::metadata(file).is_ok_and(|found| found.len() > 0) {
        return Ok(Content::Empty);
    }
    let connection = connection::inspector(file)?;
    let number = |name| connection.pragma_query_value::<u32, _>(None, name, |row| row.get(0));
    let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_master", (), |row| row.get(0))?;
    Ok(header::judge(number("application_id")?, number("user_version")?, tables > 0))
}

/// Asks the system, because SQLite would quietly open a file for reading only.
fn check_writable(file: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).open(file).map(|_| ())
}

/// Makes a new store beside its place and moves it there whole: a crash leaves either no store or a complete one.
fn make_new(file: &Path, options: Options) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Failed(error.to_string());
    let draft = beside(file, ".new");
    // What a crash left of an earlier draft.
    for leftover in ["", "-journal", "-wal", "-shm"] {
        remove_if_there(&beside(&draft, leftover)).map_err(failed)?;
    }
    drop(prepare(&draft, 0, options)?);
    fs::rename(&draft, file).map_err(failed)?;
    sync_folder_of(file).map_err(failed)
}

/// The connection that writes, on a file of the newest version.
fn prepare(file: &Path, version: u32, options: Options) -> Result<Connection, StoreError> {
    let mut writer = connection::writer(file, options)?;
    let mode = connection::use_write_ahead_log(&writer)?;
    if mode != "wal" {
        return Err(StoreError::Failed(format!("its file system has no shared memory for SQLite (mode is `{mode}`)")));
    }
    match migrations::migrate(&mut writer, version)? {
        // So that the new version stands in the file itself, where an older program looks first.
        Migrated::Yes => connection::checkpoint(&writer)?,
        Migrated::No => {}
    }
    Ok(writer)
}

/// SQLite would take such a log for that of the new store; and it may hold commits that somebody misses.
fn check_no_lost_log(path: &Path, file: &Path) -> Result<(), OpenError> {
    for suffix in ["-wal", "-journal"] {
        if fs::metadata(beside(file, suffix)).is_ok_and(|found| found.len() > 0) {
            let log = beside(path, suffix).display().to_string();
            return Err(OpenError::LostStore { path: path.display().to_string(), log });
        }
    }
    Ok(())
}

pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the names of new files durable. SQLite does so for its journal; that it covers the file itself is not promised.
pub(super) fn sync_folder_of(file: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened like a file.
    if cfg!(unix) { file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()) } else { Ok(()) }
}

/// The path as it was given, for the messages.
pub(super) struct Refused<'a>(pub(super) &'a Path);

impl Refused<'_> {
    fn path(&self) -> String {
        self.0.display().to_string()
    }

    fn reading(&self, error: &io::Error) -> OpenError {
        OpenError::NotReadable { path: self.path(), reason: error.to_string() }
    }

    fn writing(&self, error: &io::Error) -> OpenError {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return OpenError::NoSpace { path: self.path(), reason: error.to_string() };
        }
        OpenError::NotWritable { path: self.path(), reason: error.to_string() }
    }

    pub(super) fn store(&self, error: StoreError) -> OpenError {
        OpenError::Store { path: self.path(), error }
    }

    fn lock(&self, error: LockError) -> OpenError {
        match error {
            LockError::Held(process) => OpenError::InUse { path: self.path(), process },
            LockError::Failed(error) => self.writing(&error),
        }
    }

    /// The version to migrate from, if the content may be opened.
    pub(super) fn content(&self, content: Content) -> Result<u32, OpenError> {
        match content {
            Content::Empty => Ok(0),
            Content::Ours { version } => Ok(version),
            Content::Newer { version } => Err(OpenError::Newer { path: self.path(), found: version, known: VERSION }),
            Content::Foreign => Err(OpenError::Foreign { path: self.path() }),
            Content::NotSqlite => Err(OpenError::NotSqlite { path: self.path() }),
        }
    }
}

fn holder(process: Option<u32>) -> String {
    match process {
        Some(own) if own == std::process::id() => format!("this process ({own})"),
        Some(other) => format!("process {other}"),
        None => "another process".to_owned(),
    }
}
