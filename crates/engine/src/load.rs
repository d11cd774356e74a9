//! How the engine is loaded: what waits and runs now, and how long commits take.
//!
//! Owns the numbers, kept as atomics by whoever knows them; never decides by them. Looking at them costs the same whatever there is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The load at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Which life of an engine on its store this is.
    pub boot: u32,
    /// Tasks that executors of this process run.
    pub tasks_running: u64,
    /// Tasks that wait in memory for a place; more may wait on disk.
    pub tasks_waiting: u64,
    /// Tasks that are lent to workers outside.
    pub tasks_lent: u64,
    /// Requests that are accepted and not answered.
    pub requests_waiting: u64,
    /// How long commits took, in microseconds, their fsync included.
    pub commit_us: Spread,
    /// How many turns a commit held.
    pub commit_turns: Spread,
}

/// How values are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// For each bound, how many values were at most as large.
    pub up_to: Vec<(u64, u64)>,
    /// How many there were.
    pub count: u64,
    /// All of them together.
    pub sum: u64,
}

/// What is kept of it.
pub(crate) struct Loads {
    pub(crate) tasks_running: AtomicU64,
    pub(crate) tasks_waiting: AtomicU64,
    commit_us: Histogram<12>,
    commit_turns: Histogram<10>,
}

/// From a fast disk to one that hangs.
const COMMIT_US: [u64; 12] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000];

const COMMIT_TURNS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1_024];

impl Loads {
    pub(crate) fn new() -> Self {
        Self {
            tasks_running: AtomicU64::new(0),
            tasks_waiting: AtomicU64::new(0),
            commit_us: Histogram::new(&COMMIT_US),
            commit_turns: Histogram::new(&COMMIT_TURNS),
        }
    }

    /// A commit of so many turns took so long.
    pub(crate) fn committed(&self, turns: u64, took: Duration) {
        self.commit_turns.add(turns);
        self.commit_us.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn commit_us(&self) -> Spread {
        self.commit_us.read()
    }

    pub(crate) fn commit_turns(&self) -> Spread {
        self.commit_turns.read()
    }
}

struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    /// Values up to each bound and above the one before it.
    counts: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: &'static [u64; N]) -> Self {
        Self { bounds, counts: [const { AtomicU64::new(0) }; N], above: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    fn add(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(place).unwrap_or(&self.above).fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    fn read(&self) -> Spread {
        let mut count = 0;
        let mut up_to = Vec::with_capacity(N);
        for (bound, found) in self.bounds.iter().zip(&self.counts) {
            count += found.load(Relaxed);
            up_to.push((*bound, count));
        }
        Spread { up_to, count: count + self.above.load(Relaxed), sum: self.sum.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_every_bound_that_it_does_not_exceed() {
        let histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21] {
            histogram.add(value);
        }
        assert_eq!(histogram.read(), Spread { up_to: vec![(10, 2), (20, 4)], count: 5, sum: 62 });
    }
}
