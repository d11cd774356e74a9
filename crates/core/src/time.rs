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

    /// As RFC 3339 writes it, in UTC, with milliseconds.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = date_of(days);
        let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
        format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{:03}Z", ms / 1_000 % 60, ms % 1_000)
    }

    /// Milliseconds from this point until `later`; zero when `later` is not later.
    #[must_use]
    pub fn ms_until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0)
    }
}

/// The date of a day, counted from 1970-01-01, in the Gregorian calendar.
fn date_of(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last of its year. 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
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
    fn it_is_written_as_rfc_3339_says() {
        let written = |ms| Timestamp(ms).rfc3339();
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(written(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(written(1_794_700_800_123), "2026-11-15T00:00:00.123Z");
    }

    #[test]
    fn a_past_point_is_zero_milliseconds_away() {
        assert_eq!(Timestamp(10).ms_until(Timestamp(4)), 0);
    }
}
