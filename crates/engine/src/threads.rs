//! The threads of an engine: runners that run turns, and the one committer.
//!
//! Owns the loops around the state machines, the real clock, and the way between threads. Never decides anything: that is done in
//! [`crate::runner`] and [`crate::commit`], which the simulator runs without threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use steadfast_core::ids::Shard;
use steadfast_core::time::Timestamp;
use steadfast_store::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::commit::{Commit, Gather, Output, TaskNews, commit_gathered};
use crate::runner::{Delivery, Runner, Step};
use crate::tasks::TaskEvent;

/// What a runner thread is sent.
pub(crate) enum Parcel {
    Delivery(Delivery),
    /// Look whether the store is well.
    Wake,
    Stop,
}

/// The way to the runner of an actor.
#[derive(Clone)]
pub(crate) struct Inboxes(Arc<[Sender<Parcel>]>);

/// How many deliveries are taken in between two turns, so that neither starves the other.
const DELIVERIES_PER_TURN: usize = 64;

/// How many turns a runner still runs when it is told to stop. What is left is on disk.
const LAST_TURNS_MAX: usize = 10_000;

/// How long a blocked runner waits before it looks again by itself.
const BLOCKED: Duration = Duration::from_millis(50);

/// How long the committer waits before it tries a store that failed, the first time and at most.
const PROBE_FIRST: Duration = Duration::from_millis(50);
const PROBE_MAX: Duration = Duration::from_secs(2);

/// How often the log is reminded of a store that is not well.
const REMIND_EVERY: Duration = Duration::from_secs(60);

impl Inboxes {
    pub(crate) fn new(senders: Vec<Sender<Parcel>>) -> Self {
        Self(senders.into())
    }

    /// Sends to the runner of `shard`. After the end of the engine nothing is sent.
    pub(crate) fn send(&self, shard: Shard, delivery: Delivery) {
        drop(self.0[runner_of(shard, self.0.len())].send(Parcel::Delivery(delivery)));
    }

    pub(crate) fn send_all(&self, parcel: impl Fn() -> Parcel) {
        for sender in &*self.0 {
            drop(sender.send(parcel()));
        }
    }
}

/// Which of so many runners owns a shard.
#[must_use]
pub fn runner_of(shard: Shard, runners: usize) -> usize {
    usize::from(shard.0) % runners
}

/// The shards of one of so many runners.
pub fn shards_of(runner: usize, runners: usize) -> Vec<Shard> {
    Shard::all().filter(|shard| runner_of(*shard, runners) == runner).collect()
}

/// The time, by the system's clock.
pub(crate) fn clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)).min(Timestamp::MAX)
}

/// A runner's thread.
pub(crate) fn run_actors(mut runner: Runner, inbox: &Receiver<Parcel>, inboxes: &Inboxes, gather: &Gather) {
    loop {
        for _ in 0..DELIVERIES_PER_TURN {
            match inbox.try_recv() {
                Ok(Parcel::Delivery(delivery)) => runner.deliver(delivery, clock()),
                Ok(Parcel::Wake) => {}
                Ok(Parcel::Stop) | Err(TryRecvError::Disconnected) => {
                    return run_last_turns(&mut runner, inboxes, gather);
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        let now = clock();
        let step = runner.step(now);
        forward(&mut runner, inboxes);
        match step {
            Step::Ran => {}
            Step::Blocked => gather.wait_for_room(BLOCKED),
            Step::Idle(until) => match inbox.recv_timeout(Duration::from_millis(now.ms_until(until).max(1))) {
                Ok(Parcel::Delivery(delivery)) => runner.deliver(delivery, clock()),
                Ok(Parcel::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Parcel::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return run_last_turns(&mut runner, inboxes, gather);
                }
            },
        }
    }
}

/// Gives results that have just come a chance to be on disk before the end.
fn run_last_turns(runner: &mut Runner, inboxes: &Inboxes, gather: &Gather) {
    for _ in 0..LAST_TURNS_MAX {
        match runner.step(clock()) {
            Step::Ran => forward(runner, inboxes),
            Step::Blocked if gather.is_well() => gather.wait_for_room(BLOCKED),
            Step::Blocked | Step::Idle(_) => return,
        }
    }
}

fn forward(runner: &mut Runner, inboxes: &Inboxes) {
    for message in runner.take_outbox() {
        inboxes.send(message.row.actor.shard(), Delivery::Remote(message));
    }
}

/// The committer's thread.
pub(crate) fn commit_turns(store: &dyn Store, gather: &Gather, tasks: &UnboundedSender<TaskEvent>, inboxes: &Inboxes) {
    while gather.wait_for_turns() {
        let (began, turns_before) = (Instant::now(), gather.counters.turns_committed.load(Ordering::Relaxed));
        match commit_gathered(gather, store) {
            Commit::Nothing => {}
            Commit::Done(outputs) => {
                let turns = gather.counters.turns_committed.load(Ordering::Relaxed) - turns_before;
                gather.loads.committed(turns, began.elapsed());
                release(outputs, tasks);
            }
            Commit::Failed(outputs, error) => {
                tracing::error!(%error, "a commit failed; nothing is acknowledged until the store is well");
                let reason = error.to_string();
                for output in outputs {
                    output.call_off(&reason);
                }
                inboxes.send_all(|| Parcel::Wake);
                wait_until_well(store, gather);
                inboxes.send_all(|| Parcel::Wake);
            }
        }
    }
}

fn release(outputs: Vec<Output>, tasks: &UnboundedSender<TaskEvent>) {
    let is_answer = |output: &Output| matches!(output, Output::Answer(..));
    let (answers, others): (Vec<Output>, Vec<Output>) = outputs.into_iter().partition(is_answer);
    let mut news: Vec<TaskNews> = Vec::new();
    for output in others {
        output.release(&mut |task| news.push(task));
    }
    // All at once, so that cancelling one task does not make room for another that is cancelled in the same breath; and before the answers:
    // who was told that a task is cancelled need not see it start. After the end of the dispatcher nothing is started, the rows are
    // on disk for the next life.
    if !news.is_empty() {
        drop(tasks.send(TaskEvent::News(news)));
    }
    for answer in answers {
        answer.release(&mut |_| {});
    }
}

fn wait_until_well(store: &dyn Store, gather: &Gather) {
    let mut pause = PROBE_FIRST;
    let mut said_at = Instant::now();
    while !gather.wait_for_close(pause) {
        match store.probe() {
            Ok(()) => {
                tracing::warn!("the store is well again");
                return gather.recovered();
            }
            Err(error) if said_at.elapsed() >= REMIND_EVERY => {
                said_at = Instant::now();
                tracing::error!(%error, "the store is not well yet");
            }
            Err(_) => {}
        }
        pause = (pause * 2).min(PROBE_MAX);
    }
}
