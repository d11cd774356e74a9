//! What every store must do, as a suite that each store runs.
//!
//! Owns the cases, each a sentence about behaviour, run on a store of its own. Never asks which store it is. A new store
//! calls [`check`] from a test and is done when nothing is named. One file for each thing kept.

#![expect(clippy::unwrap_used, reason = "these are tests, though other crates run them too")]

mod commits;
mod inputs;
mod lists;
mod outputs;
mod removal;
mod state;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use steadfast_core::ids::{ActorId, RequestId, Sequence, Shard, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;

use crate::batch::{ActorWrites, Batch};
use crate::rows::{DeadLetterRow, EventRow, MessageRow, Origin, RequestRow, TaskRow};
use crate::{Reader, Store};

/// A place where one store is kept, which can be opened again after it was closed.
pub trait Place {
    /// Opens it, for the first time or again.
    fn open(&self) -> Box<dyn Store>;
}

/// A sentence, and what proves it.
type Case = (&'static str, fn(&dyn Place));

/// Makes a case of a function: its name is the sentence.
macro_rules! cases {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name)),*] };
}
use cases;

/// Runs every case on a new place.
///
/// # Panics
///
/// If a case fails, after all have run; the message names those that failed.
pub fn check<P: Place>(new_place: impl Fn() -> P) {
    let cases = [state::CASES, inputs::CASES, outputs::CASES, lists::CASES, removal::CASES, commits::CASES];
    let failed: Vec<&str> = cases
        .into_iter()
        .flatten()
        .filter(|(_, prove)| catch_unwind(AssertUnwindSafe(|| prove(&new_place()))).is_err())
        .map(|(name, _)| *name)
        .collect();
    assert!(failed.is_empty(), "this store does not conform: {failed:#?}");
}

/// An actor by its id.
fn actor(text: &str) -> ActorId {
    ActorId::parse(text).unwrap()
}

/// Two actors of one shard, in order, and one of another.
fn neighbours() -> (ActorId, ActorId, ActorId) {
    let first = actor("run:0");
    let mut others = (1..).map(|number| actor(&format!("run:{number}")));
    let second = others.find(|other| other.shard() == first.shard() && *other > first).unwrap();
    let elsewhere = others.find(|other| other.shard() != first.shard()).unwrap();
    (first, second, elsewhere)
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn task_id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

fn request_id(text: &str) -> RequestId {
    RequestId::given(text).unwrap()
}

fn message(actor: &ActorId, sequence: u64) -> MessageRow {
    MessageRow {
        actor: actor.clone(),
        sequence: Sequence(sequence),
        origin: Origin::Outside,
        body: json(&format!(r#"{{"number":{sequence}}}"#)),
        attempts: 0,
        not_before: Timestamp(0),
    }
}

fn task(actor: &ActorId, task: &str, sequence: u64) -> TaskRow {
    TaskRow {
        actor: actor.clone(),
        task: task_id(task),
        sequence: Sequence(sequence),
        executor: "http".into(),
        input: json("[1]"),
    }
}

fn request(actor: &ActorId, request: &str, expires_at: u64) -> RequestRow {
    RequestRow { actor: actor.clone(), request: request_id(request), reply: None, expires_at: Timestamp(expires_at) }
}

fn event(actor: &ActorId, sequence: u64) -> EventRow {
    EventRow {
        actor: actor.clone(),
        sequence,
        at: Timestamp(1_000 + sequence),
        event_type: "step.done".into(),
        data: json(&sequence.to_string()),
    }
}

fn dead_letter(actor: &ActorId, id: u64) -> DeadLetterRow {
    DeadLetterRow {
        id: Sequence(id),
        actor: actor.clone(),
        input: json(r#"{"input":"alarm","due":5}"#),
        error: "it said „no“".to_owned(),
        attempts: 3,
        at: Timestamp(7_000),
    }
}

/// Changes the rows of one actor.
#[track_caller]
fn write(store: &dyn Store, actor: &ActorId, change: impl FnOnce(&mut ActorWrites)) {
    let mut batch = Batch::default();
    change(batch.of(actor));
    store.commit(&batch).unwrap();
}

#[track_caller]
fn put(store: &dyn Store, actor: &ActorId, key: &str, value: &str) {
    write(store, actor, |writes| drop(writes.state.insert(Arc::from(key), Some(json(value)))));
}

#[track_caller]
fn reader(store: &dyn Store) -> Box<dyn Reader> {
    store.reader().unwrap()
}

/// Sequences of the messages of a shard, page by page.
fn message_pages(reader: &dyn Reader, shard: Shard, limit: usize) -> Vec<Vec<(ActorId, u64)>> {
    let mut pages: Vec<Vec<(ActorId, u64)>> = Vec::new();
    loop {
        let after = pages.last().and_then(|page| page.last()).map(|(actor, sequence)| (actor, Sequence(*sequence)));
        let page = reader.messages(shard, after, limit).unwrap();
        if page.is_empty() {
            return pages;
        }
        pages.push(page.into_iter().map(|row| (row.actor, row.sequence.0)).collect());
    }
}
