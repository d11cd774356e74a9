//! A simulated process: the engine's own state machines, driven one step at a time.
//!
//! Owns what the engine's threads own otherwise: the runners, the ways between them, the committer's moment, the task queue. It is what a
//! crash takes away. Never decides what happens next: that is [`crate::world`].

use std::collections::VecDeque;
use std::sync::Arc;

use steadfast::commit::{Batched, Commit, Gather, Output, TaskCancel, TaskStart, commit};
use steadfast::mutation::Mutation;
use steadfast::runner::{Delivery, Runner, Step};
use steadfast::tasks::TaskQueue;
use steadfast::{Kinds, Settings, runner_of, shards_of};
use steadfast_core::ids::{ActorId, Shard};
use steadfast_core::time::Timestamp;
use steadfast_store::Store;

use crate::plan::Plan;

/// One life of the engine.
pub(crate) struct Process {
    pub(crate) gather: Arc<Gather>,
    pub(crate) runners: Vec<Runner>,
    /// By receiving runner, then by sender: the other runners, and last the outside. Each is first in, first out.
    ways: Vec<Vec<VecDeque<Delivery>>>,
    pub(crate) queue: TaskQueue,
    pub(crate) running: Vec<TaskStart>,
    in_flight: Option<Batched>,
    kinds: Arc<Kinds>,
    is_unwell: bool,
}

/// Bounds so small that a simulation reaches them.
fn settings(plan: &Plan) -> Settings {
    Settings {
        runners: plan.runners,
        resident_bytes_max: 8 * 1024,
        mailbox_bytes_max: 2_048,
        batch_turns_max: 12,
        tasks_running_max: plan.tasks_running,
        tasks_queued_max: 3,
        removed_rows_max: 7,
        ..Settings::default()
    }
}

impl Process {
    /// Opens the store as a new life of the engine.
    pub(crate) fn boot(
        store: &dyn Store,
        kinds: Arc<Kinds>,
        plan: &Plan,
        mutation: Mutation,
        now: Timestamp,
    ) -> Result<Self, String> {
        let (settings, runners) = (settings(plan), plan.runners);
        let boot = store.begin_boot().map_err(|error| error.to_string())?;
        let gather = Arc::new(Gather::new(boot, settings.batch_turns_max).with_mutation(mutation));
        let start = |number| {
            let reader = store.reader()?;
            Runner::start(gather.clone(), kinds.clone(), &settings, reader, shards_of(number, runners), now)
        };
        let started: Result<Vec<Runner>, _> = (0..runners).map(start).collect();
        Ok(Self {
            runners: started.map_err(|error| error.to_string())?,
            ways: (0..runners).map(|_| (0..=runners).map(|_| VecDeque::new()).collect()).collect(),
            queue: TaskQueue::new(settings.tasks_running_max, settings.tasks_queued_max),
            running: Vec::new(),
            in_flight: None,
            gather,
            kinds,
            is_unwell: false,
        })
    }

    /// Puts something from outside on its way to the runner of `actor`.
    pub(crate) fn send(&mut self, actor: &ActorId, delivery: Delivery) {
        let outside = self.runners.len();
        let to = self.runner_of(actor.shard());
        self.ways[to][outside].push_back(delivery);
    }

    fn runner_of(&self, shard: Shard) -> usize {
        runner_of(shard, self.runners.len())
    }

    /// Ways on which something waits, as (receiver, sender).
    pub(crate) fn busy_ways(&self) -> Vec<(usize, usize)> {
        let all = self.ways.iter().enumerate();
        all.flat_map(|(to, ways)| {
            ways.iter().enumerate().filter(|(_, way)| !way.is_empty()).map(move |(from, _)| (to, from))
        })
        .collect()
    }

    /// Delivers the first thing on a way.
    pub(crate) fn deliver(&mut self, (to, from): (usize, usize), now: Timestamp) {
        if let Some(delivery) = self.ways[to][from].pop_front() {
            self.runners[to].deliver(delivery, now);
        }
    }

    /// Lets a runner do one step.
    pub(crate) fn step(&mut self, number: usize, now: Timestamp) -> Step {
        let step = self.runners[number].step(now);
        for message in self.runners[number].take_outbox() {
            let to = self.runner_of(message.row.actor.shard());
            self.ways[to][number].push_back(Delivery::Remote(message));
        }
        step
    }

    /// Takes what is gathered; turns go on while it is on its way. Whether there was anything, or is on its way already.
    pub(crate) fn begin_commit(&mut self) -> bool {
        if self.in_flight.is_none() {
            self.in_flight = self.gather.take();
        }
        self.in_flight.is_some()
    }

    /// Whether a batch is on its way to the disk.
    pub(crate) fn is_committing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Writes what was taken. What may leave is returned, not let go.
    pub(crate) fn end_commit(&mut self, store: &dyn Store) -> Option<Vec<Output>> {
        match commit(&self.gather, store, self.in_flight.take()?) {
            Commit::Nothing => None,
            Commit::Done(outputs) => Some(outputs),
            Commit::Failed(outputs, error) => {
                self.is_unwell = true;
                for output in outputs {
                    output.call_off(&error.to_string());
                }
                None
            }
        }
    }

    /// Whether a commit failed, and the store is not well again yet.
    pub(crate) fn is_unwell(&self) -> bool {
        self.is_unwell
    }

    /// The store is well again, if it was not.
    pub(crate) fn mend(&mut self) {
        if std::mem::take(&mut self.is_unwell) {
            self.gather.recovered();
        }
    }

    /// Calls a task off. What of it ran and is dropped.
    pub(crate) fn cancel(&mut self, cancel: &TaskCancel) -> Vec<TaskStart> {
        self.queue.cancel(cancel);
        let dropped: Vec<TaskStart> = self.running.extract_if(.., |task| cancel.is_of(task)).collect();
        for _ in &dropped {
            self.queue.finished();
        }
        dropped
    }

    /// Starts tasks as far as they may run.
    pub(crate) fn start_tasks(&mut self, store: &dyn Store) -> Result<Vec<TaskStart>, String> {
        if self.queue.wants_refill() {
            let reader = store.reader().map_err(|error| error.to_string())?;
            self.queue.refill(&*reader, &self.kinds, &self.gather).map_err(|error| error.to_string())?;
        }
        let started: Vec<TaskStart> = std::iter::from_fn(|| self.queue.start_next()).collect();
        self.running.extend(started.iter().cloned());
        Ok(started)
    }
}
