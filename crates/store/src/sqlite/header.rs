//! The first 100 bytes of a file: whether it is a store that this program may open.
//!
//! Owns that decision, made from the bytes themselves, because SQLite would leave files beside a store that it has only
//! looked at. The newest header may still be in the `-wal` file, so [`super::open`] asks again over a connection.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::migrations::{APPLICATION_ID, VERSION};

/// What a file is, as far as its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing, or an SQLite file in which nothing was ever made: it becomes a store.
    Empty,
    /// A store of a version that this program knows.
    Ours {
        /// That version.
        version: u32,
    },
    /// A store of a version that this program does not know.
    Newer {
        /// That version.
        version: u32,
    },
    /// An SQLite file of another program.
    Foreign,
    /// No SQLite file.
    NotSqlite,
}

const LENGTH: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const SCHEMA_COOKIE_AT: usize = 40;
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;

/// Reads the header of an existing file. SQLite must not have it open in this process: closing the file would
/// take SQLite's own locks away (as POSIX has it).
pub(super) fn read(file: &Path) -> io::Result<Content> {
    let mut header = Vec::with_capacity(LENGTH);
    File::open(file)?.take(LENGTH as u64).read_to_end(&mut header)?;
    Ok(content(&header))
}

/// What the numbers of a header mean together.
pub(super) fn judge(application_id: u32, version: u32, has_tables: bool) -> Content {
    match application_id {
        APPLICATION_ID if version > VERSION => Content::Newer { version },
        APPLICATION_ID => Content::Ours { version },
        0 if version == 0 && !has_tables => Content::Empty,
        _ => Content::Foreign,
    }
}

fn content(header: &[u8]) -> Content {
    if header.is_empty() {
        return Content::Empty;
    }
    if header.len() < LENGTH || !header.starts_with(MAGIC) {
        return Content::NotSqlite;
    }
    let number = |at: usize| header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    // The cookie counts changes of the schema: at 0 no table was ever made.
    judge(number(APPLICATION_ID_AT), number(USER_VERSION_AT), number(SCHEMA_COOKIE_AT) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(application_id: u32, version: u32, cookie: u32) -> [u8; LENGTH] {
        let mut header = [0; LENGTH];
        header[..16].copy_from_slice(MAGIC);
        for (at, number) in
            [(APPLICATION_ID_AT, application_id), (USER_VERSION_AT, version), (SCHEMA_COOKIE_AT, cookie)]
        {
            header[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        header
    }

    #[test]
    fn a_store_is_known_by_its_mark_and_version() {
        assert_eq!(content(&header(APPLICATION_ID, VERSION, 1)), Content::Ours { version: VERSION });
        assert_eq!(content(&header(APPLICATION_ID, VERSION + 1, 1)), Content::Newer { version: VERSION + 1 });
    }

    #[test]
    fn what_holds_nothing_becomes_a_store() {
        assert_eq!(content(&[]), Content::Empty);
        assert_eq!(content(&header(0, 0, 0)), Content::Empty);
    }

    #[test]
    fn the_files_of_others_are_told_apart() {
        assert_eq!(content(&header(7, 0, 0)), Content::Foreign);
        assert_eq!(content(&header(0, 0, 3)), Content::Foreign);
        assert_eq!(content(&header(0, 5, 0)), Content::Foreign);
        assert_eq!(content(b"hello"), Content::NotSqlite);
        assert_eq!(content(&header(APPLICATION_ID, 1, 1)[..99]), Content::NotSqlite);
        assert_eq!(content(&[b'x'; 200]), Content::NotSqlite);
    }
}
