//! Times as a server writes them, and how long something took.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::screen;

/// From one time to another, or until now; nothing where a time cannot be read.
pub(crate) fn took(began: &str, ended: Option<&str>) -> String {
    let until = match ended {
        Some(ended) => milliseconds(ended),
        None => SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| u64::try_from(now.as_millis()).ok()),
    };
    let took = milliseconds(began).zip(until).map(|(began, until)| until.saturating_sub(began));
    took.map(|ms| screen::time(Duration::from_millis(ms))).unwrap_or_default()
}

/// A time without its fraction: `2026-11-15T08:30:00Z`.
pub(crate) fn to_the_second(time: &str) -> String {
    time.split_once('.').map_or_else(|| time.to_owned(), |(seconds, _)| format!("{seconds}Z"))
}

/// Of a time only its clock: `08:30:00.123`.
pub(crate) fn time_of_day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(_, clock)| clock.trim_end_matches('Z'))
}

/// Milliseconds since 1970, of a time in UTC with milliseconds, as servers write them.
fn milliseconds(time: &str) -> Option<u64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let (clock, ms) = clock.split_once('.')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hours, minutes, seconds] = numbers(clock, ':')?;
    let days = days_until(year, month, day)?;
    Some(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1_000 + ms.parse::<u64>().ok()?)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let found: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
    found?.try_into().ok()
}

/// Days from 1970-01-01 to a date.
fn days_until(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last of its year.
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month_from_march + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use steadfast_core::time::Timestamp;

    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        for ms in [0, 951_782_399_999, 951_782_400_000, 4_107_542_400_000, 1_794_700_800_123] {
            assert_eq!(milliseconds(&Timestamp(ms).rfc3339()), Some(ms));
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "soon", "2026-11-15", "2026-13-15T00:00:00.000Z", "2026-11-15T00:00.000Z"] {
            assert_eq!(milliseconds(text), None, "{text}");
            assert_eq!(took(text, None), "");
        }
        assert_eq!(took("2026-11-15T00:00:00.000Z", Some("2026-11-15T00:01:05.000Z")), "1 min 5 s");
    }
}
