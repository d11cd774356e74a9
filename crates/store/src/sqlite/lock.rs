//! One process at a time: a lock on a file beside the store.
//!
//! Owns `<store>.lock`, which holds the number of the process for people to read. The lock itself is the system's and
//! ends with the process, so a file left by a killed one means nothing. It is never deleted: somebody could be
//! about to lock the deleted one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Held for as long as the store is open.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

/// Why it could not be taken.
#[derive(Debug)]
pub(super) enum LockError {
    /// A process holds it; its number, if it could be read.
    Held(Option<u32>),
    /// The lock file could not be used.
    Failed(io::Error),
}

impl Lock {
    /// Takes the lock if there is a lock file already: `None` if there is none, and so nobody who holds it.
    pub(super) fn take_existing(store: &Path) -> Result<Option<Self>, LockError> {
        match OpenOptions::new().read(true).write(true).open(path_of(store)) {
            Ok(file) => Self::hold(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LockError::Failed(error)),
        }
    }

    /// Takes the lock, making the lock file if there is none.
    pub(super) fn take(store: &Path) -> Result<Self, LockError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path_of(store));
        Self::hold(file.map_err(LockError::Failed)?)
    }

    fn hold(mut file: File) -> Result<Self, LockError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Failed(error)),
        }
        let noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(LockError::Failed)?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only for people who look: nobody holds it now.
        let _ = self.file.set_len(0);
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn path_of(store: &Path) -> PathBuf {
    let mut path = OsString::from(store);
    path.push(".lock");
    path.into()
}
