//! Whether the definitions of a folder have changed.
//!
//! Owns the looking, twice a second: a library that is told by the system would be more code than this, for a handful of files. Never reads one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::definitions::files_of;

/// A folder, as it was when it was looked at last.
pub(super) struct Folder {
    path: PathBuf,
    seen: Files,
}

/// When each was changed, and how large it is.
type Files = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: look(path) }
    }

    /// Waits for a change. One that comes while the last is dealt with is told next.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let found = look(&self.path);
            if found != self.seen {
                self.seen = found;
                return;
            }
        }
    }
}

/// What is there. A folder that cannot be read is as one with nothing in it: whoever reads it says why.
fn look(folder: &Path) -> Files {
    let state = |file: &PathBuf| {
        let facts = fs::metadata(file).ok()?;
        Some((facts.modified().ok()?, facts.len()))
    };
    files_of(folder).unwrap_or_default().into_iter().map(|file| (file.clone(), state(&file))).collect()
}
