//! The batch that is being gathered while the one before it is written.
//!
//! Owns the order of turns; never runs one, and never writes to the store. A runner adds a turn *before* anything of it can
//! be seen by another actor, so a turn that was caused by another is always in the same batch or a later one; that is all
//! that speculation needs. When a commit fails, the *epoch* moves on and whatever was gathered since is void, because it may
//! rest on what was lost.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steadfast_core::ids::{RequestId, Sequence};
use steadfast_core::limits;
use steadfast_store::StoreError;
use steadfast_store::batch::Batch;

use super::Output;
use crate::load::Loads;
use crate::metrics::Counters;
use crate::mutation::Mutation;
use crate::watch::Watchers;

/// Turns of which nothing leaves are gathered, up to so many, before they are written: a task's result that only brings its run forward
/// need not be on disk at once, and a page written once for a hundred turns costs what it costs for one.
const GATHER_TURNS: usize = 256;

/// How long they wait at most.
const GATHER_FOR: Duration = Duration::from_millis(2);

/// Shared by all runners and the committer of one engine.
pub struct Gather {
    open: Mutex<Open>,
    committer_wakes: Condvar,
    runners_wake: Condvar,
    /// The epoch and the last batch on disk in one number, so that nobody sees the one without the other.
    progress: AtomicU64,
    turns: AtomicUsize,
    bytes: AtomicUsize,
    is_unwell: AtomicBool,
    next_sequence: AtomicU64,
    epoch_begins_at: AtomicU64,
    boot: u32,
    turns_max: usize,
    pub(crate) counters: Counters,
    pub(crate) loads: Loads,
    pub(crate) watchers: Watchers,
    pub(crate) mutation: Mutation,
}

/// What is gathered so far.
#[derive(Default)]
struct Open {
    number: u64,
    batch: Batch,
    outputs: Vec<Output>,
    health: Health,
    /// For each epoch that is over, the last batch of it that is on disk. Grows by one number per failed commit.
    epoch_ends: Vec<u64>,
    committer: Committer,
    is_closed: bool,
}

/// What the committer waits for.
#[derive(Default, PartialEq, Eq)]
enum Committer {
    /// Nothing: it writes, or is about to look.
    #[default]
    Busy,
    /// A first turn.
    Idle,
    /// More turns, while nobody waits for those that there are.
    Gathering,
}

/// A batch on its way to the disk.
pub struct Batched {
    pub(super) number: u64,
    pub(super) turns: usize,
    pub(super) batch: Batch,
    pub(super) outputs: Vec<Output>,
}

/// Whether turns are acknowledged: not while the store does not take writes, and not after a fault of the engine's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Health {
    /// They are.
    #[default]
    Well,
    /// They are not, for this reason.
    Unwell(String),
}

/// A turn came too late: a commit failed since it began, so it is void.
#[derive(Debug)]
pub struct RolledBack;

/// The part of an open batch that a turn writes to.
pub(crate) struct Writing<'a> {
    pub(crate) number: u64,
    pub(crate) batch: &'a mut Batch,
    pub(crate) outputs: &'a mut Vec<Output>,
}

impl Gather {
    /// Begins an engine's life number `boot`.
    #[must_use]
    pub fn new(boot: u32, turns_max: usize) -> Self {
        Self {
            open: Mutex::new(Open { number: 1, ..Open::default() }),
            committer_wakes: Condvar::new(),
            runners_wake: Condvar::new(),
            progress: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            is_unwell: AtomicBool::new(false),
            next_sequence: AtomicU64::new(Sequence::first_of(boot).0 + 1),
            epoch_begins_at: AtomicU64::new(Sequence::first_of(boot).0),
            boot,
            turns_max: turns_max.max(1),
            counters: Counters::default(),
            loads: Loads::new(),
            watchers: Watchers::default(),
            mutation: Mutation::None,
        }
    }

    /// Makes the engine do something wrong, in a build with the feature `mutations`.
    #[must_use]
    pub fn with_mutation(self, mutation: Mutation) -> Self {
        Self { mutation, ..self }
    }

    /// The next number in the order of arrival.
    pub(crate) fn next_sequence(&self) -> Sequence {
        let next = Sequence(self.next_sequence.fetch_add(1, Ordering::Relaxed));
        assert_eq!(next.boot(), self.boot, "this process has used up its numbers; a restart gives it new ones");
        next
    }

