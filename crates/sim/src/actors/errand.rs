//! An errand: dispatches tasks and notes how each ended.
//!
//! The answer to a request comes when its task has ended, from another turn than the one that took the request.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "errand";

/// The type of the event of each settled task; its data is a [`Settled`].
pub const SETTLED: &str = "errand.settled";

/// What is asked of an errand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// The task's name; no other request to the same actor may use it while it is under way.
    pub task: String,
    /// Which executor runs it.
    pub executor: String,
    /// What it is given.
    pub input: Json,
}

/// The type of the event of each cancelled task; its data is the task's name.
pub const CANCELLED: &str = "errand.cancelled";

/// Asks an errand to call a task off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cancel {
    /// Which.
    pub cancel: String,
    /// What else the same turn wants of it.
    pub with: With,
}

/// What a turn that cancels a task also does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum With {
    /// Nothing.
    Nothing,
    /// It dispatches the task anew before it cancels it: cancelled it is.
    DispatchBefore,
    /// It dispatches the task anew after it has cancelled it: that one runs.
    DispatchAfter,
}

/// A task has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Which.
    pub task: String,
    /// Whether it succeeded.
    pub is_ok: bool,
    /// How many times it may have been started.
    pub attempt: u32,
}

/// The kind.
pub struct Errand;

struct Loaded;

impl Kind for Errand {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Loaded))
    }
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                if let Ok(Cancel { cancel, with }) = request.body.decode() {
                    call_off(turn, &cancel, with)?;
                    return turn.reply(&request.id, &cancel);
                }
                let Run { task, executor, input } = request.body.decode()?;
                turn.put(&key(&task), &request.id)?;
                turn.dispatch(&task, &executor, &input)
            }
            Input::TaskResult(result) => {
                let task = result.task.as_str().to_owned();
                let asked: RequestId = turn
                    .get(&key(&task))?
                    .ok_or_else(|| TurnError::failed(format!("task `{task}` was settled before")))?;
                turn.delete(&key(&task));
                let settled = Settled { task, is_ok: result.outcome.is_ok(), attempt: result.attempt };
                turn.emit(SETTLED, &settled)?;
                turn.reply(&asked, &settled)
            }
            Input::Message(_) | Input::Alarm { .. } | Input::DeadLetter(_) => {
                Err(TurnError::failed("an errand takes requests and results only"))
            }
        }
    }
}

fn call_off(turn: &mut Turn<'_>, task: &str, with: With) -> Result<(), TurnError> {
    // One that is settled, or was never dispatched, is cancelled too: that must do nothing.
    let Some(asked) = turn.get::<RequestId>(&key(task))? else { return turn.cancel(task) };
    match with {
        With::DispatchAfter => {
            turn.cancel(task)?;
            return turn.dispatch(task, "echo", task);
        }
        With::DispatchBefore => turn.dispatch(task, "echo", task)?,
        With::Nothing => {}
    }
    turn.cancel(task)?;
    turn.delete(&key(task));
    turn.emit(CANCELLED, task)?;
    turn.reply(&asked, CANCELLED)
}

fn key(task: &str) -> String {
    format!("task/{task}")
}
