//! Actors that go, a part at a time, and finding those that may.

use std::ops::Bound;

use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;

use super::{Case, Place, actor, cases, dead_letter, event, json, message, neighbours, reader, request, task, write};
use crate::batch::{ListingChange, Removal};
use crate::rows::{Head, HistoryPlace, RunFilter, RunRow};
use crate::{Reader, Store};

pub(super) const CASES: &[Case] = cases![
    a_removed_actor_leaves_nothing_but_its_messages,
    a_removal_takes_no_more_rows_than_it_may,
    what_is_written_with_a_removal_stays,
    a_place_in_the_history_is_never_given_again,
    ended_runs_are_found_by_their_end,
    actors_are_found_by_how_their_ids_begin,
];

fn everything(store: &dyn Store, of: &ActorId, number: u64) {
    write(store, of, |writes| {
        for key in ["a", "b", "c", "run"] {
            writes.state.insert(key.into(), Some(json("1")));
        }
        writes.alarm = AlarmChange::At(Timestamp(5));
        writes.insert_message(message(of, number));
        writes.insert_task(task(of, "t", number));
        writes.remember_request(request(of, "q", 9));
        writes.events.push(event(of, 1));
        writes.insert_dead_letter(dead_letter(of, number));
        writes.list(ListingChange { row: run(of, number, Some(100 + number)), was: None });
    });
}

fn run(of: &ActorId, number: u64, ended_at: Option<u64>) -> RunRow {
    RunRow {
        actor: of.clone(),
        number: Sequence(number),
        workflow: "w".into(),
        version: 1,
        status: "completed".into(),
        parent: None,
        root: of.name().into(),
        started_at: Timestamp(1),
        ended_at: ended_at.map(Timestamp),
    }
}

fn remove(store: &dyn Store, of: &ActorId, rows_max: usize) {
    write(store, of, |writes| writes.removal = Some(Removal { first: Some("run".into()), rows_max }));
}

fn keys(reader: &dyn Reader, of: &ActorId) -> Vec<String> {
    let entries = reader.scan(of, Bound::Unbounded, Bound::Unbounded, 100).unwrap();
    entries.into_iter().map(|(key, _)| key.to_string()).collect()
}

fn a_removed_actor_leaves_nothing_but_its_messages(place: &dyn Place) {
    let (gone, stays, elsewhere) = neighbours();
    let store = place.open();
    for (number, of) in (1..).zip([&gone, &stays, &elsewhere]) {
        everything(&*store, of, number);
    }
    let reader = reader(&*store);
    assert_eq!(reader.rows_of(&gone, 100).unwrap(), 8);
    assert_eq!(reader.rows_of(&gone, 3).unwrap(), 3);
    remove(&*store, &gone, 100);

    assert_eq!(reader.rows_of(&gone, 100).unwrap(), 0);
    assert_eq!(reader.head(&gone).unwrap(), Head::default());
    assert_eq!(reader.run(&gone).unwrap(), None);
    assert!(reader.message(&gone, Sequence(1)).unwrap().is_some());
    let letters = reader.dead_letters(gone.shard(), None, 10).unwrap();
    assert_eq!(letters, [dead_letter(&stays, 2)]);
    let tasks = reader.tasks(gone.shard(), None, 10).unwrap();
    assert_eq!(tasks, [task(&stays, "t", 2)]);
    let left: Vec<ActorId> =
        reader.history(None, HistoryPlace::default(), 10).unwrap().into_iter().map(|(_, event)| event.actor).collect();
    assert_eq!(left, [stays.clone(), elsewhere]);
    assert_eq!(reader.runs(RunFilter::default(), None, 10).unwrap().len(), 2);
    let counts = reader.run_counts().unwrap();
    assert_eq!(counts.iter().map(|found| found.count).collect::<Vec<_>>(), [2]);
    assert_eq!((reader.rows_of(&stays, 100).unwrap(), keys(&*reader, &stays).len()), (8, 4));

    everything(&*store, &gone, 4);
    assert_eq!(reader.rows_of(&gone, 100).unwrap(), 8);
}

fn a_removal_takes_no_more_rows_than_it_may(place: &dyn Place) {
    let of = actor("run:a");
    let store = place.open();
    everything(&*store, &of, 1);
    let reader = reader(&*store);
    let mut left = Vec::new();
    for _ in 0..4 {
        remove(&*store, &of, 3);
        left.push(reader.rows_of(&of, 100).unwrap());
        assert!(!keys(&*reader, &of).contains(&"run".to_owned()));
        assert_eq!((reader.run(&of).unwrap(), reader.head(&of).unwrap().alarm), (None, None));
    }
    // Four keys, a task, a request, a letter and an event; the first key goes beside the others.
    assert_eq!(left, [4, 1, 0, 0]);
}

