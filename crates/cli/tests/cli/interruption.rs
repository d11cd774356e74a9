//! What is left when somebody does not want to wait.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use steadfast_store::sqlite::SqliteStore;
use tempfile::tempdir;

use crate::command::{names_in, run, steadfast};

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until it is so.
#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(folder: &Path, line: &str) -> Child {
    steadfast(folder, line).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn an_interrupted_benchmark_removes_its_files() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = tempdir().unwrap();
        let mut bench = start(folder.path(), "bench turns --seconds 60");
        let is_at_work =
            || names_in(folder.path()).iter().any(|name| folder.path().join(name).join("turns-1.db").exists());
        wait_until(is_at_work);
        assert!(Command::new("kill").args([signal, &bench.id().to_string()]).status().unwrap().success());
        assert_eq!(bench.wait().unwrap().code(), Some(code));
        assert_eq!(names_in(folder.path()), [""; 0]);
    }
}

#[test]
fn a_child_process_ends_when_its_parent_is_killed() {
    let folder = tempdir().unwrap();
    let store = folder.path().join("x.db");
    let mut bench = start(folder.path(), "bench sleepers --count 100000000 --store x.db");
    wait_until(|| folder.path().join("x.db-wal").exists());
    bench.kill().unwrap();
    bench.wait().unwrap();
    // Free again only when the child that held it is gone.
    wait_until(|| SqliteStore::open(&store).is_ok());
}

#[test]
fn what_a_killed_benchmark_leaves_is_removed_by_the_next() {
    let folder = tempdir().unwrap();
    let mut bench = start(folder.path(), "bench turns --seconds 60");
    wait_until(|| !names_in(folder.path()).is_empty());
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert_eq!(names_in(folder.path()), [format!(".steadfast-bench-{}", bench.id())]);
    run(folder.path(), "bench nest --depth 3").done();
    assert_eq!(names_in(folder.path()), [""; 0]);
}
