//! Numbers as every store can hold them: signed, 64 bits.
//!
//! Owns the one conversion, so that all stores refuse the same numbers.

use steadfast_core::ids::Sequence;

use crate::StoreError;

/// The stored form of a number that is to be written.
pub(crate) fn storable(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Failed(format!("{number} is larger than a store can hold")))
}

/// The stored form of a number that rows are compared with: no row lies beyond the largest.
pub(crate) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many rows are wanted.
pub(crate) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The boot number after `last`; 0 stands for none.
pub(crate) fn boot_after(last: u32) -> Result<u32, StoreError> {
    // A sequence leads with its boot, and one of a later boot would no longer fit a signed column.
    if last < Sequence::BOOTS_MAX {
        Ok(last + 1)
    } else {
        Err(StoreError::Failed(format!("it was opened {last} times, which is the most")))
    }
}
