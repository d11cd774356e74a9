//! Turns over plain data: what a turn reads back of its own writes, and where it is stopped.

use proptest::prelude::*;
use std::sync::Arc;

use super::*;
use crate::limits;

/// Storage that is a map.
struct Stored(std::collections::BTreeMap<Arc<str>, Json>);

impl Storage for Stored {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        Ok(self.0.range::<str, _>((from, to)).take(limit).map(|(k, v)| (k.clone(), v.clone())).collect())
    }
}

fn stored(keys: &[&str]) -> Stored {
    Stored(keys.iter().map(|key| (Arc::from(*key), Json::encode(key).unwrap())).collect())
}

fn in_a_turn(storage: &Stored, check: impl FnOnce(&mut Turn<'_>)) {
    let actor = ActorId::parse("counter:a").unwrap();
    check(&mut Turn::begin(&actor, Timestamp(1_000), Some(Timestamp(5_000)), storage));
}

fn keys(entries: Entries) -> Vec<String> {
    entries.into_iter().map(|(key, _)| key.to_string()).collect()
}

#[test]
fn a_turn_reads_its_own_writes() {
    in_a_turn(&stored(&["a", "b"]), |turn| {
        turn.put("a", &7).unwrap();
        turn.delete("b");
        assert_eq!(turn.get::<u32>("a").unwrap(), Some(7));
        assert_eq!(turn.get::<String>("b").unwrap(), None);
    });
}

#[test]
fn a_scan_sees_writes_in_their_place_and_deleted_keys_not_at_all() {
    in_a_turn(&stored(&["a", "c", "d", "f"]), |turn| {
        turn.put("b", &1).unwrap();
        turn.put("e", &1).unwrap();
        turn.delete("c");
        let found = turn.scan(Bound::Included("a"), Bound::Excluded("f"), 3).unwrap();
        assert_eq!(keys(found), ["a", "b", "d"]);
    });
}

#[test]
fn the_alarm_reads_as_this_turn_left_it() {
    in_a_turn(&stored(&[]), |turn| {
        assert_eq!(turn.alarm(), Some(Timestamp(5_000)));
        turn.set_alarm(Timestamp(2_000));
        assert_eq!(turn.alarm(), Some(Timestamp(2_000)));
        turn.clear_alarm();
        assert_eq!(turn.alarm(), None);
    });
}

#[test]
fn a_value_over_the_limit_is_refused_by_name() {
    in_a_turn(&stored(&[]), |turn| {
        let error = turn.put("big", &"x".repeat(limits::VALUE_BYTES_MAX)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the number of bytes of a stored value is 8388610, the limit is 8388608 (`VALUE_BYTES_MAX`)"
        );
    });
}

#[test]
fn a_turn_with_too_many_effects_ends_without_any() {
    let storage = stored(&[]);
    let actor = ActorId::parse("counter:a").unwrap();
    let mut turn = Turn::begin(&actor, Timestamp(0), None, &storage);
    for _ in 0..=limits::TURN_EFFECTS_MAX {
        turn.delete("a");
    }
    assert!(turn.end().unwrap_err().to_string().contains("TURN_EFFECTS_MAX"));
}

#[test]
fn what_a_turn_says_of_tasks_stays_in_its_order() {
    in_a_turn(&stored(&[]), |turn| {
        turn.dispatch("a", "work", &1).unwrap();
        turn.cancel("a").unwrap();
        turn.dispatch("a", "work", &2).unwrap();
        let [TaskChange::Dispatch(_), TaskChange::Cancel(task), TaskChange::Dispatch(last)] = &turn.effects.tasks[..]
        else {
            panic!("{:?}", turn.effects.tasks)
        };
        assert_eq!((task.as_str(), last.input.as_str()), ("a", "2"));
        assert_eq!((turn.effects.dispatches().count(), turn.effects.cancels().count()), (2, 1));
        assert!(turn.cancel("not a name").is_err());
    });
}

proptest! {
    #[test]
    fn a_scan_over_writes_equals_a_scan_after_them(
        below in prop::collection::btree_set("[a-d]{1,3}", 0..20),
        written in prop::collection::btree_map("[a-d]{1,3}", any::<bool>(), 0..20),
        from in "[a-d]{0,3}", to in "[a-d]{0,3}", limit in 0_usize..12,
    ) {
        let storage = stored(&below.iter().map(String::as_str).collect::<Vec<_>>());
        let mut after: std::collections::BTreeSet<String> = below;
        in_a_turn(&storage, |turn| {
            for (key, is_put) in &written {
                if *is_put {
                    turn.put(key, &1).unwrap();
                    after.insert(key.clone());
                } else {
                    turn.delete(key);
                    after.remove(key);
                }
            }
            let found = turn.scan(Bound::Excluded(&from), Bound::Included(&to), limit).unwrap();
            let expected: Vec<String> = after.iter().filter(|key| **key > from && **key <= to).take(limit).cloned().collect();
            assert_eq!(keys(found), expected);
        });
    }
}
