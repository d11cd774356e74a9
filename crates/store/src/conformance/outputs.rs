//! Cases about what turns leave behind: remembered requests, histories and dead letters.

use steadfast_core::ids::{RequestId, Sequence};
use steadfast_core::time::Timestamp;

use super::{Case, Place, actor, cases, dead_letter, event, json, neighbours, reader, request, request_id, write};
use crate::StoreError;
use crate::batch::Batch;
use crate::rows::{DeadLetterRow, EventRow, RequestRow};

pub(super) const CASES: &[Case] = cases![
    a_request_is_remembered_and_gets_its_reply_later,
    a_forgotten_request_is_gone,
    expired_requests_are_listed_earliest_first,
    a_request_that_is_remembered_for_longer_expires_later,
    a_history_is_read_in_order_after_a_place,
    histories_are_kept_apart,
    a_history_of_any_size_is_read_in_pages,
    an_event_is_kept_as_it_was,
    an_event_is_never_overwritten,
    a_history_is_added_to_at_its_end,
    dead_letters_are_listed_in_order_of_their_ids,
    a_deleted_dead_letter_is_gone,
    a_dead_letter_is_never_overwritten,
    a_dead_letter_is_deleted_only_by_its_own_actor,
];

fn a_request_is_remembered_and_gets_its_reply_later(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let waiting = request(&a, "r-1", 100);
    write(&*store, &a, |writes| writes.remember_request(waiting.clone()));
    let reader = reader(&*store);
    assert_eq!(reader.request(&a, &request_id("r-1")).unwrap(), Some(waiting.clone()));
    let answered = RequestRow { reply: Some(json("null")), ..waiting };
    write(&*store, &a, |writes| writes.remember_request(answered.clone()));
    assert_eq!(reader.request(&a, &request_id("r-1")).unwrap(), Some(answered));
    assert_eq!(reader.request(&a, &request_id("r-2")).unwrap(), None);
    assert_eq!(reader.request(&a, &RequestId::anonymous(1)).unwrap(), None);
}

fn a_forgotten_request_is_gone(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.remember_request(request(&a, "r", 100)));
    write(&*store, &a, |writes| writes.forget_request(&request_id("r")));
    write(&*store, &a, |writes| writes.forget_request(&request_id("r")));
    let reader = reader(&*store);
    assert_eq!(reader.request(&a, &request_id("r")).unwrap(), None);
    assert_eq!(reader.expired_requests(a.shard(), Timestamp::MAX, 10).unwrap(), []);
}

fn expired_requests_are_listed_earliest_first(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    let mut batch = Batch::default();
    for (of, name, expires_at) in [(&first, "a", 30), (&second, "b", 10), (&first, "c", 10), (&elsewhere, "d", 1)] {
        batch.of(of).remember_request(request(of, name, expires_at));
    }
    store.commit(&batch).unwrap();
    let reader = reader(&*store);
    let expired = |now, limit| reader.expired_requests(first.shard(), Timestamp(now), limit).unwrap();
    let order = [request(&first, "c", 10), request(&second, "b", 10), request(&first, "a", 30)];
    assert_eq!(expired(10, 10), []);
    assert_eq!(expired(11, 10), order[..2]);
    assert_eq!(expired(u64::MAX, 10), order);
    assert_eq!(expired(u64::MAX, 1), order[..1]);
}

fn a_request_that_is_remembered_for_longer_expires_later(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.remember_request(request(&a, "r", 10)));
    write(&*store, &a, |writes| writes.remember_request(request(&a, "r", 20)));
    let reader = reader(&*store);
    assert_eq!(reader.expired_requests(a.shard(), Timestamp(15), 10).unwrap(), []);
    assert_eq!(reader.expired_requests(a.shard(), Timestamp(21), 10).unwrap(), [request(&a, "r", 20)]);
}

fn a_history_is_read_in_order_after_a_place(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.events = (1..=3).map(|n| event(&a, n)).collect());
    write(&*store, &a, |writes| writes.events = (4..=12).map(|n| event(&a, n)).collect());
    let reader = reader(&*store);
    let places = |after, limit| -> Vec<u64> {
        reader.events(&a, after, limit).unwrap().into_iter().map(|row| row.sequence).collect()
    };
    assert_eq!(places(0, 3), [1, 2, 3]);
    assert_eq!(places(3, 100), (4..=12).collect::<Vec<_>>());
    assert!(places(12, 100).is_empty());
    assert!(places(u64::MAX, 100).is_empty());
    assert!(places(0, 0).is_empty());
    assert_eq!(reader.events(&a, 6, 1).unwrap(), [event(&a, 7)]);
}

fn histories_are_kept_apart(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    write(&*store, &first, |writes| writes.events = vec![event(&first, 1)]);
    write(&*store, &second, |writes| writes.events = vec![event(&second, 1), event(&second, 2)]);
    let reader = reader(&*store);
    assert_eq!(reader.events(&first, 0, 10).unwrap(), [event(&first, 1)]);
    assert_eq!(reader.events(&second, 1, 10).unwrap(), [event(&second, 2)]);
}

