//! A store in trouble: full, held by a person, or damaged. It says so, shows nothing of what failed, and goes on.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_store::batch::Batch;
use steadfast_store::rows::{MessageRow, Origin};
use steadfast_store::sqlite::{OpenError, Options, SqliteStore};
use steadfast_store::{Reader, Store, StoreError};
use tempfile::TempDir;

fn actor() -> ActorId {
    ActorId::parse("run:a").unwrap()
}

/// `count` values of 10 KB.
fn large(prefix: &str, count: usize) -> Batch {
    let mut batch = Batch::default();
    let value = Json::encode(&"x".repeat(10_000)).unwrap();
    for n in 0..count {
        batch.of(&actor()).state.insert(format!("{prefix}{n:03}").into(), Some(value.clone()));
    }
    batch
}

fn deleted(batch: &Batch) -> Batch {
    let mut batch = batch.clone();
    batch.of(&actor()).state.values_mut().for_each(|value| *value = None);
    batch
}

fn keys(reader: &dyn Reader) -> usize {
    reader.scan(&actor(), std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, 10_000).unwrap().len()
}

#[test]
fn a_full_store_refuses_the_whole_batch_still_reads_and_goes_on_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { pages_max: Some(100), ..Options::default() };
    let store = SqliteStore::open_with(folder.path().join("store.db"), options).unwrap();
    let reader = store.reader().unwrap();
    store.commit(&large("a", 15)).unwrap();

    for _ in 0..3 {
        let error = store.commit(&large("b", 40)).unwrap_err();
        assert!(matches!(error, StoreError::Full(_)), "{error:?}");
        assert_eq!(keys(&*reader), 15, "nothing of the batch is there");
    }
    assert_eq!(reader.get(&actor(), "a000").unwrap().unwrap().bytes(), 10_002);

    store.commit(&large("c", 10)).unwrap();
    assert_eq!(keys(&*reader), 25, "what fits is taken");
    store.commit(&deleted(&large("a", 15))).unwrap();
    store.commit(&large("d", 14)).unwrap();
    assert_eq!(keys(&*reader), 24);
}

#[test]
fn a_probe_of_a_full_store_fails_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { pages_max: Some(100), ..Options::default() };
    let store = SqliteStore::open_with(folder.path().join("store.db"), options).unwrap();
    store.probe().unwrap();
    let one = |number: usize| large(&format!("k{number:03}-"), 1);
    let stored = (0..1_000).take_while(|number| store.commit(&one(*number)).is_ok()).count();
    let error = store.probe().unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    for number in 0..stored / 2 {
        store.commit(&deleted(&one(number))).unwrap();
    }
    store.probe().unwrap();
}

#[test]
fn a_full_store_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { pages_max: Some(50), ..Options::default() };
    let store = SqliteStore::open_with(folder.path().join("store.db"), options).unwrap();
    assert_eq!(
        store.commit(&large("a", 40)).unwrap_err().to_string(),
        "no space left for the store: database or disk is full (SQLite code 13); \
         free some space, the engine goes on by itself"
    );
}

#[test]
fn a_store_that_a_person_holds_is_busy_and_goes_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { busy_wait: Duration::ZERO, ..Options::default() };
    let store = SqliteStore::open_with(folder.path().join("store.db"), options).unwrap();
    let person = Connection::open(folder.path().join("store.db")).unwrap();
    person.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.commit(&large("a", 1)).unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)), "{error:?}");
    assert_eq!(keys(&*store.reader().unwrap()), 0, "but it can be read");
    person.execute_batch("ROLLBACK").unwrap();
    store.commit(&large("a", 1)).unwrap();
}

/// A store with a message and an alarm, changed by a person's statement.
fn damaged_by(statement: &str) -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    let mut batch = Batch::default();
    let writes = batch.of(&actor());
    writes.state.insert("k".into(), Some(Json::null()));
    writes.alarm = steadfast_core::turn::AlarmChange::At(Timestamp(5));
    writes.insert_message(MessageRow {
        actor: actor(),
        sequence: Sequence(7),
        origin: Origin::Outside,
        body: Json::null(),
        attempts: 0,
        not_before: Timestamp(0),
    });
    store.commit(&batch).unwrap();
    change(&folder.path().join("store.db"), statement);
    (folder, store)
}

