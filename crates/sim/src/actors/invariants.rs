//! What must be true, whatever happened.
//!
//! Owns the promises of the runtime as checks on what is on disk and what clients were told. Never looks into the engine.

use std::collections::BTreeMap;
use std::ops::Bound;

use steadfast_core::ids::{ActorId, Shard, TaskId};
use steadfast_core::limits::PAGE_ROWS_MAX;
use steadfast_store::Reader;
use steadfast_store::rows::EventRow;

use super::fragile::{Heard, Knock};
use super::wishes::{What, unsure_counter};
use super::{courier, errand, fragile, ticker};
use crate::clients;
use crate::disk::text;
use crate::scenario::Seen;

type Operation = clients::Operation<What>;

/// What must hold at any moment: nothing acknowledged is lost, nothing came out of order or early.
pub(super) fn after_a_crash(seen: &Seen<'_, What>) -> Result<(), String> {
    let reader = seen.reader;
    for (counter, sums) in counter_sums(seen.operations) {
        let count = counted(reader, &counter)?;
        if count < sums.answered_requests {
            return Err(format!("{counter} holds {count}, but {} were acknowledged", sums.answered_requests));
        }
    }
    for operation in seen.operations {
        match &operation.wish {
            What::Deliver { from, to, .. } => couriers_are_in_order(reader, from, to)?,
            What::Tick { ticker, start } => ticks_are_in_time(reader, ticker, start).map(drop)?,
            What::Run { errand, task } => cancelled_task_is_gone(reader, errand, task)?,
            What::Add { .. }
            | What::AddByMessage { .. }
            | What::Cancel { .. }
            | What::Knock { .. }
            | What::Nest { .. } => {}
        }
    }
    Ok(())
}

/// What must hold when everything has come to its end: each effect once.
pub(super) fn at_the_end(seen: &Seen<'_, What>) -> Result<(), String> {
    after_a_crash(seen)?;
    let reader = seen.reader;
    for (counter, sums) in counter_sums(seen.operations) {
        let count = counted(reader, &counter)?;
        let is_right = if counter == unsure_counter() {
            (sums.answered_requests..=sums.asked).contains(&count)
        } else {
            count == sums.asked
        };
        if !is_right {
            return Err(format!("{counter} holds {count}, and {sums:?}"));
        }
    }
    only_fragile_actors_have_dead_letters(reader)?;
    parcels_have_arrived(reader, seen.operations)?;
    knocks_were_heard(reader, seen.operations)?;
    for operation in seen.operations {
        match &operation.wish {
            What::Tick { ticker, start } => {
                let ticks = ticks_are_in_time(reader, ticker, start)?;
                if operation.answer.is_some() && ticks != start.times {
                    return Err(format!("{ticker} ticked {ticks} times, not {}", start.times));
                }
            }
            What::Run { errand, task } => task_ended_once(reader, errand, task)?,
            What::Nest { chain, depth } => {
                let levels: Option<u64> = operation.answer.as_ref().and_then(|answer| answer.decode().ok());
                if levels != Some(*depth) {
                    return Err(format!("{chain} of depth {depth} answered {levels:?}"));
                }
            }
            What::Add { .. }
            | What::AddByMessage { .. }
            | What::Deliver { .. }
            | What::Cancel { .. }
            | What::Knock { .. } => {}
        }
    }
    Ok(())
}

/// What clients asked of one counter.
#[derive(Debug, Default)]
struct Sums {
    asked: u64,
    /// Answered as requests, whose effect is there with the answer; a message's effect may come later.
    answered_requests: u64,
}

fn counter_sums(operations: &[Operation]) -> BTreeMap<ActorId, Sums> {
    let mut sums: BTreeMap<ActorId, Sums> = BTreeMap::new();
    for operation in operations.iter().filter(|operation| operation.asked > 0) {
        if let What::Add { counter, add } | What::AddByMessage { counter, add } = &operation.wish {
            let of_counter = sums.entry(counter.clone()).or_default();
            of_counter.asked += add;
            if operation.answer.is_some() && matches!(operation.wish, What::Add { .. }) {
                of_counter.answered_requests += add;
            }
        }
    }
    sums
}

fn counted(reader: &dyn Reader, counter: &ActorId) -> Result<u64, String> {
    read(reader, counter, "count").map(|count: Option<u64>| count.unwrap_or(0))
}

fn couriers_are_in_order(reader: &dyn Reader, from: &ActorId, to: &ActorId) -> Result<(), String> {
    for courier in [from, to] {
        if let Some(violation) = read::<String>(reader, courier, courier::VIOLATION)? {
            return Err(format!("{courier}: {violation}"));
        }
    }
    Ok(())
}

