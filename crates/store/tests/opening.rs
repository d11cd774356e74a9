//! Opening a store: what becomes one, what is refused and left as it was, and who may hold it.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use steadfast_store::Store;
use steadfast_store::sqlite::{OpenError, SqliteStore};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Every file of a folder with its bytes.
fn content(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Opening is refused with this message, in which `…` stands for the folder, and the folder is as before.
#[track_caller]
fn refused(folder: &TempDir, name: &str, message: &str) {
    let before = content(folder);
    let error = SqliteStore::open(folder.path().join(name)).unwrap_err();
    assert_eq!(error.to_string().replace(&*folder.path().to_string_lossy(), "…"), message);
    assert!(content(folder) == before, "the refusal left traces: {:?}", content(folder).keys());
}

/// A closed store, and nothing beside it.
fn closed_store(folder: &TempDir, change: &str) {
    let file = folder.path().join("store.db");
    drop(SqliteStore::open(&file).unwrap());
    fs::remove_file(folder.path().join("store.db.lock")).unwrap();
    Connection::open(&file).unwrap().execute_batch(change).unwrap();
    assert_eq!(content(folder).len(), 1);
}

#[test]
fn a_new_store_is_one_file_and_its_lock_once_it_is_closed() {
    let folder = folder();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    store.begin_boot().unwrap();
    drop(store);
    let names: Vec<String> = content(&folder).into_keys().collect();
    assert_eq!(names, ["store.db", "store.db.lock"]);
}

#[test]
fn a_file_without_content_becomes_a_store() {
    let folder = folder();
    fs::write(folder.path().join("store.db"), "").unwrap();
    SqliteStore::open(folder.path().join("store.db")).unwrap().begin_boot().unwrap();
}

#[test]
fn an_sqlite_file_in_which_nothing_was_made_becomes_a_store() {
    let folder = folder();
    let file = folder.path().join("store.db");
    Connection::open(&file).unwrap().pragma_update(None, "journal_mode", "WAL").unwrap();
    assert!(fs::metadata(&file).unwrap().len() > 0);
    SqliteStore::open(&file).unwrap().begin_boot().unwrap();
}

#[test]
fn a_file_that_is_not_sqlite_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("notes.txt"), "buy milk\n".repeat(100)).unwrap();
    let message = "`…/notes.txt` is not a store: it is no SQLite file; it was left as it is, choose another name";
    refused(&folder, "notes.txt", message);
}

#[test]
fn a_file_of_another_program_is_refused() {
    let message = "`…/other.db` is not a store: it is an SQLite file of another program; \
         it was left as it is, choose another name";
    for made in ["CREATE TABLE songs (title)", "PRAGMA application_id = 7", "PRAGMA user_version = 3"] {
        let folder = folder();
        Connection::open(folder.path().join("other.db")).unwrap().execute_batch(made).unwrap();
        refused(&folder, "other.db", message);
    }
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let folder = folder();
    closed_store(&folder, "PRAGMA user_version = 99");
    let message = "store `…/store.db` has version 99, this program knows versions up to 2; \
         it was left as it is, run the newer program";
    refused(&folder, "store.db", message);
}

#[test]
fn a_newer_version_is_noticed_where_it_is_not_yet_in_the_main_file() {
    let folder = folder();
    closed_store(&folder, "");
    let file = folder.path().join("store.db");
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    // As after a crash: copied while the change is only in the `-wal` file.
    let crashed = self::folder();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(folder.path().join(name), crashed.path().join(name)).unwrap();
    }
    let before = content(&crashed);
    let error = SqliteStore::open(crashed.path().join("store.db")).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, known: 2, .. }), "{error}");
    let after = content(&crashed);
    assert!(before.iter().all(|(name, bytes)| after[name] == *bytes), "the refusal changed a file");
}

#[test]
fn a_folder_is_refused() {
    let folder = folder();
    let error = SqliteStore::open(folder.path()).unwrap_err().to_string();
    let message = "`…` is a folder; give the name of a file, for instance `…/steadfast.db`";
    assert_eq!(error.replace(&*folder.path().to_string_lossy(), "…"), message);
}

#[test]
fn a_missing_folder_is_refused_and_not_made() {
    let folder = folder();
    let message =
        "store `…/missing/store.db` cannot be made: there is no folder `…/missing`; make it, or choose another name";
    refused(&folder, "missing/store.db", message);
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let message =
        "store `…/file/store.db` cannot be made: there is no folder `…/file`; make it, or choose another name";
    refused(&folder, "file/store.db", message);
}

#[test]
fn no_name_at_all_is_refused() {
    let error = SqliteStore::open("").unwrap_err();
    assert_eq!(error.to_string(), "`` is not a file; choose another name");
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_is_refused() {
    let error = SqliteStore::open("/dev/null").unwrap_err();
    assert_eq!(error.to_string(), "`/dev/null` is not a file; choose another name");
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_written_is_refused() {
    // Not even root makes files here, so this needs no permissions that root would ignore.
    let error = SqliteStore::open("/sys/kernel/store.db").unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("store `/sys/kernel/store.db` cannot be written: "), "{text}");
    assert!(text.ends_with("; make the file and its folder writable, or choose another name"), "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let folder = folder();
    closed_store(&folder, "");
    let file = folder.path().join("store.db");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).unwrap();
    match SqliteStore::open(&file) {
        Err(error) => assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}"),
        // Permissions do not bind root, for whom the file can be written.
        Ok(store) => store.probe().unwrap(),
    }
}

