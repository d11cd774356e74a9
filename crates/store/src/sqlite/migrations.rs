//! The versions of the schema, and the way from each to the next.
//!
//! Owns the two numbers in the file's header that say whose it is ([`APPLICATION_ID`]) and which version it has
//! (`user_version`). A migration is one transaction: a crash leaves the file in the version before it or in the one after
//! it. Files of a newer version are refused by [`super::open`], before this is asked.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Marks a file as ours: the letters `Stdf`.
pub(super) const APPLICATION_ID: u32 = 0x5374_6466;

/// What makes a file of each version from the version before; the first makes it from nothing.
const MIGRATIONS: [&str; 2] = [include_str!("migrations/0001_rows.sql"), include_str!("migrations/0002_removal.sql")];

/// The version that this program writes, and the newest that it can read.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Whether a file has been changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Migrated {
    /// It had the newest version already.
    No,
    /// It has it now.
    Yes,
}

/// Brings a file of ours, or an empty one, to the newest version.
pub(super) fn migrate(connection: &mut Connection, from: u32) -> Result<Migrated, StoreError> {
    for (version, step) in (1..).zip(MIGRATIONS).skip(from as usize) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(if from < VERSION { Migrated::Yes } else { Migrated::No })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_gets_the_newest_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut connection, 0).unwrap(), Migrated::Yes);
        let number = |name| connection.pragma_query_value::<u32, _>(None, name, |row| row.get(0)).unwrap();
        assert_eq!((number("application_id"), number("user_version")), (APPLICATION_ID, VERSION));
    }

    #[test]
    fn a_file_of_the_newest_version_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 0).unwrap();
        assert_eq!(migrate(&mut connection, VERSION).unwrap(), Migrated::No);
    }
}
