//! Which faults a simulation has.
//!
//! Owns the chances, derived from the seed: some seeds crash much, some deliver everything twice, some evict after every turn.

use crate::random::Random;

/// Chances in percent, and the one crash that is planned.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Runners.
    pub runners: usize,
    /// How many requests clients of the small actors make.
    pub operations: usize,
    /// How many things happen in the storm, at most.
    pub actions: usize,
    /// How many tasks run at once.
    pub tasks_running: usize,
    /// Of a crash between any two actions, per thousand.
    pub crash_per_mille: u64,
    /// That a commit is cut off by a crash before it, after it, or while its outputs go.
    pub commit_crash: u64,
    /// That a commit fails.
    pub commit_fails: u64,
    /// That a request or a task's result is delivered twice.
    pub twice: u64,
    /// That a task's result comes again, later, maybe in another life of the process.
    pub late: u64,
    /// That an actor is dropped from memory after a turn.
    pub evict: u64,
    /// That the clock jumps.
    pub clock_jump: u64,
    /// That the clock jumps to the next alarm.
    pub alarm_jump: u64,
    /// A crash at this commit, and nowhere else.
    pub crash_at: Option<(u64, CrashPoint)>,
}

/// Where in a commit the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Nothing of the batch is on disk.
    BeforeCommit,
    /// All of it is; nothing of it has left.
    AfterCommit,
    /// All of it is; the first half of what leaves has left.
    DuringRelease,
}

/// Actions of the storm for each operation of the small actors.
const ACTIONS_PER_OPERATION: usize = 40;

impl Plan {
    /// The faults of a seed, for the small actors.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x51ee_d000);
        let runners = random.between(1, 3) as usize;
        let operations = random.between(10, 50) as usize;
        let mixed = Self {
            runners,
            operations,
            actions: operations * ACTIONS_PER_OPERATION,
            tasks_running: 2,
            crash_per_mille: random.between(0, 6),
            commit_crash: random.between(0, 8),
            commit_fails: random.between(0, 8),
            twice: random.between(0, 40),
            late: random.between(0, 30),
            evict: random.between(0, 50),
            clock_jump: random.between(0, 5),
            alarm_jump: 0,
            crash_at: None,
        };
        match seed % 5 {
            0 => Self { twice: 100, ..mixed },
            1 => Self { evict: 100, ..mixed },
            2 => Self { commit_crash: 25, ..mixed },
            3 => Self { commit_fails: 25, ..mixed },
            _ => mixed,
        }
    }

    /// No fault but one crash.
    #[must_use]
    pub fn one_crash(commit: u64, point: CrashPoint) -> Self {
        Self { crash_at: Some((commit, point)), ..Self::without_faults() }
    }

    /// No fault at all.
    #[must_use]
    pub fn without_faults() -> Self {
        Self {
            runners: 2,
            operations: 40,
            actions: 40 * ACTIONS_PER_OPERATION,
            tasks_running: 2,
            crash_per_mille: 0,
            commit_crash: 0,
            commit_fails: 0,
            twice: 0,
            late: 0,
            evict: 0,
            clock_jump: 0,
            alarm_jump: 0,
            crash_at: None,
        }
    }

    /// The faults of a seed, for workflows.
    #[must_use]
    pub fn of_workflow(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x06ea_f000);
        let actions = random.between(200, 1_500) as usize;
        let tasks_running = random.between(1, 8) as usize;
        let alarm_jump = random.between(0, 30);
        // A run has fewer commits than a world of small actors, so that each must be more dangerous.
        let crash_per_mille = random.between(0, 25);
        let of_seed = Self::of_seed(seed);
        let commit_crash = of_seed.commit_crash + random.between(0, 20);
        Self { actions, tasks_running, alarm_jump, crash_per_mille, commit_crash, ..of_seed }
    }

    /// No storm at all: everything happens as soon as it can, and nothing goes wrong.
    #[must_use]
    pub fn still() -> Self {
        Self { actions: 0, tasks_running: 8, ..Self::without_faults() }
    }

    /// The same, but every actor is dropped from memory after every turn.
    #[must_use]
    pub fn always_evicting(self) -> Self {
        Self { evict: 100, ..self }
    }

    /// The same, but nothing goes wrong any more.
    #[must_use]
    pub fn calm(&self) -> Self {
        Self {
            runners: self.runners,
            operations: self.operations,
            actions: self.actions,
            tasks_running: self.tasks_running,
            // What is planned for a commit comes whenever that commit comes, and eviction is no fault.
            crash_at: self.crash_at,
            evict: if self.evict == 100 { 100 } else { 0 },
            ..Self::without_faults()
        }
    }
}
