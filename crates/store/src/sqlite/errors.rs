//! What SQLite's errors mean to whoever uses a store.
//!
//! Owns the mapping to [`StoreError`], which says what a person can do. Never decides whether to try again.

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(cause) = error.sqlite_error().copied() else {
            return Self::Failed(error.to_string());
        };
        // The number finds the case in SQLite's own list; the text alone is often the same for many.
        let text = format!("{error} (SQLite code {})", cause.extended_code);
        // The shared memory beside the file could not be enlarged: SQLite calls it an I/O error, but it is a full disk.
        if cause.code == ErrorCode::DiskFull || cause.extended_code == ffi::SQLITE_IOERR_SHMSIZE {
            Self::Full(text)
        } else if [ErrorCode::ReadOnly, ErrorCode::PermissionDenied, ErrorCode::CannotOpen].contains(&cause.code) {
            Self::ReadOnly(text)
        } else if [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked].contains(&cause.code) {
            Self::Busy(text)
        } else if [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase].contains(&cause.code) {
            Self::Damaged(text)
        } else {
            Self::Failed(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: i32, expected: &str) {
        let error = StoreError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("said so".to_owned())));
        assert_eq!(format!("{error:?}"), expected);
    }

    #[test]
    fn each_error_of_sqlite_says_what_can_be_done() {
        check(ffi::SQLITE_FULL, r#"Full("said so (SQLite code 13)")"#);
        check(ffi::SQLITE_IOERR_SHMSIZE, r#"Full("said so (SQLite code 4874)")"#);
        check(ffi::SQLITE_READONLY, r#"ReadOnly("said so (SQLite code 8)")"#);
        check(ffi::SQLITE_READONLY_DBMOVED, r#"ReadOnly("said so (SQLite code 1032)")"#);
        check(ffi::SQLITE_PERM, r#"ReadOnly("said so (SQLite code 3)")"#);
        check(ffi::SQLITE_CANTOPEN, r#"ReadOnly("said so (SQLite code 14)")"#);
        check(ffi::SQLITE_BUSY, r#"Busy("said so (SQLite code 5)")"#);
        check(ffi::SQLITE_LOCKED, r#"Busy("said so (SQLite code 6)")"#);
        check(ffi::SQLITE_CORRUPT, r#"Damaged("said so (SQLite code 11)")"#);
        check(ffi::SQLITE_NOTADB, r#"Damaged("said so (SQLite code 26)")"#);
        check(ffi::SQLITE_IOERR_FSYNC, r#"Failed("said so (SQLite code 1034)")"#);
        check(ffi::SQLITE_CONSTRAINT, r#"Failed("said so (SQLite code 19)")"#);
    }
}
