//! Retry arithmetic: whether there is another attempt, and when.
//!
//! Owns the one meaning of `attempts_max` (all attempts, the first included) and the shape of the delays. Never
//! draws a random number: jitter comes from the id of what is retried, so that a replay gives the same delay.

use serde::{Deserialize, Serialize};

use crate::ids::stable_hash;
use crate::limits;
use crate::time::Timestamp;

/// How often to try, and how long to wait in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// All attempts, the first included; at least 1.
    pub attempts_max: u32,
    /// Delay between the first and the second attempt.
    pub delay_first_ms: u64,
    /// How the delay grows.
    pub backoff: Backoff,
    /// No delay is longer, jitter included.
    pub delay_max_ms: u64,
    /// The part of each delay that is spread out, from 0 (none) to 1 (from nothing up to twice the delay).
    pub jitter: f64,
}

/// How delays grow from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the first delay.
    Constant,
    /// The first delay times 1, 2, 3, …
    Linear,
    /// The first delay times 1, `factor`, `factor`², …
    Exponential {
        /// At least 1.
        factor: f64,
    },
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Try again, not before this time.
    RetryAt(Timestamp),
    /// All attempts are used up.
    GiveUp,
}

impl Retry {
    /// The policy for messages whose turn fails.
    #[must_use]
    pub fn of_messages() -> Self {
        Self {
            attempts_max: limits::MESSAGE_ATTEMPTS_MAX,
            delay_first_ms: limits::MESSAGE_RETRY_FIRST_MS,
            backoff: Backoff::Exponential { factor: 2.0 },
            delay_max_ms: limits::MESSAGE_RETRY_MAX_MS,
            jitter: 0.0,
        }
    }

    /// Decides after `attempt` (1 for the first) of `id` failed at `now`.
    #[must_use]
    pub fn after_failure(&self, id: &str, attempt: u32, now: Timestamp) -> AfterFailure {
        if attempt >= self.attempts_max {
            AfterFailure::GiveUp
        } else {
            AfterFailure::RetryAt(now.plus_ms(self.delay_ms(id, attempt)))
        }
    }

    fn delay_ms(&self, id: &str, attempt: u32) -> u64 {
        let first = self.delay_first_ms as f64;
        let steps = attempt.saturating_sub(1);
        let plain = match self.backoff {
            Backoff::Constant => first,
            Backoff::Linear => first * f64::from(attempt.max(1)),
            Backoff::Exponential { factor } => first * factor.max(1.0).powi(steps.min(i32::MAX as u32) as i32),
        };
        let spread = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * unit_interval(id, attempt) - 1.0);
        // `as` saturates: an infinite delay becomes the longest one, and NaN (0 times infinity) none.
        ((plain * spread) as u64).min(self.delay_max_ms)
    }
}

/// A number from 0 up to 1 that depends on nothing but the id and the attempt.
fn unit_interval(id: &str, attempt: u32) -> f64 {
    let mut mixed = stable_hash(id.as_bytes()) ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finaliser of SplitMix64: FNV alone leaves ids that differ in one digit close together.
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retry(attempts_max: u32, backoff: Backoff) -> Retry {
        Retry { attempts_max, delay_first_ms: 100, backoff, delay_max_ms: 1_000, jitter: 0.0 }
    }

    /// The delays after each failure until giving up.
    fn delays(retry: &Retry) -> Vec<u64> {
        (1..)
            .map_while(|attempt| match retry.after_failure("a", attempt, Timestamp(0)) {
                AfterFailure::RetryAt(at) => Some(at.0),
                AfterFailure::GiveUp => None,
            })
            .collect()
    }

    #[test]
    fn attempts_max_counts_the_first_attempt() {
        assert_eq!(delays(&retry(1, Backoff::Constant)), [] as [u64; 0]);
        assert_eq!(delays(&retry(3, Backoff::Constant)), [100, 100]);
    }

    #[test]
    fn delays_grow_as_the_backoff_says_up_to_the_longest() {
        assert_eq!(delays(&retry(5, Backoff::Linear)), [100, 200, 300, 400]);
        assert_eq!(delays(&retry(7, Backoff::Exponential { factor: 2.0 })), [100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn jitter_spreads_different_ids_and_repeats_for_the_same() {
        let jittered = Retry { jitter: 0.5, ..retry(2, Backoff::Constant) };
        let due = |id: &str| jittered.after_failure(id, 1, Timestamp(0));
        assert_eq!(due("task-1"), due("task-1"));
        assert_ne!(due("task-1"), due("task-2"));
    }

    proptest! {
        #[test]
        fn no_delay_leaves_its_bounds(
            attempts_max in 1..u32::MAX, attempt in 0..u32::MAX, first in any::<u64>(), longest in any::<u64>(),
            factor in any::<f64>(), jitter in any::<f64>(), now in any::<u32>(),
        ) {
            let policy = Retry {
                attempts_max, delay_first_ms: first, backoff: Backoff::Exponential { factor },
                delay_max_ms: longest, jitter,
            };
            let now = Timestamp(u64::from(now));
            match policy.after_failure("id", attempt, now) {
                AfterFailure::GiveUp => prop_assert!(attempt >= attempts_max),
                AfterFailure::RetryAt(at) => prop_assert!(now <= at && at <= now.plus_ms(longest)),
            }
        }
    }
}
