//! A ticker: an alarm that sets itself again a number of times.
//!
//! Every tick is at its own absolute time, so a late one does not push back the next. Each is an event that says when it was due and
//! when it came.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "ticker";

/// The type of the event of each tick; its data is a [`Tick`].
pub const TICKED: &str = "ticker.ticked";

/// What a ticker is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// When the first tick is due.
    pub first: Timestamp,
    /// Time between two ticks.
    pub every_ms: u64,
    /// How many ticks there are to be.
    pub times: u64,
}

/// One tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// When it was due.
    pub due: Timestamp,
    /// When it came.
    pub at: Timestamp,
}

/// The kind.
pub struct Ticker;

struct Ticking {
    plan: Option<Start>,
}

impl Kind for Ticker {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let plan = storage.get("plan")?.map(|stored| stored.decode()).transpose()?;
        Ok(Box::new(Ticking { plan }))
    }
}

impl Actor for Ticking {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                let plan: Start = request.body.decode()?;
                turn.set_alarm(plan.first);
                turn.put("plan", &plan)?;
                self.plan = Some(plan);
                turn.reply(&request.id, "started")
            }
            Input::Alarm { due } => {
                let plan = self.plan.as_mut().ok_or_else(|| TurnError::failed("an alarm without a plan"))?;
                turn.emit(TICKED, &Tick { due: *due, at: turn.now() })?;
                plan.times -= 1;
                if plan.times > 0 {
                    turn.set_alarm(due.plus_ms(plan.every_ms));
                }
                turn.put("plan", plan)
            }
            Input::Message(_) | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("a ticker takes requests and alarms only"))
            }
        }
    }
}
