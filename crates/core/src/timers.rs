//! Many deadlines over an actor's one alarm.
//!
//! Owns the keys under `timer/` and `timer.at/` in the storage of an actor that uses it, and that actor's alarm: after every [`set`], [`clear`]
//! and [`take_due`] the alarm stands at the earliest deadline. Holds nothing in memory: setting, clearing and finding the earliest
//! cost a few reads and writes, whether there are three timers or a hundred thousand.

use std::ops::Bound;

use crate::time::Timestamp;
use crate::turn::{Storage, Turn, TurnError, prefix_end};

/// `timer/<name>` holds when the timer is due.
const TIMERS: &str = "timer/";

/// `timer.at/<due>/<name>` puts the timers in order of their time.
const TIMES: &str = "timer.at/";

/// Sets the timer `name`, in place of what it was set to before.
pub fn set(turn: &mut Turn<'_>, name: &str, due: Timestamp) -> Result<(), TurnError> {
    note(turn, name, due)?;
    arm_earliest(turn)
}

/// Clears the timer `name`; nothing happens when it is not set.
pub fn clear(turn: &mut Turn<'_>, name: &str) -> Result<(), TurnError> {
    forget(turn, name)?;
    arm_earliest(turn)
}

/// As [`set`], but leaves the alarm to [`arm_earliest`]: for a turn that changes many timers.
pub fn note(turn: &mut Turn<'_>, name: &str, due: Timestamp) -> Result<(), TurnError> {
    forget(turn, name)?;
    turn.put(&format!("{TIMERS}{name}"), &due)?;
    turn.put(&time_key(due, name), &())
}

/// Takes up to `limit` timers that are due, earliest first. Where more are due the alarm stands at once again.
pub fn take_due(turn: &mut Turn<'_>, limit: usize) -> Result<Vec<String>, TurnError> {
    let last = prefix_end(&time_key(turn.now(), ""));
    let due = turn.scan(Bound::Included(TIMES), Bound::Included(&last), limit)?;
    let mut names = Vec::with_capacity(due.len());
    for (key, _) in due {
        let name = name_of(&key).to_owned();
        turn.delete(&key);
        turn.delete(&format!("{TIMERS}{name}"));
        names.push(name);
    }
    arm_earliest(turn)?;
    Ok(names)
}

/// As [`clear`], but leaves the alarm to [`arm_earliest`].
pub fn forget(turn: &mut Turn<'_>, name: &str) -> Result<(), TurnError> {
    let key = format!("{TIMERS}{name}");
    if let Some(due) = turn.get::<Timestamp>(&key)? {
        turn.delete(&key);
        turn.delete(&time_key(due, name));
    }
    Ok(())
}

/// Up to `limit` timers whose names begin so.
pub fn named(turn: &Turn<'_>, prefix: &str, limit: usize) -> Result<Vec<String>, TurnError> {
    let from = format!("{TIMERS}{prefix}");
    let rows = turn.scan(Bound::Included(&from), Bound::Excluded(&prefix_end(&from)), limit)?;
    Ok(rows.into_iter().map(|(key, _)| key[TIMERS.len()..].to_owned()).collect())
}

/// Puts the alarm where the earliest timer is.
pub fn arm_earliest(turn: &mut Turn<'_>) -> Result<(), TurnError> {
    let end = prefix_end(TIMES);
    let earliest = turn.scan(Bound::Included(TIMES), Bound::Excluded(&end), 1)?;
    match earliest.first() {
        None => turn.clear_alarm(),
        Some((key, _)) => turn.set_alarm(due_of(key)?),
    }
    Ok(())
}

/// When the timer `name` is due, for those who only look.
pub fn due(storage: &dyn Storage, name: &str) -> Result<Option<Timestamp>, TurnError> {
    Ok(storage.get(&format!("{TIMERS}{name}"))?.map(|stored| stored.decode()).transpose()?)
}

/// When the earliest timer is due, for those who only look.
pub fn earliest(storage: &dyn Storage) -> Result<Option<Timestamp>, TurnError> {
    let end = prefix_end(TIMES);
    let first = storage.scan(Bound::Included(TIMES), Bound::Excluded(&end), 1)?;
    first.first().map(|(key, _)| due_of(key)).transpose()
}

