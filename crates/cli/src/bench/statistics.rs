//! Medians and percentiles.
//!
//! Owns the arithmetic of measured samples; never measures.

use std::time::Duration;

/// The middle of some figures; zero of none. One noisy round does not move it.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// The smallest sample that `percent` of all do not exceed; zero of none.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// As microseconds.
pub(crate) fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// As milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `figure ÷ by`; zero when there is nothing to divide by.
pub(crate) fn ratio(figure: f64, by: f64) -> f64 {
    if by > 0.0 { figure / by } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median([9.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn the_99th_percentile_of_a_hundred_is_the_last_but_one() {
        let samples: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!(percentile(&samples, 99), Duration::from_micros(99));
        assert_eq!(percentile(&samples[..1], 50), Duration::from_micros(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
