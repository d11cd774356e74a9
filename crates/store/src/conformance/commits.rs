//! Cases about commits as such: all or nothing, seen by readers, there after a restart; and about boots.

use steadfast_core::ids::Sequence;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;

use super::{
    Case, Place, actor, cases, dead_letter, event, json, message, neighbours, put, reader, request, request_id, task,
    task_id, write,
};
use crate::batch::Batch;
use crate::rows::Head;
use crate::{Reader, StoreError};

pub(super) const CASES: &[Case] = cases![
    an_empty_batch_changes_nothing,
    a_batch_is_committed_as_a_whole,
    nothing_of_a_failed_batch_is_there_and_the_next_one_works,
    a_number_larger_than_a_store_can_hold_is_refused,
    a_reader_sees_every_commit_that_ended_before,
    readers_of_several_threads_read_while_commits_go_on,
    what_was_committed_is_there_after_reopening,
    boot_numbers_only_grow,
    boot_numbers_go_on_after_reopening,
    a_probe_changes_nothing_that_is_read,
];

/// One row of every kind, for the first of the neighbours, and a value for another one.
fn one_of_each() -> Batch {
    let (first, second, _) = neighbours();
    let mut batch = Batch::default();
    let writes = batch.of(&first);
    writes.state.insert("k".into(), Some(json("1")));
    writes.alarm = AlarmChange::At(Timestamp(10));
    writes.insert_message(message(&first, 1));
    writes.insert_task(task(&first, "t", 2));
    writes.remember_request(request(&first, "r", 100));
    writes.events = vec![event(&first, 1)];
    writes.insert_dead_letter(dead_letter(&first, 4));
    batch.of(&second).state.insert("k".into(), Some(json("2")));
    batch
}

#[track_caller]
fn has_one_of_each(reader: &dyn Reader) {
    let (first, second, _) = neighbours();
    assert_eq!(reader.head(&first).unwrap(), Head { alarm: Some(Timestamp(10)), last_event: 1, has_state: true });
    assert_eq!(reader.get(&first, "k").unwrap(), Some(json("1")));
    assert_eq!(reader.get(&second, "k").unwrap(), Some(json("2")));
    assert_eq!(reader.message(&first, Sequence(1)).unwrap(), Some(message(&first, 1)));
    assert_eq!(reader.task(&first, &task_id("t")).unwrap(), Some(task(&first, "t", 2)));
    assert_eq!(reader.request(&first, &request_id("r")).unwrap(), Some(request(&first, "r", 100)));
    assert_eq!(reader.events(&first, 0, 10).unwrap(), [event(&first, 1)]);
    assert_eq!(reader.dead_letters(first.shard(), None, 10).unwrap(), [dead_letter(&first, 4)]);
}

#[track_caller]
fn has_nothing(reader: &dyn Reader) {
    let (first, second, _) = neighbours();
    assert_eq!(reader.head(&first).unwrap(), Head::default());
    assert_eq!(reader.head(&second).unwrap(), Head::default());
    assert_eq!(reader.alarms(first.shard(), (Timestamp(0), ""), Timestamp::MAX, 10).unwrap(), []);
    assert_eq!(reader.messages(first.shard(), None, 10).unwrap(), []);
    assert_eq!(reader.tasks(first.shard(), None, 10).unwrap(), []);
    assert_eq!(reader.expired_requests(first.shard(), Timestamp::MAX, 10).unwrap(), []);
    assert_eq!(reader.events(&first, 0, 10).unwrap(), []);
    assert_eq!(reader.dead_letters(first.shard(), None, 10).unwrap(), []);
}

fn an_empty_batch_changes_nothing(place: &dyn Place) {
    let store = place.open();
    store.commit(&Batch::default()).unwrap();
    let mut batch = Batch::default();
    batch.of(&neighbours().0);
    store.commit(&batch).unwrap();
    has_nothing(&*reader(&*store));
}

fn a_batch_is_committed_as_a_whole(place: &dyn Place) {
    let store = place.open();
    store.commit(&one_of_each()).unwrap();
    has_one_of_each(&*reader(&*store));
}

fn nothing_of_a_failed_batch_is_there_and_the_next_one_works(place: &dyn Place) {
    let store = place.open();
    let last = (0..).map(|n| actor(&format!("run:last-{n}"))).find(|last| last.shard().0 == 63).unwrap();
    write(&*store, &last, |writes| writes.insert_dead_letter(dead_letter(&last, 1)));
    let mut batch = one_of_each();
    // The last row of the last table is the one that fails.
    batch.of(&last).insert_dead_letter(dead_letter(&last, 1));
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    has_nothing(&*reader(&*store));
    store.commit(&one_of_each()).unwrap();
    has_one_of_each(&*reader(&*store));
}

fn a_number_larger_than_a_store_can_hold_is_refused(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let mut batch = one_of_each();
    batch.of(&a).alarm = AlarmChange::At(Timestamp(u64::MAX));
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    has_nothing(&*reader(&*store));
}

fn a_reader_sees_every_commit_that_ended_before(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let (early, other) = (reader(&*store), reader(&*store));
    for n in 0..5 {
        put(&*store, &a, "k", &n.to_string());
        assert_eq!(early.get(&a, "k").unwrap(), Some(json(&n.to_string())));
        assert_eq!(other.get(&a, "k").unwrap(), Some(json(&n.to_string())));
    }
}

fn readers_of_several_threads_read_while_commits_go_on(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", "0");
    std::thread::scope(|threads| {
        for reader in [reader(&*store), reader(&*store)] {
            let a = &a;
            threads.spawn(move || {
                let mut last = 0;
                while last < 50 {
                    let seen: u32 = reader.get(a, "k").unwrap().unwrap().decode().unwrap();
                    assert!(seen >= last, "a reader went back from {last} to {seen}");
                    last = seen;
                }
            });
        }
        for n in 1..=50 {
            put(&*store, &a, "k", &n.to_string());
        }
    });
}

fn what_was_committed_is_there_after_reopening(place: &dyn Place) {
    let store = place.open();
    store.commit(&one_of_each()).unwrap();
    drop(store);
    has_one_of_each(&*reader(&*place.open()));
}

fn boot_numbers_only_grow(place: &dyn Place) {
    let store = place.open();
    let boots: Vec<u32> = (0..3).map(|_| store.begin_boot().unwrap()).collect();
    assert_eq!(boots, [1, 2, 3]);
}

fn boot_numbers_go_on_after_reopening(place: &dyn Place) {
    assert_eq!(place.open().begin_boot().unwrap(), 1);
    assert_eq!(place.open().begin_boot().unwrap(), 2);
}

fn a_probe_changes_nothing_that_is_read(place: &dyn Place) {
    let store = place.open();
    store.probe().unwrap();
    has_nothing(&*reader(&*store));
    store.commit(&one_of_each()).unwrap();
    store.probe().unwrap();
    has_one_of_each(&*reader(&*store));
}
