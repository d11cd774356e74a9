//! The world of a simulation: what happens next, and when it all goes wrong.
//!
//! Owns the order of everything: the seed picks one action after the other, faults included. First it is stormy; then
//! nothing fails any more, and everything that was asked must come to an end. What is asked, and what must be true, is the
//! scenario's: [`crate::scenario`]. Start reading at [`World::run`].

use std::sync::Arc;

use steadfast::Kinds;
use steadfast::commit::{Output, TaskNews, TaskStart};
use steadfast::mutation::Mutation;
use steadfast::runner::{Delivery, Step, TaskOutcome, Told};
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_store::{Reader, Store};

use crate::clients::Operation;
use crate::disk;
use crate::history::History;
use crate::plan::{CrashPoint, Plan};
use crate::process::Process;
use crate::random::Random;
use crate::scenario::{Scenario, Seen, Weather};
use crate::store::{CommitFault, FaultyStore, Uncertain};

/// Where the clock of every simulation begins.
const BEGIN: Timestamp = Timestamp(1_000_000);

/// Actions that the storm goes on for when nobody wants anything any more: what is late may still come.
const ACTIONS_AFTERWARDS: usize = 20;

/// The longest jump to an alarm. Shorter than requests are remembered, so that a client may ask again after it.
const JUMP_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// Rounds after which a calm world that is not done never will be. The clock goes on after each.
const CALM_ROUNDS_MAX: usize = 20_000;

/// Rounds after which a world in which the clock stands still never comes to rest.
const SETTLING_ROUNDS_MAX: usize = 100_000;

pub(crate) struct World<S: Scenario> {
    pub(crate) scenario: S,
    plan: Plan,
    mutation: Mutation,
    weather: Weather,
    random: Random,
    clock: Timestamp,
    store: FaultyStore,
    kinds: Arc<Kinds>,
    process: Process,
    pub(crate) operations: Vec<Operation<S::Wish>>,
    /// Results that have been delivered, or were under way in an earlier life, and may come again.
    late: Vec<(ActorId, TaskOutcome)>,
    pub(crate) history: History,
    pub(crate) commits: u64,
    pub(crate) crashes: u64,
}

impl<S: Scenario> World<S> {
    pub(crate) fn new(scenario: S, seed: u64, plan: Plan, mutation: Mutation) -> Result<Self, String> {
        let store = FaultyStore::default();
        let kinds = Arc::new(scenario.kinds());
        let process = Process::boot(&store, kinds.clone(), &plan, mutation, BEGIN)?;
        Ok(Self {
            scenario,
            plan,
            mutation,
            weather: Weather::Stormy,
            random: Random::new(seed),
            clock: BEGIN,
            store,
            kinds,
            process,
            operations: Vec::new(),
            late: Vec::new(),
            history: History::default(),
            commits: 0,
            crashes: 0,
        })
    }

    /// A storm, then calm, then the reckoning.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let mut left = self.plan.actions;
        while left > 0 {
            self.act()?;
            left -= 1;
            if self.scenario.is_over(&self.operations) {
                left = left.min(ACTIONS_AFTERWARDS);
            }
        }
        self.plan = self.plan.calm();
        self.weather = Weather::Calm;
        self.calm_down()?;
        self.look(|scenario, seen| scenario.at_the_end(seen))
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
            8 => self.ask_something()?,
            9 => self.finish_a_task()?,
            10 => self.pass_time()?,
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

    fn ask_something(&mut self) -> Result<(), String> {
        let open: Vec<usize> = (0..self.operations.len()).filter(|n| self.operations[*n].wants_to_ask()).collect();
        let number = if (open.is_empty() || self.random.percent(60)) && self.wish()? {
            self.operations.len() - 1
        } else if open.is_empty() {
            return Ok(());
        } else {
            *self.random.pick(&open)
        };
        self.ask(number);
        if self.operations[number].id.is_some() && self.random.percent(self.plan.twice) {
            self.ask(number);
        }
        Ok(())
    }

    /// Lets a client want something new. Whether one does.
    fn wish(&mut self) -> Result<bool, String> {
        let reader = self.reader()?;
        let Self { operations, weather, clock, .. } = self;
        let seen = Seen { operations, reader: &*reader, now: *clock, weather: *weather };
        let wished = self.scenario.wish(&seen, &mut self.random)?;
        let is_new = wished.is_some();
        self.operations.extend(wished);
        Ok(is_new)
    }

