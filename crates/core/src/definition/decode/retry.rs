//! `retry: { max_attempts, delay, backoff, factor, max_delay, jitter }`.

use super::super::tree::Field;
use super::Decoder;
use crate::limits;
use crate::retry::{Backoff, Retry};

const FIELDS: [&str; 6] = ["max_attempts", "delay", "backoff", "factor", "max_delay", "jitter"];

/// What a `retry` means where it says nothing.
const ATTEMPTS: u32 = 3;
const DELAY_MS: u64 = 1_000;
const DELAY_LONGEST_MS: u64 = 60_000;
const FACTOR: f64 = 2.0;
const JITTER: f64 = 0.1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    Exponential,
    Linear,
    Constant,
}

impl Decoder<'_, '_> {
    pub(super) fn retry(&mut self, field: &Field) -> Option<Retry> {
        let object = self.object(&field.value, "`retry`", &FIELDS)?;
        let attempts = object.get("max_attempts").map(|field| self.whole(field, 1, limits::RETRY_ATTEMPTS_MAX.into()));
        let delay = object.get("delay").map(|field| self.duration_ms(field));
        let growths =
            [("exponential", Growth::Exponential), ("linear", Growth::Linear), ("constant", Growth::Constant)];
        let growth = object.get("backoff").map(|field| self.choice(field, &growths));
        let factor = object.get("factor").map(|field| self.number(field, 1.0, 1000.0));
        let longest = object.get("max_delay").map(|field| self.duration_ms(field));
        let jitter = object.get("jitter").map(|field| self.number(field, 0.0, 1.0));

        let delay_first_ms = delay.unwrap_or(Some(DELAY_MS))?;
        let delay_max_ms = longest.unwrap_or_else(|| Some(DELAY_LONGEST_MS.max(delay_first_ms)))?;
        if let Some(field) = object.get("max_delay").filter(|_| delay_max_ms < delay_first_ms) {
            let hint = "the first delay is `delay`, and no delay is longer than `max_delay`".to_owned();
            self.problems.error(field.value_at(), "`max_delay` is shorter than `delay`", hint);
        }
        let growth = growth.unwrap_or(Some(Growth::Exponential))?;
        if let Some(field) = object.get("factor").filter(|_| growth != Growth::Exponential) {
            let hint = "it says how fast delays grow with `backoff: exponential`".to_owned();
            self.problems.error(field.key_at, "`factor` means nothing with this `backoff`", hint);
        }
        let factor = factor.unwrap_or(Some(FACTOR))?;
        let backoff = match growth {
            Growth::Exponential => Backoff::Exponential { factor },
            Growth::Linear => Backoff::Linear,
            Growth::Constant => Backoff::Constant,
        };
        let attempts_max = match attempts {
            None => ATTEMPTS,
            Some(given) => u32::try_from(given?).unwrap_or(limits::RETRY_ATTEMPTS_MAX),
        };
        Some(Retry { attempts_max, delay_first_ms, backoff, delay_max_ms, jitter: jitter.unwrap_or(Some(JITTER))? })
    }
}
