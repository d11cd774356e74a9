//! Where a benchmark's files go, and that they go away again.
//!
//! Owns a temporary folder, on the disk that is to be measured, and the choice between a store of ours and one that the user named.
//! The folder is removed at the end, after an error, and on Ctrl-C; a store that the user named is kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use steadfast_store::sqlite::OpenError;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::usage::WrongUsage;

/// The files of one run.
pub(crate) struct Place {
    temporary: PathBuf,
    kept: Option<PathBuf>,
}

/// Exit codes of a process that a signal ended, as shells have them.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// How often, and after how long, the removal of a folder in use is tried again.
const REMOVALS_TRIED: u32 = 100;
const REMOVE_AGAIN: Duration = Duration::from_millis(5);

/// What its name begins with; the number of the process follows.
const FOLDER: &str = ".steadfast-bench-";

/// How many names are tried for the folder.
const FOLDERS_TRIED: u32 = 100;

impl Place {
    /// A folder, a store file, or a temporary folder in the current one.
    pub(crate) fn at(store: Option<&Path>) -> anyhow::Result<Self> {
        match store {
            Some(file) if !file.is_dir() => Self::make(parent_of(file)?, Some(file.to_owned())),
            folder => Self::in_folder(folder),
        }
    }

    /// A folder, or a temporary one in the current folder.
    pub(crate) fn in_folder(folder: Option<&Path>) -> anyhow::Result<Self> {
        match folder {
            Some(path) if !path.is_dir() => {
                let path = path.display();
                let why =
                    format!("`{path}` is not a folder; `bench all` makes several stores, give it a folder for them");
                Err(WrongUsage(why).into())
            }
            Some(folder) => Self::make(folder, None),
            None => Self::make(Path::new("."), None),
        }
    }

    fn make(beside: &Path, kept: Option<PathBuf>) -> anyhow::Result<Self> {
        // Listened for before the folder is there: an interruption between the two would leave it.
        let interruption = Interruption::listen()?;
        let temporary = make_folder(beside).with_context(|| {
            format!("no folder can be made in `{}`; choose another place with `--store`", beside.display())
        })?;
        let place = Self { temporary, kept };
        interruption.then_remove(place.temporary.clone())?;
        Ok(place)
    }

    /// The store of the benchmark `name`.
    pub(crate) fn store(&self, name: &str) -> PathBuf {
        self.kept.clone().unwrap_or_else(|| self.scratch(&format!("{name}.db")))
    }

    /// A file that is removed at the end, on the same disk as the stores.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.temporary.join(name)
    }

    /// The store that the user named.
    pub(crate) fn kept(&self) -> Option<&Path> {
        self.kept.as_deref()
    }

    /// The folder of what is removed at the end.
    pub(crate) fn folder(&self) -> &Path {
        &self.temporary
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing to be done about a folder that cannot be removed, and its name says what it is.
        drop(fs::remove_dir_all(&self.temporary));
    }
}

fn parent_of(file: &Path) -> Result<&Path, OpenError> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(folder);
    }
    // The words of the store, which would say the same a moment later.
    Err(OpenError::NoFolder { path: file.display().to_string(), folder: folder.display().to_string() })
}

/// A folder that nobody has. One of this process's number may be there, left by a process that was killed.
fn make_folder(beside: &Path) -> io::Result<PathBuf> {
    remove_leftovers(beside);
    let name = format!("{FOLDER}{}", std::process::id());
    let mut folder = beside.join(&name);
    for further in 2..=FOLDERS_TRIED {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
        folder = beside.join(format!("{name}-{further}"));
    }
    fs::create_dir(&folder).map(|()| folder)
}

/// Removes folders of processes that were killed. Where it cannot be known who lives, nothing is removed.
fn remove_leftovers(beside: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let entries = fs::read_dir(beside).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Removes a folder in which other threads may still make files, which would make a single try fail.
fn remove_while_in_use(folder: &Path) {
    for _ in 0..REMOVALS_TRIED {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(REMOVE_AGAIN),
            Ok(()) | Err(_) => return,
        }
    }
}

/// Whether the process ends by a signal. What fails from then on fails because its files are taken away.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Leaves the end to the thread that tidies up, if there is one at it.
pub(crate) fn end_if_interrupted() {
    while IS_INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Ctrl-C and `kill`.
struct Interruption {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(inside);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Removes `folder` and ends the process, if it comes to that.
    fn then_remove(mut self, folder: PathBuf) -> io::Result<()> {
        // Has no owner that waits for it: it ends the process, or ends with it.
        std::thread::Builder::new().name("interruption".to_owned()).spawn(move || {
            let code = self.runtime.block_on(async {
                tokio::select! {
                    _ = self.interrupt.recv() => INTERRUPTED,
                    _ = self.terminate.recv() => TERMINATED,
                }
            });
            IS_INTERRUPTED.store(true, Ordering::SeqCst);
            remove_while_in_use(&folder);
            // Child processes end when they notice that this one has.
            std::process::exit(code);
        })?;
        Ok(())
    }
}
