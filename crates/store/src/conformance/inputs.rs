//! Cases about what waits to become an input: messages, alarms and tasks.

use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;

use super::{Case, Place, actor, cases, json, message, message_pages, neighbours, reader, task, task_id, write};
use crate::batch::{Batch, MessageChange};
use crate::rows::{AlarmRow, MessageRow, Origin, TaskRow};
use crate::{Reader, Store, StoreError};

pub(super) const CASES: &[Case] = cases![
    tasks_of_workers_are_listed_by_queue_in_order_of_dispatch,
    a_message_is_read_back_whoever_sent_it,
    messages_are_listed_by_actor_and_arrival,
    messages_are_listed_page_by_page,
    a_consumed_message_is_gone,
    a_failed_try_is_noted_and_nothing_else_changes,
    noting_a_failed_try_of_a_consumed_message_makes_no_message,
    a_message_that_waits_is_never_overwritten,
    alarms_are_listed_by_time_then_actor,
    alarms_are_listed_up_to_and_including_the_end,
    alarms_are_listed_page_by_page,
    an_alarm_set_again_is_only_at_its_new_time,
    an_alarm_turned_off_is_gone,
    an_alarm_that_is_kept_stays,
    the_last_point_in_time_can_be_an_alarm,
    tasks_are_listed_in_order_of_dispatch,
    a_settled_task_is_gone,
    a_cancelled_task_is_gone_whatever_was_there_before,
    a_name_dispatched_again_is_one_task_in_its_new_place,
];

fn a_message_is_read_back_whoever_sent_it(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let origins = [Origin::Actor(actor("pool:x/2")), Origin::Outside, Origin::Engine];
    for (sequence, origin) in (1..).zip(origins) {
        let row = MessageRow {
            origin,
            body: json("{\"ü\":[1.0]}"),
            attempts: 2,
            not_before: Timestamp(77),
            ..message(&a, Sequence::first_of(3).0 + sequence)
        };
        write(&*store, &a, |writes| writes.insert_message(row.clone()));
        assert_eq!(reader(&*store).message(&a, row.sequence).unwrap(), Some(row));
    }
    assert_eq!(reader(&*store).message(&a, Sequence(1)).unwrap(), None);
}

fn messages_are_listed_by_actor_and_arrival(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    let mut batch = Batch::default();
    for (to, sequence) in [(&second, 1), (&first, 2), (&elsewhere, 3), (&first, 10), (&second, 9)] {
        batch.of(to).insert_message(message(to, sequence));
    }
    store.commit(&batch).unwrap();
    let rows = reader(&*store).messages(first.shard(), None, 100).unwrap();
    assert_eq!(rows, [message(&first, 2), message(&first, 10), message(&second, 1), message(&second, 9)]);
}

fn messages_are_listed_page_by_page(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    for sequence in 0..3 {
        write(&*store, &first, |writes| writes.insert_message(message(&first, sequence)));
        write(&*store, &second, |writes| writes.insert_message(message(&second, sequence + 10)));
    }
    let pages = message_pages(&*reader(&*store), first.shard(), 2);
    let expected = [
        vec![(first.clone(), 0), (first.clone(), 1)],
        vec![(first, 2), (second.clone(), 10)],
        vec![(second.clone(), 11), (second.clone(), 12)],
    ];
    assert_eq!(pages, expected);
    assert!(reader(&*store).messages(second.shard(), None, 0).unwrap().is_empty());
}

fn a_consumed_message_is_gone(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| {
        writes.insert_message(message(&a, 1));
        writes.insert_message(message(&a, 2));
    });
    write(&*store, &a, |writes| writes.consume_message(Sequence(1)));
    write(&*store, &a, |writes| writes.consume_message(Sequence(1)));
    let reader = reader(&*store);
    assert_eq!(reader.message(&a, Sequence(1)).unwrap(), None);
    assert_eq!(reader.messages(a.shard(), None, 10).unwrap(), [message(&a, 2)]);
}

fn a_failed_try_is_noted_and_nothing_else_changes(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let row = MessageRow { origin: Origin::Actor(actor("run:b")), ..message(&a, 1) };
    write(&*store, &a, |writes| writes.insert_message(row.clone()));
    write(&*store, &a, |writes| writes.retry_message(Sequence(1), 2, Timestamp(500)));
    let expected = MessageRow { attempts: 2, not_before: Timestamp(500), ..row };
    assert_eq!(reader(&*store).message(&a, Sequence(1)).unwrap(), Some(expected));
}

