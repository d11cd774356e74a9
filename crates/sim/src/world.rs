//! The world of a simulation: what happens next, and when it all goes wrong.
//!
//! Owns the order of everything: the seed picks one action after the other, faults included. First it is stormy; then
//! nothing fails any more, and everything that was asked must come to an end. Start reading at [`World::run`].

use std::sync::Arc;

use steadfast::Kinds;
use steadfast::commit::{Output, TaskNews, TaskStart};
use steadfast::mutation::Mutation;
use steadfast::runner::{Delivery, Step, TaskOutcome};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::ids::{ActorId, stable_hash};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_store::Store;

use crate::actors::{chain, counter, courier, errand, fragile, ticker};
use crate::clients::Operation;
use crate::history::History;
use crate::invariants;
use crate::plan::{CrashPoint, Plan};
use crate::process::Process;
use crate::random::Random;
use crate::store::{CommitFault, FaultyStore, Uncertain};

/// Where the clock of every simulation begins.
const BEGIN: Timestamp = Timestamp(1_000_000);

/// Actions of the stormy part, per operation.
const ACTIONS_PER_OPERATION: usize = 40;

/// Rounds after which a calm world that is not done never will be.
const CALM_ROUNDS_MAX: usize = 20_000;

pub(crate) struct World {
    plan: Plan,
    mutation: Mutation,
    random: Random,
    pub(crate) clock: Timestamp,
    pub(crate) store: FaultyStore,
    kinds: Arc<Kinds>,
    process: Process,
    pub(crate) operations: Vec<Operation>,
    /// Results that have been delivered, or were under way in an earlier life, and may come again.
    late: Vec<(ActorId, TaskOutcome)>,
    pub(crate) history: History,
    pub(crate) commits: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, mutation: Mutation) -> Result<Self, String> {
        let store = FaultyStore::default();
        let mut kinds = Kinds::default();
        kinds.insert(counter::KIND, counter::Counter);
        kinds.insert(chain::KIND, chain::Chain);
        kinds.insert(ticker::KIND, ticker::Ticker);
        kinds.insert(errand::KIND, errand::Errand);
        kinds.insert(courier::KIND, courier::Courier);
        kinds.insert(fragile::KIND, fragile::Fragile);
        let kinds = Arc::new(kinds);
        let process = Process::boot(&store, kinds.clone(), plan.runners, mutation, BEGIN)?;
        Ok(Self {
            plan,
            mutation,
            random: Random::new(seed),
            clock: BEGIN,
            store,
            kinds,
            process,
            operations: Vec::new(),
            late: Vec::new(),
            history: History::default(),
            commits: 0,
        })
    }

    /// A storm, then calm, then the reckoning.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.plan.operations * ACTIONS_PER_OPERATION {
            self.act()?;
        }
        self.plan = self.plan.calm();
        self.calm_down()?;
        invariants::at_the_end(self)
    }

    fn act(&mut self) -> Result<(), String> {
        if self.random.next() % 1_000 < self.plan.crash_per_mille {
            self.crash("a crash")?;
        }
        match self.random.below(12) {
            0..=3 => {
                let number = self.random.below(self.process.runners.len());
                self.step(number);
            }
            4 | 5 => self.deliver_one(),
            6 | 7 => self.commit()?,
            8 => self.ask_something(),
            9 => self.finish_a_task(),
            10 => self.pass_time(),
            _ => self.process.mend(),
        }
        self.start_tasks()?;
        self.look_for_answers()
    }

    fn step(&mut self, number: usize) -> Step {
        let step = self.process.step(number, self.clock);
        if step == Step::Ran {
            self.record(|| format!("runner {number} runs"));
        }
        if self.random.percent(self.plan.evict) {
            for actor in self.process.runners[number].residents() {
                if self.random.percent(self.plan.evict) {
                    self.process.runners[number].evict(&actor);
                }
            }
        }
        step
    }

    fn deliver_one(&mut self) {
        let busy = self.process.busy_ways();
        if !busy.is_empty() {
            let way = *self.random.pick(&busy);
            self.process.deliver(way, self.clock);
            self.record(|| format!("delivery to {} from {}", way.0, way.1));
        }
    }

    fn ask_something(&mut self) {
        let open: Vec<usize> = (0..self.operations.len()).filter(|n| self.operations[*n].wants_to_ask()).collect();
        let is_new = self.operations.len() < self.plan.operations && (open.is_empty() || self.random.percent(60));
        let number = if is_new {
            let number = self.operations.len();
            let operation = Operation::random(&self.operations, &mut self.random, self.clock);
            self.operations.push(operation);
            number
        } else if open.is_empty() {
            return;
        } else {
            *self.random.pick(&open)
        };
        self.ask(number);
        if self.operations[number].id.is_some() && self.random.percent(self.plan.twice) {
            self.ask(number);
        }
    }

    fn ask(&mut self, number: usize) {
        let operation = &mut self.operations[number];
        let delivery = operation.ask(self.process.gather.anonymous_request());
        let actor = operation.actor().clone();
        let what = operation.what.clone();
        self.process.send(&actor, delivery);
        self.record(|| format!("operation {number} asks {what:?}"));
    }

    fn look_for_answers(&mut self) -> Result<(), String> {
        for number in 0..self.operations.len() {
            if let Some(news) = self.operations[number].look()? {
                self.record(|| format!("operation {number} {news}"));
            }
        }
        Ok(())
    }

    /// Begins a commit, or ends the one that is under way.
    fn commit(&mut self) -> Result<(), String> {
        if self.process.is_committing() {
            return self.end_commit();
        }
        if self.process.begin_commit() {
            self.record(|| "a commit begins".to_owned());
        }
        Ok(())
    }

    fn end_commit(&mut self) -> Result<(), String> {
        let planned = self.plan.crash_at.filter(|(commit, _)| *commit == self.commits).map(|(_, point)| point);
        let by_chance = self.random.percent(self.plan.commit_crash).then(|| {
            *self.random.pick(&[CrashPoint::BeforeCommit, CrashPoint::AfterCommit, CrashPoint::DuringRelease])
        });
        let crash = planned.or(by_chance);
        if crash == Some(CrashPoint::BeforeCommit) {
            self.commits += 1;
            return self.crash("a crash before a commit");
        }
        if self.random.percent(self.plan.commit_fails) {
            let fault = *self.random.pick(&[CommitFault::Fails, CommitFault::FailsUncertainly]);
            self.store.set_next(fault);
        }
        let committed = self.process.end_commit(&self.store);
        self.store.set_next(CommitFault::None);
        let Some(outputs) = committed else {
            if self.process.is_unwell() {
                self.record(|| "a commit fails".to_owned());
            }
            return Ok(());
        };
        self.commits += 1;
        self.record(|| format!("a commit lets {} go", outputs.len()));
        match crash {
            None => self.release(outputs),
            Some(CrashPoint::DuringRelease) => {
                let half = outputs.len() / 2;
                self.release(outputs.into_iter().take(half).collect())?;
                self.crash("a crash while outputs go")
            }
            Some(CrashPoint::BeforeCommit | CrashPoint::AfterCommit) => self.crash("a crash after a commit"),
        }
    }

    fn release(&mut self, outputs: Vec<Output>) -> Result<(), String> {
        let mut news: Vec<TaskNews> = Vec::new();
        for output in outputs {
            output.release(&mut |task| news.push(task));
        }
        for task in news {
            match task {
                TaskNews::Start(start) => {
                    invariants::task_is_on_disk(&self.store, &start)?;
                    self.process.queue.push(start);
                }
                TaskNews::Cancel(cancel) => {
                    self.record(|| format!("task {} is cancelled", cancel.task));
                    let dropped = self.process.cancel(&cancel);
                    // It may have ended before it could be dropped.
                    self.late.extend(dropped.into_iter().map(outcome_of));
                }
            }
        }
        // Only a cancel takes the row of a task that runs away, and what is cancelled does not go on.
        self.process.running.iter().try_for_each(|task| invariants::task_is_on_disk(&self.store, task))
    }

    fn start_tasks(&mut self) -> Result<(), String> {
        for task in self.process.start_tasks(&self.store)? {
            invariants::task_is_on_disk(&self.store, &task)?;
            self.record(|| format!("task {} attempt {} starts", task.task, task.attempt));
        }
        Ok(())
    }

    fn finish_a_task(&mut self) {
        let is_late = self.random.percent(self.plan.late);
        if is_late && !self.late.is_empty() {
            let (actor, outcome) = self.random.pick(&self.late).clone();
            self.record(|| format!("task {} of attempt {} ends late", outcome.task, outcome.attempt));
            self.process.send(&actor.clone(), Delivery::Task { actor, outcome });
        } else if !self.process.running.is_empty() {
            let chosen = self.random.below(self.process.running.len());
            let task = self.process.running.swap_remove(chosen);
            self.process.queue.finished();
            self.record(|| format!("task {} of attempt {} ends", task.task, task.attempt));
            let (actor, outcome) = outcome_of(task);
            if self.random.percent(self.plan.twice) {
                self.process.send(&actor, Delivery::Task { actor: actor.clone(), outcome: outcome.clone() });
            }
            self.late.push((actor.clone(), outcome.clone()));
            self.process.send(&actor.clone(), Delivery::Task { actor, outcome });
        }
    }

    fn pass_time(&mut self) {
        let passed = if self.random.percent(self.plan.clock_jump) {
            self.random.between(60_000, 200_000)
        } else if self.random.percent(20) {
            self.random.between(100, 5_000)
        } else {
            self.random.between(0, 50)
        };
        self.clock = self.clock.plus_ms(passed);
        if self.random.percent(self.plan.clock_jump) {
            self.clock = Timestamp(self.clock.0 - self.random.between(0, 500));
        }
        let now = self.clock;
        self.record(|| format!("it is {now}"));
    }

    /// The process ends, and another begins on what is on disk.
    fn crash(&mut self, how: &str) -> Result<(), String> {
        let uncertain = *self.random.pick(&[Uncertain::Appears, Uncertain::Vanishes]);
        self.record(|| format!("{how}; an uncertain commit {uncertain:?}"));
        let cut_off = std::mem::take(&mut self.process.running);
        self.late.extend(cut_off.into_iter().map(outcome_of));
        self.store.crash(uncertain);
        let runners = self.plan.runners;
        self.process = Process::boot(&self.store, self.kinds.clone(), runners, self.mutation, self.clock)?;
        self.look_for_answers()?;
        invariants::after_a_crash(self)
    }

    /// Lets everything come to its end.
    fn calm_down(&mut self) -> Result<(), String> {
        for _ in 0..CALM_ROUNDS_MAX {
            self.process.mend();
            for number in 0..self.operations.len() {
                if self.operations[number].wants_to_ask() {
                    self.ask(number);
                }
            }
            let wake_at = self.settle_down()?;
            let is_over = self.operations.iter().all(Operation::is_over);
            if is_over && invariants::is_at_rest(&self.store)? {
                return Ok(());
            }
            self.clock = self.clock.max(wake_at);
        }
        Err(format!("it never comes to an end: {}", invariants::what_is_left(self)))
    }

    /// Does everything that can be done at this time. When there will be something to do again.
    fn settle_down(&mut self) -> Result<Timestamp, String> {
        loop {
            let mut is_quiet = true;
            while let Some(way) = self.process.busy_ways().first() {
                self.process.deliver(*way, self.clock);
                is_quiet = false;
            }
            let mut wake_at = Timestamp::MAX;
            for number in 0..self.process.runners.len() {
                match self.step(number) {
                    Step::Ran => is_quiet = false,
                    Step::Idle(until) => wake_at = wake_at.min(until),
                    Step::Blocked => {}
                }
            }
            let commits_before = self.commits;
            self.process.begin_commit();
            self.end_commit()?;
            self.start_tasks()?;
            while !self.process.running.is_empty() {
                self.finish_a_task();
                is_quiet = false;
            }
            self.look_for_answers()?;
            if is_quiet && self.commits == commits_before {
                return Ok(wake_at);
            }
        }
    }

    fn record(&mut self, line: impl FnOnce() -> String) {
        self.history.record(line());
    }

    pub(crate) fn reader(&self) -> Result<Box<dyn steadfast_store::Reader>, String> {
        self.store.reader().map_err(|error| error.to_string())
    }
}

/// What a task gives: the same for every attempt. One in four fails.
fn outcome_of(start: TaskStart) -> (ActorId, TaskOutcome) {
    let TaskStart { actor, task, sequence, attempt, .. } = start;
    let outcome = if stable_hash(task.as_str().as_bytes()).is_multiple_of(4) {
        Err(Failure::last(FailureKind::TaskFailed, "simulated"))
    } else {
        Ok(Json::null())
    };
    (actor, TaskOutcome { task, sequence, attempt, outcome })
}
