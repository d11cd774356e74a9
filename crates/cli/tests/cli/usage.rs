//! Help, versions, and what is refused.

use std::fs;
use std::path::Path;

use steadfast_store::sqlite::SqliteStore;
use tempfile::tempdir;

use crate::command::{names_in, run};

#[test]
fn help_shows_examples() {
    let folder = tempdir().unwrap();
    let help = run(folder.path(), "--help").done();
    assert!(help.starts_with("Durable actors in one binary\n\nUsage: steadfast <COMMAND>"), "{help}");
    assert!(help.contains("steadfast bench all --short"), "{help}");
    assert!(!help.contains("bench-child"), "{help}");
    let help = run(folder.path(), "bench --help").done();
    for name in ["turns", "nest", "sleepers", "recover", "all", "--json", "--store", "Examples:"] {
        assert!(help.contains(name), "`{name}` is missing in {help}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let folder = tempdir().unwrap();
    assert_eq!(run(folder.path(), "--version").done(), concat!("steadfast ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[track_caller]
fn check_wrong(line: &str, expected: &str) {
    let folder = tempdir().unwrap();
    let error = run(folder.path(), line).failed(2);
    assert!(error.contains(expected), "{error}");
    assert_eq!(names_in(folder.path()), [""; 0]);
}

#[test]
fn wrong_usage_is_told_before_anything_is_done() {
    check_wrong("bench turn", "similar subcommand exists: 'turns'");
    check_wrong("bench nest --depth 0", "0 is not in 1..");
    check_wrong("bench turns --concurrency abc", "invalid value 'abc' for '--concurrency");
    check_wrong("bench turns --concurrency 1,0", "0 is not in 1..=16384");
    check_wrong("bench turns --seconds 0", "0 is not between 0.01 and 86400");
    check_wrong("bench turns --seconds 1 --count 1", "cannot be used with");
    check_wrong("bench sleepers --count -1", "unexpected argument '-1'");
    check_wrong("bench recover --count 0", "0 is not in 1..");
}

#[test]
fn a_store_in_a_missing_folder_is_wrong_usage() {
    for bench in ["turns --count 1", "nest --depth 1", "sleepers --count 1", "recover --count 1"] {
        check_wrong(&format!("bench {bench} --store missing/x.db"), "there is no folder `missing`");
    }
}

#[test]
fn the_suite_wants_a_folder() {
    check_wrong("bench all --short --store x.db", "`x.db` is not a folder");
}

/// Every benchmark refuses `file`, and leaves it and its folder alone.
#[track_caller]
fn check_refused(folder: &Path, code: i32, expected: &str) {
    let before = fs::read(folder.join("x.db")).unwrap();
    let names = names_in(folder);
    for bench in
        ["turns --count 1", "nest --depth 1", "nest --depth 1 --depth 2", "sleepers --count 1", "recover --count 1"]
    {
        let error = run(folder, &format!("bench {bench} --store x.db")).failed(code);
        assert!(error.contains(expected), "{bench}: {error}");
        assert_eq!(fs::read(folder.join("x.db")).unwrap(), before, "{bench}");
        assert_eq!(names_in(folder), names, "{bench}");
    }
}

#[test]
fn a_text_file_is_refused_and_unchanged() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("x.db"), "Dear diary, ".repeat(1_000)).unwrap();
    check_refused(folder.path(), 2, "`x.db` is not a store: it is no SQLite file");
}

#[test]
fn a_database_of_another_program_is_refused_and_unchanged() {
    let folder = tempdir().unwrap();
    let other = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    other.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Autumn');").unwrap();
    drop(other);
    check_refused(folder.path(), 2, "it is an SQLite file of another program");
}

#[test]
fn a_store_that_another_process_holds_is_refused_with_its_number() {
    let folder = tempdir().unwrap();
    let held = SqliteStore::open(folder.path().join("x.db")).unwrap();
    let expected = format!("store `x.db` is in use by process {}", std::process::id());
    check_refused(folder.path(), 1, &expected);
    drop(held);
    run(folder.path(), "bench nest --depth 1 --store x.db").done();
}
