//! A fragile actor: fails where it is told to, and counts what it hears of it.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "fragile";

/// What a fragile actor is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knock {
    /// Succeeds.
    Softly,
    /// Fails by an error.
    Error,
    /// Fails by a panic.
    Panic,
    /// Fails before this time, then succeeds.
    ErrorUntil(Timestamp),
}

/// What it has heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heard {
    /// Messages processed.
    pub knocks: u64,
    /// Notices of dead letters.
    pub letters: u64,
}

/// What it says when it panics.
pub const LAST_WORDS: &str = "shattered, as asked";

/// The kind.
pub struct Fragile;

struct Loaded {
    heard: Heard,
}

impl Kind for Fragile {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let heard = storage.get("heard")?.map_or(Ok(Heard::default()), |stored| stored.decode())?;
        Ok(Box::new(Loaded { heard }))
    }
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => return turn.reply(&request.id, &self.heard),
            Input::Message(message) => {
                // Written before it fails: nothing of this may be seen afterwards.
                self.heard.knocks += 1;
                turn.put("heard", &self.heard)?;
                match message.body.decode()? {
                    Knock::Softly => {}
                    Knock::Error => return Err(TurnError::failed("knocked over")),
                    Knock::Panic => panic!("{LAST_WORDS}"),
                    Knock::ErrorUntil(time) if turn.now() < time => return Err(TurnError::failed("not yet")),
                    Knock::ErrorUntil(_) => {}
                }
            }
            Input::DeadLetter(_) => self.heard.letters += 1,
            Input::Alarm { .. } | Input::TaskResult(_) => {
                return Err(TurnError::failed("a fragile actor takes messages only"));
            }
        }
        turn.put("heard", &self.heard)
    }
}
