//! Random batches into SQLite and into memory: every reader must answer alike.

use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;
use steadfast_core::ids::{ActorId, RequestId, Sequence, Shard, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;
use steadfast_store::batch::{ActorWrites, Batch, MessageChange};
use steadfast_store::memory::MemoryStore;
use steadfast_store::rows::{DeadLetterRow, EventRow, MessageRow, Origin, RequestRow, TaskRow};
use steadfast_store::sqlite::SqliteStore;
use steadfast_store::{Reader, Store};

/// One change of one row. Names and numbers are few, so that changes meet.
#[derive(Debug, Clone)]
enum Change {
    Put(u8, String),
    Remove(u8),
    Alarm(Option<u64>),
    Message(u64, u8),
    Retry(u64, u32, u64),
    Consume(u64),
    Task(u8, u64),
    Settle(u8),
    Remember(u8, Option<u32>, u64),
    Forget(u8),
    Event(u64),
    DeadLetter(u64),
    DropDeadLetter(u64),
}

fn change() -> impl Strategy<Value = Change> {
    let few = 0_u64..6;
    let name = 0_u8..5;
    prop_oneof![
        (name.clone(), "\\PC{0,8}").prop_map(|(key, text)| Change::Put(key, text)),
        name.clone().prop_map(Change::Remove),
        prop::option::of(few.clone()).prop_map(Change::Alarm),
        (few.clone(), 0_u8..3).prop_map(|(sequence, origin)| Change::Message(sequence, origin)),
        (few.clone(), any::<u32>(), few.clone()).prop_map(|(sequence, tries, at)| Change::Retry(sequence, tries, at)),
        few.clone().prop_map(Change::Consume),
        (name.clone(), few.clone()).prop_map(|(task, sequence)| Change::Task(task, sequence)),
        name.clone().prop_map(Change::Settle),
        (name.clone(), prop::option::of(any::<u32>()), few.clone())
            .prop_map(|(request, reply, at)| Change::Remember(request, reply, at)),
        name.prop_map(Change::Forget),
        few.clone().prop_map(Change::Event),
        few.clone().prop_map(Change::DeadLetter),
        few.prop_map(Change::DropDeadLetter),
    ]
}

/// Two of the actors share a shard.
fn actors() -> Vec<ActorId> {
    let mut actors: Vec<ActorId> = vec![ActorId::parse("run:0").unwrap(), ActorId::parse("pool:a/1").unwrap()];
    let same = (1..).map(|n| ActorId::new("run", &n.to_string()).unwrap()).find(|id| id.shard() == actors[0].shard());
    actors.extend(same);
    actors
}

fn apply(writes: &mut ActorWrites, actor: &ActorId, change: &Change) {
    let actor = actor.clone();
    match change {
        Change::Put(key, text) => drop(writes.state.insert(key_name(*key).into(), Some(Json::encode(text).unwrap()))),
        Change::Remove(key) => drop(writes.state.insert(key_name(*key).into(), None)),
        Change::Alarm(due) => writes.alarm = due.map_or(AlarmChange::Off, |due| AlarmChange::At(Timestamp(due))),
        Change::Message(sequence, origin) => {
            let sequence = Sequence(*sequence);
            let origin = match origin {
                0 => Origin::Actor(actor.clone()),
                1 => Origin::Outside,
                _ => Origin::Engine,
            };
            let row = MessageRow { actor, sequence, origin, body: Json::null(), attempts: 0, not_before: Timestamp(0) };
            // As it is, and not through the coalescing: a batch may hold anything.
            writes.messages.insert(sequence, MessageChange::Insert(row));
        }
        Change::Retry(sequence, tries, at) => writes.retry_message(Sequence(*sequence), *tries, Timestamp(*at)),
        Change::Consume(sequence) => writes.consume_message(Sequence(*sequence)),
        Change::Task(task, sequence) => writes.insert_task(TaskRow {
            actor,
            task: task_id(*task),
            sequence: Sequence(*sequence),
            executor: "http".into(),
            input: Json::null(),
        }),
        Change::Settle(task) => writes.settle_task(&task_id(*task)),
        Change::Remember(request, reply, at) => writes.remember_request(RequestRow {
            actor,
            request: request_id(*request),
            reply: reply.map(|reply| Json::encode(&reply).unwrap()),
            expires_at: Timestamp(*at),
        }),
        Change::Forget(request) => writes.forget_request(&request_id(*request)),
        Change::Event(sequence) => writes.events.push(EventRow {
            actor,
            sequence: *sequence,
            at: Timestamp(1),
            event_type: "step.done".into(),
            data: Json::null(),
        }),
        Change::DeadLetter(id) => writes.insert_dead_letter(DeadLetterRow {
            id: Sequence(*id),
            actor,
            input: Json::null(),
            error: "boom".to_owned(),
            attempts: 3,
            at: Timestamp(2),
        }),
        Change::DropDeadLetter(id) => writes.delete_dead_letter(Sequence(*id)),
    }
}

fn key_name(key: u8) -> &'static str {
    ["", "a", "b/1", "ü", "🦀"][usize::from(key)]
}

