//! Durations as people write them: `500ms`, `30s`, `1h30m`.
//!
//! Owns the units and their spelling. Never rounds: what is not a whole number of milliseconds is refused.

use crate::limits;

/// Units, longest first: the order in which they stand in `1h30m`.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// There is nothing.
    #[error("a duration is missing: expected one such as `500ms`, `30s`, `10m`, `24h`, `7d`")]
    Empty,
    /// It does not begin with a number.
    #[error("`{0}` is not a duration: expected one such as `500ms`, `30s`, `10m`, `24h`, `7d`")]
    NoNumber(String),
    /// There is a number, but no unit.
    #[error("`{0}` has no unit: expected one such as `{0}ms`, `{0}s`, `{0}m`, `{0}h`, `{0}d`")]
    NoUnit(String),
    /// A unit is unknown.
    #[error("`{unit}` is not a unit of time: allowed are `ms`, `s`, `m`, `h`, `d`")]
    Unit {
        /// What stands in its place.
        unit: String,
    },
    /// Units come twice or in the wrong order.
    #[error("units go from long to short, each once, as in `1d12h` or `1h30m`")]
    Order,
    /// It is longer than anything may take.
    #[error("`{0}` is longer than ten years")]
    TooLong(String),
}

/// Reads a duration: whole numbers with units, from long to short.
pub fn parse_ms(text: &str) -> Result<u64, InvalidDuration> {
    if text.trim().is_empty() {
        return Err(InvalidDuration::Empty);
    }
    let (mut rest, mut total, mut units_left) = (text.trim(), 0_u64, &UNITS[..]);
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| c.is_ascii_digit());
        if number.is_empty() {
            return Err(InvalidDuration::NoNumber(shown(text)));
        }
        if unit.is_empty() {
            return Err(InvalidDuration::NoUnit(shown(number)));
        }
        let Some(factor) = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor) else {
            return Err(InvalidDuration::Unit { unit: shown(unit) });
        };
        let place = units_left.iter().position(|(name, _)| *name == unit).ok_or(InvalidDuration::Order)?;
        units_left = &units_left[place + 1..];
        total = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(*factor)?.checked_add(total))
            .filter(|total| *total <= limits::DURATION_MS_MAX)
            .ok_or_else(|| InvalidDuration::TooLong(shown(text)))?;
        rest = after;
    }
    Ok(total)
}

/// A duration as it is written: `1h30m`.
#[must_use]
pub fn format_ms(ms: u64) -> String {
    let mut rest = ms;
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if rest >= factor {
            text.push_str(&format!("{}{unit}", rest / factor));
            rest %= factor;
        }
    }
    if text.is_empty() { "0ms".to_owned() } else { text }
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

fn shown(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain("…".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match parse_ms(text) {
            Ok(ms) => ms.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn every_unit_is_read() {
        check("500ms", "500");
        check("30s", "30000");
        check("10m", "600000");
        check("24h", "86400000");
        check("7d", "604800000");
        check("1h30m", "5400000");
        check("0s", "0");
    }

    #[test]
    fn what_was_read_is_written_again() {
        for text in ["500ms", "30s", "1h30m", "7d", "1m500ms"] {
            assert_eq!(format_ms(parse_ms(text).unwrap()), text);
        }
        assert_eq!(format_ms(90_000), "1m30s");
        assert_eq!(format_ms(0), "0ms");
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_what_would_be() {
        check("", "a duration is missing: expected one such as `500ms`, `30s`, `10m`, `24h`, `7d`");
        check("soon", "`soon` is not a duration: expected one such as `500ms`, `30s`, `10m`, `24h`, `7d`");
        check("-5s", "`-5s` is not a duration: expected one such as `500ms`, `30s`, `10m`, `24h`, `7d`");
        check("30", "`30` has no unit: expected one such as `30ms`, `30s`, `30m`, `30h`, `30d`");
        check("30 seconds", "` seconds` is not a unit of time: allowed are `ms`, `s`, `m`, `h`, `d`");
        check("1.5h", "`.` is not a unit of time: allowed are `ms`, `s`, `m`, `h`, `d`");
        check("30m1h", "units go from long to short, each once, as in `1d12h` or `1h30m`");
        check("3660d", "316224000000");
        check("3661d", "`3661d` is longer than ten years");
        check("99999999999999999999d", "`99999999999999999999d` is longer than ten years");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = parse_ms(&text);
        }
    }
}