#[test]
fn a_lock_file_that_cannot_be_used_is_refused() {
    let folder = folder();
    fs::create_dir(folder.path().join("store.db.lock")).unwrap();
    let error = SqliteStore::open(folder.path().join("store.db")).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
}

#[track_caller]
fn in_use_by_this_process(path: &Path) {
    let own = std::process::id();
    let error = SqliteStore::open(path).unwrap_err();
    let message =
        format!("store `{}` is in use by this process ({own}); stop it, or choose another file", path.display());
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_store_is_opened_only_once_in_a_process() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).unwrap();
    in_use_by_this_process(&file);
    in_use_by_this_process(&folder.path().join("./store.db"));
    store.begin_boot().unwrap();
    drop(store);
    assert_eq!(SqliteStore::open(&file).unwrap().begin_boot().unwrap(), 2);
}

#[test]
#[cfg(unix)]
fn a_store_is_opened_only_once_whatever_it_is_called() {
    let folder = folder();
    let (file, link) = (folder.path().join("store.db"), folder.path().join("link.db"));
    let _store = SqliteStore::open(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    in_use_by_this_process(&link);
}

#[test]
fn a_store_is_in_use_as_long_as_somebody_reads() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let reader = SqliteStore::open(&file).unwrap().reader().unwrap();
    in_use_by_this_process(&file);
    drop(reader);
    SqliteStore::open(&file).unwrap();
}

#[test]
fn people_can_read_the_file_while_it_is_open() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).unwrap();
    store.begin_boot().unwrap();
    let person = Connection::open(&file).unwrap();
    let boot: String = person.query_row("SELECT value FROM meta WHERE name = 'boot'", (), |row| row.get(0)).unwrap();
    assert_eq!(boot, "1");
    store.begin_boot().unwrap();
}

const HELD_FILE: &str = "STEADFAST_TEST_HELD_FILE";

/// Run as a process of its own by the next test; by itself it has nothing to do.
#[test]
fn holder_of_a_store() {
    if let Some(file) = std::env::var_os(HELD_FILE) {
        let store = SqliteStore::open(file).unwrap();
        println!("\nboot {}", store.begin_boot().unwrap());
        // Until it is killed.
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

#[test]
fn a_store_held_by_another_process_is_refused_until_that_process_is_killed() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder_of_a_store", "--nocapture"])
        .env(HELD_FILE, &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.into_iter().find(|line| line.starts_with("boot")).unwrap(), "boot 1");

    let error = SqliteStore::open(&file).unwrap_err();
    let expected =
        format!("store `{}` is in use by process {}; stop it, or choose another file", file.display(), holder.id());
    assert_eq!(error.to_string(), expected);

    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(folder.path().join("store.db.lock").exists());
    assert_eq!(SqliteStore::open(&file).unwrap().begin_boot().unwrap(), 2, "what it committed is there");
}

#[test]
fn a_store_with_two_names_is_refused() {
    let folder = folder();
    closed_store(&folder, "");
    fs::hard_link(folder.path().join("store.db"), folder.path().join("other.db")).unwrap();
    let message = "store `…/other.db` has 2 names (hard links), of which only one would be locked; remove the others";
    refused(&folder, "other.db", message);
}

#[test]
fn a_log_whose_store_is_gone_is_not_taken_for_that_of_a_new_one() {
    let folder = folder();
    fs::write(folder.path().join("store.db-wal"), "commits that somebody misses").unwrap();
    let message =
        "`…/store.db-wal` belongs to a store that is not there; put `…/store.db` back beside it, or remove it";
    refused(&folder, "store.db", message);
}

#[test]
fn a_link_to_a_store_that_is_not_there_yet_makes_it_where_the_link_points() {
    let folder = folder();
    fs::create_dir(folder.path().join("disk")).unwrap();
    std::os::unix::fs::symlink("disk/real.db", folder.path().join("link.db")).unwrap();
    let store = SqliteStore::open(folder.path().join("link.db")).unwrap();
    store.begin_boot().unwrap();
    assert!(SqliteStore::open(folder.path().join("disk/real.db")).is_err(), "it is the same store, and in use");
    drop(store);
    assert!(fs::symlink_metadata(folder.path().join("link.db")).unwrap().is_symlink());
    assert!(fs::metadata(folder.path().join("disk/real.db")).unwrap().len() > 0);
}

#[test]
fn who_lost_the_store_to_another_process_writes_no_more() {
    let folder = folder();
    let file = folder.path().join("store.db");
    let first = SqliteStore::open(&file).unwrap();
    first.begin_boot().unwrap();
    // Somebody tidies up.
    fs::remove_file(folder.path().join("store.db.lock")).unwrap();
    let second = SqliteStore::open(&file).unwrap();
    second.begin_boot().unwrap();
    let mut batch = steadfast_store::batch::Batch::default();
    let actor = steadfast_core::ids::ActorId::parse("run:a").unwrap();
    batch.of(&actor).state.insert("k".into(), Some(steadfast_core::json::Json::null()));
    let refused = "another process has opened the store since (boot 2, this one is 1); stop this one";
    assert_eq!(first.commit(&batch).unwrap_err().to_string(), refused);
    assert_eq!(first.probe().unwrap_err().to_string(), refused);
    second.commit(&batch).unwrap();
}
