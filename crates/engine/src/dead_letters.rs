//! Dead letters: inputs that were given up, kept until somebody tries them again or throws them away.
//!
//! Owns their ids and their form outside of the store. How one comes to be, and what is done with it, is in `runner/`.

use std::fmt;
use std::str::FromStr;

use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::FailedInput;
use steadfast_store::StoreError;
use steadfast_store::rows::DeadLetterRow;

use crate::engine::Engine;
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

/// Pages of a shard's letters that are looked through for those of one actor.
const PAGES_LOOKED_THROUGH: usize = 10;

impl Engine {
    /// A dead letter, if it is there.
    pub fn dead_letter(&self, id: DeadLetterId) -> Result<Option<StoredDeadLetter>, StoreError> {
        let before = id.sequence.0.checked_sub(1).map(Sequence);
        let rows = self.with_reader(|reader| reader.dead_letters(id.shard, before, 1))??;
        Ok(rows.into_iter().map(StoredDeadLetter::from).find(|letter| letter.id == id))
    }

    /// Dead letters of one actor after the given one, at most `limit`; and after which one to look on, if there may be more. Looks through letters
    /// of others in the actor's shard too, ten thousand at most.
    pub fn dead_letters_of(
        &self,
        actor: &ActorId,
        after: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<(Vec<StoredDeadLetter>, Option<DeadLetterId>), StoreError> {
        let shard = actor.shard();
        let mut after = after.filter(|letter| letter.shard == shard).map(|letter| letter.sequence);
        let mut letters = Vec::new();
        for _ in 0..PAGES_LOOKED_THROUGH {
            let rows = self.with_reader(|reader| reader.dead_letters(shard, after, limits::PAGE_ROWS_MAX))??;
            let is_last = rows.len() < limits::PAGE_ROWS_MAX;
            for row in rows {
                after = Some(row.id);
                if row.actor == *actor {
                    letters.push(StoredDeadLetter::from(row));
                }
                if letters.len() == limit {
                    return Ok((letters, after.map(|sequence| DeadLetterId { shard, sequence })));
                }
            }
            if is_last {
                return Ok((letters, None));
            }
        }
        Ok((letters, after.map(|sequence| DeadLetterId { shard, sequence })))
    }
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
