//! Alarms: the near ones in memory, the far ones on disk.
//!
//! Owns the order in which alarms fire. For each shard there is a *boundary* (a time and an actor): every alarm up to it is in the heap, every
//! later one is only a row. The boundary moves ahead as time passes and the heap empties, so memory holds the next
//! minute at most, however many alarms there are. What is in the heap is a hint: an alarm fires only if the actor still has it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use steadfast_core::ids::{ActorId, Shard};
use steadfast_core::limits::{ALARMS_AHEAD_MAX, ALARMS_AHEAD_MS};
use steadfast_core::time::Timestamp;
use steadfast_store::StoreError;

use super::Runner;
use super::mailbox::{Entry, Waiting};
use crate::log::run_of;

/// The alarms that a runner knows of.
pub(super) struct Alarms {
    heap: BinaryHeap<Reverse<(Timestamp, ActorId)>>,
    shards: HashMap<Shard, Ahead>,
    /// When to look for those of the next minute.
    read_at: Timestamp,
    early_ms: u64,
}

/// How far a shard's alarms are in the heap.
struct Ahead {
    boundary: (Timestamp, Arc<str>),
    in_heap: usize,
    /// Whether the last page was full, so that more may be due right after the boundary.
    is_partial: bool,
}

/// Sorts after every actor id.
const AFTER_ALL_ACTORS: &str = "\u{10ffff}";

impl Alarms {
    pub(super) fn new(shards: &[Shard]) -> Self {
        let ahead = || Ahead { boundary: (Timestamp(0), "".into()), in_heap: 0, is_partial: false };
        Self {
            heap: BinaryHeap::new(),
            shards: shards.iter().map(|shard| (*shard, ahead())).collect(),
            read_at: Timestamp(0),
            early_ms: 0,
        }
    }

    /// Makes every alarm fire too early, for the test of the simulator.
    pub(super) fn fire_early(&mut self, early_ms: u64) {
        self.early_ms = early_ms;
    }

    /// Notes that an actor's alarm was set.
    pub(super) fn set(&mut self, actor: &ActorId, due: Timestamp) {
        let Some(ahead) = self.shards.get_mut(&actor.shard()) else { return };
        if (due, actor.as_str()) <= (ahead.boundary.0, &*ahead.boundary.1) {
            ahead.in_heap += 1;
            self.heap.push(Reverse((due, actor.clone())));
        }
    }

    pub(super) fn is_due(&self, due: Timestamp, now: Timestamp) -> bool {
        due <= now.plus_ms(self.early_ms)
    }

    /// When the next alarm fires, or alarms further ahead are to be read.
    pub(super) fn next_due(&self) -> Timestamp {
        self.heap.peek().map_or(self.read_at, |Reverse((due, _))| self.read_at.min(*due))
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, ActorId)> {
        let Reverse((due, _)) = self.heap.peek()?;
        if !self.is_due(*due, now) {
            return None;
        }
        let Reverse((due, actor)) = self.heap.pop()?;
        if let Some(ahead) = self.shards.get_mut(&actor.shard()) {
            ahead.in_heap = ahead.in_heap.saturating_sub(1);
            // Most of a full page has fired: the next one may be due already.
            if ahead.is_partial && ahead.in_heap < ALARMS_AHEAD_MAX / 2 {
                self.read_at = Timestamp(0);
            }
        }
        Some((due, actor))
    }
}

impl Runner {
    /// Puts alarms that are due into their actors' mailboxes.
    pub(super) fn fire_alarms(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if now >= self.alarms.read_at {
            self.read_alarms_ahead(now)?;
        }
        while let Some((due, actor)) = self.alarms.pop_due(now) {
            if !self.kinds.knows(&actor) {
                continue;
            }
            let place = self.place_of(&actor);
            let slot = &mut self.slots[place];
            let is_set = match slot.head(&*self.reader) {
                Ok(head) => head.alarm == Some(due),
                Err(error @ StoreError::Damaged(_)) => {
                    tracing::error!(run = run_of(&actor), %actor, %error, "an alarm cannot fire");
                    false
                }
                Err(error) => {
                    self.alarms.set(&actor, due);
                    return Err(error);
                }
            };
            if is_set && !slot.is_alarm_queued {
                slot.is_alarm_queued = true;
                self.enqueue(place, Entry::new(Waiting::Alarm { due }));
            }
        }
        Ok(())
    }

    /// Moves the boundaries ahead.
    fn read_alarms_ahead(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let until = now.plus_ms(ALARMS_AHEAD_MS);
        for shard in &*self.shards.clone() {
            let Some(ahead) = self.alarms.shards.get_mut(shard) else { continue };
            if !ahead.is_partial && ahead.boundary.0 >= until {
                continue;
            }
            if ahead.in_heap >= ALARMS_AHEAD_MAX / 2 {
                // Its next page comes when these have fired.
                ahead.is_partial = true;
                continue;
            }
            let from = ahead.boundary.clone();
            let rows = self.reader.alarms(*shard, (from.0, &from.1), until, ALARMS_AHEAD_MAX)?;
            ahead.is_partial = rows.len() == ALARMS_AHEAD_MAX;
            ahead.boundary = match rows.last() {
                Some(last) if ahead.is_partial => (last.due, last.actor.as_str().into()),
                Some(_) | None => (until.max(from.0), AFTER_ALL_ACTORS.into()),
            };
            ahead.in_heap += rows.len();
            self.alarms.heap.extend(rows.into_iter().map(|row| Reverse((row.due, row.actor))));
            self.add_uncommitted_alarms(*shard, &from);
        }
        self.alarms.read_at = now.plus_ms(ALARMS_AHEAD_MS / 2);
        Ok(())
    }

    /// Alarms that were beyond the old boundary when they were set, and are not on disk yet.
    fn add_uncommitted_alarms(&mut self, shard: Shard, from: &(Timestamp, Arc<str>)) {
        let dirty = self.dirty.iter().map(|(_, place)| &self.slots[*place]);
        for slot in dirty.filter(|slot| slot.id.shard() == shard) {
            let alarm = slot.head.and_then(|head| head.alarm);
            if let Some(due) = alarm.filter(|due| (*due, slot.id.as_str()) > (from.0, &*from.1)) {
                self.alarms.set(&slot.id, due);
            }
        }
    }
}
