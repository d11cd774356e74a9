//! The runner step by step on a clock of its own: what takes minutes otherwise.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod support;

use std::sync::Arc;

use steadfast::commit::{Commit, Gather, Waiter, commit_gathered};
use steadfast::core::ids::{ActorId, RequestId, Sequence, Shard};
use steadfast::core::json::Json;
use steadfast::core::limits::{ALARMS_AHEAD_MAX, ALARMS_AHEAD_MS};
use steadfast::core::time::Timestamp;
use steadfast::runner::{Delivery, Runner, Step};
use steadfast::store::Store;
use steadfast::store::batch::Batch;
use steadfast::store::memory::MemoryStore;
use steadfast::store::rows::{MessageRow, Origin};
use steadfast::{Answer, Kinds, Settings};
use steadfast_sim::actors::{counter, ticker};
use support::*;

/// A runner for all shards, and the committer's part done by hand.
struct Machine {
    store: MemoryStore,
    gather: Arc<Gather>,
    runner: Runner,
    callers: Vec<tokio::sync::oneshot::Receiver<Answer>>,
    now: Timestamp,
}

impl Machine {
    fn boot(store: MemoryStore, now: Timestamp) -> Self {
        let mut kinds = Kinds::default();
        kinds.insert(counter::KIND, counter::Counter);
        kinds.insert(ticker::KIND, ticker::Ticker);
        let settings = Settings { runners: 1, batch_turns_max: 100_000, ..Settings::default() };
        let gather = Arc::new(Gather::new(store.begin_boot().unwrap(), settings.batch_turns_max));
        let shards = Shard::all().collect();
        let reader = store.reader().unwrap();
        let runner = Runner::start(gather.clone(), Arc::new(kinds), &settings, reader, shards, now).unwrap();
        Self { store, gather, runner, callers: Vec::new(), now }
    }

    fn ask<T: serde::Serialize>(&mut self, actor: &ActorId, id: RequestId, body: &T) {
        let (waiter, caller) = Waiter::new(None);
        // A request without an id whose caller has left is not run.
        self.callers.push(caller);
        let body = Json::encode(body).unwrap();
        self.runner.deliver(Delivery::Request { actor: actor.clone(), id, body, waiter }, self.now);
    }

    /// Does everything there is to do now, and says when there is more.
    fn settle(&mut self) -> Timestamp {
        loop {
            let step = self.runner.step(self.now);
            let committed = commit_gathered(&self.gather, &self.store);
            if let (Step::Idle(until), Commit::Nothing) = (step, committed) {
                return until;
            }
        }
    }

    fn ticks_of(&self, ticker: &ActorId) -> usize {
        self.store.reader().unwrap().events(ticker, 0, 10).unwrap().len()
    }
}

/// Tickers that all live in one shard.
fn tickers_of_one_shard(count: usize) -> Vec<ActorId> {
    (0..)
        .map(|number: u64| actor(ticker::KIND, &number.to_string()))
        .filter(|id| id.shard() == Shard(0))
        .take(count)
        .collect()
}

#[test]
fn more_alarms_at_once_than_are_read_ahead_all_fire_once() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    let tickers = tickers_of_one_shard(ALARMS_AHEAD_MAX * 2 + 100);
    let due = Timestamp(10 * ALARMS_AHEAD_MS);
    for (number, ticker) in tickers.iter().enumerate() {
        let start = ticker::Start { first: due, every_ms: 1, times: 1 };
        machine.ask(ticker, RequestId::anonymous(number as u64), &start);
    }
    machine.settle();
    // From the store alone: nothing of what was set is in memory.
    let mut machine = Machine::boot(machine.store, Timestamp(2_000));
    machine.settle();
    assert!(tickers.iter().all(|ticker| machine.ticks_of(ticker) == 0));
    machine.now = due;
    machine.settle();
    assert!(tickers.iter().all(|ticker| machine.ticks_of(ticker) == 1));
}

#[test]
fn an_alarm_far_ahead_fires_at_its_time_and_not_before() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    let ticker = actor(ticker::KIND, "a");
    let day = 24 * 60 * 60 * 1_000;
    let start = ticker::Start { first: Timestamp(1_000 + day), every_ms: 1, times: 1 };
    machine.ask(&ticker, RequestId::anonymous(1), &start);
    machine.settle();
    machine.now = Timestamp(999 + day);
    let wake = machine.settle();
    assert_eq!((machine.ticks_of(&ticker), wake), (0, Timestamp(1_000 + day)));
    machine.now = Timestamp(1_000 + day);
    machine.settle();
    assert_eq!(machine.ticks_of(&ticker), 1);
}

