//! A counter: the smallest actor with a state. A request adds to it and gets the sum.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::ActorId;
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "counter";

/// What is asked of a counter.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Add {
    /// How much to add.
    pub add: u64,
}

/// The kind.
pub struct Counter;

struct Loaded {
    count: u64,
}

impl Kind for Counter {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let count = storage.get("count")?.map_or(Ok(0), |stored| stored.decode())?;
        Ok(Box::new(Loaded { count }))
    }
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                let Add { add } = request.body.decode()?;
                // Zero only asks, and writes nothing.
                if add > 0 {
                    self.count += add;
                    turn.put("count", &self.count)?;
                }
                turn.reply(&request.id, &self.count)
            }
            Input::Message(message) => {
                let Add { add } = message.body.decode()?;
                self.count += add;
                turn.put("count", &self.count)
            }
            Input::Alarm { .. } | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("a counter takes requests and messages only"))
            }
        }
    }
}
