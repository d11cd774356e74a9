//! Points in time, as plain milliseconds.
//!
//! Owns the arithmetic; never asks a clock. The engine reads the clock once per turn and passes it in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The last point in time that every store can hold (a signed 64-bit column).
    pub const MAX: Self = Self(i64::MAX as u64);

    /// This point plus `delay_ms`, at most [`Timestamp::MAX`].
    #[must_use]
    pub fn plus_ms(self, delay_ms: u64) -> Self {
        Self(self.0.saturating_add(delay_ms)).min(Self::MAX)
    }

    /// Milliseconds from this point until `later`; zero when `later` is not later.
    #[must_use]
    pub fn ms_until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stops_at_what_a_store_can_hold() {
        assert_eq!(Timestamp(u64::MAX - 1).plus_ms(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn a_past_point_is_zero_milliseconds_away() {
        assert_eq!(Timestamp(10).ms_until(Timestamp(4)), 0);
    }
}
