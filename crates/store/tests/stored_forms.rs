//! What is on disk, as text: any change of a stored form shows up here, and needs a migration.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use rusqlite::Connection;
use rusqlite::types::Value;
use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;
use steadfast_store::Store;
use steadfast_store::batch::Batch;
use steadfast_store::rows::{DeadLetterRow, EventRow, MessageRow, Origin, RequestRow, TaskRow};
use steadfast_store::sqlite::SqliteStore;

const TABLES: [&str; 11] = [
    "state",
    "messages",
    "alarms",
    "tasks",
    "requests",
    "history",
    "events",
    "runs",
    "run_counts",
    "dead_letters",
    "meta",
];

/// Makes a store with these batches and shows what a person sees in it.
fn stored(batches: &[Batch], show: impl FnOnce(&Connection) -> String) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).unwrap();
    store.begin_boot().unwrap();
    store.probe().unwrap();
    for batch in batches {
        store.commit(batch).unwrap();
    }
    drop(store);
    show(&Connection::open(&file).unwrap())
}

#[test]
fn the_schema() {
    let schema = stored(&[], |connection| {
        let number = |name| connection.pragma_query_value::<i64, _>(None, name, |row| row.get(0)).unwrap();
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let mut statement =
            connection.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").unwrap();
        let made: Vec<String> = statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        format!(
            "application_id {:#x}\nuser_version {}\npage_size {}\njournal_mode {mode}\n\n{}",
            number("application_id"),
            number("user_version"),
            number("page_size"),
            made.join("\n\n"),
        )
    });
    insta::assert_snapshot!(schema);
}

#[test]
fn the_rows_of_everything() {
    let rows = stored(&[everything()], |connection| TABLES.map(|table| dump(connection, table)).join("\n"));
    insta::assert_snapshot!(rows);
}

fn everything() -> Batch {
    let order = ActorId::parse("run:order-42").unwrap();
    let pool = ActorId::parse("pool:webhooks/2").unwrap();
    let json = |text| Json::parse(text).unwrap();
    let sequence = |count| Sequence(Sequence::first_of(3).0 + count);
    let mut batch = Batch::default();

    let writes = batch.of(&order);
    writes.state.insert("run".into(), Some(json(r#"{"status":"running","name":"grüße 🦀"}"#)));
    writes.state.insert("step/1".into(), Some(json("null")));
    writes.alarm = AlarmChange::At(Timestamp(1_763_000_000_000));
    let message = |count, origin, attempts, not_before| MessageRow {
        actor: order.clone(),
        sequence: sequence(count),
        origin,
        body: json(r#"{"say":"it's"}"#),
        attempts,
        not_before: Timestamp(not_before),
    };
    writes.insert_message(message(1, Origin::Actor(pool.clone()), 0, 0));
    writes.insert_message(message(2, Origin::Outside, 2, 1_763_000_000_400));
    writes.insert_message(message(3, Origin::Engine, 0, 0));
    writes.insert_task(TaskRow {
        actor: order.clone(),
        task: TaskId::new("charge#1").unwrap(),
        sequence: sequence(4),
        executor: "http".into(),
        input: json(r#"{"amount":12.50}"#),
    });
    let request = |id, reply| RequestRow {
        actor: order.clone(),
        request: RequestId::given(id).unwrap(),
        reply,
        expires_at: Timestamp(1_763_086_400_000),
    };
    writes.remember_request(request("start-42", Some(json(r#"{"ok":true}"#))));
    writes.remember_request(request("wait-42", None));
    let event = |sequence, kind: &'static str| EventRow {
        actor: order.clone(),
        sequence,
        at: Timestamp(1_763_000_000_000),
        event_type: kind.into(),
        data: json(r#"{"node":"charge"}"#),
    };
    writes.events = vec![event(1, "run.started"), event(2, "task.dispatched")];
    writes.insert_dead_letter(DeadLetterRow {
        id: sequence(5),
        actor: order.clone(),
        input: json(r#"{"v":1,"form":{"alarm":{"due":1763000000000}}}"#),
        error: "turn panicked: boom".to_owned(),
        attempts: 3,
        at: Timestamp(1_763_000_000_900),
    });

    batch.of(&pool).state.insert("head".into(), Some(json("7")));
    batch.of(&pool).alarm = AlarmChange::At(Timestamp::MAX);
    batch
}

/// A table as text, each row with its columns by name, in order of its key.
fn dump(connection: &Connection, table: &str) -> String {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query(()).unwrap();
    let mut text = format!("{table}\n");
    while let Some(row) = rows.next().unwrap() {
        let values = columns.iter().enumerate().map(|(index, column)| match row.get(index).unwrap() {
            Value::Null => format!("{column}=NULL"),
            Value::Integer(number) => format!("{column}={number}"),
            Value::Real(number) => format!("{column}={number:?}"),
            Value::Text(value) => format!("{column}='{value}'"),
            Value::Blob(bytes) => format!("{column}={bytes:?}"),
        });
        text += &format!("  {}\n", values.collect::<Vec<_>>().join("  "));
    }
    text
}
