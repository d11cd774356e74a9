//! Dead letters: inputs that were given up, kept until somebody tries them again or throws them away.
//!
//! Owns their ids and their form outside of the store. How one comes to be, and what is done with it, is in `runner/`.

use std::fmt;
use std::str::FromStr;

use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::FailedInput;
use steadfast_store::rows::DeadLetterRow;

use crate::engine_message::read_failed_input;

/// Which dead letter, as people write it: `<shard>-<boot>-<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId {
    pub(crate) shard: Shard,
    pub(crate) sequence: Sequence,
}

/// A text that is not the id of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a dead letter: expected three numbers, as in `16-3-42`")]
pub struct NotADeadLetterId(String);

/// An input that was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDeadLetter {
    /// By which it is tried again or thrown away.
    pub id: DeadLetterId,
    /// Whose input it was.
    pub actor: ActorId,
    /// The input; `Err` says why it cannot be read, for instance because a newer engine wrote it.
    pub input: Result<FailedInput, String>,
    /// Why the last try failed.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub at: Timestamp,
}

impl From<DeadLetterRow> for StoredDeadLetter {
    fn from(row: DeadLetterRow) -> Self {
        Self {
            id: DeadLetterId { shard: row.actor.shard(), sequence: row.id },
            input: read_failed_input(&row.input),
            actor: row.actor,
            error: row.error,
            attempts: row.attempts,
            at: row.at,
        }
    }
}

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.shard.0, self.sequence.boot(), self.sequence.count())
    }
}

impl FromStr for DeadLetterId {
    type Err = NotADeadLetterId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('-');
            let shard: u16 = parts.next()?.parse().ok()?;
            let sequence = Sequence::of(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)?;
            let is_whole = parts.next().is_none() && shard < Shard::COUNT;
            is_whole.then_some(Self { shard: Shard(shard), sequence })
        };
        parse().ok_or_else(|| NotADeadLetterId(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id: DeadLetterId = "16-3-42".parse().unwrap();
        assert_eq!(id.to_string(), "16-3-42");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "16", "16-3", "16-3-42-1", "64-3-42", "16-x-42", "16-1048576-0", "16-3-8796093022208"] {
            assert!(text.parse::<DeadLetterId>().is_err(), "{text}");
        }
    }
}