fn noting_a_failed_try_of_a_consumed_message_makes_no_message(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.retry_message(Sequence(1), 2, Timestamp(500)));
    assert_eq!(reader(&*store).message(&a, Sequence(1)).unwrap(), None);
}

fn a_message_that_waits_is_never_overwritten(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.insert_message(message(&a, 1)));
    let other = MessageRow { body: json("\"other\""), ..message(&a, 1) };
    let mut batch = Batch::default();
    batch.of(&a).messages.insert(Sequence(1), MessageChange::Insert(other));
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    assert_eq!(reader(&*store).message(&a, Sequence(1)).unwrap(), Some(message(&a, 1)));
}

fn set_alarms(store: &dyn Store, alarms: &[(&str, u64)]) {
    for (id, due) in alarms {
        write(store, &actor(id), |writes| writes.alarm = AlarmChange::At(Timestamp(*due)));
    }
}

/// Alarms of the shard as `due actor`.
fn alarms(reader: &dyn Reader, shard: Shard, after: (u64, &str), until: u64, limit: usize) -> Vec<(u64, String)> {
    let rows = reader.alarms(shard, (Timestamp(after.0), after.1), Timestamp(until), limit).unwrap();
    rows.into_iter().map(|AlarmRow { actor, due }| (due.0, actor.to_string())).collect()
}

fn alarms_are_listed_by_time_then_actor(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    set_alarms(&*store, &[(second.as_str(), 20), (elsewhere.as_str(), 5), (first.as_str(), 20)]);
    let reader = reader(&*store);
    let found = alarms(&*reader, first.shard(), (0, ""), 100, 10);
    assert_eq!(found, [(20, first.to_string()), (20, second.to_string())]);
    set_alarms(&*store, &[(second.as_str(), 0)]);
    let found = alarms(&*reader, first.shard(), (0, ""), 100, 10);
    assert_eq!(found, [(0, second.to_string()), (20, first.to_string())]);
}

fn alarms_are_listed_up_to_and_including_the_end(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    set_alarms(&*store, &[(first.as_str(), 10), (second.as_str(), 11)]);
    let reader = reader(&*store);
    assert_eq!(alarms(&*reader, first.shard(), (0, ""), 9, 10), []);
    assert_eq!(alarms(&*reader, first.shard(), (0, ""), 10, 10), [(10, first.to_string())]);
    assert_eq!(alarms(&*reader, first.shard(), (0, ""), u64::MAX, 10).len(), 2);
}

fn alarms_are_listed_page_by_page(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    set_alarms(&*store, &[(first.as_str(), 10), (second.as_str(), 10)]);
    let reader = reader(&*store);
    let page = |after| alarms(&*reader, first.shard(), after, 100, 1);
    assert_eq!(page((0, "")), [(10, first.to_string())]);
    assert_eq!(page((10, first.as_str())), [(10, second.to_string())]);
    assert_eq!(page((10, second.as_str())), []);
    // The place need not be an alarm's: any text will do.
    assert_eq!(page((10, "")), [(10, first.to_string())]);
    assert_eq!(page((10, "zzz")), []);
    assert_eq!(page((9, "zzz")), [(10, first.to_string())]);
}

fn an_alarm_set_again_is_only_at_its_new_time(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    set_alarms(&*store, &[("run:a", 10), ("run:a", 30)]);
    let reader = reader(&*store);
    assert_eq!(alarms(&*reader, a.shard(), (0, ""), 100, 10), [(30, "run:a".to_owned())]);
    assert_eq!(reader.head(&a).unwrap().alarm, Some(Timestamp(30)));
}

fn an_alarm_turned_off_is_gone(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    set_alarms(&*store, &[("run:a", 10)]);
    write(&*store, &a, |writes| writes.alarm = AlarmChange::Off);
    write(&*store, &a, |writes| writes.alarm = AlarmChange::Off);
    let reader = reader(&*store);
    assert_eq!(alarms(&*reader, a.shard(), (0, ""), 100, 10), []);
    assert_eq!(reader.head(&a).unwrap().alarm, None);
}

fn an_alarm_that_is_kept_stays(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    set_alarms(&*store, &[("run:a", 10)]);
    write(&*store, &a, |writes| writes.insert_message(message(&a, 1)));
    assert_eq!(reader(&*store).head(&a).unwrap().alarm, Some(Timestamp(10)));
}