fn change(file: &Path, statement: &str) {
    assert!(Connection::open(file).unwrap().execute(statement, ()).unwrap() > 0, "{statement} changed nothing");
}

#[track_caller]
fn check_messages(statement: &str, problem: &str) {
    let (_folder, store) = damaged_by(statement);
    let reader = store.reader().unwrap();
    let error = reader.message(&actor(), Sequence(7)).unwrap_err();
    assert_eq!(error, StoreError::Damaged(problem.to_owned()));
    assert_eq!(reader.messages(actor().shard(), None, 10), Ok(Vec::new()), "those behind it must not wait");
}

#[test]
fn a_row_that_is_not_as_we_write_it_is_named() {
    let Shard(shard) = actor().shard();
    let row = format!("table `messages`, row shard {shard}, actor `run:a`, sequence 7");
    check_messages(
        "UPDATE messages SET origin = 'moon'",
        &format!("{row}: `origin` is `moon`, expected `actor`, `outside` or `engine`"),
    );
    check_messages("UPDATE messages SET origin = 'actor'", &format!("{row}: `sender` is empty, expected text"));
    check_messages("UPDATE messages SET body = x'00ff'", &format!("{row}: `body` is binary data, expected text"));
    check_messages("UPDATE messages SET attempts = -1", &format!("{row}: `attempts` is -1, expected 0 or more"));
    check_messages(
        "UPDATE messages SET not_before = 'soon'",
        &format!("{row}: `not_before` is text, expected a whole number"),
    );
}

#[test]
fn rows_behind_a_damaged_one_are_found_and_counted_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).unwrap();
    let Shard(shard) = actor().shard();
    let elsewhere =
        (0..).map(|n| format!("run:{n}")).find(|id| ActorId::parse(id).unwrap().shard().0 != shard).unwrap();
    for number in 1..=6 {
        let mut batch = Batch::default();
        batch.of(&actor()).insert_message(MessageRow {
            actor: actor(),
            sequence: Sequence(number),
            origin: Origin::Outside,
            body: Json::null(),
            attempts: 0,
            not_before: Timestamp(0),
        });
        store.commit(&batch).unwrap();
    }
    // Before all others in the order of the list, and in the middle of it.
    change(&file, "UPDATE messages SET actor = 'nobody' WHERE sequence = 1");
    change(&file, &format!("UPDATE messages SET actor = '{elsewhere}' WHERE sequence = 2"));
    change(&file, "UPDATE messages SET attempts = -1 WHERE sequence = 4");
    let found = store.reader().unwrap().messages(actor().shard(), None, 3).unwrap();
    assert_eq!(found.iter().map(|row| row.sequence.0).collect::<Vec<_>>(), [3, 5, 6]);
}

#[test]
fn other_tables_name_their_rows_too() {
    let Shard(shard) = actor().shard();
    let (_folder, store) = damaged_by("UPDATE state SET value = x'00'");
    let expected =
        format!("table `state`, row shard {shard}, actor `run:a`, key `k`: `value` is binary data, expected text");
    assert_eq!(store.reader().unwrap().get(&actor(), "k").unwrap_err(), StoreError::Damaged(expected));

    let (_folder, store) = damaged_by("UPDATE alarms SET due = 'never'");
    let expected =
        format!("table `alarms or history`, row shard {shard}, actor `run:a`: `due` is text, expected a whole number");
    assert_eq!(store.reader().unwrap().head(&actor()).unwrap_err(), StoreError::Damaged(expected));

    let (_folder, store) = damaged_by("INSERT INTO meta VALUES ('boot', 'many')");
    let expected = "table `meta`, row name `boot`: `value` is not a boot number: invalid digit found in string";
    assert_eq!(store.begin_boot().unwrap_err(), StoreError::Damaged(expected.to_owned()));
}

#[test]
fn a_file_that_was_overwritten_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).unwrap();
    store.commit(&large("a", 20)).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    let error = match SqliteStore::open(&file) {
        Ok(store) => store.reader().unwrap().get(&actor(), "a000").unwrap_err(),
        // The names of the tables are behind the header.
        Err(OpenError::Store { error, .. }) => error,
        Err(error) => panic!("the header is whole: {error}"),
    };
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
}