    fn ask(&mut self, number: usize) {
        let operation = &mut self.operations[number];
        let delivery = operation.ask(self.process.gather.anonymous_request());
        let actor = operation.actor().clone();
        let wish = operation.wish.clone();
        self.process.send(&actor, delivery);
        self.record(|| format!("operation {number} asks {wish:?}"));
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
            None => {
                self.release(outputs)?;
                // Only a cancel takes the row of a task that runs away, and what is cancelled does not go on.
                self.process.running.iter().try_for_each(|task| disk::holds_task(&self.store, task))
            }
            // What is cancelled may not have heard of it.
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
                    disk::holds_task(&self.store, &start)?;
                    self.process.queue.push(start);
                }
                TaskNews::Cancel(cancel) => {
                    self.record(|| format!("task {} is cancelled", cancel.task));
                    let dropped = self.process.cancel(&cancel);
                    // It may have ended before it could be dropped.
                    self.keep_for_later(dropped)?;
                }
            }
        }
        Ok(())
    }

    fn start_tasks(&mut self) -> Result<(), String> {
        for task in self.process.start_tasks(&self.store)? {
            disk::holds_task(&self.store, &task)?;
            self.record(|| format!("task {} attempt {} starts", task.task, task.attempt));
        }
        Ok(())
    }

    fn finish_a_task(&mut self) -> Result<(), String> {
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
            let (actor, outcome) = self.outcome_of(task, &*self.reader()?)?;
            if self.random.percent(self.plan.twice) {
                self.process.send(&actor, Delivery::Task { actor: actor.clone(), outcome: outcome.clone() });
            }
            self.late.push((actor.clone(), outcome.clone()));
            self.process.send(&actor.clone(), Delivery::Task { actor, outcome });
        }
        Ok(())
    }

    /// What tasks give that nobody waits for any more may come all the same.
    fn keep_for_later(&mut self, tasks: Vec<TaskStart>) -> Result<(), String> {
        let reader = self.reader()?;
        for task in tasks {
            let outcome = self.outcome_of(task, &*reader)?;
            self.late.push(outcome);
        }
        Ok(())
    }

    fn outcome_of(&self, start: TaskStart, reader: &dyn Reader) -> Result<(ActorId, TaskOutcome), String> {
        let outcome = self.scenario.outcome(&start, reader)?;
        let TaskStart { actor, task, sequence, attempt, .. } = start;
        Ok((actor, TaskOutcome { task, sequence, attempt, outcome, told: Told::default() }))
    }

    fn pass_time(&mut self) -> Result<(), String> {
        let passed = if self.random.percent(self.plan.clock_jump) {
            self.random.between(60_000, 200_000)
        } else if self.random.percent(20) {
            self.random.between(100, 5_000)
        } else {
            self.random.between(0, 50)
        };
        self.clock = self.clock.plus_ms(passed);
        if self.plan.alarm_jump > 0 && self.random.percent(self.plan.alarm_jump) {
            let next = disk::next_alarm(&*self.reader()?)?.unwrap_or(self.clock);
            self.clock = self.clock.max(next.min(self.clock.plus_ms(JUMP_MS_MAX)));
        }
        if self.random.percent(self.plan.clock_jump) {
            self.clock = Timestamp(self.clock.0 - self.random.between(0, 500));
        }
        let now = self.clock;
        self.record(|| format!("it is {now}"));
        Ok(())
    }

    /// The process ends, and another begins on what is on disk.
    fn crash(&mut self, how: &str) -> Result<(), String> {
        let uncertain = *self.random.pick(&[Uncertain::Appears, Uncertain::Vanishes]);
        self.record(|| format!("{how}; an uncertain commit {uncertain:?}"));
        self.crashes += 1;
        let cut_off = std::mem::take(&mut self.process.running);
        self.keep_for_later(cut_off)?;
        self.store.crash(uncertain);
        self.process = Process::boot(&self.store, self.kinds.clone(), &self.plan, self.mutation, self.clock)?;
        self.look_for_answers()?;
        self.look(|scenario, seen| scenario.after_a_crash(seen))
    }

    /// Lets everything come to its end.
    fn calm_down(&mut self) -> Result<(), String> {
        for _ in 0..CALM_ROUNDS_MAX {
            self.process.mend();
            let mut wake_at = self.settle_down()?;
            while self.ask_everything()? {
                wake_at = self.settle_down()?;
            }
            let is_over = self.operations.iter().all(Operation::is_over);
            if is_over && disk::is_at_rest(&self.store)? {
                return Ok(());
            }
            if wake_at == Timestamp::MAX {
                let open = self.operations.iter().filter(|operation| !operation.is_over());
                let open: Vec<_> = open.map(|operation| &operation.wish).collect();
                let left = disk::what_is_left(&*self.reader()?);
                return Err(format!(
                    "it never comes to an end: nothing happens any more, but somebody asked {open:?}; {left}"
                ));
            }
            self.clock = self.clock.max(wake_at);
        }
        Err(format!("it has not come to an end after {CALM_ROUNDS_MAX} waits"))
    }

    /// Lets every client ask who wants to, the new ones included. Whether any did.
    fn ask_everything(&mut self) -> Result<bool, String> {
        while self.wish()? {}
        let open: Vec<usize> = (0..self.operations.len()).filter(|n| self.operations[*n].wants_to_ask()).collect();
        open.iter().for_each(|number| self.ask(*number));
        Ok(!open.is_empty())
    }

    /// Does everything that can be done at this time. When there will be something to do again.
    fn settle_down(&mut self) -> Result<Timestamp, String> {
        for _ in 0..SETTLING_ROUNDS_MAX {
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
                self.finish_a_task()?;
                is_quiet = false;
            }
            self.look_for_answers()?;
            if is_quiet && self.commits == commits_before {
                return Ok(wake_at);
            }
        }
        Err(format!("it goes on for more than {SETTLING_ROUNDS_MAX} rounds without waiting for anything"))
    }

    fn record(&mut self, line: impl FnOnce() -> String) {
        self.history.record(line());
    }

    fn look(&self, look: impl FnOnce(&S, &Seen<'_, S::Wish>) -> Result<(), String>) -> Result<(), String> {
        let reader = self.reader()?;
        let Self { operations, weather, clock, .. } = self;
        look(&self.scenario, &Seen { operations, reader: &*reader, now: *clock, weather: *weather })
    }

    fn reader(&self) -> Result<Box<dyn Reader>, String> {
        self.store.reader().map_err(|error| error.to_string())
    }

    pub(crate) fn survived(self) -> crate::Survived {
        crate::Survived { history: self.history, commits: self.commits, crashes: self.crashes }
    }
}
