//! A chain that is killed again and again goes on, and is right in the end.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tempfile::tempdir;

use crate::command::{run, steadfast};

const SIGKILL: i32 = 9;

/// Runs the chain and kills it so many milliseconds after it has begun to write. Whether it was alive until then.
fn is_killed_after(folder: &Path, wait_ms: u64) -> bool {
    let before = state_of(folder);
    let mut chain =
        steadfast(folder, "bench nest --depth 20000 --store chain.db").stdout(Stdio::null()).spawn().unwrap();
    while state_of(folder) == before && chain.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The moment of death is what varies here, so this waits by the clock; whatever the moment, the end must be right.
    std::thread::sleep(Duration::from_millis(wait_ms));
    chain.kill().unwrap();
    chain.wait().unwrap().signal() == Some(SIGKILL)
}

/// Of the file to which commits go.
fn state_of(folder: &Path) -> Option<(u64, SystemTime)> {
    fs::metadata(folder.join("chain.db-wal")).ok().map(|found| (found.len(), found.modified().unwrap()))
}

#[test]
fn a_chain_that_is_killed_many_times_completes_with_the_right_answer() {
    let folder = tempdir().unwrap();
    let kills =
        [0, 20, 5, 60, 35, 90, 10].into_iter().filter(|wait_ms| is_killed_after(folder.path(), *wait_ms)).count();
    assert!(kills >= 3, "the chain was killed {kills} times only");

    let line = "bench nest --depth 20000 --store chain.db --json";
    let last = run(folder.path(), line).lines();
    assert_eq!(last[0]["levels"], 20_000);
    assert_eq!(last[0]["resumed"], true);
    let again = run(folder.path(), line).lines();
    assert_eq!(again[0]["levels"], 20_000);
}

#[test]
fn a_kill_at_any_moment_of_the_first_opening_leaves_a_store_that_opens() {
    for wait_us in (0..6_000).step_by(200) {
        let folder = tempdir().unwrap();
        let line = "bench nest --depth 3 --store new.db";
        let mut first = steadfast(folder.path(), line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // As above: the moments vary, the end must not.
        std::thread::sleep(Duration::from_micros(wait_us));
        first.kill().unwrap();
        first.wait().unwrap();
        run(folder.path(), line).done();
    }
}
