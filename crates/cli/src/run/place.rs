//! Where the store is: a file that the user named and that is kept, or a temporary one.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A store's place.
pub(super) enum Place {
    /// The user's.
    Kept(PathBuf),
    /// A folder of ours, removed when this is dropped.
    Temporary(PathBuf),
}

/// How many names are tried for the folder. One may be left by a killed process of the same number.
const FOLDERS_TRIED: u32 = 100;

impl Place {
    /// The store `file`, or a temporary one.
    pub(super) fn at(file: Option<&Path>) -> anyhow::Result<Self> {
        match file {
            Some(file) => Ok(Self::Kept(file.to_owned())),
            None => {
                let beside = std::env::temp_dir();
                let made = make_folder(&beside);
                let made = made.with_context(|| {
                    format!("no folder can be made in `{}`; choose a place with `--store`", beside.display())
                })?;
                Ok(Self::Temporary(made))
            }
        }
    }

    /// The store.
    pub(super) fn file(&self) -> PathBuf {
        match self {
            Self::Kept(file) => file.clone(),
            Self::Temporary(folder) => folder.join("run.db"),
        }
    }

    /// Whether nothing is in it yet.
    pub(super) fn is_new(&self) -> bool {
        !self.file().exists()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match self {
            Self::Kept(_) => {}
            // Nothing to be done about a folder that cannot be removed, and its name says what it is.
            Self::Temporary(folder) => drop(fs::remove_dir_all(folder)),
        }
    }
}

/// A folder that nobody has, and that nobody else can read.
fn make_folder(beside: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 1..=FOLDERS_TRIED {
        let folder = beside.join(format!("steadfast-run-{process}-{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
