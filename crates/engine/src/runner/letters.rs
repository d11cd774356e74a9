//! What is done with dead letters: trying one again, throwing one away.
//!
//! Owns both. A letter goes in the same batch in which its input comes back, and none is taken twice.

use steadfast_core::ids::Sequence;
use steadfast_core::json::Json;
use steadfast_store::StoreError;
use steadfast_store::batch::ActorWrites;
use steadfast_store::rows::{DeadLetterRow, MessageRow, Origin};

use super::Runner;
use crate::commit::{Output, RequestError, Waiter};
use crate::dead_letters::DeadLetterId;
use crate::engine_message::{EngineMessage, read_failed_input};

impl Runner {
    /// Gives the input to its actor once more, with all its tries.
    pub(super) fn redrive(&mut self, letter: DeadLetterId, waiter: Waiter) {
        let Some((row, waiter)) = self.find_letter(letter, waiter) else { return };
        let input = match read_failed_input(&row.input) {
            Ok(input) => input,
            Err(error) => return waiter.send(Err(RequestError::Refused(error))),
        };
        let body = EngineMessage::Redriven { input }.write();
        let message = MessageRow::new(row.actor.clone(), self.gather.next_sequence(), Origin::Engine, body);
        if let Some(batch) = self.take_letter(&row, waiter, |writes| writes.insert_message(message.clone())) {
            self.receive(message, batch);
        }
    }

    /// Throws the input away.
    pub(super) fn discard(&mut self, letter: DeadLetterId, waiter: Waiter) {
        if let Some((row, waiter)) = self.find_letter(letter, waiter) {
            self.take_letter(&row, waiter, |_| {});
        }
    }

    /// Removes the letter and does `also` in the same batch. The batch, unless a commit failed meanwhile.
    fn take_letter(&mut self, row: &DeadLetterRow, waiter: Waiter, also: impl FnOnce(&mut ActorWrites)) -> Option<u64> {
        let appended = self.gather.append(self.epoch, row.input.bytes(), |writing| {
            let writes = writing.batch.of(&row.actor);
            writes.delete_dead_letter(row.id);
            also(writes);
            writing.outputs.push(Output::Answer(waiter, Ok(Json::null())));
            writing.number
        });
        let batch = appended.ok()?;
        self.taken_letters.insert(row.id, batch);
        Some(batch)
    }

    fn find_letter(&mut self, letter: DeadLetterId, waiter: Waiter) -> Option<(DeadLetterRow, Waiter)> {
        match self.read_letter(letter) {
            Ok(Some(row)) => return Some((row, waiter)),
            // It may be gone by a batch that is not on disk yet.
            Ok(None) => {
                let reason = format!("there is no dead letter `{letter}`");
                self.answer_when_durable(waiter, Err(RequestError::Refused(reason)));
            }
            Err(error) => waiter.send(Err(RequestError::Unavailable(error.to_string()))),
        }
        None
    }

    fn read_letter(&self, letter: DeadLetterId) -> Result<Option<DeadLetterRow>, StoreError> {
        if self.taken_letters.contains_key(&letter.sequence) {
            return Ok(None);
        }
        let before = Sequence(letter.sequence.0.saturating_sub(1));
        let found = self.reader.dead_letters(letter.shard, Some(before), 1)?;
        Ok(found.into_iter().next().filter(|row| row.id == letter.sequence))
    }
}