fn parcels_have_arrived(reader: &dyn Reader, operations: &[Operation]) -> Result<(), String> {
    let mut expected: BTreeMap<(&ActorId, &ActorId), u64> = BTreeMap::new();
    for operation in operations {
        if let What::Deliver { from, to, count } = &operation.wish {
            *expected.entry((from, to)).or_default() += count;
        }
    }
    for ((from, to), count) in expected {
        let received: u64 = read(reader, to, &courier::received_key(from))?.unwrap_or(0);
        if received != count {
            return Err(format!("{to} received {received} parcels of {from}, not {count}"));
        }
    }
    Ok(())
}

fn knocks_were_heard(reader: &dyn Reader, operations: &[Operation]) -> Result<(), String> {
    let mut expected: BTreeMap<&ActorId, (Heard, u64)> = BTreeMap::new();
    for operation in operations {
        if let What::Knock { fragile, knock } = &operation.wish {
            let (heard, unsure) = expected.entry(fragile).or_default();
            match knock {
                Knock::Softly => heard.knocks += 1,
                Knock::Error | Knock::Panic => heard.letters += 1,
                // Three tries may be over before its time, or not.
                Knock::ErrorUntil(_) => *unsure += 1,
            }
        }
    }
    for (actor, (sure, unsure)) in expected {
        let heard: Heard = read(reader, actor, "heard")?.unwrap_or_default();
        let letters = reader.dead_letters(actor.shard(), None, PAGE_ROWS_MAX).map_err(text)?;
        let letters = letters.iter().filter(|letter| letter.actor == *actor).count() as u64;
        let is_right = heard.knocks >= sure.knocks
            && heard.letters >= sure.letters
            && heard.knocks + heard.letters == sure.knocks + sure.letters + unsure
            && heard.letters == letters;
        if !is_right {
            return Err(format!(
                "{actor} heard {heard:?} with {letters} dead letters, not {sure:?} and {unsure} unsure"
            ));
        }
    }
    Ok(())
}

/// The other actors refuse only what must never reach them, such as the result of a task that was settled.
fn only_fragile_actors_have_dead_letters(reader: &dyn Reader) -> Result<(), String> {
    for shard in Shard::all() {
        for letter in reader.dead_letters(shard, None, PAGE_ROWS_MAX).map_err(text)? {
            if letter.actor.kind() != fragile::KIND {
                return Err(format!("{} refused an input: {}", letter.actor, letter.error));
            }
        }
    }
    Ok(())
}

fn ticks_are_in_time(reader: &dyn Reader, ticker: &ActorId, start: &ticker::Start) -> Result<u64, String> {
    let mut due = start.first;
    let events = reader.events(ticker, 0, PAGE_ROWS_MAX).map_err(text)?;
    for event in &events {
        let tick: ticker::Tick = event.data.decode().map_err(text)?;
        if tick.due != due {
            return Err(format!("{ticker} was due at {due}, but ticked for {}", tick.due));
        }
        if tick.at < tick.due {
            return Err(format!("{ticker} was due at {due}, but ticked at {}", tick.at));
        }
        due = due.plus_ms(start.every_ms);
    }
    Ok(events.len() as u64)
}

/// Settled or cancelled, and not both: a cancelled task never settles.
fn task_ended_once(reader: &dyn Reader, errand: &ActorId, task: &str) -> Result<(), String> {
    let events = reader.events(errand, 0, PAGE_ROWS_MAX).map_err(text)?;
    let settled = events.iter().filter_map(|event| event.data.decode::<errand::Settled>().ok());
    let settled = settled.filter(|settled| settled.task == task).count();
    let cancelled = times_cancelled(&events, task);
    if settled + cancelled == 1 {
        Ok(())
    } else {
        Err(format!("task `{task}` of {errand} was settled {settled} times and cancelled {cancelled} times"))
    }
}

fn cancelled_task_is_gone(reader: &dyn Reader, errand: &ActorId, task: &str) -> Result<(), String> {
    let events = reader.events(errand, 0, PAGE_ROWS_MAX).map_err(text)?;
    let row = reader.task(errand, &TaskId::new(task).map_err(text)?).map_err(text)?;
    if times_cancelled(&events, task) == 0 || row.is_none() {
        Ok(())
    } else {
        Err(format!("task `{task}` of {errand} is cancelled, but still on disk"))
    }
}

fn times_cancelled(events: &[EventRow], task: &str) -> usize {
    let cancelled = events.iter().filter(|event| &*event.event_type == errand::CANCELLED);
    cancelled.filter(|event| event.data.decode().is_ok_and(|name: String| name == task)).count()
}

fn read<T: serde::de::DeserializeOwned>(reader: &dyn Reader, actor: &ActorId, key: &str) -> Result<Option<T>, String> {
    let found = reader.scan(actor, Bound::Included(key), Bound::Included(key), 1).map_err(text)?;
    found.first().map(|(_, value)| value.decode().map_err(text)).transpose()
}
