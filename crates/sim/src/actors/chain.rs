//! A chain of calls: each actor calls the next one and waits for its answer.
//!
//! `chain:<name>/0` is asked from outside; level n calls level n+1, and the last one answers. The answer counts the levels on its way up.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "chain";

/// What the first of a chain is asked: how many levels there are to be below it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Nest {
    /// Levels below the first.
    pub depth: u64,
}

/// What the levels say to each other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// Go on to this depth.
    Call { depth: u64 },
    /// So many levels have answered.
    Answer { levels: u64 },
}

/// Where a level stands.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
enum Phase {
    #[default]
    New,
    Waiting {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
    },
    Done {
        levels: u64,
    },
}

/// The kind.
pub struct Chain;

struct Level {
    phase: Phase,
}

/// The first actor of the chain `name`.
#[must_use]
pub fn first(name: &str) -> ActorId {
    super::actor(KIND, &format!("{name}/0"))
}

impl Kind for Chain {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let phase = storage.get("phase")?.map_or(Ok(Phase::New), |stored| stored.decode())?;
        Ok(Box::new(Level { phase }))
    }
}

impl Actor for Level {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                let Nest { depth } = request.body.decode()?;
                self.call(turn, depth, Some(request.id.clone()))
            }
            Input::Message(message) => match message.body.decode()? {
                Said::Call { depth } => self.call(turn, depth, None),
                Said::Answer { levels } => self.answer(turn, levels),
            },
            Input::Alarm { .. } | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("a chain takes requests and messages only"))
            }
        }
    }
}

impl Level {
    fn call(&mut self, turn: &mut Turn<'_>, depth: u64, request: Option<RequestId>) -> Result<(), TurnError> {
        let level = level_of(turn.actor())?;
        self.phase = Phase::Waiting { request };
        if level >= depth {
            return self.answer(turn, 0);
        }
        turn.put("phase", &self.phase)?;
        turn.send(&neighbour(turn.actor(), level + 1)?, &Said::Call { depth })
    }

    fn answer(&mut self, turn: &mut Turn<'_>, levels: u64) -> Result<(), TurnError> {
        let Phase::Waiting { request } = std::mem::take(&mut self.phase) else {
            return Err(TurnError::failed("an answer came to a level that does not wait for one"));
        };
        let level = level_of(turn.actor())?;
        self.phase = Phase::Done { levels };
        turn.put("phase", &self.phase)?;
        match request {
            Some(request) => turn.reply(&request, &levels),
            None => turn.send(&neighbour(turn.actor(), level - 1)?, &Said::Answer { levels: levels + 1 }),
        }
    }
}

fn level_of(actor: &ActorId) -> Result<u64, TurnError> {
    let level = actor.name().rsplit_once('/').and_then(|(_, level)| level.parse().ok());
    level.ok_or_else(|| TurnError::failed(format!("`{actor}` is not the name of a level")))
}

fn neighbour(actor: &ActorId, level: u64) -> Result<ActorId, TurnError> {
    let chain = actor.name().rsplit_once('/').map_or("", |(chain, _)| chain);
    Ok(ActorId::new(KIND, &format!("{chain}/{level}"))?)
}
