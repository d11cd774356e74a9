//! Which actors stay in memory.
//!
//! Owns the bound on memory and the choice of who leaves: a clock hand goes round over all slots; who had no turn since it last
//! came by, and has nothing that is not on disk, leaves. O(1) per turn, whatever the number of actors.

use std::collections::VecDeque;

use steadfast_core::ids::ActorId;

use super::Runner;
use super::slot::{Place, Slot};
use crate::metrics::Counters;

/// What an idle slot costs: itself and the spare room of the table it is in, its id's text, the boxed actor, and its
/// entries in the map and the ring.
const SLOT_BYTES: usize = size_of::<Slot>() * 3 / 2 + 240;

/// How many slots the hand looks at for one turn, so that no turn waits long for the others' memory.
const LOOKS_PER_TURN: usize = 4;

#[derive(Default)]
pub(super) struct Residency {
    ring: VecDeque<Place>,
    bytes: usize,
}

impl Residency {
    pub(super) fn enter(&mut self, place: Place) {
        self.ring.push_back(place);
        self.bytes += SLOT_BYTES;
    }

    /// An actor's own memory is `to` now.
    pub(super) fn resize(&mut self, current: &mut usize, to: usize) {
        self.bytes = self.bytes + to - *current;
        *current = to;
    }

    pub(super) fn count(&self) -> usize {
        self.ring.len()
    }
}

impl Runner {
    /// Lets idle actors go while they take more memory than they may.
    pub(super) fn evict_over_bound(&mut self) {
        let bytes_max = self.settings.per_runner(self.settings.resident_bytes_max);
        for _ in 0..LOOKS_PER_TURN {
            if self.residency.bytes <= bytes_max {
                return;
            }
            self.look_at_next();
        }
    }

    /// Lets the hand pass over `count` slots.
    pub(super) fn evict_idle(&mut self, count: usize) {
        for _ in 0..count.min(self.residency.ring.len()) {
            self.look_at_next();
        }
    }

    fn look_at_next(&mut self) {
        let Some(place) = self.residency.ring.pop_front() else { return };
        let slot = &mut self.slots[place];
        slot.forget_up_to(self.committed);
        if !slot.is_recent && slot.is_droppable() {
            self.residency.bytes -= SLOT_BYTES + slot.bytes;
            self.slots.remove(place);
            Counters::add(&self.gather.counters.evictions, 1);
        } else {
            slot.is_recent = false;
            self.residency.ring.push_back(place);
        }
    }

    /// Drops an actor from memory between two turns, whatever it holds; its writes that are not on disk stay.
    pub fn evict(&mut self, actor: &ActorId) {
        if let Some(place) = self.slots.find(actor) {
            let slot = &mut self.slots[place];
            slot.actor = None;
            self.residency.resize(&mut slot.bytes, 0);
        }
    }

    /// The actors in memory, in order of their names.
    #[must_use]
    pub fn residents(&self) -> Vec<ActorId> {
        self.slots.actors()
    }
}