fn a_history_of_any_size_is_read_in_pages(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let long = json(&format!("\"{}\"", "x".repeat(5_000)));
    let all: Vec<EventRow> = (1..=40).map(|n| EventRow { data: long.clone(), ..event(&a, n) }).collect();
    write(&*store, &a, |writes| writes.events = all[..33].to_vec());
    write(&*store, &a, |writes| writes.events = all[33..].to_vec());
    let (reader, mut read) = (reader(&*store), Vec::new());
    while read.len() < all.len() {
        let page = reader.events(&a, read.len() as u64, 7).unwrap();
        assert!(!page.is_empty() && page.len() <= 7, "{} events", page.len());
        read.extend(page);
    }
    assert_eq!(read, all);
}

fn an_event_is_kept_as_it_was(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let facts = ["null", "[]", "1.50", "18446744073709551615", r#"{"b":"\u0000\"]}","a":[{}]}"#, r#""ü""#];
    let types = ["", "step.done", "quo\"ted", "back\\slash", "new\nline", "schön"];
    let rows = facts.iter().zip(types).zip(1..);
    let all: Vec<EventRow> = rows
        .map(|((facts, name), n)| EventRow { event_type: name.into(), data: json(facts), ..event(&a, n) })
        .collect();
    write(&*store, &a, |writes| writes.events = all.clone());
    assert_eq!(reader(&*store).events(&a, 0, 100).unwrap(), all);
}

fn a_history_is_added_to_at_its_end(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.events = vec![event(&a, 2), event(&a, 5)]);
    let mut batch = Batch::default();
    for earlier in [1, 3, 4, 5] {
        batch.of(&a).events = vec![event(&a, earlier), event(&a, 6)];
        assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))), "event {earlier}");
    }
    batch.of(&a).events = vec![event(&a, 7), event(&a, 6)];
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    assert_eq!(reader(&*store).events(&a, 0, 10).unwrap(), [event(&a, 2), event(&a, 5)]);
}

fn an_event_is_never_overwritten(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.events = vec![event(&a, 1)]);
    let mut batch = Batch::default();
    batch.of(&a).events = vec![EventRow { event_type: "other".into(), ..event(&a, 1) }];
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    batch.of(&a).events = vec![event(&a, 2), event(&a, 2)];
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    assert_eq!(reader(&*store).events(&a, 0, 10).unwrap(), [event(&a, 1)]);
}

fn dead_letters_are_listed_in_order_of_their_ids(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    let mut batch = Batch::default();
    for (of, id) in [(&first, 9), (&second, 2), (&elsewhere, 3), (&first, 5)] {
        batch.of(of).insert_dead_letter(dead_letter(of, id));
    }
    store.commit(&batch).unwrap();
    let reader = reader(&*store);
    let order = [dead_letter(&second, 2), dead_letter(&first, 5), dead_letter(&first, 9)];
    assert_eq!(reader.dead_letters(first.shard(), None, 10).unwrap(), order);
    assert_eq!(reader.dead_letters(first.shard(), None, 1).unwrap(), order[..1]);
    assert_eq!(reader.dead_letters(first.shard(), Some(Sequence(2)), 10).unwrap(), order[1..]);
    assert_eq!(reader.dead_letters(first.shard(), Some(Sequence(9)), 10).unwrap(), []);
}

fn a_deleted_dead_letter_is_gone(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| writes.insert_dead_letter(dead_letter(&a, 1)));
    write(&*store, &a, |writes| writes.delete_dead_letter(Sequence(1)));
    write(&*store, &a, |writes| writes.delete_dead_letter(Sequence(1)));
    assert_eq!(reader(&*store).dead_letters(a.shard(), None, 10).unwrap(), []);
}

fn a_dead_letter_is_never_overwritten(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    write(&*store, &first, |writes| writes.insert_dead_letter(dead_letter(&first, 1)));
    let mut batch = Batch::default();
    let other = DeadLetterRow { error: "other".to_owned(), ..dead_letter(&second, 1) };
    batch.of(&second).insert_dead_letter(other);
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
    assert_eq!(reader(&*store).dead_letters(first.shard(), None, 10).unwrap(), [dead_letter(&first, 1)]);
}

fn a_dead_letter_is_deleted_only_by_its_own_actor(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    write(&*store, &second, |writes| writes.insert_dead_letter(dead_letter(&second, 1)));
    write(&*store, &first, |writes| writes.delete_dead_letter(Sequence(1)));
    assert_eq!(reader(&*store).dead_letters(first.shard(), None, 10).unwrap(), [dead_letter(&second, 1)]);
    // Also when the same batch would put another one into its place.
    let mut batch = Batch::default();
    batch.of(&first).delete_dead_letter(Sequence(1));
    batch.of(&second).insert_dead_letter(dead_letter(&second, 1));
    assert!(matches!(store.commit(&batch), Err(StoreError::Failed(_))));
}