    /// An id for a caller that gave none. No other life of the engine gives it: an actor may keep it for a later answer.
    pub fn anonymous_request(&self) -> RequestId {
        RequestId::anonymous(self.next_sequence().0)
    }

    /// Which life of an engine on its store this is.
    pub(crate) fn boot(&self) -> u32 {
        self.boot
    }

    /// Which attempt a task dispatched as `sequence` is on: it may have been started once in every boot since.
    pub(crate) fn attempt_of(&self, sequence: Sequence) -> u32 {
        1 + self.boot.saturating_sub(sequence.boot())
    }

    /// Every message with this number or a later one was sent in this epoch.
    pub(crate) fn epoch_begins_at(&self) -> Sequence {
        Sequence(self.epoch_begins_at.load(Ordering::Acquire))
    }

    /// Adds a turn, or something of the engine's own, to the open batch. `bytes` is about what it writes.
    pub(crate) fn append<R>(
        &self,
        epoch: u64,
        bytes: usize,
        write: impl FnOnce(Writing<'_>) -> R,
    ) -> Result<R, RolledBack> {
        let mut open = self.lock();
        // Checked under the lock that a rollback takes: a turn is either in a batch that is called off, or refused here.
        if self.epoch() != epoch || open.is_closed {
            return Err(RolledBack);
        }
        let Open { number, batch, outputs, .. } = &mut *open;
        let result = write(Writing { number: *number, batch, outputs });
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.mutation.is(Mutation::GateOpen) {
            for output in open.outputs.drain(..) {
                output.release(&mut |_| {});
            }
        }
        let wakes = match open.committer {
            Committer::Busy => false,
            Committer::Idle => true,
            Committer::Gathering => self.is_worth_a_commit(&open),
        };
        if wakes {
            open.committer = Committer::Busy;
            self.committer_wakes.notify_one();
        }
        Ok(result)
    }

    /// Whether another turn may be added now.
    pub(crate) fn has_room(&self) -> bool {
        self.turns.load(Ordering::Relaxed) < self.turns_max
            && self.bytes.load(Ordering::Relaxed) < limits::BATCH_BYTES_MAX
            && self.is_well()
    }

    /// Waits until there may be room, or `timeout` has passed.
    pub(crate) fn wait_for_room(&self, timeout: Duration) {
        let open = self.lock();
        if !self.has_room() {
            drop(self.runners_wake.wait_timeout(open, timeout));
        }
    }

    /// Waits until something is gathered, and for a moment longer while nobody waits for the disk. `false` when the engine has closed and nothing
    /// is left.
    pub(crate) fn wait_for_turns(&self) -> bool {
        let mut open = self.lock();
        while open.is_empty() && !open.is_closed {
            open.committer = Committer::Idle;
            open = self.committer_wakes.wait(open).expect("a thread panicked while it added a turn to the batch");
        }
        let until = Instant::now() + GATHER_FOR;
        while !open.is_closed && !self.is_worth_a_commit(&open) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            open.committer = Committer::Gathering;
            let waited = self.committer_wakes.wait_timeout(open, left);
            open = waited.expect("a thread panicked while it added a turn to the batch").0;
        }
        open.committer = Committer::Busy;
        !open.is_empty()
    }

    /// Whether the open batch is to be written now: somebody waits for it, or it is large enough to be worth an fsync.
    fn is_worth_a_commit(&self, open: &Open) -> bool {
        !open.outputs.is_empty() || self.turns.load(Ordering::Relaxed) >= GATHER_TURNS || !self.has_room()
    }

    /// Waits until the engine closes, at most for `timeout`. Whether it has.
    pub(crate) fn wait_for_close(&self, timeout: Duration) -> bool {
        let open = self.lock();
        if open.is_closed {
            return true;
        }
        let waited = self.committer_wakes.wait_timeout_while(open, timeout, |open| !open.is_closed);
        waited.is_ok_and(|(open, _)| open.is_closed)
    }

    /// Ends the gathering: no turn is added from now on.
    pub(crate) fn close(&self) {
        self.lock_whatever_happened().is_closed = true;
        self.committer_wakes.notify_all();
        self.runners_wake.notify_all();
    }