fn what_is_written_with_a_removal_stays(place: &dyn Place) {
    let of = actor("run:a");
    let store = place.open();
    everything(&*store, &of, 1);
    write(&*store, &of, |writes| {
        writes.removal = Some(Removal { first: None, rows_max: 100 });
        writes.state.insert("new".into(), Some(json("2")));
        writes.consume_message(Sequence(1));
        writes.insert_message(message(&of, 2));
    });
    let reader = reader(&*store);
    assert_eq!(keys(&*reader, &of), ["new"]);
    assert!(reader.message(&of, Sequence(1)).unwrap().is_none());
    assert!(reader.message(&of, Sequence(2)).unwrap().is_some());
}

fn a_place_in_the_history_is_never_given_again(place: &dyn Place) {
    let (first, second) = (actor("run:a"), actor("run:b"));
    let store = place.open();
    let reader = reader(&*store);
    let mut seen = HistoryPlace::default();
    for number in 1..=3 {
        write(&*store, &first, |writes| writes.events.push(event(&first, 1)));
        write(&*store, &second, |writes| writes.events.push(event(&second, number)));
        let news = reader.history(None, seen, 10).unwrap();
        assert_eq!(news.iter().map(|(_, event)| &event.actor).collect::<Vec<_>>(), [&first, &second]);
        seen = news.last().unwrap().0;
        remove(&*store, &first, 10);
        assert_eq!(reader.history(None, HistoryPlace::default(), 10).unwrap().len(), usize::try_from(number).unwrap());
    }
    remove(&*store, &second, 10);
    assert_eq!(reader.history(None, HistoryPlace::default(), 10).unwrap(), []);
    write(&*store, &first, |writes| writes.events.push(event(&first, 1)));
    assert_eq!(reader.history(None, seen, 10).unwrap().len(), 1);
}

fn ended_runs_are_found_by_their_end(place: &dyn Place) {
    let store = place.open();
    let runs = [("a", Some(30)), ("b", None), ("c", Some(10)), ("d", Some(30)), ("e", Some(40))];
    for (number, (name, ended_at)) in (1..).zip(runs) {
        let of = actor(&format!("run:{name}"));
        let row = run(&of, number, ended_at);
        write(&*store, &of, |writes| writes.list(ListingChange { row, was: None }));
    }
    let child = actor("run:a.1");
    let row = RunRow { parent: Some("a".into()), root: "a".into(), ..run(&child, 9, Some(20)) };
    write(&*store, &child, |writes| writes.list(ListingChange { row, was: None }));
    let reader = reader(&*store);
    let found = |after: (u64, u64), until, limit| -> Vec<String> {
        let after = (Timestamp(after.0), Sequence(after.1));
        let rows = reader.ended_runs(after, Timestamp(until), limit).unwrap();
        rows.into_iter().map(|row| row.actor.name().to_owned()).collect()
    };
    assert_eq!(found((0, 0), 30, 10), ["c", "a", "d"]);
    assert_eq!(found((0, 0), 100, 2), ["c", "a"]);
    assert_eq!(found((30, 1), 100, 10), ["d", "e"]);
    assert_eq!(found((0, 0), 9, 10), [] as [&str; 0]);
    assert_eq!(reader.run(&child).unwrap().unwrap().root, "a".into());
}

fn actors_are_found_by_how_their_ids_begin(place: &dyn Place) {
    let store = place.open();
    for (number, name) in (1..).zip(["run:a", "run:a.1", "run:a.2", "run:ab", "run:b.1"]) {
        let of = actor(name);
        write(&*store, &of, |writes| {
            writes.insert_message(message(&of, number));
            writes.insert_message(message(&of, number + 10));
            writes.insert_dead_letter(dead_letter(&of, number));
        });
    }
    let reader = reader(&*store);
    for find in [Reader::actors_with_messages, Reader::actors_with_dead_letters] {
        let mut found = find(&*reader, "run:a.", 10).unwrap();
        found.sort_by(|left, right| left.as_str().cmp(right.as_str()));
        assert_eq!(found, [actor("run:a.1"), actor("run:a.2")]);
        assert_eq!(find(&*reader, "run:a.", 1).unwrap().len(), 1);
        assert_eq!(find(&*reader, "run:c", 10).unwrap(), []);
    }
}
