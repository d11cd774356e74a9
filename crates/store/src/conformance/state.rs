//! Cases about what actors keep, and about their heads.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use steadfast_core::ids::ActorId;
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::AlarmChange;

use super::{Case, Place, actor, cases, event, json, neighbours, put, reader, write};
use crate::Reader;
use crate::rows::Head;

pub(super) const CASES: &[Case] = cases![
    what_was_put_is_read_back,
    what_was_never_put_is_not_there,
    the_last_write_to_a_key_stays,
    a_deleted_key_is_gone_and_the_others_stay,
    deleting_what_is_not_there_is_no_fault,
    actors_do_not_see_each_others_keys,
    values_come_back_as_the_very_same_text,
    a_value_of_the_largest_size_is_kept,
    a_scan_gives_keys_in_order_of_their_bytes,
    a_scan_respects_both_bounds,
    a_scan_gives_no_more_than_asked,
    a_scan_whose_end_lies_before_its_beginning_finds_nothing,
    the_head_of_an_unknown_actor_is_empty,
    a_head_tells_alarm_last_event_and_state,
    an_actor_whose_keys_are_all_deleted_has_no_state,
];

fn keys(reader: &dyn Reader, actor: &ActorId, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Vec<String> {
    reader.scan(actor, from, to, limit).unwrap().into_iter().map(|(key, _)| key.to_string()).collect()
}

fn what_was_put_is_read_back(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", r#"{"n":1}"#);
    assert_eq!(reader(&*store).get(&a, "k").unwrap(), Some(json(r#"{"n":1}"#)));
}

fn what_was_never_put_is_not_there(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", "1");
    let reader = reader(&*store);
    assert_eq!(reader.get(&a, "K").unwrap(), None);
    assert_eq!(reader.get(&a, "").unwrap(), None);
    assert_eq!(reader.get(&actor("run:b"), "k").unwrap(), None);
}

fn the_last_write_to_a_key_stays(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", "1");
    put(&*store, &a, "k", "2");
    assert_eq!(reader(&*store).get(&a, "k").unwrap(), Some(json("2")));
}

fn a_deleted_key_is_gone_and_the_others_stay(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", "1");
    put(&*store, &a, "l", "2");
    write(&*store, &a, |writes| drop(writes.state.insert("k".into(), None)));
    assert_eq!(keys(&*reader(&*store), &a, Unbounded, Unbounded, 10), ["l"]);
}

fn deleting_what_is_not_there_is_no_fault(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    write(&*store, &a, |writes| drop(writes.state.insert("k".into(), None)));
    assert_eq!(reader(&*store).head(&a).unwrap(), Head::default());
}

fn actors_do_not_see_each_others_keys(place: &dyn Place) {
    let store = place.open();
    let (first, second, elsewhere) = neighbours();
    put(&*store, &first, "k", "1");
    put(&*store, &second, "k", "2");
    put(&*store, &elsewhere, "k", "3");
    let reader = reader(&*store);
    assert_eq!(reader.scan(&first, Unbounded, Unbounded, 10).unwrap(), [("k".into(), json("1"))]);
    assert_eq!(reader.get(&second, "k").unwrap(), Some(json("2")));
    assert_eq!(reader.get(&elsewhere, "k").unwrap(), Some(json("3")));
}

fn values_come_back_as_the_very_same_text(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let texts =
        [r#"{ "b":1, "a":[1.50,1e400,null] }"#, "\"grüße 你好 🦀 \\u0000 'quoted' \u{1}\"", "9007199254740993", "\"\""];
    for text in texts {
        // Control characters are not JSON; what is stored is nobody's business here.
        let value = steadfast_core::json::Json::from_stored(text);
        write(&*store, &a, |writes| drop(writes.state.insert("ключ 🗝".into(), Some(value))));
        assert_eq!(reader(&*store).get(&a, "ключ 🗝").unwrap().unwrap().as_str(), text);
    }
}

fn a_value_of_the_largest_size_is_kept(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    let large = format!("\"{}\"", "ä".repeat((limits::VALUE_BYTES_MAX - 2) / 2));
    put(&*store, &a, "k", &large);
    assert_eq!(reader(&*store).get(&a, "k").unwrap().unwrap().as_str(), large);
}

fn a_scan_gives_keys_in_order_of_their_bytes(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    for key in ["b", "a", "é", "Z", "a/2", "a/10", "", "\u{10ffff}", "🦀", "\u{ffff}"] {
        put(&*store, &a, key, "1");
    }
    let found = keys(&*reader(&*store), &a, Unbounded, Unbounded, 100);
    assert_eq!(found, ["", "Z", "a", "a/10", "a/2", "b", "é", "\u{ffff}", "🦀", "\u{10ffff}"]);
}

fn a_scan_respects_both_bounds(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    for key in ["a", "b", "c", "d"] {
        put(&*store, &a, key, "1");
    }
    let reader = reader(&*store);
    let found = |from, to| keys(&*reader, &a, from, to, 100).concat();
    assert_eq!(found(Unbounded, Unbounded), "abcd");
    assert_eq!(found(Unbounded, Included("c")), "abc");
    assert_eq!(found(Unbounded, Excluded("c")), "ab");
    assert_eq!(found(Included("b"), Unbounded), "bcd");
    assert_eq!(found(Included("b"), Included("c")), "bc");
    assert_eq!(found(Included("b"), Excluded("c")), "b");
    assert_eq!(found(Excluded("b"), Unbounded), "cd");
    assert_eq!(found(Excluded("b"), Included("c")), "c");
    assert_eq!(found(Excluded("b"), Excluded("d")), "c");
}

fn a_scan_gives_no_more_than_asked(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    for key in ["a", "b", "c"] {
        put(&*store, &a, key, "1");
    }
    let reader = reader(&*store);
    let found = |limit| keys(&*reader, &a, Excluded("a"), Unbounded, limit).concat();
    assert_eq!((found(0).as_str(), found(1).as_str(), found(usize::MAX).as_str()), ("", "b", "bc"));
}

fn a_scan_whose_end_lies_before_its_beginning_finds_nothing(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    for key in ["a", "b", "c"] {
        put(&*store, &a, key, "1");
    }
    let reader = reader(&*store);
    assert!(keys(&*reader, &a, Included("c"), Included("a"), 10).is_empty());
    assert!(keys(&*reader, &a, Excluded("b"), Excluded("b"), 10).is_empty());
}

fn the_head_of_an_unknown_actor_is_empty(place: &dyn Place) {
    let store = place.open();
    assert_eq!(reader(&*store).head(&actor("run:a")).unwrap(), Head::default());
}

fn a_head_tells_alarm_last_event_and_state(place: &dyn Place) {
    let store = place.open();
    let (first, second, _) = neighbours();
    write(&*store, &first, |writes| {
        writes.alarm = AlarmChange::At(Timestamp(50));
        writes.events = vec![event(&first, 1), event(&first, 2), event(&first, 10)];
    });
    put(&*store, &second, "k", "1");
    let reader = reader(&*store);
    let head = reader.head(&first).unwrap();
    assert_eq!(head, Head { alarm: Some(Timestamp(50)), last_event: 10, has_state: false });
    assert_eq!(reader.head(&second).unwrap(), Head { alarm: None, last_event: 0, has_state: true });
}

fn an_actor_whose_keys_are_all_deleted_has_no_state(place: &dyn Place) {
    let (store, a) = (place.open(), actor("run:a"));
    put(&*store, &a, "k", "1");
    write(&*store, &a, |writes| drop(writes.state.insert("k".into(), None)));
    assert!(!reader(&*store).head(&a).unwrap().has_state);
}