    /// Ends everything, because a thread of the engine panicked: what is gathered is dropped, and callers hear why.
    pub(crate) fn fail(&self, reason: &str) {
        let mut open = self.lock_whatever_happened();
        open.is_closed = true;
        open.health = Health::Unwell(reason.to_owned());
        self.is_unwell.store(true, Ordering::Release);
        open.batch = Batch::default();
        open.outputs.clear();
        self.committer_wakes.notify_all();
        self.runners_wake.notify_all();
    }

    /// Takes everything gathered, to be written by [`super::commit`]. What comes from now on is the next batch.
    pub fn take(&self) -> Option<Batched> {
        let mut open = self.lock();
        if open.is_empty() {
            return None;
        }
        let number = open.number;
        open.number += 1;
        let batch = std::mem::take(&mut open.batch);
        let outputs = std::mem::take(&mut open.outputs);
        let turns = self.turns.swap(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.runners_wake.notify_all();
        Some(Batched { number, turns, batch, outputs })
    }

    pub(super) fn committed(&self, batched: &Batched) {
        Counters::add(&self.counters.commits, 1);
        Counters::add(&self.counters.turns_committed, batched.turns as u64);
        let epoch = self.epoch();
        self.progress.store(Progress { epoch, committed: batched.number }.packed(), Ordering::Release);
    }

    /// Voids everything gathered since the batch that failed, and returns its outputs.
    pub(super) fn roll_back(&self, error: &StoreError) -> Vec<Output> {
        let mut open = self.lock();
        Counters::add(&self.counters.commits_failed, 1);
        // A turn that is running now may still take a number beyond this, but it cannot be added any more.
        self.epoch_begins_at.store(self.next_sequence.load(Ordering::Relaxed), Ordering::Release);
        let Progress { epoch, committed } = self.progress();
        open.epoch_ends.push(committed);
        self.progress.store(Progress { epoch: epoch + 1, committed }.packed(), Ordering::Release);
        open.number += 1;
        open.batch = Batch::default();
        self.turns.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        open.health = Health::Unwell(error.to_string());
        self.is_unwell.store(true, Ordering::Release);
        std::mem::take(&mut open.outputs)
    }

    /// The store takes writes again.
    pub fn recovered(&self) {
        let mut open = self.lock();
        open.health = Health::Well;
        self.is_unwell.store(false, Ordering::Release);
        self.runners_wake.notify_all();
    }

    /// Whether the store takes writes.
    #[must_use]
    pub fn health(&self) -> Health {
        self.lock_whatever_happened().health.clone()
    }

    /// Why the store does not take writes, when it does not.
    pub(crate) fn health_when_unwell(&self) -> Option<String> {
        // Asked for every request: only a store that is not well costs a lock.
        if self.is_well() {
            return None;
        }
        match self.health() {
            Health::Well => None,
            Health::Unwell(reason) => Some(reason),
        }
    }

    pub(crate) fn is_well(&self) -> bool {
        !self.is_unwell.load(Ordering::Acquire)
    }

    /// How many commits have failed: what was gathered under another number is void.
    pub(crate) fn epoch(&self) -> u64 {
        self.progress().epoch
    }

    /// The last batch on disk. Every earlier one of the same epoch is on disk too.
    pub(crate) fn progress(&self) -> Progress {
        Progress::unpacked(self.progress.load(Ordering::Acquire))
    }

    /// The last batch that reached the disk before an epoch ended. Later ones are lost, whatever was written since.
    pub(crate) fn end_of_epoch(&self, epoch: u64) -> u64 {
        let ends = &self.lock().epoch_ends;
        usize::try_from(epoch).ok().and_then(|epoch| ends.get(epoch)).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // A panic under the lock may have left half a turn in the batch. Writing it would break every promise; so all threads
        // end here, and what is on disk is whole.
        self.open.lock().expect("a thread panicked while it added a turn to the batch")
    }

    /// For those who neither read the batch nor write to it.
    fn lock_whatever_happened(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far the disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) epoch: u64,
    pub(crate) committed: u64,
}

impl Progress {
    /// Room for 55 years of a commit every 0.1 ms, and for a million that fail.
    const BATCH_BITS: u32 = 44;

    fn packed(self) -> u64 {
        self.epoch << Self::BATCH_BITS | self.committed
    }

    fn unpacked(packed: u64) -> Self {
        Self { epoch: packed >> Self::BATCH_BITS, committed: packed & ((1 << Self::BATCH_BITS) - 1) }
    }
}

impl Open {
    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.outputs.is_empty()
    }
}