/// Twenty digits hold every `u64`, so that text order is time order.
fn time_key(due: Timestamp, name: &str) -> String {
    format!("{TIMES}{:020}/{name}", due.0)
}

fn due_of(key: &str) -> Result<Timestamp, TurnError> {
    key.get(TIMES.len()..TIMES.len() + 20)
        .and_then(|digits| digits.parse().ok())
        .map(Timestamp)
        .ok_or_else(|| TurnError::failed(format!("timer key `{key}` has no time in it")))
}

fn name_of(key: &str) -> &str {
    key.get(TIMES.len() + 21..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::ActorId;
    use crate::json::Json;
    use crate::turn::{AlarmChange, Effects, Entries, Storage};

    #[derive(Default)]
    struct Stored {
        values: BTreeMap<Arc<str>, Json>,
        alarm: Option<Timestamp>,
    }

    impl Storage for Stored {
        fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
            Ok(self.values.get(key).cloned())
        }

        fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
            Ok(self.values.range::<str, _>((from, to)).take(limit).map(|(k, v)| (k.clone(), v.clone())).collect())
        }
    }

    impl Stored {
        fn turn<R>(&mut self, now: u64, act: impl FnOnce(&mut Turn<'_>) -> R) -> R {
            let actor = ActorId::parse("sleeper:a").unwrap();
            let mut turn = Turn::begin(&actor, Timestamp(now), self.alarm, self);
            let result = act(&mut turn);
            let Effects { writes, alarm, .. } = turn.end().unwrap();
            for (key, value) in writes {
                match value {
                    Some(value) => self.values.insert(key, value),
                    None => self.values.remove(&key),
                };
            }
            self.alarm = match alarm {
                AlarmChange::Keep => self.alarm,
                AlarmChange::Off => None,
                AlarmChange::At(due) => Some(due),
            };
            result
        }
    }

    #[test]
    fn the_alarm_stands_at_the_earliest_timer() {
        let mut stored = Stored::default();
        stored.turn(0, |turn| {
            set(turn, "late", Timestamp(900)).unwrap();
            set(turn, "early", Timestamp(100)).unwrap();
        });
        assert_eq!(stored.alarm, Some(Timestamp(100)));
        stored.turn(0, |turn| clear(turn, "early").unwrap());
        assert_eq!(stored.alarm, Some(Timestamp(900)));
    }

    #[test]
    fn a_timer_set_again_moves() {
        let mut stored = Stored::default();
        stored.turn(0, |turn| {
            set(turn, "a", Timestamp(100)).unwrap();
            set(turn, "a", Timestamp(300)).unwrap();
        });
        assert_eq!(stored.turn(200, |turn| take_due(turn, 10).unwrap()), [] as [&str; 0]);
        assert_eq!(stored.turn(300, |turn| take_due(turn, 10).unwrap()), ["a"]);
        assert_eq!((stored.alarm, stored.values.len()), (None, 0));
    }

    #[test]
    fn what_is_due_beyond_the_limit_keeps_the_alarm_on() {
        let mut stored = Stored::default();
        stored.turn(0, |turn| {
            for name in ["a", "b", "c"] {
                set(turn, name, Timestamp(100)).unwrap();
            }
        });
        assert_eq!(stored.turn(100, |turn| take_due(turn, 2).unwrap()), ["a", "b"]);
        assert_eq!(stored.alarm, Some(Timestamp(100)));
    }

    proptest! {
        #[test]
        fn every_timer_fires_once_and_not_early(sets in prop::collection::vec(("[a-e]", 0_u64..50), 1..30)) {
            let mut stored = Stored::default();
            let mut expected = BTreeMap::new();
            for (name, due) in &sets {
                stored.turn(0, |turn| set(turn, name, Timestamp(*due)).unwrap());
                expected.insert(name.clone(), *due);
            }
            let mut fired = BTreeMap::new();
            while let Some(at) = stored.alarm {
                for name in stored.turn(at.0, |turn| take_due(turn, 1).unwrap()) {
                    prop_assert_eq!(fired.insert(name, at.0), None);
                }
            }
            prop_assert_eq!(fired, expected);
            prop_assert!(stored.values.is_empty());
        }
    }
}
