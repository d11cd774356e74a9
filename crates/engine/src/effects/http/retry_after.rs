//! `Retry-After`: when a server wants to be asked again.
//!
//! Owns both of its forms, seconds and a date. Of dates only the one form that servers must send is read.

use steadfast_core::limits::DURATION_MS_MAX;
use steadfast_core::time::Timestamp;

/// How long to wait, from `now`; `None` for what cannot be read. A date that is past is no wait.
pub(super) fn retry_after_ms(value: &str, now: Timestamp) -> Option<u64> {
    let value = value.trim();
    let ms = match value.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1_000),
        Err(_) => now.ms_until(Timestamp(date_ms(value)?)),
    };
    Some(ms.min(DURATION_MS_MAX))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, in milliseconds since 1970.
fn date_ms(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_weekday, rest) = text.split_once(", ")?;
    let mut parts = rest.strip_suffix(" GMT")?.split([' ', ':']);
    let mut number = || parts.next()?.parse::<u64>().ok();
    let day = number()?;
    let month = parts.next().and_then(|name| MONTHS.iter().position(|month| *month == name))? as u64 + 1;
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (year, hours, minutes, seconds) = (number()?, number()?, number()?, number()?);
    let is_date = (1..=31).contains(&day) && (1970..10_000).contains(&year) && hours < 24 && minutes < 60;
    if !is_date || seconds > 60 || parts.next().is_some() {
        return None;
    }
    Some((((days_since_1970(year, month, day) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000)
}

/// Counted in years that begin in March, so that the odd day is the last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months = (month + 9) % 12;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (months * 153 + 2) / 5 + day - 1;
    days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, now: u64, expected: Option<u64>) {
        assert_eq!(retry_after_ms(value, Timestamp(now)), expected, "{value}");
    }

    #[test]
    fn seconds_and_dates_are_read() {
        check("120", 0, Some(120_000));
        check("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000 - 5_000, Some(5_000));
        check("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800_000 - 1, Some(1));
        check("Thu, 01 Jan 1970 00:00:00 GMT", 10, Some(0));
    }

    #[test]
    fn what_cannot_be_read_is_no_wait_at_all() {
        for value in [
            "",
            "soon",
            "-1",
            "1.5",
            "Sun, 06 Nov 1994",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
        ] {
            check(value, 0, None);
        }
        check("99999999999999999999", 0, None);
        check("9999999999999999999", 0, Some(DURATION_MS_MAX));
    }
}