#[test]
fn an_alarm_moved_to_a_later_time_does_not_fire_at_the_earlier() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    let ticker = actor(ticker::KIND, "a");
    for (number, first) in [5_000, 9_000].into_iter().enumerate() {
        let start = ticker::Start { first: Timestamp(first), every_ms: 1, times: 1 };
        machine.ask(&ticker, RequestId::anonymous(number as u64), &start);
    }
    machine.now = Timestamp(5_000);
    machine.settle();
    assert_eq!(machine.ticks_of(&ticker), 0);
    machine.now = Timestamp(9_000);
    machine.settle();
    assert_eq!(machine.ticks_of(&ticker), 1);
}

/// When the last of them ticks, with steps only at the times the runner asks for.
fn first_tick_of(machine: &mut Machine, ticker: &ActorId, until: u64) -> Option<u64> {
    while machine.now.0 < until {
        let wake = machine.settle();
        if machine.ticks_of(ticker) == 1 {
            return Some(machine.now.0);
        }
        machine.now = wake.max(machine.now.plus_ms(1));
    }
    None
}

#[test]
fn an_alarm_behind_a_burst_of_others_is_not_late() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(0));
    machine.settle();
    let begin = 1_000_000;
    let tickers = tickers_of_one_shard(ALARMS_AHEAD_MAX);
    for (number, ticker) in tickers.iter().enumerate() {
        let is_last = number + 1 == tickers.len();
        let first = Timestamp(begin + ALARMS_AHEAD_MS + if is_last { 1_000 } else { 0 });
        machine.ask(ticker, RequestId::anonymous(number as u64), &ticker::Start { first, every_ms: 1, times: 1 });
    }
    machine.settle();
    machine.now = Timestamp(begin);
    let last = tickers.last().unwrap();
    let due = begin + ALARMS_AHEAD_MS + 1_000;
    assert_eq!(first_tick_of(&mut machine, last, begin + 10 * ALARMS_AHEAD_MS), Some(due));
}

#[test]
fn an_alarm_that_was_due_when_the_clock_was_set_back_fires_later() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    let tickers = tickers_of_one_shard(2);
    for (number, ticker) in tickers.iter().enumerate() {
        let start = ticker::Start { first: Timestamp(5_000), every_ms: 1, times: 1 };
        machine.ask(ticker, RequestId::anonymous(number as u64), &start);
    }
    machine.settle();
    machine.now = Timestamp(5_000);
    assert_eq!(machine.runner.step(machine.now), Step::Ran, "both are queued, one has had its turn");
    machine.now = Timestamp(4_999);
    machine.settle();
    machine.now = Timestamp(5_000);
    machine.settle();
    assert_eq!(tickers.iter().map(|ticker| machine.ticks_of(ticker)).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_stored_message_that_is_not_json_becomes_a_dead_letter() {
    let store = MemoryStore::new();
    let counter = actor(counter::KIND, "a");
    let mut batch = Batch::default();
    batch.of(&counter).insert_message(MessageRow {
        actor: counter.clone(),
        sequence: Sequence(5),
        origin: Origin::Outside,
        body: Json::from_stored("{oops"),
        attempts: 0,
        not_before: Timestamp(0),
    });
    store.commit(&batch).unwrap();
    let mut machine = Machine::boot(store, Timestamp(1_000));
    for _ in 0..4 {
        machine.settle();
        machine.now = machine.now.plus_ms(1_000);
    }
    let letters = machine.store.reader().unwrap().dead_letters(counter.shard(), None, 10).unwrap();
    assert_eq!(letters[0].input.as_str(), r#"{"v":1,"form":{"unreadable":{"body":"{oops"}}}"#);
}

#[test]
fn a_request_id_is_remembered_for_its_time_and_then_forgotten() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    let counter = actor(counter::KIND, "a");
    let id = given("r");
    let memory = Settings::default().request_memory_ms;
    let is_remembered = |machine: &Machine| machine.store.reader().unwrap().request(&counter, &id).unwrap().is_some();
    machine.ask(&counter, id.clone(), &counter::Add { add: 1 });
    machine.settle();
    machine.now = Timestamp(1_000 + memory);
    machine.settle();
    assert!(is_remembered(&machine));
    machine.now = machine.now.plus_ms(120_000);
    machine.settle();
    assert!(!is_remembered(&machine));
}

#[test]
fn an_idle_actor_leaves_memory() {
    let mut machine = Machine::boot(MemoryStore::new(), Timestamp(1_000));
    machine.ask(&actor(counter::KIND, "a"), RequestId::anonymous(1), &counter::Add { add: 1 });
    machine.settle();
    assert_eq!(machine.runner.residents().len(), 1);
    for _ in 0..10 {
        machine.now = machine.now.plus_ms(10_000);
        machine.settle();
    }
    assert_eq!(machine.runner.residents(), []);
}
