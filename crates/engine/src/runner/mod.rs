//! Running actors: a runner owns the actors of its shards and gives them their turns, one at a time.
//!
//! Owns everything about actors in memory: their mailboxes, uncommitted writes, alarms, retries and waiting callers. It is a
//! plain state machine: [`Runner::deliver`] puts something in, [`Runner::step`] runs one turn. It has no thread and no clock of its own,
//! so that the simulator can run it step by step. Never waits, never writes to the store: turns go to the
//! [`Gather`]. Start reading at [`Runner::step`].

mod alarms;
mod delivery;
mod failure;
mod housekeeping;
mod letters;
mod mailbox;
mod recovery;
mod removal;
mod requests;
mod residency;
mod slot;
mod turn;

pub use delivery::{Delivery, RemoteMessage, TaskOutcome, Told};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::time::Timestamp;
use steadfast_store::{Reader, StoreError};

use crate::commit::{Gather, Progress, Waiter};
use crate::kinds::Kinds;
use crate::settings::Settings;
use alarms::Alarms;
use mailbox::Entry;
use requests::Waiters;
use residency::Residency;
use slot::{Place, Slots};

/// Runs the turns of the actors in its shards.
pub struct Runner {
    gather: Arc<Gather>,
    kinds: Arc<Kinds>,
    settings: Settings,
    reader: Box<dyn Reader>,
    shards: Arc<[Shard]>,
    slots: Slots,
    /// Actors with something in their mailbox, each once.
    ready: VecDeque<Place>,
    alarms: Alarms,
    retries: failure::Retries,
    waiters: Waiters,
    residency: Residency,
    /// Actors with uncommitted writes, by the batch that holds them.
    dirty: VecDeque<(u64, Place)>,
    /// Task results whose turn is not on disk yet, by batch: given again when the batch is lost.
    unconfirmed: VecDeque<(u64, ActorId, TaskOutcome)>,
    /// Actors whose next message is on disk but not committed yet.
    awaiting_commit: Vec<(u64, Place)>,
    /// Dead letters that are gone, by the batch in which they go.
    taken_letters: BTreeMap<Sequence, u64>,
    /// Callers who wait until an actor is gone.
    leave_taking: HashMap<ActorId, Vec<Waiter>>,
    /// Results to be given again once memory holds what is on disk.
    carried: Vec<(ActorId, TaskOutcome)>,
    /// What came while memory did not hold what is on disk.
    held: Vec<Delivery>,
    outbox: Vec<RemoteMessage>,
    mailbox_bytes: usize,
    committed: u64,
    epoch: u64,
    housekeeping: housekeeping::Schedule,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A turn ran, or something else was done; there may be more.
    Ran,
    /// There is nothing to do before this time.
    Idle(Timestamp),
    /// The committer must make room first, or the store be well again.
    Blocked,
}

impl Runner {
    /// A runner for `shards`, with the work that the store holds for them.
    pub fn start(
        gather: Arc<Gather>,
        kinds: Arc<Kinds>,
        settings: &Settings,
        reader: Box<dyn Reader>,
        shards: Vec<Shard>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut runner = Self {
            epoch: gather.epoch(),
            gather,
            kinds,
            settings: settings.clone(),
            reader,
            slots: Slots::default(),
            ready: VecDeque::new(),
            alarms: Alarms::new(&shards),
            shards: shards.into(),
            retries: failure::Retries::default(),
            waiters: Waiters::default(),
            residency: Residency::default(),
            dirty: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            awaiting_commit: Vec::new(),
            taken_letters: BTreeMap::new(),
            leave_taking: HashMap::new(),
            carried: Vec::new(),
            held: Vec::new(),
            outbox: Vec::new(),
            mailbox_bytes: 0,
            committed: 0,
            housekeeping: housekeeping::Schedule::default(),
        };
        runner.recover(now)?;
        Ok(runner)
    }

    /// Does the next thing there is to do: at most one turn.
    pub fn step(&mut self, now: Timestamp) -> Step {
        if self.gather.epoch() != self.epoch {
            self.roll_back();
        }
        if !self.gather.has_room() {
            return Step::Blocked;
        }
        match self.try_step(now) {
            Ok(step) => step,
            Err(error) => {
                // Nothing was taken from a mailbox for good: what could not be read is tried again.
                tracing::error!(%error, "the store cannot be read");
                Step::Idle(now.plus_ms(housekeeping::STORE_RETRY_MS))
            }
        }
    }

    fn try_step(&mut self, now: Timestamp) -> Result<Step, StoreError> {
        if !self.housekeeping.is_recovered {
            self.recover(now)?;
        }
        self.observe_commits();
        self.fire_alarms(now)?;
        self.release_retries(now);
        if self.housekeeping.is_due(now) {
            self.keep_house(now)?;
        }
        if let Some(place) = self.ready.pop_front() {
            self.take_turn(place, now)?;
            self.evict_over_bound();
            return Ok(Step::Ran);
        }
        // Nobody says when a commit ends, so who waits for one looks again soon.
        let soon = (!self.awaiting_commit.is_empty()).then(|| now.plus_ms(1));
        Ok(Step::Idle(soon.unwrap_or_else(|| self.next_wake(now))))
    }

    /// Messages for actors of other runners, in the order in which they were sent.
    pub fn take_outbox(&mut self) -> Vec<RemoteMessage> {
        std::mem::take(&mut self.outbox)
    }

    /// Puts `entry` behind everything that the actor has to do.
    fn enqueue(&mut self, place: Place, entry: Entry) {
        self.mailbox_bytes += entry.bytes();
        self.slots[place].mailbox.push_back(entry);
        self.make_ready(place);
    }

    /// The place of `actor` in memory, which it enters if it is not there.
    fn place_of(&mut self, actor: &ActorId) -> Place {
        let (place, is_new) = self.slots.find_or_enter(actor);
        if is_new {
            self.residency.enter(place);
        }
        place
    }

    /// Drops from memory what is on disk by now.
    fn observe_commits(&mut self) {
        let Progress { epoch, committed } = self.gather.progress();
        // Of another epoch, the number says nothing about batches of this one.
        if committed == self.committed || epoch != self.epoch {
            return;
        }
        self.committed = committed;
        while let Some((_, place)) = self.dirty.pop_front_if(|(batch, _)| *batch <= committed) {
            self.slots[place].forget_up_to(committed);
        }
        while self.unconfirmed.pop_front_if(|(batch, ..)| *batch <= committed).is_some() {}
        self.taken_letters.retain(|_, batch| *batch > committed);
        let waiting = std::mem::take(&mut self.awaiting_commit);
        for (batch, place) in waiting {
            if batch <= committed {
                self.make_ready(place);
            } else {
                self.awaiting_commit.push((batch, place));
            }
        }
    }

    /// Lines the actor up for a turn, if it has anything to do and is not in line already.
    fn make_ready(&mut self, place: Place) {
        let slot = &mut self.slots[place];
        if !slot.is_ready && !slot.mailbox.is_empty() {
            slot.is_ready = true;
            self.ready.push_back(place);
        }
    }

    fn next_wake(&self, now: Timestamp) -> Timestamp {
        let due = self.alarms.next_due().min(self.housekeeping.next_at(now));
        self.retries.next_due().map_or(due, |retry| retry.min(due))
    }
}
