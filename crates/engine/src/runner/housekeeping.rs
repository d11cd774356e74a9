//! What is done now and then between turns, in small portions.
//!
//! Owns the schedule: idle actors leave memory, remembered requests are forgotten when their time is over.

use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_store::StoreError;
use steadfast_store::rows::RequestRow;

use super::Runner;

/// How long to wait before reading from a store that failed to read.
pub(super) const STORE_RETRY_MS: u64 = 100;

/// How often idle actors are looked at.
const SWEEP_EVERY_MS: u64 = 100;

/// In how many sweeps the hand goes round once: an actor leaves after 10 to 20 seconds without a turn.
const SWEEPS_PER_ROUND: usize = 100;

/// How often remembered requests are looked through.
const FORGET_EVERY_MS: u64 = 60_000;

/// The longest sleep: a clock that jumps is noticed after this long.
const SLEEP_MAX_MS: u64 = 1_000;

#[derive(Default)]
pub(super) struct Schedule {
    /// Whether memory holds everything that waits on disk.
    pub(super) is_recovered: bool,
    sweep_at: Timestamp,
    forget_at: Timestamp,
    has_residents: bool,
}

impl Schedule {
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        // Further ahead than it is ever set: the clock was set back.
        now >= self.sweep_at || self.sweep_at > now.plus_ms(SWEEP_EVERY_MS)
    }

    pub(super) fn next_at(&self, now: Timestamp) -> Timestamp {
        let longest = now.plus_ms(SLEEP_MAX_MS);
        if self.has_residents { self.sweep_at.min(longest) } else { longest }
    }
}

impl Runner {
    pub(super) fn keep_house(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.housekeeping.sweep_at = now.plus_ms(SWEEP_EVERY_MS);
        self.evict_idle(self.residency.count() / SWEEPS_PER_ROUND + 1);
        self.housekeeping.has_residents = self.residency.count() > 0;
        if now >= self.housekeeping.forget_at {
            let is_done = self.forget_requests(now)?;
            self.housekeeping.forget_at =
                if is_done { now.plus_ms(FORGET_EVERY_MS) } else { now.plus_ms(SWEEP_EVERY_MS) };
        }
        Ok(())
    }

    /// Forgets a page of requests per shard. `false` when there are more.
    fn forget_requests(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        let mut is_done = true;
        for shard in &*self.shards {
            let expired = self.reader.expired_requests(*shard, now, limits::WAITING_ROWS_PER_READ)?;
            if expired.is_empty() {
                continue;
            }
            is_done &= expired.len() < limits::WAITING_ROWS_PER_READ;
            // One that a turn has just answered is remembered anew by a batch that is not on disk yet.
            let is_forgotten = |row: &RequestRow| {
                let place = self.slots.find(&row.actor);
                place.is_none_or(|place| self.slots[place].uncommitted_request(&row.request).is_none())
            };
            let expired: Vec<RequestRow> = expired.into_iter().filter(is_forgotten).collect();
            // A rollback meanwhile loses nothing: they are found again.
            drop(self.gather.append(self.epoch, 0, |writing| {
                for row in &expired {
                    writing.batch.of(&row.actor).forget_request(&row.request);
                }
            }));
        }
        Ok(is_done)
    }
}
