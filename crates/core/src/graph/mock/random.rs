//! Chance that is none: numbers from a seed, a key and an attempt.

use serde_json::Value;

use crate::ids::stable_hash;

/// A stream of numbers that is the same whenever it is made from the same things.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn of(seed: Option<&Value>, key: &str, attempt: u32) -> Self {
        let seed = seed.map_or(0, |seed| stable_hash(seed.to_string().as_bytes()));
        let begin = seed.rotate_left(32) ^ stable_hash(key.as_bytes());
        Self(begin ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number, by SplitMix64: FNV alone leaves keys that differ in one digit close together.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `max`, both included.
    pub(super) fn up_to(&mut self, max: u64) -> u64 {
        match max.checked_add(1) {
            Some(end) => self.next() % end,
            None => self.next(),
        }
    }

    /// From `min` to `max`, both included; `min` when there is nothing between them.
    pub(super) fn between(&mut self, min: i64, max: i64) -> i64 {
        if max <= min { min } else { min.wrapping_add(self.up_to(max.abs_diff(min)) as i64) }
    }

    /// From 0 up to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of them, if there are any.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let last = of.len().checked_sub(1)?;
        of.get(self.up_to(last as u64) as usize)
    }
}