fn task_id(task: u8) -> TaskId {
    TaskId::new(&format!("task-{task}")).unwrap()
}

fn request_id(request: u8) -> RequestId {
    RequestId::given(&format!("request-{request}")).unwrap()
}

/// Everything that the reader can tell, in pages of `limit`, from a place in the middle and from the beginning.
fn answers(reader: &dyn Reader, limit: usize, number: u64) -> Vec<String> {
    let mut answers = Vec::new();
    let mut note = |answer: &dyn std::fmt::Debug| answers.push(format!("{answer:?}"));
    for actor in &actors() {
        note(&reader.head(actor));
        note(&reader.events(actor, number, limit));
        note(&reader.message(actor, Sequence(number)));
        for name in 0..5 {
            note(&reader.get(actor, key_name(name)));
            note(&reader.task(actor, &task_id(name)));
            note(&reader.request(actor, &request_id(name)));
            let end = key_name(number as u8 % 5);
            note(&reader.scan(actor, Bound::Excluded(key_name(name)), Bound::Included(end), limit));
            note(&reader.scan(actor, Bound::Included(key_name(name)), Bound::Unbounded, limit));
            note(&reader.scan(actor, Bound::Unbounded, Bound::Excluded(key_name(name)), limit));
        }
        note(&reader.messages(actor.shard(), Some((actor, Sequence(number))), limit));
        note(&reader.alarms(actor.shard(), (Timestamp(number), actor.as_str()), Timestamp(4), limit));
    }
    for shard in Shard::all() {
        note(&reader.messages(shard, None, limit));
        note(&reader.alarms(shard, (Timestamp(0), ""), Timestamp(number), limit));
        note(&reader.expired_requests(shard, Timestamp(number), limit));
        for after in [None, Some(Sequence(number))] {
            // Without a bound, because places are not unique here and a page may end between two of the same.
            note(&reader.tasks(shard, after, usize::MAX));
            note(&reader.dead_letters(shard, after, limit));
        }
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_and_memory_answer_alike(
        batches in vec(vec((0_usize..3, change()), 0..10), 1..10), limit in 1_usize..5, number in 0_u64..6,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let (sqlite, memory) = (SqliteStore::open(&file).unwrap(), MemoryStore::new());
        let (from_sqlite, from_memory) = (sqlite.reader().unwrap(), memory.reader().unwrap());
        let actors = actors();
        for changes in &batches {
            let mut batch = Batch::default();
            for (actor, change) in changes {
                apply(batch.of(&actors[*actor]), &actors[*actor], change);
            }
            // Either both take it, or both refuse it and are as before.
            prop_assert_eq!(sqlite.commit(&batch).is_ok(), memory.commit(&batch).is_ok(), "{:?}", batch);
            prop_assert_eq!(answers(&*from_sqlite, limit, number), answers(&*from_memory, limit, number));
        }
        drop((sqlite, from_sqlite));
        let reopened = SqliteStore::open(&file).unwrap().reader().unwrap();
        prop_assert_eq!(answers(&*reopened, limit, number), answers(&*from_memory, limit, number));
    }
}