fn the_last_point_in_time_can_be_an_alarm(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    set_alarms(&*store, &[("run:a", Timestamp::MAX.0)]);
    assert_eq!(alarms(&*reader(&*store), a.shard(), (0, ""), u64::MAX, 10).len(), 1);
}

fn tasks_are_listed_in_order_of_dispatch(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    let mut batch = Batch::default();
    for (of, name, sequence) in [(&second, "t", 0), (&first, "a", 7), (&first, "b", 3), (&elsewhere, "t", 4)] {
        batch.of(of).insert_task(task(of, name, sequence));
    }
    store.commit(&batch).unwrap();
    let reader = reader(&*store);
    let expected = [task(&second, "t", 0), task(&first, "b", 3), task(&first, "a", 7)];
    assert_eq!(reader.tasks(first.shard(), None, 10).unwrap(), expected);
    assert_eq!(reader.tasks(first.shard(), None, 2).unwrap(), expected[..2]);
    assert_eq!(reader.tasks(first.shard(), Some(Sequence(0)), 10).unwrap(), expected[1..]);
    assert_eq!(reader.tasks(first.shard(), Some(Sequence(7)), 10).unwrap(), []);
    assert_eq!(reader.task(&first, &task_id("b")).unwrap(), Some(task(&first, "b", 3)));
    assert_eq!(reader.task(&second, &task_id("b")).unwrap(), None);
}

fn a_settled_task_is_gone(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| {
        writes.insert_task(task(&a, "one", 1));
        writes.insert_task(task(&a, "two", 2));
    });
    write(&*store, &a, |writes| writes.settle_task(&task_id("one")));
    write(&*store, &a, |writes| writes.settle_task(&task_id("one")));
    let reader = reader(&*store);
    assert_eq!(reader.task(&a, &task_id("one")).unwrap(), None);
    assert_eq!(reader.tasks(a.shard(), None, 10).unwrap(), [task(&a, "two", 2)]);
}

fn a_cancelled_task_is_gone_whatever_was_there_before(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.insert_task(task(&a, "old", 1)));
    write(&*store, &a, |writes| {
        writes.insert_task(task(&a, "old", 2));
        writes.insert_task(task(&a, "new", 3));
        for name in ["old", "new", "unknown", "back"] {
            writes.cancel_task(&task_id(name));
        }
        writes.insert_task(task(&a, "back", 4));
    });
    assert_eq!(reader(&*store).tasks(a.shard(), None, 10).unwrap(), [task(&a, "back", 4)]);
}

fn a_name_dispatched_again_is_one_task_in_its_new_place(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| {
        writes.insert_task(task(&a, "one", 1));
        writes.insert_task(task(&a, "two", 2));
    });
    let again = crate::rows::TaskRow { executor: "shell".into(), input: json("2"), ..task(&a, "one", 3) };
    write(&*store, &a, |writes| {
        writes.settle_task(&task_id("one"));
        writes.insert_task(again.clone());
    });
    let reader = reader(&*store);
    assert_eq!(reader.tasks(a.shard(), None, 10).unwrap(), [task(&a, "two", 2), again.clone()]);
    assert_eq!(reader.task(&a, &task_id("one")).unwrap(), Some(again));
}

fn tasks_of_workers_are_listed_by_queue_in_order_of_dispatch(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    let of = |actor: &ActorId, name: &str, sequence, executor: &str| TaskRow {
        executor: executor.into(),
        ..task(actor, name, sequence)
    };
    let rows = [
        of(&elsewhere, "a", 1, "worker:mail"),
        of(&first, "b", 2, "worker:mail"),
        of(&first, "c", 3, "worker:mailbox"),
        of(&second, "d", 4, "http"),
        of(&second, "e", 5, "worker:mail"),
    ];
    for row in &rows {
        write(&*store, &row.actor, |writes| writes.insert_task(row.clone()));
    }
    let reader = reader(&*store);
    let listed =
        |queue: &str, after: Option<u64>, limit| reader.tasks_of_workers(queue, after.map(Sequence), limit).unwrap();
    assert_eq!(listed("mail", None, 10), [rows[0].clone(), rows[1].clone(), rows[4].clone()]);
    assert_eq!(listed("mail", Some(1), 1), [rows[1].clone()]);
    assert_eq!(listed("mailbox", None, 10), [rows[2].clone()]);
    assert_eq!(listed("", None, 10), []);
    write(&*store, &first, |writes| writes.settle_task(&rows[1].task));
    assert_eq!(listed("mail", None, 10), [rows[0].clone(), rows[4].clone()]);
}
