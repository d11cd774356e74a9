//! What clients of the small actors want.
//!
//! Owns the wishes and how each is asked. Knows nothing of what is inside the engine.

use steadfast::commit::Waiter;
use steadfast::runner::Delivery;
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;

use super::errand::With;
use super::fragile::Knock;
use super::{actor, chain, counter, courier, errand, fragile, ticker};
use crate::clients::Operation;
use crate::random::Random;
use crate::scenario::Wish;

/// What a client wants.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// Add to a counter.
    Add { counter: ActorId, add: u64 },
    /// Add to a counter by a message.
    AddByMessage { counter: ActorId, add: u64 },
    /// Let a courier send parcels.
    Deliver { from: ActorId, to: ActorId, count: u64 },
    /// Start a ticker.
    Tick { ticker: ActorId, start: ticker::Start },
    /// Run a task.
    Run { errand: ActorId, task: String },
    /// Cancel a task that another client may have asked for.
    Cancel { errand: ActorId, task: String, with: errand::With },
    /// Knock at a fragile actor by a message.
    Knock { fragile: ActorId, knock: Knock },
    /// Call down a chain.
    Nest { chain: ActorId, depth: u64 },
}

impl What {
    /// Something that a client might want, after what others wanted.
    pub(super) fn random(before: &[Operation<Self>], random: &mut Random, now: Timestamp) -> Operation<Self> {
        let number = before.len();
        let what = match random.below(10) {
            0 if random.percent(40) => {
                let add = random.between(1, 9);
                return Operation::anonymous(Self::Add { counter: unsure_counter(), add });
            }
            0 => What::Add { counter: some(counter::KIND, 3, random), add: random.between(1, 9) },
            1 => What::AddByMessage { counter: some(counter::KIND, 3, random), add: random.between(1, 9) },
            2 | 3 => What::Deliver {
                from: some(courier::KIND, 4, random),
                to: some(courier::KIND, 4, random),
                count: random.between(1, 6),
            },
            4 => What::Tick {
                ticker: actor(ticker::KIND, &number.to_string()),
                start: ticker::Start {
                    first: now.plus_ms(random.between(0, 200_000)),
                    every_ms: random.between(1, 90_000),
                    times: random.between(1, 4),
                },
            },
            5 if random.percent(70) => Self::some_cancel(before, random),
            5 | 8 | 9 => What::Run { errand: some(errand::KIND, 2, random), task: format!("task-{number}") },
            6 => {
                let until = Knock::ErrorUntil(now.plus_ms(random.between(0, 300)));
                let knock = *random.pick(&[Knock::Softly, Knock::Softly, Knock::Error, Knock::Panic, until]);
                What::Knock { fragile: some(fragile::KIND, 2, random), knock }
            }
            _ => What::Nest { chain: chain::first(&format!("c{number}")), depth: random.between(0, 12) },
        };
        Operation::new(what, number)
    }

    /// Cancels a task that may wait, run or be settled; one that nobody asked for when there is none.
    fn some_cancel(before: &[Operation<Self>], random: &mut Random) -> Self {
        let asked: Vec<(&ActorId, &String)> = before
            .iter()
            .filter_map(|operation| match &operation.wish {
                What::Run { errand, task } => Some((errand, task)),
                What::Add { .. }
                | What::AddByMessage { .. }
                | What::Deliver { .. }
                | What::Tick { .. }
                | What::Cancel { .. }
                | What::Knock { .. }
                | What::Nest { .. } => None,
            })
            .collect();
        // One of the last: it is more likely to be under way.
        let last = &asked[asked.len().saturating_sub(4)..];
        let with = *random.pick(&[With::Nothing, With::DispatchBefore, With::DispatchAfter]);
        if last.is_empty() {
            return What::Cancel { errand: some(errand::KIND, 2, random), task: "unknown".to_owned(), with };
        }
        let (errand, task) = *random.pick(last);
        What::Cancel { errand: errand.clone(), task: task.clone(), with }
    }
}

impl Wish for What {
    fn actor(&self) -> &ActorId {
        match self {
            What::Add { counter, .. } | What::AddByMessage { counter, .. } => counter,
            What::Deliver { from, .. } => from,
            What::Tick { ticker, .. } => ticker,
            What::Run { errand, .. } | What::Cancel { errand, .. } => errand,
            What::Knock { fragile, .. } => fragile,
            What::Nest { chain, .. } => chain,
        }
    }

    fn delivery(&self, id: RequestId, waiter: Waiter) -> Delivery {
        let actor = self.actor().clone();
        let request = |actor, id, body, waiter| Delivery::Request { actor, id, body, waiter };
        match self {
            What::Add { add, .. } => request(actor, id, json(&counter::Add { add: *add }), waiter),
            What::AddByMessage { add, .. } => {
                Delivery::Send { actor, id, body: json(&counter::Add { add: *add }), waiter }
            }
            What::Deliver { to, count, .. } => {
                request(actor, id, json(&courier::Deliver { to: to.clone(), count: *count }), waiter)
            }
            What::Tick { start, .. } => request(actor, id, json(start), waiter),
            What::Run { task, .. } => {
                let run = errand::Run { task: task.clone(), executor: "echo".to_owned(), input: json(task) };
                request(actor, id, json(&run), waiter)
            }
            What::Cancel { task, with, .. } => {
                request(actor, id, json(&errand::Cancel { cancel: task.clone(), with: *with }), waiter)
            }
            What::Knock { knock, .. } => Delivery::Send { actor, id, body: json(knock), waiter },
            What::Nest { depth, .. } => request(actor, id, json(&chain::Nest { depth: *depth }), waiter),
        }
    }
}

/// The counter of clients that give no id: what it holds is known only within bounds.
pub(super) fn unsure_counter() -> ActorId {
    actor(counter::KIND, "unsure")
}

fn some(kind: &str, of: u64, random: &mut Random) -> ActorId {
    actor(kind, &random.between(0, of - 1).to_string())
}

fn json<T: serde::Serialize>(value: &T) -> Json {
    Json::encode(value).expect("the simulator's own forms are JSON")
}
