//! An actor's own storage: reading it, and reading it through writes that are not in it yet.
//!
//! Owns the merge of an overlay with what lies below; never writes anything.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::TurnError;
use crate::json::Json;
use crate::limits;

/// Keys with their values, in order of the keys.
pub type Entries = Vec<(Arc<str>, Json)>;

/// Writes not yet in the storage below: a value, or `None` for a deleted key.
pub type Writes = BTreeMap<Arc<str>, Option<Json>>;

/// An actor's own storage as it was before the turn: ordered keys, JSON values.
pub trait Storage {
    /// The value at `key`.
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError>;

    /// Up to `limit` entries within the bounds, in order of their keys; never more than
    /// [`limits::SCAN_ROWS_MAX`].
    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError>;
}

/// The end of the range of all keys that begin with `prefix`.
#[must_use]
pub fn prefix_end(prefix: &str) -> String {
    // The last character there is: it sorts after whatever follows the prefix, unless that begins with it too.
    format!("{prefix}\u{10ffff}")
}

/// Scans `below` with `writes` laid over it. `below` is told where to begin and how many rows are wanted.
///
/// Costs what it returns, plus what `writes` hides of it.
pub fn scan_over<E>(
    writes: &Writes,
    from: Bound<&str>,
    to: Bound<&str>,
    limit: usize,
    mut below: impl FnMut(Bound<&str>, usize) -> Result<Entries, E>,
) -> Result<Entries, E> {
    let limit = limit.min(limits::SCAN_ROWS_MAX);
    let mut found = Entries::new();
    if limit == 0 || is_empty_range(from, to) {
        return Ok(found);
    }
    let mut above = writes.range::<str, _>((from, to)).peekable();
    let mut start: Bound<Arc<str>> = from.map(Arc::from);
    // Twice as many each time: what `writes` hides is passed over in a few questions, not in one for each row.
    let mut asked = limit;
    while found.len() < limit {
        let rows = below(start.as_ref().map(|key| &**key), asked)?;
        let is_exhausted = rows.len() < asked;
        asked = (asked * 2).min(limits::SCAN_ROWS_MAX);
        for (key, value) in rows {
            while found.len() < limit
                && let Some((written_key, written)) = above.next_if(|(written_key, _)| **written_key < key)
            {
                found.extend(written.clone().map(|value| (written_key.clone(), value)));
            }
            if found.len() == limit {
                break;
            }
            start = Bound::Excluded(key.clone());
            match above.next_if(|(written_key, _)| **written_key == key) {
                Some((_, written)) => found.extend(written.clone().map(|value| (key, value))),
                None => found.push((key, value)),
            }
        }
        if is_exhausted {
            let rest = above.filter_map(|(key, written)| Some((key.clone(), written.clone()?)));
            found.extend(rest.take(limit - found.len()));
            break;
        }
    }
    Ok(found)
}

/// `BTreeMap::range` panics on these; a scan of nothing is no fault.
fn is_empty_range(from: Bound<&str>, to: Bound<&str>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}
